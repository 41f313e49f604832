#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same calls through spanprof and through OpenTelemetry's SDK for Go have to yield the same spans, ids and times aside. And where their
ratio samplers differ, they have to differ as it is written here.

usage: api_calls_test.py PROGRAM
PROGRAM is api_calls/calls.c; the Go one is built once (api_calls/build.sh, which exits 77 when it cannot be). The table of calls is
api_calls/calls.txt.
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from otlp_decode import decode

PROGRAM = sys.argv.pop(1)
HERE = pathlib.Path(__file__).resolve().parent / "api_calls"
TABLE = HERE / "calls.txt"

# What the Go SDK calls a scope that was given no name.
GO_NO_NAME = "go.opentelemetry.io/otel/sdk/tracer"
# Every span that the table starts is exported, but for those under the unsampled parent.
SAMPLED = sorted(fields[1] for fields in (line.split("|") for line in TABLE.read_text().splitlines())
                 if fields[0] == "start" and not fields[1].endswith("_quiet"))
# Times that the table gives are below: the clock's are not compared.
GIVEN_BELOW = 1_500_000_000_000_000_000
# The sampled flag, and what OTLP adds to it. The Go SDK sets no random flag.
FLAGS = 0x301


def run(command, environment):
    """What the program printed: which span has which ids, and lines that have to be the same."""
    environment = {**{name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SPANPROF_"))},
                   **environment}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    names, traces, said = {"": ""}, {}, []
    for line in done.stdout.splitlines():
        words = line.split()
        if words[0] == "span":
            traces.setdefault(words[2], f"trace of {words[1]}")
            names[words[3]] = words[1]
        else:
            said.append(line)
    return names, traces, said


def given_time(time):
    return time if time < GIVEN_BELOW else "now"


class Spans:
    """What a program exported, by the names of the table."""

    def __init__(self, command, files, environment):
        self.names, self.traces, self.said = run(command, environment)
        self.by_name = {}
        for span in decode(files)["spans"]:
            name = self.names[span["span_id"]]
            if name in self.by_name:
                raise AssertionError(f"{name} was exported twice")
            self.by_name[name] = self.plain(span)

    def plain(self, span):
        del span["resource"]
        if span["scope"]["name"] == GO_NO_NAME:
            span["scope"]["name"] = ""
        for item in (span, *span["links"]):
            item["trace_id"] = self.traces.get(item["trace_id"], item["trace_id"])
            item["flags"] &= FLAGS
        for link in span["links"]:
            for key in ("trace_id", "span_id"):  # of a link to nothing, which the Go SDK writes out
                link[key] = "" if set(link[key]) == {"0"} else link[key]
            link["span_id"] = self.names.get(link["span_id"], link["span_id"])
        for event in span["events"]:
            event["time_unix_nano"] = given_time(event["time_unix_nano"])
        span["span_id"] = self.names[span["span_id"]]
        span["parent_span_id"] = self.names.get(span["parent_span_id"], span["parent_span_id"])
        for key in ("start_time_unix_nano", "end_time_unix_nano"):
            span[key] = given_time(span[key])
        return span


class ApiCalls(unittest.TestCase):
    maxDiff = None
    go_program = None

    def export(self, limits):
        with tempfile.TemporaryDirectory(prefix="spanprof-peer-") as folder:
            ours = Spans([PROGRAM, TABLE], [pathlib.Path(folder, "ours.traces.jsonl")],
                         {**limits, "SPANPROF_EXPORTER": "file", "SPANPROF_FILE": f"{folder}/ours", "SPANPROF_PROFILES": "none",
                          "SPANPROF_LINK_SCOPE": "none", "SPANPROF_LOG": "error"})
            theirs = Spans([self.go_program, TABLE, f"{folder}/theirs"], [pathlib.Path(folder, "theirs")], limits)
        return ours, theirs

    def compare(self, ours, theirs):
        self.assertEqual(ours.said, theirs.said)
        self.assertEqual(sorted(ours.by_name), SAMPLED)
        self.assertEqual(sorted(theirs.by_name), SAMPLED)
        for name, span in theirs.by_name.items():
            with self.subTest(span=name):
                self.assertEqual(ours.by_name[name], span)

    def test_spans_are_the_same(self):
        self.compare(*self.export({}))

    def test_spans_are_the_same_with_limits_on_attributes(self):
        """Of an error with attributes the Go SDK keeps those rather than exception.type."""
        ours, theirs = self.export({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "5", "OTEL_ATTRIBUTE_COUNT_LIMIT": "2",
                                    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT": "2", "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT": "1"})
        for spans in ours, theirs:
            for event in spans.by_name["errors"]["events"]:
                event["attributes"] = len(event["attributes"])
        self.compare(ours, theirs)

    def test_spans_are_the_same_with_a_limit_on_the_length_of_values(self):
        """The Go SDK cuts values of spans, and leaves those of events and links alone."""
        ours, theirs = self.export({"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "2"})
        for spans in ours, theirs:
            for span in spans.by_name.values():
                for item in span["events"] + span["links"]:
                    del item["attributes"]
        self.compare(ours, theirs)

    def test_as_many_events_and_links_are_dropped(self):
        """Which ones differs: the Go SDK drops the oldest."""
        ours, theirs = self.export({"OTEL_SPAN_EVENT_COUNT_LIMIT": "3", "OTEL_SPAN_LINK_COUNT_LIMIT": "4"})
        for spans in ours, theirs:
            for span in spans.by_name.values():
                span["events"], span["links"] = len(span["events"]), len(span["links"])
        self.assertEqual(ours.by_name["events"]["dropped"]["events"], 13)
        self.compare(ours, theirs)


# From 2^-56 to all but one of 2^53; 0.01 and 1/3 are no sums of powers of two.
RATIOS = ["0", "1.3877787807814457e-17", "0.0001", "0.01", "0.1", "0.25", "0.3333333333333333", "0.5", "0.75", "0.9", "0.99", "1"]


def mirror(trace_id):
    """The trace id that the Go SDK decides on as we do on TRACE_ID: it looks at other bytes, and from the other end.

    We follow the specification's threshold (trace/tracestate-probability-sampling.md): R, the last 56 bits, is not below
    2^56 - ratio * 2^56. The specification leaves open what traceidratio does; the Go SDK takes the upper 63 of the last 64 bits, which
    have to be below ratio * 2^63.
    """
    r = int(trace_id[18:], 16)
    return trace_id[:16] + f"{(2**56 - 1 - r) << 8:016x}"


class Ratios(unittest.TestCase):
    """Which trace ids the sampler traceidratio takes."""

    def decisions(self, program, trace_ids):
        done = subprocess.run([program, "ratios", *RATIOS], input="".join(f"{i}\n" for i in trace_ids), stdout=subprocess.PIPE, text=True,
                              timeout=120, check=True)
        return done.stdout.split()

    def setUp(self):
        numbers = random.Random(56)
        self.ids = [f"{numbers.getrandbits(128):032x}" for _ in range(1000)]
        self.ids += [f"{1:016x}{0:02x}{r:014x}" for edge in (0, 2**54, 2**55, 3 * 2**54, 2**56 - 1) for r in (edge - 1, edge, edge + 1)
                     if 0 <= r < 2**56]

    def test_ours_are_those_of_the_specification(self):
        expected = ["".join("ny"[int(i[18:], 16) >= 2**56 - int(float(ratio) * 2**56)] for ratio in RATIOS) for i in self.ids]
        self.assertEqual(self.decisions(PROGRAM, self.ids), expected)

    def test_the_go_sdk_decides_so_on_the_mirrored_trace(self):
        self.assertEqual(self.decisions(PROGRAM, self.ids), self.decisions(ApiCalls.go_program, map(mirror, self.ids)))

    def test_the_go_sdk_looks_at_the_upper_63_of_the_last_64_bits(self):
        expected = ["".join("ny"[int(i[16:], 16) >> 1 < int(float(ratio) * 2**63)] for ratio in RATIOS) for i in self.ids]
        self.assertEqual(self.decisions(ApiCalls.go_program, self.ids), expected)


def main():
    built = subprocess.run([HERE / "build.sh"], stdout=subprocess.PIPE, text=True)
    if built.returncode:
        sys.exit(built.returncode)
    ApiCalls.go_program = built.stdout.strip()
    unittest.main()


if __name__ == "__main__":
    main()
