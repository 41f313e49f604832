#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that are cut or changed anywhere: an answer, a no, or a sentence, never a crash. A file that is cut in its last request is answered from the
others. SPANPROF_TEST_CUT_STEP=N looks at every Nth cut only."""
import gzip
import random

from otlp import *

STEP = int(os.environ.get("SPANPROF_TEST_CUT_STEP", "1"))


class EveryCut(ToolTest):
    """Each prefix of a small file: an answer, a no, or a sentence; one request is enough, so most are sentences."""

    REQUEST = profiles(SAMPLES[:2])

    def survive(self, command, name):
        """An exit code of ours, with what belongs to it: a sanitizer ends with 1 as well, but says more."""
        result = self.run_tool(command, name)
        quiet = result.returncode == 0 or (command == "check" and result.returncode == 1)
        self.assertIn(result.returncode, (0, 1, 2))
        self.assertRegex(result.stderr.decode(), r"\A\Z" if quiet else r"\Aspanprof: [^\n]+\n\Z")
        return result.returncode

    def cuts(self, data, lengths):
        """Cut the file "cut", which has DATA at first, to each of LENGTHS. The longest is first, so that the file is written only once."""
        self.write("cut", data)
        for length in reversed(lengths):
            os.truncate(self.folder / "cut", length)
            yield length

    def cut_everywhere(self, data, step=1):
        codes = {self.survive("check", "cut") for _ in self.cuts(data, range(1, len(data), step * STEP))}
        self.assertIn(2, codes)

    def cut_last(self, write, step):
        """Two requests, the second one cut everywhere: the first one is read, with one sentence and the exit code 2."""
        first, second = write(self.REQUEST), write(self.REQUEST).rstrip(b"\n")
        answer = self.answer("check", self.write("whole", first)).replace("whole", "cut")
        for length in self.cuts(first + second, range(len(first) + 1, len(first) + len(second), step * STEP)):
            result = self.run_tool("check", "cut")
            self.assertEqual((result.returncode, result.stdout.decode()), (2, answer), length)
            self.assertRegex(result.stderr.decode(), r"\Aspanprof: cut: (line|request) 2 is cut: [^\n]+\n\Z")

    def test_last_line_of_several(self):
        self.cut_last(json_lines, step=16)

    def test_last_message_of_several(self):
        self.cut_last(framed, step=4)

    def test_protobuf(self):
        self.cut_everywhere(framed(self.REQUEST))

    def test_json(self):
        self.cut_everywhere(json_lines(self.REQUEST), step=5)

    def test_gzip(self):
        self.cut_everywhere(gzip.compress(json_lines(self.REQUEST)))

    def test_flipped_bytes_of_protobuf(self):
        dice = random.Random(7)
        good = protobuf(self.REQUEST)
        for _ in range(400 // STEP):
            data = bytearray(good)
            for _ in range(dice.randrange(1, 4)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            self.write("flipped", bytes(data))
            for command in ("check", "flame"):
                self.survive(command, "flipped")


if __name__ == "__main__":
    unittest.main()
