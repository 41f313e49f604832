#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""inferno draws what `spanprof flame --format folded` and `spanprof convert --to folded` write, and its picture has every function with its value.

usage: inferno_test.py SPANPROF
"""
import collections
import fcntl
import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

os.environ["SPANPROF_TEST_TOOL"] = os.path.abspath(sys.argv.pop(1))
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "unit" / "tool"))
from otlp import *


def build():
    """Once, kept in SPANPROF_TEST_CACHE."""
    if not shutil.which("cargo"):
        print("SKIPPED: there is no cargo in the PATH")
        sys.exit(77)
    cache = pathlib.Path(os.environ.get("SPANPROF_TEST_CACHE") or pathlib.Path.home() / ".cache" / "spanprof-test") / "inferno-0.12.8"
    cache.mkdir(parents=True, exist_ok=True)
    program = cache / "release" / "peer-inferno"
    with open(cache / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            done = subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=HERE / "inferno", stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env=dict(os.environ, CARGO_TARGET_DIR=str(cache)), text=True, check=False)
            if done.returncode:
                print(done.stdout)
                unreachable = re.search(r"failed to download|Could not (resolve|connect)|network|timed out", done.stdout)
                print("SKIPPED: the registry of crates does not answer" if unreachable else "cargo build failed")
                sys.exit(77 if unreachable else 1)
    return program


class Inferno(ToolTest):
    def drawn(self, folded):
        """{function: units}, summed over its frames."""
        svg = subprocess.run([PROGRAM], input=folded, capture_output=True, check=True, timeout=300).stdout.decode()
        found = collections.Counter()
        for name, value in re.findall(r"<title>([^<]*) \(([\d,]+) units, [\d.]+%\)</title>", svg):
            found[html.unescape(name)] += int(value.replace(",", ""))
        return found

    def expected(self, *arguments):
        """The same of the command's own answer; the root of the picture is called all."""
        found = collections.Counter()
        for stack in self.answer_json("flame", *arguments, "--format", "json")["stacks"]:
            found["all"] += stack["value"]
            for name in stack["frames"]:
                found[name] += stack["value"]
        return found

    def test_functions_have_their_values(self):
        self.write_shop()
        for arguments in (["shop"], ["shop", "--span", REPORT]):
            self.answer("flame", *arguments, "--format", "folded", "-o", "out.folded")
            self.assertEqual(self.drawn((self.folder / "out.folded").read_bytes()), self.expected(*arguments))
        subprocess.run([TOOL, "convert", "shop", "--to", "folded", "-o", "converted.folded"], cwd=self.folder, stderr=subprocess.DEVNULL, check=True)
        self.assertEqual(self.drawn((self.folder / "converted.folded").read_bytes()), self.expected("shop"))

    def test_names_stay_whole(self):
        names = ("main", "std::map<int, a<b> >::find(int const&) const", "two  blanks", "semi;colon", "<&\">'")
        self.write("n.jsonl", json_lines(profiles([(names, "", "", 3)], period=1000)))
        self.answer("flame", "n.jsonl", "--names", "full", "--format", "folded", "-o", "out.folded")
        wanted = {name.replace(";", ":"): 3000 for name in names}
        self.assertEqual(self.drawn((self.folder / "out.folded").read_bytes()), {**wanted, "all": 3000})


PROGRAM = build()
if __name__ == "__main__":
    unittest.main()
