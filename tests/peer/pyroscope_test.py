#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SDK sends its profiles to a Pyroscope; asked for one request by its span id, that answers with the request's flamegraph.

usage: pyroscope_test.py SHOP
SPANPROF_TEST_PYROSCOPE is its URL, like http://127.0.0.1:4040; exits 77 without it.
"""
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
import urllib.request
import uuid

from otlp_decode import decode
from shop import Shop

SHOP = sys.argv.pop(1)
PYROSCOPE = os.environ.get("SPANPROF_TEST_PYROSCOPE", "").rstrip("/")
REQUESTS = 300
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def ask(method, question):
    request = urllib.request.Request(f"{PYROSCOPE}/querier.v1.QuerierService/{method}", json.dumps(question).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


class Pyroscope(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="spanprof-peer-")
        cls.addClassCleanup(holder.cleanup)
        prefix = pathlib.Path(holder.name) / "shop"
        cls.service = f"spanprof-peer-{uuid.uuid4().hex[:12]}"
        begin = time.time()
        environment = {"SPANPROF_EXPORTER": "otlp,file", "SPANPROF_FILE": str(prefix), "SPANPROF_CPU_HZ": "1000",
                       "SPANPROF_LINK_SCOPE": "root", "OTEL_SERVICE_NAME": cls.service, "OTEL_TRACES_EXPORTER": "none",
                       "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT": f"{PYROSCOPE}/v1development/profiles"}
        with Shop(SHOP, prefix.with_suffix(".log"), environment) as shop:
            shop.visit(REQUESTS)
            shop.stop()
            assert not shop.complaints(), shop.text()
        cls.range = {"profileTypeID": CPU, "labelSelector": f'{{service_name="{cls.service}"}}',
                     "start": int(begin - 60) * 1000, "end": int(time.time() + 60) * 1000}
        cls.profiles = decode([f"{prefix}.profiles.jsonl"])["profiles"]

    def nanoseconds(self, span_id=None):
        return sum(stack["value"] * profile["period"] for profile in self.profiles for stack in profile["stacks"]
                   if span_id in (None, stack["span_id"]))

    def names(self, span_id):
        return {frame for profile in self.profiles for stack in profile["stacks"] if stack["span_id"] == span_id
                for frame in stack["frames"]}

    def test_flamegraph_of_a_request_is_what_linked_to_it(self):
        spans = {stack["span_id"] for profile in self.profiles for stack in profile["stacks"]} - {""}
        self.assertTrue(spans)
        span_id = max(spans, key=self.nanoseconds)
        graph = ask("SelectMergeSpanProfile", {**self.range, "spanSelector": [span_id]}).get("flamegraph", {})
        self.assertEqual(int(graph.get("total", 0)), self.nanoseconds(span_id))
        self.assertEqual(set(graph["names"]) - {"total"}, self.names(span_id))

    def test_flamegraph_of_everything_is_every_sample(self):
        graph = ask("SelectMergeStacktraces", self.range).get("flamegraph", {})
        self.assertEqual(int(graph.get("total", 0)), self.nanoseconds())

    def test_another_span_has_nothing(self):
        graph = ask("SelectMergeSpanProfile", {**self.range, "spanSelector": ["0123456789abcdef"]}).get("flamegraph", {})
        self.assertEqual(int(graph.get("total", 0)), 0)


if __name__ == "__main__":
    if not PYROSCOPE:
        print("skipped: SPANPROF_TEST_PYROSCOPE does not name a Pyroscope")
        sys.exit(77)
    unittest.main()
