#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What OpenTelemetry's classes read in our golden files (tests/golden) must be what golden_data.h put in.

usage: otlp_decode_test.py GOLDEN_DIRECTORY
The expected values below are written by hand from golden_data.h; neither our encoder nor our .proto files had a part in them.
"""
import gzip
import pathlib
import sys
import tempfile
import unittest

import otlp_decode
from otlp_decode import bytes_of_hex, decode, messages_of_file

GOLDEN = pathlib.Path(sys.argv.pop() if len(sys.argv) > 1 else ".")

TRACE = "5b8efff798038103d269b633813fc60c"
ROOT = "eee19b7ec3c1b174"
RESOURCE = {"service.name": "shop", "process.pid": 4242}
HTTP = {"name": "http", "version": "1.2", "attributes": {"team": "cart"}, "dropped_attributes_count": 4,
        "schema_url": "https://opentelemetry.io/schemas/1.30.0"}

SPANS = [
    {"trace_id": TRACE, "span_id": ROOT, "parent_span_id": "1122334455667788", "trace_state": "vendor=1", "name": "GET /cart",
     "kind": 2, "flags": 0x301, "start_time_unix_nano": 1700000000000000001, "end_time_unix_nano": 1700000000050000000,
     "status": {"code": 2, "message": "no été"},
     "attributes": {"http.route": "/cart", "http.response.status_code": 500, "load": 0.1, "retried": False, "user": "",
                    "delta": -1, "words": ["a", "", "é"], "numbers": [0, -1, 2**63 - 1], "reals": [0.1, -2.5],
                    "truths": [True, False], "nothing": []},
     "events": [{"time_unix_nano": 1700000000000000002, "name": "exception",
                 "attributes": {"exception.type": "ENOENT", "tries": [0]}, "dropped_attributes_count": 5},
                {"time_unix_nano": 1700000000000000003, "name": "", "attributes": {}, "dropped_attributes_count": 0}],
     "links": [{"trace_id": "aa0000000000000000000000000000bb", "span_id": "cc000000000000dd", "flags": 0x101,
                "attributes": {"why": "queue \"a\"\n"}, "dropped_attributes_count": 2}],
     "dropped": {"attributes": 1, "events": 6, "links": 3}, "scope": HTTP, "resource": RESOURCE},
    {"trace_id": TRACE, "span_id": "000000000000002b", "parent_span_id": "", "trace_state": "", "name": "poll",
     "kind": 5, "flags": 0x101, "start_time_unix_nano": 1700000000030000000, "end_time_unix_nano": 1700000000030000000,
     "status": {"code": 1, "message": ""}, "attributes": {}, "events": [], "links": [],
     "dropped": {"attributes": 0, "events": 0, "links": 0}, "scope": HTTP, "resource": RESOURCE},
    {"trace_id": TRACE, "span_id": "000000000000002a", "parent_span_id": ROOT, "trace_state": "", "name": "select",
     "kind": 1, "flags": 0x101, "start_time_unix_nano": 1700000000010000000, "end_time_unix_nano": 1700000000020000000,
     "status": {"code": 0, "message": ""}, "attributes": {}, "events": [], "links": [],
     "dropped": {"attributes": 0, "events": 0, "links": 0},
     "scope": {"name": "sql", "version": "", "attributes": {}, "dropped_attributes_count": 0, "schema_url": ""},
     "resource": RESOURCE},
]

STACK_MAIN = ["main"]
STACK_RENDER = ["render(int)", "main", "main"]

# The scope's version is the library's and changes with it.
PROFILES = [
    {"type": "samples", "unit": "count", "period_type": "cpu", "period_unit": "nanoseconds", "period": 10101010,
     "time_unix_nano": 1700000000000000000, "duration_nano": 10000000000, "profile_id": "0102030405060708090a0b0c0d0e0f10",
     "attributes": {"spanprof.unattributed_ns": 12345, "ratio": 0.5, "done": True}, "resource": RESOURCE,
     "stacks": [
         {"frames": STACK_RENDER, "value": 200, "count": 1, "trace_id": TRACE, "span_id": ROOT,
          "attributes": {"thread.name": "w-1"}},
         {"frames": STACK_MAIN, "value": 1, "count": 1, "trace_id": "", "span_id": "", "attributes": {}}]},
    {"type": "off_cpu", "unit": "nanoseconds", "period_type": "", "period_unit": "", "period": 0,
     "time_unix_nano": 1700000000000000000, "duration_nano": 10000000000, "profile_id": "", "attributes": {},
     "resource": RESOURCE,
     "stacks": [{"frames": STACK_MAIN, "value": 5000000000, "count": 1, "trace_id": TRACE, "span_id": ROOT,
                 "attributes": {}}]},
]


def without_scope(profiles):
    return [{key: value for key, value in profile.items() if key != "scope"} for profile in profiles]


class GoldenFiles(unittest.TestCase):
    maxDiff = None

    def test_traces_say_what_was_put_in(self):
        for name in ("traces.hex", "traces.json"):
            self.assertEqual(decode([GOLDEN / name]), {"spans": SPANS, "profiles": []}, name)

    def test_profiles_say_what_was_put_in(self):
        for name in ("profiles.hex", "profiles.json"):
            got = decode([GOLDEN / name])
            self.assertEqual(got["spans"], [])
            self.assertEqual([profile["scope"]["name"] for profile in got["profiles"]], ["spanprof", "spanprof"])
            self.assertEqual(without_scope(got["profiles"]), PROFILES, name)

    def test_bytes_are_those_that_the_peer_writes(self):
        for name in ("traces.hex", "profiles.hex"):
            message, = messages_of_file(GOLDEN / name)
            self.assertEqual(message.SerializeToString(deterministic=True), bytes_of_hex((GOLDEN / name).read_text()), name)

    def test_json_and_protobuf_are_the_same_message(self):
        for name in ("traces", "profiles"):
            self.assertEqual(messages_of_file(GOLDEN / f"{name}.json"), messages_of_file(GOLDEN / f"{name}.hex"), name)

    def test_nothing_unknown_to_the_peer_is_there(self):
        from google.protobuf.unknown_fields import UnknownFieldSet
        for name in ("traces.hex", "profiles.hex"):
            pending = messages_of_file(GOLDEN / name)
            while pending:
                message = pending.pop()
                self.assertEqual(len(UnknownFieldSet(message)), 0, f"{name}: {message.DESCRIPTOR.full_name}")
                for field, value in message.ListFields():
                    if field.message_type:
                        pending.extend([value] if hasattr(value, "ListFields") else value)

    def test_dictionary_entry_zero_is_the_zero_value(self):
        message, = messages_of_file(GOLDEN / "profiles.hex")
        for field, table in message.dictionary.ListFields():
            self.assertIn(table[0], ("", getattr(table[0], "__class__")()), field.name)
        self.assertEqual(len(message.dictionary.ListFields()), 7)


class Formats(unittest.TestCase):
    """The reader itself: every container of the same requests reads the same."""

    def write(self, name, data):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes(data)
        return path

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.traces = bytes_of_hex((GOLDEN / "traces.hex").read_text())
        self.profiles = bytes_of_hex((GOLDEN / "profiles.hex").read_text())
        self.wanted = decode([GOLDEN / "traces.hex", GOLDEN / "profiles.hex"])

    def test_bare_and_gzipped_requests(self):
        paths = [self.write("a", self.traces), self.write("b.gz", gzip.compress(self.profiles))]
        self.assertEqual(decode(paths), self.wanted)

    def test_length_prefixed_requests(self):
        def prefixed(data):
            return bytes([len(data) & 127 | 128, len(data) >> 7]) + data
        path = self.write("a.binpb", prefixed(self.traces) + prefixed(self.profiles))
        self.assertEqual(decode([path]), self.wanted)
        cut = self.write("b.binpb", prefixed(self.traces)[:-1])
        self.assertRaises(otlp_decode.BadInput, decode, [cut])

    def test_attributes_by_reference_are_those_in_line(self):
        """As a Collector's file exporter rewrites a resource."""
        message, = messages_of_file(GOLDEN / "profiles.hex")
        strings = message.dictionary.string_table
        for item in message.resource_profiles[0].resource.attributes:
            strings.append(item.key)
            item.key, item.key_strindex = "", len(strings) - 1
            if item.value.WhichOneof("value") == "string_value":
                strings.append(item.value.string_value)
                item.value.string_value_strindex = len(strings) - 1
        path = self.write("a", message.SerializeToString())
        self.assertNotIn("service.name", {item.key for item in message.resource_profiles[0].resource.attributes})
        self.assertEqual(decode([path])["profiles"], self.wanted["profiles"])

    def test_json_lines(self):
        lines = [(GOLDEN / name).read_text().replace("\n", " ") for name in ("traces.json", "profiles.json")]
        path = self.write("a.jsonl", ("\n".join(lines) + "\n").encode())
        self.assertEqual(decode([path]), self.wanted)


if __name__ == "__main__":
    unittest.main()
