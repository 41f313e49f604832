#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples under `tracing` are linked to the span that was entered: tasks that migrate, threads, guards in any order. examples/rust-tracing has the
layer; it is built too, and has to run.

  rust_test.py LIBRARY [PRELOADED] [--seconds N] [options of truth.py]

LIBRARY is the libspanprof.so to run with; any of this ABI serves for what is built and kept in SPANPROF_TEST_CACHE. PRELOADED is a library whose
functions go before its: labels.c."""
import os, pathlib, shutil, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import tracers
import truth
from kept import kept
from truth import verdict

ROOT = pathlib.Path(__file__).resolve().parents[3]
CRATES = ["examples/rust-tracing", "tests/truth/tracers/rust"]
SOURCES = sorted(path for crate in CRATES for path in (ROOT / crate).rglob("*") if path.is_file() and "target" not in path.parts)
SOURCES += [ROOT / "tests/truth/tracers/work.c", ROOT / "tests/truth/truth_work.h"]
OLDEST = (1, 87)  # that the locked crates take
NO_ANSWER = ("could not resolve host", "failed to download", "download of config.json failed", "spurious network error", "timed out")


def build(library):
    """To be called with an empty folder to fill: both programs."""
    def make(path):
        if not shutil.which("cargo"):
            verdict.skip("there is no cargo in the PATH")
        version = subprocess.run(["cargo", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[1]
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
            verdict.skip(f"this is Rust {version}, the crates need {OLDEST[0]}.{OLDEST[1]}")
        work = path / "work"
        for source in SOURCES:
            (work / source.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, work / source.relative_to(ROOT))
        (work / "spanprof.pc").write_text(f"Name: spanprof\nDescription: not installed yet\nVersion: 0\nLibs: -L{library.parent} -lspanprof\n")
        environment = dict(os.environ, PKG_CONFIG_PATH=str(work), CARGO_TARGET_DIR=str(work / "target"))
        for crate in CRATES:
            done = subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "--bins", "--examples"], cwd=work / crate, env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                if any(words in done.stdout.lower() for words in NO_ANSWER):
                    verdict.skip("the registry of crates does not answer, so it cannot be built")
                verdict.fail(f"cargo build in {crate}\n{done.stdout[-4000:]}")
        for program in "examples/cart", "truth":
            shutil.copy(work / "target" / "release" / program, path)
        shutil.rmtree(work)
    return make


parser = truth.arguments(__doc__)
parser.add_argument("library", type=pathlib.Path)
parser.add_argument("preloaded", nargs="?", default="")
parser.add_argument("--seconds", type=verdict.seconds, default="1")
arguments = parser.parse_args()
programs = kept("truth-rust", SOURCES, build(arguments.library))
os.environ["LD_LIBRARY_PATH"] = str(arguments.library.parent)
if not arguments.engine:  # once is enough
    tracers.check_example([programs / "cart"])
    tracers.check_marks([programs / "truth", "0"])
run = tracers.run([programs / "truth", str(arguments.seconds)], arguments, LD_PRELOAD=arguments.preloaded)
tracers.finish("Rust tracing, tokio", run, arguments)
