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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import verdict

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
        verdict.fail(f"{arguments.workload} ended with {done.returncode}")
    said = json.loads(done.stdout)
    print(json.dumps(said))
    requests, size, spans = map(int, counts.split())
    print(f"receiver: {requests} requests, {size} bytes, {spans} spans")
    return said, spans


def judge_taken(found, said, received, arguments):
    live = said["live"]  # ended, and received, once the counters had been read
    yield said["flushed"], "the flush is done"
    yield said["ended"] == said["exported"] + said["dropped_queue_full"], "ended = exported + dropped"
    yield said["dropped_requests"] == 0, "no request is dropped"
    yield received == said["exported"] + live, "the receiver got what was exported"
    if arguments.patient:
        yield said["dropped_queue_full"] == 0, "no span is dropped"
    found.unsure_if(arguments.lossless and said["dropped_queue_full"], f"{said['dropped_queue_full']} spans were dropped, and counted")
    found.unsure_if(arguments.lossless and said["rate"] < 0.95 * arguments.rate, f"this machine made {said['rate']} spans a second, of {arguments.rate}")


def judge_stuck(found, said, received, arguments):
    waiting = QUEUE_SPANS + REQUESTS_KIB * 1024 // SPAN_SENT_BYTES
    grown, allowed = said["kib_peak"] - said["kib_before"], QUEUE_SPANS * SPAN_KIB + REQUESTS_KIB + SDK_KIB
    if not arguments.any_memory:
        found.within("growth of memory, in KiB,", grown, -allowed, allowed, 0)
    yield received == 0 and said["exported"] == 0, "nothing is exported"
    yield said["dropped_queue_full"] + BATCH_SPANS * said["dropped_requests"] + waiting >= said["ended"], "drops are counted"
    yield said["dropped_queue_full"] <= said["ended"], "no more is dropped than ended"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("receiver")
    parser.add_argument("--rate", type=int, default=1000000)
    parser.add_argument("--seconds", type=verdict.seconds, default="5")
    parser.add_argument("--threads", type=int, default=16)
    for flag in ("--patient", "--stuck", "--lossless", "--any-memory"):
        parser.add_argument(flag, action="store_true")
    arguments = parser.parse_args()
    said, received = run(arguments)
    found = verdict.Verdict()
    found.broken_if(said["started"] != said["ended"] + said["live"], "started = ended + live does not hold")
    found.broken_if(said["dropped_memory"], "a start failed")
    judge = judge_stuck if arguments.stuck else judge_taken
    for holds, what in judge(found, said, received, arguments):
        found.broken_if(not holds, f"it does not hold that {what}")
    found.finish()


if __name__ == "__main__":
    main()
