#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading files: every container gives the same answer, and whatever is damaged is refused with a sentence, never with a crash."""
import gzip
import random
import select
import time

from otlp import *

CONTAINERS = {
    "lines.jsonl": lambda request: json_lines(request),
    "pretty.json": lambda request: b"\n " + json.dumps(request, indent=2).encode() + b"\n\n",
    "framed.binpb": lambda request: framed(request),
    "bare.pb": lambda request: protobuf(request),
}


def by_reference(request):
    """REQUEST with the texts of its attributes in the string table, as Collectors from 0.163 write them."""
    strings = request["dictionary"]["stringTable"]

    def refer(text):
        if text not in strings:
            strings.append(text)
        return strings.index(text)

    def refer_value(value):
        if "stringValue" in value:
            value["stringValueStrindex"] = refer(value.pop("stringValue"))
        for item in value.get("arrayValue", value.get("kvlistValue", {})).get("values", []):
            refer_attribute(item) if "value" in item else refer_value(item)

    def refer_attribute(item):
        if "key" in item:
            item["keyStrindex"] = refer(item.pop("key"))
        refer_value(item["value"])

    for resource in request["resourceProfiles"]:
        holders = [resource["resource"]] + [scope["scope"] for scope in resource["scopeProfiles"]]
        for item in [item for holder in holders for item in holder.get("attributes", [])]:
            refer_attribute(item)
    for item in request["dictionary"]["attributeTable"][1:]:
        refer_attribute(item)
    return request


def resolved(request):
    """The attributes of REQUEST's resources and scopes, and the attribute table with its keys as texts, in any order."""
    strings = request["dictionary"]["stringTable"]
    table = [(strings[item["keyStrindex"]], item["value"]) for item in request["dictionary"]["attributeTable"][1:]]
    return ([(resource["resource"], [scope["scope"] for scope in resource["scopeProfiles"]]) for resource in request["resourceProfiles"]],
            sorted(table, key=str))


class Containers(ToolTest):
    def stacks(self, *files):
        return self.answer("flame", *files, "--span", REPORT, "--format", "json")

    def test_all_containers_of_both_signals_read_the_same(self):
        wanted = None
        for name, make in CONTAINERS.items():
            for pack in (lambda data: data, gzip.compress):
                self.write("t-" + name, pack(make(traces())))
                self.write("p-" + name, pack(make(profiles())))
                answer = self.stacks("t-" + name, "p-" + name)
                wanted = wanted or answer
                self.assertEqual(answer, wanted, name)
                self.assertEqual(self.stacks("p-" + name, "t-" + name), wanted, name)

    def test_several_requests_in_one_file_add_up(self):
        requests = [traces(), profiles(), profiles(service="other")]
        self.write("all.jsonl", json_lines(*requests))
        self.assertEqual(json.loads(self.stacks("all.jsonl"))["total"], 500_000_000)
        self.write("p.binpb", framed(profiles(), profiles()))
        self.write("t.binpb", framed(traces()))
        self.assertEqual(json.loads(self.stacks("t.binpb", "p.binpb"))["total"], 500_000_000)

    def test_gzip_of_several_members(self):
        self.write("all.gz", gzip.compress(json_lines(traces())) + gzip.compress(json_lines(profiles())))
        self.assertEqual(json.loads(self.stacks("all.gz"))["total"], 250_000_000)

    def test_prefix_stands_for_the_pair_also_beside_a_program(self):
        self.write_shop()
        before = self.stacks("shop")
        self.write("shop", b"\x7fELF and so on")
        self.assertEqual(self.stacks("shop"), before)

    def test_bare_requests_in_one_file_are_refused_where_they_cannot_be_told_apart(self):
        self.write("p.pb", protobuf(profiles()) + protobuf(profiles()))
        self.refuse(2, "flame", "p.pb", says=("several requests", "a file of its own"))
        self.write("t.pb", protobuf(traces()) + protobuf(traces(service="billing")))  # lists of resources, which simply go on
        self.answer("spans", "t.pb")

    def test_a_sum_that_is_too_large_is_told_once(self):
        most = (1 << 63) - 1
        self.write("p.jsonl", json_lines(profiles([(("main", name), "", "", most) for name in "abc"], kind=("alloc_space", "bytes", "space", "bytes"))))
        result = self.run_tool("flame", "p.jsonl", "--format", "json")
        self.assertEqual((result.returncode, json.loads(result.stdout)["total"]), (0, most))
        self.assertEqual(result.stderr.decode().count(f"a sum is more than {most}, and is given as that"), 1)

    def test_prefix_of_protobuf_files(self):
        self.write("shop.traces.binpb", framed(traces()))
        self.write("shop.profiles.binpb", framed(profiles()))
        self.assertEqual(json.loads(self.stacks("shop"))["count"], 25)

    def test_prefix_with_an_empty_half_gives_the_other(self):
        self.write_shop()
        self.write("shop.profiles.jsonl", b"")
        self.assertEqual(len(self.answer_json("spans", "shop", "--json")["spans"]), 5)

    def test_files_of_a_server_s_children_beside_the_prefix_are_told(self):
        """shop.1 is an earlier run of shop, shop.4711 a child of this one."""
        self.write_shop()
        for name in ("shop.1.traces.jsonl", "shop.4711.traces.jsonl", "shop.4711.profiles.jsonl", "shop.4712.traces.jsonl", "other.4711.traces.jsonl"):
            self.write(name, json_lines(traces()))
        self.write("shop.4713.traces.jsonl", b"")  # nothing to add
        for command, *rest in (("spans",), ("flame",), ("spans", "--json")):
            result = self.run_tool(command, "shop", *rest)
            self.assertEqual(result.returncode, 0)
            self.assertEqual(result.stderr.decode(), "spanprof: shop: files of 2 other processes lie beside it, shop.PID.*: add "
                                                     "shop.4711 shop.4712 to read all\n")
        for signal in ("traces", "profiles"):
            os.utime(self.folder / self.write(f"shop.{signal}.jsonl", b""), (0, 1))
        self.refuse(2, "spans", self.folder / "shop",
                    says=("2 other processes", "is empty: its process recorded no span and no sample, as a parent that only forks",
                          "within its first window it was killed, or ended by _exit without spanprof_stop"))

    def test_children_of_two_runs_of_a_parent_that_records_nothing(self):
        """The SDK makes the parent's empty files anew at each start. This run began in 2023."""
        def write(pid, year, content):
            for signal in ("traces", "profiles"):
                os.utime(self.folder / self.write(f"shop{pid}.{signal}.jsonl", content and json_lines(globals()[signal]())),
                         (0, (year - 1970) * 31_557_600))
        write("", 2023, b"")
        for pid, year in ((".4711", 2022), (".4712", 2022)):
            write(pid, year, True)
        self.refuse(2, "spans", self.folder / "shop", says=("the processes of", "shop.PID.* ended before this run began"))
        write(".4713", 2024, True)
        self.refuse(2, "spans", "shop", says=("1 other process lie", "add shop.4713 to read all; those of 2 more ended before this run began"))
        for names in (("shop.4711", "shop.4713", "shop"), ("shop.traces.jsonl", "shop.4713.traces.jsonl", "shop.4711.traces.jsonl")):
            result = self.run_tool("spans", *names)
            self.assertIn("the answer mixes runs: shop.4711 ended before this run of shop began", result.stderr.decode())
        result = self.run_tool("spans", "shop", "shop.4713")
        self.assertEqual(result.returncode, 0)
        self.assertNotIn("mixes runs", result.stderr.decode())
        self.assertIn("shop: is empty: its process recorded no span and no sample", result.stderr.decode())

    def test_files_in_the_folder_of_a_run_are_told(self):
        """Not those of the folders of another prefix or of an earlier run, nor a folder without files."""
        self.write_shop()
        for folder in ("shop.run-abcdef", "shop.run-empty", "shop.run-earlier", "other.run-abcdef"):
            (self.folder / folder).mkdir()
            self.write(f"{folder}/first", b"4711\n")
            if not folder.endswith("empty"):
                self.write(f"{folder}/4711.traces.jsonl", json_lines(traces()))
        os.utime(self.folder / "shop.run-earlier/4711.traces.jsonl", (1, 1))
        for prefix in ("shop", str(self.folder / "shop")):
            told = self.run_tool("spans", prefix).stderr.decode()
            self.assertEqual(told, f"spanprof: {prefix}: processes that went on after the end of the run have files in {prefix}.run-abcdef: "
                                   f"add {prefix}.run-abcdef/*.jsonl to read them\n")
        told = self.run_tool("spans", "shop", "shop.run-abcdef/4711.traces.jsonl").stderr.decode()
        self.assertNotIn("went on", told)

    def test_a_pattern_names_many_children_and_no_earlier_run(self):
        self.write_shop()
        for pid in ("1", "2", "3", *map(str, range(4710, 4718))):
            self.write(f"shop.{pid}.profiles.jsonl", json_lines(profiles()))
        result = self.run_tool("spans", "shop")
        self.assertIn("files of 8 other processes lie beside it, shop.PID.*: add shop.[0-9][0-9]*.jsonl to read all\n",
                      result.stderr.decode())
        self.write("shop.pid1.profiles.jsonl", json_lines(profiles()))
        self.assertIn("add shop.4710 shop.4711 shop.4712 shop.4713 shop.4714 shop.4715 and so on to read all\n",
                      self.run_tool("spans", "shop").stderr.decode())

    def test_children_of_an_earlier_run_are_told_apart(self):
        """The recording begins in 2023."""
        self.write_shop()
        for pid, year in ((4711, 2022), (4712, 2022), (4713, 2024)):
            for signal in ("traces", "profiles"):
                os.utime(self.folder / self.write(f"shop.{pid}.{signal}.jsonl", json_lines(traces())), (0, (year - 1970) * 31_557_600))
        result = self.run_tool("spans", "shop")
        self.assertEqual(result.stderr.decode(), "spanprof: shop: files of 1 other process lie beside it, shop.PID.*: add "
                                                 "shop.4713 to read all; those of 2 more ended before this run began\n")
        for signal in ("traces", "profiles"):
            (self.folder / f"shop.4713.{signal}.jsonl").unlink()
        self.answer("spans", "shop")
        self.refuse(2, "spans", self.folder / "shop.9", says="no such file")

    def test_children_that_are_named_are_not_told_again(self):
        self.write_shop()
        for pid in (4711, 4712, 47):
            self.write(f"shop.{pid}.traces.jsonl", json_lines(traces([span("12" * 16, f"{pid:016x}", "child", 0, 5)])))
        result = self.run_tool("spans", "shop", "shop.4711", "shop.47.traces.jsonl")
        self.assertIn(": add shop.4712 to read all\n", result.stderr.decode())
        self.answer("spans", "shop", "shop.4711", "shop.47.traces.jsonl", "shop.4712")

    def test_prefix_that_only_children_have_is_told_their_files(self):
        self.write("server.4711.traces.jsonl", json_lines(traces()))
        self.refuse(2, "spans", "server", says=("server: this prefix has no files", "1 other process lie", "add server.4711 to read all"))
        self.write("server", b"\x7fELF")
        (self.folder / "server").chmod(0o755)
        self.refuse(2, "spans", "server", says="this prefix has no files of its own")
        self.write("pod.pid2.traces.binpb", framed(traces()))
        self.refuse(2, "spans", self.folder / "pod", says=("1 other process", "add", "pod.pid2 to read all"))

    def test_prefix_that_stands_for_two_runs_is_refused(self):
        self.write_shop()
        self.write("shop.traces.binpb", framed(traces()))
        self.write("shop.profiles.binpb", b"")
        for command in ("flame", "spans", "stats", "check"):
            self.refuse(2, command, "shop", says=("shop", "shop.traces.jsonl", "shop.traces.binpb", "two runs"))
        self.assertEqual(json.loads(self.stacks("shop.traces.jsonl", "shop.profiles.jsonl"))["total"], 250_000_000)

    def test_prefix_with_empty_files_of_the_other_format_is_one_run(self):
        self.write_shop()
        before = self.stacks("shop")
        self.write("shop.traces.binpb", b"")
        self.write("shop.profiles.binpb", b"")
        self.assertEqual(self.stacks("shop"), before)

    def test_prefix_stands_for_all_parts_in_their_order(self):
        for part, service in ((".0002", "b"), (".0010", "c"), (".0001", "a"), ("", "d")):
            self.write(f"run.profiles{part}.jsonl", json_lines(profiles(service=service)))
        for other in ("run.profiles.1.jsonl", "run.profiles.00011.jsonl", "run.profiles.0003.jsonl.new", "runs.traces.0001.jsonl"):
            self.write(other, b"no part of it")
        self.answer("convert", "run", "-o", "all.json", "--to", "otlp-json")
        services = [attribute["value"]["stringValue"] for resource in json.loads((self.folder / "all.json").read_text())["resourceProfiles"]
                    for attribute in resource["resource"]["attributes"] if attribute["key"] == "service.name"]
        self.assertEqual(services, ["a", "b", "c", "d"])
        for part in (".0001", ""):
            self.write(f"run.traces{part}.jsonl", json_lines(traces()))
        self.assertEqual(json.loads(self.stacks("run"))["total"], 4 * 250_000_000)

    def test_prefix_of_parts_alone(self):
        self.write("run.profiles.0001.binpb", framed(profiles()))
        self.write("run.traces.0001.binpb", framed(traces()))
        self.write("run.traces.binpb", b"")
        self.assertEqual(json.loads(self.stacks("run"))["total"], 250_000_000)

    def test_prefix_with_parts_of_both_formats_is_refused(self):
        self.write("run.traces.0001.jsonl", json_lines(traces()))
        self.write("run.traces.binpb", framed(traces()))
        self.refuse(2, "stats", "run", says=("run.traces.0001.jsonl", "run.traces.binpb", "two runs"))

    def test_files_of_two_runs_named_by_a_pattern_are_told(self):
        """As by app*.jsonl. The recording begins in 2023."""
        self.write_shop()
        names = ["shop.traces.jsonl", "shop.profiles.jsonl"]
        for pid, year in (("1", 2021), ("4711", 2022), ("4713", 2024)):
            for signal in ("traces", "profiles"):
                names.append(self.write(f"shop.{pid}.{signal}.jsonl", json_lines(globals()[signal](service=pid))))
                os.utime(self.folder / names[-1], (0, (year - 1970) * 31_557_600))
        said = ("spanprof: the answer mixes runs: shop.1, shop.4711 ended before this run of shop began; leave these out, or name "
                "shop alone to see which files are of its run\n")
        for arguments in (sorted(map(str, names)), [*sorted(map(str, names[2:])), "shop"]):
            for command in ("spans", "flame", "stats"):
                result = self.run_tool(command, *arguments)
                self.assertEqual((result.returncode, result.stderr.decode()), (0, said))
        self.answer("spans", *names[:2], *map(str, names[-2:]))
        self.answer("spans", "shop.1")

    def test_prefix_of_an_earlier_run(self):
        for name in ("traces", "profiles"):
            self.write(f"shop.{name}.jsonl", json_lines(globals()[name]()))
            self.write(f"shop.1.{name}.jsonl", json_lines(globals()[name](service="earlier")))
        self.assertEqual([item["service"] for item in self.answer_json("stats", "shop.1", "--json")["producers"]], ["earlier"])

    def test_standard_input(self):
        result = subprocess.run([TOOL, "flame", "-", "--format", "folded"], input=gzip.compress(json_lines(profiles())),
                                stdout=subprocess.PIPE, check=True)
        self.assertEqual(len(result.stdout.splitlines()), 5)

    def test_unknown_fields_are_passed_over(self):
        request = profiles()
        request["somethingNew"] = [1, {"x": None}]
        request["dictionary"]["functionTable"][1]["alsoNew"] = "x"
        self.write("new.jsonl", json_lines(request))
        self.assertEqual(len(self.answer("flame", "new.jsonl", "--format", "folded").splitlines()), 5)

    def test_empty_messages_in_a_file_are_passed_over(self):
        self.write("whole.binpb", framed(profiles()))
        self.write("holes.binpb", bytes(3) + framed(profiles()) + bytes(2))
        self.assertEqual(self.answer("flame", "holes.binpb", "--format", "json"), self.answer("flame", "whole.binpb", "--format", "json"))

    def test_a_byte_order_mark_is_passed_over(self):
        mark = b"\xef\xbb\xbf"
        self.write("all.jsonl", mark + json_lines(traces()) + mark + b"\n" + mark + json_lines(profiles()))
        self.assertEqual(json.loads(self.stacks("all.jsonl"))["total"], 250_000_000)
        self.answer("check", "all.jsonl")

    def test_numbers_of_64_bits_need_no_quotes(self):
        request = profiles()
        request["dictionary"]["locationTable"][1] = {"address": 18446744071578845184}
        request["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["timeUnixNano"] = 1.7e18
        text = json_lines(request)
        self.assertIn(b"1.7e+18", text)
        self.write("p.jsonl", text)
        self.assertIn("[unknown]+0xffffffff81000000", self.answer("flame", "p.jsonl", "--format", "folded"))
        self.answer("convert", "p.jsonl", "--to", "otlp-json", "-o", "plain.json")
        self.assertIn('"timeUnixNano":"1700000000000000000"', (self.folder / "plain.json").read_text())

    def test_a_request_without_dictionary_leaves_the_others(self):
        self.write_shop()
        bare = {"resourceProfiles": [{"scopeProfiles": [{"profiles": [{"sampleType": {}, "samples": []}]}]}]}
        for request in (bare, {**bare, "dictionary": {}}):
            self.write("bare.json", json.dumps(request).encode())
            self.assertEqual(self.stacks("bare.json", "shop"), self.stacks("shop"))
            self.assertEqual(self.answer("spans", "bare.json", "shop"), self.answer("spans", "shop"))
            self.assertIn("\n[no type]: 1 profile, 0 samples\n", self.answer("stats", "bare.json"))
            self.refuse(1, "flame", "bare.json", says="the files have no samples\n")
            self.answer("convert", "bare.json", "shop.profiles.jsonl", "--to", "otlp", "-o", "all.pb")
            self.assertEqual(self.stacks("shop.traces.jsonl", "all.pb"), self.stacks("shop"))

    def test_index_0_of_a_table_that_is_not_there_is_none(self):
        sample = {"stackIndex": 0, "values": ["3"]}
        self.write("p.json", json.dumps({"resourceProfiles": [{"scopeProfiles": [{"profiles": [{"samples": [sample]}]}]}]}).encode())
        self.assertEqual(self.answer("flame", "p.json", "--format", "folded"), "[no stack] 3\n")

    def test_a_request_without_samples_does_not_choose_the_type(self):
        self.write("bare.json", b'{"resourceProfiles": [{"scopeProfiles": [{"profiles": [{"sampleType": {}}]}]}]}')
        self.write("heap.jsonl", json_lines(profiles(kind=("heap", "bytes", "", ""))))
        self.assertEqual(self.answer("flame", "bare.json", "heap.jsonl", "--format", "folded"),
                         self.answer("flame", "heap.jsonl", "--format", "folded"))

    def test_references_in_resources_are_resolved(self):
        request = profiles()
        strings = request["dictionary"]["stringTable"]
        strings += ["service.name", "by-reference"]
        request["resourceProfiles"][0]["resource"]["attributes"] = [
            {"keyStrindex": len(strings) - 2, "value": {"stringValueStrindex": len(strings) - 1}}]
        self.write("refs.jsonl", json_lines(request))
        self.answer("check", "refs.jsonl")
        self.answer("convert", "refs.jsonl", "--to", "otlp-json", "-o", "plain.json")
        resource = json.loads((self.folder / "plain.json").read_text())["resourceProfiles"][0]["resource"]
        self.assertEqual(resource["attributes"], [{"key": "service.name", "value": {"stringValue": "by-reference"}}])


    def test_files_of_a_collector_that_writes_references_answer_the_same(self):
        self.write_shop()
        plain = both_profiles()
        more = [attribute("host.name", "h"), {"key": "tags", "value": {"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "5"}]}}},
                {"key": "map", "value": {"kvlistValue": {"values": [attribute("inner", "b")]}}}]
        plain["resourceProfiles"][0]["resource"]["attributes"] += more
        plain["resourceProfiles"][0]["scopeProfiles"][0]["scope"]["attributes"] = [attribute("scope.attribute", "s")]
        self.write("plain.jsonl", json_lines(plain))
        self.write("refers.jsonl", json_lines(by_reference(json.loads(json.dumps(plain)))))
        self.assertNotIn(b'"stringValue"', (self.folder / "refers.jsonl").read_bytes())
        for command in (["stats"], ["stats", "--json"], ["check"], ["flame", "--format", "json"], ["flame", "--type", "offcpu"],
                        ["spans", "shop.traces.jsonl"]):
            self.assertEqual(self.answer(*command, "refers.jsonl"), self.answer(*command, "plain.jsonl"), command)
        self.assertIn("engine timer (asked for)", self.answer("stats", "refers.jsonl"))
        for name in ("plain", "refers"):
            self.answer("convert", name + ".jsonl", "--to", "otlp-json", "-o", name + ".json")
        self.assertEqual(*(resolved(json.loads((self.folder / name).read_text())) for name in ("plain.json", "refers.json")))

    def test_of_two_keys_the_text_counts(self):
        request = profiles()
        strings = request["dictionary"]["stringTable"]
        request["resourceProfiles"][0]["resource"]["attributes"] = [
            {"key": "service.name", "keyStrindex": len(strings) - 1, "value": {"stringValue": "shop"}}]
        self.write("two.jsonl", json_lines(request))
        self.answer("convert", "two.jsonl", "--to", "otlp-json", "-o", "plain.json")
        resource = json.loads((self.folder / "plain.json").read_text())["resourceProfiles"][0]["resource"]
        self.assertEqual(resource["attributes"], [attribute("service.name", "shop")])


class Repeats(ToolTest):
    """A profile that is given twice counts once, as a span does."""
    REMARK = rb"\Aspanprof: [^\n]*%s[^\n]*counted once\n\Z"

    def check_once(self, remark, *files, once="shop.profiles.jsonl"):
        for command in (["stats", "--json"], ["flame", "--format", "json"], ["spans", "shop.traces.jsonl", "--json"]):
            wanted = self.answer(*command, once)
            result = self.run_tool(*command, *files)
            self.assertEqual((result.returncode, result.stdout.decode()), (0, wanted), command)
            self.assertRegex(result.stderr, self.REMARK % remark)

    def test_the_same_file_twice(self):
        self.write_shop()
        self.check_once(b"shop.profiles.jsonl: 1 profile ", "shop.profiles.jsonl", "shop.profiles.jsonl")

    def test_a_prefix_and_its_file(self):
        self.write_shop()
        self.check_once(b"shop.profiles.jsonl: 1 profile ", "shop.profiles.jsonl", "shop", once="shop")

    def test_both_formats(self):
        request = both_profiles()
        self.write("shop.traces.jsonl", json_lines(traces()))
        self.write("shop.profiles.jsonl", json_lines(request))
        self.write("copy.binpb", framed(request))
        self.check_once(b"copy.binpb: 2 profiles ", "shop.profiles.jsonl", "copy.binpb")

    def test_what_was_converted_and_its_source(self):
        self.write_shop()
        self.answer("convert", "shop.profiles.jsonl", "--to", "otlp", "-o", "copy.pb")
        self.check_once(b"copy.pb: 1 profile ", "shop.profiles.jsonl", "copy.pb")

    def test_converting_twice_the_same_gives_it_once(self):
        self.write_shop()
        self.answer("convert", "shop.profiles.jsonl", "--to", "otlp-json", "-o", "once.json")
        result = self.run_tool("convert", "shop.profiles.jsonl", "shop.profiles.jsonl", "--to", "otlp-json", "-o", "twice.json")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, self.REMARK % b"shop.profiles.jsonl: 1 profile ")
        self.assertEqual((self.folder / "twice.json").read_bytes(), (self.folder / "once.json").read_bytes())

    def test_profiles_without_id_are_never_the_same(self):
        request = profiles()
        for no_id in ("", "0" * 32):
            request["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["profileId"] = no_id
            self.write("p.jsonl", json_lines(request, request))
            self.assertEqual(json.loads(self.answer("flame", "p.jsonl", "--format", "json"))["count"], 60)

    def test_profiles_of_two_types_may_share_an_id(self):
        request = both_profiles()
        made = request["resourceProfiles"][0]["scopeProfiles"][0]["profiles"]
        made[1]["profileId"] = made[0]["profileId"]
        self.write("p.jsonl", json_lines(request))
        self.assertEqual([item["profiles"] for item in self.answer_json("stats", "p.jsonl", "--json")["types"]], [1, 1])


class BadInput(ToolTest):
    def refuse_all(self, name, says=()):
        for command in (["flame"], ["spans"], ["stats"], ["check"], ["convert", "--to", "otlp", "-o", "out"]):
            self.refuse(2, command[0], name, *command[1:], says=says)
        self.assertFalse((self.folder / "out").exists())

    def test_missing(self):
        self.refuse_all("nowhere.jsonl", ("nowhere.jsonl", "no such file"))

    def test_empty(self):
        self.write("empty.jsonl", b"")
        self.refuse_all("empty.jsonl", ("empty.jsonl", "is empty"))
        for name, space in (("lines.jsonl", b"\n\r\n \t\n" * 20), ("mark.jsonl", b"\xef\xbb\xbf\n"), ("blank", b" ")):
            self.write(name, space)
            self.refuse_all(name, (name, "is empty"))
        self.write("empty.gz", gzip.compress(b""))
        self.refuse_all("empty.gz", "is empty")

    def test_huge_numbers_below_keys_that_are_not_read_do_not_matter(self):
        request = json.dumps(traces())
        self.write("huge.jsonl", f"{{\"tomorrow\": [{'9' * 400}, 1e999, -{'9' * 20}], {request[1:]}\n".encode())
        self.write("shop.jsonl", request.encode())
        self.assertEqual(self.answer("spans", "huge.jsonl"), self.answer("spans", "shop.jsonl"))
        self.write("huge.jsonl", request.replace(f'"{START + 1_000_000_000}"', "1e999", 1).encode())
        self.refuse_all("huge.jsonl", ("huge.jsonl", "not valid JSON"))

    def test_empty_among_others(self):
        shop = self.write_shop()
        for name in ("empty.jsonl", "empty.traces.jsonl", "empty.profiles.jsonl"):
            self.write(name, b"")
        for command in (["flame", "--span", REPORT], ["spans"], ["check"]):
            wanted = self.answer(command[0], shop, *command[1:])
            for files, remark in (((shop, "empty.jsonl"), rb"empty\.jsonl: is empty"), (("empty.traces.jsonl", shop), rb"empty\.traces\.jsonl: is empty"),
                                  ((shop, "empty"), rb"empty: is empty"), (("empty", shop, "empty.jsonl"), rb"empty: is empty [^\n]*1 more")):
                result = self.run_tool(command[0], *files, *command[1:])
                self.assertEqual((result.returncode, result.stdout.decode()), (0, wanted), result.stderr)
                self.assertRegex(result.stderr, rb"\Aspanprof: " + remark + rb"[^\n]*\n\Z")
        self.refuse(2, "flame", "empty", says=("empty", "is empty"))
        self.refuse(2, "flame", "empty", "empty.jsonl", says=("empty", "is empty", "1 more"))

    def test_directory(self):
        (self.folder / "folder").mkdir()
        self.refuse_all("folder", ("folder", "is a directory"))

    def test_program_without_files(self):
        for name, content in (("hello", b"\x7fELF\x02\x01" + bytes(90)), ("hello.sh", b"#!/bin/sh\nexit 0\n")):
            (self.folder / self.write(name, content)).chmod(0o755)
            self.refuse_all(name, (f"{name}: is a program, and there are no files of this prefix", f"SPANPROF_EXPORTER=file SPANPROF_FILE={name} "))
        (self.folder / self.write("all.jsonl", json_lines(traces()))).chmod(0o777)  # as on a file system without rights
        self.answer("spans", "all.jsonl")

    def test_unreadable(self):
        if os.geteuid() == 0:
            self.skipTest("root reads everything")
        self.write("secret.jsonl", json_lines(traces()))
        (self.folder / "secret.jsonl").chmod(0)
        self.refuse_all("secret.jsonl", ("secret.jsonl", "Permission denied"))

    def test_wrong_type(self):
        samples = {"text": b"hello, world\n", "png": b"\x89PNG\r\n\x1a\n" + bytes(64), "elf": b"\x7fELF" + bytes(60),
                   "zeros": bytes(4096), "space": b" \n\t \n", "array": b"[1, 2]", "newline": b"\nHello there, this is text"}
        for name, data in samples.items():
            self.write(name, data)
            self.refuse_all(name, name)
            self.write(name + ".gz", gzip.compress(data))
            self.refuse_all(name + ".gz", name)

    def test_random_bytes_are_not_recognized(self):
        dice = random.Random(1)
        for number in range(40):
            self.write("random", dice.randbytes(dice.randrange(1, 3000)))
            self.refuse(2, "flame", "random", says="random")

    def test_json_of_something_else(self):
        self.write("a.json", b'{"hello": 1}')
        self.refuse_all("a.json", ("line 1", "no OTLP request"))
        self.write("logs.json", b'\n{"resourceLogs": []}')
        self.refuse_all("logs.json", ("line 2", "logs or metrics"))
        self.write("both.json", json.dumps({**traces(), **profiles()}).encode())
        self.refuse_all("both.json", "traces and profiles")

    def test_json_with_a_mistake_tells_line_and_field(self):
        bad = traces()
        bad["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["spanId"] = "not hex"
        self.write("bad.jsonl", json_lines(traces(), bad))
        self.refuse_all("bad.jsonl", ("bad.jsonl", "line 2", "spans[1].spanId"))

    def test_json_followed_by_rubbish(self):
        self.write("tail.jsonl", json_lines(traces()) + b"rubbish")
        self.refuse_all("tail.jsonl", ("line 2", "JSON object has to begin"))

    def test_cut_json_tells_where(self):
        data = json_lines(profiles())
        self.write("cut.jsonl", data[:-40])
        self.refuse_all("cut.jsonl", ("line 1", "cut", str(len(data) - 40)))

    def test_cut_protobuf_tells_where(self):
        for name, data in (("framed", framed(profiles())), ("bare", protobuf(profiles()))):
            self.write(name, data[:-7])
            self.refuse_all(name, (name, "cut", f"byte {len(data) - 7}"))

    def torn(self, *command):
        """The answer of COMMAND from a file whose end is missing, and the sentence about it."""
        result = self.run_tool(*command)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr.decode(), r"\Aspanprof: [^\n]+\n\Z")
        return result.stdout.decode(), result.stderr.decode()

    def test_torn_end_of_lines_or_messages_leaves_what_is_before_it(self):
        for write, where in ((json_lines, "line 2"), (framed, "request 2")):
            with self.subTest(where):
                whole, tail = write(profiles(SAMPLES[:2])), write(profiles())
                self.write("whole", whole)
                self.write("torn", whole + tail[:-20])
                self.write("torn.gz", gzip.compress(whole + tail[:-20]))
                for command in (["stats", "--json"], ["flame", "--format", "json"], ["convert", "--to", "otlp-json", "-o", "-"]):
                    for name in "torn", "torn.gz":
                        answer, error = self.torn(command[0], name, *command[1:])
                        self.assertEqual(answer.replace(name, "whole"), self.answer(command[0], "whole", *command[1:]))
                        for part in name, where, f"byte {len(whole + tail) - 20}":
                            self.assertIn(part, error)
                self.assertIn("1 of profiles", self.torn("check", "torn")[0])

    def test_torn_spans_are_answered_and_compared(self):
        self.write("torn.traces.jsonl", json_lines(traces()) + b'{"resourceSpans":[')
        self.write("torn.profiles.jsonl", json_lines(profiles()))
        self.write_shop()
        self.assertEqual(self.torn("spans", "torn")[0], self.answer("spans", "shop"))
        self.assertIn("line 2", self.torn("diff", "torn", "shop")[1])
        self.assertIn("line 2", self.torn("diff", "shop", "torn")[1])

    def test_torn_line_in_the_middle_is_refused(self):
        line = json_lines(profiles())
        self.write("middle.jsonl", line + line[:-40] + b"\n" + line)
        self.refuse_all("middle.jsonl", ("line 2", "cut"))
        frame = framed(profiles())
        self.write("middle.binpb", frame + frame[:-40] + frame)
        self.refuse_all("middle.binpb", "middle.binpb")

    def test_cut_gzip_tells_where(self):
        data = gzip.compress(json_lines(traces(), profiles()))
        self.write("cut.gz", data[: len(data) // 2])
        self.refuse_all("cut.gz", ("cut.gz", "gzip data is cut"))

    def test_damaged_gzip(self):
        data = bytearray(gzip.compress(json_lines(traces(), profiles())))
        data[len(data) // 2] ^= 0xFF
        self.write("bad.gz", bytes(data))
        self.refuse_all("bad.gz", ("bad.gz", "gzip data is"))

    def test_nesting_without_end(self):
        value = {"stringValue": "x"}
        for _ in range(120):
            value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
        deep = traces()
        deep["resourceSpans"][0]["resource"]["attributes"] = [{"key": "k", "value": value}]
        self.write("deep.jsonl", json_lines(deep))
        self.refuse_all("deep.jsonl")
        self.write("deep.pb", protobuf(deep))
        self.refuse_all("deep.pb")
        self.write("braces.json", b'{"resourceSpans":' + b"[" * 1_000_000)
        self.refuse_all("braces.json")

    def test_gzip_bomb_of_zeros_is_refused(self):
        self.write("bomb.gz", gzip.compress(bytes(64 << 20)))
        self.refuse(2, "flame", "bomb.gz", says="bomb.gz")

    def test_indices_outside_their_tables_are_refused(self):
        for table, entry, key in (("stackTable", 2, "locationIndices"), ("locationTable", 1, None)):
            for index in (999, -1):
                bad = profiles()
                if key:
                    bad["dictionary"][table][entry][key] = [index]
                else:
                    bad["dictionary"][table][entry]["lines"][0]["functionIndex"] = index
                self.write("bad.jsonl", json_lines(bad))
                self.refuse(2, "flame", "bad.jsonl", says=("sample", str(index), "spanprof check"))
                self.refuse(2, "convert", "bad.jsonl", "--to", "otlp", "-o", "-", says=str(index))

    def test_dictionary_that_is_missing_is_refused(self):
        bad = profiles()
        del bad["dictionary"]
        self.write("bad.jsonl", json_lines(bad))
        self.refuse(2, "flame", "bad.jsonl")


class ManyParts(ToolTest):
    """Files that are long enough to be read by several threads: what is said is the same."""

    def requests(self):
        long = attribute("text", "x" * 3000)
        return [traces([span(f"{i + 1:032x}", f"{i + 1:016x}", f"name {i}", i, 5, attributes=[long])]) for i in range(400)]

    def names(self, name):
        return [item["name"] for item in self.answer_json("spans", name, "--json", "--limit", "0")["spans"]]

    def test_all_containers_have_all_spans(self):
        made = self.requests()
        expected = sorted(f"name {i}" for i in range(400))
        files = {"lines.jsonl": json_lines(*made), "framed.binpb": framed(*made), "one_line.json": b"".join(json.dumps(each).encode() for each in made),
                 "pretty.json": b"".join(json.dumps(each, indent=1).encode() for each in made[:100])
                                + b"".join(json.dumps(each).encode() + b" \r\n" for each in made[100:])}
        for name, data in files.items():
            self.write(name, data)
            self.assertEqual(sorted(self.names(name)), expected, name)

    def test_the_first_mistake_of_several_is_named(self):
        made = self.requests()
        for number in (150, 300):
            made[number]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] = "not hex"
        self.write("bad.jsonl", json_lines(*made) + b"rubbish")
        self.refuse(2, "spans", "bad.jsonl", says=("line 151,", "spans[0].spanId"))
        good = json_lines(*self.requests())
        self.write("tail.jsonl", good + b"rubbish")
        self.refuse(2, "spans", "tail.jsonl", says=("line 401", "JSON object has to begin"))
        self.write("cut.jsonl", good[:-40])
        self.refuse(2, "spans", "cut.jsonl", says=("line 400", "cut", str(len(good) - 40)))
        self.write("logs.jsonl", good + b'{"resourceLogs": []}\n' + good)
        self.refuse(2, "spans", "logs.jsonl", says=("line 401", "logs or metrics"))

    def test_cut_and_damaged_protobuf(self):
        data = framed(*self.requests())
        self.write("cut.binpb", data[:-7])
        self.refuse(2, "spans", "cut.binpb", says=("cut", f"byte {len(data) - 7}"))
        damaged = bytearray(data)
        damaged[len(data) // 2:len(data) // 2 + 8000] = b"\xff" * 8000
        self.write("damaged.binpb", bytes(damaged))
        self.refuse(2, "spans", "damaged.binpb", says="not recognized")


class Progress(ToolTest):
    """A tool that reads from a FIFO as slowly as the test writes."""

    def start(self, name, terminal, **environment):
        os.mkfifo(self.folder / name)
        ours, theirs = pty.openpty() if terminal else os.pipe()
        around = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "TERM")}
        process = subprocess.Popen([TOOL, "spans", name], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs,
                                   env={**around, "TERM": "xterm", **environment})
        self.addCleanup(process.stdout.close)
        os.close(theirs)
        return process, open(self.folder / name, "wb", buffering=0), ours

    def finish(self, process, fifo, ours):
        """What the tool has still to say on standard error."""
        fifo.write(json_lines(traces()))
        fifo.close()
        self.assertIn("GET /report", process.stdout.read().decode())
        self.assertEqual(process.wait(), 0)
        said = b""
        try:
            while chunk := os.read(ours, 65536):
                said += chunk
        except OSError:  # the other end of the terminal is closed
            pass
        os.close(ours)
        return said

    def test_long_work_shows_how_far_it_is_on_a_terminal_only(self):
        quiet = [self.start("pipe", False), self.start("dumb", True, TERM="dumb")]
        terminal = self.start("slow", True, NO_COLOR="1")
        said, deadline = b"", time.monotonic() + 300
        while b"reading slow" not in said:
            self.assertLess(time.monotonic(), deadline, said)
            for _, fifo, _ in (*quiet, terminal):
                fifo.write(b"\n" * 65536)
            if select.select([terminal[2]], [], [], 0.02)[0]:
                said += os.read(terminal[2], 65536)
        for _, fifo, _ in quiet:  # they began no later, and look at the clock once more
            fifo.write(b"\n" * 1024 * 1024)
        said += self.finish(*terminal)
        *lines, left = said.decode().split("\r\x1b[K")
        self.assertEqual(left, "")  # the last one is erased
        for line in filter(None, lines):
            self.assertRegex(line, r"\A((reading|decoding) slow|taking in (spans|samples)): [0-9.]+ (bytes|[KM]iB)( of [0-9.]+ (bytes|[KM]iB))?\Z")
        self.assertEqual([self.finish(*each) for each in quiet], [b"", b""])


if __name__ == "__main__":
    unittest.main()
