#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`spanprof check`: a good pair of files passes; each rule has a file that breaks it, and only it."""
import copy

from otlp import *


def tables(request):
    return request["dictionary"]


def profile_of(request):
    return request["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]


def sample_of(request, number=0):
    return profile_of(request)["samples"][number]


def string(request, text):
    tables(request)["stringTable"].append(text)
    return len(tables(request)["stringTable"]) - 1


def set_in(entry, **values):
    entry.update(values)


def drop(entry, *keys):
    for key in keys:
        entry.pop(key, None)


def attribute_entry(request, key):
    """A new entry of the attribute table; its index."""
    tables(request)["attributeTable"].append({"keyStrindex": string(request, key) if key else 0, "value": {"stringValue": "x"}})
    return len(tables(request)["attributeTable"]) - 1


def each_table_without_its_zero(table):
    def change(request):
        first = {"stringTable": "x", "linkTable": {"traceId": REPORT_TRACE, "spanId": "ff" * 8}}.get(table, {"memoryLimit": "1"})
        if table in ("locationTable",):
            first = {"address": "1"}
        if table == "functionTable":
            first = {"startLine": "1"}
        if table == "attributeTable":
            first = {"value": {"stringValue": "x"}}
        if table == "stackTable":
            first = {"locationIndices": [1]}
        tables(request)[table][0] = first
    return change


def duplicate(table):
    def change(request):
        entries = tables(request)[table]
        entries.append(copy.deepcopy(entries[1]))
    return change


def orphan(table, entry):
    def change(request):
        tables(request)[table].append(entry(request))
    return change


def timestamps(request, *values):
    for sample in profile_of(request)["samples"]:
        sample["timestampsUnixNano"] = [str(START + 1)]
        sample["values"] = ["1"]
    sample_of(request)["timestampsUnixNano"] = [str(value) for value in values]
    sample_of(request)["values"] = ["1"] * len(values)


def twice_in(items):
    items.append(copy.deepcopy(items[0]))


def kvlist(keys):
    return {"key": "k", "value": {"kvlistValue": {"values": [attribute(key, "v") for key in keys]}}}


def resource_attributes(request, signal="resourceProfiles"):
    return request[signal][0]["resource"]["attributes"]


def scope_of(request):
    return request["resourceProfiles"][0]["scopeProfiles"][0]["scope"]


def first_span(request):
    return request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]


# (rule, place, change of a good request of profiles).
PROFILE_RULES = [
    ("dictionary", "dictionary", lambda r: drop(r, "dictionary")),
    *[("zero-entry", table.replace("Table", "_table[0]"), each_table_without_its_zero(table)) for table in
      ("stringTable", "mappingTable", "locationTable", "functionTable", "linkTable", "attributeTable", "stackTable")],
    ("index-range", "samples[0]", lambda r: set_in(sample_of(r), stackIndex=99)),
    ("index-range", "samples[1]", lambda r: set_in(sample_of(r, 1), stackIndex=-1)),
    ("index-range", "samples[0]", lambda r: set_in(sample_of(r), linkIndex=99)),
    ("index-range", "samples[0]", lambda r: set_in(sample_of(r), attributeIndices=[99])),
    ("index-range", "profiles[0]", lambda r: set_in(profile_of(r)["sampleType"], unitStrindex=99)),
    ("index-range", "profiles[0]", lambda r: set_in(profile_of(r)["periodType"], typeStrindex=99)),
    ("index-range", "profiles[0]", lambda r: profile_of(r)["attributeIndices"].append(99)),
    ("index-range", "stack_table[1]", lambda r: tables(r)["stackTable"][1]["locationIndices"].append(99)),
    ("index-range", "location_table[1]", lambda r: set_in(tables(r)["locationTable"][1], mappingIndex=99)),
    ("index-range", "location_table[1].lines[1]", lambda r: tables(r)["locationTable"][1]["lines"].append({"functionIndex": 99})),
    ("index-range", "function_table[1]", lambda r: set_in(tables(r)["functionTable"][1], systemNameStrindex=99)),
    ("index-range", "mapping_table[1]", lambda r: set_in(tables(r)["mappingTable"][1], filenameStrindex=2**31 - 1)),
    ("index-range", "mapping_table[1]", lambda r: tables(r)["mappingTable"][1]["attributeIndices"].append(99)),
    ("index-range", "attribute_table[1]", lambda r: set_in(tables(r)["attributeTable"][1], unitStrindex=99)),
    ("index-range", "resource.attributes[1]", lambda r: resource_attributes(r).append({"keyStrindex": 99, "value": {}})),
    ("index-range", "resource.attributes[0]", lambda r: set_in(resource_attributes(r)[0], value={"stringValueStrindex": 99})),
    ("index-range", "resource.attributes[0]", lambda r: set_in(resource_attributes(r)[0], value={"stringValueStrindex": -1})),
    ("index-range", "scope.attributes[0]", lambda r: set_in(scope_of(r), attributes=[{"keyStrindex": 99, "value": {}}])),
    ("index-range", "scope.attributes[0]", lambda r: set_in(scope_of(r), attributes=[{"keyStrindex": -1, "value": {}}])),
    ("index-range", "scope.attributes[0]", lambda r: set_in(scope_of(r), attributes=[
        {"key": "k", "value": {"arrayValue": {"values": [{"stringValueStrindex": 99}]}}}])),
    ("attribute-unique", "profiles[0]", lambda r: profile_of(r)["attributeIndices"].append(1)),
    ("attribute-unique", "samples[0]", lambda r: set_in(sample_of(r), attributeIndices=[1, 1])),
    ("attribute-unique", "resource.attributes[1]", lambda r: twice_in(resource_attributes(r))),
    ("attribute-unique", "kvlist.attributes[1]", lambda r: resource_attributes(r).append(kvlist(["a", "a"]))),
    ("attribute-key", "attribute_table[", lambda r: set_in(sample_of(r), attributeIndices=[attribute_entry(r, "")])),
    ("attribute-key", "resource.attributes[1]", lambda r: resource_attributes(r).append({"value": {"stringValue": "x"}})),
    ("attribute-key", "resource.attributes[1]", lambda r: resource_attributes(r).append({"key": "k", "keyStrindex": 1})),
    ("attribute-key", "scope.attributes[0]", lambda r: set_in(scope_of(r), attributes=[{"key": "k", "keyStrindex": 1}])),
    ("link-id", "link_table[1]", lambda r: set_in(tables(r)["linkTable"][1], traceId="abcd")),
    ("link-id", "link_table[1]", lambda r: set_in(tables(r)["linkTable"][1], spanId="0" * 16)),
    ("mapping-range", "mapping_table[1]", lambda r: set_in(tables(r)["mappingTable"][1], memoryStart="9000")),
    ("line-number", "location_table[1].lines[0]", lambda r: set_in(tables(r)["locationTable"][1]["lines"][0], line="-1")),
    ("line-number", "location_table[1].lines[0]", lambda r: set_in(tables(r)["locationTable"][1]["lines"][0], column="-1")),
    ("line-number", "function_table[1]", lambda r: set_in(tables(r)["functionTable"][1], startLine="-2")),
    *[("duplicate", table.replace("Table", "_table["), duplicate(table)) for table in
      ("stringTable", "mappingTable", "locationTable", "functionTable", "linkTable", "attributeTable", "stackTable")],
    ("orphan", "string_table[", orphan("stringTable", lambda r: "nobody")),
    ("orphan", "stack_table[", orphan("stackTable", lambda r: {"locationIndices": [1, 1]})),
    ("orphan", "link_table[", orphan("linkTable", lambda r: {"traceId": REPORT_TRACE, "spanId": "ff" * 8})),
    ("orphan", "function_table[", orphan("functionTable", lambda r: {"nameStrindex": 1})),
    ("orphan", "location_table[", orphan("locationTable", lambda r: {"address": "4097"})),
    ("orphan", "mapping_table[", orphan("mappingTable", lambda r: {**tables(r)["mappingTable"][1], "fileOffset": "1"})),
    ("orphan", "attribute_table[", orphan("attributeTable", lambda r: {"keyStrindex": 1, "value": {"intValue": "5"}})),
    ("sample-type", "profiles[0]", lambda r: set_in(profile_of(r)["sampleType"], typeStrindex=0)),
    ("profile-id", "profiles[0]", lambda r: set_in(profile_of(r), profileId="0102")),
    ("profile-id", "profiles[0]", lambda r: set_in(profile_of(r), profileId="0" * 32)),
    ("original-payload", "profiles[0]", lambda r: set_in(profile_of(r), originalPayload="AAAA")),
    ("original-payload", "profiles[0]", lambda r: set_in(profile_of(r), originalPayloadFormat="pprof")),
    ("sample-empty", "samples[0]", lambda r: set_in(sample_of(r), values=[])),
    ("sample-values", "samples[0]", lambda r: set_in(sample_of(r), values=["1", "2"])),
    ("sample-lengths", "samples[0]", lambda r: (timestamps(r, START, START + 1), set_in(sample_of(r), values=["1"]))),
    ("sample-shape", "samples[2]", lambda r: set_in(sample_of(r, 2), values=[], timestampsUnixNano=[str(START)])),
    ("timestamp-range", "samples[0]", lambda r: timestamps(r, START - 1)),
    ("timestamp-range", "samples[0]", lambda r: timestamps(r, START + 10 * SECOND)),
    ("sample-merged", "samples[5]", lambda r: twice_in(profile_of(r)["samples"])),
    ("sample-merged", "samples[5]", lambda r: (set_in(sample_of(r), attributeIndices=[1, 2]), twice_in(profile_of(r)["samples"]),
                                               set_in(sample_of(r, 5), attributeIndices=[2, 1]))),
]
# Where one of these is broken, no line may name another rule; elsewhere a broken index or entry leaves others without reference.
STAND_ALONE = {"attribute-unique", "link-id", "mapping-range", "line-number", "orphan", "profile-id", "original-payload",
               "sample-empty", "sample-values", "sample-lengths", "sample-shape", "timestamp-range", "sample-merged"}
MORE_PROFILE_RULES = [
    ("mapping-build-id", "mapping_table[1]", lambda r: drop(tables(r)["mappingTable"][1], "attributeIndices")),
    ("function-name", "function_table[1]", lambda r: drop(tables(r)["functionTable"][1], "nameStrindex", "filenameStrindex")),
    ("sample-type", "profiles[0]", lambda r: drop(profile_of(r), "sampleType")),
    *[("zero-entry", table.replace("Table", "_table[0]"), (lambda t: lambda r: tables(r).update({t: []}))(table)) for table in
      ("stringTable", "mappingTable", "locationTable", "functionTable", "linkTable", "attributeTable", "stackTable")],
]
SPAN_RULES = [
    ("trace-id", "spans[0]", lambda r: set_in(first_span(r), traceId="ab")),
    ("trace-id", "spans[0]", lambda r: set_in(first_span(r), traceId="0" * 32)),
    ("span-id", "spans[0]", lambda r: drop(first_span(r), "spanId")),
    ("parent-span-id", "spans[0]", lambda r: set_in(first_span(r), parentSpanId="ab")),
    ("span-name", "spans[0]", lambda r: drop(first_span(r), "name")),
    ("span-time", "spans[0]", lambda r: set_in(first_span(r), endTimeUnixNano=str(START))),
    ("span-time", "spans[0]", lambda r: drop(first_span(r), "startTimeUnixNano")),
    ("span-kind", "spans[0]", lambda r: drop(first_span(r), "kind")),
    ("span-kind", "spans[0]", lambda r: set_in(first_span(r), kind=6)),
    ("span-status", "spans[0]", lambda r: set_in(first_span(r), status={"code": 3})),
    ("span-duplicate", "spans[5]", lambda r: twice_in(r["resourceSpans"][0]["scopeSpans"][0]["spans"])),
    ("span-link", "spans[0].links[0]", lambda r: set_in(first_span(r), links=[{"traceId": "ab", "spanId": REPORT}])),
    ("span-link", "spans[0].links[0]", lambda r: set_in(first_span(r), links=[{}])),
    ("attribute-unique", "spans[0].attributes[1]", lambda r: twice_in(first_span(r)["attributes"])),
    ("attribute-unique", "spans[0].events[0].attributes[1]", lambda r: set_in(first_span(r), events=[
        {"name": "e", "timeUnixNano": str(START), "attributes": [attribute("a", 1), attribute("a", 2)]}])),
    ("attribute-unique", "resource.attributes[1]", lambda r: twice_in(resource_attributes(r, "resourceSpans"))),
    ("attribute-key", "spans[0].attributes[0]", lambda r: set_in(first_span(r), attributes=[{"value": {"intValue": "1"}}])),
    ("strindex-in-traces", "spans[0].attributes[0]", lambda r: set_in(first_span(r), attributes=[{"keyStrindex": 1}])),
    ("strindex-in-traces", "spans[0].attributes[0]", lambda r: set_in(first_span(r), attributes=[
        {"key": "k", "value": {"stringValueStrindex": 1}}])),
]


class CheckTest(ToolTest):
    def check(self, request, *options, others=()):
        self.write("bad.jsonl", json_lines(request))
        result = self.run_tool("check", *others, "bad.jsonl", *options)
        self.assertEqual(result.stderr, b"")
        return result.returncode, result.stdout.decode().splitlines()

    def break_rule(self, good, rule, place, change, strict=True, options=(), others=()):
        request = good()
        change(request)
        code, lines = self.check(request, *options, others=others)
        *found, last = lines
        found = [line for line in found if ": warning: " not in line]
        with self.subTest(rule=rule, place=place, lines=lines):
            self.assertEqual(code, 1)
            self.assertRegex(last, r"^\d+ violations?$")
            self.assertTrue(any(line.startswith("bad.jsonl: ") and place in line and f": {rule}: " in line for line in found))
            if strict:
                self.assertEqual([line for line in found if f": {rule}: " not in line], [])



def wait_word(word):
    def change(request):
        entry = next(e for e in tables(request)["attributeTable"] if e.get("value") == {"stringValue": "lock"})
        entry["value"] = word
    return change


WALL_RULES = [
    ("wall-unit", "profiles[0]", lambda r: set_in(profile_of(r)["sampleType"], unitStrindex=string(r, "milliseconds"))),
    ("wall-unit", "profiles[0]", lambda r: set_in(profile_of(r)["periodType"], unitStrindex=string(r, "count"))),
    ("wall-period", "profiles[0]", lambda r: set_in(profile_of(r), period="0")),
    ("wall-period", "profiles[0]", lambda r: set_in(profile_of(r), period="-5")),
    ("wait-word", "attribute_table[", wait_word({"stringValue": "locked"})),
    ("wait-word", "attribute_table[", wait_word({"stringValue": "cpu"})),
    ("wait-word", "attribute_table[", wait_word({"stringValue": ""})),
    ("wait-word", "attribute_table[", wait_word({"intValue": "2"})),
]


class Rules(CheckTest):
    def test_good_files_pass_also_for_backends(self):
        self.write_shop()
        for options in ([], ["--backend", "pyroscope"], ["--backend", "collector"]):
            text = self.answer("check", "shop", *options)
            self.assertEqual(text, "ok: 1 request of traces with 5 spans, 1 of profiles\n")

    def test_cpu_and_wall_time_in_one_request_pass_also_for_backends(self):
        self.write("t.jsonl", json_lines(traces()))
        self.write("p.jsonl", json_lines(both_profiles()))
        for options in ([], ["--backend", "pyroscope"], ["--backend", "collector"]):
            text = self.answer("check", "t.jsonl", "p.jsonl", *options)
            self.assertEqual(text, "ok: 1 request of traces with 5 spans, 1 of profiles\n")

    def test_link_zero_may_be_spelled_out(self):
        good = profiles()
        tables(good)["linkTable"][0] = {"traceId": "0" * 32, "spanId": "0" * 16}
        self.assertEqual(self.check(good)[0], 0)

    def test_timestamps_in_range_pass(self):
        good = profiles()
        timestamps(good, START, START + 10 * SECOND - 1)
        self.assertEqual(self.check(good)[0], 0)

    def test_each_rule_of_profiles(self):
        for rule, place, change in PROFILE_RULES:
            self.break_rule(profiles, rule, place, change, strict=rule in STAND_ALONE)

    def test_each_rule_of_wall_time(self):
        for rule, place, change in WALL_RULES:
            self.break_rule(wall_profiles, rule, place, change)

    def test_units_of_other_types_are_not_ours_to_judge(self):
        self.assertEqual(self.check(profiles(kind=("cpu", "milliseconds", "cpu", "milliseconds"), period=0))[0], 0)

    def test_wall_time_may_have_the_period_of_another_type(self):
        self.assertEqual(self.check(wall_profiles(kind=("wall", "nanoseconds", "cpu", "nanoseconds")))[0], 0)

    def test_rules_that_come_with_others(self):
        for rule, place, change in MORE_PROFILE_RULES:
            self.break_rule(profiles, rule, place, change, strict=False)

    def test_each_rule_of_spans(self):
        for rule, place, change in SPAN_RULES:
            self.break_rule(traces, rule, place, change)

    def test_text_that_is_not_utf8(self):
        for name, data in (("t", protobuf(traces()).replace(b"GET /cart", b"GET /c\xffrt")),
                           ("p", protobuf(profiles()).replace(b"append_row", b"append\xc0\xaf__"))):
            self.write(name, data)
            result = self.run_tool("check", name)
            self.assertEqual(result.returncode, 1)
            self.assertIn(b": utf8: ", result.stdout)

    def test_place_tells_the_request_in_its_file(self):
        bad = profiles()
        set_in(sample_of(bad), values=[])
        self.write("three.jsonl", json_lines(profiles(), profiles(), bad))
        result = self.run_tool("check", "three.jsonl")
        self.assertTrue(result.stdout.startswith(b"three.jsonl:3: resource_profiles[0].scope_profiles[0].profiles[0].samples[0]: "))

    def test_links_to_spans_that_are_not_there_are_a_warning(self):
        self.write("t.jsonl", json_lines(traces([span(CART_TRACE, CART, "GET /cart", 0, 1)])))
        self.write("p.jsonl", json_lines(profiles()))
        text = self.answer("check", "t.jsonl", "p.jsonl")
        self.assertEqual(text.count("warning: link-span: "), 3)
        self.assertNotIn("warning", self.answer("check", "p.jsonl"))

    def test_links_to_spans_of_another_time_are_a_warning(self):
        self.write("t.jsonl", json_lines(traces([span(CART_TRACE, CART, "GET /cart", 20_000, 1)])))
        self.write("p.jsonl", json_lines(profiles([SAMPLES[3]])))
        self.assertEqual(self.answer("check", "t.jsonl", "p.jsonl").count("warning: link-span-time: "), 1)

    def test_many_violations_are_counted_but_not_all_shown(self):
        bad = profiles()
        profile_of(bad)["samples"] = [{"stackIndex": 10_000 + i, "values": ["1"]} for i in range(1500)]
        code, lines = self.check(bad)
        self.assertEqual(code, 1)
        self.assertLess(len(lines), 1010)
        self.assertRegex(lines[-1], r"^15\d\d violations$")


class Backends(CheckTest):
    def test_pyroscope(self):
        many = [(("main", f"f{i % 100}"), REPORT_TRACE, f"{i // 100 + 1:016x}", 1) for i in range(16_001)]
        rules = [
            ("backend-period", "profiles[0]", lambda r: set_in(profile_of(r), period="0")),
            ("backend-zero", "samples[0]", lambda r: set_in(sample_of(r), values=["0"])),
            ("backend-values", "samples[0]", lambda r: (timestamps(r, START, START + 1))),
            ("backend-service", "resource", lambda r: resource_attributes(r).clear()),
        ]
        for rule, place, change in rules:
            self.break_rule(profiles, rule, place, change, options=["--backend", "pyroscope"])
        self.break_rule(lambda: profiles(many), "backend-samples", "profiles[0]", lambda r: None,
                        options=["--backend", "pyroscope"])
        self.break_rule(wall_profiles, "backend-period", "profiles[0]", lambda r: drop(profile_of(r), "periodType"),
                        options=["--backend", "pyroscope"])

    def test_pyroscope_wants_the_profile_id_on_spans(self):
        without = traces()
        drop(first_span(without), "attributes")
        self.write("t.jsonl", json_lines(without))
        linked = [(("main",), REPORT_TRACE, REPORT, 1)]
        self.break_rule(lambda: profiles(linked), "backend-profile-id", "link_table[1]", lambda r: None, others=["t.jsonl"],
                        options=["--backend", "pyroscope"])

    def test_collector(self):
        strings = lambda r: set_in(resource_attributes(r)[0], value={"stringValueStrindex": 1})
        self.break_rule(profiles, "backend-strindex", "resource", strings, strict=False, options=["--backend", "collector"])
        self.break_rule(profiles, "backend-empty", "request", lambda r: profile_of(r)["samples"].clear(), strict=False,
                        options=["--backend", "collector"])

    def test_unknown_backend(self):
        self.write_shop()
        self.refuse(2, "check", "shop", "--backend", "grafana", says=("grafana", "pyroscope, collector"))


if __name__ == "__main__":
    unittest.main()
