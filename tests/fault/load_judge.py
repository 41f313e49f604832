#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges load_workload: many threads make spans, a receiver swallows them or is stuck.

  load_judge.py WORKLOAD RECEIVER [--rate N] [--seconds N] [--threads N] [--patient] [--stuck] [--lossless]

With a receiver that takes: started = ended + live, ended = exported + dropped because the queue was full, and the receiver has got as many spans as
were exported. With --patient the threads wait for the exporter, so none may be dropped; with --lossless none may be dropped although they do not.
A machine too slow to make the rate is told, not judged.

Stuck: the receiver reads nothing. Started = ended + live; none is exported; each span that ended was dropped at the queue, is in a request of at
most 512 spans that was dropped, or waits, in the queue or in the 64 MiB that requests may take (a span has at least 64 bytes there). Memory
grows by the queue (512 bytes a span), these 64 MiB, and the 40 MiB that the SDK takes at worst, for moments in which names are looked up and with the
network's libraries (docs/benchmarks/memory.md). Sanitizers have a heap of their own: --any-memory."""
import argparse, json, os, subprocess, sys

QUEUE_SPANS, BATCH_SPANS, SPAN_KIB, SPAN_SENT_BYTES = 65536, 512, 0.5, 64
REQUESTS_KIB, SDK_KIB = 64 * 1024, 40 * 1024


def run(arguments):
    """(what the workload said, what the receiver counted)"""
    receiver = subprocess.Popen([arguments.receiver] + (["stuck"] if arguments.stuck else []), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                text=True)
    port = receiver.stdout.readline().strip()
    environment = dict(os.environ, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}", OTEL_EXPORTER_OTLP_COMPRESSION="none",
                       OTEL_BSP_MAX_QUEUE_SIZE=str(QUEUE_SPANS), SPANPROF_LOG="error")
    command = [arguments.workload, arguments.threads, arguments.rate, arguments.seconds] + \
        (["patient"] if arguments.patient else ["stuck"] if arguments.stuck else [])
    done = subprocess.run([str(word) for word in command], env=environment, stdout=subprocess.PIPE, text=True,
                          timeout=120 + 20 * arguments.seconds)
    counts, _ = receiver.communicate("?\n")
    if done.returncode:
        raise SystemExit(f"{arguments.workload} ended with {done.returncode}")
    said = json.loads(done.stdout)
    print(json.dumps(said))
    requests, size, spans = map(int, counts.split())
    print(f"receiver: {requests} requests, {size} bytes, {spans} spans")
    return said, spans


def judge_taken(said, received, arguments):
    live = said["live"]  # ended, and received, once the counters had been read
    yield said["flushed"], "the flush is done"
    yield said["ended"] == said["exported"] + said["dropped_queue_full"], "ended = exported + dropped"
    yield said["dropped_requests"] == 0, "no request is dropped"
    yield received == said["exported"] + live, "the receiver got what was exported"
    if arguments.patient or arguments.lossless:
        yield said["dropped_queue_full"] == 0, "no span is dropped"


def judge_stuck(said, received, arguments):
    waiting = QUEUE_SPANS + REQUESTS_KIB * 1024 // SPAN_SENT_BYTES
    grown, allowed = said["kib_peak"] - said["kib_before"], QUEUE_SPANS * SPAN_KIB + REQUESTS_KIB + SDK_KIB
    yield received == 0 and said["exported"] == 0, "nothing is exported"
    yield said["dropped_queue_full"] + BATCH_SPANS * said["dropped_requests"] + waiting >= said["ended"], "drops are counted"
    yield said["dropped_queue_full"] <= said["ended"], "no more is dropped than ended"
    yield arguments.any_memory or grown <= allowed, f"memory grows by {grown} KiB, {allowed:.0f} at most"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("receiver")
    parser.add_argument("--rate", type=int, default=1000000)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=16)
    for flag in ("--patient", "--stuck", "--lossless", "--any-memory"):
        parser.add_argument(flag, action="store_true")
    arguments = parser.parse_args()
    said, received = run(arguments)
    wrong = [] if said["started"] == said["ended"] + said["live"] else ["started = ended + live"]
    wrong += [] if said["dropped_memory"] == 0 else ["no start fails"]
    wrong += [what for holds, what in (judge_stuck if arguments.stuck else judge_taken)(said, received, arguments) if not holds]
    for what in wrong:
        print(f"FAILED: {what}")
    if not wrong and arguments.lossless and said["rate"] < 0.95 * arguments.rate:
        print("SKIPPED: this machine did not make the rate")
        return 77
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
