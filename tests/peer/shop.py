# SPDX-License-Identifier: Apache-2.0
"""Programs that the peer tests run: start one, wait for a line of it, stop it; and the example shop with its customers."""
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

# Of fifty requests; nearly all CPU time is in /report, whose month decides how long it takes.
PAGES = {("/product?id={}", 4000): 24, ("/cart?user={}", 500): 12, ("/checkout?user={}", 500): 8, ("/report?month={}", 12): 6}
CUSTOMERS = 4


def kept_port():
    """A socket with a port that a server may listen on (both say SO_REUSEADDR, and this one does not listen), and that nobody else gets
    while the socket is open."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    return one


class Program:
    """A child process with its output, both streams, in a file. `with` ends it in any case."""

    def __init__(self, command, log, environment=None):
        self.log = pathlib.Path(log)
        self.name = pathlib.Path(command[0]).name
        # What the caller's shell has set for its own programs must not decide what is tested here.
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
        """The match of PATTERN in the output, as soon as it is there."""
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
        """Ask it to end. Its exit code has to be 0."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(STOP_SECONDS)
        assert code == 0, f"{self.name} ended with {code}:\n{self.text()}"


class Shop(Program):
    def __init__(self, program, log, environment):
        super().__init__([program, "--port", "0"], log, environment)
        self.port = int(self.wait_for(r"^shop: listening on http://127\.0\.0\.1:(\d+)$")[1])

    def visit(self, requests):
        """Several customers at a time ask for REQUESTS pages, the same in every run."""
        dice = random.Random(1)
        fifty = [page for page, count in PAGES.items() for _ in range(count)]
        paths = [path.format(dice.randint(1, limit)) for path, limit in itertools.islice(itertools.cycle(fifty), requests)]
        dice.shuffle(paths)
        with concurrent.futures.ThreadPoolExecutor(CUSTOMERS) as customers:
            statuses = set().union(*customers.map(self.customer, [paths[i::CUSTOMERS] for i in range(CUSTOMERS)]))
        assert statuses == {200}, f"the shop answered {sorted(statuses)}"

    def customer(self, paths):
        """Ask for PATHS, one after the other; the set of all statuses."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)) as connection:
            statuses = set()
            for path in paths:
                connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
                answer = connection.getresponse()
                answer.read()
                statuses.add(answer.status)
            return statuses

    def complaints(self):
        """What it said beside its two lines; warnings of the SDK are among that."""
        return [line for line in self.text().splitlines() if not line.startswith("shop: ")]
