#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the SDK adds to a process's resident memory: memory_workload less the same program without the SDK.

  memory_judge.py WORKLOAD WITHOUT [--seconds S] [--threads N] [--exporter file] [--churn PLUGIN] [--told]

Private memory (RssAnon) and file pages (RssFile, shared with every process that maps the same libraries) are told apart. Three rules, unless
--told only asks for the figures; each is about the lower quartile of the readings in a third of the last S seconds, so that the moments in
which names are looked up, when debug files are open, do not decide (they are long on a busy machine, and told as the highest):
  private memory, last third      at most 8 MiB
  file pages, last third          at most 8 MiB: the SDK's own libraries, and none of the network's, which only a network exporter loads
  private memory, last less middle third   at most 512 KiB: names of addresses are kept, a few hundred bytes for each new one, and new ones
                                  become rare; a leak of 100 bytes a span shows in 30 seconds, one of 5 bytes a span in ten minutes; 1 MiB with --churn
How soon new names become rare depends on how many ticks there were, and on a slow machine that takes longer than S. So a run whose memory
still grows goes on, up to four times S, until the last S seconds are flat: a program that warms up becomes so, one that leaks never does.
Windows have their usual length, for how long debug files stay open is part of the figure."""
import argparse, json, os, signal, statistics, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import verdict

BOUND_KIB = 8 * 1024
FLAT_KIB = 512
FLAT_CHURN_KIB = 1024  # the loader and the thread library are on the stacks, too: more addresses to name
WARM_UP_KIB = 4096  # that a program may grow by in the seconds of the short form
PATIENCE = 4  # times the seconds asked for, while memory grows


def lines(process):
    return [json.loads(line) for line in process.stdout]


def run(program, arguments, environment):
    return subprocess.Popen([program] + arguments, env=environment, stdout=subprocess.PIPE, text=True)


def third(samples, number, key):
    size = max(len(samples) // 3, 1)
    part = samples[size * number:size * (number + 1)] if number < 2 else samples[-size:]
    values = [s[key] for s in part]
    return statistics.quantiles(values, n=4)[0] if len(values) > 1 else values[0]


def growth(samples):
    return third(samples, 2, "anon") - third(samples, 1, "anon")


def lines_until_flat(process, seconds, bound_kib):
    """The lines of the last SECONDS, as soon as memory did not grow by more than BOUND_KIB in them; the workload is ended then."""
    samples = []
    for line in process.stdout:
        samples.append(json.loads(line))
        now = samples[-1]["seconds"]
        samples = [s for s in samples if s["seconds"] > now - seconds]
        if now >= seconds - 0.5 and growth(samples) <= bound_kib:
            process.terminate()
            break
    return samples


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("without")
    parser.add_argument("--seconds", type=verdict.seconds, default="30")
    parser.add_argument("--threads", type=int, default=100)
    parser.add_argument("--exporter", default="file")
    parser.add_argument("--churn")
    parser.add_argument("--told", action="store_true")
    a = parser.parse_args()
    every = "1" if a.seconds <= 120 else "5"
    extra = [str(a.threads), every] + (["churn", a.churn] if a.churn else [])
    flat_kib = FLAT_CHURN_KIB if a.churn else FLAT_KIB
    longest = a.seconds if a.told else a.seconds * PATIENCE
    with tempfile.TemporaryDirectory() as directory:
        environment = dict(os.environ, SPANPROF_EXPORTER=a.exporter, SPANPROF_FILE=directory + "/memory", SPANPROF_CPU_HZ="99")
        for name in ("SPANPROF_WINDOW_MS", "SPANPROF_MAX_DEPTH", "OTEL_BSP_MAX_QUEUE_SIZE"):
            environment.pop(name, None)
        plain = run(a.without, [str(min(a.seconds, 30))] + extra, environment)
        measured = run(a.workload, [str(longest)] + extra, environment)
        samples = lines(measured) if a.told else lines_until_flat(measured, a.seconds, flat_kib)
        without = lines(plain)
        codes = plain.wait(), measured.wait()
    if verdict.SKIPPED in codes:
        sys.exit(verdict.SKIPPED)
    if codes[0] or codes[1] not in (0, -signal.SIGTERM):
        verdict.fail(f"the workloads exited with {codes}")
    anon_without, file_without = third(without, 2, "anon"), third(without, 2, "file")
    last = third(samples, 2, "anon") - anon_without
    file_pages = third(samples, 2, "file") - file_without
    end = samples[-1]
    print(f"{a.threads} threads, {end['seconds']:.0f} s, exporter {a.exporter}{', churn' if a.churn else ''}: {end['ticks']} ticks "
          f"({end['linked']} linked), {end['spans']} spans, {end['threads']} threads with a timer, dropped {end['ring_full']} + {end['memory']}")
    print(f"without the SDK: private {anon_without:.0f} KiB, file pages {file_without:.0f} KiB")
    print(f"the SDK adds: private {last:.0f} KiB ({last - growth(samples):.0f} a third of {a.seconds:.0f} s before), file pages {file_pages:.0f} KiB, private dirty "
          f"{third(samples, 2, 'private_dirty') - third(without, 2, 'private_dirty'):.0f} KiB; {last / a.threads:.1f} KiB private a thread; "
          f"most in one reading {max(s['anon'] for s in samples) - anon_without:.0f}, highest of all resident memory {end['highest']} KiB")
    if a.told:
        return
    found = verdict.Verdict()
    found.unsure_if(end["threads"] < a.threads * (0.2 if a.churn else 0.9) or end["linked"] == 0, "the threads were not sampled")
    found.within("private memory, in KiB,", last, 0, BOUND_KIB, 0)
    found.within("file pages, in KiB,", file_pages, 0, BOUND_KIB, 0)
    found.within(f"growth of private memory between two thirds of the last {a.seconds:.0f} s, in KiB,", max(growth(samples), 0), 0, flat_kib,
                 0 if verdict.is_full() else WARM_UP_KIB)
    found.finish()


main()
