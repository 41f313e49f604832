# SPDX-License-Identifier: Apache-2.0
"""The table of docs/truth.md: runs the tests of samples' truth in a build, and writes what they found as one table, spanprof beside the label scheme.

    python3 tests/truth/table.py build/release [--long]

A test takes part when it is called truth/…_perf (with --long: truth/…_perf_long), or truth/…_labels, and prints its row by truth.finish, under one
name with and without --labels."""
import argparse, re, subprocess, sys

import truth


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    tests = rf"^truth/.*_(perf{'_long' if options.long else ''}|labels)$"
    done = subprocess.run(["ctest", "--test-dir", options.build, "-R", tests, "-V"], stdout=subprocess.PIPE, text=True)
    rows = dict(re.findall(r"^\d+: \| (.+?) (\|.*)", done.stdout, re.M))
    print("| | samples | right | none | unknown | wrong | labels: samples | right | none | unknown | wrong |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, row in rows.items():
        if not name.endswith(truth.LABELS):
            print(f"| {name} {row}{rows.get(name + truth.LABELS, '| | | | | |')[1:]}")
    if done.returncode != 0:
        sys.exit("not all tests passed:\n" + done.stdout[done.stdout.rfind("tests passed") - 20 :])


if __name__ == "__main__":
    main()
