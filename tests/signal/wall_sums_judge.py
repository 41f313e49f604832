#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs wall_sums_workload and compares, span by span, the sum of its wall weights with the time that it was active.

  wall_sums_judge.py WORKLOAD [--seconds S] [--threads N] [--max-ms MS] [--wall-hz HZ] [--cpu-hz HZ] [--minimum-samples N]
                     [--errors K] [--sleepers]

Every moment has the same chance of being seen, so the sum of a span's weights is its duration on average, whatever it does. Judged is the
mean of (sum - duration), of all spans and of each class of duration and kind: it must be within K standard errors of 0. The standard
error comes from the data: the spans are put into 40 blocks by the time of their begin, and the blocks' sums are taken to be independent
(spans at the same time are not, for they share the rounds). With 40 blocks a mean that is right is outside of 3 errors in 0.5 % of
cases, of 4.5 in 0.006 %. Groups of fewer than 40 spans are told and not judged.

Told is also for how much of the time wake-ups come late by 0.1 ms and more, as a thread of the workload finds: rounds do, too, and their
weights spread the wider. The same difference is told of the three parts, by the thread's CPU clock and the kernel's schedstat. A thread
that is woken and not on a core yet is runnable to the latter, and still blocked to us: these two make up for each other.

A fault to plant (verdict.py): shifted-clock makes the workload's clock run at half its speed."""
import argparse, collections, json, math, os, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truth_judge import verdict

BLOCKS = 40
DOUBT = 4
CLASSES = [1e6, 1e7, 1e8, 1e9, 1e11]
CLOCK = 0.5 if verdict.is_planted("shifted-clock") else 1


def weights(path):
    """{span id: [sum of all, of what ran, of what waited for a core, of what was blocked]}, samples, and the time linked to nothing."""
    sums, samples, unlinked = collections.defaultdict(lambda: [0, 0, 0, 0]), 0, 0
    for line in open(path):
        request = json.loads(line)
        d = request["dictionary"]
        strings = d["stringTable"]
        links = [l.get("spanId", "") for l in d["linkTable"]]
        attributes = [(strings[a.get("keyStrindex", 0)], a.get("value", {})) for a in d["attributeTable"]]
        for profile in (p for rp in request["resourceProfiles"] for sp in rp["scopeProfiles"] for p in sp["profiles"]):
            if strings[profile["sampleType"]["typeStrindex"]] != "wall":
                continue
            for s in profile["samples"]:
                wait = dict(attributes[i] for i in s.get("attributeIndices", [])).get("spanprof.wait", {}).get("stringValue")
                value, samples = int(s["values"][0]), samples + 1
                span = links[s.get("linkIndex", 0)]
                if not span:
                    unlinked += value
                    continue
                sums[span][0] += value
                sums[span][1 if wait is None else 2 if wait == "runnable" else 3] += value
    return sums, samples, unlinked


def standard_error(differences):
    """Of the mean of (begin, difference) pairs that are sorted by begin."""
    n = len(differences)
    mean = sum(d for _, d in differences) / n
    first, last = differences[0][0], differences[-1][0] + 1
    blocks = [0.0] * BLOCKS
    for begin, d in differences:
        blocks[int((begin - first) * BLOCKS / (last - first))] += d - mean
    return math.sqrt(sum(b * b for b in blocks) * BLOCKS / (BLOCKS - 1)) / n


def judge(found, name, spans, errors, noise):
    """Prints one line; the mean has to be within ERRORS standard errors of 0."""
    spans = sorted(spans)
    mean = sum(s[1] for s in spans) / len(spans)
    error = standard_error([s[:2] for s in spans])
    spread = math.sqrt(sum((s[1] - mean) ** 2 for s in spans) / len(spans))
    duration = sum(s[2] for s in spans) / len(spans)
    parts = [sum(s[3][i] for s in spans) / len(spans) / 1e6 for i in range(3)]
    print(f"{name:>16}: {len(spans):6} spans, {duration / 1e6:9.3f} ms on average; sum - duration {mean / 1e6:+8.4f} ms +- {error / 1e6:.4f} "
          f"({mean / error if error else 0:+5.2f} errors, {mean / duration:+.3%}), spread {spread / 1e6:.3f} ms; "
          f"CPU {parts[0]:+.4f}, runnable {parts[1]:+.4f}, blocked {parts[2]:+.4f}")
    if len(spans) >= BLOCKS and error:
        # The errors come from the data, so they are wide where there is noise; few blocks make them doubtful.
        found.within(f"the mean of {name}, in standard errors off,", mean / error, -errors, errors, DOUBT + noise.percent() / 5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("--seconds", type=verdict.seconds, default="12")
    parser.add_argument("--threads", default="16")
    parser.add_argument("--max-ms", default="1000")
    parser.add_argument("--wall-hz", default="200")
    parser.add_argument("--cpu-hz", default="1000")
    parser.add_argument("--minimum-samples", type=verdict.count, default="5000")
    parser.add_argument("--errors", type=float, default=4.5)
    parser.add_argument("--sleepers", action="store_true", help="spans sleep only")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, verdict.Noise() as noise:
        environment = dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=directory + "/sums", OTEL_TRACES_EXPORTER="none",
                           SPANPROF_PROFILES="cpu,wall", SPANPROF_WALL_HZ=arguments.wall_hz, SPANPROF_CPU_HZ=arguments.cpu_hz,
                           SPANPROF_MAX_SAMPLES="1000000", SPANPROF_WINDOW_MS="2000")
        run = subprocess.run([arguments.workload, str(arguments.seconds), arguments.threads, arguments.max_ms, directory + "/spans"]
                             + ["sleep"] * arguments.sleepers,
                             env=environment, stdout=subprocess.PIPE, text=True, timeout=arguments.seconds + 200)
        if run.returncode != 0:
            verdict.fail(f"the workload exited with {run.returncode}")
        result = json.loads(run.stdout.splitlines()[-1])
        if not result["running"]:
            verdict.skip("wall time cannot be measured here")
        sums, samples, unlinked = weights(directory + "/sums.profiles.jsonl")
        groups, groups_of_kind = collections.defaultdict(list), collections.defaultdict(list)
        everything = []
        for line in open(directory + "/spans"):
            span, kind, begin, duration, cpu, runnable = line.split()
            begin, duration, cpu, runnable = int(begin), int(int(duration) * CLOCK), int(cpu), max(0, int(runnable))
            total, *parts = sums.pop(span, [0, 0, 0, 0])
            blocked = duration - cpu - runnable
            entry = (begin, total - duration, duration, (parts[0] - cpu, parts[1] - runnable, parts[2] - blocked))
            everything.append(entry)
            groups_of_kind[kind].append(entry)
            groups[next(i for i, limit in enumerate(CLASSES[1:]) if duration < limit)].append(entry)
    print(f"{result['visits']} visits ({result['unmoved']} unmoved, {result['linked']} linked, {result['none']} none, "
          f"{result['unknown']} unknown, {result['discarded']} attempts discarded, {result['dropped']} dropped), {result['ticks']} ticks "
          f"({result['engine']}), {unlinked / 1e9:.3f} s linked to no span, rounds took {result['wall_cpu_ns'] / 1e9:.3f} s; "
          f"{result['late_share']:.1%} of the time is of late wake-ups")
    found = verdict.Verdict()
    judge(found, "all", everything, arguments.errors, noise)
    for i in sorted(groups):
        judge(found, f"{CLASSES[i] / 1e6:.0f} to {CLASSES[i + 1] / 1e6:.0f} ms", groups[i], arguments.errors, noise)
    for kind in sorted(groups_of_kind):
        judge(found, kind, groups_of_kind[kind], arguments.errors, noise)
    found.enough(result["visits"] + result["ticks"], arguments.minimum_samples, "samples")
    found.broken_if(sums, f"{len(sums)} spans have weights that the workload does not know")
    found.unsure_if(result["dropped"] or result["failed"], "visits were dropped or failed, and counted")
    found.finish()


if __name__ == "__main__":
    main()
