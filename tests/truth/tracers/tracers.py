# SPDX-License-Identifier: Apache-2.0
"""What the tests of tracers share. Their spans are not spanprof's, so the programs say which work each does: lines "span TRACE SPAN WORK"."""
import fcntl, hashlib, os, pathlib, shutil, sys

import truth

CACHE = pathlib.Path(os.environ.get("SPANPROF_TEST_CACHE")
                     or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "spanprof-test")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def kept(name, sources, make):
    """The path of a folder that MAKE(the folder) has filled from SOURCES, and which is kept by their hash. One process makes it, others wait."""
    text = b"".join(source.read_bytes() for source in sources)
    path = CACHE / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"
    if not (path / "whole").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with open(CACHE / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (path / "whole").exists():
                print(f"building {path} (once)", flush=True)
                shutil.rmtree(path, ignore_errors=True)
                path.mkdir()
                make(path)
                (path / "whole").touch()
    return path


def run(command, arguments, **more):
    return truth.run(command, hz=arguments.hz, engine=arguments.engine, **more)


def check_marks(command):
    """Spans that samples may link to have pyroscope.profile.id. COMMAND says of a root and its child which have it: "marks root child"."""
    for scope, expected in ("root", "marks root"), ("innermost", "marks root child"), ("none", "marks"):
        found = [line for line in truth.run(command, SPANPROF_LINK_SCOPE=scope).output.splitlines() if line.startswith("marks")]
        if found != [expected]:
            sys.exit(f"FAILED: with the link scope {scope} the program should say {expected!r}, and says {found}")


def labels(output):
    """{(trace id, span id): work}"""
    found = {}
    for line in output.splitlines():
        if line.startswith("span "):
            _, trace, span, work = line.split()
            found[trace, span] = work
    return found


def finish(name, run, arguments, work=truth.work_of_stack, **bounds):
    verdicts = truth.judge(run.samples(), labels(run.output), work)
    truth.finish(name, run, verdicts, minimum=arguments.minimum_samples, labels=arguments.labels, **bounds)
