# SPDX-License-Identifier: Apache-2.0
"""An nginx of a test's own: on free ports of 127.0.0.1, with its files in a directory that goes with it."""
import os, shutil, signal, socket, subprocess, sys, time

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


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Server:
    """`with Server(directory, modules, server, …) as nginx`: runs; HTTP/1 on nginx.port, HTTP/2 on nginx.port2."""

    def __init__(self, directory, modules, server, http="", workers=1, environment=None):
        self.directory, self.environment = directory, environment or dict(os.environ)
        self.port, self.port2 = free_ports(2)
        os.makedirs(directory + "/temp", exist_ok=True)
        open(directory + "/nginx.conf", "w").write(CONFIGURATION % {
            "modules": "".join(f"load_module {os.path.abspath(m)};\n" for m in modules),
            "user": "user root;" if os.getuid() == 0 else "",  # as root, or the workers could neither write here nor have perf events
            "workers": workers, "http": http,
            "server": server % {"port": self.port, "directory": directory}, "port": self.port, "port2": self.port2})

    def __enter__(self):
        program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        subprocess.run([program, "-p", self.directory + "/", "-c", "nginx.conf", "-e", "error.log"], env=self.environment, timeout=60,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                self.master = int(open(self.directory + "/nginx.pid").read())
                return self
            except (OSError, ValueError):
                time.sleep(0.05)
        sys.exit("FAILED: nginx does not listen:\n" + self.log())

    def __exit__(self, *_):
        os.kill(self.master, signal.SIGTERM)  # workers end at once, and send what they have
        self.wait(self.master)
        crashes = [line for line in self.log().splitlines() if "[alert]" in line or "[emerg]" in line]
        if crashes:
            sys.exit("FAILED: nginx says\n" + "\n".join(crashes[:10]))

    def wait(self, master):
        """Until MASTER has ended: it is a daemon, and no child of ours."""
        for _ in range(1200):
            if self._stat(master)[:1] in ([], ["Z"]):
                return
            time.sleep(0.05)
        sys.exit("FAILED: nginx does not end\n" + self.log())

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
            return open(self.directory + "/error.log").read()
        except OSError:
            return ""

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"


def wrk(url, seconds, connections, script=None, threads=1):
    """The text that wrk prints, and what SCRIPT prints."""
    command = ["wrk", "--latency", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", url]
    if script:
        command[1:1] = ["-s", script]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60 + 2 * seconds).stdout
