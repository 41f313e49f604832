#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The truth of samples in libraries that come and go at one address: the work of each is on stacks of its own functions only, and the callers
behind them are there.

  reloaded_test.py [--hz N] [--engine E] [--minimum-samples N] [--preload LIBRARY] PROGRAM LIBRARY LIBRARY"""
import re

import truth
from truth import verdict

CALLERS = "plugin_run", "call_library", "main"


def judge_callers(found, samples):
    """Every stack of a library's work names no function of the other, and is whole."""
    whole = cut = foreign = 0
    for sample in samples:
        work = truth.work_of_stack(sample.names)
        if work is None:
            continue
        others = {name for name in sample.names if re.match(r"plugin_dive_\d", name)} - {f"plugin_dive_{work}"}
        foreign += sample.count if others else 0
        missing = [name for name in CALLERS if name not in sample.names]
        whole, cut = whole + (0 if missing else sample.count), cut + (sample.count if missing else 0)
        if missing and cut <= 5:
            print(f"  without {missing}: {sample.names}")
    print(f"  {whole} stacks are whole, {cut} are cut, {foreign} name functions of the other library")
    found.broken_if(foreign, f"{foreign} samples name functions of the library that was there before or after")
    # A collector that gets no core in time has not made the tables of a library that is there for a millisecond.
    found.unsure_if(cut > 0.02 * (whole + cut), f"{cut} of {whole + cut} stacks are cut, 2 % may")


def main():
    parser = truth.arguments(__doc__)
    parser.add_argument("--preload")
    parser.add_argument("program")
    parser.add_argument("libraries", nargs=2)
    a = parser.parse_args()
    preload = {"LD_PRELOAD": a.preload} if a.preload else {}
    # Each round works for 0.12 s.
    rounds = round(a.minimum_samples * 2 / a.hz / 0.12)
    run = truth.run([a.program, str(rounds), *a.libraries], hz=a.hz, engine=a.engine, **preload)
    print(run.output.strip())
    samples = list(run.samples())
    found = verdict.Verdict()
    same = int(re.search(r"same address (\d+)", run.output).group(1))
    found.unsure_if(same < rounds / 2, f"the libraries were at one address in {same} of {rounds} rounds only")
    judge_callers(found, samples)
    truth.finish("libraries that come and go", run, truth.judge(samples, run.labels()), minimum=a.minimum_samples, other=0.6, found=found)


if __name__ == "__main__":
    main()
