#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The conformance checker of OpenTelemetry's profiling group finds nothing wrong with what the SDK wrote, nor with what
`spanprof convert` made of it.

usage: profcheck_test.py SHOP SPANPROF
SPANPROF_TEST_PROFCHECK names the checker's program; exits 77 without it.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from otlp_decode import split_delimited
from shop import Shop

SHOP, SPANPROF = sys.argv.pop(1), sys.argv.pop(1)
PROFCHECK = os.environ.get("SPANPROF_TEST_PROFCHECK")
REQUESTS = 200


class Profcheck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="spanprof-peer-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)

    def record(self, name, **settings):
        prefix = self.folder / name
        environment = {"SPANPROF_EXPORTER": "file", "SPANPROF_FILE": str(prefix), "SPANPROF_CPU_HZ": "1000",
                       "SPANPROF_WINDOW_MS": "500", **settings}
        with Shop(SHOP, prefix.with_suffix(".log"), environment) as shop:
            shop.visit(REQUESTS)
            shop.stop()
        return prefix

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def convert(self, *files):
        out = self.folder / "converted"
        subprocess.run([SPANPROF, "convert", *files, "-o", out, "--to", "otlp"], check=True, timeout=300)
        return out

    def check(self, path, what):
        answer = subprocess.run([PROFCHECK, "-check-dupes", "-check-orphans", path], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=300)
        self.assertEqual(answer.returncode, 0, f"{what}: {answer.stdout}")

    def test_messages_of_the_sdk(self):
        prefix = self.record("proto", SPANPROF_FILE_FORMAT="proto", SPANPROF_LINK_SCOPE="both")
        messages = list(split_delimited(pathlib.Path(f"{prefix}.profiles.binpb").read_bytes()))
        self.assertGreater(len(messages), 2)
        for number, message in enumerate(messages):
            self.check(self.write("message", message), f"message {number}")

    def test_converted_lines_and_all_of_them_merged(self):
        file = pathlib.Path(f"{self.record('jsonl')}.profiles.jsonl")
        lines = file.read_bytes().splitlines()
        self.assertGreater(len(lines), 2)
        for number, line in enumerate(lines):
            self.check(self.convert(self.write("line.json", line)), f"line {number}")
        self.check(self.convert(file), "merged")

    def test_the_checker_does_check(self):
        """A dictionary without its entries number 0, which every rule forbids."""
        answer = subprocess.run([PROFCHECK, self.write("wrong", b"\x12\x03\x32\x01x")], capture_output=True, timeout=300)
        self.assertNotEqual(answer.returncode, 0)


if __name__ == "__main__":
    if not PROFCHECK:
        print("skipped: SPANPROF_TEST_PROFCHECK does not name a profcheck program")
        sys.exit(77)
    unittest.main()
