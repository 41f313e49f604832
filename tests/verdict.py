#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verdicts of tests that measure. Only this file and verdict.h define them.

A test measures when it asks a clock, a counter of the kernel, or the sampler "how much". Such a test fails for one of two reasons:

  broken   No noise of the machine explains the result: a wrong link, a crash, a hang, a sample neither delivered nor counted, a sum
           that is off by more than the noise can cause. Exit code 1. The test fails at once, everywhere, and is not tried again.
  unsure   This run cannot answer the question: too few samples, error bars wider than the question, a value that is out of the bounds,
           but not by more than the noise can cause. Exit code 75 (EX_TEMPFAIL of sysexits.h). Exit code 76: another run on this machine
           would say the same.

There are two forms of such a test. `./scripts/test` runs the short form, with about a tenth of the samples, up to TRIES times while it is
unsure and another run may say more, and then reports it as unsure without failing. `./scripts/test --measure` sets SPANPROF_TEST_MEASURE=1 and runs the full form once;
there an unsure test fails. The bounds are the same in both forms.

  verdict.py [--plant FAULT | --expect-broken] COMMAND…    runs a test as ctest does

A judge is a program that decides whether a result is right. --plant sets SPANPROF_TEST_PLANT: the judge then puts FAULT into what it reads,
and has to find it. --expect-broken is for a command that has a fault already. If the judge does not find the fault, verdict.py fails.

The rest of this file is for judges:

    parser.add_argument("--minimum-samples", type=verdict.count)      # a tenth in the short form
    with verdict.Noise() as noise:
        run the workload
    found = verdict.Verdict()
    found.broken_if(wrong, f"{wrong} samples are linked to another span")
    found.enough(judged, arguments.minimum_samples, "samples judged")
    found.within("the sum", off, -1, 1, noise.percent())              # broken when it is off by more than bound and noise together
    found.finish()                                                    # prints, exits"""
import os, resource, subprocess, sys, time

BROKEN, UNSURE, UNSURE_HERE, SKIPPED = 1, 75, 76, 77
TRIES = 3
SHORT = 10  # how many times less the short form takes


def is_full():
    """Whether this is the full form of the test."""
    return os.environ.get("SPANPROF_TEST_MEASURE") == "1"


def count(text):
    """For argparse: the count TEXT; in the short form a tenth of it, but at least 1."""
    return int(text) if is_full() else max(int(text) // SHORT, 1)


def seconds(text):
    """For argparse: the seconds TEXT; in the short form a tenth of them, but at least 1 (or TEXT, if that is less)."""
    return float(text) if is_full() else min(float(text), max(float(text) / SHORT, 1.0))


def is_planted(fault):
    """Whether the judge has to put FAULT into what it reads."""
    return os.environ.get("SPANPROF_TEST_PLANT") == fault


def skip(reason):
    """Ends the test as skipped, because something is missing. REASON says what is missing, and how to get it."""
    print("SKIPPED:", reason)
    sys.exit(SKIPPED)


def fail(reason):
    """Ends the test as broken."""
    print("BROKEN:", reason)
    sys.exit(BROKEN)


def give_up(reason):
    """Ends the test as unsure."""
    print("UNSURE:", reason)
    sys.exit(UNSURE)


def _machine_seconds():
    """(CPU time that processes used, CPU time that the hypervisor took), in seconds on all cores since the machine started."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / ticks, steal / ticks


class Noise:
    """What else the machine did while a judge measured. A context manager. Shares are from 0 to 1, of the time of all cores inside `with`.

    steal    the share that the hypervisor took
    others   the share that other processes used: not this process, and not its children (a child counts after it was waited for)"""

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
        """The share of the cores that was not available to the measured program."""
        return min(self.steal + self.others, 1.0)

    def percent(self):
        return 100 * self.share()

    def __str__(self):
        return f"others had {self.others:.1%} of the cores, the hypervisor {self.steal:.1%}"


class Verdict:
    """Collects what a judge finds. If something is broken, the verdict is broken, also if something else is unsure."""

    def __init__(self):
        self._broken, self._unsure, self._unsure_here = [], [], []

    def broken_if(self, condition, what):
        if condition:
            self._broken.append(what)

    def unsure_if(self, condition, what):
        if condition:
            self._unsure.append(what)

    def unsure_here_if(self, condition, what):
        """Unsure, and another run would say the same: enough was measured, but the value depends on the machine."""
        if condition:
            self._unsure_here.append(what)

    def enough(self, got, wanted, of_what):
        """Unsure when GOT is less than WANTED: that is too little to answer the question."""
        self.unsure_if(got < wanted, f"only {got} {of_what}, {wanted} are needed")

    def within(self, what, value, low, high, reach):
        """Judges VALUE, which has to be between LOW and HIGH. It is unsure up to REACH + (HIGH - LOW) out of these bounds, and broken further
        out. REACH is what the measured noise can cause, in the same unit. HIGH - LOW is allowed in addition, because the bounds are a few
        standard deviations wide: one run in some hundreds is out of them by chance."""
        if low <= value <= high:
            return
        margin = (high - low) + reach
        text = f"{what} is {value:+.3f}, right is {low:+.3f} to {high:+.3f}"
        if low - margin <= value <= high + margin:
            self._unsure.append(f"{text}; the noise can reach {margin:.3f} further")
        else:
            self._broken.append(f"{text}, and the noise reaches {margin:.3f} further")

    def finish(self):
        """Prints what was found, and exits with the verdict's code."""
        for what in self._broken:
            print("BROKEN:", what)
        for what in self._unsure + self._unsure_here:
            print("UNSURE:", what)
        sys.exit(BROKEN if self._broken else UNSURE if self._unsure else UNSURE_HERE if self._unsure_here else 0)


def _reasons(output):
    """Why a run was unsure, by its OUTPUT: a list of texts."""
    return [line.removeprefix("UNSURE:").strip() for line in output.splitlines() if line.startswith("UNSURE:")]


def _run(command):
    """Runs COMMAND once. Returns (exit code, output); the output is also printed at once."""
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
    if code in (UNSURE, UNSURE_HERE):
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
