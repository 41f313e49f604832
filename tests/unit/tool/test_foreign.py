#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles of other formats that the spanprof command reads: collapsed stacks and pprof."""
import gzip
import random

from otlp import *


def field(number, value):
    """A field of protobuf: a number, bytes, or a list of numbers (packed)."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = b"".join(map(varint, value)) if isinstance(value, list) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


class Pprof:
    """A pprof profile, with ids that are not indices."""

    def __init__(self, types, period=None):
        self.strings, self.functions, self.body = [""], {}, b""
        for kind in types:
            self.body += field(1, self.value_type(*kind))
        if period:
            self.body += field(11, self.value_type(*period[:2])) + field(12, period[2])
        self.body += field(3, field(1, 900) + field(2, 4096) + field(3, 8192) + field(5, self.string("/bin/shop")))

    def string(self, text):
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def value_type(self, kind, unit):
        return field(1, self.string(kind)) + field(2, self.string(unit))

    def location(self, name):
        if name not in self.functions:
            own = 2**63 + 7 * len(self.functions)
            self.functions[name] = own
            self.body += field(5, field(1, own) + field(2, self.string(name)) + field(4, self.string("shop.c")))
            self.body += field(4, field(1, own + 1) + field(2, 900) + field(3, 4096 + len(self.functions)) +
                               field(4, field(1, own) + field(2, 12)))
        return self.functions[name] + 1

    def label(self, key, value):
        data = field(1, self.string(key))
        return data + (field(3, value) if isinstance(value, int) else field(2, self.string(value)))

    def sample(self, names, values, labels=None):
        data = field(1, [self.location(name) for name in reversed(names)]) + field(2, values)
        for key, value in (labels or {}).items():
            data += field(3, self.label(key, value))
        self.body += field(2, data)
        return self

    def bytes(self):
        return self.body + b"".join(field(6, text.encode()) for text in self.strings)


CPU = (("samples", "count"), ("cpu", "nanoseconds"))


class Collapsed(ToolTest):
    def folded(self, data, name="stacks.txt"):
        self.write(name, data)
        return self.answer("flame", name, "--format", "folded")

    def test_reads_what_it_writes(self):
        text = "main 3\nmain;work 5\nmain;work;leaf with spaces 12\n"
        self.assertEqual(self.folded(text.encode()), text)
        self.assertEqual(self.folded(gzip.compress(text.encode())), text)
        piped = subprocess.run([TOOL, "flame", "-", "--format", "folded"], input=text.encode(), stdout=subprocess.PIPE, check=True)
        self.assertEqual(piped.stdout.decode(), text)

    def test_line_ends_comments_and_exponents(self):
        data = b"# a comment\r\n\r\nmain;a 1e3\r\nmain;a\t2\r\nmain;b +4\r\n;main;;c; 1\nmain;d 0"
        self.assertEqual(self.folded(data), "main;a 1002\nmain;b 4\nmain;c 1\n")

    def test_fractions_are_added_up_before_they_are_rounded(self):
        self.write("stacks.txt", b"main;a 0.4\nmain;a .4\nmain;a 0.3\nmain;b 7.0\n")
        result = self.run_tool("flame", "stacks.txt", "--format", "folded")
        self.assertEqual(result.stdout, b"main;a 1\nmain;b 7\n")
        self.assertRegex(result.stderr, rb"\Aspanprof: stacks.txt: 3 numbers have a fraction[^\n]+\n\Z")

    def test_bad_lines_are_named_and_the_others_read(self):
        bad = [b"no number", b"main;a -5", b"main;b nan", b"main 1e400", b" 7", b"main;a 5x", b"main;a 1 e"]
        self.write("stacks.txt", b"main;a 1\n" + b"\n".join(bad) + b"\nmain;a 2\n")
        result = self.run_tool("flame", "stacks.txt", "--format", "folded")
        self.assertEqual((result.returncode, result.stdout), (0, b"main;a 3\n"))
        lines = result.stderr.decode().splitlines()
        for number, line in zip(range(2, 7), lines):
            self.assertIn(f"stacks.txt: line {number}: has ", line)
        self.assertIn("2 more lines", lines[5])
        self.assertEqual(len(lines), 6)

    def test_converts_to_otlp_and_back(self):
        dice = random.Random(5)
        stacks = {";".join(f"f{dice.randrange(9)}" for _ in range(dice.randrange(1, 9))): dice.randrange(1, 2**40)
                  for _ in range(500)}
        text = "".join(f"{stack} {stacks[stack]}\n" for stack in sorted(stacks))
        self.write("in.txt", text.encode())
        self.answer("convert", "in.txt", "--to", "otlp", "-o", "out.binpb")
        back = self.answer("flame", "out.binpb", "--format", "folded")
        self.assertEqual(sorted(back.splitlines()), sorted(text.splitlines()))

    def test_names_are_repaired(self):
        self.assertEqual(self.folded(b"main;\xff\xfe 3\n"), "main;\ufffd\ufffd 3\n")

    def test_text_without_stacks_is_not_recognized(self):
        self.write("notes.txt", b"these are\nonly notes\n")
        self.refuse(2, "flame", "notes.txt", says=("notes.txt", "not recognized"))


class PprofIn(ToolTest):
    def folded(self, made, *more):
        self.write("cpu.pprof", gzip.compress(made.bytes()))
        return self.answer("flame", "cpu.pprof", "--format", "folded", *more)

    def test_cpu_time_counts_once(self):
        made = Pprof(CPU, period=("cpu", "nanoseconds", 10 * MS)).sample(("main", "work"), [3, 30 * MS])
        self.assertEqual(self.folded(made), f"main;work {30 * MS}\n")
        answer = self.answer_json("flame", "cpu.pprof", "--format", "json")
        self.assertEqual((answer["type"], answer["unit"], answer["count"]), ("cpu", "nanoseconds", 3))

    def test_each_sample_type_can_be_asked_for(self):
        made = Pprof((("alloc_objects", "count"), ("alloc_space", "bytes"))).sample(("main", "work"), [3, 4096])
        self.assertEqual(self.folded(made, "--type", "alloc_space"), "main;work 4096\n")
        self.assertEqual(self.folded(made, "--type", "alloc_objects"), "main;work 3\n")

    def test_labels_become_links(self):
        span_number = int(RENDER, 16)
        made = Pprof(CPU, period=("cpu", "nanoseconds", 10 * MS))
        made.sample(("main", "a"), [1, 1], {"span_id": RENDER, "trace_id": REPORT_TRACE})
        made.sample(("main", "b"), [1, 2], {"span id": span_number, "local root span id": 5})
        made.sample(("main", "c"), [1, 3], {"local root span id": 7, "span id": str(span_number)})
        made.sample(("main", "d"), [1, 4], {"local root span id": str(span_number)})
        made.sample(("main", "e"), [1, 5], {"span id": "0x" + RENDER})
        made.sample(("main", "f"), [1, 6], {"profile_id": RENDER, "thread": "worker"})
        made.sample(("main", "g"), [1, 7], {"thread": "worker"})
        self.folded(made)
        stacks = self.answer_json("flame", "cpu.pprof", "--format", "json")["stacks"]
        links = {each["frames"][0]: (each["trace_id"], each["span_id"]) for each in stacks}
        unknown = "0" * 32
        self.assertEqual(links["a"], (REPORT_TRACE, RENDER))
        for name in "bcdef":
            self.assertEqual(links[name], (unknown, RENDER), name)
        self.assertEqual(links["g"], ("", ""))

    def test_a_label_without_trace_id_leads_to_the_span_of_its_id(self):
        made = Pprof(CPU, period=("cpu", "nanoseconds", 10 * MS)).sample(("main", "a"), [1, 30 * MS], {"span id": int(RENDER, 16)})
        self.folded(made)
        self.write("one.jsonl", json_lines(traces()))
        for files in (("cpu.pprof", "one.jsonl"), ("one.jsonl", "cpu.pprof")):
            stack, = self.answer_json("flame", *files, "--trace", REPORT_TRACE, "--format", "json")["stacks"]
            self.assertEqual((stack["trace_id"], stack["span_id"]), (REPORT_TRACE, RENDER))
            report, = self.answer_json("spans", *files, "--name", "GET /report", "--json")["spans"]
            self.assertEqual((report["own_value"], report["total_value"]), (0, 30 * MS))
        self.write("two.jsonl", json_lines(traces([span(CART_TRACE, RENDER, "other", 1, 1)])))
        self.refuse(1, "flame", "cpu.pprof", "one.jsonl", "two.jsonl", "--trace", REPORT_TRACE, says="no samples of trace")

    def test_other_labels_and_the_rest_survive_convert(self):
        made = Pprof(CPU[:1]).sample(("main", "work"), [3], {"tenant": "acme", "bytes": 77})
        self.folded(made)
        request = json.loads(self.answer("convert", "cpu.pprof", "--to", "otlp-json", "-o", "-"))
        tables = request["dictionary"]
        keys = [tables["stringTable"][each.get("keyStrindex", 0)] for each in tables["attributeTable"]]
        self.assertIn("tenant", keys)
        self.assertIn("bytes", keys)
        self.assertIn({"stringValue": "acme"}, [each.get("value") for each in tables["attributeTable"]])
        self.assertIn("/bin/shop", tables["stringTable"])
        self.assertIn("12", [line["line"] for each in tables["locationTable"] for line in each.get("lines", [])])

    def test_damage_is_refused(self):
        whole = Pprof(CPU, period=("cpu", "nanoseconds", 10 * MS))
        for i in range(5):
            whole.sample(("main", f"work{i}"), [i + 1, i + 1], {"tenant": "acme"})
        data = whole.bytes()
        for cut in range(1, len(data), 7):
            self.write("cut.pprof", data[:cut])
            result = self.run_tool("flame", "cut.pprof")
            self.assertIn(result.returncode, (0, 1, 2))
            self.assertLessEqual(result.stderr.count(b"\n"), 1)
        self.write("wrong.pprof", data + field(2, field(1, [12345]) + field(2, [1, 1])))
        self.refuse(2, "flame", "wrong.pprof", says=("sample 5", "location 12345"))
        self.write("wrong.pprof", data + field(1, field(1, 999)))
        self.refuse(2, "flame", "wrong.pprof", says="string 999")
        self.write("long.pprof", data + varint(2 << 3 | 2) + varint(10**9) + b"\x0a")
        self.refuse(2, "flame", "long.pprof", says="cut")


if __name__ == "__main__":
    unittest.main()
