#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Go's pprof pulls profiles from a running shop: every kind arrives, CPU time with the spans of its requests.

usage: pull_test.py SHOP PRELOAD
"""
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

from shop import Shop, kept_port

SHOP, PRELOAD = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
HERE = pathlib.Path(__file__).resolve().parent
built = subprocess.run([HERE / "pprof" / "build.sh"], stdout=subprocess.PIPE, text=True, check=False)
if built.returncode:
    sys.exit(built.returncode)
PPROF = built.stdout.strip()


class Pull(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.port = stack.enter_context(kept_port()).getsockname()[1]
        self.shop = stack.enter_context(Shop(SHOP, self.folder / "log", {
            "LD_PRELOAD": PRELOAD, "SPANPROF_EXPORTER": "none", "SPANPROF_PULL": f"127.0.0.1:{self.port}",
            "SPANPROF_PROFILES": "cpu,alloc,heap,lock", "SPANPROF_ALLOC_BYTES": "1024", "SPANPROF_CPU_HZ": "1000"}))
        self.is_open = True
        self.customers = threading.Thread(target=self.visit)
        self.customers.start()
        self.addCleanup(self.close_shop)

    def visit(self):
        while self.is_open:
            self.shop.visit(50)

    def close_shop(self):
        self.is_open = False
        self.customers.join()

    def pprof(self, path, *options):
        environment = {**os.environ, "HOME": str(self.folder), "PPROF_TMPDIR": str(self.folder)}
        done = subprocess.run([PPROF, "-raw", *options, f"http://127.0.0.1:{self.port}/debug/pprof/{path}"], env=environment,
                              capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_go_pulls_every_kind(self):
        kinds = {"profile?seconds=1": "samples/count cpu/nanoseconds[dflt]", "heap": "inuse_objects/count inuse_space/bytes[dflt]",
                 "allocs?seconds=1": "alloc_objects/count alloc_space/bytes[dflt]",
                 "mutex?seconds=1": "contentions/count delay/nanoseconds[dflt]",
                 "block?seconds=1": "condition_waits/count semaphore_waits/count semaphore_delay/nanoseconds condition_delay/nanoseconds[dflt]"}
        for path, types in kinds.items():
            raw = self.pprof(path)
            self.assertIn(f"\n{types}\n", raw, path)
            if path.startswith(("profile", "heap", "allocs")):
                self.assertRegex(raw, r"Mappings\n\d+: 0x\w+/0x\w+/0x\w+ \S*/shop [0-9a-f]+ \[FN\]", path)
                self.assertRegex(raw, r"(?m)^ +\d+ +\d+: \d", path)
        self.close_shop()
        self.shop.stop()
        self.assertEqual(self.shop.complaints(), [])

    def test_cpu_time_has_its_spans(self):
        raw = self.pprof("profile?seconds=2")
        self.assertRegex(raw, r"trace_id:\[[0-9a-f]{32}\]")
        self.assertRegex(raw, r"span_id:\[[0-9a-f]{16}\]")
        self.assertRegex(raw, r"thread\.name:\[")
        # Two seconds of the monotonic clock; the window has times of the other one, and Go cuts the digits off.
        self.assertRegex(raw, r"(?m)^Duration: (1\.9|[2-9]|\d\d)")
        samples = [int(count) for count in re.findall(r"(?m)^ +(\d+) +\d+: ", raw)]
        self.assertGreater(sum(samples), 0)


if __name__ == "__main__":
    unittest.main()
