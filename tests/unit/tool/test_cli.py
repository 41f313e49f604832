#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls: help, version, and what is wrong with a call. The program answers like the process that runs the command for all these tests."""
import signal

from otlp import *


class Calls(ToolTest):
    def test_help_lists_all_commands(self):
        text = self.answer("help")
        self.assertEqual(self.answer("--help"), text)
        for command in ("spans", "flame", "stats", "convert", "check"):
            self.assertIn(f"\n  {command} ", text)

    def test_help_of_each_command_lists_its_options(self):
        for command, option in (("spans", "--sort"), ("flame", "--span"), ("stats", "--json"), ("convert", "--to"),
                                ("check", "--backend")):
            text = self.answer("help", command)
            self.assertEqual(self.answer(command, "--help"), text)
            self.assertIn(option, text)

    def test_version(self):
        self.assertRegex(self.answer("--version"), r"\Aspanprof \d+\.\d+\.\d+\n\Z")

    def test_no_command(self):
        self.refuse(2, says="spanprof help")

    def test_unknown_command(self):
        self.refuse(2, "flme", says=("flme", "spanprof help"))
        self.refuse(2, "help", "flme", says="flme")

    def test_commands_to_come_say_so(self):
        for command in ("join", "view"):
            self.refuse(2, command, "x", says=(command, "not built yet"))
            self.refuse(2, "help", command, says="not built yet")

    def test_options_to_come_say_so(self):
        self.write_shop()
        for command, option in (("flame", "--tempo"), ("check", "--span")):
            self.refuse(2, command, "shop", option, "x", says=(option, "not built yet"))

    def test_options_that_are_wrong(self):
        self.refuse(2, "flame", "--what", "x", says=("--what", "spanprof help flame"))
        self.refuse(2, "flame", "x", "--span", says=("--span", "argument"))
        self.refuse(2, "flame", "x", "--self=1", says="no argument")
        self.refuse(2, "spans", "x", "--limit", "many", says=("many", "whole number"))
        for bad in ("-1", "101", "abc", "", "nan", "0x10", "1e1"):
            self.refuse(2, "flame", "x", "--min-percent=" + bad, says="0 to 100")

    def test_an_option_with_fixed_values_lists_them(self):
        self.write_shop()
        formats = "text, folded, svg, html, json, table, pprof, perfetto"
        for call, option, values in ((["spans", "shop"], "--sort", "duration, start, cpu, wall, queue, alloc, samples"), (["spans", "shop"], "--group-by", "name"),
                                     (["spans", "shop", "--by-name"], "--sort", "duration, cpu, alloc, wall, queue"), (["flame", "shop"], "--format", formats),
                                     (["flame", "shop"], "--names", "short, folded, full"), (["flame", "shop"], "--group-by", "span"),
                                     (["flame", "shop"], "--type", "cpu, wall, offcpu, alloc, inuse, lock, condition, semaphore"),
                                     (["flame", "shop"], "--since", "30s, 5m, 2h"), (["diff", "shop", "shop"], "--by", "samples, spans, time"),
                                     (["diff", "shop", "shop"], "--format", "text, json, svg, html"), (["convert", "shop", "-o", "x"], "--to", "otlp, otlp-json, pprof, folded"),
                                     (["check", "shop"], "--backend", "pyroscope, collector"), (["send", "shop"], "--link-scope", "root, innermost"),
                                     (["send", "shop", "--to", "http://127.0.0.1:1"], "--protocol", "http/protobuf, grpc, http/json")):
            with self.subTest(call=call, option=option):
                self.refuse(2, *call, option, "request", says=(f"{option} request", values))
        for word in ("bad", "cpu,bad", "cpu, bad"):
            self.refuse(2, "run", "--profiles", word, "-o", "x", "--", "true", says="run: --profiles bad is unknown; there are cpu, wall, alloc, heap, lock")
        self.refuse(2, "completion", "request", says="bash, zsh, fish")

    def test_a_wrong_word_is_told_before_files_are_read(self):
        for call in (["diff", "absent", "absent", "--by"], ["send", "absent", "--protocol"], ["send", "absent", "--link-scope"]):
            self.refuse(2, *call, "request", says="request is unknown")

    def test_a_misspelled_word_is_told_what_was_meant(self):
        self.refuse(2, "spans", "x", "--tarce", "12", says="unknown option --tarce, was it --trace; ")
        self.refuse(2, "flame", "x", "--nmae=y", says=", was it --name; ")
        self.refuse(2, "flam", "x", says="unknown command flam, was it flame; ")
        for nothing in (["spans", "x", "--unlike-any"], ["juggle", "x"]):
            self.assertNotIn("was it", self.refuse(2, *nothing, says="unknown"))

    def test_no_file(self):
        for command in ("spans", "flame", "stats", "check"):
            self.refuse(2, command, says="no file")

    def test_files_may_begin_with_a_dash_behind_two(self):
        self.write("-odd.jsonl", json_lines(profiles()))
        self.assertIn("main", self.answer("flame", "--format", "folded", "--", "-odd.jsonl"))


class Starts(ToolTest):
    """The program itself, started for each call, and the same calls of the process that runs the command in the other tests."""

    CALLS = ([], ["help"], ["--version"], ["flme"], ["help", "flame"], ["spans", "shop"], ["spans", "/proc/self/fd/3"], ["flame", "shop", "--format", "json"],
             ["diff", "shop", "shop"], ["stats", "shop", "--json"], ["convert", "shop", "-o", "made", "--to", "otlp"], ["check", "shop"], ["check", "broken"],
             ["send", "shop", "--to", "ftp://host"], ["run", "--profiles", "bad"], ["completion", "bash"], ["manual", "flame"])

    def start(self, *arguments, **more):
        return subprocess.run([TOOL, *arguments], cwd=self.folder, env={**os.environ, "LC_ALL": "C.UTF-8"}, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=300, check=False, **more)

    def test_the_program_answers_like_the_server(self):
        self.write_shop()
        self.write("broken", b"{")
        for call in self.CALLS:
            with self.subTest(call=call):
                started, served = self.start(*call, stdout=subprocess.PIPE), self.run_tool(*call)
                self.assertEqual((served.returncode, served.stdout, served.stderr), (started.returncode, started.stdout, started.stderr))
                self.assertIn(served.returncode, (0, 1, 2))
        listed = re.findall(r"^  ([a-z]+) ", self.answer("help"), re.M)
        self.assertLessEqual(set(listed), {call[0] for call in self.CALLS if call})

    def test_a_signal_is_a_negative_code(self):
        ours, theirs = os.pipe()
        os.close(ours)
        with open(theirs, "wb") as nobody_reads, open(os.devnull, "r+b") as null:
            code, timed_out = ToolServer.get().call([TOOL, "help"], self.folder, os.environ, [null.fileno(), theirs, null.fileno()], 300)
            self.assertEqual((code, timed_out), (-signal.SIGPIPE, False))
            self.assertEqual(self.start("help", stdout=nobody_reads).returncode, code)

    def test_a_call_that_hangs_is_killed_and_named(self):
        os.mkfifo(self.folder / "never_written")
        with self.assertRaisesRegex(subprocess.TimeoutExpired, "never_written"):
            self.run_tool("spans", "never_written", timeout=0.1)
        self.assertIn("usage", self.answer("help"))

    def test_an_environment_may_be_empty(self):
        self.assertIn("usage", call_tool("help", cwd=self.folder, env={}).stdout.decode())


if __name__ == "__main__":
    unittest.main()
