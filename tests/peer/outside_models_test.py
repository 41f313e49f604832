#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our reader outside finds every thread's context in a live process, however the writer of the contexts was compiled and linked.

  outside_models_test.py DUMP NAME=WRITER:MODEL:PROGRAM[:LIBRARY]…

WRITER is spanprof or foreign. MODEL is by what the reader has to find the slot: local-exec, initial-exec, general-dynamic or tlsdesc, each with
/static or /block (which says where the slot lies), or nothing: the process cannot be read, and that is said.
A bar stands between models of which the linker may choose one.

Some programs are looked at in other ways, too: started through the loader, in a folder with a blank, and replaced while they run."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import foreign_tracer


def start(command):
    """The process, and what each of its threads says of itself."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env={"SPANPROF_EXPORTER": "none", "OTEL_SERVICE_NAME": "target", "SPANPROF_SYMBOLS": "none"})
    expected = {}
    for line in process.stdout:
        if line.strip() == "ready":
            return process, expected
        tid, work = line.split()
        expected[tid] = work
    sys.exit(f"FAILED: {command} exited with {process.wait()}")


def look(dump, process, tids):
    done = subprocess.run([dump, str(process.pid), *tids], stdout=subprocess.PIPE, text=True)
    lines = [line.rstrip("\n").split(" ", 1) for line in done.stdout.splitlines()]
    return dict(lines), done.stdout


def work_of(found):
    """What a line about a thread says."""
    words = found.split()
    if len(words) != 3:
        return found
    return foreign_tracer.work(words[0], words[1]) or f"torn: {found}"


def judge(writer, model, found, expected):
    if model == "nothing":
        return [] if all("otel_thread_ctx_v1" in found[tid] for tid in expected) else [f"it says {found}"]
    failures = [f"thread {tid} works for {work}, and is seen as {work_of(found.get(tid, 'missing'))}"
                for tid, work in expected.items() if work_of(found.get(tid, "missing")) != work]
    slot = "/".join(found.get("slot", "").split()[:2])
    if slot not in model.split("|"):
        failures.append(f"the slot was found by {slot}, not {model}")
    if writer == "spanprof" and found.get("process") != "target, schema tlsdesc_v1_dev":
        failures.append(f"the process context says {found.get('process')}")
    return failures


def loader_of(program):
    """What PT_INTERP says; None: the program is static."""
    with open(program, "rb") as file:
        data = file.read()
    begin, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for at in range(begin, begin + size * count, size):
        if struct.unpack_from("<I", data, at)[0] == 3:
            offset, length = struct.unpack_from("<Q", data, at + 8)[0], struct.unpack_from("<Q", data, at + 32)[0]
            return data[offset:offset + length - 1].decode()
    return None


def replace_by(other, path):
    shutil.copy(other, path + ".new")
    os.replace(path + ".new", path)


def ways(name, model, program, libraries, folder, other):
    """Names of ways to run a case, each with the command, what to do when the process stands still, and the models to be found."""
    yield name, [program, *libraries], None, model
    copies = [shutil.copy(path, folder) for path in [program, *libraries]]
    if model.startswith("local-exec") and loader_of(program):
        yield f"{name}, through the loader", [loader_of(program), *copies], None, model
    if model.startswith("local-exec"):
        yield f"{name}, replaced", copies, lambda: replace_by(other, copies[0]), model
    if libraries:  # only the privileged can still open the old file
        found = model if os.geteuid() == 0 else f"{model}|nothing"
        yield f"{name}, library replaced", copies, lambda: replace_by(other, copies[1]), found


def run(dump, writer, way):
    name, command, change, model = way
    process, expected = start(command)
    if change:
        change()
    found, text = look(dump, process, expected)
    process.stdin.close()
    process.wait()
    if "nothing" in model and not any(line.startswith("slot") for line in text.splitlines()):
        model = "nothing"
    failures = judge(writer, model, found, expected)
    print(f"{name}: {len(expected)} threads" + "".join(f"\n  FAILED: {failure}" for failure in failures))
    if failures:
        print(text)
    return bool(failures)


def main():
    dump, failed = sys.argv[1], 0
    for case in sys.argv[2:]:
        name, rest = case.split("=", 1)
        writer, model, program, *libraries = rest.split(":")
        with tempfile.TemporaryDirectory(prefix="outside models ") as folder:
            os.chmod(folder, 0o755)
            failed += sum(run(dump, writer, way) for way in ways(name, model, program, libraries, folder, dump))
    sys.exit(1 if failed or len(sys.argv) < 3 else 0)


if __name__ == "__main__":
    main()
