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

LOCKS = {"3": "rwlock", "4": "rwlock", "5": "rwlock", "6": "mtx", "condition": "condition", "semaphore": "work"}  # the others wait for the mutex
GIVES = {"3": "give_rwlock", "4": "give_rwlock", "5": "give_rwlock", "6": "give_mtx"}  # the others give a mutex

Wait = collections.namedtuple("Wait", "work frames span holder holder_stack value ids holder_ids lock")


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
                              of.get("spanprof.holder.stack", ""), int(sample["values"][0]), dictionary.link(sample), holder,
                              of.get("spanprof.lock.name", "")))
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
        check({wait.lock for wait in of} == {LOCKS.get(work, "mutex")}, f"and the lock has its name: { {wait.lock for wait in of} }")
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


def share_of_wait(turns, waiter, holder):
    """At most this share of WAITER's wait is HOLDER's, by the requests' own record: from when the one before it gave the lock back, which
    includes the time in which the next one awakes."""
    begin = turns[holder - 1]["giving_ns"] if holder else turns[waiter]["asked_ns"]
    whole = turns[waiter - 1]["giving_ns"] - turns[waiter]["asked_ns"]
    return min(1, (turns[holder]["gave_ns"] - begin) / max(1, whole))


def check_convoy_holders(of, spans):
    """A wait names one of those that had the lock meanwhile, each with the share that it has of the wait."""
    order = sorted((int(span.attributes["got_ns"]), ids) for ids, span in spans.items() if "got_ns" in span.attributes)
    place = {ids: index for index, (_, ids) in enumerate(order)}
    turns = [{key: int(value) for key, value in spans[ids].attributes.items() if key.endswith("_ns")} for _, ids in order]
    check([spans[ids].name for _, ids in order] == ["POST /rebuild"] + ["GET /search"] * CONVOY, "the convoy's maker had the lock first")
    chance = 1
    for wait in of:
        waiter, holder = place[wait.ids], place.get(wait.holder_ids)
        check(holder is not None and holder < waiter, f"place {waiter} in the queue waited for place {holder}")
        chance *= share_of_wait(turns, waiter, holder or 0)
    check(chance > 1e-9, f"and each as likely as its share of the wait: {chance}")


def check_convoy(spanprof, prefix, counts, spans):
    """By one command, and by the holder that each of its samples names."""
    flame = subprocess.run([spanprof, "flame", prefix, "--type", "lock", "--format", "folded"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    check("look_up " in flame, "spanprof flame --type lock shows the convoy's function")
    of = [wait for wait in counts if "look_up" in wait.frames]
    check({wait.span for wait in of} == {"GET /search"}, "the convoy's waits are linked to their requests")
    check({wait.lock for wait in of} == {"index_lock"}, "and to the lock that they waited for")
    check_convoy_holders(of, spans)
    check(sum(wait.value for wait in of) == CONVOY, f"{CONVOY} of them")
    table = subprocess.run([spanprof, "spans", prefix, "--holders", "--name", "GET /search", "--json"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    lines = sorted((wait["waiter"]["span_id"], wait["function"], wait["lock"], wait["holder"]["span_id"], wait["holder_function"])
                   for wait in json.loads(table)["waits"])
    gives = {"POST /rebuild": "rebuild_index", "GET /search": "look_up"}
    expected = sorted((wait.ids[1], "look_up", "index_lock", wait.holder_ids[1], gives[wait.holder]) for wait in of)
    check(lines == expected, f"spanprof spans --holders names both: {lines[:3]}, {expected[:3]}")


def check_no_contention(spanprof, prefix, counts, spans):
    """Waits for conditions and semaphores have types of their own."""
    for kind in ("condition", "semaphore"):
        of = [wait for wait in waits(prefix + ".profiles.jsonl", kind + "_waits", spans) if wait.work == kind]
        check({wait.span for wait in of} == {"work " + kind}, f"a wait for a {kind} is linked: {of[:2]}")
        check({wait.lock for wait in of} == {LOCKS[kind]}, f"and the {kind} has its name")
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
        check_convoy(arguments.spanprof, prefix, counts, spans)
        check_no_contention(arguments.spanprof, prefix, counts, spans)
        check_types(arguments.spanprof, prefix)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
