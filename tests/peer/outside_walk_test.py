#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stacks of blocked threads, walked from outside, against gdb's: outside_walk_test.py ARCHIVE… [--programs N] [--only CLASS,…]
[--markdown].

ARCHIVES are what way.c and the walk are in. Programs of functions with random shapes are generated and built with each set of options; each
has many threads, which block somewhere in them. Skipped, and said to be, without gdb or a class's compiler.

Judged, as plain counts of all stacks:
  wrong     none: no frame that gdb does not have, with or without a mark, and no stack called whole that is not
  complete  whole and equal to gdb's: at least 99 % in code without frame pointers, 97 % in code with them and without optimization"""
import argparse
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from kept import kept

HERE = pathlib.Path(__file__).resolve().parent / "outside_walk"
FUNCTIONS, PARTS, THREADS = 400, 3, 300
COMPLETE, NO_REGISTER = 0, 5

# Of the 29,712 functions of Debian 12's libc, libcrypto, libstdc++ and python3.11, 231 have a frame that counts from rbp (readelf
# --debug-dump=frames-interp): one in 129.
USUAL = 50  # one function in so many has a frame with a dynamic part

# Compiler and options, what share of the stacks has to be whole, and, where it is not the usual, one function in how many is dynamic.
CLASSES = {
    "gcc -O2": ("gcc -O2", 0.99),
    "gcc -O3 -mavx2": ("gcc -O3 -mavx2 -ftree-vectorize", 0.99),
    "gcc -Os": ("gcc -Os", 0.99),
    "clang -O2": ("clang-14 -O2", 0.99),
    "gcc -O2 fp": ("gcc -O2 -fno-omit-frame-pointer", 0.97),
    "gcc -O1 fp no-plt": ("gcc -O1 -fno-omit-frame-pointer -fno-plt", 0.97),
    "gcc -O2 fp clash": ("gcc -O2 -fno-omit-frame-pointer -fstack-clash-protection -fstack-protector-all -fcf-protection", 0.97),
    "gcc -Os fp": ("gcc -Os -fno-omit-frame-pointer", 0.97),
    "clang -O2 fp": ("clang-14 -O2 -fno-omit-frame-pointer", 0.97),
    "gcc -O0": ("gcc -O0", 0.97),
    "gcc -O0 clash": ("gcc -O0 -fstack-clash-protection -fcf-protection", 0.97),
    "clang -O0": ("clang-14 -O0", 0.97),
    # Here only the wrong ones are judged: what an indirect call leads to is not found, and is most of what is marked.
    "gcc -O2 dynamic": ("gcc -O2", 0.5, 2),
    "clang -O2 fp dynamic": ("clang-14 -O2 -fno-omit-frame-pointer", 0.5, 2),
}


def run(*command, **options):
    answer = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                            check=False, **options)
    return answer


def must_run(*command, **options):
    answer = run(*command, **options)
    if answer.returncode != 0:
        raise AssertionError(f"{command[0]} fails:\n{answer.stdout[-3000:]}")


def parts(words, seed, dynamic):
    """The folder with the compiled functions of a program; it is kept. What is linked with them changes with the walk, they do not."""
    compiler, *options = words.split()
    options += ["-w", "-D_GNU_SOURCE", "-I", HERE, "-I", "."]

    def make(folder):
        must_run(sys.executable, HERE / "generate.py", FUNCTIONS, seed, PARTS, dynamic, folder)
        for part in range(1, PARTS):
            must_run(compiler, *options, "-fPIC", "-shared", "-o", f"libpart_{part}.so", f"part_{part}.c", cwd=folder)
        must_run(compiler, *options, "-c", "part_0.c", "parts.c", cwd=folder)
    version = run(compiler, "--version").stdout
    return kept("outside-walk-" + words.replace(" ", ""), [HERE / "generate.py", HERE / "way.h"], make, version, words,
                *map(str, (FUNCTIONS, seed, PARTS, dynamic)))


def build(archives, words, seed, dynamic, folder):
    """A program whose first part is its own, the others are libraries."""
    compiled, program = parts(words, seed, dynamic), folder / "program"
    compiler, *options = words.split()
    must_run(compiler, *options, "-pthread", "-rdynamic", f"-Wl,-rpath,{compiled}", "-o", program, compiled / "part_0.o", compiled / "parts.o",
             *sorted(compiled.glob("libpart_*.so")), "-Wl,--start-group", "-Wl,--whole-archive", archives[0], "-Wl,--no-whole-archive",
             *archives[1:], "-Wl,--end-group", "-Wl,--allow-shlib-undefined", "-Wl,--unresolved-symbols=ignore-in-shared-libs")
    return program


def collect(program, seed, folder):
    """Our stacks and gdb's, by thread."""
    ours, theirs = folder / "ours", folder / "theirs"
    environment = {**os.environ, "OUTSIDE_WALK_OUT": str(ours), "OUTSIDE_WALK_GDB": str(theirs), "OUTSIDE_WALK_THREADS": str(THREADS),
                   "OUTSIDE_WALK_SEED": str(seed)}
    answer = run("gdb", "-nx", "-batch", "-ex", "set confirm off", "-ex", "set debuginfod enabled off", "-ex", "run", "-x",
                 HERE / "stacks_gdb.py", "-ex", "kill", program, env=environment)
    if not theirs.exists() or not theirs.stat().st_size:
        raise AssertionError(f"gdb: {answer.stdout[-3000:]}")
    known = {}
    for line in theirs.read_text().splitlines():
        thread, *pcs = line.split()
        known[int(thread)] = [int(pc, 16) for pc in pcs]
    for line in ours.read_text().splitlines():
        words = line.split()
        thread, end, *counts = map(int, words[:6])
        yield end, counts, [int(pc, 16) for pc in words[6:]], known[thread]


def verdict(end, ours, theirs):
    theirs = [theirs[0]] + [pc - 1 for pc in theirs[1:] if pc]
    if ours != theirs[:len(ours)]:
        return "wrong"
    if end == COMPLETE:
        return "complete" if len(ours) == len(theirs) else "wrong"
    return "marked"


class Score:
    def __init__(self):
        self.counts, self.ends, self.fp, self.ns, self.examples = collections.Counter(), collections.Counter(), [0, 0, 0], [], []

    def add(self, stack):
        end, counts, ours, theirs = stack
        kind = verdict(end, ours, theirs)
        self.counts[kind] += 1
        self.ends[end] += 1
        self.fp = [a + b for a, b in zip(self.fp, counts)]
        self.ns.append(counts[3])
        if kind != "complete":
            self.examples.append((kind, end, ours, theirs))


def judge_class(name, archives, programs, keep):
    words, share, dynamic = (*CLASSES[name], USUAL)[:3]
    score = Score()
    for seed in range(1, programs + 1):
        folder = pathlib.Path(keep or tempfile.mkdtemp(prefix="spanprof-outside-"))
        try:
            program = build(archives, words, seed, dynamic, folder)
            for stack in collect(program, seed, folder):
                score.add(stack)
        finally:
            if not keep:
                shutil.rmtree(folder)
    total = sum(score.counts.values())
    complaints = []
    if score.counts["wrong"]:
        complaints.append(f"{name}: {score.counts['wrong']} stacks have wrong frames")
    if score.counts["complete"] < share * total or total < THREADS * programs:
        complaints.append(f"{name}: only {score.counts['complete']} of {total} stacks are complete")
    return score, total, complaints


def show(name, score, total, markdown):
    by_call, by_return, not_found = score.fp
    median = sorted(score.ns)[len(score.ns) // 2]
    if markdown:
        print(f"| {name} | {total:,} | {score.counts['complete']:,} | {score.counts['marked']:,} | {score.counts['wrong']} | {by_call:,} "
              f"| {by_return:,} | {not_found:,} | {median / 1000:.1f} |", flush=True)
        return
    print(f"{name:20} stacks {total:<6} complete {score.counts['complete']:<6} marked {score.counts['marked']:<5} wrong "
          f"{score.counts['wrong']:<4} by call {by_call:<5} by return {by_return:<5} not found {not_found:<4} ns {median}", flush=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("archives", nargs="+")
    options.add_argument("--programs", type=int, default=1)
    options.add_argument("--only")
    options.add_argument("--keep")
    options.add_argument("--markdown", action="store_true")
    options = options.parse_args()
    if not shutil.which("gdb"):
        print("skipped: gdb is not there")
        return 77
    failed = []
    for name in options.only.split(",") if options.only else CLASSES:
        if not shutil.which(CLASSES[name][0].split()[0]):
            print(f"{name}: SKIPPED: its compiler is not there")
            continue
        score, total, complaints = judge_class(name, options.archives, options.programs, options.keep)
        show(name, score, total, options.markdown)
        for kind, end, ours, theirs in sorted(score.examples, key=lambda example: example[0] != "wrong")[:3 if complaints else 0]:
            print(f"  {kind}, end {end}: ours {' '.join(f'{pc:x}' for pc in ours[-3:])} ({len(ours)}), then gdb's "
                  f"{' '.join(f'{pc:x}' for pc in theirs[max(0, len(ours) - 3):len(ours) + 3])}")
        failed += complaints
    for line in failed:
        print("FAILED:", line)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
