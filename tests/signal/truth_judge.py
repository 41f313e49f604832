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
Any other link is wrong, and one wrong link fails the test."""
import argparse, collections, json, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import truth

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
    parser.add_argument("--seconds", default="20")
    parser.add_argument("--threads", default="8")
    parser.add_argument("--engine", help="skip where the SDK does not take it; default: what the environment says")
    parser.add_argument("--hz", default="1000")
    parser.add_argument("--minimum-samples", type=int, default=8000)
    parser.add_argument("--weight-tolerance", type=float, default=0.05)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        environment = dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=directory + "/truth",
                           SPANPROF_CPU_HZ=arguments.hz, SPANPROF_MAX_SAMPLES="1000000", OTEL_TRACES_EXPORTER="none")
        if arguments.engine:
            environment["SPANPROF_ENGINE"] = arguments.engine
        run = subprocess.run([arguments.workload, arguments.seconds, arguments.threads, str(arguments.minimum_samples)],
                             env=environment, stdout=subprocess.PIPE, text=True, timeout=float(arguments.seconds) * 10 + 200)
        if run.returncode != 0:
            sys.exit(f"the workload exited with {run.returncode}")
        result = json.loads(run.stdout.splitlines()[-1])
        if arguments.engine and result["engine"] != arguments.engine:
            print(f"SKIPPED: the engine {arguments.engine} is not to be had here: {result['engine']} was taken")
            sys.exit(77)
        verdicts, weight_ns, examples = collections.Counter(), 0, []
        for sample in truth.samples(directory + "/truth.profiles.jsonl"):
            link = decode(sample.link and sample.link[0])
            verdict = judge(sample.names, sample.thread, link)
            verdicts[verdict] += sample.count
            weight_ns += sample.value
            if verdict == "wrong" and len(examples) < 5:
                examples.append((sample.names, sample.thread, link))
    named = sum(n for v, n in verdicts.items() if v != "other")
    ours = sum(verdicts[v] for v in ("right", "none", "edge", "edge-none", "wrong"))
    lost = verdicts["none"] + verdicts["edge-none"]
    share = weight_ns / result["cpu_ns"]
    print(f"samples {result['ticks']} (linked {result['linked']}, none {result['none']}, unknown {result['unknown']}), "
          f"periods {result['weights']}, stacks incomplete {result['incomplete']}, ring full {result['ring_full']}")
    print(f"judged {named} periods on named stacks: " + ", ".join(f"{k} {v}" for k, v in sorted(verdicts.items())))
    print(f"sum of weights {weight_ns / 1e9:.3f} s of {result['cpu_ns'] / 1e9:.3f} s CPU by the threads' clocks: {share:.4f}; "
          f"residual {result['residual_ns'] / 1e9:.3f} s")
    print(f"sampled spans' periods linked to none or unknown: {lost} of {ours} = {lost / max(ours, 1):.5%}")
    failures = []
    if verdicts["wrong"]:
        failures.append(f"{verdicts['wrong']} periods linked to another span, e.g. {examples}")
    if lost > max(0.0005 * ours, 3):
        failures.append("0.05 % or more of the sampled spans' periods are linked to none or unknown")
    if result["ticks"] < arguments.minimum_samples:
        failures.append(f"only {result['ticks']} samples, {arguments.minimum_samples} are needed")
    if verdicts["other"] > 0.05 * (named + verdicts["other"]):
        failures.append("more than 5 % of the stacks name none of the workload's functions")
    if abs(share - 1) > arguments.weight_tolerance:
        failures.append(f"the weights differ from the clocks by more than {arguments.weight_tolerance:.0%}")
    if result["ring_full"] or result["memory"]:
        failures.append("samples were dropped")
    for failure in failures:
        print("FAILED:", failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
