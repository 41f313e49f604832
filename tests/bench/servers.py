#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What spans and samples cost nginx and PostgreSQL: throughput with the module and without, in turns.

  servers.py nginx [--page tiny|gzip] [--rounds N] [--seconds S] [BUILD]
  servers.py postgres [--protocol simple|prepared] [--rounds N] [--seconds S] [BUILD]

All servers run all the time: one without the module, one whose spans are all sampled, one with 10 % of them. A round asks each
for S seconds, in random order; the difference of a server is the mean, over rounds, of its throughput against the one without in the same
round, with the 95 % interval of that mean (normal). The server has one core, with all of its threads, and the client another, so that a
percent less throughput is a percent more CPU time a request. That is shown, too: it is less disturbed by what else runs on the machine. Ticks at
99 Hz; spans and profiles go to files.
BUILD: build/release."""
import argparse, collections, glob, math, os, random, re, signal, statistics, subprocess, sys, tempfile, time

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TREE, "tests", "truth", "servers"))
import nginx_server, postgres_server

KINDS = {"off": None, "all": "1", "10 %": "0.1"}  # the share of traces that is sampled
NGINX = """
        %s
        root html;
        location / { }
        location /gzip/ { gzip on; gzip_min_length 0; }
"""


def environment(prefix, ratio):
    return dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=prefix, OTEL_TRACES_SAMPLER="parentbased_traceidratio",
                OTEL_TRACES_SAMPLER_ARG=ratio or "0", SPANPROF_FILE_FORMAT="proto")


def pin(pid, core):
    """PID with all of its threads, and those that it makes later."""
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), {core})


def cpu_ns(pid):
    """What PID has used, with all of its threads: its CPU clock, whose number clock_getcpuclockid(3) would give."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def forget_files(directory):
    """Files grow by megabytes a second; what is written on goes nowhere."""
    for file in glob.glob(directory + "/*.binpb"):
        os.truncate(file, 0)


class Nginx:
    def __init__(self, kind, arguments, directory):
        module = arguments.build + "/examples/nginx/ngx_http_spanprof_module/ngx_http_spanprof_module.so"
        os.makedirs(directory + "/html/gzip")
        open(directory + "/html/index.html", "w").write("hello\n")
        words = random.Random(1).choices("lamp shade order total customer street page report month price".split(), k=2000)
        open(directory + "/html/gzip/index.html", "w").write(" ".join(words))
        on = kind != "off"
        self.server = nginx_server.Server(directory, [module] if on else [], NGINX % ("spanprof on;" if on else ""),
                                          environment=environment(directory + "/bench", KINDS[kind])).__enter__()
        self.path = "/" if arguments.page == "tiny" else "/gzip/"
        self.pids = self.server.workers()
        while not self.pids:  # the master listens before it has one
            time.sleep(0.1)
            self.pids = self.server.workers()
        script = directory + "/gzip.lua"
        open(script, "w").write('wrk.headers["Accept-Encoding"] = "gzip"\n')
        self.command = ["taskset", "-c", "1", "wrk", "--latency", "-t1", "-c16", "-s", script]

    def ask(self, seconds):
        """(requests a second, CPU time of one in us, 99th percentile in ms); None: it came to nothing, for the machine was busy elsewhere."""
        for pid in self.pids:
            pin(pid, 0)
        before = sum(map(cpu_ns, self.pids))
        said = subprocess.run([*self.command, f"-d{seconds}s", self.server.url(self.path)], stdout=subprocess.PIPE, text=True, check=True).stdout
        p99, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", said).groups()
        used, requests = sum(map(cpu_ns, self.pids)) - before, int(re.search(r"(\d+) requests in", said).group(1))
        if not requests:
            return None
        rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1))
        return rate, used / requests / 1000, float(p99) * {"us": 0.001, "ms": 1, "s": 1000}[unit]

    def end(self):
        self.server.__exit__(None, None, None)


class Postgres:
    """Clients stay connected and are stopped between their turns: what a connection costs is told elsewhere (docs/tracers/postgresql.md)."""

    def __init__(self, kind, arguments, directory):
        extension = arguments.build + "/examples/postgres/spanprof_postgres/spanprof_postgres.so"
        self.server = postgres_server.Server(directory, [extension, arguments.build + "/src/libspanprof.so.0"], "shared_buffers = 256MB\n",
                                             environment(directory + "/bench", KINDS[kind]), preload=kind != "off").__enter__()
        pin(self.server.process.pid, 0)
        self.server.client("pgbench", "-i", "-q", "-s", "10").communicate()
        self.client = self.server.client("pgbench", "-n", "-S", "-M", arguments.protocol, "-c", "4", "-j", "1", "-T", "1000000", "-l",
                                         "--log-prefix", directory + "/latency", preexec_fn=lambda: os.sched_setaffinity(0, {1}))
        time.sleep(2)
        self.client.send_signal(signal.SIGSTOP)
        self.log = open(glob.glob(directory + "/latency.*")[0])
        self.log.read()

    def backends(self):
        return [int(p) for p in open(f"/proc/{self.server.process.pid}/task/{self.server.process.pid}/children").read().split()]

    def ask(self, seconds):
        before, begin = sum(map(cpu_ns, self.backends())), time.monotonic()
        self.client.send_signal(signal.SIGCONT)
        time.sleep(seconds)
        self.client.send_signal(signal.SIGSTOP)
        passed = time.monotonic() - begin
        microseconds = [int(line.split()[2]) for line in self.log.read().splitlines()[1:-1]]  # of the last one a part may be missing
        if len(microseconds) < 2:
            return None
        used = sum(map(cpu_ns, self.backends())) - before
        return len(microseconds) / passed, used / len(microseconds) / 1000, statistics.quantiles(microseconds, n=100)[98] / 1000

    def end(self):
        self.client.kill()
        self.client.wait()
        self.server.__exit__(None, None, None)


def difference(mine, others):
    """Mean of the rounds' differences in percent, with its 95 % interval."""
    differences = [100 * (a / b - 1) for a, b in zip(mine, others)]
    mean, error = statistics.mean(differences), 1.96 * statistics.stdev(differences) / math.sqrt(len(differences))
    return f"{mean:+.2f} % [{mean - error:+.2f}, {mean + error:+.2f}]"


def show(figures):
    print(f"{len(figures['off'])} rounds; medians, and the mean differences to `off` with their 95 % intervals")
    print("| spans sampled | throughput, 1/s | difference | CPU time a request, us | difference | p99, ms |\n|---|---|---|---|---|---|")
    off = list(zip(*figures["off"]))
    for kind in KINDS:
        rate, cpu, p99 = zip(*figures[kind])
        both = [difference(mine, others) if kind != "off" else "" for mine, others in ((rate, off[0]), (cpu, off[1]))]
        print(f"| {kind} | {statistics.median(rate):,.0f} | {both[0]} | {statistics.median(cpu):.2f} | {both[1]} | {statistics.median(p99):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", choices=("nginx", "postgres"))
    parser.add_argument("build", nargs="?", default=os.path.join(TREE, "build", "release"))
    parser.add_argument("--page", choices=("tiny", "gzip"), default="gzip")
    parser.add_argument("--protocol", choices=("simple", "prepared"), default="simple")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=2)
    arguments = parser.parse_args()
    figures = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        servers = {}
        for i, kind in enumerate(KINDS):
            os.mkdir(f"{directory}/{i}")
            servers[kind] = (Nginx if arguments.server == "nginx" else Postgres)(kind, arguments, f"{directory}/{i}")
        try:
            for warm in [True] + arguments.rounds * [False]:
                found = {}
                for kind in random.sample(list(KINDS), len(KINDS)):
                    found[kind] = servers[kind].ask(arguments.seconds)
                    forget_files(servers[kind].server.directory)
                if not warm and all(found.values()):
                    for kind, figure in found.items():
                        figures[kind].append(figure)
        finally:
            for server in servers.values():
                server.end()
    show(figures)


if __name__ == "__main__":
    main()
