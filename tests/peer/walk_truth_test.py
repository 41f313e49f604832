#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks of programs that were not written for it: the SDK's walk against libunwind's and libgcc's, frame by frame.

usage: walk_truth_test.py BUILT SHOP [--stops N] [--only CLASS,…] [--markdown]
BUILT is the folder with the comparer and the programs in C. Those in C++, Rust and Go are built here with each compiler that is found, and
kept; a class whose compiler is missing is skipped, and said to be.

Judged, as plain counts of all stops:
  wrong                 none: no stack differs from both others, and none is called whole that is not, without a mark
  equal                 at least 99.9 % of the stops at which libunwind or libgcc come to a root frame have the same frames as one of them
In foreign classes (code without frame information) libgcc's frames, which end there, have to be the walk's first."""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import verdict
from kept import kept
from shop import Shop

HERE = pathlib.Path(__file__).resolve().parent / "walk_truth"
NAMES = ["equal", "equal_libgcc", "beyond", "lost", "doubt", "deep", "wrong_marked", "wrong"]
SECONDS = 120


class Missing(Exception):
    """What a class needs is not there."""


def need(*names):
    for name in names:
        if shutil.which(name):
            return name
    raise Missing(f"{' or '.join(names)} is not there")


def build(*command, **options):
    answer = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
                            **options)
    if answer.returncode != 0:
        raise AssertionError(f"{command[0]} fails:\n{answer.stdout}")


def built(name, *arguments):
    return lambda judge: [judge.built / f"walk_truth_{name}", *arguments]


def made(name, source, *command, **options):
    """The program that COMMAND makes of SOURCE, a file or a folder of HERE; it is kept. The command runs beside a copy of SOURCE."""
    version = subprocess.run([command[0], "version" if command[0] == "go" else "--version"], stdout=subprocess.PIPE, text=True).stdout
    path = HERE / source
    files = sorted(path.iterdir()) if path.is_dir() else [path]

    def make(folder):
        for file in files:
            shutil.copy(file, folder)
        build(*command, cwd=folder, **options)
    return [kept(f"walk-truth-{name}", files, make, version, *command) / "program"]


def cxx(compilers, level):
    def make(_judge):
        compiler = need(*compilers)
        return made(f"{compiler}{level}", "work_cxx.cc", compiler, "-std=c++17", level, "-pthread", "-o", "program", "work_cxx.cc")
    return make


def rust(_judge):
    return made("rust", "work_rust.rs", need("rustc"), "-O", "--edition", "2021", "-o", "program", "work_rust.rs")


def go(judge):
    return made("go", "work_go", need("go"), "build", "-o", "program", ".",
                env={**os.environ, "CGO_ENABLED": "1", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOCACHE": str(judge.folder / "go-cache")})


def python(_judge):
    program = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else need("python3")
    return [program, HERE / "work_python.py"]


CLASSES = {
    "shop": (None, {}),
    "sqlite": (built("sqlite"), {}),
    "zlib": (built("zlib"), {}),
    "c": (built("plain"), {}),
    "c-O0": (built("plain_O0"), {}),
    "c++ gcc -O2": (cxx(["g++"], "-O2"), {}),
    "c++ gcc -O0": (cxx(["g++"], "-O0"), {}),
    "c++ clang -O2": (cxx(["clang++-14", "clang++"], "-O2"), {}),
    "c++ clang -O0": (cxx(["clang++-14", "clang++"], "-O0"), {}),
    "rust": (rust, {}),
    "python": (python, {}),
    "functions": (built("functions"), {"stepped": True}),
    "go": (go, {"foreign": True, "alternate": True}),
    "jit keeping": (built("jit", "keeping"), {"foreign": True, "jit": True}),
    "jit foreign": (built("jit", "foreign"), {"foreign": True, "jit": True}),
    "jit leaving": (built("jit", "leaving"), {"foreign": True, "jit": True}),
}


class Judge:
    def __init__(self, options, folder):
        self.built, self.shop, self.stops = pathlib.Path(options.built), options.shop, options.stops
        self.folder = pathlib.Path(folder)

    def environment(self, out, traits):
        settings = {"WALK_TRUTH_OUT": out, "WALK_TRUTH_STOPS": self.stops, "WALK_TRUTH_SECONDS": SECONDS + self.stops // 50}
        if not traits.get("stepped"):
            settings["LD_PRELOAD"] = self.built / "libwalk_truth.so"
        if traits.get("foreign"):
            settings["WALK_TRUTH_FOREIGN"] = 1
        if traits.get("alternate"):
            settings["WALK_TRUTH_ALTERNATE_STACK"] = 1
        return {name: str(value) for name, value in settings.items()}

    def run_shop(self, environment, log):
        """Under load until the comparer ends it, in the middle of some request."""
        with Shop(self.shop, log, {"SPANPROF_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none", **environment}) as shop:
            with contextlib.suppress(OSError, http.client.HTTPException):
                while shop.process.poll() is None:
                    shop.visit(200)
            return shop.process.wait(SECONDS)

    def run(self, name):
        """The score of a class."""
        make, traits = CLASSES[name]
        out, log = self.folder / "score", self.folder / "log"
        out.unlink(missing_ok=True)
        environment = self.environment(out, traits)
        if make is None:
            code = self.run_shop(environment, log)
        else:
            command = [str(word) for word in make(self)]
            with open(log, "wb") as output:
                code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                      env={**os.environ, **environment}, timeout=2 * SECONDS + self.stops // 10).returncode
        if code != 0:
            raise AssertionError(f"it ended with {code}:\n{log.read_text(errors='replace')}")
        return json.loads(out.read_text())


def has_its_callers(stack):
    """work_jit's code is below call at depth 0, that below five of itself, main, two frames of libc and _start."""
    calls = stack[-10:-4]
    return len(calls) == 6 and calls[0] != calls[1] and len(set(calls[1:])) == 1


def judge(found, name, score, wanted, traits):
    comparable = score["stops"] - score["lost"] - score["deep"]
    equal = score["equal"] + score["equal_libgcc"]
    found.broken_if(score["wrong"], f"{name}: {score['wrong']} stacks are wrong without a mark")
    for example in score["examples"] if traits.get("jit") else []:
        found.broken_if(NAMES[example["verdict"]] == "beyond" and not has_its_callers(example["ours"]),
                        f"{name}: the callers of machine code are not {example['ours']}")
    found.enough(score["stops"], wanted, f"stops in {name}")
    if not traits.get("foreign"):
        found.unsure_if(equal * 1000 < comparable * 999, f"{name}: only {equal} of {comparable} are equal")
        found.broken_if(equal * 100 < comparable * 95, f"{name}: only {equal} of {comparable} are equal")


def show(example):
    print(f"  {NAMES[example['verdict']]}, end {example['end']}, {example['times']} times")
    stacks = [example[name] for name in ("ours", "libunwind", "libgcc")]
    for i in range(min(12, max(map(len, stacks)))):
        print("    " + "".join(f"{pathlib.PurePath(stack[i]).name if i < len(stack) else '-':40}" for stack in stacks))


def report(name, score, markdown):
    columns = [score["stops"], score["equal"], score["equal_libgcc"], score["beyond"], score["lost"], score["doubt"] + score["wrong_marked"],
               score["wrong"]]
    if markdown:
        print(f"| {name} | " + " | ".join(f"{number:,}" for number in columns) + f" | {score['frames'] / max(1, score['stops']):.1f} |",
              flush=True)
    else:
        print(f"{name:14}" + "".join(f"{title} {number:<8}" for title, number in zip(
            ("stops", "equal", "libgcc", "beyond", "lost", "doubt", "wrong"), columns)), flush=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("built")
    options.add_argument("shop")
    options.add_argument("--stops", type=verdict.count, default="500")
    options.add_argument("--only")
    options.add_argument("--markdown", action="store_true")
    options = options.parse_args()
    found = verdict.Verdict()
    for name in options.only.split(",") if options.only else CLASSES:
        with tempfile.TemporaryDirectory(prefix="spanprof-walk-") as folder:
            try:
                score = Judge(options, folder).run(name)
            except Missing as missing:
                print(f"{name}: SKIPPED: {missing}", flush=True)
                continue
            except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
                found.broken_if(True, f"{name}: {error}")
                print(f"{name}: {error}", flush=True)
                continue
        report(name, score, options.markdown)
        judge(found, name, score, options.stops, CLASSES[name][1])
        for example in score["examples"]:
            if NAMES[example["verdict"]] in ("wrong", "wrong_marked", "doubt"):
                show(example)
    found.finish()


main()
