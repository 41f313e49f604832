# SPDX-License-Identifier: Apache-2.0
"""Does the context travel? Runs one of examples/ as compiled for this (its work in numbered functions), and asks the truth of its samples. The spans
say by the attribute request.number which work is theirs.

    carriers.py PROGRAM REQUESTS [--labels right|wrong|missing | --unknown] [--engine perf --hz 10000] [--minimum-samples 20000]

--unknown: of work in the midst of a switch a third or more has to be unknown, and nothing wrong."""
import os

import truth
from truth import verdict


def labels(run):
    return {ids: str(int(span.attributes["request.number"]) % 64) for ids, span in run.spans().items() if "request.number" in span.attributes}


def main():
    parser = truth.arguments(__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("requests", type=verdict.count)
    parser.add_argument("--unknown", action="store_true")
    options = parser.parse_args()
    name = os.path.basename(options.program).removeprefix("truth_").removesuffix("_labels")
    run = truth.run([options.program, str(options.requests)], hz=options.hz, engine=options.engine, OMP_WAIT_POLICY="passive")
    verdicts = truth.judge(run.samples(), labels(run))
    unknown = run.counts()["unknown"]
    if options.unknown and not verdicts["right"] / 2 < verdicts["missing"] <= unknown:
        verdict.fail(f"{verdicts}, {unknown} unknown: the work between the halves of a switch should be, and nothing else missing")
    truth.finish(name, run, verdicts, minimum=options.minimum_samples, missing=1 if options.unknown else 0.0005, labels=options.labels)


if __name__ == "__main__":
    main()
