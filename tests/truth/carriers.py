# SPDX-License-Identifier: Apache-2.0
"""Does the context travel? Runs one of examples/ as compiled for this (its work in numbered functions), and asks the truth of its samples. The spans
say by the attribute request.number which work is theirs.

    carriers.py PROGRAM REQUESTS [--expect right|wrong|missing|unknown] [--engine perf --hz 10000] [--minimum-samples 20000]

--expect says what has to be found: `right` of spanprof; of the label scheme, that samples are linked to other spans (`wrong`), or that
work has no link at all (`missing`); of work in the midst of a switch, that a third or more is `unknown` and nothing wrong."""
import os
import sys

import truth


def labels(run):
    return {ids: str(int(span.attributes["request.number"]) % 64) for ids, span in run.spans().items() if "request.number" in span.attributes}


def main():
    parser = truth.arguments(__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("requests", type=int)
    parser.add_argument("--expect", choices=["right", "wrong", "missing", "unknown"], default="right")
    options = parser.parse_args()
    name = os.path.basename(options.program).replace("truth_", "")
    run = truth.run([options.program, str(options.requests)], hz=options.hz, engine=options.engine, OMP_WAIT_POLICY="passive")
    verdicts = truth.judge(run.samples(), labels(run))
    unknown = run.counts()["unknown"]
    if options.expect == "unknown" and not verdicts["right"] / 2 < verdicts["missing"] <= unknown:
        sys.exit(f"FAILED: {verdicts}, {unknown} unknown: the work between the halves of a switch should be, and nothing else missing")
    truth.finish(name, run, verdicts, minimum=options.minimum_samples,
                 missing=1 if options.expect == "unknown" else 0.0005, expect_wrong=options.expect == "wrong", expect_missing=options.expect == "missing")


if __name__ == "__main__":
    main()
