#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What spans and samples cost servers: throughput with them and without, in turns.

  servers.py nginx [--page tiny|gzip] [--rounds N] [--seconds S] [BUILD]
  servers.py postgres [--protocol simple|prepared] [--rounds N] [--seconds S] [BUILD]
  servers.py nginx|postgres|redis|sqlite --profiles alloc,heap,lock [--rounds N] [--seconds S] [BUILD]

All servers run all the time: one without the module, one whose spans are all sampled, one with 10 % of them. With --profiles the
module is in none; in one of two, the libraries of `spanprof run` are loaded and sample what is asked for. A round asks each
for S seconds, in random order; the difference of a server is the mean, over rounds, of its throughput against the one without in the same
round, with the 95 % interval of that mean (normal). The server has one core, with all of its threads, and the client another, so that a
percent less throughput is a percent more CPU time a request. That is shown, too: it is less disturbed by what else runs on the machine. Ticks at
99 Hz; spans and profiles go to files. SQLite has no server: its shell lives all the time and is asked for a script of 200,000 rows
in memory.
BUILD: build/release."""
import argparse, collections, glob, math, os, random, re, shutil, signal, statistics, subprocess, sys, tempfile, time

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TREE, "tests", "truth", "servers"))
import nginx_server, postgres_server

SHARES = {"off": None, "all": "1", "10 %": "0.1"}  # of traces that are sampled
NGINX = """
        %s
        root html;
        location / { }
        location /gzip/ { gzip on; gzip_min_length 0; }
"""


SQL = """
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, item TEXT, price REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
  INSERT INTO orders SELECT i, i * 7919 % 5000, 'item ' || i % 1000, i % 97 FROM n;
CREATE INDEX by_customer ON orders(customer);
SELECT count(*) FROM (SELECT item, sum(price) FROM orders GROUP BY item ORDER BY 2);
SELECT count(*) FROM orders a JOIN orders b ON a.customer = b.customer WHERE a.id < 20000;
DROP TABLE orders;
SELECT 'done';
"""


def preload(build):
    """The environment in which a program has the libraries of `spanprof run`, and writes files."""
    libraries = [build + "/src/run/libspanprof-run.so", build + "/src/preload/libspanprof-preload.so"]
    return {"SPANPROF_EXPORTER": "file", "SPANPROF_FILE_FORMAT": "proto", "LD_PRELOAD": ":".join(map(os.path.abspath, libraries)),
            "LD_LIBRARY_PATH": os.path.abspath(build + "/src")}


def kinds(arguments):
    """How a server runs: name to (with the module, what is added to its environment)."""
    if arguments.profiles:
        return {"off": (False, {}), arguments.profiles: (False, {**preload(arguments.build), "SPANPROF_PROFILES": arguments.profiles})}
    files = {"SPANPROF_EXPORTER": "file", "SPANPROF_FILE_FORMAT": "proto"}
    return {kind: (kind != "off", {**files, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": share or "0"})
            for kind, share in SHARES.items()}


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
    def __init__(self, on, added, arguments, directory):
        module = arguments.build + "/examples/nginx/ngx_http_spanprof_module/ngx_http_spanprof_module.so"
        os.makedirs(directory + "/html/gzip")
        open(directory + "/html/index.html", "w").write("hello\n")
        words = random.Random(1).choices("lamp shade order total customer street page report month price".split(), k=2000)
        open(directory + "/html/gzip/index.html", "w").write(" ".join(words))
        self.server = nginx_server.Server(directory, [module] if on else [], NGINX % ("spanprof on;" if on else ""),
                                          environment={**os.environ, **added}).__enter__()
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

    def __init__(self, on, added, arguments, directory):
        extension = arguments.build + "/examples/postgres/spanprof_postgres/spanprof_postgres.so"
        self.server = postgres_server.Server(directory, [extension, arguments.build + "/src/libspanprof.so.0"], "shared_buffers = 256MB\n",
                                             preload=on, added=added).__enter__()
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


class Redis:
    def __init__(self, on, added, arguments, directory):
        kept = nginx_server.kept_port()
        self.port = str(kept.getsockname()[1])
        self.server = subprocess.Popen([shutil.which("redis-server") or sys.exit("redis-server is not installed"), "--port", self.port,
                                        "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"], cwd=directory,
                                       env={**os.environ, **added}, stdout=subprocess.DEVNULL)
        self.seconds, self.count = 0, 20000
        nginx_server.wait_for(lambda: not subprocess.run(["redis-cli", "-p", self.port, "ping"], stdout=subprocess.DEVNULL,
                                                         stderr=subprocess.DEVNULL).returncode, "redis-server does not answer")

    def ask(self, seconds):
        pin(self.server.pid, 0)
        before = cpu_ns(self.server.pid)
        said = subprocess.run(["taskset", "-c", "1", "redis-benchmark", "-p", self.port, "-t", "lpush", "-r", "1000", "-d", "64", "-n",
                               str(self.count), "-c", "16", "--csv"], stdout=subprocess.PIPE, text=True, check=True).stdout
        used, requests = cpu_ns(self.server.pid) - before, self.count
        rate, *_, p99, _ = (float(f.strip('"')) for f in said.splitlines()[-1].split(",")[1:])
        self.count = max(1000, int(rate * seconds))
        subprocess.run(["redis-cli", "-p", self.port, "flushall"], stdout=subprocess.DEVNULL, check=True)
        return rate, used / requests / 1000, p99

    def end(self):
        self.server.terminate()
        self.server.wait()


class Sqlite:
    def __init__(self, on, added, arguments, directory):
        self.shell = subprocess.Popen(["taskset", "-c", "0", shutil.which("sqlite3") or sys.exit("sqlite3 is not installed"), ":memory:"],
                                      env={**os.environ, **added}, cwd=directory, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, seconds):
        before, begin = cpu_ns(self.shell.pid), time.monotonic()
        self.shell.stdin.write(SQL)
        self.shell.stdin.flush()
        while self.shell.stdout.readline() != "done\n":
            if self.shell.poll() is not None:
                sys.exit("FAILED: sqlite3 ended")
        passed = time.monotonic() - begin
        return 1 / passed, (cpu_ns(self.shell.pid) - before) / 1000, passed * 1000

    def end(self):
        self.shell.stdin.close()
        self.shell.wait()


SERVERS = {"nginx": Nginx, "postgres": Postgres, "redis": Redis, "sqlite": Sqlite}


def difference(mine, others):
    """Mean of the rounds' differences in percent, with its 95 % interval."""
    differences = [100 * (a / b - 1) for a, b in zip(mine, others)]
    mean, error = statistics.mean(differences), 1.96 * statistics.stdev(differences) / math.sqrt(len(differences))
    return f"{mean:+.2f} % [{mean - error:+.2f}, {mean + error:+.2f}]"


def show(figures):
    print(f"{len(figures['off'])} rounds; medians, and the mean differences to `off` with their 95 % intervals")
    print("| | throughput, 1/s | difference | CPU time a request, us | difference | p99, ms |\n|---|---|---|---|---|---|")
    off = list(zip(*figures["off"]))
    for kind in figures:
        rate, cpu, p99 = zip(*figures[kind])
        both = [difference(mine, others) if kind != "off" else "" for mine, others in ((rate, off[0]), (cpu, off[1]))]
        print(f"| {kind} | {statistics.median(rate):,.5g} | {both[0]} | {statistics.median(cpu):.2f} | {both[1]} | {statistics.median(p99):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", choices=SERVERS)
    parser.add_argument("build", nargs="?", default=os.path.join(TREE, "build", "release"))
    parser.add_argument("--page", choices=("tiny", "gzip"), default="gzip")
    parser.add_argument("--protocol", choices=("simple", "prepared"), default="simple")
    parser.add_argument("--profiles", help="load the libraries of `spanprof run`, in place of the module: list of cpu, wall, alloc, heap, lock")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.server in ("redis", "sqlite") and not arguments.profiles:
        parser.error(f"{arguments.server} has no module of ours: give --profiles")
    ways, figures = kinds(arguments), collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        servers = {}
        for i, (kind, (module, added)) in enumerate(ways.items()):
            os.mkdir(f"{directory}/{i}")
            servers[kind] = SERVERS[arguments.server](module, {**added, "SPANPROF_FILE": f"{directory}/{i}/bench"}, arguments,
                                                      f"{directory}/{i}")
        try:
            for warm in [True] + arguments.rounds * [False]:
                found = {}
                for kind in random.sample(list(ways), len(ways)):
                    found[kind] = servers[kind].ask(arguments.seconds)
                for i in range(len(ways)):
                    forget_files(f"{directory}/{i}")
                if not warm and all(found.values()):
                    for kind, figure in found.items():
                        figures[kind].append(figure)
        finally:
            for server in servers.values():
                server.end()
    show(figures)


if __name__ == "__main__":
    main()
