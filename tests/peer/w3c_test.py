#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The W3C trace context harness (https://github.com/w3c/trace-context, folder test) against w3c/service.c.

usage: w3c_test.py SERVICE
SPANPROF_TEST_W3C_HARNESS names a checkout of the harness, or its test.py. Exits 77 without it: then the tables of
tests/unit/trace/ are all there is.
"""
import os
import pathlib
import re
import subprocess
import sys

from shop import kept_port

LEAST_TESTS = 41  # of the harness of June 2026, at strictness 2


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def harness():
    named = os.environ.get("SPANPROF_TEST_W3C_HARNESS")
    if not named:
        skip("SPANPROF_TEST_W3C_HARNESS names no checkout of https://github.com/w3c/trace-context")
    for path in (pathlib.Path(named), pathlib.Path(named) / "test.py", pathlib.Path(named) / "test" / "test.py"):
        if path.is_file():
            return path.resolve()
    sys.exit(f"SPANPROF_TEST_W3C_HARNESS={named}: there is no test.py")


def main():
    script = harness()
    # What the caller's shell has set for its own programs must not decide what is tested here.
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "SPANPROF_"))}
    with (subprocess.Popen([sys.argv[1]], env=clean, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as service,
          kept_port() as kept):
        port = int(service.stdout.readline())
        environment = {**clean, "STRICT_LEVEL": "2", "SPEC_LEVEL": "2", "HARNESS_PORT": str(kept.getsockname()[1])}
        run = subprocess.run([sys.executable, str(script), f"http://127.0.0.1:{port}/test"], cwd=script.parent, env=environment,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1000)
        service.stdin.close()
        code = service.wait(timeout=100)
    print(run.stdout)
    ran = re.search(r"^Ran (\d+) tests", run.stdout, re.MULTILINE)
    if run.returncode != 0 or code != 0 or not ran:
        sys.exit(f"the harness exited with {run.returncode}, the service with {code}")
    if int(ran[1]) < LEAST_TESTS or "skipped" in run.stdout:
        sys.exit(f"only {ran[1]} tests ran, or some were skipped")


main()
