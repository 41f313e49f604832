#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the stages of scripts/test found.

  summary.py RESULTS STAGE…       exits with 1 when something failed
  summary.py --by-test RESULTS    of scripts/soak: how often which test failed; RESULTS has files LOAD-RUN.xml

RESULTS has for each stage STAGE.xml (JUnit, as ctest writes it; missing when nothing was run), STAGE.log (all that was printed) and
STAGE.ended (exit code and seconds). First comes a line for each stage, then the tests that were skipped or unsure, with the reason, then
what failed, with its last lines, then one line of totals."""
import collections, pathlib, re, sys
import xml.etree.ElementTree as ET

LAST_LINES = 40
KINDS = ("passed", "failed", "skipped", "unsure")


def read(path):
    """(kind, name, output) of each test in a JUnit file; KIND is passed, failed, skipped or unsure."""
    # Control characters come from tests' output, and XML does not allow them.
    text = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]", "?", path.read_text(errors="replace"))
    for case in ET.fromstring(text).findall("testcase"):
        output, status = case.findtext("system-out") or "", case.get("status")
        if status == "run":
            yield "passed", case.get("name"), output
        elif status == "fail" or case.find("failure") is not None:
            yield "failed", case.get("name"), output
        elif status != "disabled":
            yield "unsure" if re.search(r"^UNSURE:", output, re.M) else "skipped", case.get("name"), output


class Stage:
    def __init__(self, results, name):
        self.name, self.tests = name, {kind: [] for kind in KINDS}
        code, self.seconds = map(int, (results / f"{name}.ended").read_text().split())
        path, log = results / f"{name}.xml", (results / f"{name}.log").read_text(errors="replace")
        for kind, test, output in read(path) if path.exists() else ():
            self.tests[kind].append((test, output))
        if code and not self.tests["failed"]:
            self.tests["failed"].append((f"the stage itself, exit code {code}", log))
        elif not any(self.tests.values()):
            self.tests["skipped" if "SKIPPED:" in log else "failed"].append(("the whole stage", log))


def reason(output, mark):
    """The line of OUTPUT that says why."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marked = [line for line in lines if re.match(mark, line, re.I)]
    return (marked or lines or ["no reason was given"])[-1]


def tell_by_test(results):
    """Of many runs: a line for each test that did not always pass."""
    counts = collections.defaultdict(collections.Counter)
    for path in sorted(results.glob("*.xml")):
        load = path.stem.rsplit("-", 1)[0]
        for kind, test, output in read(path):
            counts[test][kind] += 1
            if kind == "failed":
                counts[test][load] += 1
                print(f"\nFAILED: {path.stem}: {test}", *("    " + line for line in output.splitlines()[-LAST_LINES:]), sep="\n")
    print(f"\n{'test':44} {'passed':>7} {'failed':>7} {'unsure':>7}")
    for test, count in sorted(counts.items()):
        if count["failed"] or count["unsure"]:
            print(f"{test:44} {count['passed']:7} {count['failed']:7} {count['unsure']:7}")
    total = {kind: sum(count[kind] for count in counts.values()) for kind in KINDS}
    print(f"\n{len(counts)} tests in {len(list(results.glob('*.xml')))} runs: " + ", ".join(f"{total[kind]} {kind}" for kind in KINDS))
    return 1 if total["failed"] else 0


def tell_stages(stages):
    print(f"\n{'stage':12} " + " ".join(f"{kind:>7}" for kind in (*KINDS, "seconds")))
    for stage in stages:
        print(f"{stage.name:12} " + " ".join(f"{len(stage.tests[kind]):7}" for kind in KINDS) + f" {stage.seconds:7}")
    for kind, title in ("skipped", "Skipped"), ("unsure", "Unsure, because this machine could not answer them now"):
        rows = [f"  {stage.name}: {test}: {reason(output, kind)}" for stage in stages for test, output in stage.tests[kind]]
        if rows:
            print(f"\n{title}:", *rows, sep="\n")
    for stage in stages:
        for test, output in stage.tests["failed"]:
            print(f"\nFAILED: {stage.name}: {test}", *("    " + line for line in output.splitlines()[-LAST_LINES:]), sep="\n")
    total = {kind: sum(len(stage.tests[kind]) for stage in stages) for kind in KINDS}
    print(f"\n{total['passed']} passed, {total['failed']} failed, {total['skipped'] + total['unsure']} skipped")
    return 1 if total["failed"] else 0


def main(arguments):
    if arguments[0] == "--by-test":
        return tell_by_test(pathlib.Path(arguments[1]))
    return tell_stages([Stage(pathlib.Path(arguments[0]), name) for name in arguments[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
