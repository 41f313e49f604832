#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names for 5,000 addresses of a big program: our symbolizer beside addr2line, llvm-addr2line and llvm-symbolizer. Prints times, memory, and each
difference in a name, an inline chain, a file or a line, with what llvm-symbolizer says about it.
Usage: bench_symbols.py BUILD PROGRAM [--addresses 5000] [--differences 20]"""

import argparse
import collections
import functools
import os
import random
import re
import subprocess
import tempfile
import time


# binutils: where an inlined function without a linkage name begins where a symbol does, it gets the name of that symbol.
SYMBOL_INSTEAD = "name: the other one calls an inlined function by the symbol of the function around it"


def pick(program, count):
    """Addresses drawn from all bytes of all functions, the same on each run."""
    listed = subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True, check=True).stdout
    functions = sorted({(int(words[0], 16), int(words[1], 16)) for words in map(str.split, listed.splitlines())
                        if len(words) == 4 and words[2] in "tTwWi"})
    rng = random.Random(7)
    chosen = rng.choices(functions, weights=[size for _, size in functions], k=count)
    return [start + rng.randrange(size) for start, size in chosen]


def parse(text):
    """Address -> [(name, file, line)] from the form of `addr2line -afie`."""
    answers, frames, name = {}, None, None
    for line in text.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            frames = answers.setdefault(int(line, 16), [])
            frames.clear()
        elif line and frames is not None and name is None:
            name = line
        elif line:
            file, _, number = line.partition(" (discriminator")[0].rpartition(":")
            frames.append((plain(name), os.path.normpath(file), number.replace("?", "0")))
            name = None
    return answers


def plain(name):
    """Without the suffixes of copies that the compiler made: not all tools have them."""
    return re.sub(r"(\.(isra|part|constprop|cold|lto_priv)(\.\d+)?)+$", "", name)


def ask(command, addresses):
    """What COMMAND answers, its seconds, its peak of memory in KiB."""
    with tempfile.NamedTemporaryFile("w") as questions:
        questions.write("\n".join(map(hex, addresses)) + "\n")
        questions.flush()
        begin = time.monotonic()
        with open(questions.name, encoding="utf-8") as stdin:
            process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            text = process.stdout.read()
            _, _, used = os.wait4(process.pid, 0)
            process.returncode = 0
        return parse(text), time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss


def ask_ours(build, program, addresses):
    with tempfile.TemporaryDirectory() as folder:
        questions, answers = os.path.join(folder, "questions"), os.path.join(folder, "answers")
        with open(questions, "w", encoding="utf-8") as file:
            file.write("\n".join(map(hex, addresses)) + "\n")
        done = subprocess.run([os.path.join(build, "tests/bench/bench_symbols"), program, questions, answers], capture_output=True,
                              text=True, check=True)
        with open(answers, encoding="utf-8") as file:
            return parse(file.read()), dict(line.split() for line in done.stdout.splitlines())


def same_place(a, b):
    return a[1:] == b[1:] or (os.path.basename(a[1]), a[2]) == (os.path.basename(b[1]), b[2])


@functools.lru_cache(None)
def demangled(name):
    return subprocess.run(["c++filt", name], capture_output=True, text=True, check=True).stdout.strip()


def without_scopes(name):
    """The name after the last "::" that is not in brackets. Ours have the scopes of functions without a linkage name."""
    depth, begin = 0, 0
    for at, byte in enumerate(name):
        depth += (byte in "<({[") - (byte in ">)}]")
        if depth == 0 and name.startswith("::", at):
            begin = at + 2
    return name[begin:]


def same_name(a, b):
    """Equal, or one is the linkage name of a function that the other calls by its bare name: addr2line has no other one for a C++ function
    that no other file sees, unless the address is in no inlined function."""
    if not a.startswith("_Z"):
        a = without_scopes(a)
    if a == b or (a.startswith("_Z") and b.startswith("_Z") and demangled(a) == demangled(b)):  # D1 and D2 of one destructor
        return True
    linkage, bare = (a, b) if a.startswith("_Z") else (b, a)
    return linkage.startswith("_Z") and not bare.startswith("_Z") and \
        re.search(r"(^|[: ~])" + re.escape(bare.partition("<")[0]) + r"[<(\[]", demangled(linkage)) is not None


def same(ours, theirs):
    return len(ours) == len(theirs) and all(same_place(a, b) and same_name(a[0], b[0]) for a, b in zip(ours, theirs))


def kind_of(ours, theirs):
    if len(ours) != len(theirs):
        return "inline chain"
    if not all(same_place(a, b) for a, b in zip(ours, theirs)):
        return "file or line"
    if theirs[0][0] == ours[-1][0] and same(ours[1:], theirs[1:]):
        return SYMBOL_INSTEAD
    return "name"


def show(frames):
    return " <- ".join(f"{name} {os.path.basename(file)}:{line}" for name, file, line in frames)


def compare(ours, theirs, third, limit):
    judged = collections.Counter()
    for address in sorted(ours):
        mine, other, judge = ours[address], theirs.get(address, []), third.get(address, [])
        if same(mine, other):
            continue
        side = "ours" if same(mine, judge) else "the other's" if same(other, judge) else "neither"
        judged[kind_of(mine, other), side] += 1
        if judged.total() <= limit:
            print(f"{address:#x}\n    ours  {show(mine)}\n    other {show(other)}\n    third {show(judge)}")
    equal = len(ours) - judged.total()
    print(f"equal: {equal} of {len(ours)}, {100 * equal / len(ours):.2f} %")
    for (kind, side), count in sorted(judged.items()):
        print(f"    {count} differ in the {kind}; the third opinion is {side}")
    renamed = sum(count for (kind, _), count in judged.items() if kind == SYMBOL_INSTEAD)
    if renamed:
        print(f"    without those of inlined functions called by a symbol: {100 * equal / (len(ours) - renamed):.2f} %")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("program")
    parser.add_argument("--addresses", type=int, default=5000)
    parser.add_argument("--differences", type=int, default=20)
    arguments = parser.parse_args()
    sizes = subprocess.run(["size", "-A", "-d", arguments.program], capture_output=True, text=True, check=True).stdout
    debug = sum(int(line.split()[1]) for line in sizes.splitlines() if line.startswith(".debug"))
    addresses = pick(arguments.program, arguments.addresses)
    print(f"{debug / 1e6:.1f} MB of DWARF, {len(addresses)} addresses, load {os.getloadavg()[0]:.1f}")
    ours, figures = ask_ours(arguments.build, arguments.program, addresses)
    print(" ".join(f"{name}={value}" for name, value in figures.items()))
    answers = {}
    for name, command in {"addr2line": ["addr2line", "-afie"], "llvm-addr2line": ["llvm-addr2line-14", "-afie"],
                          "llvm-symbolizer": ["llvm-symbolizer-14", "--output-style=GNU", "-a", "--no-demangle", "-e"]}.items():
        answers[name], seconds, cpu, peak = ask([*command, arguments.program], addresses)
        print(f"{name}: {seconds:.2f} s, {cpu:.2f} s of CPU, at most {peak / 1024:.0f} MiB")
    print("-- ours and addr2line; third: llvm-symbolizer")
    compare(ours, answers["addr2line"], answers["llvm-symbolizer"], arguments.differences)
    print("-- ours and llvm-symbolizer; third: addr2line")
    compare(ours, answers["llvm-symbolizer"], answers["addr2line"], arguments.differences)


if __name__ == "__main__":
    main()
