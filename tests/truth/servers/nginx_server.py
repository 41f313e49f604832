# SPDX-License-Identifier: Apache-2.0
"""An nginx of a test's own: on free ports of 127.0.0.1, with its files in a directory that goes with it."""
import os, select, shutil, signal, socket, subprocess, sys, time

PATIENCE_SECONDS = 300  # for what takes milliseconds on an idle machine

CONFIGURATION = """%(modules)s
%(user)s
worker_processes %(workers)d;
pid nginx.pid;
error_log error.log info;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path temp/1; proxy_temp_path temp/2; fastcgi_temp_path temp/3; uwsgi_temp_path temp/4; scgi_temp_path temp/5;
    client_body_buffer_size 8k;
    keepalive_requests 1000000;
    types { text/html html; text/plain txt; }
    %(http)s
    server {
        listen 127.0.0.1:%(port)d;
        listen 127.0.0.1:%(port2)d http2;
        %(server)s
    }
}
"""


def skip(reason):
    print("SKIPPED:", reason)
    sys.exit(77)


def need(*programs):
    for program in programs:
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            skip(program + " is not installed")


def wait_for(look, what):
    """What LOOK returns, as soon as that is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        if time.monotonic() > deadline:
            sys.exit("FAILED: " + what)
        time.sleep(0.05)
    return found


def kept_port():
    """A socket with a port that nginx may listen on (both say SO_REUSEADDR, and this one does not listen), and that no other process gets
    while the socket is open."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    return kept


class Server:
    """`with Server(directory, modules, server, …) as nginx`: runs; HTTP/1 on nginx.port, HTTP/2 on nginx.port2."""

    def __init__(self, directory, modules, server, http="", workers=1, environment=None):
        self.directory, self.environment = directory, environment or dict(os.environ)
        self._kept = kept_port(), kept_port()
        self.port, self.port2 = (kept.getsockname()[1] for kept in self._kept)
        os.makedirs(directory + "/temp", exist_ok=True)
        open(directory + "/nginx.conf", "w").write(CONFIGURATION % {
            "modules": "".join(f"load_module {os.path.abspath(m)};\n" for m in modules),
            "user": "user root;" if os.getuid() == 0 else "",  # as root, or the workers could neither write here nor have perf events
            "workers": workers, "http": http,
            "server": server % {"port": self.port, "directory": directory}, "port": self.port, "port2": self.port2})

    def __enter__(self):
        program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        # It listens before it becomes a daemon, whose parent ends then.
        started = subprocess.run([program, "-p", self.directory + "/", "-c", "nginx.conf", "-e", "error.log"], env=self.environment,
                                 timeout=PATIENCE_SECONDS, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        if started.returncode:
            sys.exit("FAILED: nginx does not start:\n" + self.log())
        self.follow(wait_for(self.read_master, "nginx says no process id"))
        wait_for(self.workers, "nginx has no worker")
        self._sockets = max(map(self.sockets, self.workers()))
        return self

    def __exit__(self, *_):
        self.let_connections_end()
        # Not SIGTERM: after a second and a half of that the master kills workers, with what they have not sent yet.
        self.signal(signal.SIGQUIT)
        self.wait()
        for kept in self._kept:
            kept.close()
        crashes = [line for line in self.log().splitlines() if "[alert]" in line or "[emerg]" in line]
        if crashes:
            sys.exit("FAILED: nginx says\n" + "\n".join(crashes[:10]))

    def let_connections_end(self):
        """Clients that have gone leave connections that a worker has not looked at yet. A worker that is told to end before it has calls them
        left over. Those that clients keep are no reason to wait for long."""
        deadline = time.monotonic() + 10
        while any(self.sockets(worker) > self._sockets for worker in self.workers()) and time.monotonic() < deadline:
            time.sleep(0.02)

    @staticmethod
    def sockets(pid):
        """How many sockets a worker has open; 0 when it has ended."""
        count = 0
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                count += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
        except OSError:
            pass
        return count

    def read_master(self):
        """The process id that nginx wrote down; None when there is none yet."""
        try:
            return int(open(self.directory + "/nginx.pid").read())
        except (OSError, ValueError):
            return None

    def follow(self, master):
        """MASTER is the one from now on. The descriptor means this process also when its number is another one's."""
        self.master, self._descriptor = master, os.pidfd_open(master)

    def signal(self, number):
        signal.pidfd_send_signal(self._descriptor, number)

    def wait(self):
        """Until the master has ended: it is a daemon, and no child of ours."""
        if not select.select([self._descriptor], [], [], PATIENCE_SECONDS)[0]:
            sys.exit("FAILED: nginx does not end\n" + self.log())
        os.close(self._descriptor)

    def workers(self):
        """Process ids of the workers."""
        return [int(p) for p in os.listdir("/proc") if p.isdigit() and self._stat(p)[1:2] == [str(self.master)]]

    @staticmethod
    def _stat(pid):
        """State, parent and so on of a process; [] when there is none."""
        try:
            return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            return []

    def log(self):
        try:
            return open(self.directory + "/error.log", errors="replace").read()
        except OSError:
            return ""

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"


def wrk(url, seconds, connections, script=None, threads=1):
    """The text that wrk prints, and what SCRIPT prints."""
    command = ["wrk", "--latency", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", url]
    if script:
        command[1:1] = ["-s", script]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE_SECONDS + 2 * seconds).stdout
