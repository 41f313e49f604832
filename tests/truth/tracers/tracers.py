# SPDX-License-Identifier: Apache-2.0
"""What the tests of tracers share. Their spans are not spanprof's, so the programs say which work each does: lines "span TRACE SPAN WORK"."""
import truth
from truth import verdict


def run(command, arguments, **more):
    return truth.run(command, hz=arguments.hz, engine=arguments.engine, **more)


def check_marks(command):
    """Spans that samples may link to have pyroscope.profile.id. COMMAND says of a root and its child which have it: "marks root child"."""
    for scope, expected in ("root", "marks root"), ("innermost", "marks root child"), ("none", "marks"):
        found = [line for line in truth.run(command, SPANPROF_LINK_SCOPE=scope).output.splitlines() if line.startswith("marks")]
        if found != [expected]:
            verdict.fail(f"with the link scope {scope} the program should say {expected!r}, and says {found}")


def check_example(command):
    """The example runs, and its spans have samples."""
    if not truth.run(command, 99).counts()["linked"]:
        verdict.give_up("the example's spans have no samples")


def labels(output):
    """{(trace id, span id): work}"""
    found = {}
    for line in output.splitlines():
        if line.startswith("span "):
            _, trace, span, work = line.split()
            found[trace, span] = work
    return found


def finish(name, run, arguments, work=truth.work_of_stack, **bounds):
    verdicts = truth.judge(run.samples(), labels(run.output), work)
    truth.finish(name, run, verdicts, minimum=arguments.minimum_samples, labels=arguments.labels, **bounds)
