#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs truth_workload with spans that wait, and judges every wall sample: does its link name the span whose function its stack names?

  wall_truth_judge.py WORKLOAD [--seconds S] [--threads N] [--hz HZ] [--minimum-samples N] [--minimum-judged SHARE]

The rules are those of truth_judge.py; one wrong link fails the test. What the stack does not tell (a thread that waited for a core, one
that woke while it was visited, frames that could not be walked) is counted as other. On a machine with few cores waiting for one is the
larger part, so only --minimum-judged of the periods must have a stack that tells."""
import argparse, collections, json, os, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import truth_judge
from truth_judge import truth, verdict


def wall_samples(path):
    """(names leaf first, thread name, trace id, span id, visits' weight, period, what was waited for) of each wall sample that is not CPU time."""
    for dictionary, profile in truth.profiles(path):
        if dictionary.strings[profile["sampleType"]["typeStrindex"]] != "wall":
            continue
        for s in profile["samples"]:
            attributes = dictionary.attributes(s)
            if "spanprof.wait" in attributes:
                yield (dictionary.names(s), attributes.get("thread.name", ""), *(dictionary.link(s) or ("", "")), int(s["values"][0]),
                       int(profile["period"]), attributes["spanprof.wait"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("--seconds", type=verdict.seconds, default="8")
    parser.add_argument("--threads", default="12")
    parser.add_argument("--hz", default="1000")
    parser.add_argument("--minimum-samples", type=verdict.count, default="50000")
    parser.add_argument("--minimum-judged", type=float, default=0.2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        environment = dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=directory + "/truth", SPANPROF_PROFILES="cpu,wall",
                           SPANPROF_WALL_HZ=arguments.hz, SPANPROF_MAX_SAMPLES="1000000", OTEL_TRACES_EXPORTER="none")
        run = subprocess.run([arguments.workload, str(arguments.seconds), arguments.threads, "waits"], env=environment,
                             stdout=subprocess.PIPE, text=True, timeout=arguments.seconds + 200)
        if run.returncode != 0:
            verdict.fail(f"the workload exited with {run.returncode}")
        result = json.loads(run.stdout.splitlines()[-1])
        if not result["wall"]:
            verdict.skip("wall time cannot be measured here")
        verdicts, examples, others, leaves = collections.Counter(), [], collections.Counter(), collections.Counter()
        for names, thread, trace_id, _, value, period, wait in wall_samples(directory + "/truth.profiles.jsonl"):
            link, visits = truth_judge.decode(trace_id), value / period
            kind = truth_judge.judge(names, thread, link)
            verdicts[kind] += visits
            if kind == "wrong":
                examples.append((names, thread, link))
            if kind == "other":
                others[" < ".join(names[:3])] += visits
            else:
                leaves[names[0]] += visits
    judged = sum(n for v, n in verdicts.items() if v != "other")
    everything = judged + verdicts["other"]
    print(f"{result['visits']} visits ({result['unmoved']} unmoved): linked {result['visits_linked']}, none {result['visits_none']}, unknown "
          f"{result['visits_unknown']}, dropped {result['visits_dropped']}; {result['discarded']} attempts discarded")
    print(f"judged {judged:.0f} of {everything:.0f} periods: " + ", ".join(f"{k} {v:.0f}" for k, v in sorted(verdicts.items())))
    print("waits: " + ", ".join(f"{k} {v:.0f}" for k, v in leaves.most_common(8)))
    print("others: " + ", ".join(f"{k} {v:.0f}" for k, v in others.most_common(5)))
    found = verdict.Verdict()
    found.broken_if(verdicts["wrong"], f"{verdicts['wrong']:.0f} periods linked to another span, e.g. {examples[:5]}")
    found.enough(result["visits"], arguments.minimum_samples, "visits")
    found.unsure_if(judged < arguments.minimum_judged * everything, f"fewer than {arguments.minimum_judged:.0%} of the periods have a stack that tells")
    found.unsure_if(result["visits_dropped"], "visits were dropped, and counted")
    found.finish()


if __name__ == "__main__":
    main()
