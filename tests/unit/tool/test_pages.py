# SPDX-License-Identifier: Apache-2.0
"""What is made of the tables of options: help, manual pages, and completion by shells."""
import os
import re
import shlex
import shutil
import subprocess
import unittest

from otlp import ToolTest, call_tool


def listed_commands():
    text = call_tool("help", cwd=".", env=os.environ).stdout.decode()
    return re.findall(r"^  ([a-z]+) ", text, re.M)


class Help(ToolTest):
    def test_each_example_is_a_call_that_the_command_takes(self):
        for command in listed_commands():
            text = self.answer("help", command)
            examples = [line.strip() for line in text.split("examples:\n")[1].splitlines()]
            self.assertTrue(examples and len(examples) % 2 == 0, command)
            for remark, line in zip(examples[::2], examples[1::2]):
                self.assertRegex(remark, r"\A# \S", command)
                self.takes(command, line)

    def takes(self, command, line):
        words = shlex.split(re.search(r"spanprof ([^|)]*)", line)[1])
        self.assertEqual(words[0], command, line)
        end = words.index("--") if "--" in words else len(words)
        self.assertIn("usage:", self.answer(*words[:end], "--help"), line)


class Manual(ToolTest):
    @unittest.skipUnless(shutil.which("groff"), "groff is missing (Debian: groff-base)")
    def test_pages_are_right_roff_and_have_all_options(self):
        for command in [None, *listed_commands()]:
            page = self.answer("manual", *([command] if command else []))
            shown = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-Kutf8", "-P-cbou"], input=page, capture_output=True, text=True,
                                   check=True)
            self.assertEqual(shown.stderr, "", command)
            wanted = (re.findall(r"^  (-[a-z-]*)(?!.*not built yet)", self.answer("help", command), re.M) if command
                      else listed_commands())
            for word in wanted:
                self.assertIn(word, shown.stdout.replace("\N{HYPHEN}", "-").replace("\N{MINUS SIGN}", "-"))

    def test_what_is_no_command(self):
        self.refuse(2, "manual", "flames", says="flames is no command")
        self.refuse(2, "manual", "flame", "spans", says="at most one command")


class Completion(ToolTest):
    def bash(self, *words):
        """What bash completes the last of WORDS to."""
        script = self.answer("completion", "bash") + f"""
COMP_WORDS=({" ".join(map(shlex.quote, words))}) COMP_CWORD={len(words) - 1}
_spanprof
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        return subprocess.run(["bash", "--norc"], input=script, capture_output=True, text=True, check=True).stdout.split()

    def test_bash_completes_commands_and_options(self):
        self.assertEqual(self.bash("spanprof", "fl"), ["flame"])
        self.assertEqual(self.bash("spanprof", ""), [*listed_commands(), "help"])
        self.assertEqual(self.bash("spanprof", "help", "sp"), ["spans"])
        self.assertEqual(self.bash("spanprof", "flame", "--perc"), ["--percentile"])
        self.assertEqual(self.bash("spanprof", "flame", "sh"), [])  # files, by bash itself

    def check_syntax(self, shell, *options):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is missing (Debian: {shell})")
        subprocess.run([shell, *options, "/dev/stdin"], input=self.answer("completion", shell), text=True, check=True,
                       capture_output=True)

    def test_zsh_takes_its_script(self):
        self.check_syntax("zsh", "-n")

    def test_fish_completes_commands_and_options(self):
        if not shutil.which("fish"):
            self.skipTest("fish is missing (Debian: fish)")
        script = self.answer("completion", "fish") + """
complete -C 'spanprof fl'
complete -C 'spanprof flame --perc'
"""
        shown = subprocess.run(["fish", "--no-config"], input=script, capture_output=True, text=True, check=True)
        self.assertEqual((shown.stderr, [line.split("\t")[0] for line in shown.stdout.splitlines()]), ("", ["flame", "--percentile"]))

    def test_what_is_no_shell(self):
        self.refuse(2, "completion", "csh", says="bash, zsh, fish")
        self.refuse(2, "completion", says="one shell")


if __name__ == "__main__":
    unittest.main()
