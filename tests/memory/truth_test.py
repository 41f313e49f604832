#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""truth_test.py WORKLOAD PRELOAD SPANPROF [--preload-first LIBRARY]: what the workload allocates, keeps and records in functions that are named after their spans is
linked to these spans: no link is wrong. Its planted leak is found by one command, and what a request that goes on holds is not taken for one."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

WORK = re.compile(r"^truth_work_(\w+)$")


def answer(spanprof, *arguments):
    """What the command says in JSON; None: nothing matched."""
    process = subprocess.run([spanprof, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if process.returncode == 1:
        return None
    if process.returncode != 0:
        sys.exit(f"spanprof {' '.join(arguments)}: exit {process.returncode}: {process.stderr}")
    return json.loads(process.stdout)


def names_of_spans(path):
    """By span id, as the file has them."""
    names = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            for resource in json.loads(line)["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        names[span["spanId"].lower()] = span["name"]
    return names


def judge_type(spanprof, prefix, names, kind):
    """How many stacks show work, and which links are wrong."""
    flame = answer(spanprof, "flame", prefix, "--type", kind, "--format", "json")
    judged, wrong, unlinked = 0, [], 0
    for stack in flame["stacks"] if flame else []:
        works = [match.group(1) for match in map(WORK.match, stack["frames"]) if match]
        if not works:
            continue
        judged += 1
        expected = "" if works[0] == "none" else f"work {works[0]}"
        found = names.get(stack["span_id"], "a span that is not in the file") if stack["span_id"] else ""
        if found and found != expected:
            wrong.append(f"{kind}: {works[0]} is linked to '{found}'")
        elif expected and not found:
            unlinked += 1
    return judged, wrong, unlinked


def check(ok, text, failures):
    """A line for each check."""
    print(("ok: " if ok else "FAILED: ") + text)
    if not ok:
        failures.append(text)


def frames_of(flame):
    """Every frame of FLAME."""
    return {frame for stack in flame["stacks"] for frame in stack["frames"]} if flame else set()


def main():
    """Run the workload, and judge what it left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("preload")
    parser.add_argument("spanprof")
    parser.add_argument("--allocator", default="")
    arguments = parser.parse_args()
    failures = []
    with tempfile.TemporaryDirectory(prefix="spanprof-memory-") as folder:
        prefix = os.path.join(folder, "p")
        environment = dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=prefix, SPANPROF_PROFILES="alloc,heap",
                           SPANPROF_ALLOC_BYTES="65536", SPANPROF_MAX_SAMPLES="1000000", SPANPROF_LOG="warn",
                           OTEL_BSP_MAX_QUEUE_SIZE="100000", LD_PRELOAD=f"{arguments.preload} {arguments.allocator}".strip())
        process = subprocess.run([arguments.workload], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 check=False)
        print(process.stdout, process.stderr, end="")
        check(process.returncode == 0, f"the workload ends with 0: {process.returncode}", failures)
        names = names_of_spans(prefix + ".traces.jsonl")
        for kind, minimum in (("alloc_space", 100), ("alloc_objects", 100), ("inuse_space", 10), ("inuse_objects", 10),
                              ("rows_of_truth", 100)):
            judged, wrong, unlinked = judge_type(arguments.spanprof, prefix, names, kind)
            check(not wrong, f"{kind}: {judged} stacks, {len(wrong)} wrong {wrong[:3]}", failures)
            check(unlinked == 0, f"{kind}: {unlinked} without a link", failures)
            check(judged >= minimum, f"{kind}: at least {minimum} stacks", failures)
        held = answer(arguments.spanprof, "flame", prefix, "--type", "inuse_space", "--format", "json")
        outlived = answer(arguments.spanprof, "flame", prefix, "--type", "inuse_space", "--outlived", "--format", "json")
        check("open_request" in frames_of(held), "what the open request holds is there", failures)
        check("planted_leak" in frames_of(outlived), "--outlived finds the planted leak", failures)
        check("open_request" not in frames_of(outlived), "--outlived does not blame the open request", failures)
        leaked = sum(s["value"] for s in outlived["stacks"] if "planted_leak" in s["frames"]) if outlived else 0
        # 5,000 blocks of 4 KiB at a period of 64 KiB: 303 samples, a standard error of 6 %.
        check(abs(leaked / (5000 * 4096) - 1) < 0.25, f"the leak's size: {leaked} of {5000 * 4096} bytes", failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
