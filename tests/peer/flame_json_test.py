#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `spanprof flame --format json` and `spanprof spans --json` tell of a shop's files is what OpenTelemetry's own classes
read there, summed up here by other means.

usage: flame_json_test.py SHOP SPANPROF
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from otlp_decode import decode
from shop import Shop

SHOP, SPANPROF = sys.argv.pop(1), sys.argv.pop(1)
REQUESTS = 150

KINDS = ["unspecified", "internal", "server", "client", "producer", "consumer"]
STATUSES = ["unset", "ok", "error"]
TYPES = {"innermost": "cpu", "both": "cpu_innermost"}  # what tells CPU time span by span


def ask(*arguments):
    answer = subprocess.run([SPANPROF, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    return answer.returncode, json.loads(answer.stdout) if answer.stdout else answer.stderr


def samples_of(profiles, period_type):
    """{(frames, trace id, span id): nanoseconds} of the profiles of that period type; CPU samples are counts of periods."""
    sums = collections.Counter()
    for profile in profiles:
        if profile["period_type"] != period_type:
            continue
        factor = profile["period"] if profile["unit"] == "count" else 1
        for stack in profile["stacks"]:
            sums[tuple(stack["frames"]), stack["trace_id"], stack["span_id"]] += stack["value"] * factor
    return sums


def stacks_of(answer):
    """The same of the tool's answer; no stack may be there twice."""
    stacks = {(tuple(stack["frames"]), stack["trace_id"], stack["span_id"]): stack["value"] for stack in answer["stacks"]}
    assert len(stacks) == len(answer["stacks"]), "a stack with its link is listed twice"
    return collections.Counter(stacks)


def value_by_span(samples):
    values = collections.Counter()
    for (_, trace_id, span_id), value in samples.items():
        if span_id:
            values[trace_id, span_id] += value
    return values


def threads_by_span(profiles, period_type):
    """{(trace id, span id): threads that its samples name}."""
    threads = collections.defaultdict(set)
    for profile in profiles:
        for stack in profile["stacks"] if profile["period_type"] == period_type else []:
            threads[stack["trace_id"], stack["span_id"]].add(stack["attributes"]["thread.id"])
    return threads


def exceeds(span):
    """By a tenth and two ticks (of 1 ms) a thread."""
    return span["total_value"] > span["threads"] * (1.1 * span["duration_ns"] + 2_000_000)


class Answers:
    """One recording; the subclasses say in which format and with which links."""
    maxDiff = 4000
    more = {}

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="spanprof-peer-")
        cls.addClassCleanup(folder.cleanup)
        prefix = pathlib.Path(folder.name) / "shop"
        environment = {"SPANPROF_EXPORTER": "file", "SPANPROF_FILE": str(prefix), "SPANPROF_FILE_FORMAT": cls.format,
                       "SPANPROF_LINK_SCOPE": cls.scope, "SPANPROF_CPU_HZ": "1000", "SPANPROF_WINDOW_MS": "1000", **cls.more}
        with Shop(SHOP, prefix.with_suffix(".log"), environment) as shop:
            shop.visit(REQUESTS)
            shop.stop()
            assert not shop.complaints(), shop.text()
        ending = {"jsonl": "jsonl", "proto": "binpb"}[cls.format]
        cls.files = [f"{prefix}.traces.{ending}", f"{prefix}.profiles.{ending}"]
        cls.peer = decode(cls.files)
        cls.samples = samples_of(cls.peer["profiles"], TYPES[cls.scope])
        cls.by_span = value_by_span(cls.samples)

    def test_recording_is_worth_comparing(self):
        self.assertGreater(len(self.peer["profiles"]), 1, "several windows")
        self.assertGreater(len(self.by_span), 20, "spans with samples")
        self.assertGreater(len(self.samples), 50, "stacks")
        self.assertTrue(any("append_row_to_report" in frames for frames, _, span_id in self.samples if span_id))

    def test_flame_of_everything_is_every_sample(self):
        code, answer = ask("flame", *self.files, "--type", TYPES[self.scope], "--format", "json")
        self.assertEqual(code, 0, answer)
        self.assertEqual((answer["type"], answer["unit"]), (TYPES[self.scope], "nanoseconds"))
        self.assertEqual(answer["total"], sum(self.samples.values()))
        self.assertEqual(stacks_of(answer), self.samples)

    def test_flame_of_a_span_alone_is_what_links_to_it(self):
        busy = [span for span, _ in self.by_span.most_common(12)] + sorted(self.by_span)[:12]
        for trace_id, span_id in busy:
            code, answer = ask("flame", *self.files, "--span", span_id, "--self", "--format", "json")
            self.assertEqual(code, 0, answer)
            wanted = {key: value for key, value in self.samples.items() if key[1:] == (trace_id, span_id)}
            self.assertEqual(stacks_of(answer), wanted, span_id)
            self.assertEqual(answer["total"], self.by_span[trace_id, span_id])

    def test_flame_of_a_span_has_its_descendants(self):
        below = self.descendants()
        reports = [span for span in self.peer["spans"] if span["name"] == "GET /report"]
        self.assertGreater(len(reports), 5)
        for report in reports:
            spans = below[report["trace_id"], report["span_id"]]
            wanted = {key: value for key, value in self.samples.items() if key[1:] in spans}
            code, answer = ask("flame", *self.files, "--span", report["span_id"], "--format", "json")
            self.assertEqual(code, 0 if wanted else 1, answer)
            if wanted:
                self.assertEqual(stacks_of(answer), wanted, report["span_id"])

    def test_spans_are_the_files_spans_with_their_samples(self):
        below, threads = self.descendants(), threads_by_span(self.peer["profiles"], TYPES[self.scope])
        code, answer = ask("spans", *self.files, "--json")
        self.assertEqual(code, 0, answer)
        wanted = [{
            "trace_id": span["trace_id"], "span_id": span["span_id"], "parent_span_id": span["parent_span_id"],
            "name": span["name"], "service": span["resource"]["service.name"], "kind": KINDS[span["kind"]],
            "status": STATUSES[span["status"]["code"]], "start_time_ns": span["start_time_unix_nano"],
            "duration_ns": span["end_time_unix_nano"] - span["start_time_unix_nano"],
            "own_value": self.by_span[span["trace_id"], span["span_id"]],
            "total_value": sum(self.by_span[other] for other in below[span["trace_id"], span["span_id"]]),
            "threads": len(set().union(*(threads[other] for other in below[span["trace_id"], span["span_id"]]))),
        } for span in self.peer["spans"]]
        for span in wanted:
            span["overruns"] = bool(span["threads"]) and exceeds(span)
        got = [{key: value for key, value in span.items() if not key.endswith("_count")} for span in answer["spans"]]
        self.assertEqual(answer["count"], len(wanted))

        def order(span):
            return span["trace_id"], span["span_id"]
        self.assertEqual(sorted(got, key=order), sorted(wanted, key=order))

    def descendants(self):
        """{span: all spans at or below it}, by (trace id, span id)."""
        parents = {(span["trace_id"], span["span_id"]): (span["trace_id"], span["parent_span_id"]) for span in self.peer["spans"]}
        below = collections.defaultdict(set)
        for span in parents:
            above = span
            while above in parents:
                below[above].add(span)
                above = parents[above]
        return below


class JsonInnermost(Answers, unittest.TestCase):
    format, scope = "jsonl", "innermost"


class JsonTimestamps(Answers, unittest.TestCase):
    format, scope = "jsonl", "innermost"
    more = {"SPANPROF_TIMESTAMPS": "1"}

    def messages(self):
        """Each profile with its dictionary, as the file has it."""
        for line in pathlib.Path(self.files[1]).read_text(encoding="utf-8").splitlines():
            request = json.loads(line)
            for resource in request["resourceProfiles"]:
                for scope in resource["scopeProfiles"]:
                    yield from ((profile, request["dictionary"]) for profile in scope["profiles"])

    def test_every_sample_has_times_within_its_profile(self):
        for profile, _ in self.messages():
            start, duration = int(profile["timeUnixNano"]), int(profile["durationNano"])
            for sample in profile["samples"]:
                self.assertNotIn("values", sample)
                times = [int(time) for time in sample["timestampsUnixNano"]]
                self.assertEqual(times, sorted(times))
                self.assertTrue(start <= times[0] and times[-1] < start + duration, (start, duration, times))

    def test_times_of_linked_samples_are_within_their_spans(self):
        spans = {(span["trace_id"], span["span_id"]): span for span in self.peer["spans"]}
        inside = outside = 0
        for profile, dictionary in self.messages():
            for sample in profile["samples"]:
                link = dictionary["linkTable"][sample.get("linkIndex", 0)]
                span = spans.get((link.get("traceId"), link.get("spanId")))
                for time in map(int, sample["timestampsUnixNano"] if span else []):
                    if span["start_time_unix_nano"] <= time <= span["end_time_unix_nano"]:
                        inside += 1
                    else:
                        outside += 1
        # A span is active until its scope ends, which may be after its end.
        self.assertGreater(inside, 20 * outside)

    def test_stats_counts_each_time(self):
        code, answer = ask("stats", *self.files, "--json")
        self.assertEqual(code, 0, answer)
        cpu = next(kind for kind in answer["types"] if kind["type"] == "cpu")
        times = sum(len(sample["timestampsUnixNano"]) for profile, _ in self.messages() for sample in profile["samples"])
        self.assertEqual(cpu["linked"] + cpu["none"] + cpu["unknown"], times)
        self.assertEqual(sum(self.samples.values()), times * cpu["period"])
        self.assertNotIn("timestamps", cpu["dropped"])

    def test_check_and_convert_accept_them(self):
        self.assertEqual(subprocess.run([SPANPROF, "check", *self.files, "--backend", "pyroscope"], check=False,
                                        stdout=subprocess.DEVNULL, timeout=300).returncode, 0)
        with tempfile.TemporaryDirectory(prefix="spanprof-peer-") as folder:
            merged = pathlib.Path(folder) / "merged.pb"
            subprocess.run([SPANPROF, "convert", self.files[1], "-o", merged, "--to", "otlp"], check=True, timeout=300)
            code, answer = ask("flame", merged, "--type", "cpu", "--format", "json")
            self.assertEqual(code, 0, answer)
            self.assertEqual(stacks_of(answer), self.samples)


class ProtobufBoth(Answers, unittest.TestCase):
    format, scope = "proto", "both"

    def test_profile_by_roots_has_the_same_time(self):
        roots = samples_of(self.peer["profiles"], "cpu")
        self.assertEqual(sum(roots.values()), sum(self.samples.values()))
        entries = {(span["trace_id"], span["span_id"]) for span in self.peer["spans"] if not span["parent_span_id"]}
        self.assertLessEqual(set(value_by_span(roots)), entries)
        code, answer = ask("flame", *self.files, "--type", "cpu", "--format", "json")
        self.assertEqual(code, 0, answer)
        self.assertEqual(stacks_of(answer), roots)


if __name__ == "__main__":
    unittest.main()
