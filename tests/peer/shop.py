# SPDX-License-Identifier: Apache-2.0
"""Runs programs for the peer tests: start a program, wait for a line of its output, stop it. Also the example shop with its customers."""
import concurrent.futures
import contextlib
import http.client
import itertools
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time

START_SECONDS = 300
STOP_SECONDS = 300

# How often each page is in fifty requests. Nearly all CPU time is in /report; how much it takes depends on the month.
PAGES = {("/product?id={}", 4000): 24, ("/cart?user={}", 500): 12, ("/checkout?user={}", 500): 8, ("/report?month={}", 12): 6}
CUSTOMERS = 4


def kept_port():
    """A socket that reserves a port: while the socket is open, the kernel gives the port to no other program. A server can still listen on the port,
    because both sockets have SO_REUSEADDR, and this one does not listen."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    return one


class Program:
    """A child process whose standard output and standard error go to the file LOG. `with` always ends the process."""

    def __init__(self, command, log, environment=None):
        self.log = pathlib.Path(log)
        self.name = pathlib.Path(command[0]).name
        # Settings in the caller's environment must not change the test.
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "SPANPROF_"))}
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen([str(item) for item in command], stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=subprocess.STDOUT, env={**inherited, **(environment or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_for(self, pattern):
        """Waits until PATTERN matches the output, and returns the match."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            ended = self.process.poll() is not None
            match = re.search(pattern, self.text(), re.MULTILINE)
            if match:
                return match
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"{self.name} {'ended' if ended else 'runs'} without saying {pattern!r}:\n{self.text()}")
            time.sleep(0.05)

    def stop(self):
        """Sends SIGTERM, and waits for the end. The exit code has to be 0."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(STOP_SECONDS)
        assert code == 0, f"{self.name} ended with {code}:\n{self.text()}"


class Shop(Program):
    def __init__(self, program, log, environment):
        super().__init__([program, "--port", "0"], log, environment)
        self.port = int(self.wait_for(r"^shop: listening on http://127\.0\.0\.1:(\d+)$")[1])

    def visit(self, requests):
        """CUSTOMERS customers at once request REQUESTS pages together, the same pages in every run."""
        dice = random.Random(1)
        fifty = [page for page, count in PAGES.items() for _ in range(count)]
        paths = [path.format(dice.randint(1, limit)) for path, limit in itertools.islice(itertools.cycle(fifty), requests)]
        dice.shuffle(paths)
        with concurrent.futures.ThreadPoolExecutor(CUSTOMERS) as customers:
            statuses = set().union(*customers.map(self.customer, [paths[i::CUSTOMERS] for i in range(CUSTOMERS)]))
        assert statuses == {200}, f"the shop answered {sorted(statuses)}"

    def customer(self, paths):
        """Requests PATHS, one after the other. Returns the set of all statuses."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)) as connection:
            statuses = set()
            for path in paths:
                connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
                answer = connection.getresponse()
                answer.read()
                statuses.add(answer.status)
            return statuses

    def complaints(self):
        """The lines of the output that are not the shop's own, such as warnings of the SDK."""
        return [line for line in self.text().splitlines() if not line.startswith("shop: ")]
