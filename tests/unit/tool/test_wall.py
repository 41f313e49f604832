#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wall time in each command: what waited and on what, and never added to the CPU time that it holds once more."""
from otlp import *

CLASSES = ("cpu", "runnable", "lock", "condition", "semaphore", "join", "disk", "network", "sleep", "other")

OFF_CPU_STACKS = """\
main;idle;poll 1020000000
main;serve;cart;clock_nanosleep 20000000
main;serve;futex 20000000
main;serve;report;append_row;[runnable] 20000000
main;serve;report;query_rows;pread64 20000000
main;serve;report;query_rows;recvfrom 20000000
"""
CPU_STACKS = """\
main;idle 10000000
main;serve;cart 40000000
main;serve;deflate 20000000
main;serve;report;append_row 200000000
main;serve;report;query_rows 30000000
"""

WALL_TEXT = """\
GET /report
span 00f067aa0ba902b7, trace 4bf92f3577b34da6a3ce929d0e0e4736, shop, 250 ms, with 3 descendants
wall time: 300 ms +- 40.0 ms in 15 samples
cpu 73 %, runnable 7 %, lock 7 %, disk 7 %, network 7 %
only 15 samples: too few samples to trust shares; record longer or with a higher SPANPROF_WALL_HZ

 total     95 %    self              function
100.0%   76-100          ########## main
100.0%   76-100          ########## serve
 86.7%    61-98          ########-  |- report
 73.3%    48-90   66.7%  #######-   |  |- append_row
     ?                ?  -          |  |  [runnable]
     ?                   #-         |  `- query_rows
     ?                ?  -          |     |- recvfrom
     ?                ?  -          |     `- pread64
     ?                ?  -          |- deflate
     ?                ?  -          `- futex
"""

OFF_CPU_TEXT = """\
GET /cart
span b7ad6b7169203331, trace 0af7651916cd43dd8448eb211c80319c, shop, 60.0 ms, error
off-CPU time: 20.0 ms +- 20.0 ms in 1 sample
sleep 100 %
only 1 sample: too few samples to trust shares; record longer or with a higher SPANPROF_WALL_HZ

 total     95 %    self              function
     ?                   ########## main
     ?                   ########## serve
     ?                   ########## cart
     ?                ?  ########## clock_nanosleep
"""

TABLE_80 = f"""\
duration       cpu      wall  went to     span id           name
  250 ms    250 ms    300 ms  cccccccrln  {REPORT}  GET /report
  190 ms    220 ms    240 ms  cccccccccr  {RENDER}  render
 60.0 ms   40.0 ms   60.0 ms  cccccccsss  {CART}  GET /cart
 40.0 ms   30.0 ms   40.0 ms  dddddnnnnn  {QUERY}  query
 5.00 ms   20.0 ms   20.0 ms  cccccccccc  {COMPRESS}  compress
the same in all lines: service shop
tenths: cpu runnable lock Condition Semaphore join disk network sleep other
"""

TABLE_150 = f"""\
duration       cpu       own      wall  went to     samples  status  trace id                          span id           name
  250 ms    250 ms  <10.0 ms    300 ms  cccccccrln       25  unset   {REPORT_TRACE}  {REPORT}  GET /report
<10.0 ms: no sample, so probably less than the time that one stands for
tenths: cpu runnable lock Condition Semaphore join disk network sleep other
… 4 more spans (--limit 0 shows all)
"""

TREE = f"""\
trace {REPORT_TRACE}, 4 spans, shop

duration       cpu      wall  went to          own  span id           name
  250 ms    250 ms    300 ms  cccccccrln  <10.0 ms  {REPORT}  GET /report
 40.0 ms   30.0 ms   40.0 ms  dddddnnnnn   30.0 ms  {QUERY}  ├─ query
  190 ms    220 ms    240 ms  cccccccccr    200 ms  {RENDER}  └─ render
 5.00 ms   20.0 ms   20.0 ms  cccccccccc   20.0 ms  {COMPRESS}     └─ compress
<10.0 ms: no sample, so probably less than the time that one stands for
tenths: cpu runnable lock Condition Semaphore join disk network sleep other
"""

STATS = """\
wall: 1 profile, 69 samples, one each 20.0 ms
  linked               18   25.71 %
  none                 51   72.86 %
  unknown               1    1.43 %
  boundary              0    0.00 %
  visits               80
            40   50.00 %  unmoved
             2    2.50 %  discarded
  time
        260 ms   18.84 %  cpu
       20.0 ms    1.45 %  runnable
       20.0 ms    1.45 %  lock
          0 ns    0.00 %  condition
          0 ns    0.00 %  semaphore
          0 ns    0.00 %  join
       20.0 ms    1.45 %  disk
        1.02 s   73.91 %  network
       20.0 ms    1.45 %  sleep
       20.0 ms    1.45 %  other
  waited on
        1.02 s   73.91 %  socket
       20.0 ms    1.45 %  file
       20.0 ms    1.45 %  device
  stacks
            70  100.00 %  complete
"""


def without_waits(samples=WALL_SAMPLES):
    """As the network has them: the stacks tell what waited, attributes do not."""
    return [each[:4] for each in samples]


def linked_to_roots(samples):
    return [(names, trace, REPORT if trace == REPORT_TRACE else own, *more) for names, trace, own, *more in samples]


class WallTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.write("t.jsonl", json_lines(traces()))
        self.write("both.jsonl", json_lines(both_profiles()))
        self.write("wall.jsonl", json_lines(wall_profiles()))
        self.write("cpu.jsonl", json_lines(profiles()))
        self.write("network.jsonl", json_lines(wall_profiles(without_waits())))

    def folded(self, *arguments):
        return self.answer("flame", *arguments, "--format", "folded")

    def graph(self, *arguments):
        return self.answer_json("flame", "t.jsonl", *arguments, "--format", "json")

    def wall_of(self, *files):
        return {s["name"]: s.get("wall") for s in self.answer_json("spans", "t.jsonl", *files, "--json")["spans"]}


class Flame(WallTest):
    def test_cpu_is_the_default_and_holds_no_wall_time(self):
        self.assertEqual(self.folded("both.jsonl"), CPU_STACKS)
        self.assertEqual(self.folded("both.jsonl", "--type", "cpu"), CPU_STACKS)

    def test_wall_is_the_default_where_there_is_no_cpu_profile(self):
        self.assertEqual(self.folded("wall.jsonl"), self.folded("both.jsonl", "--type", "wall"))
        self.assertEqual(self.graph("wall.jsonl", "--span", REPORT)["type"], "wall")
        heap = profiles(kind=("alloc_space", "bytes", "space", "bytes"))
        self.write("heap_first.jsonl", json_lines(heap, wall_profiles()))
        self.assertEqual(self.graph("heap_first.jsonl")["type"], "wall")

    def test_wall_text_says_where_the_time_went(self):
        self.assertEqual(self.answer("flame", "t.jsonl", "both.jsonl", "--type", "wall", "--span", REPORT, locale="C"), WALL_TEXT)

    def test_off_cpu_text(self):
        self.assertEqual(self.answer("flame", "t.jsonl", "both.jsonl", "--type", "offcpu", "--span", CART, locale="C"),
                         OFF_CPU_TEXT)

    def test_off_cpu_has_what_waited_and_nothing_else(self):
        self.assertEqual(self.folded("both.jsonl", "--type", "offcpu"), OFF_CPU_STACKS)

    def test_wall_is_on_cpu_and_off_cpu_together(self):
        totals = {kind: self.graph("both.jsonl", "--type", kind)["total"] for kind in ("wall", "offcpu")}
        self.assertEqual(totals, {"wall": 1380 * MS, "offcpu": 1120 * MS})

    def test_json_has_classes_and_descriptors(self):
        answer = self.graph("both.jsonl", "--type", "wall", "--span", QUERY)
        stacks = answer.pop("stacks")
        del answer["functions"]
        self.assertEqual(answer, {"type": "wall", "unit": "nanoseconds", "total": 40 * MS, "count": 2, "sure": False,
                                  "wall": dict.fromkeys(CLASSES, 0) | {"disk": 20 * MS, "network": 20 * MS}})
        self.assertEqual(stacks[0], {"frames": ["recvfrom", "query_rows", "report", "serve", "main"], "value": 20 * MS, "count": 1,
                                     "trace_id": REPORT_TRACE, "span_id": QUERY, "wait": "network", "descriptor": "socket"})
        self.assertEqual(self.graph("both.jsonl", "--type", "offcpu")["type"], "offcpu")
        self.assertNotIn("wall", self.graph("both.jsonl"))

    def test_equal_stacks_with_other_waits_are_kept_apart(self):
        waits = [("network", "socket"), ("network", "pipe"), ("other", "pipe"), ("other", "")]
        samples = [(("main", "poll"), "", "", (60 - 20 * i) * MS + 1, *wait) for i, wait in enumerate(waits[:3])]
        self.write("same.jsonl", json_lines(wall_profiles(samples + [(("main", "poll"), "", "", 1, *waits[3])]),
                                            wall_profiles(samples)))
        stacks = self.graph("same.jsonl", "--type", "offcpu")["stacks"]
        self.assertEqual([(s["value"], s["wait"], s["descriptor"]) for s in stacks],
                         [(2 * sample[3], *sample[4:]) for sample in samples] + [(1, "other", "")])

    def test_count_is_in_visits(self):
        self.assertEqual(self.graph("wall.jsonl")["count"], 1380 // 20)
        self.write("part.jsonl", json_lines(wall_profiles([(("main",), "", "", 5 * MS)])))
        self.assertEqual(self.graph("part.jsonl")["count"], 1)

    def test_windows_and_requests_are_added_up_type_by_type(self):
        d = Dictionary()
        second = request(d, profile(d, WALL_SAMPLES, 20 * MS, WALL, WALL_COUNTS, start_s=10),
                         profile(d, SAMPLES, 10 * MS, ("samples", "count", "cpu", "nanoseconds"), COUNTS, start_s=10))
        self.write("windows.binpb", framed(both_profiles(), second))
        self.assertEqual(self.graph("windows.binpb")["total"], 2 * 300 * MS)
        self.assertEqual(self.graph("windows.binpb", "--type", "wall")["total"], 2 * 1380 * MS)
        self.assertEqual(self.graph("windows.binpb", "--type", "offcpu")["wall"]["network"], 2 * 1020 * MS)

    def test_both_scopes_answer_inner_spans_without_counting_twice(self):
        d = Dictionary()
        innermost = ("wall_innermost", "nanoseconds") * 2
        self.write("scopes.jsonl", json_lines(request(
            d, profile(d, linked_to_roots(SAMPLES), 10 * MS, ("samples", "count", "cpu", "nanoseconds"), COUNTS),
            profile(d, linked_to_roots(WALL_SAMPLES), 20 * MS, WALL, WALL_COUNTS),
            profile(d, WALL_SAMPLES, 20 * MS, innermost, WALL_COUNTS))))
        self.assertEqual(self.graph("scopes.jsonl", "--type", "wall")["total"], 1380 * MS)
        self.assertEqual(self.graph("scopes.jsonl", "--type", "offcpu", "--span", QUERY)["total"], 40 * MS)
        self.assertEqual(self.wall_of("scopes.jsonl"), self.wall_of("both.jsonl"))

    def test_profiles_that_count_visits_are_wall_time_too(self):
        counted = [(names, trace, own, value // (20 * MS), *wait) for names, trace, own, value, *wait in WALL_SAMPLES]
        self.write("counted.jsonl", json_lines(wall_profiles(counted, kind=("samples", "count", "wall", "nanoseconds"))))
        self.assertEqual(self.folded("counted.jsonl", "--type", "offcpu"), OFF_CPU_STACKS)

    def test_words_may_stand_in_the_string_table(self):
        made = wall_profiles()
        strings = made["dictionary"]["stringTable"]
        for entry in made["dictionary"]["attributeTable"][1:]:
            if "stringValue" in entry["value"] and strings[entry["keyStrindex"]].startswith("spanprof.wait"):
                strings.append(entry["value"].pop("stringValue"))
                entry["value"]["stringValueStrindex"] = len(strings) - 1
        self.write("refers.binpb", framed(made))
        self.assertEqual(self.folded("refers.binpb", "--type", "offcpu"), OFF_CPU_STACKS)


class Refusals(WallTest):
    def test_words_that_are_no_type(self):
        for word in ("", "off-cpu", "WALL", "locks", "samples"):
            self.refuse(2, "flame", "both.jsonl", "--type", word, says=("cpu, wall, offcpu", "have: cpu, wall"))

    def test_types_that_the_files_lack(self):
        for word in ("wall", "offcpu", "wall_innermost"):
            self.refuse(1, "flame", "cpu.jsonl", "--type", word, says=(word, "the files have: cpu"))
        for word in ("cpu", "cpu_innermost"):
            self.refuse(1, "flame", "wall.jsonl", "--type", word, says=(word, "the files have: wall"))

    def test_wall_time_in_another_unit_is_none(self):
        self.write("ms.jsonl", json_lines(profiles(), wall_profiles(kind=("wall", "milliseconds") * 2)))
        for word in ("wall", "offcpu"):
            self.refuse(1, "flame", "ms.jsonl", "--type", word, says="the files have: cpu, wall (milliseconds)")
        self.assertEqual(set(self.wall_of("ms.jsonl").values()), {None})
        self.refuse(1, "spans", "t.jsonl", "ms.jsonl", "--sort", "wall", says="no wall profile")

    def test_off_cpu_of_a_profile_that_does_not_tell(self):
        self.refuse(1, "flame", "network.jsonl", "--type", "offcpu", says=("spanprof.wait", "SPANPROF_EXPORTER=file"))
        answer = self.graph("network.jsonl", "--type", "wall")
        self.assertEqual((answer["total"], answer.get("wall")), (1380 * MS, None))
        text = self.answer("flame", "network.jsonl", "--type", "wall")
        self.assertNotIn("cpu 100 %", text)

    def test_span_that_never_waited(self):
        self.refuse(1, "flame", "t.jsonl", "both.jsonl", "--type", "offcpu", "--span", COMPRESS, says=("compress", "it ran"))
        self.write("few.jsonl", json_lines(profiles([SAMPLES[0]]), wall_profiles([WALL_SAMPLES[0]])))
        self.refuse(1, "flame", "t.jsonl", "few.jsonl", "--span", COMPRESS, says=("waited (ask for --type wall to see where)", "SPANPROF_CPU_HZ"))
        self.refuse(1, "flame", "t.jsonl", "few.jsonl", "--type", "wall", "--span", COMPRESS, says=("too short", "SPANPROF_WALL_HZ"))

    def test_span_that_was_never_attached(self):
        """The profiler visits every 20 ms."""
        forgotten, short = "f0" * 8, "f1" * 8
        made = [span(CART_TRACE, forgotten, "forgotten", 0, 650), span(CART_TRACE, short, "short", 0, 60)]
        self.write("t.jsonl", json_lines(traces(), traces(made)))
        for kind in ("wall", "offcpu"):
            error = self.refuse(1, "flame", "t.jsonl", "wall.jsonl", "--type", kind, "--span", forgotten,
                                says=("(forgotten, 650 ms)", "in a queue, or was not active on the thread that worked or waited", "spanprof_span_attach", "carriers.md"))
            self.assertFalse("too short" in error or "it ran" in error, error)
            error = self.refuse(1, "flame", "t.jsonl", "wall.jsonl", "--type", kind, "--span", short, says="too short")
            self.assertNotIn("it ran", error)

    def test_link_scope_root_cannot_answer_for_inner_spans(self):
        self.write("root.jsonl", json_lines(profiles([SAMPLES[4]]), wall_profiles(linked_to_roots(WALL_SAMPLES))))
        self.refuse(1, "flame", "t.jsonl", "root.jsonl", "--type", "wall", "--span", RENDER,
                    says=("link scope cannot answer", REPORT))

    def test_self_counts_the_type_that_was_asked_for(self):
        samples = [each for each in WALL_SAMPLES if each[2] != REPORT]
        self.write("p.jsonl", json_lines(profiles(), wall_profiles(samples)))
        self.refuse(1, "flame", "t.jsonl", "p.jsonl", "--type", "offcpu", "--span", REPORT, "--self", says=("of its own", "have 3:"))

    def test_word_that_is_unknown_is_still_a_wait(self):
        self.write("new.jsonl", json_lines(wall_profiles([(("main",), REPORT_TRACE, REPORT, 20 * MS, "teleport", "portal")])))
        self.assertEqual(self.wall_of("new.jsonl")["GET /report"]["other"], 20 * MS)
        self.assertEqual(self.graph("new.jsonl", "--type", "offcpu")["total"], 20 * MS)

    def test_attribute_index_outside_its_table(self):
        made = wall_profiles()
        made["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["samples"][1]["attributeIndices"] = [99]
        self.write("bad.jsonl", json_lines(made))
        self.refuse(2, "flame", "bad.jsonl", says=("attribute_table[99]", "sample 1"))


class Spans(WallTest):
    def test_table_fits_a_narrow_terminal(self):
        self.assertEqual(self.answer("spans", "t.jsonl", "both.jsonl", columns=80), TABLE_80)

    def test_table_with_room_has_all_columns(self):
        self.assertEqual(self.answer("spans", "t.jsonl", "both.jsonl", "--limit", "1", columns=150), TABLE_150)

    def test_lines_keep_to_the_width(self):
        self.write("long.jsonl", json_lines(traces([span(REPORT_TRACE, REPORT, "n" * 300, 0, 250), span(CART_TRACE, CART, "n" * 300, 0, 250),
                                                    *(span(REPORT_TRACE, one, "n" * 300, 1, 40, REPORT) for one in (QUERY, RENDER, COMPRESS))])))
        for columns in (80, 97, 100, 131, 200):
            for more in ([], ["--trace", REPORT_TRACE]):
                lines = self.answer("spans", "long.jsonl", "both.jsonl", *more, columns=columns).splitlines()
                table = [line for line in lines if not line.startswith("the same in all lines: ")]
                self.assertLessEqual(max(map(len, table)), columns, lines)

    def test_tree_shows_where_the_time_went(self):
        self.assertEqual(self.answer("spans", "t.jsonl", "both.jsonl", "--trace", REPORT_TRACE), TREE)

    def test_json_has_nanoseconds_by_class_with_descendants(self):
        wall = self.wall_of("both.jsonl")
        self.assertEqual(wall["GET /report"], {"cpu": 220 * MS, "runnable": 20 * MS, "lock": 20 * MS, "condition": 0, "semaphore": 0, "join": 0, "disk": 20 * MS,
                                               "network": 20 * MS, "sleep": 0, "other": 0})
        self.assertEqual(wall["query"], dict.fromkeys(CLASSES, 0) | {"disk": 20 * MS, "network": 20 * MS})
        self.assertEqual(wall["GET /cart"], dict.fromkeys(CLASSES, 0) | {"cpu": 40 * MS, "sleep": 20 * MS})

    def test_cpu_columns_stay_those_of_the_cpu_profile(self):
        with_wall = self.answer_json("spans", "t.jsonl", "both.jsonl", "--json")
        for each in with_wall["spans"]:
            del each["wall"], each["queued_ns"]
        self.assertEqual(with_wall, self.answer_json("spans", "t.jsonl", "cpu.jsonl", "--json"))

    def test_files_with_wall_time_only(self):
        answer = self.answer_json("spans", "t.jsonl", "wall.jsonl", "--json", "--name", "GET /report")
        self.assertEqual((answer["type"], answer["spans"][0]["total_value"], answer["spans"][0]["total_count"]),
                         ("wall", 300 * MS, 15))
        head = self.answer("spans", "t.jsonl", "wall.jsonl").splitlines()[0].split()
        self.assertEqual((head.count("wall"), head.count("cpu")), (1, 0))

    def test_root_links_count_for_roots(self):
        self.write("root.jsonl", json_lines(wall_profiles(linked_to_roots(WALL_SAMPLES))))
        wall = self.wall_of("root.jsonl")
        self.assertEqual(wall["GET /report"], self.wall_of("both.jsonl")["GET /report"])
        self.assertIsNone(wall["query"])

    def test_sort_by_wall(self):
        names = lambda *arguments: [s["name"] for s in self.answer_json("spans", "t.jsonl", *arguments, "--json")["spans"]]
        self.assertEqual(names("both.jsonl", "--sort", "wall"), ["GET /report", "render", "GET /cart", "query", "compress"])
        self.assertEqual(names("wall.jsonl", "--sort", "cpu"), ["GET /report", "render", "GET /cart", "compress", "query"])
        self.refuse(1, "spans", "t.jsonl", "cpu.jsonl", "--sort", "wall", says="no wall profile")

    def test_wall_time_without_classes_has_a_sum_only(self):
        text = self.answer("spans", "t.jsonl", "cpu.jsonl", "network.jsonl")
        self.assertIn("300 ms", text)
        self.assertNotIn("went to", text)
        self.assertEqual(set(self.wall_of("network.jsonl").values()), {None})

    def test_spans_without_wall_samples_have_a_blank_bar(self):
        self.write("cart.jsonl", json_lines(profiles(), wall_profiles(WALL_SAMPLES[6:8])))
        line = next(l for l in self.answer("spans", "t.jsonl", "cart.jsonl").splitlines() if l.endswith("query"))
        self.assertRegex(line, r" 40\.0 ms   30\.0 ms   30\.0 ms  <20\.0 ms {12,}3 ")


JOB, PART, ELSE, TRACE = "0f" * 8, "0e" * 8, "0c" * 8, "0d" * 16


class QueueTest(ToolTest):
    def made(self, wall, spans=None, cpu=(), service="shop", cpu_counts=None, **counts):
        """WALL: [(span, ms, class)]; a job of 1 s with a part."""
        spans = spans or [span(TRACE, JOB, "job", 1000, 1000), span(TRACE, PART, "part", 1900, 40, JOB)]
        samples = [(("main", "work"), TRACE, own, ms * MS, *([word] if word else [])) for own, ms, word in wall]
        d = Dictionary()
        both = [profile(d, [(("main", "work"), TRACE, own, count) for own, count in cpu], 10 * MS, ("samples", "count", "cpu", "nanoseconds"), cpu_counts or {}),
                profile(d, samples, 20 * MS, WALL, counts)]
        self.write("t.jsonl", json_lines(traces(spans)))
        self.write("p.jsonl", json_lines(request(d, *both, service=service)))
        return "t.jsonl", "p.jsonl"

    def queued(self, *made, **more):
        answer = self.answer_json("spans", *self.made(*made, **more), "--json")
        return {each["name"]: each["queued_ns"] and each["queued_ns"] // MS for each in answer["spans"]}

    def spans(self, count, ms, gap=None, parent=""):
        """COUNT spans of MS, each after the one before, or GAP ms after its start."""
        own = lambda i: f"{i + 1:016x}"
        made = [span(TRACE, own(i), "job", i * (ms if gap is None else gap), ms, parent) for i in range(count)]
        return [*made, span(TRACE, ELSE, "else", 9000, 20)]

    def wall(self, count, ms, word="network"):
        return [*((f"{i + 1:016x}", ms, word) for i in range(count) if ms), (ELSE, 20, "network")]



class Queue(QueueTest):
    """A span that lasts longer than threads work and wait under it was in a queue. The profiler visits every 20 ms, and the
    window begins at 0 and lasts 10 s."""
    SENTENCE = "about 880 ms of its 1.00 s no thread carried this span: it was in a queue, its work ran elsewhere without the context, or it ended long after its work"

    WORKED = ((JOB, 60, ""), (JOB, 20, "network"), (PART, 40, "disk"))

    def test_time_without_a_thread_is_shown(self):
        self.assertEqual(self.queued(self.WORKED), {"job": 880, "part": 0})

    def test_table_and_tree_have_it_as_one_class_more(self):
        files = self.made(self.WORKED)
        key = "other\nand queue: no thread carried the span, its work ran without the context, or it was ended long after its work\n"
        for more in ((), ("--trace", TRACE)):
            text = self.answer("spans", *files, *more)
            self.assertIn("  cqqqqqqqqq  ", text)
            self.assertIn("  dddddddddd  ", text)
            self.assertIn(key, text)
        self.assertNotIn("queue", self.answer("spans", *files, "--name", "part"))

    def test_flame_says_it_above_cpu_and_wall_time(self):
        files = self.made(self.WORKED, cpu=[(JOB, 6)])
        for more in ((), ("--type", "wall"), ("--type", "offcpu")):
            text = self.answer("flame", *files, "--span", JOB, *more, columns=200)
            self.assertEqual(text.count(self.SENTENCE + "\n"), 1, text)
            self.assertEqual(self.answer_json("flame", *files, "--span", JOB, *more, "--format", "json")["queued_ns"], 880 * MS)
        self.assertIn("no thread carried", self.answer("flame", *files, "--span", JOB, "--format", "svg"))
        self.assertNotIn("carried", self.answer("flame", *files, "--span", PART, "--type", "wall"))
        self.assertNotIn("carried", self.answer("flame", *files))
        self.assertNotIn("queued_ns", self.answer_json("flame", *files, "--span", PART, "--type", "wall", "--format", "json"))

    def test_hints_promise_no_samples_of_that_time(self):
        text = self.answer("flame", *self.made(self.WORKED, cpu=[(JOB, 6)]), "--span", JOB)
        self.assertNotIn("most of its time it waited", text)
        self.assertNotIn("--type wall", text)
        waited = self.answer("flame", *self.made([(JOB, 60, ""), (JOB, 560, "network")], cpu=[(JOB, 6)]), "--span", JOB, columns=200)
        self.assertIn("about 380 ms of its 1.00 s no thread", waited)
        self.assertIn("most of its time it waited: ask for --type wall", waited)
        error = self.refuse(1, "flame", *self.made([(JOB, 20, "network")], cpu=[(ELSE, 4)]), "--span", JOB,
                            says=("about 980 ms of its 1.00 s no thread carried this span", "spanprof_span_attach"))
        self.assertNotIn("--type wall", error)

    def test_what_may_be_chance_is_not_shown(self):
        """One visit, or none, may be 60 ms off; nine visits 180 ms."""
        job = lambda ms: [span(TRACE, JOB, "job", 1000, ms), span(TRACE, ELSE, "else", 1000, 20)]
        for visits, least in ((0, 60), (1, 80), (9, 360)):
            wall = [(JOB, 20 * visits, "network"), (ELSE, 20, "network")]
            self.assertEqual(self.queued(wall, job(least))["job"], 0)
            self.assertEqual(self.queued(wall, job(least + 2))["job"], least + 2 - 20 * visits)

    def test_ticks_of_cpu_time_are_chance_too(self):
        """Nine ticks of 10 ms may be 90 ms off, and no visit 60 ms: together 108 ms. And a tenth of CPU time is uncertain."""
        job = lambda ms: [span(TRACE, JOB, "job", 1000, ms), span(TRACE, ELSE, "else", 1000, 20)]
        wall = [(JOB, 90, ""), (ELSE, 20, "network")]
        self.assertEqual(self.queued(wall, job(207))["job"], 0)
        self.assertEqual(self.queued(wall, job(208))["job"], 118)

    def test_a_tenth_of_the_wait_for_a_core_is_uncertain(self):
        """Nine visits may be 180 ms off."""
        for word, most in (("network", 360), ("runnable", 378)):
            self.assertEqual(self.queued([(JOB, 180, word)], [span(TRACE, JOB, "job", 1000, most)]), {"job": 0})
            self.assertEqual(self.queued([(JOB, 180, word)], [span(TRACE, JOB, "job", 1000, most + 2)]), {"job": most - 178})

    def test_visits_that_stand_for_several_periods_are_less_certain(self):
        """36 visits of 20 ms may be 360 ms off; nine of 80 ms 720 ms."""
        wall, job = [(JOB, 720, "network")], [span(TRACE, JOB, "job", 1000, 1100)]
        self.assertEqual(self.queued(wall, job, **{"spanprof.wall.visits": 36}), {"job": 380})
        self.assertEqual(self.queued(wall, job, **{"spanprof.wall.visits": 9}), {"job": 0})

    def test_samples_of_spans_that_are_missing_may_be_of_descendants(self):
        """A span that was dropped, or never ended."""
        self.assertEqual(self.queued([*self.WORKED, (ELSE, 500, "network")])["job"], 880)
        self.assertEqual(self.queued([*self.WORKED, (ELSE, 800, "network")])["job"], 0)

    def test_threads_that_work_at_once_make_no_queue(self):
        parts = [span(TRACE, f"{i:016x}", f"part {i}", 1000, 900, JOB) for i in range(1, 4)]
        wall = [(f"{i:016x}", 600, "network") for i in range(1, 4)]
        self.assertEqual(self.queued(wall, [span(TRACE, JOB, "job", 1000, 1000), *parts])["job"], 0)

    def test_time_that_was_not_sampled_is_no_queue(self):
        wall = [(JOB, 20, "network")]
        self.assertEqual(self.queued(wall, [span(TRACE, JOB, "job", 9800, 1000)]), {"job": 180})
        self.assertEqual(self.queued(wall, [span(TRACE, JOB, "job", 11000, 1000)]), {"job": 0})
        self.assertEqual(self.queued(self.WORKED, service="another")["job"], 0)

    def test_window_without_end_is_as_long_as_time(self):
        files = self.made(self.WORKED)
        made = json.loads((self.folder / "p.jsonl").read_text())
        for each in made["resourceProfiles"][0]["scopeProfiles"][0]["profiles"]:
            each["durationNano"] = str(2**64 - 1)
        self.write("p.jsonl", json_lines(made))
        self.assertEqual(self.answer_json("spans", *files, "--json")["spans"][0]["queued_ns"], 880 * MS)

    def test_windows_that_follow_each_other_are_one_time(self):
        d, job = Dictionary(), span(TRACE, JOB, "job", 9000, 12000)
        made = lambda start_s: profile(d, [(("main",), TRACE, JOB, 500 * MS, "network")], 20 * MS, WALL, {}, start_s=start_s)
        self.write("t.jsonl", json_lines(traces([job])))
        self.write("p.jsonl", json_lines(request(d, made(10), made(0)), request(d, made(20), made(10))))
        self.assertEqual(self.answer_json("spans", "t.jsonl", "p.jsonl", "--json")["spans"][0]["queued_ns"], 10_000 * MS)

    def test_another_process_of_the_service_sampled_other_threads(self):
        files = self.made(self.WORKED)
        for name, kind, workers in (("t.jsonl", "resourceSpans", 7), ("p.jsonl", "resourceProfiles", 8)):
            made = json.loads((self.folder / name).read_text())
            made[kind][0]["resource"]["attributes"].append(attribute("process.pid", workers))
            self.write(name, json_lines(made))
        self.assertEqual({each["queued_ns"] for each in self.answer_json("spans", *files, "--json")["spans"]}, {0})

    def test_many_samples_without_a_certain_span_may_be_those_of_the_queue(self):
        """Of 120 ms one in ten may be lost."""
        lost = {"unknown": "spanprof.samples.unknown", "dropped": "spanprof.dropped.visits"}
        for key in lost.values():
            self.assertEqual(self.queued(self.WORKED, **{key: 0})["job"], 880)
            self.assertEqual(self.queued(self.WORKED, **{key: 1})["job"], 0)
        for key in ("samples.unknown", "dropped.ring_full", "dropped.memory", "dropped.small_stack"):
            self.assertEqual(self.queued(self.WORKED, cpu_counts={"spanprof." + key: 1})["job"], 880)
            self.assertEqual(self.queued(self.WORKED, cpu_counts={"spanprof." + key: 2})["job"], 0)
        for key in ("unattributed_ns", "steal_ns"):
            self.assertEqual(self.queued(self.WORKED, **{"spanprof." + key: 12 * MS})["job"], 880)
            self.assertEqual(self.queued(self.WORKED, **{"spanprof." + key: 13 * MS})["job"], 0)

    def test_wall_time_from_outside_has_no_waits_for_a_core(self):
        self.assertEqual(self.queued(self.WORKED, **{"spanprof.from_outside": 1})["job"], 0)

    def test_links_to_roots_tell_it_of_roots_only(self):
        self.assertEqual(self.queued([(JOB, 100, "network")], **{"spanprof.link_scope": "root"}), {"job": 900, "part": None})

    def test_without_wall_time_nothing_is_said(self):
        self.write("t.jsonl", json_lines(traces()))
        self.write("cpu.jsonl", json_lines(profiles()))
        self.assertNotIn("queued_ns", self.answer_json("spans", "t.jsonl", "cpu.jsonl", "--json")["spans"][0])
        self.assertNotIn("carried", self.answer("flame", "t.jsonl", "cpu.jsonl", "--span", CART))

    def test_profiles_of_the_network_tell_it_too(self):
        """They have no classes, so there is no bar."""
        wall = [(own, ms, "") for own, ms, _ in self.WORKED]
        self.assertEqual(self.queued(wall), {"job": 880, "part": 0})
        files = self.made(wall)
        self.assertNotIn("went to", self.answer("spans", *files))
        self.assertIn(self.SENTENCE, self.answer("flame", *files, "--span", JOB, "--type", "wall", columns=200))


class QueueOfNames(QueueTest):
    """The sum over spans of one name is surer than each of them."""

    def on_threads(self, *tids):
        """Name the threads of the wall samples that `made` wrote, in turn."""
        made = json.loads((self.folder / "p.jsonl").read_text())
        d = made["dictionary"]
        d["stringTable"].append("thread.id")
        first = len(d["attributeTable"])
        d["attributeTable"] += [{"keyStrindex": len(d["stringTable"]) - 1, "value": {"intValue": str(tid)}} for tid in tids]
        for i, each in enumerate(made["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][1]["samples"]):
            each.setdefault("attributeIndices", []).append(first + i % len(tids))
        self.write("p.jsonl", json_lines(made))

    def groups(self, *more):
        return self.answer_json("spans", "t.jsonl", "p.jsonl", "--by-name", "--json", *more)["groups"]

    def sums(self, *made, **more):
        self.made(*made, **more)
        return {each["name"]: (each["total_wall"] and each["total_wall"] // MS, each["queued_ns"] and each["queued_ns"] // MS) for each in self.groups()}

    def test_sum_shows_what_no_single_span_shows(self):
        made = self.wall(20, 20), self.spans(20, 70)
        self.assertEqual(set(self.queued(*made).values()), {0})
        self.assertEqual(self.sums(*made), {"job": (400, 1000), "else": (20, 0)})

    def test_sum_that_may_be_chance_is_not_shown(self):
        """Three standard errors of the nine visits that would be expected: 180 ms. 20 visits: 373 ms."""
        for count, visits, least in ((10, 0, 180), (20, 1, 773)):
            ms = least // count
            self.assertEqual(self.sums(self.wall(count, 20 * visits), self.spans(count, ms))["job"][1], 0)
            self.assertEqual(self.sums(self.wall(count, 20 * visits), self.spans(count, ms + 1))["job"][1], count * (ms + 1 - 20 * visits))

    def test_sum_is_shown_where_each_span_shows_it(self):
        """Two spans without a visit may each be 60 ms off."""
        self.assertEqual(self.sums(self.wall(2, 0), self.spans(2, 60))["job"][1], 0)
        self.assertEqual(self.sums(self.wall(2, 0), self.spans(2, 61))["job"][1], 122)

    def test_one_round_may_miss_all_spans_that_ran_at_once(self):
        made = self.wall(10, 0), self.spans(10, 40, gap=0)
        self.assertEqual(self.sums(self.wall(10, 0), self.spans(10, 40))["job"][1], 400)
        self.assertEqual(self.sums(*made)["job"][1], 0)
        self.assertEqual(self.sums(self.wall(10, 0), self.spans(10, 61, gap=0))["job"][1], 610)

    def test_threads_that_no_visit_found_may_be_many(self):
        """Ten jobs at once, without a visit, and 9 or 10 visits to one thread."""
        for visits, queued in ((9, 0), (10, 400)):
            self.made([(ELSE, 20 * visits, "network")], self.spans(10, 40, gap=0))
            self.on_threads(1)
            self.assertEqual({each["name"]: each["queued_ns"] // MS for each in self.groups()}["job"], queued, visits)

    def test_only_threads_that_carried_spans_can_be_seen_at_once(self):
        """Ten jobs at once: two of 20 threads worked for them, or ten did."""
        made = self.wall(10, 100), self.spans(10, 220, gap=0)
        for threads, queued in ((2, 1200), (10, 0)):
            self.made(*made)
            self.on_threads(*range(1, threads + 1))
            self.assertEqual({each["name"]: each["queued_ns"] // MS for each in self.groups()}["job"], queued, threads)

    def test_a_tenth_of_the_wait_for_a_core_is_uncertain_in_the_sum_too(self):
        """400 ms of 20 visits may be 373 ms more, and 413 with a tenth."""
        for word, shown in (("network", 400), ("runnable", 0)):
            self.assertEqual(self.sums(self.wall(20, 20, word), self.spans(20, 40))["job"][1], shown)
        self.assertEqual(self.sums(self.wall(20, 20, "runnable"), self.spans(20, 41))["job"][1], 420)

    def test_threads_that_work_at_once_make_no_queue_of_names(self):
        parts = [span(TRACE, f"{100 + i:016x}", "part", 100 * (i // 3), 90, f"{i // 3 + 1:016x}") for i in range(30)]
        wall = [(f"{100 + i:016x}", 60, "network") for i in range(30)]
        self.assertEqual(self.sums(wall, [*self.spans(10, 100), *parts]), {"job": (1800, 0), "part": (1800, 0), "else": (0, 0)})

    def test_span_below_one_of_its_name_counts_once(self):
        inner = [span(TRACE, f"{100 + i:016x}", "job", 70 * i, 60, f"{i + 1:016x}") for i in range(20)]
        self.assertEqual(self.sums(self.wall(20, 20), [*self.spans(20, 70), *inner])["job"], (400, 1000))

    def test_lost_time_may_all_be_of_one_name(self):
        """Nothing is lost of the one span of `long`, but all of 900 ms may be of the jobs."""
        made = self.spans(20, 70) + [span(TRACE, JOB, "long", 0, 9900)]
        wall = [*self.wall(20, 20), (JOB, 9000, "network")]
        for lost, queued in ((200, 1000), (640, 0)):
            self.assertEqual(self.sums(wall, made, **{"spanprof.unattributed_ns": lost * MS})["job"], (400, queued))

    def test_samples_of_missing_spans_count_once_for_a_trace(self):
        missing = "0b" * 8
        for ms, queued in ((600, 1000), (640, 0)):
            self.assertEqual(self.sums([*self.wall(20, 20), (missing, ms, "network")], self.spans(20, 70))["job"], (400, queued))

    def test_time_that_was_not_sampled_is_no_queue_of_names(self):
        late = [span(TRACE, f"{i + 1:016x}", "job", 10000 + 100 * i, 100) for i in range(20)]
        self.assertEqual(self.sums([(ELSE, 20, "network")], [*late, span(TRACE, ELSE, "else", 9000, 20)])["job"], (0, 0))

    def test_links_to_roots_tell_it_of_names_of_roots_only(self):
        self.assertEqual(self.sums([(JOB, 100, "network")], **{"spanprof.link_scope": "root"}), {"job": (100, 900), "part": (None, None)})

    def test_names_without_certain_wall_time_have_none(self):
        made = self.wall(20, 20), self.spans(20, 70)
        self.assertEqual(self.sums(*made, **{"spanprof.from_outside": 1})["job"], (400, 0))
        self.assertEqual(self.sums(*made, **{"spanprof.dropped.visits": 5})["job"], (400, 0))
        self.write("t.jsonl", json_lines(traces()))
        self.write("cpu.jsonl", json_lines(profiles()))
        group = self.answer_json("spans", "t.jsonl", "cpu.jsonl", "--by-name", "--json")["groups"][0]
        self.assertFalse({"total_wall", "queued_ns"} & set(group))

    def test_table_has_columns_of_both_sums(self):
        files = self.made(self.wall(20, 20), self.spans(20, 70), cpu=[(JOB, 6)])
        lines = self.answer("spans", *files, "--by-name").splitlines()
        self.assertEqual(lines[1].split()[-4:], ["total", "wall", "queue", "name"])
        self.assertEqual([re.split("  +", line)[-3:] for line in lines[2:4]], [["400 ms", "1.00 s", "job"], ["20.0 ms", "-", "else"]])
        self.assertEqual(sum(line.startswith("queue: no thread carried the spans, their work ran without the context, or they were ended long after their work; ")
                             for line in lines), 1)
        none = self.answer("spans", *self.made(self.wall(20, 20), self.spans(20, 30), cpu=[(JOB, 6)]), "--by-name")
        self.assertEqual((none.splitlines()[1].split()[-3:], "queue" in none), (["total", "wall", "name"], False))

    def test_a_narrow_terminal_has_the_sum_by_which_names_are_sorted(self):
        files = self.made(self.wall(20, 20), self.spans(20, 70), cpu=[(JOB, 6)])
        for key, head, left in (("cpu", "total", "p95, wall, queue and max"), ("queue", "queue", "p95, the total, wall and max"),
                                ("wall", "wall", "p95, the total, queue and max")):
            lines = self.on_terminal("spans", *files, "--by-name", "--sort", key, columns=80)
            self.assertTrue(all(len(line) <= 80 for line in lines if ":" not in line), lines)
            self.assertEqual((lines[1].split()[-2], lines[-1][:len(left)]), (head, left))

    def test_sort_by_queue(self):
        jobs = [each | {"name": "short"} for each in self.spans(20, 70)[:-1]]
        files = self.made([*self.wall(20, 20), (JOB, 3000, "network")], [*jobs, span(TRACE, JOB, "long", 0, 3000), span(TRACE, PART, "alone", 4000, 400), self.spans(0, 0)[0]])
        names = lambda *more: [each["name"] for each in self.groups(*more)][:2]
        self.assertEqual(names("--sort", "queue"), ["short", "alone"])
        self.assertEqual(names("--sort", "wall"), ["long", "short"])
        spans = self.answer_json("spans", *files, "--sort", "queue", "--json")["spans"]
        self.assertEqual((spans[0]["name"], spans[0]["queued_ns"]), ("alone", 400 * MS))
        self.write("cpu.jsonl", json_lines(profiles()))
        for more in ((), ("--by-name",)):
            self.refuse(1, "spans", "t.jsonl", "cpu.jsonl", "--sort", "queue", *more, says=("--sort queue", "no wall profile"))


class QueueOfSeveral(QueueTest):
    """The graph of several spans says it of all of them."""
    SENTENCE = ("about 1.00 s (± 89.4 ms) of the 1.40 s of these 20 spans no thread carried them: they were in a queue, "
                "their work ran elsewhere without the context, or they ended long after it")

    def test_graph_of_several_spans_says_it(self):
        files = self.made(self.wall(20, 20), self.spans(20, 70), cpu=[(f"{1:016x}", 6)])
        for which in (("--name", "job"), ("--where", "name = \"job\"")):
            for more in ((), ("--type", "wall"), ("--type", "offcpu")):
                text = self.answer("flame", *files, *which, *more, columns=250)
                self.assertEqual(text.count(self.SENTENCE + "\n"), 1, text)
                self.assertEqual(self.answer_json("flame", *files, *which, *more, "--format", "json")["queued_ns"], 1000 * MS)
        self.assertIn("no thread carried them", self.answer("flame", *files, "--name", "job", "--format", "svg"))
        for which in ((), ("--name", "else", "--type", "wall")):
            self.assertNotIn("carried", self.answer("flame", *files, *which))
        self.assertNotIn("queued_ns", self.answer_json("flame", *files, "--name", "else", "--type", "wall", "--format", "json"))

    def said(self, *made, name="job", **more):
        return self.answer_json("flame", *self.made(*made, **more), "--name", name, "--type", "wall", "--format", "json").get("queued_ns", 0) // MS

    def test_graph_decides_by_the_error_of_the_sum(self):
        for ms, queued in ((38, 0), (39, 380)):
            self.assertEqual(self.said(self.wall(20, 20), self.spans(20, ms)), queued)
        self.assertEqual(self.said(self.wall(20, 20, "runnable"), self.spans(20, 40)), 0)
        self.assertEqual(self.said(self.wall(10, 20), self.spans(10, 60, gap=0)), 0)

    def test_one_span_that_matches_is_told_as_one(self):
        files = self.made([(JOB, 120, "network")])
        self.assertIn("about 880 ms of its 1.00 s no thread carried this span", self.answer("flame", *files, "--name", "job", "--type", "wall", columns=250))

    def test_span_below_another_that_matches_counts_once(self):
        inner = [span(TRACE, f"{100 + i:016x}", "part", 70 * i, 60, f"{i + 1:016x}") for i in range(20)]
        files = self.made([*self.wall(20, 20), (f"{100:016x}", 20, "network")], [*self.spans(20, 70), *inner])
        answer = self.answer_json("flame", *files, "--where", "duration >= 60ms", "--type", "wall", "--format", "json")
        self.assertEqual(answer["queued_ns"], 980 * MS)
        self.assertIn("of the 1.40 s of these 40 spans", self.answer("flame", *files, "--where", "duration >= 60ms", "--type", "wall", columns=250))

    def test_spans_without_certain_wall_time_have_no_line(self):
        made = self.wall(20, 20), self.spans(20, 70)
        self.assertEqual(self.said(*made, **{"spanprof.from_outside": 1}), 0)
        parts = [span(TRACE, f"{100 + i:016x}", "part", 70 * i, 60, f"{i + 1:016x}") for i in range(20)]
        self.assertEqual(self.said(self.wall(20, 20), [*self.spans(20, 70), *parts]), 1000)
        files = "t.jsonl", "p.jsonl"
        hidden = self.answer_json("flame", *files, "--where", "duration >= 60ms || name = \"part\"", "--type", "wall", "--format", "json")
        self.assertNotIn("queued_ns", hidden)


class WaitKinds(ToolTest):
    """The kernel says "futex" of each; the function that waits says which it was."""
    WAYS = {"condition": ("pthread_cond_wait", "__pthread_cond_wait_common", "___pthread_cond_timedwait64", "cnd_wait",
                          "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
                          "std::__atomic_futex_unsigned_base::_M_futex_wait_until(unsigned int*, unsigned int, bool)"),
            "semaphore": ("sem_wait", "__new_sem_wait_slow64", "sem_timedwait"),
            "join": ("pthread_join", "__pthread_clockjoin_ex", "___pthread_timedjoin_np64", "thrd_join", "std::thread::join()", "pthread_barrier_wait",
                     "gomp_team_barrier_wait_end"),
            "lock": ("pthread_mutex_lock", "__lll_lock_wait", "pthread_rwlock_wrlock", "std::mutex::lock()", "seminar", "my_sem_wait", "joiner", "my_pthread_join")}

    def test_waits_are_called_by_what_they_wait_for(self):
        made = [(("main", "work", function, "futex"), REPORT_TRACE, REPORT, 20 * MS, "lock")
                for functions in self.WAYS.values() for function in functions]
        made.append((("pthread_cond_wait", "handler", *("f%d" % i for i in range(9)), "futex"), REPORT_TRACE, REPORT, 20 * MS, "lock"))
        self.write("w.jsonl", json_lines(wall_profiles(made)))
        self.write("t.jsonl", json_lines(traces()))
        self.assertEqual(self.waited(), {"condition": 6, "semaphore": 3, "join": 7, "lock": 9})
        table = self.answer("spans", "t.jsonl", "w.jsonl", "--limit", "1")
        self.assertIn("  llllCCSjjj  ", table)
        self.assertIn("tenths: cpu runnable lock Condition Semaphore join disk network sleep other\n", table)
        self.assertIn("lock 36 %, condition 24 %, semaphore 12 %, join 28 %", self.answer("flame", "t.jsonl", "w.jsonl", "--type", "wall"))
        for command in (("stats", "w.jsonl"), ("check", "w.jsonl")):
            self.answer(*command)

    def waited(self):
        spent = self.answer_json("spans", "t.jsonl", "w.jsonl", "--span", REPORT, "--limit", "1", "--json")["spans"][0]["wall"]
        return {kind: spent[kind] // (20 * MS) for kind in self.WAYS}

    def test_a_wait_for_a_change_is_called_by_the_function_that_needs_it(self):
        """Semaphores and barriers of C++20 wait for a change of a value, as std::atomic::wait does."""
        change = ("std::__atomic_wait_address_v<…>", "std::__detail::__platform_wait<int>", "futex")
        made = [(("main", *functions, *change), REPORT_TRACE, REPORT, 20 * MS, "lock")
                for functions in (("std::__atomic_semaphore::_M_acquire()",), ("std::counting_semaphore<5>::acquire()",), ("std::latch::wait() const",),
                                  ("work", "std::atomic<int>::wait(int) const"), ("work",))]
        self.write("w.jsonl", json_lines(wall_profiles(made)))
        self.write("t.jsonl", json_lines(traces()))
        self.assertEqual(self.waited(), {"condition": 2, "semaphore": 2, "join": 1, "lock": 0})

    def test_full_names_have_the_same_class(self):
        """Full names of templates begin with the type that they return."""
        full = ("bool std::__atomic_wait_address<int, std::latch::wait() const::{lambda()#1}>(int const*, std::latch::wait() const::{lambda()#1})",
                "std::vector<int> std::condition_variable::wait<main::{lambda()#1}>(std::unique_lock<std::mutex>&)", "void (anonymous namespace)::my::sem_wait<int>()",
                "std::vector<int> (anonymous namespace)::std_like<int>(int)")
        self.write("w.jsonl", json_lines(wall_profiles([(("main", name, "futex"), REPORT_TRACE, REPORT, 20 * MS, "lock") for name in full])))
        self.write("t.jsonl", json_lines(traces()))
        self.assertEqual(self.waited(), {"condition": 2, "semaphore": 0, "join": 0, "lock": 2})

    def test_another_wait_in_such_a_function_keeps_its_class(self):
        self.write("w.jsonl", json_lines(wall_profiles([(("main", "pthread_cond_wait", "[runnable]"), REPORT_TRACE, REPORT, 20 * MS, "runnable")])))
        self.assertIn("runnable 100 %", self.answer("flame", "w.jsonl", "--type", "wall"))


class Stats(WallTest):
    def test_text_tells_visits_time_and_descriptors(self):
        cpu, wall = self.answer("stats", "both.jsonl").split("\n\n")[1:]
        self.assertEqual(wall, STATS)
        self.assertNotIn("visits", cpu)

    def test_json(self):
        cpu, wall = self.answer_json("stats", "both.jsonl", "--json")["types"]
        self.assertNotIn("wall", cpu)
        self.assertEqual(wall["wall"], {
            "visits": {"visits": 80, "unmoved": 40, "discarded": 2},
            "time": {"cpu": 260 * MS, "runnable": 20 * MS, "lock": 20 * MS, "condition": 0, "semaphore": 0, "join": 0, "disk": 20 * MS, "network": 1020 * MS,
                     "sleep": 20 * MS, "other": 20 * MS},
            "steal_ns": 0,
            "descriptors": {"socket": 1020 * MS, "file": 20 * MS, "device": 20 * MS}})
        self.assertEqual((wall["linked"], wall["none"], wall["unknown"], wall["samples"]), (18, 51, 1, 69))

    def test_what_the_host_took_is_told_beside_the_time_that_it_is_in(self):
        self.write("stolen.jsonl", json_lines(*[wall_profiles(attributes=WALL_COUNTS | {"spanprof.steal_ns": ns}) for ns in (3 * MS, 10 * MS)]))
        self.assertEqual(self.answer_json("stats", "stolen.jsonl", "--json")["types"][0]["wall"]["steal_ns"], 13 * MS)
        self.assertIn("       13.0 ms    0.47 %  of it taken by the host (steal)\n", self.answer("stats", "stolen.jsonl"))

    def test_profiles_without_waits_have_no_time_by_class(self):
        wall = self.answer_json("stats", "network.jsonl", "--json")["types"][0]["wall"]
        self.assertEqual((wall["time"], wall["descriptors"]), ({}, {}))
        self.assertNotIn("  time", self.answer("stats", "network.jsonl"))

    def test_hostile_descriptors_are_escaped(self):
        self.write("evil.jsonl", json_lines(wall_profiles([(("main",), "", "", 1, "other", "\x1b[2J")])))
        self.assertIn(r"\x1b[2J", self.answer("stats", "evil.jsonl"))


if __name__ == "__main__":
    unittest.main()
