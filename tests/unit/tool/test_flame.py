#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`spanprof flame`: forms, selections, and refusals."""
import xml.etree.ElementTree

from otlp import *

ALL_STACKS = """\
main;idle 10000000
main;serve;cart 40000000
main;serve;deflate 20000000
main;serve;report;append_row 200000000
main;serve;report;query_rows 30000000
"""

TEXT = """\
GET /report
span 00f067aa0ba902b7, trace 4bf92f3577b34da6a3ce929d0e0e4736, shop, 250 ms, with 3 descendants
cpu: 250 ms in 25 samples

 total     95 %    self              function
100.0%   84-100          ########## main
100.0%   84-100          ########## serve
 92.0%    74-99          #########  |- report
 80.0%    60-92   80.0%  ########   |  |- append_row
 12.0%     3-31   12.0%  #          |  `- query_rows
     ?                ?  #          `- deflate
"""
TEXT_UTF8 = """\
GET /cart
span b7ad6b7169203331, trace 0af7651916cd43dd8448eb211c80319c, shop, 60.0 ms, error
cpu: 40.0 ms in 4 samples
only 4 samples: too few samples to trust shares; record longer or with a higher SPANPROF_CPU_HZ

 total     95 %    self              function
100.0%   45-100          ██████████ main
100.0%   45-100          ██████████ serve
100.0%   45-100  100.0%  ██████████ cart
"""
REVERSED = """\
all samples
cpu: 300 ms in 30 samples

 total     95 %    self              leaf, and who called it
 66.7%    49-81   66.7%  ######-    |- append_row
 66.7%    49-81          ######-    |  report
 66.7%    49-81          ######-    |  serve
 66.7%    49-81          ######-    |  main
 13.3%     5-30   13.3%  #-         |- cart
 13.3%     5-30          #-         |  serve
 13.3%     5-30          #-         |  main
 10.0%     3-26   10.0%  #          |- query_rows
 10.0%     3-26          #          |  report
 10.0%     3-26          #          |  serve
 10.0%     3-26          #          |  main
 10.0%                   #          `- (2 smaller)
"""

class Forms(ToolTest):
    def setUp(self):
        super().setUp()
        self.write_shop()

    def test_text_shows_a_tree_with_branches_only_where_it_branches(self):
        self.assertEqual(self.answer("flame", "shop", "--span", REPORT, locale="C"), TEXT)

    def test_text_in_utf8_warns_of_few_samples(self):
        self.assertEqual(self.answer("flame", "shop", "--span", CART), TEXT_UTF8)

    def test_text_reversed_sums_up_what_is_small(self):
        self.assertEqual(self.answer("flame", "shop", "--reverse", "--min-percent", "10", locale="C"), REVERSED)

    def test_narrow_terminal_has_no_intervals(self):
        text = self.answer("flame", "shop", "--span", REPORT, locale="C", columns=71)
        self.assertIn("\n 80.0%   80.0%  ########   |  |- append_row\n", text)
        self.assertIn("\n     ?       ?  #          `- deflate\n", text)

    def test_intervals_of_several_requests_know_that_requests_differ(self):
        """Of 40 requests every fourth has all of the samples of `rare`: as 400 events they would be sure."""
        spans = [span(f"{i:032x}", f"{i:016x}", "GET /", i, 10) for i in range(1, 41)]
        made = [(("main", "rare" if i % 4 == 0 else "usual"), f"{i:032x}", f"{i:016x}", 10) for i in range(1, 41)]
        self.write("t.jsonl", json_lines(traces(spans)))
        self.write("p.jsonl", json_lines(profiles(made)))
        rare = next(each["total"] for each in self.answer_json("flame", "t.jsonl", "p.jsonl", "--format", "json")["functions"]
                    if each["name"] == "rare")
        alone = next(each["total"] for each in self.answer_json("flame", "p.jsonl", "--span", f"{4:016x}", "--format", "json")["functions"]
                     if each["name"] == "rare")
        self.assertEqual((rare["share"], alone["share"]), (25, 100))
        self.assertTrue(8 < rare["low"] < 17 and 36 < rare["high"] < 50, rare)

    def test_text_keeps_to_the_width(self):
        deep = [(tuple(f"a_function_with_a_long_name_{i}" for i in range(k)), "", "", 1) for k in range(1, 60)]
        self.write("deep.jsonl", json_lines(profiles(deep)))
        for columns in (40, 60, 133):
            lines = self.answer("flame", "deep.jsonl", columns=columns).splitlines()
            self.assertGreater(len(lines), 60)
            self.assertLessEqual(max(map(len, lines)), columns)

    def test_names_are_whole_in_a_pipe_and_cut_on_a_terminal(self):
        long = "a_function_" + "x" * 300
        self.write("long.jsonl", json_lines(profiles([(("main", long), "", "", 30)])))
        for words in (("flame", "long.jsonl"), ("flame", "long.jsonl", "--format", "table"), ("diff", "long.jsonl", "long.jsonl")):
            self.assertIn(f" {long}\n", self.answer(*words))
            self.assertNotIn(long, "\n".join(self.on_terminal(*words, columns=120)))
            self.assertNotIn(long, self.answer(*words, columns=120))

    def test_a_function_that_calls_itself_is_one_line(self):
        fib = [(("main",) + ("fib",) * k + ("add",) * (k % 2), "", "", 5) for k in range(1, 61)]
        self.write("fib.jsonl", json_lines(profiles(fib)))
        lines = self.answer("flame", "fib.jsonl", locale="C").splitlines()
        self.assertEqual([line[27:].strip(" #`-") for line in lines[-4:-1]], ["main", "fib (recursion, 60 deep)", "add"])
        self.assertEqual(lines[-1], "recursion: calls of a function by itself are one line; -o OUT.html draws each")
        self.assertEqual([line.split()[2] for line in lines[-3:-1]], ["50.0%", "50.0%"])
        self.assertEqual(self.answer("flame", "fib.jsonl", "--format", "folded").count("\n"), 60)
        reversed_lines = self.answer("flame", "fib.jsonl", "--reverse", locale="C").splitlines()
        self.assertLess(len(reversed_lines), 15)
        self.assertTrue(any(line.endswith("fib (recursion, 60 deep)") for line in reversed_lines), reversed_lines)

    def test_a_few_frames_of_one_name_are_not_called_recursion(self):
        self.write("few.jsonl", json_lines(profiles([(("main", "on_request", "on_request", "on_request", "serve"), "", "", 5)])))
        text = self.answer("flame", "few.jsonl")
        self.assertEqual((text.count(" on_request\n"), "recursion" in text), (3, False))

    def test_a_thread_is_no_call_of_a_function_of_its_name(self):
        self.write("t.jsonl", json_lines(profiles([(("main",) * 5, REPORT_TRACE, REPORT, 5)])))
        self.write("s.jsonl", json_lines(traces([span(REPORT_TRACE, REPORT, "main", 0, 50)])))
        lines = self.answer("flame", "t.jsonl", "s.jsonl", "--group-by", "span", locale="C").splitlines()
        self.assertEqual([line.split()[-1] for line in lines if line.startswith("100.0%")], ["main", "deep)"])

    def test_a_tree_of_many_frames_is_limited(self):
        deep = [(tuple(f"f{i}" for i in range(400)), "", "", 30), (("f0", "small"), "", "", 1), (("f0", "f1", "other"), "", "", 3)]
        self.write("deep.jsonl", json_lines(profiles(deep)))
        lines = self.answer("flame", "deep.jsonl").splitlines()
        self.assertEqual(len([line for line in lines if re.search(r" f\d+\Z", line)]), 100)
        self.assertTrue(lines[-1].startswith("… 302 more frames: flame --limit 0 shows all"), lines[-1])
        self.assertRegex(lines[-2], r"\(\d more\)\Z")
        ten = self.answer("flame", "deep.jsonl", "--limit", "10").splitlines()
        self.assertEqual(len([line for line in ten if re.search(r" f\d+\Z", line)]), 10)
        whole = self.answer("flame", "deep.jsonl", "--limit", "0")
        self.assertIn("f399\n", whole)
        self.assertIn("small\n", whole)
        self.assertNotIn("more frame", whole)
        self.refuse(2, "flame", "deep.jsonl", "--limit", "5", "--format", "folded", says=("--limit", "folded"))

    def test_folded_is_in_nanoseconds_and_sorted(self):
        self.assertEqual(self.answer("flame", "shop", "--format", "folded"), ALL_STACKS)

    def test_json_has_the_stacks_leaf_first(self):
        answer = self.answer_json("flame", "shop", "--span", REPORT, "--format", "json")
        stacks, functions = answer.pop("stacks"), {each.pop("name"): each for each in answer.pop("functions")}
        self.assertEqual(answer, {"type": "cpu", "unit": "nanoseconds", "total": 250_000_000, "count": 25, "sure": True})
        total = functions["report"]["total"]
        self.assertEqual((total["value"], total["share"], round(total["low"]), round(total["high"])), (230_000_000, 92, 74, 99))
        self.assertEqual(functions["report"]["self"], {"value": 0, "share": 0, "low": None, "high": None})
        self.assertEqual(stacks[0], {"frames": ["append_row", "report", "serve", "main"], "value": 200_000_000, "count": 20,
                                     "trace_id": REPORT_TRACE, "span_id": RENDER})
        self.assertEqual([(s["span_id"], s["count"]) for s in stacks], [(RENDER, 20), (QUERY, 3), (COMPRESS, 2)])

    def test_json_of_everything_has_samples_without_span(self):
        stacks = self.answer_json("flame", "shop", "--format=json")["stacks"]
        self.assertIn({"frames": ["idle", "main"], "value": 10_000_000, "count": 1, "trace_id": "", "span_id": ""}, stacks)

    def test_out_writes_the_file(self):
        self.assertEqual(self.answer("flame", "shop", "--format", "folded", "-o", "out.txt"), "")
        self.assertEqual((self.folder / "out.txt").read_text(), ALL_STACKS)

    def test_out_that_cannot_be_written_is_refused(self):
        self.refuse(2, "flame", "shop", "-o", "no/such/folder", says=("no/such/folder", "No such file"))

    def test_full_device_is_told(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([TOOL, "flame", "shop"], cwd=self.folder, stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"No space left", result.stderr)


class Picture(ToolTest):
    SVG = "{http://www.w3.org/2000/svg}"

    def draw(self, *arguments):
        return xml.etree.ElementTree.fromstring(self.answer("flame", *arguments, "--format", "svg"))

    def frames(self, picture):
        return {group.find(self.SVG + "title").text.split(": ")[0]: group for group in picture.iter(self.SVG + "g")}

    def test_svg_has_the_frames_by_their_widths(self):
        self.write_shop()
        picture = self.draw("shop", "--span", REPORT)
        frames = self.frames(picture)
        self.assertEqual(list(frames), ["GET /report", "main", "serve", "report", "append_row", "query_rows", "deflate"])
        place = lambda name: [float(frames[name].find(self.SVG + "rect").get(key)) for key in ("x", "y", "width", "height")]
        self.assertEqual(place("main")[2], 1180)
        self.assertAlmostEqual(place("append_row")[2], 1180 * 0.8, delta=0.1)
        self.assertAlmostEqual(place("query_rows")[0], place("append_row")[0] + place("append_row")[2], delta=0.2)
        self.assertEqual(place("query_rows")[1], place("append_row")[1])
        self.assertGreater(float(picture.get("height")), place("append_row")[1] + place("append_row")[3])
        self.assertEqual(frames["append_row"].find(self.SVG + "title").text, "append_row: 200 ms (80.0 %, 95 %: 60–92 %)")
        self.assertEqual(frames["deflate"].find(self.SVG + "title").text, "deflate: 20.0 ms (?)")
        self.assertEqual(list(self.frames(self.draw("shop", "--span", REPORT, "--min-percent", "50"))),
                         ["GET /report", "main", "serve", "report", "append_row"])
        self.assertIn("cpu: 250 ms in 25 samples", [text.text for text in picture.iter(self.SVG + "text")])

    def test_svg_of_hostile_names_is_a_picture_and_nothing_else(self):
        name = "</svg><script>alert(1)</script>\x1b[2J\x00&\ufffe\u202e\"'"
        self.write("t.jsonl", json_lines(traces([span(REPORT_TRACE, REPORT, name, 0, 9)])))
        self.write("p.jsonl", json_lines(profiles([((name, "leaf"), REPORT_TRACE, REPORT, 30)])))
        picture = self.draw("t.jsonl", "p.jsonl", "--span", REPORT)
        self.assertEqual({element.tag for element in picture.iter()}, {self.SVG + tag for tag in ("svg", "g", "title", "rect", "text")})
        self.assertEqual({key for element in picture.iter() for key in element.keys()},
                         {"width", "height", "viewBox", "font-family", "font-size", "fill", "x", "y", "font-weight"})


class NoStack(ToolTest):
    TEXT = """\
all samples
cpu: 100 ms in 10 samples
only 10 samples: too few samples to trust shares; record longer or with a higher SPANPROF_CPU_HZ

 total     95 %%    self              %s
 70.0%%    39-90   70.0%%  #######    |- [no stack]
 30.0%%    10-61   30.0%%  ###        `- main
"""

    def setUp(self):
        super().setUp()
        self.write("p.jsonl", json_lines(profiles([((), "", "", 7), (("main",), "", "", 3)])))

    def test_text_shows_samples_without_a_stack(self):
        self.assertEqual(self.answer("flame", "p.jsonl", locale="C"), self.TEXT % "function")
        self.assertEqual(self.answer("flame", "p.jsonl", "--reverse", locale="C"), self.TEXT % "leaf, and who called it")

    def test_all_forms_have_the_same_whole(self):
        self.assertEqual(self.answer("flame", "p.jsonl", "--format", "folded"), "[no stack] 70000000\nmain 30000000\n")
        answer = self.answer_json("flame", "p.jsonl", "--format", "json")
        self.assertEqual((answer["total"], [s["frames"] for s in answer["stacks"]]), (100_000_000, [[], ["main"]]))

    def test_nothing_but_samples_without_a_stack_is_shown(self):
        self.write("none.jsonl", json_lines(profiles([((), "", "", 40)])))
        self.assertIn("100.0%   90-100  100.0%  ########## [no stack]", self.answer("flame", "none.jsonl", locale="C"))

    def test_page_has_them_as_a_frame(self):
        result = self.run_tool("flame", "p.jsonl", "--format", "html")
        if b"built without the page" in result.stderr:
            self.skipTest("spanprof was built without the page")
        self.assertIn(b'{"n":"[no stack]","v":70000000,"s":70000000,"l":39.2,"h":89.7,"c":[]}', result.stdout)


class Stripped(ToolTest):
    """Most functions have no name: the answer says so, and what would name them."""
    SAYS = (b"spanprof: 67 % of the samples are in functions without a name, most of them in shop: install its debug symbols (on Debian a "
            b"package that ends in -dbgsym or -dbg), or set SPANPROF_DEBUGINFOD=1 and DEBUGINFOD_URLS to fetch them, or build it with -g and "
            b"without strip; then record again\n")

    def setUp(self):
        super().setUp()
        self.write("p.traces.jsonl", json_lines(traces()))
        self.write("p.profiles.jsonl", json_lines(
            profiles([(("main", "shop+0x1140"), REPORT_TRACE, RENDER, 20), (("main", "cart"), CART_TRACE, CART, 10)]),
            wall_profiles([(("shop+0x1", "shop+0x2", "recvfrom"), REPORT_TRACE, RENDER, 40 * MS, "network"),
                           (("main", "cart", "poll"), CART_TRACE, CART, 20 * MS, "network")])))

    def test_each_form_says_it(self):
        for options in ([], ["--format", "json"], ["--format", "folded"], ["--format", "table"], ["--format", "svg"], ["--format", "pprof"],
                        ["--format", "perfetto"], ["--type", "wall"], ["--type", "offcpu"]):
            with self.subTest(options=options):
                result = self.run_tool("flame", "p", *options)
                self.assertEqual((result.returncode, result.stderr), (0, self.SAYS))

    def test_the_share_is_that_of_the_selected_samples(self):
        self.assertIn(b"spanprof: 100 % of the samples are", self.run_tool("flame", "p", "--name", "GET /report").stderr)
        self.assertEqual(self.run_tool("flame", "p", "--name", "GET /cart").stderr, b"")


class Selections(ToolTest):
    def setUp(self):
        super().setUp()
        self.write_shop()

    def folded(self, *arguments):
        return self.answer("flame", *arguments, "--format", "folded").splitlines()

    def test_span_takes_in_descendants(self):
        self.assertEqual(self.folded("shop", "--span", RENDER),
                         ["main;serve;deflate 20000000", "main;serve;report;append_row 200000000"])

    def test_span_in_upper_case_is_the_same_span(self):
        self.assertEqual(self.folded("shop", "--span", RENDER.upper()), self.folded("shop", "--span", RENDER))

    def test_ids_may_have_a_prefix(self):
        self.assertEqual(self.folded("shop", "--span", "0x" + RENDER), self.folded("shop", "--span", RENDER))
        self.assertEqual(self.folded("shop", "--trace", "0x" + CART_TRACE), self.folded("shop", "--trace", CART_TRACE))

    def test_self_leaves_descendants_out(self):
        self.assertEqual(self.folded("shop", "--span", RENDER, "--self"), ["main;serve;report;append_row 200000000"])

    def test_trace_takes_its_spans(self):
        self.assertEqual(self.folded("shop", "--trace", CART_TRACE), ["main;serve;cart 40000000"])

    def test_several_spans_and_traces_are_their_union(self):
        self.assertEqual(self.folded("shop", "--span", COMPRESS, "--span", CART), ["main;serve;cart 40000000", "main;serve;deflate 20000000"])
        self.assertEqual(self.folded("shop", "--span", COMPRESS, "--span", RENDER), self.folded("shop", "--span", RENDER))
        self.assertEqual(self.folded("shop", "--trace", CART_TRACE, "--trace", REPORT_TRACE),
                         [line for line in ALL_STACKS.splitlines() if "idle" not in line])
        self.assertTrue(self.answer("flame", "shop", "--span", COMPRESS, "--span", CART).startswith("2 spans\n"))
        self.assertTrue(self.answer("flame", "shop", "--trace", CART_TRACE, "--trace", REPORT_TRACE).startswith("2 traces\n"))

    def test_one_of_several_spans_that_is_not_there_is_told(self):
        result = self.run_tool("flame", "shop", "--span", "12" * 8, "--span", CART, "--format", "folded")
        self.assertEqual((result.returncode, result.stdout), (0, b"main;serve;cart 40000000\n"))
        self.assertRegex(result.stderr, rb"\Aspanprof: no span (12){8} in the files[^\n]*\n\Z")
        self.refuse(1, "flame", "shop", "--trace", "12" * 16, "--trace", "34" * 16, says="none of these 2 traces is in any of these 2 files")

    def test_name_selects_spans_by_name(self):
        self.assertEqual(self.folded("shop", "--name", "GET /cart"), ["main;serve;cart 40000000"])
        self.assertEqual(self.folded("shop", "--name", "GET /report"), self.folded("shop", "--where", '{ name = "GET /report" }'))
        self.assertEqual(self.folded("shop", "--name", "GET /report", "--where", "duration > 1ns"), self.folded("shop", "--name", "GET /report"))
        self.refuse(1, "flame", "shop", "--name", "GET /report", "--where", "duration > 9s", says="--where and --name")
        both = self.folded("shop", "--name", "GET /cart", "--name", "GET /report")
        self.assertEqual(both, self.folded("shop", "--where", '{ name = "GET /report" || name = "GET /cart" }'))
        self.assertEqual(both, self.folded("shop", "--name", "GET /report", "--name", "GET /cart", "--name", "none"))
        self.refuse(1, "flame", "shop", "--name", "GET", says=("no span matches --name", "spanprof spans"))
        self.refuse(1, "flame", "shop", "--name", "GET /report", "--self", says=("1 span matches --name, and has no samples of its own", "leave out --self"))
        self.refuse(1, "flame", "shop.profiles.jsonl", "--name", "GET /report", says=("the files hold no spans", ".traces file"))
        self.refuse(2, "flame", "shop", "--name", "a", "--span", CART, says="--name")

    def test_end_of_the_file_chooses_the_format(self):
        for name, start in (("x.folded", "main;idle"), ("x.json", '{"type"'), ("x.svg", "<?xml"), ("x.txt", "all samples"), ("x", "all samples"), (".json", "all samples")):
            self.assertEqual(self.answer("flame", "shop", "-o", name), "")
            self.assertTrue((self.folder / name).read_text().startswith(start), name)
        self.answer("flame", "shop", "-o", "x.json", "--format", "folded")
        self.assertEqual((self.folder / "x.json").read_text(), ALL_STACKS)

    def test_end_of_the_file_that_is_no_format_is_refused(self):
        (self.folder / "dot.d").mkdir()
        self.assertEqual(self.answer("flame", "shop", "-o", "dot.d/x"), "")
        for name in ("x.pdf", "dot.d/x.png", "x.json.gz", "x."):
            self.refuse(2, "flame", "shop", "-o", name, says=(name, ".html, .svg, .json", "--format"))
            self.assertFalse((self.folder / name).exists())
        self.answer("flame", "shop", "-o", "x.pdf", "--format", "folded")

    def test_profiles_alone_answer_for_the_span_itself(self):
        self.assertEqual(self.folded("shop.profiles.jsonl", "--span", RENDER), ["main;serve;report;append_row 200000000"])

    def test_type_selects_profiles(self):
        wall = profiles([(("main", "poll"), REPORT_TRACE, REPORT, 5)], kind=("wall", "nanoseconds", "wall", "nanoseconds"))
        self.write("two.jsonl", json_lines(profiles(), wall))
        self.assertEqual(self.folded("two.jsonl", "--type", "wall"), ["main;poll 5"])
        self.assertEqual(self.folded("two.jsonl"), ALL_STACKS.splitlines())
        self.refuse(2, "flame", "two.jsonl", "--type", "heap", says=("heap", "cpu, wall"))

    def test_two_units_of_a_type_are_two_types(self):
        in_ms = profiles([(("main", "ms"), REPORT_TRACE, REPORT, 30)], kind=("cpu", "milliseconds", "cpu", "milliseconds"), period=10)
        in_ns = profiles([(("main", "ns"), REPORT_TRACE, REPORT, 3)])
        self.write("units.jsonl", json_lines(in_ms, in_ns))
        self.assertEqual(self.folded("units.jsonl", "--type", "cpu/milliseconds"), ["main;ms 30"])
        self.assertEqual(self.folded("units.jsonl", "--type", "cpu/nanoseconds"), ["main;ns 30000000"])
        for arguments in ([], ["--type", "cpu"], ["--span", REPORT]):
            result = self.run_tool("flame", "units.jsonl", "--format", "folded", *arguments)
            self.assertEqual((result.returncode, result.stdout), (0, b"main;ns 30000000\n"))
            self.assertRegex(result.stderr, rb"\Aspanprof: [^\n]*cpu/nanoseconds[^\n]*--type cpu/milliseconds[^\n]*\n\Z")
        self.refuse(1, "flame", "units.jsonl", "--type", "wall", says=("cpu (milliseconds)", "cpu"))
        self.refuse(2, "flame", "units.jsonl", "--type", "cpu/bytes", says="cpu/bytes")
        stats = self.answer("stats", "units.jsonl")
        self.assertIn("\ncpu/milliseconds: 1 profile, 3 samples, one each 10 milliseconds", stats)
        self.assertIn("\ncpu/nanoseconds: 1 profile, 3 samples, one each 10.0 ms", stats)

    def test_both_scopes_answer_inner_spans_without_counting_twice(self):
        root = [(names, trace, REPORT if trace == REPORT_TRACE else own, value) for names, trace, own, value in SAMPLES]
        inner = [(names, trace, own, value * 10_000_000) for names, trace, own, value in SAMPLES]
        self.write("both.jsonl", json_lines(profiles(root), profiles(
            inner, kind=("cpu_innermost", "nanoseconds", "cpu_innermost", "nanoseconds"))))
        both = ["shop.traces.jsonl", "both.jsonl"]
        self.assertEqual(self.folded(*both), ALL_STACKS.splitlines())
        self.assertEqual(self.folded(*both, "--span", COMPRESS), ["main;serve;deflate 20000000"])
        self.assertEqual(self.answer_json("flame", *both, "--span", REPORT, "--format", "json")["total"], 250_000_000)

    def test_samples_by_timestamps_count_each(self):
        request = profiles()
        sample = request["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["samples"][0]
        sample.update(values=[], timestampsUnixNano=[str(START + i) for i in range(20)])
        self.write("times.jsonl", json_lines(request))
        self.assertEqual(self.folded("times.jsonl"), ALL_STACKS.splitlines())

    def test_frames_without_symbols_are_named_by_module_and_address(self):
        request = profiles()
        for location in request["dictionary"]["locationTable"]:
            location.pop("lines", None)
        self.write("bare.jsonl", json_lines(request))
        self.assertIn(b"shop+0x1004;shop+0x1008 10000000\n", self.run_tool("flame", "bare.jsonl", "--format", "folded").stdout)


class Parts(ToolTest):
    """A frame for each thread, or for each span, below the root."""

    def folded(self, *arguments):
        return self.answer("flame", *arguments, "--format", "folded").splitlines()

    def write_threads(self):
        request = profiles([(("main", "a"), "", "", 1), (("main", "a"), "", "", 2), (("main", "b"), "", "", 4), ((), "", "", 8)])
        table = request["dictionary"]["attributeTable"]
        for sample, names in zip(request["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["samples"],
                                 (("w;1", 7), ("w2", 8), (None, 9), (None, None))):
            for key, value in zip(("thread.name", "thread.id"), names):
                if value is not None:
                    request["dictionary"]["stringTable"].append(key)
                    table.append({"keyStrindex": len(request["dictionary"]["stringTable"]) - 1, "value": attribute(key, value)["value"]})
                    sample.setdefault("attributeIndices", []).append(len(table) - 1)
        self.write("threads.jsonl", json_lines(request))

    def test_by_thread_has_a_frame_for_each_thread(self):
        self.write_threads()
        self.assertEqual(self.folded("threads.jsonl", "--by-thread"), [
            "[unknown thread];[no stack] 80000000", "thread 9;main;b 40000000", "w2;main;a 20000000", "w:1;main;a 10000000"])
        self.assertEqual(self.folded("threads.jsonl"), ["[no stack] 80000000", "main;a 30000000", "main;b 40000000"])
        stacks = self.answer_json("flame", "threads.jsonl", "--by-thread", "--format", "json")["stacks"]
        self.assertIn(["a", "main", "w2"], [stack["frames"] for stack in stacks])

    def test_group_by_span_has_a_frame_for_each_name(self):
        self.write_shop()
        self.assertEqual(self.folded("shop", "--group-by", "span"), [
            "GET /cart;main;serve;cart 40000000", "[no span];main;idle 10000000", "compress;main;serve;deflate 20000000",
            "query;main;serve;report;query_rows 30000000", "render;main;serve;report;append_row 200000000"])
        self.assertIn("[unknown span];main;serve;cart 40000000", self.folded("shop.profiles.jsonl", "--group-by=span"))
        self.refuse(2, "flame", "shop", "--group-by", "name", says="there is span")

    def test_reverse_keeps_these_frames_first(self):
        self.write_shop()
        lines = self.folded("shop", "--group-by", "span", "--by-thread", "--reverse", "--name", "GET /cart")
        self.assertEqual(lines, ["GET /cart;[unknown thread];cart;serve;main 40000000"])
        text = self.answer("flame", "shop", "--group-by", "span", "--reverse", "--name", "GET /report", locale="C")
        self.assertRegex(text, r"80\.0%    60-92          ########   \|- render\n 80\.0%    60-92   80\.0%  ########   \|  append_row\n")

    def test_self_alone_is_the_table_of_functions(self):
        self.write_shop()
        table = self.answer("flame", "shop", "--self", locale="C")
        self.assertEqual(table, """\
all samples
cpu: 300 ms in 30 samples

  self     95 %                total     95 %               function
 66.7%    49-81       200 ms   66.7%    49-81       200 ms  append_row
 13.3%     5-30      40.0 ms   13.3%     5-30      40.0 ms  cart
 10.0%     3-26      30.0 ms   10.0%     3-26      30.0 ms  query_rows
     ?               20.0 ms       ?               20.0 ms  deflate
     ?               10.0 ms       ?               10.0 ms  idle
""")
        self.assertEqual(self.answer("flame", "shop", "--format", "table", locale="C"), table)
        self.assertTrue(self.answer("flame", "shop", "--format", "table", "--min-percent", "50", locale="C").endswith(
            "append_row\n(4 smaller)\n"))


class Names(ToolTest):
    """Functions with their symbols; two different ones never print alike."""

    def write_functions(self, *functions, with_addresses=True, modules=1, same_file=False):
        """A sample of each of FUNCTIONS, which are (name, symbol, file) or, with the line where they begin, (name, symbol, file, line)."""
        request = profiles([((f"f{i}",), "", "", i + 1) for i in range(len(functions))])
        strings, table = request["dictionary"]["stringTable"], request["dictionary"]["functionTable"]
        for entry in table[1:]:
            number = int(strings[entry["nameStrindex"]][1:])
            for key, text in zip(("nameStrindex", "systemNameStrindex", "filenameStrindex"), functions[number]):
                strings.append(text)
                entry[key] = len(strings) - 1
            entry["startLine"] = str((*functions[number], 0)[3])
        for number, location in enumerate(request["dictionary"]["locationTable"][1:]):
            location["address"] = str(4096 + 16 * number if with_addresses else 0)
            location["mappingIndex"] = 1 + number % modules
        program = request["dictionary"]["mappingTable"][1]["filenameStrindex"]
        request["dictionary"]["mappingTable"] += [{"memoryStart": "1", "memoryLimit": "2",
                                                   "filenameStrindex": program if same_file else 0}] * (modules - 1)
        self.write("n.jsonl", json_lines(request))

    def names(self, *arguments):
        lines = self.answer("flame", "n.jsonl", "--format", "folded", *arguments).splitlines()
        return [line.rsplit(" ", 1)[0] for line in sorted(lines, key=lambda line: int(line.rsplit(" ", 1)[1]))]

    def test_template_arguments_are_folded_unless_told_otherwise(self):
        self.write_functions(("ns::f<std::vector<int, std::allocator<int> > >", "_ZN2ns1fISt6vectorIiSaIiEEEEvT_", "f.h"), ("main", "", "m.c"))
        vector = "std::vector<int, std::allocator<int> >"
        self.assertEqual(self.names(), ["ns::f<…>", "main"])
        self.assertEqual(self.names("--names", "short"), [f"ns::f<{vector} >", "main"])
        self.assertEqual(self.names("--names", "full"), [f"void ns::f<{vector} >({vector})", "main"])
        self.refuse(2, "flame", "n.jsonl", "--names", "long", says=("long", "short, folded, full"))

    def test_names_from_debug_information_without_a_symbol(self):
        names = ["std::sort<int*, main()::<lambda(int)> >", "shop::(anonymous namespace)::row::touch", "shop::f<int>::{lambda:3}::operator()<long>",
                 "shop::g::{lambda}::operator()<int>", "shop::h::<lambda>"]
        self.write_functions(*((name, "", "s.cc") for name in names))
        self.assertEqual(self.names(), ["std::sort<…>", names[1], "shop::f<…>::{lambda:3}::operator()<…>", "shop::g::{lambda}::operator()<…>", names[4]])
        self.assertEqual(self.names("--names", "short"), names)
        self.assertEqual(self.names("--names", "full"), names)

    def test_instances_and_overloads_stay_apart(self):
        self.write_functions(("f<int>", "_Z1fIiEvT_", ""), ("f<double>", "_Z1fIdEvT_", ""), ("g", "_Z1gi", ""), ("g", "_Z1gd", ""), ("h<int>", "_Z1hIiEvT_", ""))
        self.assertEqual(self.names(), ["f<int>", "f<double>", "g(int)", "g(double)", "h<…>"])
        self.assertEqual(self.names("--names", "short"), ["f<int>", "f<double>", "g(int)", "g(double)", "h<int>"])

    def test_copies_that_the_compiler_made_are_one_function(self):
        self.write_functions(("g", "_Z1gi", "g.cc"), ("g", "_Z1gi.cold", "g.cc"))
        self.assertEqual(self.answer("flame", "n.jsonl", "--format", "folded"), "g 30000000\n")

    def test_functions_of_one_file_each_are_told_by_it(self):
        self.write_functions(("helper", "", "/src/a.c"), ("x", "", "/x/a.c"), ("helper", "", "/src/b.c"), ("x", "", "/y/a.c"), ("used", "_Z4usedv", "x.h"), ("used", "_Z4usedv", "y.h"),
                             ("<module>", "", "p.py"), ("a<b>.c", "", ""), with_addresses=False)
        self.assertEqual(self.names("--min-percent", "0"), ["helper [a.c]", "x [/x/a.c]", "helper [b.c]", "x [/y/a.c]", "<module>", "a<…>.c", "used"])

    def test_a_function_into_which_a_file_is_included_is_one(self):
        functions = (("parse", "", "parse.y"), ("parse", "", "parse.c"), ("parse", "", "parse.y"), ("other", "", "o.c"))
        self.write_functions(*functions)
        self.assertEqual(self.names(), ["other", "parse"])
        self.write_functions(*functions, with_addresses=False)
        self.assertEqual(sorted(self.names()), ["other", "parse [parse.c]", "parse [parse.y]"])

    def test_functions_of_two_files_that_begin_on_two_lines_are_two(self):
        self.write_functions(("init", "", "/src/a.c", 10), ("init", "", "/src/b.c", 20), ("used", "", "u.c", 5))
        for style in ("short", "folded", "full"):
            self.assertEqual(self.names("--names", style), ["init [a.c]", "init [b.c]", "used"])
        self.write_functions(("parse", "", "parse.c", 10), ("parse", "", "parse.y", 10))  # a file that is included into it
        self.assertEqual(self.answer("flame", "n.jsonl", "--format", "folded"), "parse 30000000\n")

    def test_functions_of_two_modules_and_files_are_two(self):
        functions = (("init", "", "a.c"), ("init", "", "b.c"), ("shared", "", "s.h"), ("shared", "", "s.h"))
        self.write_functions(*functions, modules=2)
        self.assertEqual(self.names(), ["init [a.c]", "init [b.c]", "shared"])
        self.write_functions(*functions, modules=2, same_file=True)  # mapped twice
        self.assertEqual(self.names(), ["init", "shared"])
        self.write_functions(*functions)
        self.assertEqual(self.names(), ["init", "shared"])

    def test_a_library_built_without_symbols_changes_nothing(self):
        self.write_functions(("_Zbroken", "", ""), ("x", "_Zbroken", ""), ("operator<", "", ""), ("f.<locals>.g", "", ""))
        self.assertEqual(self.names(), ["_Zbroken", "x", "operator<", "f.<locals>.g"])


class Slow(ToolTest):
    """100 requests; each takes 5 samples of work, and the slow ones of them 40 of rebuild besides."""

    def setUp(self):
        super().setUp()
        ids = [f"{i:016x}" for i in range(1, 101)]
        slow = ids[-10:]
        spans = [span(f"{i:032x}", one, "GET /", i, 100 if one in slow else 10) for i, one in enumerate(ids, 1)]
        samples = [(("main", "work"), f"{i:032x}", one, 5) for i, one in enumerate(ids, 1)]
        samples += [(("main", "rebuild"), f"{int(one, 16):032x}", one, 40) for one in slow]
        self.write("t.jsonl", json_lines(traces(spans)))
        self.write("p.jsonl", json_lines(profiles(samples)))
        self.files = ["t.jsonl", "p.jsonl"]

    def test_percentile_keeps_the_slow_spans(self):
        folded = lambda *more: self.answer("flame", *self.files, *more, "--format", "folded")
        self.assertEqual(folded("--name", "GET /", "--percentile", "p90"), "main;rebuild 4000000000\nmain;work 500000000\n")
        self.assertEqual(folded("--where", "duration > 1ns", "--percentile", "99"), "main;rebuild 4000000000\nmain;work 500000000\n")
        self.assertEqual(folded("--name", "GET /", "--percentile", "p89"), folded("--name", "GET /"))
        self.assertTrue(self.answer("flame", *self.files, "--name", "GET /", "--percentile", "p99").startswith(
            "GET /: the slowest 10 of 100 spans, from 100 ms\n"))

    def test_against_tells_what_takes_longer(self):
        slow = ("flame", *self.files, "--name", "GET /", "--percentile", "p90", "--against")
        answer = self.answer_json(*slow, "--format", "json")
        self.assertEqual((answer["by"], answer["a"]["requests"], answer["b"]["requests"]), ("spans", 90, 10))
        self.assertEqual({f["name"]: f["self"]["moved"] for f in answer["functions"]}, {"main": False, "rebuild": True, "work": False})
        self.assertEqual({f["name"]: (f["self"]["a"], f["self"]["b"]) for f in answer["functions"]}["rebuild"], (0, 800))
        text = self.answer(*slow, locale="C")
        self.assertRegex(text, r"\AA: the rest, 90 spans: [^\n]*90 requests\nB: 10 slow spans, from 100 ms: [^\n]*\n")
        self.assertRegex(text, r"(?s)\ngrew\n.*rebuild\n")

    def test_limit_is_of_the_functions_of_the_comparison(self):
        slow = ("flame", *self.files, "--name", "GET /", "--percentile", "p90", "--against")
        count = lambda *more: len(self.answer_json(*slow, "--format", "json", *more)["functions"])
        self.assertEqual([count(), count("--limit", "1"), count("--limit", "2"), count("--limit", "0")], [3, 1, 2, 3])
        self.assertEqual(self.answer(*slow, "--limit", "0"), self.answer(*slow))
        self.assertIn("rebuild", self.answer(*slow, "--limit", "0"))
        self.refuse(2, *slow, "--limit", "5", "--format", "svg", says=("--limit", "text and json", "svg"))

    def test_one_is_no_plural(self):
        self.write("t.jsonl", json_lines(traces([span(CART_TRACE, CART, "GET /", 0, 100), span(REPORT_TRACE, REPORT, "GET /", 0, 10)])))
        self.write("p.jsonl", json_lines(profiles([(("main", "work"), trace, own, 30) for trace, own in ((CART_TRACE, CART), (REPORT_TRACE, REPORT))])))
        text = self.answer("flame", *self.files, "--name", "GET /", "--percentile", "p50", "--against")
        self.assertRegex(text, r"\AA: the rest, 1 span: [^\n]*1 request\nB: 1 slow span, from 100 ms: [^\n]*1 request\n")

    def test_too_few_spans_for_a_percentile_are_told_with_how_many_it_needs(self):
        for against in ([], ["--against"]):
            self.refuse(1, "flame", *self.files, "--name", "GET /", "--percentile", "p99.9", *against, says=("100 spans match, and p99.9 needs at least 1000", "p99 or less"))
            self.refuse(1, "flame", *self.files, "--where", "duration > 50ms", "--percentile", "p95", *against, says=("10 spans match, and p95 needs at least 20", "p90 or less"))
        three = "|".join(f'span:id = "{n:016x}"' for n in (1, 91, 92)).replace("|", " || ")
        self.refuse(1, "flame", *self.files, "--where", three, "--percentile", "p99", says=("3 spans match, and p99 needs at least 100", "p66 or less", "--span"))
        self.assertIn("the slowest 2 of 3 spans", self.answer("flame", *self.files, "--where", three, "--percentile", "p66"))
        self.refuse(1, "flame", *self.files, "--where", f'span:id = "{1:016x}"', "--percentile", "p50", says=("1 span matches, and p50 needs at least 2", "leave out --percentile"))
        self.refuse(1, "flame", *self.files, "--where", "false", "--percentile", "p99", says="no span matches")

    def test_what_has_no_slow_ones_or_no_rest_is_told(self):
        self.refuse(2, "flame", *self.files, "--percentile", "p99", says=("--name", "--where"))
        self.refuse(2, "flame", *self.files, "--name", "GET /", "--against", says="--percentile")
        self.refuse(2, "flame", *self.files, "--name", "GET /", "--percentile", "p9", "--against", "--format", "folded", says="json")
        for wrong in ("", "p", "p0", "p100", "-1", "nan", "p99x", "1e999", "0x10", "p0x10", ".", "p.", "9e1"):
            self.refuse(2, "flame", *self.files, "--name", "GET /", "--percentile", wrong, says="--percentile")
        self.refuse(1, "flame", *self.files, "--name", "GET /", "--percentile", "p89", "--against", says="no rest")


class Advice(ToolTest):
    """The next step is one that exists and fits."""

    def write_spans(self, cpu, count=1):
        """COUNT spans of 200 ms with CPU samples of 10 ms each, and one of 4 ms without."""
        spans = [span(f"{i:032x}", f"{i:016x}", "GET /", i, 200) for i in range(1, count + 1)] + [span(CART_TRACE, CART, "short", 0, 4)]
        self.write("t.jsonl", json_lines(traces(spans)))
        self.write("p.jsonl", json_lines(profiles([(("main",), f"{1:032x}", f"{1:016x}", cpu)] if cpu else SAMPLES[-1:])))
        return "flame", "t.jsonl", "p.jsonl", "--span", f"{1:016x}"

    def test_few_samples_of_a_span_that_waited_lead_to_wall_time(self):
        text = self.answer(*self.write_spans(5), columns=500)
        self.assertIn("only 5 samples: too few samples to trust shares; most of its time it waited: record wall time to see where, with "
                      "SPANPROF_PROFILES=cpu,wall\n", text)
        self.assertNotIn("HZ", text)

    def test_several_spans_that_waited_lead_to_wall_time(self):
        text = self.answer(*self.write_spans(5, 18)[:3], "--name", "GET /", columns=500)
        self.assertIn("only 5 samples: too few samples to trust shares; most of their time they waited: record wall time to see where", text)
        self.assertNotIn("HZ", text)
        text = self.answer(*self.write_spans(15, 1)[:3], "--name", "GET /", columns=500)
        self.assertIn("too few samples to trust shares; record longer or with a higher SPANPROF_CPU_HZ", text)

    def test_enough_samples_of_a_span_that_waited_lead_to_wall_time_too(self):
        self.write("t.jsonl", json_lines(traces([span(CART_TRACE, CART, "GET /scan", 0, 2840)])))
        for count, said in ((35, True), (150, False)):
            self.write("p.jsonl", json_lines(both_profiles([(("main",), CART_TRACE, CART, count)], [(("main", "[runnable]"), CART_TRACE, CART, 2400 * MS, "runnable")])))
            for question in (("--span", CART), ("--name", "GET /scan")):
                text = self.answer("flame", "t.jsonl", "p.jsonl", *question)
                self.assertEqual(f"in {count} samples\nmost of its time it waited: ask for --type wall to see where\n" in text, said, text)
        self.assertNotIn("waited", self.answer("flame", "t.jsonl", "p.jsonl"))

    def test_few_samples_of_one_of_several_spans_lead_to_all_of_its_name(self):
        self.assertIn('; --name "GET /" takes all 3 such spans\n', self.answer(*self.write_spans(15, count=3), columns=500))
        self.assertIn("; record longer or with a higher SPANPROF_CPU_HZ\n", self.answer(*self.write_spans(15), columns=500))

    def test_span_without_samples_that_waited_is_told_so(self):
        question = self.write_spans(0)
        self.refuse(1, *question, says=("(GET /, 200 ms)", "it waited (record wall time", "or was not active on the thread that worked",
                                        "of 1 sample, 1 is under no span"))
        self.write("p.jsonl", json_lines(profiles([(("main",), CART_TRACE, CART, 1)])))
        error = self.refuse(1, *question, says=("(GET /, 200 ms)", "because it waited", "SPANPROF_PROFILES=cpu,wall"))
        self.assertNotIn("HZ", error)
        self.write("p.jsonl", json_lines(profiles(SAMPLES[-1:])))
        self.refuse(1, "flame", "t.jsonl", "p.jsonl", "--span", CART, says=("too short", "or waited", "SPANPROF_CPU_HZ"))

    def test_spans_of_a_name_without_samples_are_no_matter_of_scope(self):
        """Also where all that has samples are local roots."""
        self.write_spans(5, count=2)
        error = self.refuse(1, "flame", "t.jsonl", "p.jsonl", "--name", "short", says=("1 span matches --name", "no sample fell under it"))
        self.assertNotIn("scope", error)

    def test_files_of_two_runs_are_told_so(self):
        self.write_spans(0)
        self.write("p.jsonl", json_lines(profiles([(("main",), "ab" * 16, "cd" * 8, 5)])))
        for question in (("--name", "GET /"), ("--span", f"{1:016x}")):
            self.refuse(1, "flame", "t.jsonl", "p.jsonl", *question, says="traces and profiles are of two runs")

    def test_types_that_the_files_lack_are_told_how_to_record(self):
        self.write_shop()
        for word, how in (("offcpu", "cpu,wall"), ("wall", "cpu,wall"), ("alloc", "cpu,alloc"), ("inuse", "cpu,heap"), ("lock", "cpu,lock")):
            self.refuse(1, "flame", "shop", "--type", word, says=("the files have: cpu", f"SPANPROF_PROFILES={how}"))

    def test_functions_of_an_interpreted_program_are_told_to_be_missing(self):
        def told(*stacks, program="server", command="flame"):
            made = profiles([(stack, "", "", count) for stack, count in stacks], attributes={})
            made["resourceProfiles"][0]["resource"]["attributes"].append(attribute("process.executable.name", program))
            self.write("p.jsonl", json_lines(made))
            result = self.run_tool(command, "p.jsonl")
            self.assertEqual(result.returncode, 0)
            return result.stderr.decode()

        for function, language in (("_PyEval_EvalFrameDefault", "Python"), ("PyEval_EvalFrameEx", "Python"), ("Builtins_JSEntry", "JavaScript"),
                                   ("rb_vm_exec", "Ruby"), ("Perl_runops_standard", "Perl"), ("execute_ex", "PHP"), ("luaV_execute", "Lua")):
            stack = ("main", function, "add")
            self.assertEqual(told((stack, 6), (("main",), 5)).count(f"functions of the {language} program are not shown, only those of its interpreter: "), 1)
            self.assertEqual(told((stack, 4)), "")  # too few
            self.assertEqual(told((stack, 6), (("main",), 6)), "")
        self.assertIn("with -X perf (or PYTHONPERFSUPPORT=1)", told((("main", "_PyEval_EvalFrameDefault"), 6)))
        self.assertEqual(told((("py::work:job.py", "_PyEval_EvalFrameDefault"), 6)), "")
        self.assertEqual(told((("Builtins_JSEntry", "JS:*work job.js:1:1"), 6)), "")
        compiled = ("[unwind: no table]", "[unknown]+0x7f0012")
        self.assertIn("functions of the Java program are not shown, only addresses of the code", told((compiled, 6), program="java"))
        self.assertEqual(told((compiled, 6)), "")
        self.assertEqual(told((compiled, 4), (("main", "int J.work(int)"), 6), program="java"), "")
        self.assertEqual(told((compiled, 6), program="java", command="stats"), "")

    def test_empty_profiles_are_told(self):
        self.write("e.traces.jsonl", json_lines(traces()))
        self.write("e.profiles.jsonl", b"")
        self.refuse(2, "flame", "e", says=("the files hold no profiles; ", "too little CPU time for a sample", "SPANPROF_PROFILES=cpu,wall", "first window", "or SPANPROF_PROFILES is none"))

    def test_nothing_but_frames_is_cut_at_the_width(self):
        for columns in (40, 80):
            text = self.answer(*self.write_spans(5), columns=columns)
            self.assertNotIn("…", text)
            self.assertLessEqual(max(map(len, text.splitlines())), columns)
            self.assertIn("SPANPROF_PROFILES=cpu,wall", text)


class Refusals(ToolTest):
    def setUp(self):
        super().setUp()
        self.write_shop()

    def test_unknown_span(self):
        self.refuse(1, "flame", "shop", "--span", "1234567812345678", says=("1234567812345678", "spanprof spans"))

    def test_unknown_trace(self):
        self.refuse(1, "flame", "shop", "--trace", "12" * 16, says="12" * 16)

    def test_ids_that_are_none(self):
        for bad in ("xyz", "00f067aa0ba902b7a", "00f067aa0ba902bg", "0" * 16, "0x", "0x0xf067aa0ba902b7", "0x" + "0" * 16, "", REPORT_TRACE):
            self.refuse(2, "flame", "shop", "--span", bad, says="span id")
        self.refuse(2, "flame", "shop", "--span", REPORT_TRACE, says=("is a trace id", f"--trace {REPORT_TRACE}"))
        self.refuse(2, "flame", "shop", "--trace", REPORT, says=("no trace id", f"--span {REPORT}"))
        self.refuse(1, "flame", "shop", "--span", "0x67aa0ba902b7ab", says="no span id in the files begins with 0x67aa0ba902b7ab")
        self.refuse(2, "flame", "shop", *["--span", REPORT] * 65, says="--span is given more than 64 times")

    def test_link_scope_root_cannot_answer_for_inner_spans(self):
        root = [(names, trace, REPORT if trace == REPORT_TRACE else own, value) for names, trace, own, value in SAMPLES]
        self.write("root.jsonl", json_lines(profiles(root)))
        self.refuse(1, "flame", "shop.traces.jsonl", "root.jsonl", "--span", RENDER, says=("link scope cannot answer", REPORT))

    def test_span_that_waited_is_not_called_a_matter_of_scope(self):
        self.write("few.jsonl", json_lines(profiles([SAMPLES[0]])))
        self.refuse(1, "flame", "shop.traces.jsonl", "few.jsonl", "--span", COMPRESS, says=("compress, 5.00 ms", "no samples"))

    def test_unattributed_time_is_not_called_waiting(self):
        """A thread that blocks the signal has CPU time, but no samples. The windows of other processes and times say nothing."""
        blocked = "b1" * 8
        self.write("t.jsonl", json_lines(traces(), traces([span(REPORT_TRACE, blocked, "blocked", 0, 870)])))
        counts = {"spanprof.unattributed_ns": 522 * MS, "spanprof.samples.linked": 34}
        ask = lambda **more: (self.write("p.jsonl", json_lines(profiles([SAMPLES[3]], attributes=counts, **more))),
                              self.refuse(1, "flame", "t.jsonl", "p.jsonl", "--span", blocked))[1]
        error = ask()
        for part in ("(blocked, 870 ms)", "522 ms of the CPU time of its process is in no sample", "SIGPROF", "spanprof stats", "docs/numbers.md#unattributed"):
            self.assertIn(part, error)
        self.assertNotIn("waited", error)
        self.assertIn("because it waited", ask(service="other"))
        counts["spanprof.samples.linked"] = 3400
        self.assertIn("because it waited", ask())
        counts["spanprof.samples.linked"] = 34
        self.write("t.jsonl", json_lines(traces(), traces([span(REPORT_TRACE, blocked, "blocked", 20_000, 870)])))
        self.assertIn("because it waited", ask())

    def test_few_samples_may_be_because_of_unattributed_time(self):
        counts = {"spanprof.unattributed_ns": 522 * MS, "spanprof.samples.linked": 34}
        self.write("p.jsonl", json_lines(profiles([(("main",), REPORT_TRACE, REPORT, 1)], attributes=counts)))
        text = " ".join(self.answer("flame", "shop.traces.jsonl", "p.jsonl", "--span", REPORT).split())
        self.assertIn("522 ms of the CPU time of its process is in no sample", text)
        self.assertNotIn("it waited", text)

    def test_types_of_which_the_spans_have_samples_are_named(self):
        d, stack = Dictionary(), ("main", "serve")
        made = lambda kind, own: profile(d, [(stack, CART_TRACE, own, 5 * MS)], 1, (kind, "nanoseconds", "waits", "count"), {})
        delays = request(d, made("delay", QUERY), made("condition_delay", CART), profile(d, [(stack, CART_TRACE, CART, 20 * MS)], 20 * MS, WALL, {}))
        self.write("locks.jsonl", json_lines(delays))
        ask = lambda *question: self.refuse(1, "flame", "shop.traces.jsonl", "locks.jsonl", *question)
        for question in (("--name", "GET /cart"), ("--span", CART)):
            self.assertTrue(ask("--type", "lock", *question).endswith("there are samples of other types: --type condition, --type wall\n"))
        self.assertNotIn("other types", ask("--type", "lock", "--name", "render"))

    def test_self_without_samples_points_to_the_descendants(self):
        self.refuse(1, "flame", "shop", "--span", REPORT, "--self", says=("of its own", "25", "--self"))

    def test_files_without_profiles(self):
        self.refuse(2, "flame", "shop.traces.jsonl", says="no profiles")

    def test_same_span_id_in_two_traces_needs_the_trace(self):
        self.write("twice.jsonl", json_lines(traces([span(REPORT_TRACE, REPORT, "a", 0, 1), span(CART_TRACE, REPORT, "b", 0, 1)])))
        samples = [(("main", "a"), REPORT_TRACE, REPORT, 1), (("main", "b"), CART_TRACE, REPORT, 2)]
        self.write("both.jsonl", json_lines(profiles(samples)))
        self.refuse(1, "flame", "twice.jsonl", "both.jsonl", "--span", REPORT, says="--trace")
        self.assertEqual(self.answer("flame", "twice.jsonl", "both.jsonl", "--span", REPORT, "--trace", CART_TRACE, "--format",
                                     "folded"), "main;b 20000000\n")

    def test_same_span_id_in_two_traces_that_the_files_lack_needs_the_trace(self):
        samples = [(("main", "a"), REPORT_TRACE, REPORT, 1), (("main", "b"), CART_TRACE, REPORT, 2), (("main", "c"), CART_TRACE, CART, 4)]
        self.write("both.jsonl", json_lines(profiles(samples)))
        self.refuse(1, "flame", "both.jsonl", "--span", REPORT, says=("--trace", REPORT_TRACE, CART_TRACE))
        for trace, line in ((REPORT_TRACE, "main;a 10000000\n"), (CART_TRACE, "main;b 20000000\n")):
            self.assertEqual(self.answer("flame", "both.jsonl", "--span", REPORT, "--trace", trace, "--format", "folded"), line)
        self.assertEqual(self.answer("flame", "both.jsonl", "--span", CART, "--format", "folded"), "main;c 40000000\n")

    def test_formats_that_are_none(self):
        self.refuse(2, "flame", "shop", "--format", "gif", says="unknown")

    def test_values_that_overflow(self):
        self.write("huge.jsonl", json_lines(profiles([(("main",), "", "", 2**62)])))
        self.refuse(2, "flame", "huge.jsonl", says="too large")
        self.write("negative.jsonl", json_lines(profiles([(("main",), "", "", -1)])))
        self.refuse(2, "flame", "negative.jsonl", says="negative")


class Overflow(ToolTest):
    MOST = 2**63 - 1
    NOTE = rb"\Aspanprof: [^\n]*more than 9223372036854775807[^\n]*\n\Z"

    def setUp(self):
        super().setUp()
        self.write("t.jsonl", json_lines(traces([span(REPORT_TRACE, REPORT, "GET /report", 0, 9)])))
        self.write("p.jsonl", json_lines(profiles(3 * [(("main",), REPORT_TRACE, REPORT, self.MOST)] + [(("main", "leaf"), REPORT_TRACE, REPORT, 5)],
                                                  period=1, attributes={"spanprof.dropped.x": self.MOST, "spanprof.unattributed_ns": self.MOST}),
                                         profiles(attributes={"spanprof.dropped.x": 2, "spanprof.unattributed_ns": -3})))

    def run_noted(self, *arguments):
        result = self.run_tool(arguments[0], "t.jsonl", "p.jsonl", *arguments[1:], locale="C")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, self.NOTE)
        return result.stdout.decode()

    def test_sums_stay_at_the_largest_number_and_that_is_said_once(self):
        answer = json.loads(self.run_noted("flame", "--format", "json"))
        self.assertEqual((answer["total"], answer["count"]), (self.MOST, self.MOST))
        self.assertEqual(answer["stacks"][0]["value"], self.MOST)
        self.assertIn(f"main {self.MOST}\n", self.run_noted("flame", "--format", "folded"))
        self.assertIn("100.0%  100-100  100.0%  ########## main", self.run_noted("flame", "--span", REPORT))
        self.assertEqual(json.loads(self.run_noted("spans", "--json"))["spans"][0]["total_value"], self.MOST)
        kind = json.loads(self.run_noted("stats", "--json"))["types"][0]
        self.assertEqual((kind["samples"], kind["dropped"], kind["unattributed_ns"]), (self.MOST, {"x": self.MOST}, self.MOST))


class HostileNames(ToolTest):
    NAME = "evil\x1b[2J\n;\u202e</script>\u009b\x7fé"

    def setUp(self):
        super().setUp()
        self.write("t.jsonl", json_lines(traces([span(REPORT_TRACE, REPORT, self.NAME, 0, 9)])))
        self.write("p.jsonl", json_lines(profiles([((self.NAME, "leaf"), REPORT_TRACE, REPORT, 30)])))

    def test_terminal_forms_show_no_control_characters(self):
        for command in (["flame"], ["flame", "--span", REPORT], ["flame", "--format", "folded"], ["spans"],
                        ["spans", "--trace", REPORT_TRACE], ["stats"]):
            text = self.answer(command[0], "t.jsonl", "p.jsonl", *command[1:], columns=300)
            self.assertNotRegex(text.replace("\n", ""), "[\x00-\x1f\x7f-\x9f\u202e]")
            if command[0] != "stats":
                self.assertIn(r"evil\x1b[2J\x0a", text)

    def test_folded_keeps_frames_apart(self):
        line = self.answer("flame", "p.jsonl", "--format", "folded")
        self.assertEqual(line.count(";"), 1)
        self.assertEqual(line.count("\n"), 1)

    def test_json_keeps_the_name(self):
        stacks = self.answer_json("flame", "p.jsonl", "--format", "json")["stacks"]
        self.assertEqual(stacks[0]["frames"], ["leaf", self.NAME])

    def test_errors_show_no_control_characters(self):
        error = self.refuse(2, "flame", "no\x1b[31msuch\nfile")
        self.assertIn(r"no\x1b[31msuch\x0afile", error)

    def test_names_that_are_not_utf8_are_repaired(self):
        request = profiles([(("bad", "leaf"), "", "", 1)])
        data = protobuf(request).replace(b"\x2a\x03bad", b"\x2a\x03b\xffd")
        self.write("bad.binpb", data)
        self.assertEqual(self.answer_json("flame", "bad.binpb", "--format", "json")["stacks"][0]["frames"], ["leaf", "b\ufffdd"])


class Useless(ToolTest):
    """Options that would change nothing are refused."""

    def test_options_that_the_format_has_no_use_for(self):
        self.write_shop()
        for format, options in (("pprof", (["--names", "full"], ["--reverse"], ["--by-thread"], ["--group-by", "span"], ["--min-percent", "3"])),
                                ("json", (["--reverse"], ["--min-percent", "3"])), ("folded", (["--min-percent", "3"],)), ("table", (["--reverse"],))):
            for option in options:
                with self.subTest(format=format, option=option):
                    self.refuse(2, "flame", "shop", "--format", format, *option, says=option[0])
        self.refuse(2, "flame", "shop", "--name", "render", "--percentile", "p50", "--against", "--reverse", says="--against")
        self.answer("flame", "shop", "--format", "folded", "--reverse", "--by-thread", "--group-by", "span", "--names", "full")


class Colours(ToolTest):
    def test_terminal_gets_colours_and_its_own_width(self):
        self.write_shop()
        text = terminal_output([TOOL, "flame", "shop"], 50, cwd=self.folder)
        self.assertIn("\x1b[31m", text)
        self.assertLessEqual(max(map(len, without_colours(text).splitlines())), 50)


if __name__ == "__main__":
    unittest.main()
