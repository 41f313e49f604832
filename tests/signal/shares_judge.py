#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs shares_workload and holds the shares of five functions by ticks against those that the program measured itself.

  shares_judge.py WORKLOAD [--engine timer|perf] [--ticks N] [--threads N] [--hz HZ]

Of N ticks each falls into a function with its share P, so the share by ticks has a standard deviation of sqrt(P (1 - P) / N): with
P = 0.4 that is 0.49 points for 10,000 ticks, 0.15 for 100,000. It is less in truth, for ticks come at equal distances of CPU time. N is
the number of ticks, not of the periods that they stand for: these share one stack. Three deviations of the largest share (five tests:
a right engine fails one run in 150) and 0.05 points for what a gap hides from the counter are demanded: 1.52 and 0.51 points."""
import argparse, collections, json, math, os, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truth_judge import truth, verdict

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
            verdict.fail(f"the workload exited with {done.returncode}")
        result = json.loads(done.stdout.splitlines()[-1])
        if result["engine"] != arguments.engine:
            verdict.skip(f"the engine {arguments.engine} is not allowed here: {result['engine']} was taken")
        periods = collections.Counter()
        for sample in truth.samples(directory + "/shares.profiles.jsonl"):
            periods[next((name for name in sample.names if name.startswith("share_work_")), "other")] += sample.count
    return result, periods


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("--engine", default="timer")
    parser.add_argument("--ticks", type=verdict.count, default="10000")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--hz", type=int, default=1000)
    arguments = parser.parse_args()
    with verdict.Noise() as noise:
        result, periods = run(arguments)
    named = sum(count for name, count in periods.items() if name != "other")
    bound = UNSEEN_POINTS + 300 * math.sqrt(0.4 * 0.6 / result["ticks"])
    print(f"{result['engine']} {result['cpu_hz']} Hz: {result['ticks']} ticks, {result['weights']} periods, {periods['other']} of them "
          f"on other stacks; at most {bound:.2f} points off is right")
    found, worst = verdict.Verdict(), 0
    for number, units in enumerate(result["used"]):
        measured = 100 * units / sum(result["used"])
        seen = 100 * periods[f"share_work_{number}"] / max(named, 1)
        worst = max(worst, abs(seen - measured))
        print(f"  share_work_{number}: {seen:6.3f} % by ticks, {measured:6.3f} % by the counter, {seen - measured:+.3f} points")
    print(f"  worst: {worst:.3f} points")
    found.within("the worst share, in points off,", worst, 0, bound, noise.percent())
    found.unsure_if(result["dropped"], f"{result['dropped']} ticks were dropped, and counted")
    truth.judge_nameless(found, periods["other"], named + periods["other"], 0.02)
    found.finish()


if __name__ == "__main__":
    main()
