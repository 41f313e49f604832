#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""attach_test.py SPANPROF PLAIN STATIC SPANS REFUSING: `spanprof run --attach` on processes that run already: ones of ours, which publish no spans (PLAIN, and
STATIC, which no library can be loaded into) or do (SPANS), and ones that nobody here wrote. A process is sampled until it has used some CPU time, not for
some time, so that a busy machine changes nothing."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from recorded import check, end, plain_environment, spans_of, stacks_of

SPANPROF, PLAIN, STATIC, SPANS, REFUSING = sys.argv[1:]
WORK_S = 0.15


def wait_until(condition, what):
    deadline = time.monotonic() + 300
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"FAILED: {what} did not come within 300 s")
        time.sleep(0.01)


def cpu_of_threads(pid):
    """Seconds of CPU time by thread."""
    found = {}
    for path in glob.glob(f"/proc/{pid}/task/*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            found[path] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError):
            pass
    return found


class Target:
    """A process to attach to."""

    def __init__(self, *words, ready=True):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        if ready:
            check(self.process.stdout.readline() == "ready\n", f"{os.path.basename(words[0])} runs")

    def say(self, line):
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def works(self, threads):
        """Until so many threads have used WORK_S each."""
        before = cpu_of_threads(self.pid)
        wait_until(lambda: sum(cpu - before.get(path, 0) >= WORK_S for path, cpu in cpu_of_threads(self.pid).items()) >= threads, "work")

    def end(self):
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, out, err


class Attach:
    """One call of `spanprof run --attach` in a folder of its own, and what it left there."""

    def __init__(self, pid, *words, hz="1000", user=None, program=SPANPROF, refused=None):
        self.folder = tempfile.mkdtemp(prefix="spanprof-attach-")
        os.chmod(self.folder, 0o777)
        become = {"user": user, "group": user, "extra_groups": []} if user else {}
        without = [REFUSING, refused] if refused else []
        self.process = subprocess.Popen([*without, program, "run", "--attach", str(pid), "-o", "p", "--hz", hz, *words], cwd=self.folder, env=plain_environment(), text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **become)
        self.stderr = ""

    def starts(self):
        self.stderr = self.process.stderr.readline()
        check("is sampled" in self.stderr, f"it says that it samples: {self.stderr.strip()}")
        return self

    def end(self, signum=None):
        if signum:
            self.process.send_signal(signum)
        self.stdout, rest = self.process.communicate(timeout=300)
        self.stderr += rest
        self.code = self.process.returncode
        self.files = sorted(os.listdir(self.folder))
        return self

    def spans(self):
        return spans_of(os.path.join(self.folder, "p"))

    def stacks(self, *words):
        return stacks_of(SPANPROF, os.path.join(self.folder, "p"), *words)

    def remove(self):
        shutil.rmtree(self.folder)


def has(stacks, *names):
    """Whether a stack has all NAMES, in this order from the leaf on."""
    for stack in stacks:
        frames = iter(stack["frames"])
        if all(name in frames for name in names):
            return True
    return False


def of_one_span(attach, name, text):
    """All samples belong to the one span of the process."""
    spans, stacks = attach.spans(), attach.stacks()
    check([span["name"] for span in spans] == [name], f"{text}: one span: {[span['name'] for span in spans]}")
    check(stacks and all(stack["span_id"] == spans[0]["spanId"] for stack in stacks), f"{text}: every sample belongs to it")
    return stacks


def test_threads():
    for program in (PLAIN, STATIC):
        name = os.path.basename(program)
        target = Target(program, "spin")
        attach = Attach(target.pid).starts()
        target.works(2)
        attach.end(signal.SIGINT)
        stacks = of_one_span(attach, name, name)
        check(has(stacks, "spin_a_while", "work_in_main", "main") and has(stacks, "spin_a_while", "work_in_thread"),
              f"{name}: the functions of both threads: {stacks[:3]}")
        check(attach.code == 0 and attach.files == ["p.profiles.jsonl", "p.traces.jsonl"] and attach.stdout == "" and "work_in_main" in attach.stderr,
              f"{name}: SIGINT ends it with an answer, exit 0: {attach.code} {attach.files}")
        ended = target.end()
        check(ended == (7, "end\n", ""), f"{name}: the process notices nothing: {ended}")
        attach.remove()


def test_without_perf():
    target = Target(SPANS, "spans")
    attach = Attach(target.pid, refused="perf").starts()
    target.works(2)
    attach.end(signal.SIGINT)
    check("perf events are not permitted" in attach.stderr, "without perf events it says so")
    right, wrong, _ = count_links(attach.stacks())
    check(wrong == 0 and right > 0, f"without perf events: {right} right, {wrong} wrong")
    check(target.end() == (7, "end\n", ""), "without perf events the process notices nothing")
    attach.remove()


def test_late_thread():
    target = Target(PLAIN, "late")
    attach = Attach(target.pid).starts()
    target.say("go\n")
    wait_until(lambda: len(cpu_of_threads(target.pid)) == 2, "the second thread")
    target.works(2)
    attach.end(signal.SIGTERM)
    check(attach.code == 0 and has(attach.stacks(), "spin_a_while", "work_in_thread"), "a thread that begins after the attach is seen")
    check(target.end()[0] == 7, "its exit code stays")
    attach.remove()


def count_links(stacks):
    """Samples in functions that work for one span only: with the right span, a wrong one, none that is known."""
    right = wrong = unknown = 0
    for stack in stacks:
        kind = "01" if "work_for_one" in stack["frames"] else "02" if "work_for_two" in stack["frames"] else None
        if kind and not stack["span_id"]:
            unknown += stack["count"]
        elif kind and stack["span_id"] == kind + "01000000000000":
            right += stack["count"]
        elif kind:
            wrong += stack["count"]
    return right, wrong, unknown


def test_spans():
    target = Target(SPANS, "spans")
    attach = Attach(target.pid).starts()
    target.works(2)
    attach.end(signal.SIGINT)
    right, wrong, unknown = count_links(attach.stacks())
    check(wrong == 0 and right > 0, f"samples belong to the spans that the process publishes: {right} right, {wrong} wrong, {unknown} unknown")
    with open(os.path.join(attach.folder, "p.profiles.jsonl"), encoding="utf-8") as file:
        check("spanprof.from_outside" in file.read(), "the profiles say that they were taken from outside")
    check("publishes spans" in attach.stderr and "stood still" in attach.stderr, "it says how the process is read")
    ended = target.end()
    check(ended == (7, "end\n", ""), f"the process notices nothing: {ended}")
    attach.remove()


def test_calls():
    target = Target(SPANS, "calls")
    attach = Attach(target.pid, hz="5000").starts()
    target.works(1)
    attach.end(signal.SIGINT)
    ended = target.end()
    check(ended == (7, "end\n", ""), f"no system call is interrupted by a stop: {ended}")
    attach.remove()


def runs_of(pid, tid):
    """Seconds that a thread was on a core, and that it waited for one."""
    with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as file:
        return [int(word) / 1e9 for word in file.read().split()[:2]]


def test_sleeps():
    """Ticks come while a thread works. Visits must not come with them, or a thread that works and sleeps by turns never sleeps."""
    target = Target(PLAIN, "sleep")
    tid = max(int(tid) for tid in os.listdir(f"/proc/{target.pid}/task"))
    attach = Attach(target.pid, "--wall", hz="99").starts()
    began, before = time.monotonic(), runs_of(target.pid, tid)
    time.sleep(3)
    slept = time.monotonic() - began - sum(runs_of(target.pid, tid)) + sum(before)
    attach.end(signal.SIGINT)
    seen = sum(stack["value"] for stack in attach.stacks("--type", "wall") if "work_and_sleep" in stack["frames"] and "spin_a_while" not in stack["frames"]) / 1e9
    check(seen > slept / 2, f"a thread that works, too, is seen sleeping: {seen:.2f} of {slept:.2f} s")
    target.end()
    attach.remove()


def test_wall():
    target = Target(SPANS, "wait")
    attach = Attach(target.pid, "--wall").starts()
    target.works(1)
    attach.end(signal.SIGINT)
    waits = [stack for stack in attach.stacks("--type", "wall") if "wait_for_input" in stack["frames"]]
    check(waits and all(stack["span_id"] in ("0301000000000000", "") for stack in waits) and any(stack["span_id"] for stack in waits),
          f"a thread that waits is seen, under its span: {waits[:2]}")
    check(has(attach.stacks("--type", "wall"), "spin_a_while", "work_in_thread"), "wall time has what threads work, too")
    check(all(stack["frames"][0] == "poll" and stack["descriptor"] == "pipe" for stack in waits), "and what it waits for")
    check(target.end()[0] == 7, "its exit code stays")
    attach.remove()


def test_ends():
    target = Target(PLAIN, "spin")
    attach = Attach(target.pid).starts()
    target.works(1)
    check(target.end()[0] == 7, "the process ends")
    attach.end()
    check(attach.code == 0 and "has ended" in attach.stderr and has(attach.stacks(), "work_in_main"), f"that ends the attach: {attach.code} {attach.stderr[-300:]}")
    attach.remove()
    target = Target(PLAIN, "spin")
    attach = Attach(target.pid, "--duration", "50ms", "--quiet").end()
    check(attach.code == 0 and attach.stderr == "" and attach.files[-1:] == ["p.traces.jsonl"], f"--duration ends it: {attach.code} {attach.stderr} {attach.files}")
    target.end()
    attach.remove()


def test_others():
    """Programs that nobody here wrote."""
    target = Target(sys.executable, "-c", "print('ready', flush=True)\nimport threading, sys\nthreading.Thread(target=sys.stdin.read, daemon=True).start()\n"
                    "while True:\n    sum(range(1000))\n")
    attach = Attach(target.pid).starts()
    target.works(1)
    attach.end(signal.SIGINT)
    stacks = attach.stacks()
    check(any(name.startswith(("_Py", "Py")) for stack in stacks for name in stack["frames"]), f"Python is seen: {stacks[:1]}")
    target.process.kill()
    target.end()
    attach.remove()
    if not shutil.which("sqlite3"):
        return
    target = Target("sqlite3", ":memory:", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x) FROM c;", ready=False)
    wait_until(lambda: sum(cpu_of_threads(target.pid).values()) > 0, "sqlite3's work")
    attach = Attach(target.pid).starts()
    target.works(1)
    attach.end(signal.SIGINT)
    check(has(of_one_span(attach, "sqlite3", "sqlite3"), "sqlite3_step"), "sqlite3 is seen")
    target.process.kill()
    target.end()
    attach.remove()


def ended_child():
    """A process that has ended, and nobody has waited for it."""
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return child


def kernel_thread():
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        if int(text.rsplit(")", 1)[1].split()[6]) & 0x200000:
            return text.split()[0]
    return None


def test_refusals():
    child, kernel = ended_child(), kernel_thread()
    target = Target(PLAIN, "spin")
    thread = next(os.path.basename(os.path.dirname(path)) for path in cpu_of_threads(target.pid) if f"/{target.pid}/stat" not in path.split("task")[1])
    cases = [(("0",), "no process id"), (("-1",), "no process id"), (("",), "no process id"), (("fast",), "no process id"), (("12x",), "no process id"),
             (("99999999999",), "no process id"), (("4194305",), "no process 4194305"), ((child.pid,), "ended already"), ((thread,), "is a thread of process"),
             ((target.pid, "--duration", "x"), "like 10s"), ((target.pid, "--duration", "0"), "like 10s"), ((target.pid, "true"), "one of the two"),
             ((target.pid, "--hz", "20000"), "at most 10000"), ((target.pid, "--profiles", "heap"), "--profiles"), ((target.pid, "-o", "/nonexistent/p"), "-o")]
    cases += [((kernel,), "thread of the kernel")] if kernel else []
    for (pid, *words), expected in cases:
        attach = Attach(pid, *words).end()
        check(attach.code == 2 and expected in attach.stderr and attach.stderr.startswith("spanprof: run: ") and attach.stderr.count("\n") == 1 and attach.files == [],
              f"{pid} {' '.join(words)}: exit 2, a sentence, no file: {attach.code} {attach.stderr.strip()} {attach.files}")
        attach.remove()
    child.wait()
    own = subprocess.run(["sh", "-c", f"exec {SPANPROF} run --attach $$"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    check(own.returncode == 2 and "this command itself" in own.stderr, f"itself: {own.stderr.strip()}")
    without = subprocess.run([SPANPROF, "run", "--duration", "1s", "true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    check(without.returncode == 2 and "--attach" in without.stderr, f"--duration alone: {without.stderr.strip()}")
    if os.geteuid() == 0:
        with tempfile.TemporaryDirectory(prefix="spanprof-attach-") as folder:
            os.chmod(folder, 0o755)
            program = shutil.copy(SPANPROF, folder)
            attach = Attach(target.pid, user=65534, program=program).end()
            check(attach.code == 2 and "another user" in attach.stderr and attach.files == [], f"nobody: {attach.code} {attach.stderr.strip()}")
            attach.remove()
    attach = Attach(target.pid, refused="memory").end()
    check(attach.code == 2 and "seccomp" in attach.stderr and attach.files == [], f"no memory of others: {attach.code} {attach.stderr.strip()}")
    attach.remove()
    check(target.end() == (7, "end\n", ""), "a process that was refused notices nothing")


for test in (test_threads, test_without_perf, test_late_thread, test_spans, test_calls, test_sleeps, test_wall, test_ends, test_others, test_refusals):
    began = time.monotonic()
    test()
    print(f"{test.__name__}: {time.monotonic() - began:.1f} s")
end()
