#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The truth of samples under another tracer that publishes its contexts (OTEP 4947) and was never told of spanprof.

  foreign_record_test.py [--hz N] [--engine E] [--minimum-samples N] STYLE PROGRAM [LIBRARY…]"""
import os, re, sys

import foreign_tracer
import truth
from truth import verdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "signal"))
import wall_truth_judge


class Labels:
    """A span says itself which work it is: no list of them is needed."""

    def values(self):
        return ["0"]

    def get(self, link, unknown=None):
        return foreign_tracer.work(*link) or unknown


def work_of_wait(names):
    for name in names:
        match = re.match(r"truth_work_wait_(\d)$", name)
        if match or name == "wait_nothing":
            return match.group(1) if match else truth.NOTHING
    return None


def waits(run):
    """The wall samples, each counted by its visits; what woke up or waited for a core names no work."""
    for names, thread, trace, span, value, period, wait in wall_truth_judge.wall_samples(run.prefixes[0] + ".profiles.jsonl"):
        yield truth.Sample(names, thread, (trace, span) if trace else None, round(value / period), value)


# The names of the styles in the table of docs/truth.md.
STYLES = {"swaps": "swapped", "flags": "flagged", "waits": "waits"}


def main():
    parser = truth.arguments(__doc__)
    parser.add_argument("style", choices=STYLES)
    parser.add_argument("program")
    parser.add_argument("libraries", nargs="*")
    a = parser.parse_args()
    name = f"another tracer's record, {STYLES[a.style]}{', loaded' if a.libraries else ''}"
    # A quarter more than are needed: those in the tracer itself name no work.
    command = [a.program, a.style, str(a.minimum_samples * 5 // 4), *a.libraries]
    if a.style == "waits":
        run = truth.run(command, engine=a.engine, hz=99, SPANPROF_PROFILES="cpu,wall", SPANPROF_WALL_HZ="1000")
        verdicts = truth.judge(waits(run), Labels(), work_of_wait)
        # A thread that wakes up or waits for a core when it is looked at has no stack; on a busy machine that is often.
        truth.finish(name, run, verdicts, minimum=a.minimum_samples // 2, other=0.6)
    run = truth.run(command, hz=a.hz, engine=a.engine)
    print(run.output.strip())
    verdicts = truth.judge(run.samples(), Labels())
    if not any("truth_work_5" in name for sample in run.samples() if sample.link for name in sample.names):
        verdict.fail("no sample under a context of spanprof's own, which these programs have, too")
    truth.finish(name, run, verdicts, minimum=a.minimum_samples)


if __name__ == "__main__":
    main()
