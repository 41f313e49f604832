#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that sends with a spool is killed at random moments and started again, while the receiver answers, is busy, or drops connections.
Nothing that was in the spool's folder after a kill, or that the receiver did not acknowledge, may be missing in the end, and nothing may come twice
unless its acknowledgement was lost.

usage: spool_kill_test.py WORKLOAD KILLS [--profiles] [SEED]     --profiles: the program is also sampled, and sends profiles

What has to hold depends neither on when the kills come nor on how fast anything is. After each kill the test waits until the receiver has read
all that the program sent, and reads the folder:

1. Each request in it is whole.
2. A request that was in it after an earlier kill, or has arrived, is in it or was acknowledged.
3. A request that was acknowledged comes again only after a kill that has left it in the folder.
4. Requests with the same span, or the same profile_id, are the same bytes.
5. In the end each span and each profile_id that was in the folder after a kill is in a request that was acknowledged.

Every 20 kills, and at the end, one more start delivers all that is left, drops nothing, and leaves an empty folder.
"""
import collections, functools, hashlib, http.server, os, pathlib, random, re, signal, socket, struct, subprocess, sys, tempfile, threading, time, zlib

PATIENCE_S = 300
LONGEST_LIFE_S = 0.25
KILLS_TOGETHER = 20

Arrival = collections.namedtuple("Arrival", "id run acknowledged")


# --- what is in a request ------------------------------------------------------------------------------------------------------

def varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return number, at


def messages(data, wanted):
    """Contents of the fields WANTED of a protobuf message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind, length = tag & 7, 0
        if kind == 0:
            _, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            if tag >> 3 == wanted:
                yield data[at:at + length]
        else:
            length = {1: 8, 5: 4}[kind]
        at += length


def profile_ids(request):
    """OTLP: resource_profiles, scope_profiles, profiles, profile_id."""
    return {identity.hex() for resource in messages(request, 1) for scope in messages(resource, 2) for profile in messages(scope, 2)
            for identity in messages(profile, 7)}


def names_in(request, is_profiles):
    """What is in it: the names of spans, or profile_ids."""
    return profile_ids(request) if is_profiles else {span.decode() for span in re.findall(rb"run[0-9]+-[0-9]+;", request)}


# --- the receiver --------------------------------------------------------------------------------------------------------------


class Receiver(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, seed):
        super().__init__(("127.0.0.1", 0), Handler)
        self.random = random.Random(seed)
        self.changed = threading.Condition()
        self.connections = 0
        self.run = 0
        self.arrivals = []
        self.profile_count = 0  # of arrivals
        self.id_of_name = {}
        self.acknowledged_names = set()
        self.taken_names = set()  # what was in the folder after a kill
        self.broken = []
        self.is_moody = True
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, address):
        """A connection that the killed program leaves is no error."""

    def process_request(self, request, address):
        with self.changed:
            self.connections += 1
        super().process_request(request, address)

    def shutdown_request(self, request):
        super().shutdown_request(request)
        with self.changed:
            self.connections -= 1
            self.changed.notify_all()

    def mood(self):
        with self.changed:
            choices = ["fine"] * 14 + ["busy", "busy at once", "busy at once", "drop before", "drop after", "drop after"]
            return self.random.choice(choices) if self.is_moody else "fine"

    def note(self, body, is_profiles, acknowledged):
        """BODY was read. This is noted before the answer, because the program may remove the file as soon as it has that."""
        identity, names = hashlib.sha256(body).hexdigest(), names_in(body, is_profiles)
        with self.changed:
            self.arrivals.append(Arrival(identity, self.run, acknowledged))
            self.profile_count += is_profiles
            if acknowledged:
                self.acknowledged_names |= names
            for name in names:
                if self.id_of_name.setdefault(name, identity) != identity:
                    self.broken.append(f"{name} came in two requests of different bytes")

    def settle(self):
        """Wait until all that the program, which is gone, has sent is read. Connections are accepted in order: this one is the last."""
        with socket.create_connection(self.server_address) as last:
            last.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while last.recv(4096):
                pass
        with self.changed:
            if not self.changed.wait_for(lambda: self.connections == 0, PATIENCE_S):
                sys.exit("broken: a connection of the killed program is still open")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, *headers):
        self.send_response(code)
        for name, value in (("Content-Type", "application/x-protobuf"), ("Content-Length", "0"), *headers):
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self):
        self.answer(200)

    def do_POST(self):
        mood = self.server.mood()
        if mood == "drop before":
            self.close_connection = True
            return
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True
            return
        self.server.note(body, "profiles" in self.path, mood == "fine")
        if mood == "drop after":
            self.close_connection = True
        elif mood == "fine":
            self.answer(200)
        else:
            self.answer(503, *([("Retry-After", "0")] if mood == "busy at once" else []))


def environment(receiver, folder, profiles):
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "SPANPROF_"))}
    return {**inherited, "SPANPROF_SPOOL": str(folder), "OTEL_SERVICE_NAME": "killed",
            "SPANPROF_PROFILES": profiles, "SPANPROF_CPU_HZ": "1000", "SPANPROF_WINDOW_MS": "100",
            "SPANPROF_SPAN_PROCESSOR": "simple", "OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.server_port}"}


def wait_for_profile(receiver, folder):
    """Until this run has one in the folder, or has sent one."""
    before, arrived = set(pathlib.Path(folder).glob("*/*.profiles")), receiver.profile_count
    end = time.monotonic() + PATIENCE_S
    while not set(pathlib.Path(folder).glob("*/*.profiles")) - before and receiver.profile_count == arrived:
        if time.monotonic() > end:
            sys.exit("broken: no profile came")
        time.sleep(0.002)


def live_and_die(command, life_s, wait, surroundings):
    """WAIT, which may be None, is for what has to happen before the kill may come."""
    with subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        if wait:
            program.stdout.readline()
            wait()
        time.sleep(life_s)
        program.send_signal(signal.SIGKILL)
        if program.wait(PATIENCE_S) != -signal.SIGKILL:
            sys.exit(f"broken: the program ended by itself with {program.returncode}")


def read_spool(folder, broken, names):
    """The requests in FOLDER, by the hash of their bodies. What is in them goes to NAMES."""
    found = set()
    for path in [*pathlib.Path(folder).glob("*/*.traces"), *pathlib.Path(folder).glob("*/*.profiles")]:
        data = path.read_bytes()
        magic, crc, _, _, _, _, _, length = struct.unpack("<8sIBBBBQQ", data[:32]) if len(data) >= 32 else (b"",) + (0,) * 7
        if magic != b"SPSPOOL1" or length != len(data) - 32 or crc != zlib.crc32(data[12:]):
            broken.append(f"{path} is not whole after a kill")
        else:
            names |= names_in(data[32:], path.suffix == ".profiles")
        found.add(hashlib.sha256(data[32:]).hexdigest())
    return found


def check_arrivals(arrivals, left):
    """LEFT: what was in the folder after each run's kill."""
    broken, last_run = [], {}  # of those that were acknowledged
    for arrival in arrivals:
        run = last_run.get(arrival.id)
        if run is not None and (run == arrival.run or arrival.id not in left[run]):
            broken.append(f"{arrival.id} came again in run {arrival.run}, though its acknowledgement in run {run} was not lost")
        if arrival.acknowledged:
            last_run[arrival.id] = arrival.run
    return broken


def deliver_rest(workload, surroundings):
    done = subprocess.run([workload], env=surroundings, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode != 0:
        sys.exit(f"broken: the last run: {done}")
    return {name: int(value) for name, value in (line.split("=") for line in done.stdout.split())}


def acknowledged(receiver):
    return {arrival.id for arrival in receiver.arrivals if arrival.acknowledged}


def note_folder(receiver, folder, left):
    """After the end of a run: rules 1 and 2."""
    receiver.settle()
    left.append(read_spool(folder, receiver.broken, receiver.taken_names))
    known = set().union(*left) | {arrival.id for arrival in receiver.arrivals}
    for identity in known - left[-1] - acknowledged(receiver):
        receiver.broken.append(f"{identity} is gone after run {receiver.run} and was never acknowledged")
    receiver.run += 1


def deliver_all(receiver, workload, folder, left, surroundings):
    rest = len(left[-1])
    receiver.is_moody = False
    counted = deliver_rest(workload, surroundings)
    note_folder(receiver, folder, left)
    receiver.is_moody = True
    if counted != {"taken_over": rest, "requests": rest, "spooled": 0, "dropped": 0}:
        receiver.broken.append(f"{rest} requests were left; the run that delivers all counted {counted}")
    if os.listdir(folder):
        receiver.broken.append(f"in the spool's folder is still {os.listdir(folder)}")


def main(workload, kills, profiles, seed):
    print(f"seed {seed}", flush=True)
    receiver, moments, left = Receiver(seed), random.Random(seed + 1), []
    with tempfile.TemporaryDirectory() as folder:
        surroundings = environment(receiver, folder, "cpu" if profiles else "none")
        for kill in range(kills):
            command = [workload, f"run{receiver.run}", *(["busy"] if profiles else [])]
            wait = functools.partial(wait_for_profile, receiver, folder) if profiles else lambda: None
            life_s = moments.uniform(0, moments.choice([LONGEST_LIFE_S / 20, LONGEST_LIFE_S]))
            live_and_die(command, life_s, wait if moments.random() < 0.7 else None, surroundings)
            note_folder(receiver, folder, left)
            if kill % KILLS_TOGETHER == KILLS_TOGETHER - 1 or kill == kills - 1:
                deliver_all(receiver, workload, folder, left, environment(receiver, folder, "none"))
    receiver.broken += check_arrivals(receiver.arrivals, left)
    receiver.broken += [f"{name} was in the folder and in no request that was acknowledged"
                        for name in receiver.taken_names - receiver.acknowledged_names]
    ids = [arrival.id for arrival in receiver.arrivals]
    print(f"{kills} kills, {len(set(ids))} requests, {len(ids)} arrivals, {len(set().union(*left))} seen in the folder after a kill")
    for what, names in ("in the folder after a kill", receiver.taken_names), ("acknowledged", receiver.acknowledged_names):
        spans = sum(name.startswith("run") for name in names)
        print(f"{what}: {spans} spans, {len(names) - spans} profiles")
    for line in receiver.broken[:20]:
        print(f"broken: {line}")
    return bool(receiver.broken)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--profiles"]
    sys.exit(main(words[0], int(words[1]), "--profiles" in sys.argv, int(words[2]) if len(words) > 2 else random.randrange(1 << 32)))
