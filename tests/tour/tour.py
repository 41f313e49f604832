#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tour.py PAGE --path FOLDER… [--write] [--long]: run the commands of docs/tour.md and compare what they say with the page.

The page has commands in blocks of sh, each followed by a block of text, their output. Comments say what is not shown:

  <!-- run … -->                commands that are run and not shown: a recording, a file to work on
  <!-- long -->                 the next commands need a program that only the full form has; the short one skips them
  <!-- says: A | B -->          the output has A and B, whatever the machine; the rest of it are figures
  <!-- says somewhere: A -->    the same, and its first line depends on the machine, too

All commands run in one folder that is empty at first, with the FOLDERs in front of PATH. A command that fails ends the tour. --write puts
what the commands say now into the page; without it the page has to have for each command an output, whose first line, figures apart, is that
of now, and both have to have what `says` demands."""
import argparse
import os
import re
import subprocess
import sys
import tempfile

PART = re.compile(r"<!-- run\n(?P<hidden>.*?)-->|(?P<long><!-- long -->)|<!-- says(?P<loose> somewhere)?: (?P<says>.*?) -->"
                  r"|```sh\n(?P<shown>.*?)```|```text\n(?P<output>.*?)```", re.S)
# What differs from run to run: numbers with their units, ids, and how wide a column is.
FIGURE = re.compile(r"\b[0-9a-f]{16,32}\b|\d[\d.,]*( ?(ns|us|ms|s|%))?|[█▏▎▍▌▋▊▉]+| +")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Tour:
    """The page while its commands run."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.environment = dict(os.environ, PATH=":".join([*arguments.path, os.environ["PATH"]]), LC_ALL="C.UTF-8")
        for name in [name for name in self.environment if name.startswith(("SPANPROF_", "OTEL_", "TRACEPARENT"))]:
            del self.environment[name]
        self.faults, self.count = [], 0
        self.says, self.is_loose, self.is_skipped, self.fresh = [], False, False, None

    def run(self, commands):
        """What they say, on both streams."""
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False, timeout=600)
        if done.returncode:
            sys.exit(f"BROKEN: exit code {done.returncode} of\n{commands}\n{done.stdout}")
        return ESCAPE.sub("", done.stdout)

    def compare(self, then):
        """The output on the page, and that of now."""
        now = self.fresh
        first = [FIGURE.sub(" ", (text.splitlines() or [""])[0]).split() for text in (then, now)]
        if first[0] != first[1] and not self.is_loose:
            self.faults.append(f"the page begins with {first[0]}, now it is {first[1]}")
        for word in self.says:
            self.faults += [f"{where}: there is no {word!r} in\n{text}" for where, text in (("page", then), ("now", now)) if word not in text]

    def part(self, match):
        """The same part of the page as it is to be."""
        if match["long"]:
            self.is_skipped = not self.arguments.long
        elif match["hidden"] and not self.is_skipped:
            self.run(match["hidden"])
        elif match["says"]:
            self.says, self.is_loose = match["says"].split(" | "), bool(match["loose"])
        elif match["shown"]:
            self.fresh = None if self.is_skipped else self.run(match["shown"])
            self.count += self.fresh is not None
            self.is_skipped = False
        elif match["output"] is not None:
            return self.output(match)
        return match[0]

    def output(self, match):
        """A block of output: compared, or written anew."""
        if self.fresh is not None:
            self.compare(self.fresh if self.arguments.write else match["output"])
        text = match[0] if self.fresh is None or not self.arguments.write else f"```text\n{self.fresh.rstrip()}\n```"
        self.says, self.is_loose, self.fresh = [], False, None
        return text


def main():
    """Go through the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("--path", nargs="+", default=[])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--long", action="store_true")
    arguments = parser.parse_args()
    with open(arguments.page, encoding="utf-8") as file:
        text = file.read()
    with tempfile.TemporaryDirectory(prefix="spanprof-tour-") as folder:
        tour = Tour(arguments, folder)
        fresh = PART.sub(tour.part, text)
    if arguments.write:
        with open(arguments.page, "w", encoding="utf-8") as file:
            file.write(fresh)
    print(f"{tour.count} commands")
    for fault in tour.faults:
        print("BROKEN:", fault)
    sys.exit(1 if tour.faults or not tour.count else 0)


if __name__ == "__main__":
    main()
