#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What profilers of allocations cost a program: each one with it and without, in turns.

  alloc_peers.py [--rounds N] [--only WORK] [BUILD]

The work: python (the interpreter with each object from malloc, reading and writing JSON) and sqlite (the shell, 200,000 rows in memory).
Each way runs once a round, in random order. Shown are the median over rounds of its CPU time against that of the same allocator alone in the
same round, with quartiles, and the same for the time that passes. What takes more than ten times as long runs in two rounds only. CPU time has that of helper processes (heaptrack's). The start of the
program and the files at its end are part of both. What is not installed is left out, and said to be: Debian's heaptrack,
libgoogle-perftools4, libjemalloc2, sqlite3.
BUILD: build/release."""
import argparse, ctypes.util, os, random, resource, shutil, statistics, subprocess, sys, tempfile, time

from servers import SQL, preload

JSON = """
import json
rows = [{"id": i, "name": f"item {i % 1000}", "price": i % 97 / 7, "tags": ["a", "b", str(i)]} for i in range(20000)]
for _ in range(3):
    rows = json.loads(json.dumps(rows))
"""
WORK = {"python": ["/usr/bin/python3", "-c", JSON], "sqlite": ["/usr/bin/sqlite3", ":memory:", SQL]}
SAMPLE_BYTES = 512 << 10


def ways(build, folder):
    """Name to (the way that it is compared with, words before the command, environment)."""
    ours = {**preload(build), "SPANPROF_PROFILES": "alloc,heap", "SPANPROF_FILE": folder + "/own", "SPANPROF_LOG": "error"}
    found = {"glibc": (None, [], {}), "glibc, spanprof": ("glibc", [], ours)}
    if shutil.which("heaptrack"):
        found["glibc, heaptrack"] = "glibc", ["heaptrack", "-o", folder + "/heaptrack"], {}
    else:
        print("heaptrack is not installed")
    profilers = {"jemalloc": {"its prof": {"MALLOC_CONF": f"prof:true,prof_final:true,lg_prof_sample:{SAMPLE_BYTES.bit_length() - 1},"
                                                          f"prof_prefix:{folder}/jemalloc"}},
                 "tcmalloc": {"its samples": {"TCMALLOC_SAMPLE_PARAMETER": str(SAMPLE_BYTES)},
                              "its heap profiler": {"HEAPPROFILE": folder + "/tcmalloc"}}}
    for allocator, own in profilers.items():
        library = ctypes.util.find_library(allocator)
        if not library:
            print(f"{allocator} is not installed")
            continue
        found[allocator] = None, [], {"LD_PRELOAD": library}
        found[f"{allocator}, spanprof"] = allocator, [], {**ours, "LD_PRELOAD": f"{ours['LD_PRELOAD']}:{library}"}
        for name, environment in own.items():
            found[f"{allocator}, {name}"] = allocator, [], {"LD_PRELOAD": library, **environment}
    return found


def run(command, environment):
    """CPU seconds and seconds of one run."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, env={**os.environ, "PYTHONMALLOC": "malloc", **environment}, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, end - begin


def show(name, own, other):
    """OWN and OTHER: (CPU seconds, seconds) of each round."""
    columns = []
    for part in range(2):
        ratios = sorted(a[part] / b[part] for a, b in zip(own, other))
        low, middle, high = statistics.quantiles(ratios, n=4)
        columns.append(f"{100 * (middle - 1):+.1f} % ({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f})")
    print(f"| {name} | {' | '.join(columns)} |", flush=True)


def measure(work, rounds, build):
    with tempfile.TemporaryDirectory(prefix="spanprof-peers-") as folder:
        all_ways = ways(build, folder)
        took = {name: [] for name in all_ways}
        for number in range(rounds):
            for name in random.sample(list(all_ways), len(all_ways)):
                compared, before, environment = all_ways[name]
                if number < 2 or not compared or took[name][0][0] < 10 * took[compared][0][0]:
                    took[name].append(run(before + WORK[work], environment))
    print(f"\n{work}: {statistics.median(cpu for cpu, _ in took['glibc']):.2f} s of CPU time with glibc, {rounds} rounds\n")
    print("| | CPU time | time |\n|---|---|---|")
    for name, (compared, *_) in all_ways.items():
        if compared:
            show(name, took[name], took[compared])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=11)
    options.add_argument("--only", choices=WORK)
    options.add_argument("build", nargs="?", default="build/release")
    options = options.parse_args()
    for work, command in WORK.items():
        if options.only in (None, work) and shutil.which(command[0]):
            measure(work, options.rounds, options.build)


if __name__ == "__main__":
    sys.exit(main())
