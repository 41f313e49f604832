#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live_test.py WORKLOAD PRELOAD [--operations N] [--slots N] [--period BYTES] [--allocator LIBRARY]: 8 threads allocate blocks and free each
other's. The snapshot of what is live agrees with an exact count, as far as sampling can; when all is freed, no block is left in it."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "truth")]
import truth  # pylint: disable=wrong-import-position
import verdict  # pylint: disable=wrong-import-position

SIGMAS = 6  # by chance once in 500 million runs


def snapshots(path, kind):
    """(end, sum of what live_churn allocated) of each snapshot of KIND."""
    for dictionary, profile in truth.profiles(path):
        if dictionary.strings[profile["sampleType"].get("typeStrindex", 0)] == kind:
            values = [int(sample["values"][0]) for sample in profile.get("samples", []) if "live_churn" in dictionary.names(sample)]
            yield int(profile["timeUnixNano"]) + int(profile["durationNano"]), sum(values)


def run(arguments, folder):
    """What the workload says, and the file of its profiles."""
    prefix = os.path.join(folder, "p")
    preload = " ".join(filter(None, (arguments.preload, arguments.allocator)))
    environment = dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=prefix, SPANPROF_PROFILES="heap", SPANPROF_LOG="warn",
                       SPANPROF_ALLOC_BYTES=str(arguments.period), SPANPROF_HEAP_SAMPLES=str(max(65536, 2 * arguments.slots)),
                       SPANPROF_MAX_SAMPLES="1000000", LD_PRELOAD=preload)
    command = [arguments.workload, str(arguments.operations), str(arguments.slots), str(arguments.period)]
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if process.returncode:
        verdict.fail(f"the workload ended with {process.returncode}")
    return json.loads(process.stdout), prefix + ".profiles.jsonl"


def judge(found, live, path, kind, what):
    """WHAT is bytes or blocks, of profile type KIND."""
    of = list(snapshots(path, kind))
    before = [total for end, total in of if end <= live["freed_unix_nano"]]
    after = [total for end, total in of if end > live["freed_unix_nano"]]
    found.broken_if(not before, f"no snapshot of {kind} was taken")
    off = (before[-1] if before else 0) - live[what]
    error = live[what + "_error"]
    print(f"{kind}: {live[what]:.0f} {what} are live; the snapshot is off by {off:+.0f}, {off / error:+.2f} standard errors of {error:.0f}")
    found.broken_if(abs(off) > SIGMAS * error and not live["dropped_calls"], f"{kind} is off by {off / error:.1f} standard errors")
    found.broken_if(any(after), f"{kind}: {after} after all was freed")


def main():
    """Run the workload, and judge what it left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("preload")
    parser.add_argument("--operations", type=int, default=2_000_000)
    parser.add_argument("--slots", type=int, default=20_000)
    parser.add_argument("--period", type=int, default=131072)
    parser.add_argument("--allocator", default="")
    arguments = parser.parse_args()
    found = verdict.Verdict()
    with tempfile.TemporaryDirectory(prefix="spanprof-live-") as folder:
        live, path = run(arguments, folder)
        judge(found, live, path, "inuse_space", "bytes")
        judge(found, live, path, "inuse_objects", "blocks")
    found.broken_if(live["live_blocks"] > 100, f"{live['live_blocks']} blocks are in the table after all was freed")
    found.broken_if(live["dropped_live_blocks"], f"the table had no place for {live['dropped_live_blocks']}")
    found.unsure_if(live["dropped_calls"], f"the collector came too late for {live['dropped_calls']} samples")
    found.finish()


if __name__ == "__main__":
    main()
