#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs truth_workload and judges every sample: does its link name the span whose function its stack names?

  truth_judge.py WORKLOAD [--seconds S] [--threads N] [--engine timer|perf] [--hz HZ] [--minimum-samples N]

The workload runs for S seconds, and longer where it takes longer to get N samples.

Rules (docs/design/span-context.md): the leaf-most of the functions below decides.
  span_work_K           link to a span of function K and of this thread; none or unknown: counted, below 0.05 %
  span_work_K below which `nested` and so on switch: K's span, or a span of the same thread that is just being attached
  foreign_detach_work   its own thread's span, or none
  unsampled_work        none (in a nested place: never; it is called at top level)
  between_work          none
Any other link is wrong, and one wrong link is broken. So is a sample that is neither delivered nor counted, and no sample may be counted
twice: the profiles' periods are the counters'."""
import argparse, collections, json, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import truth
from truth import verdict

SWITCHING = {"nested", "out_of_order", "ended_elsewhere", "detached_elsewhere", "unsampled", "carried", "start_span",
             "spanprof_span_attach", "spanprof_context_attach", "spanprof_scope_detach", "spanprof_span_start",
             "spanprof_span_end"}


def decode(trace_id):
    """(function, thread) that the trace id says, or None."""
    if not trace_id:
        return None
    raw = bytes.fromhex(trace_id)
    if raw[:4] != b"TRUT":
        return ("foreign", trace_id)
    return int.from_bytes(raw[4:6], "little"), int.from_bytes(raw[6:8], "little")


def judge(names, thread, link):
    """('right' | 'none' | 'edge' | 'wrong' | 'other' | …, what was expected)."""
    switching = False
    match = re.match(r"truth-(\d+)$", thread)
    index = int(match.group(1)) if match else None
    for name in names:
        if name in SWITCHING:
            switching = True
        span = re.match(r"span_work_(\d+)$", name)
        if span:
            expected = (int(span.group(1)), index)
            if link == expected:
                return "right"
            if link is None:
                return "edge-none" if switching else "none"
            if switching and link[1] == index:
                return "edge"
            return "wrong"
        if name in ("unsampled_work", "between_work"):
            return "right-none" if link is None else "wrong"
        if name == "foreign_detach_work":
            return "foreign" if link is None or link[1] == index else "wrong"
    return "other"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("--seconds", type=verdict.seconds, default="20")
    parser.add_argument("--threads", default="8")
    parser.add_argument("--engine", help="skip where the SDK does not take it; default: what the environment says")
    parser.add_argument("--hz", default="1000")
    parser.add_argument("--minimum-samples", type=verdict.count, default="8000")
    parser.add_argument("--weight-tolerance", type=float, default=0.05)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, verdict.Noise() as noise:
        environment = dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=directory + "/truth",
                           SPANPROF_CPU_HZ=arguments.hz, SPANPROF_MAX_SAMPLES="1000000", OTEL_TRACES_EXPORTER="none")
        if arguments.engine:
            environment["SPANPROF_ENGINE"] = arguments.engine
        run = subprocess.run([arguments.workload, str(arguments.seconds), arguments.threads, str(arguments.minimum_samples)],
                             env=environment, stdout=subprocess.PIPE, text=True, timeout=arguments.seconds * 10 + 200)
        if run.returncode != 0:
            verdict.fail(f"the workload exited with {run.returncode}")
        result = json.loads(run.stdout.splitlines()[-1])
        if arguments.engine and result["engine"] != arguments.engine:
            verdict.skip(f"the engine {arguments.engine} is not allowed here: {result['engine']} was taken")
        verdicts, weight_ns, examples = collections.Counter(), 0, []
        for sample in truth.samples(directory + "/truth.profiles.jsonl"):
            link = decode(sample.link and sample.link[0])
            kind = judge(sample.names, sample.thread, link)
            verdicts[kind] += sample.count
            weight_ns += sample.value
            if kind == "wrong" and len(examples) < 5:
                examples.append((sample.names, sample.thread, link))
    named = sum(n for v, n in verdicts.items() if v != "other")
    ours = sum(verdicts[v] for v in ("right", "none", "edge", "edge-none", "wrong"))
    lost = verdicts["none"] + verdicts["edge-none"]
    share = weight_ns / result["cpu_ns"]
    print(f"samples {result['ticks']} (linked {result['linked']}, none {result['none']}, unknown {result['unknown']}), "
          f"periods {result['weights']}, stacks incomplete {result['incomplete']}, ring full {result['ring_full']}")
    print(f"judged {named} periods on named stacks: " + ", ".join(f"{k} {v}" for k, v in sorted(verdicts.items())))
    print(f"sum of weights {weight_ns / 1e9:.3f} s of {result['cpu_ns'] / 1e9:.3f} s CPU by the threads' clocks: {share:.4f}; "
          f"unattributed {result['unattributed_ns'] / 1e9:.3f} s")
    print(f"sampled spans' periods linked to none or unknown: {lost} of {ours} = {lost / max(ours, 1):.5%}")
    found = verdict.Verdict()
    found.broken_if(verdicts["wrong"], f"{verdicts['wrong']} periods linked to another span, e.g. {examples}")
    counted = result["linked"] + result["none"] + result["unknown"] + result["ring_full"] + result["memory"] + result["small_stack"]
    found.broken_if(result["ticks"] != counted, f"{result['ticks']} ticks, {counted} of them accounted for")
    shown = named + verdicts["other"]
    found.broken_if(shown != result["weights"], f"the profiles show {shown} periods, the counters {result['weights']}")
    truth.judge_lost(found, lost, ours, 0.0005, "periods of sampled spans")
    found.enough(result["ticks"], arguments.minimum_samples, "samples")
    truth.judge_nameless(found, verdicts["other"], shown, 0.05)
    tolerance = 100 * arguments.weight_tolerance
    found.within("the weights against the clocks, in percent,", 100 * (share - 1), -tolerance, tolerance, noise.percent())
    found.unsure_if(result["ring_full"] or result["memory"], "samples were dropped, and counted")
    found.finish()


if __name__ == "__main__":
    main()
