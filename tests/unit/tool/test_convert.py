#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`spanprof convert`: what goes in comes out, in one request, one pprof, or as collapsed stacks."""
import gzip

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
        for table in ("stackTable", "locationTable", "functionTable", "mappingTable", "stringTable", "attributeTable"):
            d = Dictionary()
            request_made = request(d, profile(d, [(("main", "leaf"), "", "", 3)], 10_000_000, ("samples", "count", "cpu", "nanoseconds"), {}))
            self.shift(request_made, table)
            self.write("zero.jsonl", json_lines(request_made))
            self.convert("otlp", "good.pb", "zero.jsonl")
            self.assertEqual(self.stacks("good.pb"), self.stacks("zero.jsonl"), table)
            self.assertIn("c0ffee", self.answer("convert", "good.pb", "--to", "otlp-json", "-o", "-"))
            self.assertEqual(self.run_tool("check", "zero.jsonl").returncode, 1)
            self.answer("check", "good.pb")

    def shift(self, request_made, table):
        """Take the zero value off the front of TABLE, to which all indices lead one lower then."""
        names = {"stackTable": ["stackIndex"], "locationTable": ["locationIndices"], "functionTable": ["functionIndex"],
                 "mappingTable": ["mappingIndex"], "stringTable": [], "attributeTable": ["attributeIndices"]}[table]

        def lower(value):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                if key in names or (table == "stringTable" and str(key).endswith("Strindex")):
                    value[key] = [i - 1 for i in item] if isinstance(item, list) else item - 1
                elif isinstance(item, (dict, list)):
                    lower(item)
        lower(request_made)
        request_made["dictionary"][table].pop(0)

    def test_a_link_at_index_0_is_said_to_be_none(self):
        for command in (["convert", "--to", "otlp", "-o", "good.pb"], ["stats"], ["flame", "--format", "folded"]):
            d = Dictionary()
            zero = request(d, profile(d, [(("main",), REPORT_TRACE, REPORT, 3)], 10_000_000, ("samples", "count", "cpu", "nanoseconds"), {}))
            zero["dictionary"]["linkTable"].pop(0)
            zero["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["samples"][0].pop("linkIndex")
            self.write("zero.jsonl", json_lines(zero, zero))
            result = self.run_tool(command[0], "zero.jsonl", *command[1:])
            self.assertEqual(result.returncode, 0)
            first, *_ = result.stderr.decode().splitlines()
            self.assertEqual(first, "spanprof: zero.jsonl:1 and other requests: link_table[0] is a link, and index 0 stands for no link: "
                             "samples with it belong to no span; the writer has to put a zero link first")
        self.write_shop()
        self.assertEqual(self.run_tool("stats", "shop").stderr, b"")

    def test_producers_stay_apart(self):
        """Two runs of two services in one call: each keeps its resource, and nothing is summed."""
        texts = []
        for service, values in (("shop", 3), ("stock", 4)):
            d = Dictionary()
            made = request(d, profile(d, [(("main",), "", "", values)], 10_000_000, ("samples", "count", "cpu", "nanoseconds"), {}))
            made["resourceProfiles"][0]["resource"]["attributes"] = [attribute("service.name", service)]
            texts.append(json_lines(made))
        self.write("a.jsonl", texts[0])
        self.write("b.jsonl", texts[1])
        self.convert("otlp-json", "both.json", "a.jsonl", "b.jsonl")
        merged = json.loads((self.folder / "both.json").read_text())
        self.assertEqual([(r["resource"]["attributes"][0]["value"]["stringValue"],
                           [p["samples"][0]["values"] for s in r["scopeProfiles"] for p in s["profiles"]])
                          for r in merged["resourceProfiles"]], [("shop", [["3"]]), ("stock", [["4"]])])

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
        self.refuse(2, "convert", "shop", "--to", "xml", "-o", "out", says=("unknown", "pprof, folded"))
        self.refuse(2, "convert", "shop", "--to", "otlp", "--type", "cpu", "-o", "out", says="--type is for pprof")


class Pprof(ToolTest):
    """Out as pprof, and in again."""

    def convert(self, *files, more=(), out="out.pb.gz", says=""):
        result = self.run_tool("convert", *files, "--to", "pprof", *more, "-o", out)
        self.assertEqual((result.returncode, result.stdout), (0, b""), result.stderr)
        self.assertRegex(result.stderr.decode(), says or r"\A\Z")
        return out

    def same(self, out, *files, kind="cpu"):
        """What the command says of OUT and of FILES is the same."""
        before = self.answer_json("flame", *files, "--type", kind, "--format", "json")
        after = self.answer_json("flame", out, "--type", kind, "--format", "json")
        key = lambda stack: json.dumps(stack, sort_keys=True)
        for part in ("stacks", "functions"):
            self.assertEqual(sorted(before.pop(part), key=key), sorted(after.pop(part), key=key))
        self.assertEqual(before, after)

    def test_stacks_values_counts_and_links_come_back(self):
        self.write("p.jsonl", json_lines(profiles(), profiles([(("main", "elsewhere"), CART_TRACE, CART, 5)], service="billing")))
        self.same(self.convert("p.jsonl"), "p.jsonl")

    def test_waits_holders_and_locks_come_back(self):
        self.write("p.jsonl", json_lines(both_profiles()))
        for kind in ("wall", "offcpu"):
            self.same(self.convert("p.jsonl", more=("--type", kind)), "p.jsonl", kind=kind)
        locks = [(("main", "work"), CART_TRACE, CART, 40 * MS, "", "", (REPORT_TRACE, REPORT, "main;hold"),
                  ("cache_mutex", "0x4010")), (("main", "work"), "", "", 5)]
        self.write("l.jsonl", json_lines(profiles(locks, period=1, kind=("delay", "nanoseconds", "contentions", "count"))))
        self.same(self.convert("l.jsonl"), "l.jsonl", kind="lock")

    def test_mappings_addresses_lines_and_build_ids_come_back(self):
        self.write("p.jsonl", json_lines(profiles()))
        self.convert("p.jsonl")
        self.answer("convert", "out.pb.gz", "--to", "otlp-json", "-o", "back.json")
        back = json.loads((self.folder / "back.json").read_text())["dictionary"]
        made = profiles()["dictionary"]
        strings = lambda d, table, key: {d["stringTable"][entry.get(key, 0)] for entry in d[table]}
        for table, key in (("functionTable", "nameStrindex"), ("functionTable", "filenameStrindex"), ("mappingTable", "filenameStrindex")):
            self.assertEqual(strings(back, table, key), strings(made, table, key))
        addresses = lambda d: sorted((int(l.get("address", 0)), [line.get("line") for line in l.get("lines", [])]) for l in d["locationTable"])
        self.assertEqual(addresses(back), addresses(made))
        mapping = back["mappingTable"][1]
        self.assertEqual((mapping["memoryStart"], mapping["memoryLimit"]), ("4096", "8192"))
        build_id = back["attributeTable"][mapping["attributeIndices"][0]]
        self.assertEqual(build_id["value"], {"stringValue": "c0ffee"})

    def test_sample_attributes_come_back_and_a_thread_is_a_text(self):
        d = Dictionary()
        made = profile(d, SAMPLES, 10 * MS, ("samples", "count", "cpu", "nanoseconds"), {})
        made["samples"][0]["attributeIndices"] = [d.attribute("thread.id", 4711), d.attribute("thread.name", "worker"), d.attribute("rows", 12)]
        self.write("p.jsonl", json_lines(request(d, made)))
        self.convert("p.jsonl")
        self.answer("convert", "out.pb.gz", "--to", "otlp-json", "-o", "back.json")
        back = json.loads((self.folder / "back.json").read_text())["dictionary"]
        found = {back["stringTable"][a["keyStrindex"]]: a["value"] for a in back["attributeTable"][1:]}
        self.assertEqual({key: found[key] for key in ("thread.id", "thread.name", "rows")},
                         {"thread.id": {"intValue": "4711"}, "thread.name": {"stringValue": "worker"}, "rows": {"intValue": "12"}})
        self.assertIn(b"4711", gzip.decompress((self.folder / "out.pb.gz").read_bytes()))

    def test_local_roots_are_told_where_the_traces_are_there(self):
        self.write_shop()
        self.same(self.convert("shop"), "shop.profiles.jsonl")
        text = gzip.decompress((self.folder / "out.pb.gz").read_bytes())
        self.assertIn(b"local root span id", text)
        self.assertIn(b"0x" + REPORT.encode(), text)
        self.convert("shop.profiles.jsonl")
        self.assertNotIn(b"local root span id", gzip.decompress((self.folder / "out.pb.gz").read_bytes()))

    def test_resources_and_counters_are_comments(self):
        self.write("p.jsonl", json_lines(profiles(), profiles()))
        self.convert("p.jsonl")
        text = gzip.decompress((self.folder / "out.pb.gz").read_bytes())
        for comment in (b"service.name=shop", b"spanprof.engine=timer", b"spanprof.unattributed_ns=24690"):
            self.assertIn(comment, text)

    def test_types_of_one_period_are_one_pprof(self):
        d = Dictionary()
        kinds = [("alloc_space", "bytes"), ("alloc_objects", "count"), ("inuse_space", "bytes"), ("inuse_objects", "count")]
        made = [profile(d, [(("main", "make"), CART_TRACE, CART, 100 + i)], 512, kind + ("space", "bytes"), {}) for i, kind in enumerate(kinds)]
        self.write("p.jsonl", json_lines(request(d, *made)))
        self.convert("p.jsonl")
        for kind in ("alloc", "alloc_objects", "inuse", "inuse_objects"):
            self.same("out.pb.gz", "p.jsonl", kind=kind)
        self.assertEqual(self.answer("flame", self.convert("out.pb.gz", out="again.pb.gz"), "--type", "inuse", "--format", "folded"), "main;make 102\n")

    def test_types_of_two_periods_need_a_choice(self):
        self.write("p.jsonl", json_lines(both_profiles()))
        for to in ("pprof", "folded"):
            self.refuse(2, "convert", "p.jsonl", "--to", to, "-o", "out", says=("--type", "cpu, wall"))
        self.same(self.convert("p.jsonl", more=("--type", "cpu")), "p.jsonl")
        self.refuse(1, "convert", "p.jsonl", "--to", "pprof", "--type", "lock", "-o", "out", says="no profile of type lock")
        self.write_shop()
        self.refuse(2, "convert", "shop.traces.jsonl", "--to", "pprof", "-o", "out", says="no profiles")

    def test_only_the_last_snapshot_counts(self):
        kind = ("inuse_space", "bytes", "space", "bytes")
        d = Dictionary()
        made = [profile(d, [(("main", "keep"), "", "", value)], 512, kind, {}, start_s=10 * i) for i, value in enumerate((5, 7))]
        self.write("p.jsonl", json_lines(request(d, *made)))
        self.same(self.convert("p.jsonl"), "p.jsonl", kind="inuse")
        self.answer("flame", "p.jsonl", "--since", "first", "--format", "pprof", "-o", "grown.pb.gz")
        self.assertEqual(self.answer("flame", "grown.pb.gz", "--format", "folded"), "main;keep 2\n")

    def test_times_of_samples_are_said_to_go(self):
        d = Dictionary()
        made = profile(d, SAMPLES, 10 * MS, ("samples", "count", "cpu", "nanoseconds"), {})
        made["samples"][0]["timestampsUnixNano"] = [str(START)] * int(made["samples"][0].pop("values")[0])
        self.write("p.jsonl", json_lines(request(d, made)))
        self.same(self.convert("p.jsonl", says="no place for times: they are left out of 1 sample"), "p.jsonl")

    def test_flame_writes_what_was_selected(self):
        self.write_shop()
        for which in (("--span", REPORT), ("--trace", CART_TRACE), ("--where", '{ name = "render" }')):
            self.answer("flame", "shop", *which, "--format", "pprof", "-o", "some.pb.gz")
            wanted = self.answer("flame", "shop", *which, "--format", "folded")
            self.assertEqual(self.answer("flame", "some.pb.gz", "--format", "folded"), wanted)

    def test_an_index_that_leads_to_nothing_is_refused(self):
        made = profiles()
        made["dictionary"]["functionTable"][1]["filenameStrindex"] = 999
        self.write("p.jsonl", json_lines(made))
        self.refuse(2, "convert", "p.jsonl", "--to", "pprof", "-o", "out", says="string_table[999]")


class Folded(ToolTest):
    def test_the_stacks_of_one_type_and_a_remark_on_spans(self):
        self.write("p.jsonl", json_lines(both_profiles()))
        result = self.run_tool("convert", "p.jsonl", "--to", "folded", "--type", "offcpu", "-o", "out.txt")
        self.assertEqual(result.returncode, 0)
        self.assertIn("no place for spans", result.stderr.decode())
        self.assertEqual((self.folder / "out.txt").read_text(), self.answer("flame", "p.jsonl", "--type", "offcpu", "--format", "folded"))

    def test_collapsed_stacks_are_the_same_after_a_way_through_otlp_and_pprof(self):
        text = "main;a b 3\nmain;work;leaf 12\n"
        self.write("in.txt", text.encode())
        for to in ("otlp", "otlp-json", "pprof"):
            self.answer("convert", "in.txt", "--to", to, "-o", "middle")
            self.assertEqual(self.answer("convert", "middle", "--to", "folded", "-o", "-"), text)


if __name__ == "__main__":
    unittest.main()
