#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples to bytes beside the peers of requests_peers/, on the same content and in turns: bench_requests, then pdata and google/pprof.

    requests_peers.py BENCH_REQUESTS [--turns N] [--rounds N]

Prints each figure's median over the turns, and how many times faster ours is in the same turn (median, lowest, highest)."""
import argparse, os, re, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LINE = re.compile(r"^([\w/]+(?: \w+)?) +([0-9.]+) M samples/s.* ([0-9.]+) after gzip 6")


def figures(command):
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "GOMAXPROCS": "1"})
    found = [LINE.match(line) for line in out.stdout.splitlines()]
    return {match[1]: (float(match[2]), float(match[3])) for match in found if match}


def one_turn(ours, peers, content, rounds):
    turn = {"spanprof " + name: value for name, value in figures([ours, "-c", content, rounds]).items()}
    turn.update(figures([peers, content, rounds]))
    return turn


def show_ratio(turns, ours, peer):
    ratios = [turn[ours][0] / turn[peer][0] for turn in turns]
    print(f"{ours} / {peer}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench_requests")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--rounds", default="30")
    options = parser.parse_args()
    built = subprocess.run([os.path.join(HERE, "requests_peers", "build.sh")], stdout=subprocess.PIPE, text=True)
    if built.returncode:
        sys.exit(built.returncode)
    with tempfile.TemporaryDirectory() as directory:
        content = os.path.join(directory, "content")
        turns = [one_turn(options.bench_requests, built.stdout.strip(), content, options.rounds)
                 for _ in range(options.turns)]
    for name in turns[0]:
        speed = statistics.median(turn[name][0] for turn in turns)
        print(f"{name:20} {speed:7.3f} M samples/s  {turns[0][name][1]:.2f} bytes a sample after gzip 6")
    show_ratio(turns, "spanprof values", "pdata values")
    show_ratio(turns, "spanprof timestamps", "pdata timestamps")
    show_ratio(turns, "spanprof values", "google/pprof")


if __name__ == "__main__":
    main()
