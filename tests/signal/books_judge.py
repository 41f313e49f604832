#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs books_workload and holds what the SDK shows against the CPU clocks that the threads read themselves.

  books_judge.py WORKLOAD [--engine timer|perf] [--only MODE,…] [--hz HZ] [--scale FACTOR]

Two equations are judged, that the profiles say what the counters say, and that the threads' own clocks are no more than the process's:
  weights x period            = the sum of the threads' own clocks     (the books)
  weights x period + unattributed = the process's clock without the SDK's own threads

How sure a sum is: a thread's first tick is due after a time that is uniform in one period, so a life of m + f periods gets m or
m + 1 of them, the latter with probability f. That is right on average, with a variance of f (1 - f) periods squared, which is 1/6 on
average over f. N threads make a standard deviation of period x sqrt(N / 6). A percentage is demanded where it is wider than four of
them; else four of them are. Unattributed is never negative, so when the weights happen to be ahead the second equation is, too.

What an engine cannot see, each told by the unattributed time and demanded to be no more than this:
  timer  The kernel looks at CPU timers once a jiffy. What a thread used after the last look before its end is never seen, and the first
         look, which stands for a jiffy, makes up for it when the thread keeps its core. One that loses it between looks lacks more:
         at most a jiffy less what its first look is above, 0.63 of one for bursts that looks meet at random (exponential), 0.4 for
         threads of 10 ms that share a core. So the standard deviation has a jiffy where that is longer than the period. Where others want
         the cores, too, looks do not meet bursts at random: one that waits for a core gets it at a tick and is over before the next. A timer
         of the workload's own tells what the kernel's looks saw of each thread; what they missed, where that is more, was not to be had.
  perf   The event counts what a hypervisor takes away (steal), a thread's clock does not: the weights may be ahead by that. /proc/stat
         tells it in hundredths of a second; pieces that it does not tell came to 0.07 % on a quiet host, and 0.3 % are allowed.

Faults to plant (verdict.py): lost-sample leaves a sample out, shifted-clock makes the threads' own clocks run fast by a half."""
import argparse, collections, json, math, os, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truth_judge import truth, verdict

# mode of the workload, threads, seconds, seconds in the short form, percent that the books may be off; "many" is steady with 200 threads.
# What a thread of bursts lacks at its begin, some milliseconds, is more than a percent of a short run.
CASES = {
    "steady": ("steady", 4, 2.0, 1.0, 0.5),
    "many": ("steady", 200, 4.0, 1.0, 0.5),
    "bursty": ("bursty", 8, 4.0, 4.0, 1.0),
    "short": ("short", 4, 2.5, 1.0, 3.0),
    "plain": ("plain", 4, 0.5, 0.5, None),
    "locked": ("locked", 2, 2.0, 1.0, None),
}
# Jiffies of a thread's life that the timer engine may be ahead: where 200 threads share two cores, a slice ends at a look, so nothing is
# lost when all are told to end, and the first look, which often comes early in a slice, was still made a whole one.
AHEAD_JIFFIES = {"many": 0.25}
# And that it may not see.
UNSEEN_JIFFIES = {"steady": 0.1, "many": 0.1, "bursty": 0.63, "short": 0.4, "plain": 1, "locked": 1}
TOLD_PERCENT = 99.0  # of the time that the timer engine misses of tick-locked work, that the unattributed time tells
LANDED_PERCENT = 94.0  # of tick-locked work, that the perf engine puts on stacks
BALANCE_PERCENT = 0.1
UNTOLD_STEAL_PERCENT = 0.3
UNTOLD_NS = 10000000
CLOCKS_DIFFER = 1.1  # the process's clock leaves out the SDK's threads, which are read a moment later
CLOCK = 1.5 if verdict.is_planted("shifted-clock") else 1


def run(arguments, mode, seconds, threads):
    """The workload's JSON line; periods on stacks of books_work, and all periods and unattributed that the profiles show."""
    with tempfile.TemporaryDirectory() as directory, verdict.Noise() as noise:
        environment = dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=directory + "/books",
                           SPANPROF_CPU_HZ=str(arguments.hz), SPANPROF_ENGINE=arguments.engine,
                           SPANPROF_MAX_SAMPLES="1000000", OTEL_TRACES_EXPORTER="none")
        done = subprocess.run([arguments.workload, mode, str(seconds), str(threads)], env=environment,
                              stdout=subprocess.PIPE, text=True, timeout=seconds * 4 + 120)
        if done.returncode != 0:
            verdict.fail(f"the workload exited with {done.returncode}")
        result = json.loads(done.stdout.splitlines()[-1])
        if result["engine"] != arguments.engine:
            verdict.skip(f"the engine {arguments.engine} is not allowed here: {result['engine']} was taken")
        shown = collections.Counter()
        path = directory + "/books.profiles.jsonl"
        if os.path.exists(path):
            for sample in truth.samples(path):
                shown["ns"] += sample.value
                if "books_work" in sample.names:
                    shown["work_ns"] += sample.value
            shown["unattributed_ns"] = sum(unattributed_of(path))
    result["cpu_ns"] = round(result["cpu_ns"] * CLOCK)
    result["steal_ns"] = noise.steal_seconds * 1e9
    result["noise"] = noise.percent()
    return result, shown


def unattributed_of(path):
    """What each profile says of its unattributed time."""
    for line in open(path):
        request = json.loads(line)
        dictionary = request["dictionary"]
        strings = dictionary["stringTable"]
        table = dictionary["attributeTable"]
        for resource in request["resourceProfiles"]:
            for scope in resource["scopeProfiles"]:
                for profile in scope["profiles"]:
                    for index in profile.get("attributeIndices", []):
                        if strings[table[index].get("keyStrindex", 0)] == "spanprof.unattributed_ns":
                            yield int(table[index]["value"].get("intValue", 0))


def slack(case, result, period_ns):
    """In percent of the threads' clocks: four standard deviations, what may be unseen, what may be too much."""
    percent = 100 / result["cpu_ns"]
    once = period_ns if result["engine"] == "perf" else max(period_ns, result["jiffy_ns"])
    deviations = 4 * percent * once * math.sqrt(result["threads"] / 6)
    if result["engine"] == "perf":
        return deviations, 0, UNTOLD_STEAL_PERCENT + percent * result["steal_ns"]
    jiffies = percent * result["jiffy_ns"] * result["threads"]
    missed = percent * (result["cpu_ns"] - result["looked_ns"]) if case != "plain" else 0
    return deviations, max(jiffies * UNSEEN_JIFFIES[case], missed), max(jiffies * AHEAD_JIFFIES.get(case, 0), -missed)


def judge_books(found, case, percent, result, period_ns):
    """The first equation. None demands nothing: threads that nobody told of are in the unattributed time for as long as they are not found."""
    weights_ns = result["weights"] * period_ns
    off = 100 * (weights_ns / result["cpu_ns"] - 1)
    deviations, unseen, ahead = slack(case, result, period_ns)
    missing_us = (result["cpu_ns"] - weights_ns) / result["threads"] / 1e3
    looked = "" if result["engine"] == "perf" or case == "plain" else f", {100 * (weights_ns / result['looked_ns'] - 1):+.3f} % against the kernel's looks"
    print(f"  {case}: weights {off:+.3f} % against the threads' clocks{looked}, {missing_us:.0f} us a thread "
          f"missing; four standard deviations are {deviations:.2f} %, unseen may be {unseen:.2f} %, ahead {ahead:.2f} %")
    if percent is None:
        return
    low, high = max(percent, deviations) + unseen, max(percent, deviations) + ahead
    print(f"  {case}: {percent} % is aimed at{'' if abs(off) <= percent else ', and missed'}; right is -{low:.2f} to +{high:.2f} %")
    found.within(f"{case}: the weights against the threads' clocks, in percent off,", off, -low, high, result["noise"])


def judge_balance(found, case, result, period_ns):
    """The second equation."""
    shown = result["weights"] * period_ns + result["unattributed_ns"]
    off = 100 * (shown / result["process_ns"] - 1)
    deviations, _, ahead = slack(case, result, period_ns)
    high = max(BALANCE_PERCENT, deviations + ahead)
    print(f"  {case}: weights + unattributed {off:+.4f} % against the process's clock; right is -{BALANCE_PERCENT} to +{high:.2f} %")
    found.within(f"{case}: weights and unattributed against the process's clock, in percent off,", off, -BALANCE_PERCENT, high, result["noise"])


def judge_locked(found, engine, result, shown, period_ns):
    """Work that sleeps at every periodic tick."""
    weights_ns = result["weights"] * period_ns
    landed = 100 * shown["work_ns"] / result["cpu_ns"]
    missing = result["process_ns"] - weights_ns
    told = 100 * result["unattributed_ns"] / missing if missing > 0 else 100
    # A period a thread is under way when the clocks are read; where hardly more than that is missing, a share of it says nothing.
    under_way = 100 * result["threads"] * period_ns / max(missing, 1)
    print(f"  locked: {result['cpu_ns'] / 1e6:.0f} ms of CPU, {landed:.2f} % on stacks of the work; {missing / 1e6:.0f} ms missing, "
          f"of which the unattributed time tells {told:.2f} %")
    if engine == "perf":
        found.within("locked: the share of the work that landed on stacks, in percent,", landed, LANDED_PERCENT, 200 - LANDED_PERCENT, result["noise"])
        return
    if landed > 50:
        print("  locked: the kernel's tick did meet the work here, so this says nothing of work that it never meets")
    found.within("locked: the share of the missing time that is told, in percent,", told, TOLD_PERCENT, 200 - TOLD_PERCENT,
                 10 + result["noise"] + under_way)


def judge_case(arguments, found, case):
    mode, threads, full_seconds, short_seconds, percent = CASES[case]
    seconds = (full_seconds if verdict.is_full() else short_seconds) * arguments.scale
    result, shown = run(arguments, mode, round(seconds, 1), threads)
    period_ns = 1000000000 // result["cpu_hz"]
    print(f"{case}: {result['engine']} {result['cpu_hz']} Hz, {result['threads']} threads, {result['ticks']} ticks, weights "
          f"{result['weights'] * period_ns / 1e9:.3f} s, unattributed {result['unattributed_ns'] / 1e9:.3f} s, threads' clocks "
          f"{result['cpu_ns'] / 1e9:.3f} s, process's {result['process_ns'] / 1e9:.3f} s, steal {result['steal_ns'] / 1e9:.2f} s, "
          f"noise {result['noise']:.1f} %")
    judge_books(found, case, percent, result, period_ns)
    judge_balance(found, case, result, period_ns)
    found.broken_if(result["cpu_ns"] > result["process_ns"] * CLOCKS_DIFFER,
                    f"{case}: the threads' clocks say {result['cpu_ns']} ns, the process's {result['process_ns']} ns")
    if case == "locked":
        judge_locked(found, arguments.engine, result, shown, period_ns)
    found.broken_if(shown["ns"] != result["weights_at_stop"] * period_ns,
                    f"{case}: the profiles show {shown['ns']} ns, the counters {result['weights_at_stop']} periods")
    # A window without a sample makes no profile: what the main thread used between the flush and the stop is told by the counter only.
    untold = result["unattributed_ns_at_stop"] - shown["unattributed_ns"]
    found.broken_if(untold < 0, f"{case}: the profiles tell {shown['unattributed_ns']} ns of unattributed, the counters {result['unattributed_ns_at_stop']}")
    found.unsure_if(shown["ns"] and untold >= UNTOLD_NS, f"{case}: {untold} ns of unattributed are in no profile, {UNTOLD_NS} may")
    found.broken_if(result["failed_threads"], f"{case}: {result['failed_threads']} threads got no timer")
    found.unsure_if(result["ring_full"] or result["memory"], f"{case}: samples were dropped, and counted: {result}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("--engine", default="timer")
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--hz", type=int, default=1000)
    parser.add_argument("--scale", type=float, default=1, help="how many times longer than in the suite")
    arguments = parser.parse_args()
    found = verdict.Verdict()
    for case in arguments.only.split(","):
        judge_case(arguments, found, case)
    found.finish()


if __name__ == "__main__":
    main()
