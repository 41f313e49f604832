#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples under OpenTelemetry's SDK for Python are linked to the span that was current: threads, asyncio's tasks across await, native extensions.

  python_test.py LIBRARY WORK_LIBRARY [--seconds N] [options of truth.py]

LIBRARY is the libspanprof.so to load, or labels.c in its place; WORK_LIBRARY has the functions of truth_work.h. The packages are installed once, and kept in
SPANPROF_TEST_CACHE."""
import os, pathlib, re, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent))
import tracers
import truth
from kept import kept
from truth import verdict

REQUIREMENTS = HERE / "requirements.txt"
NO_ANSWER = r"connection broken|Max retries|timed out|name resolution|ProxyError"


def make_venv(path):
    for command in ([sys.executable, "-m", "venv", path / "venv"],
                    [path / "venv/bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--retries", "2",
                     "--timeout", "20", "--quiet", "-r", REQUIREMENTS]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            if re.search(NO_ANSWER, done.stdout):
                verdict.skip("the Python package registry does not answer, so there is no tracer")
            verdict.fail(f"{command[1:]}\n{done.stdout}")


# What a stack of an extension is told by: functions that only this work calls.
EXTENSIONS = {"deflate": re.compile(r"deflate|compress2?$"), "inflate": re.compile(r"inflate"), "sqlite": re.compile(r"sqlite3_"),
              "numpy": re.compile(r"numpy_|npy_|[yz]mm_vector|pcg64|quicksort")}
# The garbage collector looks at the objects of every work, whichever of them it interrupts.
VISIT = re.compile(r"_tp_(traverse|clear)_")


def extension_of_stack(names):
    for name in names:
        for work, pattern in EXTENSIONS.items():
            if pattern.search(name) and not VISIT.search(name):
                return work
    return truth.work_of_stack(names)


# The interpreter's own time between works, and of its start: most of a short run.
BOUNDS = {"other": 0.6}

parser = truth.arguments(__doc__)
parser.add_argument("library", type=pathlib.Path)
parser.add_argument("work_library")
parser.add_argument("--seconds", type=verdict.seconds, default="1")
parser.add_argument("--extensions", action="store_true")
arguments = parser.parse_args()
python = kept("truth-python", [REQUIREMENTS], make_venv) / "venv/bin/python"
os.environ.update(SPANPROF_LIBRARY=str(arguments.library), PYTHONPATH=str(ROOT / "examples/python"), PYTHONDONTWRITEBYTECODE="1")
program = [python, HERE / "python_work.py"]
if arguments.extensions:
    run = tracers.run(program + ["--extensions", arguments.work_library, str(arguments.seconds)], arguments)
    tracers.finish("Python, native extensions", run, arguments, work=extension_of_stack, **BOUNDS)
for case in [] if arguments.engine else [[], ["gevent"], ["eventlet"]]:  # once is enough
    subprocess.run([python, "-W", "ignore", HERE / "python_cases.py", *case], env=dict(os.environ, SPANPROF_EXPORTER="none"), check=True, timeout=120)
if not arguments.engine:
    tracers.check_example([python, ROOT / "examples/python/example.py"])
    tracers.check_marks(program + [arguments.work_library, "0"])
run = tracers.run(program + [arguments.work_library, str(arguments.seconds)], arguments)
tracers.finish("Python, asyncio and threads", run, arguments, **BOUNDS)
