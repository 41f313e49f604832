#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_test.py SPANPROF WORK STATIC OWN LIBRARY: `spanprof run` on programs that know nothing of it (WORK, and STATIC, which no library can be loaded into), on one that
uses spanprof itself (OWN), and LIBRARY loaded by hand."""
import fcntl
import glob
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from recorded import check, end, plain_environment, spans_of, stacks_of

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SPANPROF, WORK, STATIC, OWN, LIBRARY = sys.argv[1:]


class Run:
    """One call of `spanprof run` in a folder of its own, and what it left there."""

    def __init__(self, *words, prefix="p", environment=None, act=None):
        self.folder = tempfile.mkdtemp(prefix="spanprof-run-")
        self.prefix = os.path.join(self.folder, prefix)
        process = subprocess.Popen([SPANPROF, "run", *words], cwd=self.folder, env=plain_environment(**environment or {}), text=True, start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = ""
        if act:
            first = process.stdout.readline()
            act(process)
        self.stdout, self.stderr = process.communicate(timeout=300)
        self.stdout = first + self.stdout
        self.code = process.returncode
        self.files = sorted(os.path.basename(path) for path in glob.glob(os.path.join(self.folder, "*")))
        self.spans = spans_of(self.prefix)
        self.by_name = {span["name"]: span for span in self.spans}

    def stacks(self, *words):
        return stacks_of(SPANPROF, self.prefix, *words)

    def names(self):
        return sorted(span["name"] for span in self.spans)

    def end(self):
        shutil.rmtree(self.folder)


def run(*words, **options):
    return Run("-o", "p", "--quiet", "--hz", "1000", *words, **options)


def without_slow_forks(names):
    """NAMES with one "sh". A child that the shell forks is a span of its own when a busy machine keeps it from its exec for 20 ms."""
    return [name for number, name in enumerate(names) if name != "sh" or names.index(name) == number]


def checked_spins(result, text, names):
    """The spans have NAMES, every sample belongs to one of them, and some show the work."""
    check(without_slow_forks(result.names()) == sorted(names), f"{text}: spans {names}: {result.names()} {result.stderr.strip()}")
    stacks = result.stacks()
    check(any("run_work_spin" in stack["frames"] for stack in stacks), f"{text}: the work is seen")
    ids = {span["spanId"] for span in result.spans}
    check(all(stack["span_id"] in ids for stack in stacks), f"{text}: every sample is linked")


def test_program():
    result = run("--", WORK, "spin", environment={"TRACEPARENT": f"00-{TRACE}-{PARENT}-01"})
    check(result.code == 0 and result.stdout == "" and result.stderr == "", f"nothing is said, exit 0: {result.code} {result.stderr}")
    check(result.files == ["p.profiles.jsonl", "p.traces.jsonl"], f"one pair of files: {result.files}")
    checked_spins(result, "a program", ["run_work"])
    span = result.spans[0]
    check((span["traceId"], span["parentSpanId"]) == (TRACE, PARENT), "the span is under TRACEPARENT")
    result.end()


def test_answer():
    result = Run("--hz", "1000", "--", WORK, "spin", prefix="spanprof")
    check(result.stdout == "", "standard output is the program's")
    check("run before" not in result.stderr, "nothing is said of a run before")
    check("run_work_spin" in result.stderr and "spanprof flame spanprof --format html" in result.stderr, "the answer is on standard error")
    result.end()
    result = Run("-o", "p", "true")
    check("no samples" in result.stderr and "--wall" in result.stderr, "a run without samples says so")
    result.end()
    result = Run("-o", "p", "--wall", "--", WORK, "sleep")
    check("wall time: " in result.stderr and "--type cpu shows" in result.stderr, "with --wall the answer ends with the graph of wall time")
    result.end()


def exit_code(span):
    """What SPAN says of its end: its attribute, and whether its status is error."""
    codes = [int(attribute["value"]["intValue"]) for attribute in span["attributes"] if attribute["key"] == "process.exit.code"]
    return (codes[0] if codes else None, span.get("status", {}).get("code") == 2)


def test_exit_codes():
    """Of the ways of an end that tell one."""
    for script, expected in (("import os; os._exit(3)", (3, True)), ("import sys; sys.exit(-1)", (255, True)), ("pass", (0, False)),
                             ("import os; os.execv('/bin/true', ['true'])", (None, False))):
        result = run("--", sys.executable, "-c", script)
        spans = [span for span in result.spans if "python" in span["name"]]
        check([exit_code(span) for span in spans] == [expected], f"{script}: {result.spans}")
        result.end()
    result = run("--", WORK, "fork")
    check(sorted(exit_code(span) for span in result.spans) == [(0, False), (7, True)], f"of parent and child: {result.spans}")
    result.end()


def test_ends():
    for what, code in (("threads", 0), ("_exit", 5), ("quick_exit", 6), ("vfork", 0), ("without_storage", 7)):
        result = run("--", WORK, what)
        check(result.code == code, f"{what}: exit {code}: {result.code} {result.stderr}")
        checked_spins(result, what, ["run_work"])
        result.end()
    killed = Run("-o", "p", "--", "/bin/sh", "-c", "kill -9 $$")
    told = [line for line in killed.stderr.splitlines() if line.startswith("spanprof: ")]
    check(killed.code in (-9, 137) and len(told) == 1 and "killed before it could write" in told[0], f"a killed program: {killed.code} {told}")
    killed.end()
    for form, ending, part in ("", "jsonl", '{"resource'), ("proto", "binpb", "\\177abc"):
        torn = run("--", "/bin/sh", "-c", f"""{WORK} spin; for f in "$SPANPROF_RUN"/*.{ending} p.traces.{ending}; do
                   printf '{part}' >>"$f"; done; kill -9 $$""", environment={"SPANPROF_FILE_FORMAT": form})
        check(torn.stderr == "" and len(torn.stacks()) > 0, f"parts of requests that killed processes leave, {ending}: {torn.stderr}")
        torn.end()
    threads = run("--", WORK, "threads")
    check(sum("thread_main" in stack["frames"] for stack in threads.stacks()) > 0, "threads without a context are linked")
    threads.end()


def test_children():
    for way in ("fork", "fork_without_environment") + (("fork_as_another_user", ) if os.geteuid() == 0 else ()):
        result = run("--", WORK, way)
        checked_spins(result, way, ["run_work", "run_work"])
        parents = {span["parentSpanId"] for span in result.spans if span.get("parentSpanId")}
        check(len(parents) == 1 and parents <= {span["spanId"] for span in result.spans}, f"{way}: the child's span is under its parent's")
        check(result.files == ["p.profiles.jsonl", "p.traces.jsonl"], f"{way}: one pair of files: {result.files}")
        result.end()
    for _ in range(5):  # on a busy machine the child may live for 20 ms
        result = run("--", WORK, "short_fork")
        names, code = result.names(), result.code
        result.end()
        if names == ["run_work"] or code != 0:
            break
    check(names == ["run_work"] and code == 0, f"a child that ends at once is no span: {names} {code}")
    result = run("--", "/bin/sh", "-c", f"{WORK} spin; {WORK} spin")
    checked_spins(result, "a shell", ["run_work", "run_work", "sh"])
    shells = {span["spanId"] for span in result.spans if span["name"] == "sh"}
    check(all(span["parentSpanId"] in shells for span in result.spans if span["name"] == "run_work"), "the shell's children are under it")
    result.end()


def test_exec():
    result = run("--", WORK, "exec")
    checked_spins(result, "exec", ["run_work", "second"])
    check(result.by_name["second"]["parentSpanId"] == result.by_name["run_work"]["spanId"], "the new program is under the old one")
    result.end()
    result = run("--", WORK, "execle")
    check(result.code == 0, f"execle passes on its environment: {result.code}")
    result.end()
    result = run("--", WORK, "exec_nothing")
    check(result.code == 0, f"every exec fails as it does without us: {result.code}")
    check(len(result.spans) >= 2 and any("run_work_spin" in stack["frames"] for stack in result.stacks()),
          f"after an exec that failed it goes on: {result.names()}")
    result.end()


def test_one_thread():
    """What the kernel and the C library allow one thread only works as without us."""
    cases = [(("unshare", "-U", "sh", "-c", "echo entered; exit 3"), ["sh", "unshare"])]
    if os.geteuid() == 0:
        cases.append((("setpriv", "--inh-caps=-all", "--bounding-set=-all", "--reuid", "65534", "--clear-groups", "sh", "-c", "echo entered; exit 3"), ["setpriv"]))
    for words, names in cases:
        plain = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if (plain.returncode, plain.stdout) != (3, "entered\n"):
            print(f"skipped here: {' '.join(words[:2])} does not work without us either: {plain.stdout.strip()}")
            continue
        for _ in range(3):
            result = run("--", *words)
            check(result.code == 3 and result.stdout == "entered\n", f"{words[0]} {words[1]}: {result.code} {result.stdout} {result.stderr.strip()[:200]}")
            check(set(result.names()) >= set(names), f"with a span of each program: {result.names()}")
            result.end()
    count = "import os; print(len(os.listdir('/proc/self/task')))"
    result = run("--", sys.executable, "-c", count, "--type=zygote")
    check(result.stdout == "1\n" and "--type=zygote is not profiled: it must have one thread" in result.stderr, f"a zygote has one thread: {result.stdout} {result.stderr}")
    result.end()


def test_signals():
    result = run("--", WORK, "handlers")
    check(result.code == 0, f"a program sees the default handlers: {result.code} differ")
    result.end()
    result = run("--", WORK, "profiling_signal")
    check(result.code == 0, f"a program that handles SIGPROF, or sets its default, is not disturbed by ticks: {result.code}")
    checked_spins(result, "profiling_signal", ["run_work"])
    result.end()
    result = run("--", WORK, "blocking_threads")
    check(result.code == 0, f"a program that blocks all signals sees what it asked for: {result.code}")
    checked_spins(result, "blocking_threads", ["run_work"])
    result.end()
    for name in ("signal", "handler", "malloc"):
        for text, send in (("to spanprof", lambda process: process.send_signal(signal.SIGTERM)),
                           ("of a terminal", lambda process: os.killpg(process.pid, signal.SIGINT if name != "handler" else signal.SIGTERM))):
            result = run("--", WORK, name, act=send)
            expected = 11 if name == "handler" else -(signal.SIGTERM if text == "to spanprof" else signal.SIGINT)
            check(result.code == expected, f"{name}, {text}: ends by it: {result.code}")
            check(result.stdout == "ready\n", f"{name}, {text}: output")
            checked_spins(result, f"{name}, {text}", ["run_work"])
            result.end()


def test_after_the_end():
    """A process that starts when the run is over, and its folder gone, says nothing."""
    with tempfile.TemporaryDirectory(prefix="spanprof-run-") as folder:
        later = (f"p=$LD_PRELOAD; LD_PRELOAD= bash -c 'while [ -d {folder}/p.run-* ]; do sleep 0.02; done; "
                 f"LD_PRELOAD='$p' {WORK} spin; echo $? > {folder}/code' & exit 0")
        with open(os.path.join(folder, "stderr"), "w+", encoding="utf-8") as said:
            subprocess.run([SPANPROF, "run", "--quiet", "-o", os.path.join(folder, "p"), "--", "bash", "-c", later], stderr=said, check=True)
            for _ in range(6000):
                if os.path.exists(os.path.join(folder, "code")) and os.path.getsize(os.path.join(folder, "code")):
                    break
                time.sleep(0.02)
            said.seek(0)
            text = said.read()
        with open(os.path.join(folder, "code"), encoding="utf-8") as file:
            check(file.read() == "0\n", "a process that starts after the run runs")
        check("dropped" not in text and "not profiled" not in text, f"and says nothing: {text}")


def test_in_the_background():
    """A process that outlives the run is named, and later processes of the run do not take the files that the run has reported."""
    with tempfile.TemporaryDirectory(prefix="spanprof-run-") as folder:
        prefix, fifo = os.path.join(folder, "p"), os.path.join(folder, "fifo")
        os.mkfifo(fifo)
        script = (f'cat {fifo} >/dev/null 2>&1 & until [ -e "$SPANPROF_RUN/$!.traces.jsonl" ]; do sleep 0.02; done; echo $! "$SPANPROF_RUN"')
        done = subprocess.run([SPANPROF, "run", "--quiet", "-o", prefix, "--", "/bin/sh", "-c", script], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True, env=plain_environment())
        pid, left = done.stdout.split()
        check(f"1 process of this run goes on in the background (cat, PID {pid})" in done.stderr and f"stay in {left};" in done.stderr, f"named: {done.stderr}")
        reported = open(prefix + ".traces.jsonl", "rb").read()
        environment = plain_environment(LD_PRELOAD=LIBRARY, SPANPROF_EXPORTER="file", SPANPROF_FILE=prefix, SPANPROF_RUN=left)
        for program in ([WORK, "spin"], [OWN]):
            subprocess.run(program, env=environment, check=True)
        check(not os.path.exists(prefix + ".1.traces.jsonl") and open(prefix + ".traces.jsonl", "rb").read() == reported, f"untouched: {os.listdir(folder)}")
        check(len(glob.glob(left + "/*.traces.jsonl")) == 3, f"later processes write in the folder: {os.listdir(left)}")
        with open(fifo, "w", encoding="utf-8"):
            pass
        with open(f"{left}/{pid}.traces.jsonl", encoding="utf-8") as written:
            fcntl.flock(written, fcntl.LOCK_EX)
        check([span["name"] for span in spans_of(f"{left}/{pid}")] == ["cat"], "and its file has its span")
        done = subprocess.run([SPANPROF, "run", "--quiet", "-o", f"{prefix}1", "--", WORK, "daemon", fifo], stderr=subprocess.PIPE, text=True, check=True,
                              env=plain_environment())
        with open(fifo, "w", encoding="utf-8"):
            check("1 process of this run goes on in the background (run_work, PID " in done.stderr, f"a daemon without environment is named: {done.stderr}")
        late = subprocess.Popen([OWN], env=environment | {"SPANPROF_RUN": os.path.join(folder, "removed")})
        check(late.wait() == 0 and [span["name"] for span in spans_of(f"{prefix}.{late.pid}")] == ["own work"], f"after the run: {os.listdir(folder)}")
        check(open(prefix + ".traces.jsonl", "rb").read() == reported, "and what the run has reported is untouched")
        script = f'echo {os.getpid()} >"$SPANPROF_RUN/{os.getpid()}"'
        subprocess.run([SPANPROF, "run", "--quiet", "-o", f"{prefix}2", "--", "/bin/sh", "-c", script], stderr=subprocess.DEVNULL, check=True, env=plain_environment())
        check(len(glob.glob(f"{prefix}2.run-*/first")) == 1, f"a process that has claimed its files and not made them yet keeps the folder: {os.listdir(folder)}")


def test_profiles():
    for words, environment in ((["--wall"], {}), (["--profiles", "wall"], {}), (["--profiles", "cpu,wall"], {}), ([], {"SPANPROF_PROFILES": "wall"})):
        result = run(*words, "--", WORK, "sleep", environment=environment | {"SPANPROF_WALL_HZ": "200"})
        stacks = result.stacks("--type", "offcpu")
        check(any(stack["span_id"] == result.spans[0]["spanId"] for stack in stacks), f"{words} {environment}: the wait is seen and linked")
        result.end()
    result = Run("-o", "p", "--profiles", "wall", "--", "true")
    check("--wall" not in result.stderr, f"a run that records wall time is not told to{': ' + result.stderr if '--wall' in result.stderr else ''}")
    result.end()
    result = run("--wall", "--", WORK, "short_threads", environment={"SPANPROF_WALL_HZ": "200"})
    seen = sum(stack["value"] for stack in result.stacks("--type", "offcpu") if "run_work_live_shortly" in stack["frames"]) / 1e9
    check(seen > 2, f"--wall: threads that live for 0.1 s are seen: {seen:.2f} s of 4.8")
    result.end()
    result = run("--profiles", "alloc", "--", WORK, "allocate", environment={"SPANPROF_ALLOC_BYTES": "1024"})
    check(any("allocate" in stack["frames"] and stack["span_id"] for stack in result.stacks("--type", "alloc")), "--profiles alloc")
    result.end()
    result = run("--", OWN)
    check("spanprof run" not in json.dumps(result.spans) and len(result.spans) > 0 and "run_own" not in result.names(),
          f"a program that uses spanprof has its own spans: {result.names()}")
    result.end()


def test_programs_without_symbols():
    """The answer says what would give their functions names, and only of them."""
    folder = tempfile.mkdtemp(prefix="spanprof-run-")
    stripped = os.path.join(folder, "stripped")
    subprocess.run(["strip", "-o", stripped, WORK], check=True)
    for program, expected in ((stripped, True), (WORK, False)):
        result = Run("-o", "p", "--hz", "1000", "--", program, "spin")
        says = "of the samples are in functions without a name, most of them in stripped: install its debug symbols" in result.stderr
        right = says == expected and "1 process in the files p.*" in result.stderr
        check(right, f"{os.path.basename(program)}: {'a' if expected else 'no'} remark on names{'' if right else ': ' + result.stderr}")
        result.end()
    shutil.rmtree(folder)


def test_programs_that_use_spanprof():
    """Their files are those of the run, whether they are its first process or not."""
    result = Run("-o", "p", "--hz", "1000", "--", OWN)
    check(result.files == ["p.profiles.jsonl", "p.traces.jsonl"] and "1 process in the files p.*" in result.stderr, f"alone: {result.files} {result.stderr}")
    check(result.spans and "nothing was recorded" not in result.stderr, f"alone: {result.names()} {result.stderr}")
    own = result.names()
    result.end()
    result = Run("-o", "p", "--hz", "1000", "--", OWN, "fork")
    check(result.files == ["p.profiles.jsonl", "p.traces.jsonl"] and "3 processes in the files p.*" in result.stderr, f"forking: {result.files} {result.stderr}")
    check(result.names() == sorted(3 * own), f"forking: {result.names()} {result.stderr}")
    result.end()
    result = run("--", "/bin/sh", "-c", f"{OWN}; {WORK} spin; {OWN}; true")
    check(result.files == ["p.profiles.jsonl", "p.traces.jsonl"] and result.stderr == "", f"as children: {result.files} {result.stderr}")
    check(without_slow_forks(result.names()) == sorted(2 * own + ["run_work", "sh"]), f"as children: {result.names()}")
    result.end()


def test_signals_to_programs_that_use_spanprof():
    """The recording is written although the program does not handle the signal, and the program ends by the signal."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        result = Run("-o", "p", "--", OWN, "signal", str(int(number)))
        check(result.code == -number, f"{number}: ends by it: {result.code}")
        check(result.names() == ["own work"] and "nothing was recorded" not in result.stderr, f"{number}: is written: {result.names()} {result.stderr}")
        result.end()
    for what, code, names in (("worker_signal", 0, 2 * ["own work"]), ("early_signal", -signal.SIGTERM, []), ("exec", 0, ["own work"])):
        result = run("--", OWN, what)
        check((result.code, result.names()) == (code, names), f"{what}: {result.code} {result.names()} {result.stderr}")
        result.end()


def test_files_of_an_earlier_run():
    """A file that was there before stays as it is, whatever its time says, also under the name that a forked child's file has."""
    with tempfile.TemporaryDirectory(prefix="spanprof-run-") as folder:
        prefix, left = os.path.join(folder, "p"), os.path.join(folder, "p.99.traces.jsonl")
        with open(left, "w", encoding="utf-8") as file:
            file.write("{}\n")
        os.utime(left, (time.time() + 3600, time.time() + 3600))
        for files in (["p.99.traces.jsonl", "p.profiles.jsonl", "p.traces.jsonl"],
                      ["p.1.profiles.jsonl", "p.1.traces.jsonl", "p.99.traces.jsonl", "p.profiles.jsonl", "p.traces.jsonl"]):
            subprocess.run([SPANPROF, "run", "-o", prefix, "--quiet", "--", OWN, "fork"], check=True)
            names = [span["name"] for span in spans_of(prefix)]
            check(sorted(os.listdir(folder)) == files and names == 3 * names[:1], f"beside an earlier run: {sorted(os.listdir(folder))} {names}")


def test_elsewhere():
    result = Run("--quiet", "--", WORK, "spin", environment={"SPANPROF_EXPORTER": "none"})
    check(result.code == 0 and result.files == [], f"SPANPROF_EXPORTER=none writes nothing: {result.files} {result.stderr}")
    result.end()
    result = run("--", WORK, "spin", environment={"SPANPROF_FILE_FORMAT": "proto"})
    check(result.files == ["p.profiles.binpb", "p.traces.binpb"] and len(result.stacks()) > 0, f"the other format: {result.files}")
    result.end()
    result = run("--", WORK, "spin")
    again = subprocess.run([SPANPROF, "run", "-o", result.prefix, "--quiet", "--", WORK, "spin"], check=False)
    kept = sorted(os.path.basename(path) for path in glob.glob(result.prefix + ".*"))
    told = subprocess.run([SPANPROF, "run", "-o", result.prefix, "--", WORK, "spin"], stderr=subprocess.PIPE, text=True, check=False).stderr
    check(told.endswith(f"\nspanprof: the files of the run before are kept as {result.prefix}.1.*\n"), f"that is the last line: {told}")
    check(again.returncode == 0 and kept == ["p.1.profiles.jsonl", "p.1.traces.jsonl", "p.profiles.jsonl", "p.traces.jsonl"],
          f"the run before is kept: {kept}")
    result.end()
    with tempfile.TemporaryDirectory(prefix="spanprof-run-") as folder:
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, SPANPROF_EXPORTER="file", SPANPROF_FILE=os.path.join(folder, "q"))
        subprocess.run([WORK, "spin"], env=environment, check=True)
        with open(os.path.join(folder, "q.traces.jsonl"), encoding="utf-8") as file:
            check('"run_work"' in file.read(), "the library by hand")


def test_a_prefix_that_another_program_writes():
    """The answer is of this run, and the other program's files stay as they are."""
    with tempfile.TemporaryDirectory(prefix="spanprof-run-") as folder:
        path = os.path.join(folder, "p.traces.jsonl")
        with open(path, "w", encoding="utf-8") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            done = subprocess.Popen([SPANPROF, "run", "-o", "p", "--hz", "1000", "--", WORK, "spin"], cwd=folder, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=plain_environment())
            said = done.communicate(timeout=300)[1]
        own = f"p.{done.pid}"
        check(f"another program writes p.* now: this run writes {own}.*" in said, f"it is told: {said}")
        check(done.returncode == 0 and said.count("another p") == 1 and "run_work_spin" in said, f"and the run is shown: {said}")
        check(f"1 process in the files {own}.*" in said and os.path.getsize(path) == 0, f"under its own name: {sorted(os.listdir(folder))}")


def test_pull():
    """All processes inherit the address; the first one gets it, and only that one warns when it does not."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        for level in "warn", "info":
            result = run("--", "/bin/sh", "-c", f"{WORK} spin; {WORK} fork; true", environment={
                "SPANPROF_PULL": f"127.0.0.1:{kept.getsockname()[1]}", "SPANPROF_LOG": level})
            told = [result.stderr.count(words) for words in ("pulled from port", "that this one comes from has the port", "in use")]
            fine = told[0] == 1 and told[1] >= 3 and told[2] == 0 if level == "info" else told == [0, 0, 0]
            check(fine, f"the first process is pulled from, {level}: {told} {result.stderr}")
            result.end()
        kept.listen()
        result = run("--", "/bin/sh", "-c", f"{WORK} spin; {WORK} spin; true", environment={"SPANPROF_PULL": f"127.0.0.1:{kept.getsockname()[1]}"})
        check(result.stderr.count("Address already in use") == 1 == result.stderr.count("SPANPROF_PULL"), f"a port that is taken: {result.stderr}")
        result.end()


def changed_rights(folder):
    """A program that changes its rights when this user runs it."""
    if os.geteuid() != 0:
        return shutil.which("passwd") or shutil.which("su")
    path = os.path.join(folder, "changes_rights")
    shutil.copy("/bin/true", path)
    os.chown(path, 65534, 65534)
    os.chmod(path, 0o755 | stat.S_ISUID)
    return path


def test_refusals():
    with tempfile.TemporaryDirectory(prefix="spanprof-run-") as folder:
        plain, script = os.path.join(folder, "plain"), os.path.join(folder, "script")
        with open(plain, "w", encoding="utf-8") as file:
            file.write("no program\n")
        special = changed_rights(folder)
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#! {special} -x\n")
        os.chmod(script, 0o755)
        cases = [((), "no program is named"), (("--hz", "fast", "true"), "whole number"), (("--no", "true"), "unknown option"),
                 (("no-such-program-here",), "not found in PATH"), (("./nothing",), "No such file"), ((folder,), "is a directory"),
                 ((plain,), "chmod +x"), (("-o", "/nonexistent/p", "true"), "/nonexistent/p"), (("--attach", "x"), "no process id"),
                 (("-o", "x" * 5000, "true"), "too long")]
        cases += [((special,), "other rights"), ((script,), "other rights")] if special else []
        for words, expected in cases:
            result = Run(*words)
            check(result.code == 2 and expected in result.stderr and result.stderr.count("\n") == 1 and result.files == [],
                  f"{' '.join(words)[:60]}: exit 2, a sentence, no file: {result.code} {result.stderr.strip()[:200]} {result.files}")
            result.end()
    result = run("--", STATIC, "spin")
    check(result.code == 0 and "static program" in result.stderr and "--attach PID" in result.stderr and "nothing was recorded" in result.stderr and result.files == [],
          f"a static program: {result.code} {result.stderr} {result.files}")
    result.end()


for test in (test_program, test_answer, test_ends, test_exit_codes, test_children, test_exec, test_one_thread, test_signals, test_after_the_end, test_in_the_background, test_profiles, test_programs_without_symbols, test_programs_that_use_spanprof,
             test_signals_to_programs_that_use_spanprof, test_files_of_an_earlier_run,
             test_elsewhere, test_a_prefix_that_another_program_writes, test_pull, test_refusals):
    began = time.monotonic()
    test()
    print(f"{test.__name__}: {time.monotonic() - began:.1f} s")
end()
