# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL of a test's own: on a socket in its directory, which goes with it. As root it runs as `postgres` or `nobody`, with the right to
have perf events."""
import os, pathlib, pwd, re, shutil, subprocess, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from kept import kept

PATIENCE_SECONDS = 300  # for what takes milliseconds on an idle machine

SETTINGS = """
listen_addresses = ''
unix_socket_directories = '%(directory)s'
fsync = off
full_page_writes = off
autovacuum = off
max_connections = 100
jit = off
"""


def skip(reason):
    print("SKIPPED:", reason)
    sys.exit(77)


def wait_for(look, what):
    """What LOOK returns, as soon as that is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        if time.monotonic() > deadline:
            sys.exit("FAILED: " + what)
        time.sleep(0.05)
    return found


def program(name):
    """PostgreSQL's own programs are in no PATH on Debian."""
    pg_config = shutil.which("pg_config")
    if not pg_config:
        skip("pg_config is not installed")
    found = os.path.join(subprocess.run([pg_config, "--bindir"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip(), name)
    if not os.path.exists(found):
        skip(name + " is not installed")
    return found


class Server:
    """`with Server(directory, [library, …], settings, environment) as postgres`: runs. Libraries are copied to where it can read them, as
    DIRECTORY/NAME; the first is preloaded. ADDED is what the server's environment has, and not that of its clients."""

    def __init__(self, directory, libraries, settings="", environment=None, preload=True, added=None):
        self.directory, self.data = directory, directory + "/data"
        self.environment = dict(environment or os.environ, LD_LIBRARY_PATH=directory, LC_ALL="C")
        self.added = [f"{name}={value}" for name, value in (added or {}).items()]
        self.user, self.prefix = None, []
        for library in libraries:
            shutil.copy(library, directory)
        if os.getuid() == 0:
            self.user = next((u for u in ("postgres", "nobody") if u in [p.pw_name for p in pwd.getpwall()]), None)
            entry = pwd.getpwnam(self.user)
            os.chown(directory, entry.pw_uid, entry.pw_gid)
            self.prefix = ["setpriv", "--reuid", self.user, "--regid", str(entry.pw_gid), "--clear-groups"]
            rights = ["--inh-caps", "+perfmon", "--ambient-caps", "+perfmon"]
            if subprocess.run(self.prefix + rights + ["true"], stderr=subprocess.DEVNULL).returncode == 0:
                self.prefix += rights
        subprocess.run(["cp", "-a", self._new_data(), self.data], check=True)
        with open(self.data + "/postgresql.conf", "a") as conf:
            conf.write(SETTINGS % {"directory": directory} + settings)
            if preload:
                conf.write(f"shared_preload_libraries = '{directory}/{os.path.basename(libraries[0])}'\n")

    def _new_data(self):
        """The folder of a database's files before its first start. initdb takes longer than most tests, so they are kept."""
        options = ["--no-sync", "--auth=trust", "--username=postgres"]

        def make(folder):
            self._command("initdb", *options, "--pgdata", self.data)
            shutil.move(self.data, folder / "data")
        version = subprocess.run([program("initdb"), "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        return kept("postgres-data", [], make, version, str(self.user), *options) / "data"

    def _command(self, name, *arguments):
        done = subprocess.run(self.prefix + [program(name), *arguments], env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd=self.directory)
        if done.returncode:
            sys.exit(f"FAILED: {name}: {done.stdout}")

    def __enter__(self):
        self.log_file = open(self.directory + "/log", "w")
        self.process = subprocess.Popen(self.prefix + ["env", *self.added, program("postgres"), "-D", self.data], env=self.environment, cwd=self.directory,
                                        stdout=self.log_file, stderr=subprocess.STDOUT)
        wait_for(lambda: self.process.poll() is not None or "ready to accept connections" in self.log(), "postgres does not start")
        if self.process.poll() is not None:
            sys.exit("FAILED: postgres does not start:\n" + self.log())
        return self

    def __exit__(self, *_):
        self.process.terminate()  # SIGTERM: waits for clients to leave
        self.process.wait(timeout=PATIENCE_SECONDS)
        crashes = re.findall(r".*(?:terminated by signal|PANIC).*", self.log())
        if crashes:
            sys.exit("FAILED: postgres says\n" + "\n".join(crashes))

    def log(self):
        return open(self.directory + "/log").read()

    def client(self, name, *arguments, **more):
        """Popen of psql or pgbench."""
        return subprocess.Popen([program(name), "-h", self.directory, "-U", "postgres", *arguments, "postgres"], env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)

    def sql(self, text):
        """Run TEXT, which must not fail; returns what psql prints."""
        psql = self.client("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", stdin=subprocess.PIPE)
        said = psql.communicate(text)[0]
        if psql.returncode:
            sys.exit("FAILED: psql: " + said)
        return said
