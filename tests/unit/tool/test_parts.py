#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A window that goes to the network as several requests says the same to every reader as the same window in one request."""
from otlp import *

MADE_WINDOW = os.environ["SPANPROF_TEST_MADE_WINDOW"]
LINKS = 40


def made_span(number):
    """The span that link NUMBER of made_window leads to."""
    tail = number.to_bytes(4, "little")
    own = (b"span" + tail).hex()
    return span((b"trace".ljust(12, b"\0") + tail).hex(), own, f"span {number}", 0, 5000, attributes=[attribute("pyroscope.profile.id", own)])


class Parts(ToolTest):
    SHAPE = ()

    @classmethod
    def setUpClass(cls):
        """The files are the same for all tests, and large. No test changes them."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.made = pathlib.Path(folder.name)
        subprocess.run([MADE_WINDOW, cls.made, *cls.SHAPE], check=True)
        (cls.made / "traces.pb").write_bytes(protobuf(traces([made_span(number) for number in range(1, LINKS + 1)])))
        cls.parts = sorted(path.name for path in cls.made.glob("part.*.pb"))

    def setUp(self):
        self.folder = self.made

    def test_each_part_is_conformant_alone(self):
        self.assertGreaterEqual(len(self.parts), 2)
        for part in self.parts:
            self.assertLess((self.folder / part).stat().st_size, 2 << 20)
            self.answer("check", part, "traces.pb", "--backend", "pyroscope")

    def test_stats_says_the_same_totals(self):
        whole, parts = (self.answer_json("stats", name, "--json") for name in ("whole.binpb", "parts.binpb"))
        for answer in (whole, parts):
            self.assertGreaterEqual(answer.pop("profiles"), 2)
            answer.pop("producers")
            for kind in answer["types"]:
                kind.pop("profiles")
        self.assertEqual(parts, whole)
        cpu = next(kind for kind in whole["types"] if kind["type"] == "cpu")
        self.assertEqual(cpu["linked"] + cpu["none"], sum(1 + n % 7 for n in range(17000)))
        self.assertEqual(cpu["unattributed_ns"], 123456789)

    def test_flame_shows_the_same_stacks(self):
        for kind in ("wall", "cpu"):
            whole, parts = (sorted(self.answer("flame", name, "--type", kind, "--format", "folded").splitlines())
                            for name in ("whole.binpb", "parts.binpb"))
            self.assertEqual(parts, whole)
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in parts), sum(1 + n % 7 for n in range(17000)) * 10_000_000)

    def test_spans_have_the_same_time(self):
        whole, parts = (self.answer_json("spans", "traces.pb", name, "--json") for name in ("whole.binpb", "parts.binpb"))
        self.assertEqual(len(whole["spans"]), LINKS)
        self.assertEqual(parts, whole)

    def test_convert_merges_the_parts(self):
        self.answer("convert", "parts.binpb", "-o", "merged.pb", "--to", "otlp")
        whole, merged = (sorted(self.answer("flame", name, "--type", "cpu", "--format", "folded").splitlines())
                         for name in ("whole.binpb", "merged.pb"))
        self.assertEqual(merged, whole)


class PartsWithTimestamps(Parts):
    SHAPE = ("timestamps",)


if __name__ == "__main__":
    unittest.main()
