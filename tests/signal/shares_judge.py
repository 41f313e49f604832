#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs shares_workload and holds the shares of five functions by ticks against those that the program measured itself.

  shares_judge.py WORKLOAD [--engine timer|perf] [--ticks N] [--threads N] [--hz HZ]

Of N ticks each falls into a function with its share P, so the share by ticks has a standard deviation of sqrt(P (1 - P) / N): with
P = 0.4 that is 0.49 points for 10,000 ticks, 0.15 for 100,000. It is less in truth, for ticks come at equal distances of CPU time. N is
the number of ticks, not of the periods that they stand for: these share one stack. Three deviations of the largest share (five tests:
a right sampler fails one run in 150) and 0.05 points for what a gap hides from the counter are demanded: 1.52 and 0.51 points."""
import argparse, collections, json, math, os, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truth_judge import truth

UNSEEN_POINTS = 0.05


def run(arguments):
    """The workload's JSON line, and the periods by function."""
    with tempfile.TemporaryDirectory() as directory:
        environment = dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=directory + "/shares",
                           SPANPROF_CPU_HZ=str(arguments.hz), SPANPROF_ENGINE=arguments.engine,
                           SPANPROF_MAX_SAMPLES="1000000", OTEL_TRACES_EXPORTER="none")
        done = subprocess.run([arguments.workload, str(arguments.ticks), str(arguments.threads)], env=environment,
                              stdout=subprocess.PIPE, text=True, timeout=700)
        if done.returncode != 0:
            sys.exit(f"the workload exited with {done.returncode}")
        result = json.loads(done.stdout.splitlines()[-1])
        if result["engine"] != arguments.engine:
            print(f"SKIPPED: the engine {arguments.engine} is not to be had here: {result['engine']} was taken")
            sys.exit(77)
        periods = collections.Counter()
        for sample in truth.samples(directory + "/shares.profiles.jsonl"):
            periods[next((name for name in sample.names if name.startswith("share_work_")), "other")] += sample.count
    return result, periods


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("--engine", default="timer")
    parser.add_argument("--ticks", type=int, default=10000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--hz", type=int, default=1000)
    arguments = parser.parse_args()
    result, periods = run(arguments)
    named = sum(count for name, count in periods.items() if name != "other")
    bound = UNSEEN_POINTS + 300 * math.sqrt(0.4 * 0.6 / result["ticks"])
    print(f"{result['engine']} {result['cpu_hz']} Hz: {result['ticks']} ticks, {result['weights']} periods, {periods['other']} of them "
          f"on other stacks; at most {bound:.2f} points off is right")
    failures, worst = [], 0
    for number, units in enumerate(result["used"]):
        measured = 100 * units / sum(result["used"])
        seen = 100 * periods[f"share_work_{number}"] / max(named, 1)
        worst = max(worst, abs(seen - measured))
        print(f"  share_work_{number}: {seen:6.3f} % by ticks, {measured:6.3f} % by the counter, {seen - measured:+.3f} points")
    print(f"  worst: {worst:.3f} points")
    if worst > bound:
        failures.append(f"a share is {worst:.3f} points off")
    if result["dropped"]:
        failures.append(f"{result['dropped']} ticks were dropped")
    if periods["other"] > 0.02 * (named + periods["other"]):
        failures.append("more than 2 % of the periods are on stacks without one of the five functions")
    for failure in failures:
        print("FAILED:", failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
