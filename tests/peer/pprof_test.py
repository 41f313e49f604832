#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Go's pprof reads what `spanprof convert --to pprof` and `spanprof flame --format pprof` write, and shows the same totals; and what
it writes itself is read by the command as it was.

usage: pprof_test.py SPANPROF
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

os.environ["SPANPROF_TEST_TOOL"] = os.path.abspath(sys.argv.pop(1))
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "unit" / "tool"))
from otlp import *


def build():
    built = subprocess.run([HERE / "pprof" / "build.sh"], stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode:
        sys.exit(built.returncode)
    return built.stdout.strip()


PPROF = build()


class GoPprof(ToolTest):
    def pprof(self, *arguments):
        environment = {**os.environ, "HOME": str(self.folder), "PPROF_TMPDIR": str(self.folder)}
        done = subprocess.run([PPROF, *map(str, arguments)], cwd=self.folder, env=environment, capture_output=True, text=True,
                              timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def top(self, *arguments):
        """{function: (flat, cumulative)} in the unit's own numbers."""
        text = self.pprof("-top", "-nodecount=1000", "-nodefraction=0", *arguments)
        rows = re.findall(r"^ *(\d+)\w* +\S+ +\S+ +(\d+)\w* +\S+ +(\S.*)$", text, re.MULTILINE)
        return {name.strip(): (int(flat), int(total)) for flat, total, name in rows}

    def expected(self, *arguments, kind):
        """The same of the command's own answer."""
        answer = self.answer_json("flame", *arguments, "--type", kind, "--format", "json")
        found = {}
        for stack in answer["stacks"]:
            for i, name in enumerate(stack["frames"]):
                flat, total = found.get(name, (0, 0))
                first = name not in stack["frames"][:i]
                found[name] = (flat + (stack["value"] if i == 0 else 0), total + (stack["value"] if first else 0))
        return found

    def test_functions_have_the_same_totals(self):
        self.write_shop()
        self.answer("convert", "shop", "--to", "pprof", "-o", "cpu.pb.gz")
        self.assertEqual(self.top("-unit=ns", "cpu.pb.gz"), self.expected("shop", kind="cpu"))
        self.answer("flame", "shop", "--span", REPORT, "--format", "pprof", "-o", "span.pb.gz")
        self.assertEqual(self.top("-unit=ns", "span.pb.gz"), self.expected("shop", "--span", REPORT, kind="cpu"))

    def test_labels_select(self):
        self.write_shop()
        self.answer("convert", "shop", "--to", "pprof", "-o", "cpu.pb.gz")
        wanted = self.expected("shop", "--trace", CART_TRACE, kind="cpu")
        for focus in (f"trace_id={CART_TRACE}", f"span_id={CART}", f"local root span id=0x{CART}"):
            self.assertEqual(self.top("-unit=ns", f"-tagfocus={focus}", "cpu.pb.gz"), wanted)

    def test_waits_are_labels(self):
        self.write("w.jsonl", json_lines(wall_profiles()))
        self.answer("convert", "w.jsonl", "--to", "pprof", "-o", "wall.pb.gz")
        tags = self.pprof("-tags", "-unit=ns", "wall.pb.gz")
        self.assertRegex(tags, r"spanprof\.wait: Total 1120000000ns of 1380000000ns")
        self.assertEqual(self.top("-unit=ns", "-tagfocus=spanprof.wait=disk", "wall.pb.gz")["pread64"], (20 * MS, 20 * MS))

    def test_types_of_one_file(self):
        d = Dictionary()
        kinds = {"alloc_space": "bytes", "alloc_objects": "count", "inuse_space": "bytes", "inuse_objects": "count"}
        made = [profile(d, [(("main", "make"), CART_TRACE, CART, 100 + i), (("main", "keep"), "", "", 7)], 512,
                        (kind, unit, "space", "bytes"), {}) for i, (kind, unit) in enumerate(kinds.items())]
        self.write("p.jsonl", json_lines(request(d, *made)))
        self.answer("convert", "p.jsonl", "--to", "pprof", "-o", "heap.pb.gz")
        for i, (kind, unit) in enumerate(kinds.items()):
            more = ("-unit=B",) if unit == "bytes" else ()
            self.assertEqual(self.top(f"-sample_index={kind}", *more, "heap.pb.gz"),
                             {"make": (100 + i, 100 + i), "keep": (7, 7), "main": (0, 107 + i)}, kind)
        self.assertIn("inuse_space/bytes[dflt]", self.pprof("-raw", "heap.pb.gz"))

    def test_mappings_lines_and_build_ids(self):
        self.write_shop()
        self.answer("convert", "shop", "--to", "pprof", "-o", "cpu.pb.gz")
        raw = self.pprof("-raw", "cpu.pb.gz")
        self.assertRegex(raw, r"(?m)^1: 0x1000/0x2000/0x0 /bin/shop c0ffee \[FN\]\[FL\]\[LN\]$")
        self.assertRegex(raw, r"(?m)^ +\d+: 0x\w+ M=1 append_row shop\.c:7:0 ")
        self.assertIn("Period: 10000000\n", raw)

    def test_what_go_writes_is_read_as_it_was(self):
        self.write_shop()
        self.answer("convert", "shop", "--to", "pprof", "-o", "cpu.pb.gz")
        self.pprof("-proto", "-output=go.pb.gz", "cpu.pb.gz")
        stacks = [sorted((s["frames"], s["value"], s["trace_id"], s["span_id"]) for s in self.answer_json("flame", file, "--format", "json")["stacks"])
                  for file in ("go.pb.gz", "shop.profiles.jsonl")]
        self.assertEqual(*stacks)


if __name__ == "__main__":
    unittest.main()
