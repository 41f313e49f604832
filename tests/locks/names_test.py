#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""names_test.py PRELOAD SPANPROF FIRST_PLUGIN SECOND_PLUGIN WORKLOAD…: each wait tells the address of its lock, and the right name or none. A
workload whose name has "stripped" in it has no symbols."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import truth  # pylint: disable=wrong-import-position

NAMES = {"global": "names_global", "static": "names_static", "member": "shop::inventory+0x28", "rwlock": "names_rwlock", "mtx": "names_mtx",
         "condition": "names_condition", "semaphore": "names_semaphore", "before": "names_global", "local": "names_local"}
NAMELESS = ("stack", "mapped")
PLUGINS = {"known plugin": "first_plugin_mutex", "first plugin": "first_plugin_mutex", "second plugin": "second_plugin_mutex"}
FAILURES = []


def check(ok, text):
    """A line for each check."""
    print(("ok: " if ok else "FAILED: ") + text)
    if not ok:
        FAILURES.append(text)


def run(preload, workload, plugins, prefix):
    """Where the program and its heap lie, and the addresses that it printed for each span's name."""
    environment = dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=prefix, SPANPROF_PROFILES="lock", SPANPROF_LOCK_NS="1",
                       LD_PRELOAD=preload)
    process = subprocess.run([workload, *plugins], env=environment, stdout=subprocess.PIPE, text=True, check=False)
    check(process.returncode == 0, f"the workload ends with 0: {process.returncode}")
    printed = {}
    for line in process.stdout.splitlines():
        name, address = line.rsplit(" ", 1)
        printed.setdefault(name, set()).add(address)
    places = [int(printed.pop(word, {"0"}).pop(), 16) for word in ("bias", "heap begins")]
    return places, printed


def told(prefix):
    """By span's name: what its waits say of their locks, as (address, name)."""
    spans = truth.spans(prefix + ".traces.jsonl")
    found = {}
    for dictionary, profile in truth.profiles(prefix + ".profiles.jsonl"):
        kind = dictionary.strings[profile["sampleType"].get("typeStrindex", 0)]
        for sample in profile["samples"] if kind in ("contentions", "condition_waits", "semaphore_waits") else ():
            of, ids = dictionary.attributes(sample), dictionary.link(sample)
            name = spans[ids].name if ids in spans else "no span"
            if kind == "contentions" and name == "condition":
                continue  # its mutex
            found.setdefault(name, set()).add((of.get("spanprof.lock.address", ""), of.get("spanprof.lock.name", "")))
    return found


def expected_name(name, workload, places, address):
    bias, heap = places
    if name in NAMELESS:
        return ""
    if name == "heap":
        return f"[heap]+0x{int(address, 16) - heap:x}"
    if "stripped" in workload:
        return f"{os.path.basename(workload)}+0x{int(address, 16) - bias:x}"
    return NAMES[name]


def check_run(workload, places, printed, found):
    """Every wait is there; none has a wrong name."""
    program = os.path.basename(workload)
    check(set(found) >= set(printed), f"{program}: every wait is there: {set(printed) - set(found)}")
    for name, locks in sorted(found.items()):
        addresses = printed.get(name, set())
        check({address for address, _ in locks} <= addresses, f"{program}: {name}: the address is the lock's: {locks}, {addresses}")
        if name in PLUGINS:
            least = set() if name == "known plugin" else {""}
            check({lock for _, lock in locks} <= {PLUGINS[name]} | least, f"{program}: {name}: the right name, or none: {locks}")
        else:
            names = {lock.replace("wait_for_each.", "") for _, lock in locks}  # clang tells the function of a static variable
            wanted = {expected_name(name, workload, places, address) for address in addresses}
            check(names == wanted, f"{program}: {name}: it is called {wanted}: {names}")


def check_command(spanprof, prefix, workload):
    """`spans --holders` shows the lock, and parts lines by it."""
    text = subprocess.run([spanprof, "spans", prefix, "--holders", "--json", "--limit", "0"], stdout=subprocess.PIPE, text=True, check=True).stdout
    locks = {(wait["waiter"]["name"], wait["lock"]) for wait in json.loads(text)["waits"] if wait["waiter"]}
    if "stripped" not in workload:
        check({("member", NAMES["member"]), ("global", "names_global"), ("mapped", "")} <= locks, f"spans --holders names the lock: {locks}")


def main():
    """Run each workload, and judge what it left."""
    preload, spanprof, first, second, *workloads = sys.argv[1:]
    for workload in workloads:
        with tempfile.TemporaryDirectory(prefix="spanprof-locks-") as folder:
            prefix = os.path.join(folder, "p")
            places, printed = run(preload, workload, (first, second), prefix)
            check_run(workload, places, printed, told(prefix))
            check_command(spanprof, prefix, workload)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
