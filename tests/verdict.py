#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verdicts of tests that measure. This file and verdict.h are the only places that know them.

A test measures when it asks a clock, a counter of the kernel, or the sampler "how much". Such a test fails for one of two reasons:

  broken   No noise of the machine explains the result: a wrong link, a crash, a hang, a sample neither delivered nor counted, a sum
           that is off by more than the noise can reach. Exit code 1. It fails at once, everywhere, and is never tried again.
  unsure   This run cannot answer the question: too few samples, error bars wider than the question, a deviation between the bound
           and what the noise can reach. Exit code 75 (EX_TEMPFAIL of sysexits.h).

There are two forms of such a test. The gate runs the short one, with about a tenth of the samples, up to TRIES times while it is unsure,
and then reports it as unsure without failing. `./scripts/test --measure` sets SPANPROF_TEST_MEASURE=1 and runs the full one once, and there
unsure fails. The bounds are the same in both.

  verdict.py [--plant FAULT | --expect-broken] COMMAND…    runs a test as ctest does

--plant sets SPANPROF_TEST_PLANT: the judge itself then puts FAULT into what it reads, and has to find it. --expect-broken is for a command
that brings a fault of its own. A test that cannot fail fails here.

A judge uses the rest:

    parser.add_argument("--minimum-samples", type=verdict.count)      # a tenth in the short form
    with verdict.Noise() as noise:
        run the workload
    found = verdict.Verdict()
    found.broken_if(wrong, f"{wrong} samples are linked to another span")
    found.enough(judged, arguments.minimum_samples, "samples judged")
    found.within("the sum", off, -1, 1, noise.percent())              # broken when it is off by more than bound and noise together
    found.finish()                                                    # prints, exits"""
import os, resource, subprocess, sys, time

BROKEN, UNSURE, SKIPPED = 1, 75, 77
TRIES = 3
SHORT = 10  # how many times less the gate asks for


def is_full():
    """Whether this is the full form of the test."""
    return os.environ.get("SPANPROF_TEST_MEASURE") == "1"


def count(text):
    """For argparse: a count that is a tenth in the short form."""
    return int(text) if is_full() else max(int(text) // SHORT, 1)


def seconds(text):
    """For argparse: seconds that are a tenth in the short form, but not less than one."""
    return float(text) if is_full() else min(float(text), max(float(text) / SHORT, 1.0))


def is_planted(fault):
    """Whether the judge is to put FAULT into what it reads."""
    return os.environ.get("SPANPROF_TEST_PLANT") == fault


def skip(reason):
    """Leaves the test: what it needs is not here. REASON says what, and how to get it."""
    print("SKIPPED:", reason)
    sys.exit(SKIPPED)


def fail(reason):
    """Leaves the test: broken."""
    print("BROKEN:", reason)
    sys.exit(BROKEN)


def give_up(reason):
    """Leaves the test: unsure."""
    print("UNSURE:", reason)
    sys.exit(UNSURE)


def _machine_seconds():
    """(CPU time that the machine's processes used, CPU time that its hypervisor took away) so far, all cores."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / ticks, steal / ticks


class Noise:
    """What else the machine did while a judge measured. A context manager; shares are of all cores' time in between.

    steal    what the hypervisor took away
    others   what processes used that are not children of this one (children count once they have been waited for)"""

    def __enter__(self):
        self._begin = self._now()
        return self

    def __exit__(self, *_):
        wall, used, steal, own = (end - begin for end, begin in zip(self._now(), self._begin))
        cores = max(wall * os.cpu_count(), 1e-9)
        self.steal_seconds = steal
        self.steal = min(max(steal / cores, 0.0), 1.0)
        self.others = min(max((used - own) / cores, 0.0), 1.0)

    @staticmethod
    def _now():
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return (time.monotonic(), *_machine_seconds(), sum(u.ru_utime + u.ru_stime for u in usages))

    def share(self):
        """The share of the cores that the measured program could not have."""
        return min(self.steal + self.others, 1.0)

    def percent(self):
        return 100 * self.share()

    def __str__(self):
        return f"others had {self.others:.1%} of the cores, the hypervisor {self.steal:.1%}"


class Verdict:
    """Collects what a judge finds. Broken wins over unsure."""

    def __init__(self):
        self._broken, self._unsure = [], []

    def broken_if(self, condition, what):
        if condition:
            self._broken.append(what)

    def unsure_if(self, condition, what):
        if condition:
            self._unsure.append(what)

    def enough(self, got, wanted, of_what):
        """Fewer than WANTED cannot answer the question."""
        self.unsure_if(got < wanted, f"only {got} {of_what}, {wanted} are needed")

    def within(self, what, value, low, high, reach):
        """VALUE belongs between LOW and HIGH. The noise that was seen can move it by REACH, in the same unit, beyond them. As much as the
        bounds are apart is allowed besides: they are a few standard deviations wide, and one run in some hundreds is outside of them."""
        if low <= value <= high:
            return
        margin = (high - low) + reach
        text = f"{what} is {value:+.3f}, right is {low:+.3f} to {high:+.3f}"
        if low - margin <= value <= high + margin:
            self._unsure.append(f"{text}; the noise can reach {margin:.3f} further")
        else:
            self._broken.append(f"{text}, and the noise reaches {margin:.3f} further")

    def finish(self):
        """Prints what was found and exits with the verdict."""
        for what in self._broken:
            print("BROKEN:", what)
        for what in self._unsure:
            print("UNSURE:", what)
        sys.exit(BROKEN if self._broken else UNSURE if self._unsure else 0)


def _reasons(output):
    """Why a run was unsure."""
    return [line.removeprefix("UNSURE:").strip() for line in output.splitlines() if line.startswith("UNSURE:")]


def _run(command):
    """(exit code, output) of one run, which is printed as it comes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    output = b""
    for line in process.stdout:
        output += line
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    return process.wait(), output.decode(errors="replace")


def _run_until_sure(command):
    tries = 1 if is_full() else TRIES
    for number in range(1, tries + 1):
        code, output = _run(command)
        if code != UNSURE:
            break
        print(f"verdict: run {number} of {tries} is unsure", flush=True)
    return code, output


def main(arguments):
    expects_broken, command = False, arguments
    if arguments[:1] == ["--plant"]:
        os.environ["SPANPROF_TEST_PLANT"] = arguments[1]
        expects_broken, command = True, arguments[2:]
    elif arguments[:1] == ["--expect-broken"]:
        expects_broken, command = True, arguments[1:]
    if not command:
        print(__doc__)
        return 2
    code, output = _run_until_sure(command)
    if code == UNSURE:
        print("UNSURE:", "; ".join(_reasons(output)) or "no reason was given")
        return BROKEN if is_full() else SKIPPED
    if expects_broken:
        if code == SKIPPED:
            return SKIPPED
        print("verdict: the planted fault was", "found" if code == BROKEN else f"not found: exit code {code}")
        return 0 if code == BROKEN else BROKEN
    return code if code in (0, SKIPPED) else BROKEN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
