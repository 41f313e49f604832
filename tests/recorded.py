# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of `spanprof run` and of `spanprof run --attach`: an environment without settings, the content of a recording, and checks that
continue after a failure."""
import json
import os
import subprocess
import sys

failures = []


def check(ok, text):
    print(("ok: " if ok else "FAILED: ") + text)
    if not ok:
        failures.append(text)


def end():
    """Exits. What failed is told once more, for the summary of all tests shows only the last lines."""
    for text in failures:
        print("FAILED: " + text[:1000])
    sys.exit(1 if failures else 0)


def plain_environment(**more):
    """This process's environment without the variables that the SDK and the command read, and with MORE."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SPANPROF_", "OTEL_", "TRACE"))} | more


def spans_of(prefix):
    """The spans in PREFIX.traces.jsonl, in the order of the file; an empty list when there is no such file."""
    path = prefix + ".traces.jsonl"
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        scopes = [scope for line in file for resource in json.loads(line)["resourceSpans"] for scope in resource["scopeSpans"]]
    return [span for scope in scopes for span in scope["spans"]]


def stacks_of(tool, prefix, *words):
    """The stacks that `spanprof flame PREFIX WORDS` prints as JSON; an empty list when nothing matches."""
    answer = subprocess.run([tool, "flame", prefix, "--format", "json", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return json.loads(answer.stdout)["stacks"] if answer.returncode == 0 else []
