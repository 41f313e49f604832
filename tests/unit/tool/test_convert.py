#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`spanprof convert`: what goes in comes out, in one request."""
from otlp import *


class Convert(ToolTest):
    def convert(self, to, out, *files):
        self.assertEqual(self.answer("convert", *files, "--to", to, "-o", out), "")
        return out

    def stacks(self, *files):
        stacks = self.answer_json("flame", *files, "--format", "json")["stacks"]
        return sorted((s["frames"], s["value"], s["trace_id"], s["span_id"]) for s in stacks)

    def test_profiles_to_protobuf_and_back_say_the_same(self):
        self.write_shop()
        self.convert("otlp", "p.pb", "shop.profiles.jsonl")
        self.convert("otlp-json", "p.json", "p.pb")
        for made in ("p.pb", "p.json"):
            self.assertEqual(self.stacks(made), self.stacks("shop.profiles.jsonl"))
            self.answer("check", made)
        first = (self.folder / "p.pb").read_bytes()
        self.convert("otlp", "again.pb", "p.json")
        self.assertEqual((self.folder / "again.pb").read_bytes(), first)

    def test_a_valid_dictionary_in_our_order_is_kept_byte_by_byte(self):
        self.write("p.pb", protobuf(profiles()))
        self.convert("otlp-json", "p.json", "p.pb")
        dictionary = json.loads((self.folder / "p.json").read_text())["dictionary"]
        self.assertEqual(sorted(dictionary["stringTable"]), sorted(profiles()["dictionary"]["stringTable"]))
        self.assertEqual(dictionary["linkTable"], profiles()["dictionary"]["linkTable"])

    def test_inputs_are_merged_with_one_dictionary(self):
        other = profiles([(("main", "elsewhere"), CART_TRACE, CART, 5), SAMPLES[0]], service="billing")
        self.write("a.jsonl", json_lines(profiles(), other))
        self.write("b.binpb", framed(profiles()))
        self.convert("otlp-json", "all.json", "a.jsonl", "b.binpb")
        merged = json.loads((self.folder / "all.json").read_text())
        self.assertEqual(len(merged["resourceProfiles"]), 3)
        self.assertEqual(len(merged["dictionary"]["linkTable"]), 5)
        self.answer("check", "all.json")
        self.assertEqual(self.stacks("all.json"), self.stacks("a.jsonl", "b.binpb"))

    def test_duplicates_and_orphans_are_gone(self):
        messy = profiles()
        messy["dictionary"]["stringTable"] += ["nobody", "main"]
        messy["dictionary"]["functionTable"].append({"nameStrindex": len(messy["dictionary"]["stringTable"]) - 1})
        self.write("messy.jsonl", json_lines(messy))
        self.assertEqual(self.run_tool("check", "messy.jsonl").returncode, 1)
        self.convert("otlp", "clean.pb", "messy.jsonl")
        self.answer("check", "clean.pb")
        self.assertEqual(self.stacks("clean.pb"), self.stacks("messy.jsonl"))

    def test_real_entries_at_index_0_are_kept(self):
        for table in ("stackTable", "locationTable", "functionTable", "mappingTable", "stringTable"):
            d = Dictionary()
            request_made = request(d, profile(d, [(("main", "leaf"), "", "", 3)], 10_000_000, ("samples", "count", "cpu", "nanoseconds"), {}))
            self.shift(request_made, table)
            self.write("zero.jsonl", json_lines(request_made))
            self.convert("otlp", "good.pb", "zero.jsonl")
            self.assertEqual(self.stacks("good.pb"), self.stacks("zero.jsonl"), table)
            self.assertEqual(self.run_tool("check", "zero.jsonl").returncode, 1)
            self.answer("check", "good.pb")

    def shift(self, request_made, table):
        """Take the zero value off the front of TABLE, to which all indices lead one lower then."""
        names = {"stackTable": ["stackIndex"], "locationTable": ["locationIndices"], "functionTable": ["functionIndex"],
                 "mappingTable": ["mappingIndex"], "stringTable": []}[table]

        def lower(value):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                if key in names or (table == "stringTable" and str(key).endswith("Strindex")):
                    value[key] = [i - 1 for i in item] if isinstance(item, list) else item - 1
                elif isinstance(item, (dict, list)):
                    lower(item)
        lower(request_made)
        request_made["dictionary"][table].pop(0)

    def test_waits_stay_with_their_samples(self):
        other = wall_profiles([(("main", "elsewhere", "futex"), CART_TRACE, CART, 20 * MS, "lock")])
        self.write("a.jsonl", json_lines(both_profiles()))
        self.write("b.binpb", framed(other))
        self.convert("otlp", "all.pb", "a.jsonl", "b.binpb")
        self.convert("otlp-json", "all.json", "all.pb")
        self.answer("check", "all.json")
        for kind in ("cpu", "wall", "offcpu"):
            before = self.answer_json("flame", "a.jsonl", "b.binpb", "--type", kind, "--format", "json")
            self.assertEqual(self.answer_json("flame", "all.json", "--type", kind, "--format", "json"), before)
        self.assertEqual(self.answer("stats", "all.pb"), self.answer("stats", "a.jsonl", "b.binpb"))

    def test_traces_are_merged(self):
        self.write("t.jsonl", json_lines(traces(), traces([span("12" * 16, "34" * 8, "other", 0, 1)])))
        self.convert("otlp", "t.pb", "t.jsonl")
        merged = self.answer_json("spans", "t.pb", "--json")
        self.assertEqual(merged["count"], 6)
        self.assertEqual(merged, self.answer_json("spans", "t.jsonl", "--json"))

    def test_all_fields_of_spans_survive(self):
        full = traces([span(REPORT_TRACE, REPORT, "n", 0, 9, QUERY, kind=4, flags=0x301, status={"code": 2, "message": "m"},
                            attributes=[attribute("a", 5), {"key": "l", "value": {"kvlistValue": {"values": [attribute("b", "c")]}}}])])
        self.write("t.jsonl", json_lines(full))
        self.convert("otlp", "t.pb", "t.jsonl")
        self.convert("otlp-json", "t.json", "t.pb")
        self.assertEqual(json.loads((self.folder / "t.json").read_text()), full)

    def test_standard_output(self):
        self.write("p.jsonl", json_lines(profiles()))
        self.convert("otlp", "p.pb", "p.jsonl")
        result = self.run_tool("convert", "p.jsonl", "--to", "otlp", "-o", "-")
        self.assertEqual(result.stdout, (self.folder / "p.pb").read_bytes())

    def test_refusals(self):
        self.write_shop()
        self.refuse(2, "convert", "shop", "--to", "otlp", "-o", "out", says="both traces and profiles")
        self.refuse(2, "convert", "shop", "--to", "otlp", says="-o OUT")
        self.refuse(2, "convert", "shop", "-o", "out", says="--to")
        self.refuse(2, "convert", "shop", "--to", "pprof", "-o", "out", says="not built yet")
        self.refuse(2, "convert", "shop", "--to", "xml", "-o", "out", says="unknown")


if __name__ == "__main__":
    unittest.main()
