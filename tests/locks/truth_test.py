#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""truth_test.py WORKLOAD PRELOAD SPANPROF: waits for locks in functions that are named after their spans are linked to these spans, and name
the span that held the lock. No link is wrong, no wait is missing, and one command finds the planted convoy."""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import truth  # pylint: disable=wrong-import-position

ROUNDS, CONVOY = 40, 5
WORK = re.compile(r"^truth_work_(\w+)$")
FAILURES = []

GIVES = {"3": "give_rwlock", "4": "give_rwlock", "5": "give_rwlock", "6": "give_mtx"}  # the others give a mutex

Wait = collections.namedtuple("Wait", "work frames span holder holder_stack value")


def check(ok, text):
    """A line for each check."""
    print(("ok: " if ok else "FAILED: ") + text)
    if not ok:
        FAILURES.append(text)


def waits(path, kind, spans):
    """Each sample of type KIND, with the names of the spans that it names."""
    found = []
    for dictionary, profile in truth.profiles(path):
        if dictionary.strings[profile["sampleType"].get("typeStrindex", 0)] != kind:
            continue
        for sample in profile["samples"]:
            frames = dictionary.names(sample)
            work = next((match.group(1) for match in map(WORK.match, frames) if match), "")
            of = dictionary.attributes(sample)
            holder = of.get("spanprof.holder.trace_id", ""), of.get("spanprof.holder.span_id", "")
            found.append(Wait(work, frames, name_of(spans, dictionary.link(sample)), name_of(spans, holder),
                              of.get("spanprof.holder.stack", ""), int(sample["values"][0])))
    return found


def name_of(spans, ids):
    """Of a span by its ids; none for none."""
    if not ids or not any(ids) or not ids[1].strip("0"):
        return None
    return spans[ids].name if ids in spans else "a span that is not in the file"


def check_pairs(counts):
    """Every wait was certain, so every one is there."""
    for work in ("0", "1", "2", "3", "4", "5", "6", "none"):
        of = [wait for wait in counts if wait.work == work]
        span = None if work == "none" else f"work {work}"
        holder = None if work == "2" else "hold 7" if work == "none" else f"hold {work}"
        check({wait.span for wait in of} == {span}, f"work {work} is linked to {span}: {[wait.span for wait in of][:3]}")
        check({wait.holder for wait in of} == {holder}, f"work {work} waited for {holder}: { {wait.holder for wait in of} }")
        stacks = {tuple(wait.holder_stack.split(";")[-3:]) for wait in of}
        where = ("hold_for_each", "hold", GIVES.get(work, "give_mutex"))
        check(stacks == {where}, f"which gave the lock back in {where}: {stacks}")
        check(sum(wait.value for wait in of) == ROUNDS, f"work {work} waited {ROUNDS} times: {sum(wait.value for wait in of)}")


def check_free(counts):
    """How often these waited is chance; who held the mutex is certain where it is said."""
    of = [wait for wait in counts if wait.work == "free"]
    check({wait.span for wait in of} <= {"work free"}, f"{len(of)} waits as they come: no link is wrong")
    check({wait.holder for wait in of} <= {"work free", None}, f"no holder is wrong: { {wait.holder for wait in of} }")
    named = sum(wait.value for wait in of if wait.holder)
    print(f"of {sum(wait.value for wait in of)} waits as they come, {named} name the holder")


def check_stacks(counts):
    """Frames of ours would blame us, and the first has to be the caller's."""
    own = [wait.frames for wait in counts if any("pthread_mutex_lock" in frame or "sp_call" in frame for frame in wait.frames)]
    check(not own, f"no stack has frames of the library: {own[:1]}")
    first = {wait.frames[0] for wait in counts if wait.work not in ("", "free")}
    check(all(WORK.match(frame) for frame in first), f"stacks begin with the caller: {first}")


def check_convoy(spanprof, prefix, counts):
    """By one command, and by the holder that each of its samples names."""
    flame = subprocess.run([spanprof, "flame", prefix, "--type", "lock", "--format", "folded"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    check("look_up " in flame, "spanprof flame --type lock shows the convoy's function")
    of = [wait for wait in counts if "look_up" in wait.frames]
    check({wait.span for wait in of} == {"GET /search"}, "the convoy's waits are linked to their requests")
    # Who waits behind others waits for them, too, for the microseconds that they need.
    check({wait.holder for wait in of} <= {"POST /rebuild", "GET /search"}, f"and name who held the lock: { {wait.holder for wait in of} }")
    by_rebuild = sum(wait.value for wait in of if wait.holder == "POST /rebuild")
    check(by_rebuild > sum(wait.value for wait in of) / 2, f"mostly the convoy's maker: {by_rebuild}")
    check(sum(wait.value for wait in of) >= CONVOY, f"at least {CONVOY} of them")
    table = subprocess.run([spanprof, "spans", prefix, "--holders", "--name", "GET /search", "--json"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    lines = [(wait["waiter"]["name"], wait["function"], wait["holder"]["name"], wait["holder_function"])
             for wait in json.loads(table)["waits"]]
    known = {("GET /search", "look_up", "POST /rebuild", "rebuild_index"), ("GET /search", "look_up", "GET /search", "look_up")}
    check(set(lines) <= known and sum(line[2] == "POST /rebuild" for line in lines) > len(lines) / 2, f"spanprof spans --holders names both: {lines[:5]}")


def check_no_contention(spanprof, prefix, counts, spans):
    """Waits for conditions and semaphores have types of their own."""
    for kind in ("condition", "semaphore"):
        of = [wait for wait in waits(prefix + ".profiles.jsonl", kind + "_waits", spans) if wait.work == kind]
        check({wait.span for wait in of} == {"work " + kind}, f"a wait for a {kind} is linked: {of[:2]}")
        check(not any(wait.work == kind and kind == "semaphore" for wait in counts), f"and no contention: {kind}")
        flame = subprocess.run([spanprof, "flame", prefix, "--type", kind, "--format", "folded"], stdout=subprocess.PIPE, text=True,
                               check=True).stdout
        check(f"truth_work_{kind} " in flame, f"spanprof flame --type {kind} shows it")


def check_types(spanprof, prefix):
    """delay and lock are one, contentions are counts."""
    answers = {}
    for kind in ("delay", "lock", "contentions"):
        text = subprocess.run([spanprof, "flame", prefix, "--type", kind, "--format", "json"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        answers[kind] = json.loads(text)
    check(answers["delay"]["total"] == answers["lock"]["total"] > 0, "--type lock is --type delay")
    check(answers["delay"]["unit"] == "nanoseconds" and answers["contentions"]["unit"] == "count", "their units")


def main():
    """Run the workload, and judge what it left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("preload")
    parser.add_argument("spanprof")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spanprof-locks-") as folder:
        prefix = os.path.join(folder, "p")
        # Each wait is sampled: one shorter than 100 ns is not.
        environment = dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=prefix, SPANPROF_PROFILES="lock", SPANPROF_LOCK_NS="1",
                           SPANPROF_MAX_SAMPLES="1000000", SPANPROF_LOG="warn", OTEL_BSP_MAX_QUEUE_SIZE="100000",
                           LD_PRELOAD=arguments.preload)
        process = subprocess.run([arguments.workload], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 check=False)
        print(process.stdout, process.stderr, end="")
        check(process.returncode == 0, f"the workload ends with 0: {process.returncode}")
        spans = truth.spans(prefix + ".traces.jsonl")
        counts = waits(prefix + ".profiles.jsonl", "contentions", spans)
        check_pairs(counts)
        check_free(counts)
        check_stacks(counts)
        check_convoy(arguments.spanprof, prefix, counts)
        check_no_contention(arguments.spanprof, prefix, counts, spans)
        check_types(arguments.spanprof, prefix)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
