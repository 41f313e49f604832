#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`spanprof spans` and `spanprof stats`."""
import re
import struct

from otlp import *

TABLE = f"""\
duration       cpu       own  samples  status  trace id                          span id           name
  250 ms    250 ms  <10.0 ms       25  unset   {REPORT_TRACE}  {REPORT}  GET /report
  190 ms    220 ms    200 ms       22  unset   {REPORT_TRACE}  {RENDER}  render
 60.0 ms   40.0 ms   40.0 ms        4  error   {CART_TRACE}  {CART}  GET /cart
the same in all lines: service shop
<10.0 ms: no sample, so probably less than the time that one stands for
… 2 more spans (--limit 0 shows all)
"""

TREE = f"""\
trace {REPORT_TRACE}, 4 spans, shop

duration       cpu  smpls       own  smpls  span id           when              name
  250 ms    250 ms     25  <10.0 ms      0  {REPORT}  ████████████████  GET /report
 40.0 ms   30.0 ms      3   30.0 ms      3  {QUERY}  ██░               ├─ query
  190 ms    220 ms     22    200 ms     20  {RENDER}     ████████████   └─ render
 5.00 ms   20.0 ms      2   20.0 ms      2  {COMPRESS}                 █     └─ compress
<10.0 ms: no sample, so probably less than the time that one stands for
when: 250 ms from left to right; █ is the share of CPU time, ░ the rest
"""

STATS = """\
5 spans, 1 profile, 4 links (4 to a span in these files)

cpu: 1 profile, 30 samples, one each 10.0 ms, engine timer (asked for)
  linked               29   96.67 %
  none                  1    3.33 %
  unknown               0    0.00 %
  boundary              0    0.00 %
  unattributed    12.3 us
       12.0 us  thread w\\x1b1/77
  stacks
            25   83.33 %  complete
             3   10.00 %  no_table
             2    6.67 %  folded
             6   20.00 %  by_frame_pointer
  dropped: ring_full 7
"""


HOLDERS = f"""\
  waited     times  span       span id           in       lock held by         span id           in
 40.0 ms         5  GET /cart  {CART}  look_up  GET /report: render  {RENDER}  rebuild_index
 2.00 ms         1  GET /cart  {CART}  look_up  (not in the files)   00000000000000ff
 1.00 ms         2  -                            look_up  -                                      retry_lock
a wait with several holders names one, drawn by its share of the wait
"""


# Two variables of one name, and one on the heap.
LOCKS = (("lock", "0x4010"), ("lock", "0x4010"), ("", "0x7f0000000010"), ("lock", "0x5010"))
LOCK_LINES = f"""\
  waited     times  span       span id           in       lock            lock held by         span id           in
 40.0 ms         5  GET /cart  {CART}  look_up  lock (0x4010)   GET /report: render  {RENDER}  rebuild_index
 2.00 ms         1  GET /cart  {CART}  look_up  0x7f0000000010  (not in the files)   00000000000000ff
 1.00 ms         2  -                            look_up  lock (0x5010)   -                                      retry_lock
a wait with several holders names one, drawn by its share of the wait
"""


class Locks(ToolTest):
    """Which lock it was, in `spanprof spans --holders` and in flame's JSON."""

    def setUp(self):
        super().setUp()
        self.write_shop()

    def holders(self, locks, *arguments):
        self.write("locks.profiles.jsonl", json_lines(lock_profiles(locks=locks)))
        return self.answer("spans", "shop", "locks.profiles.jsonl", "--holders", *arguments)

    def test_a_column_has_the_lock_with_its_address_where_the_name_is_not_enough(self):
        self.assertEqual(self.holders(LOCKS), LOCK_LINES)

    def test_a_name_that_one_lock_has_stands_alone(self):
        self.assertIn("look_up  cache_mutex+0x28  GET /report", self.holders((("cache_mutex+0x28", "0x4010"),) * 4))

    def test_a_terminal_cuts_the_lock_as_it_does_names(self):
        self.holders((("shop::" + "a" * 60, "0x4010"),) * 4)
        for columns in (140, 220):
            lines = self.on_terminal("spans", "shop", "locks.profiles.jsonl", "--holders", columns=columns)
            self.assertTrue(all(len(line) <= columns for line in lines) and any("shop::aaaaa" in line for line in lines), lines)

    def test_two_locks_of_one_function_are_two_lines(self):
        apart = json.loads(self.holders((LOCKS[0], LOCKS[3], *LOCKS[2:]), "--json"))
        self.assertEqual([(wait["lock"], wait["lock_address"], wait["delay_ns"]) for wait in apart["waits"]],
                         [("lock", "0x4010", 30 * MS), ("lock", "0x5010", 10 * MS), ("", "0x7f0000000010", 2 * MS), ("lock", "0x5010", 1 * MS)])

    def test_flame_json_has_the_lock_of_each_wait(self):
        self.holders(LOCKS)
        for kind in ("delay", "contentions"):
            stacks = self.answer_json("flame", "locks.profiles.jsonl", "--type", kind, "--format", "json")["stacks"]
            self.assertEqual({(stack["lock"], stack["lock_address"]) for stack in stacks}, set(LOCKS))

    def test_the_functions_of_a_lock_are_not_who_waited_or_held(self):
        around = ("std::__shared_mutex_pthread::lock_shared()", "__glibcxx_rwlock_rdlock(pthread_rwlock_t*)")
        waits = [(("main", "look_up", *around), CART_TRACE, CART, 5, "", "", (REPORT_TRACE, RENDER, "main;rebuild;__glibcxx_rwlock_unlock"), ("prices", "0x4010"))]
        self.write("r.jsonl", json_lines(profiles(waits, period=1, kind=("delay", "nanoseconds", "contentions", "count"))))
        wait = self.answer_json("spans", "shop", "r.jsonl", "--holders", "--json")["waits"][0]
        self.assertEqual((wait["function"], wait["holder_function"]), ("look_up", "rebuild"))

    def test_flame_says_what_was_waited_for_most(self):
        for locks, name in ((LOCKS, "lock"), ((("", ""),) * 4, "a lock")):
            self.holders(locks)
            for kind, amount in (("delay", "40.0 ms of 43.0 ms"), ("contentions", "5 of 8 times")):
                text = self.answer("flame", "shop", "locks.profiles.jsonl", "--type", kind)
                self.assertIn(f"\nwaited for {name}, held by render in rebuild_index ({amount})\n", text)
        self.holders(LOCKS)
        self.assertIn("waited for lock, held by a span that the files do not have in rebuild_index (",
                      self.answer("flame", "locks.profiles.jsonl", "--type", "lock"))

    def test_flame_json_has_what_waits_for_conditions_were_for(self):
        waits = [(("main", "take"), CART_TRACE, CART, 5, "", "", ("", ""), ("pool_ready", "0x4010"))]
        self.write("c.jsonl", json_lines(profiles(waits, period=1, kind=("condition_delay", "nanoseconds", "waits", "count"))))
        stacks = self.answer_json("flame", "c.jsonl", "--type", "condition", "--format", "json")["stacks"]
        self.assertEqual([(stack["lock"], stack["lock_address"]) for stack in stacks], [("pool_ready", "0x4010")])
        self.assertIn("\nwaited for pool_ready (5 ns of 5 ns)\n", self.answer("flame", "c.jsonl", "--type", "condition"))


class Holders(ToolTest):
    """`spanprof spans --holders`"""

    def setUp(self):
        super().setUp()
        self.write_shop()
        self.write("locks.profiles.jsonl", json_lines(lock_profiles()))
        self.files = ("shop", "locks.profiles.jsonl", "--holders")

    def waits(self, *arguments):
        return [(wait["holder"] and wait["holder"]["name"]) for wait in
                self.answer_json("spans", *self.files, "--json", *arguments)["waits"]]

    def test_table_has_the_longest_first(self):
        self.assertEqual(self.answer("spans", *self.files), HOLDERS)

    def test_a_query_chooses_who_waited(self):
        self.assertEqual(self.answer_json("spans", *self.files, "--json", "--where", 'name = "GET /cart"')["waits"],
                         [wait for wait in self.answer_json("spans", *self.files, "--json")["waits"] if (wait["waiter"] or {}).get("name") == "GET /cart"])
        self.refuse(1, "spans", *self.files, "--where", "duration > 100h", says=("no span that matches",))
        self.refuse(2, "spans", *self.files, "--where", "duration >", says=("--where",))
        self.refuse(2, "spans", *self.files, "--by-name", says=("--by-name",))

    def test_only_a_terminal_cuts_names(self):
        name = "GET /" + "a" * 60
        self.write("long.jsonl", json_lines(traces([span(CART_TRACE, CART, name, 1, 2)])))
        files = ("long.jsonl", "locks.profiles.jsonl", "--holders")
        self.assertIn(f"  {name}  {CART}  look_up  ", self.answer("spans", *files))
        lines = self.on_terminal("spans", *files, columns=160)
        self.assertTrue(all(len(line) <= 160 for line in lines) and any("GET /aa" in line for line in lines), lines)

    def test_json_has_ids_and_null_for_what_is_not_known(self):
        answer = self.answer_json("spans", *self.files, "--json")
        self.assertEqual(answer["count"], 3)
        self.assertEqual(answer["waits"][0], {
            "waiter": {"trace_id": CART_TRACE, "span_id": CART, "name": "GET /cart", "request": "GET /cart"}, "function": "look_up", "lock": "", "lock_address": "",
            "holder": {"trace_id": REPORT_TRACE, "span_id": RENDER, "name": "render", "request": "GET /report"},
            "holder_function": "rebuild_index", "delay_ns": 40 * MS, "contentions": 5})
        self.assertEqual([answer["waits"][2][key] for key in ("waiter", "holder")], [None, None])

    def test_spans_are_chosen_by_who_waited(self):
        self.assertEqual(self.waits("--trace", CART_TRACE), ["render", ""])
        self.assertEqual(self.waits("--name", "GET /cart", "--limit", "1"), ["render"])
        self.refuse(1, "spans", *self.files, "--name", "render", says="no span that matches waited")

    def test_a_span_chooses_its_waits_and_those_of_its_request(self):
        self.assertEqual(self.waits("--span", CART), ["render", ""])
        self.refuse(1, "spans", *self.files, "--span", RENDER, says="no span that matches waited")

    def test_what_makes_no_sense_is_refused(self):
        self.refuse(2, "spans", *self.files, "--sort", "cpu", says="leave out --sort")
        self.refuse(1, "spans", "shop", "--holders", says="SPANPROF_PROFILES=lock")

    def test_stats_say_how_waits_were_sampled(self):
        text = self.answer("stats", "locks.profiles.jsonl")
        self.assertIn("\ndelay: 1 profile, 4 samples\n", text)
        self.write("told.jsonl", json_lines(lock_profiles({"spanprof.lock_ns": 100_000})))
        text = self.answer("stats", "told.jsonl")
        for kind in ("contentions", "delay"):
            self.assertIn(f"\n{kind}: 1 profile, 8 samples, one in 100 us of waiting\n", text)

    def test_short_waits_are_few_samples_that_stand_for_many(self):
        """2 waits of 10 us were sampled, with the probability 1 - exp(-0.1); they stand for 21 waits."""
        d, told = Dictionary(), {"spanprof.lock_ns": 100_000, "spanprof.samples.linked": 21, "spanprof.samples.none": 0, "spanprof.stacks.complete": 21}
        made = [profile(d, [(("main", "lock"), CART_TRACE, CART, value)], 1, (kind, unit, "contentions", "count"), told)
                for kind, unit, value in (("contentions", "count", 21), ("delay", "nanoseconds", 210_166))]
        self.write("short.jsonl", json_lines(request(d, *made)))
        text = self.answer("stats", "short.jsonl")
        for kind in ("contentions", "delay"):
            self.assertIn(f"\n{kind}: 1 profile, 2 samples, one in 100 us of waiting\n"
                          "  linked                2  about         21 waits  100.00 %\n  none                  0  about          0 waits    0.00 %\n", text)
        self.assertIn("\n  stacks, in estimated waits\n", text)
        self.assertIn("contentions: 21 count ± 14 count in 2 samples\n", self.answer("flame", "short.jsonl", "--type", "contentions"))
        self.assertIn("of these", self.answer("stats", "short.jsonl", "--explain"))

    def test_flame_json_names_the_holder(self):
        stacks = self.answer_json("flame", "shop", "locks.profiles.jsonl", "--type", "lock", "--format", "json")["stacks"]
        self.assertEqual({stack["holder_span_id"] for stack in stacks}, {RENDER, "00000000000000ff", ""})
        self.assertIn("main;rebuild_index", {stack["holder_stack"] for stack in stacks})


class HolderNames(ToolTest):
    """Functions of C++ have the same names as in flamegraphs, also those of which only the name in the stack of a holder is known."""
    FILL, INDEX, MAP = "shop::fill<std::vector<int, std::allocator<int> > >", "shop::index<int>", "shop::store<std::map<int, int> >::put"

    def setUp(self):
        super().setUp()
        self.write_shop()

    def write_waits(self, *holders):
        d = Dictionary()
        waits = [(("main", self.FILL, "std::unique_lock<std::mutex>::lock()"), CART_TRACE, CART, (9 - i) * MS, "", "", (REPORT_TRACE, RENDER, f"main;{holder}"))
                 for i, holder in enumerate(holders)]
        waits.append((("main", self.INDEX), REPORT_TRACE, RENDER, 1 * MS))
        made = request(d, profile(d, waits, 1, ("delay", "nanoseconds", "contentions", "count"), {}))
        for function in d.tables["functionTable"][1:]:
            if d.tables["stringTable"][function["nameStrindex"]] == self.INDEX:
                function["systemNameStrindex"] = d.string("_ZN4shop5indexIiEEvT_")
        self.write("locks.profiles.jsonl", json_lines(made))

    def names(self, *arguments):
        waits = self.answer_json("spans", "shop", "locks.profiles.jsonl", "--holders", "--json", "--name", "GET /cart", *arguments)["waits"]
        return waits[0]["function"], [wait["holder_function"] for wait in waits]

    def test_template_arguments_are_folded_unless_told_otherwise(self):
        self.write_waits(self.MAP, self.INDEX)
        self.assertEqual(self.names(), ("shop::fill<…>", ["shop::store<…>::put", "shop::index<…>"]))
        self.assertEqual(self.names("--names", "short"), (self.FILL, [self.MAP, self.INDEX]))
        self.assertEqual(self.names("--names", "full"), (self.FILL, [self.MAP, "void shop::index<int>(int)"]))
        self.assertIn("shop::fill<…>   GET /report: render  00000000000000a2  shop::store<…>::put\n", self.answer("spans", "shop", "locks.profiles.jsonl", "--holders"))

    def test_two_holders_stay_apart(self):
        self.write_waits("shop::put<int>", "shop::put<long>", "app::call<void (*)()>", "operator<< <int>")
        self.assertEqual(self.names()[1], ["shop::put<int>", "shop::put<long>", "app::call<…>", "operator<< <…>"])

    def test_flame_names_them_alike(self):
        self.write_waits(self.MAP)
        for style, name in (("folded", "shop::store<…>::put"), ("short", self.MAP), ("full", self.MAP)):
            files = ("flame", "shop", "locks.profiles.jsonl", "--type", "lock", "--names", style)
            self.assertIn(f"held by render in {name} (", self.answer(*files))
            stacks = self.answer_json(*files, "--format", "json")["stacks"]
            self.assertEqual({stack["holder_stack"] for stack in stacks}, {f"main;{name}", ""})

    def test_they_are_only_for_holders(self):
        self.refuse(2, "spans", "shop", "--names", "full", says=("--names", "--holders"))
        self.refuse(2, "spans", "shop", "--holders", "--names", "long", says=("long", "short, folded, full"))


class Spans(ToolTest):
    def setUp(self):
        super().setUp()
        self.write_shop()

    def order(self, *arguments):
        return [s["name"] for s in self.answer_json("spans", "shop", "--json", *arguments)["spans"]]

    def test_table_has_the_slowest_first(self):
        self.assertEqual(self.answer("spans", "shop", "--sort", "duration", "--limit", "3"), TABLE)

    def test_the_slowest_is_last_on_a_terminal_and_first_in_a_pipe(self):
        names = lambda lines: [line.split("  ")[-1] for line in lines[1:6]]
        slowest_first = ["GET /report", "render", "GET /cart", "query", "compress"]
        self.assertEqual(names(self.answer("spans", "shop").splitlines()), slowest_first)
        self.assertEqual(names(self.on_terminal("spans", "shop", columns=140)), slowest_first[::-1])
        two = self.on_terminal("spans", "shop", "--limit", "2", columns=140)
        self.assertEqual(names(two)[:2], ["render", "GET /report"])
        self.assertEqual(two[-1], "… 3 more spans (--limit 0 shows all)")
        by_start = ["GET /report", "query", "render", "compress", "GET /cart"]
        self.assertEqual(names(self.answer("spans", "shop", "--sort", "start").splitlines()), by_start)
        self.assertEqual(names(self.on_terminal("spans", "shop", "--sort", "start", columns=140)), by_start)

    def many(self, count, **more):
        return [span(f"{n:032x}", f"{n:016x}", f"s{n}", n, n, **more) for n in range(1, count + 1)]

    def test_twenty_lines_unless_told(self):
        self.write("many.jsonl", json_lines(traces(self.many(25))))
        lines = self.answer("spans", "many.jsonl").splitlines()
        self.assertEqual([line.split()[-1] for line in lines[1:21]], [f"s{n}" for n in range(25, 5, -1)])
        self.assertEqual(lines[-1], "… 5 more spans (--limit 0 shows all)")
        self.assertEqual(self.answer("spans", "many.jsonl", locale="C").splitlines()[-1], "... 5 more spans (--limit 0 shows all)")
        self.assertNotIn("more spans", self.answer("spans", "many.jsonl", "--limit", "0"))
        self.assertEqual(len(self.answer("spans", "many.jsonl", "--limit", "0").splitlines()), 1 + 25 + 2)
        self.assertEqual(len(self.answer_json("spans", "many.jsonl", "--json")["spans"]), 25)
        self.assertEqual(len(self.answer_json("spans", "many.jsonl", "--json", "--limit", "3")["spans"]), 3)
        self.write("names.jsonl", json_lines(traces(self.many(21))))
        self.assertIn("… 1 more name (", self.answer("spans", "names.jsonl", "--by-name"))
        self.assertEqual(len(self.answer_json("spans", "names.jsonl", "--by-name", "--json")["groups"]), 21)

    def test_a_tree_has_all_of_its_spans(self):
        chain = [span(REPORT_TRACE, f"{i + 1:016x}", "s", 0, 5, f"{i:016x}" if i else "") for i in range(25)]
        self.write("chain.jsonl", json_lines(traces(chain)))
        self.assertEqual(self.answer("spans", "chain.jsonl", "--trace", REPORT_TRACE).count("\n"), 3 + 25 + 1)

    def test_what_is_the_same_in_all_lines_is_told_once(self):
        self.write("t.jsonl", json_lines(traces([{**each, "traceId": REPORT_TRACE} for each in self.many(3, status={"code": 1})])))
        lines = self.answer("spans", "t.jsonl").splitlines()
        self.assertEqual(lines[0].split(), ["duration", "span", "id", "name"])
        self.assertEqual(lines[-2], f"the same in all lines: status ok, service shop, trace {REPORT_TRACE}")
        self.assertIn("CPU time is not known", lines[-1])
        self.assertIn("SPANPROF_PROFILES=none or without cpu records none", lines[-1])
        self.assertEqual(self.answer("spans", "t.jsonl", "--limit", "1").splitlines()[0].split(),
                         "duration status trace id span id name".split())

    def test_a_long_name_of_a_type_is_cut_in_its_column_only(self):
        self.write("p.jsonl", json_lines(profiles([(("main",), f"{n:032x}", f"{n:016x}", 1024) for n in (1, 2)], kind=("alloc_space_innermost", "bytes", "space", "bytes"))))
        self.write("t.jsonl", json_lines(traces(self.many(2))))
        self.assertIn("the same in all lines: alloc_space 1.00 KiB, own 1.00 KiB, ", self.answer("spans", "t.jsonl", "p.jsonl"))
        self.assertRegex(self.answer("spans", "t.jsonl", "p.jsonl", "--by-name").splitlines()[0], r"duration +alloc_space\Z")
        self.assertRegex(self.answer("spans", "t.jsonl", "p.jsonl", "--limit", "1").splitlines()[0], r"duration  alloc_sp       own ")

    def test_only_a_width_that_is_known_cuts(self):
        name = "n" * 150
        self.write("t.jsonl", json_lines(traces([span(REPORT_TRACE, REPORT, name, 0, 5), span(CART_TRACE, CART, name, 0, 6)])))
        self.assertEqual(self.answer("spans", "t.jsonl").count(name), 2)
        self.assertLessEqual(max(map(len, self.answer("spans", "t.jsonl", columns=120).splitlines()[:3])), 120)
        self.assertLessEqual(max(map(len, self.on_terminal("spans", "t.jsonl", columns=80)[:3])), 80)

    def test_several_names_are_their_union(self):
        self.assertEqual(self.order("--name", "query", "--name", "GET /cart", "--name", "none of these"), ["GET /cart", "query"])

    def test_several_traces_are_a_list_of_their_spans(self):
        self.write("t.jsonl", json_lines(traces(), traces([span("12" * 16, "34" * 8, "other", 0, 999)])))
        names = lambda *more: [s["name"] for s in self.answer_json("spans", "t.jsonl", "--json", *more)["spans"]]
        self.assertEqual(names("--trace", CART_TRACE, "--trace", "12" * 16), ["other", "GET /cart"])
        self.assertEqual(self.answer("spans", "t.jsonl", "--trace", CART_TRACE, "--trace", "12" * 16).splitlines()[0].split()[0], "duration")
        self.refuse(1, "spans", "t.jsonl", "--trace", "56" * 16, "--trace", "78" * 16, says="none of these 2 traces is in this file")
        self.refuse(2, "spans", "t.jsonl", "--trace", CART_TRACE, "--trace", "12", says="trace id")

    def test_a_span_is_a_tree_with_its_descendants(self):
        self.assertEqual(self.answer("spans", "shop", "--span", RENDER, columns=90), f"""\
trace {REPORT_TRACE}, 2 spans, shop

duration       cpu  smpls       own  smpls  span id           name
  190 ms    220 ms     22    200 ms     20  {RENDER}  render
 5.00 ms   20.0 ms      2   20.0 ms      2  {COMPRESS}  └─ compress
""")
        self.assertEqual(self.answer("spans", "shop", "--span", REPORT), TREE)
        self.assertEqual(self.answer("spans", "shop", "--span", "0x" + REPORT.upper(), "--trace", REPORT_TRACE), TREE)

    def test_several_spans_and_conditions_are_a_list(self):
        self.assertEqual(self.order("--span", RENDER, "--span", CART), ["render", "GET /cart", "compress"])
        self.assertEqual(self.order("--span", REPORT, "--name", "query"), ["query"])
        self.assertEqual(self.order("--span", REPORT, "--where", "duration < 50ms"), ["query", "compress"])
        self.assertEqual(self.order("--span", CART), ["GET /cart"])
        self.refuse(1, "spans", "shop", "--span", REPORT, "--name", "GET /cart", says="no span matches")

    def test_a_trace_id_is_no_span_id(self):
        self.refuse(2, "spans", "shop", "--span", REPORT_TRACE, says=f"ask with --trace {REPORT_TRACE}")
        self.refuse(2, "spans", "shop", "--span", "12", says="span id")
        self.write("t.jsonl", json_lines(traces(), traces([span("12" * 16, RENDER, "same id", 0, 9)])))
        self.refuse(1, "spans", "t.jsonl", "--span", RENDER, says="more than one trace")
        self.assertIn("same id", self.answer("spans", "t.jsonl", "--span", RENDER, "--trace", "12" * 16))

    def test_the_first_digits_of_an_id_are_enough(self):
        self.assertEqual(self.order("--span", "b7ad"), ["GET /cart"])
        self.assertEqual(self.order("--span", "0xB7AD6"), ["GET /cart"])
        self.assertEqual(self.order("--trace", "0af76"), ["GET /cart"])
        for command in (["spans"], ["flame", "--format", "folded"]):
            self.assertEqual(self.answer(*command, "shop", "--span", "00f06"), self.answer(*command, "shop", "--span", REPORT))
            self.assertEqual(self.answer(*command, "shop", "--trace", "4bf9"), self.answer(*command, "shop", "--trace", REPORT_TRACE))
        self.refuse(1, "spans", "shop", "--span", "0000", says=("several span ids", f"{RENDER} (render)", f"{QUERY} (query)", "more digits"))
        self.refuse(1, "flame", "shop", "--trace", "abcd", says="no trace id in the files begins with abcd")
        self.refuse(2, "spans", "shop", "--span", "b7a", says=("no span id", "4 at least"))
        self.refuse(2, "spans", "shop", "--span", "b7ag", says="no span id")

    def test_an_id_of_an_earlier_run_is_told_of_the_files(self):
        gone = "ab" * 8
        for command in ("spans", "flame"):
            error = self.refuse(1, command, "shop", "--span", gone, says=(
                f"span {gone} is not in any of these 2 files, recorded by shop at 2023-11-1", "PREFIX.1", "another prefix"))
            self.assertRegex(error, r" at 2023-11-1\d \d\d:\d\d:\d\d [^;]+; ")
        self.refuse(1, "flame", "shop", "--trace", gone * 2, says=f"trace {gone * 2} is not in any of these 2 files")
        self.refuse(1, "spans", "shop.traces.jsonl", "--trace", gone * 2, says=f"trace {gone * 2} is not in this file")
        several = self.run_tool("spans", "shop", "--span", gone, "--span", CART, "--json")
        self.assertEqual((several.returncode, [s["name"] for s in json.loads(several.stdout)["spans"]]), (0, ["GET /cart"]))
        self.assertIn(f"no span {gone} in the files", several.stderr.decode())

    def test_a_trace_without_samples_is_not_called_absent(self):
        self.write("t.jsonl", json_lines(traces([span(CART_TRACE, CART, "idle", 0, 9)]), ))
        self.write("p.jsonl", json_lines(profiles(SAMPLES[:3])))
        self.write("r.jsonl", json_lines(traces()))
        self.refuse(1, "flame", "t.jsonl", "r.jsonl", "p.jsonl", "--trace", CART_TRACE, says=("no samples of trace", "1 span of it"))

    def test_trace_is_a_tree_with_own_and_total(self):
        self.assertEqual(self.answer("spans", "shop", "--trace", REPORT_TRACE), TREE)

    def bars(self, columns, **more):
        lines = self.answer("spans", "shop", "--trace", REPORT_TRACE, columns=columns, **more).splitlines()
        at = lines[2].index("when") if "when" in lines[2] else None
        return [line[at:lines[2].index("name")].rstrip() for line in lines[3:7]] if at else []

    def test_bars_take_the_room_that_there_is(self):
        self.assertEqual(self.bars(99), [])
        self.assertEqual(self.bars(140), ["█" * 40, " █████░", " " * 8 + "█" * 30, " " * 37 + "█"])
        self.assertEqual(self.bars(140, locale="C"), ["#" * 40, " #####-", " " * 8 + "#" * 30, " " * 37 + "#"])
        self.assertEqual(self.bars(300), self.bars(140))

    def test_bars_without_cpu_time_and_without_duration(self):
        self.write("shop.profiles.jsonl", b"")
        self.assertEqual(self.bars(140), ["░" * 40, " ░░░░░░", " " * 8 + "░" * 30, " " * 37 + "░"])
        self.write("shop.traces.jsonl", json_lines(traces([span(REPORT_TRACE, f"{n:016x}", "now", 5, 0) for n in range(1, 5)])))
        self.assertEqual(self.bars(140), ["░"] * 4)

    def test_json_has_integers_and_lower_case_ids(self):
        answer = self.answer_json("spans", "shop", "--json", "--name", "render")
        self.assertEqual((answer["type"], answer["unit"], answer["count"]), ("cpu", "nanoseconds", 1))
        self.assertEqual(answer["spans"], [{
            "trace_id": REPORT_TRACE, "span_id": RENDER, "parent_span_id": REPORT, "name": "render", "service": "shop",
            "kind": "internal", "status": "unset", "start_time_ns": START + 1_050_000_000, "duration_ns": 190_000_000,
            "own_value": 200_000_000, "own_count": 20, "total_value": 220_000_000, "total_count": 22,
            "threads": 0, "overruns": False}])

    def test_sort_by_each_key(self):
        self.assertEqual(self.order("--sort", "duration"), ["GET /report", "render", "GET /cart", "query", "compress"])
        self.assertEqual(self.order("--sort", "start"), ["GET /report", "query", "render", "compress", "GET /cart"])
        self.assertEqual(self.order("--sort", "cpu"), ["GET /report", "render", "GET /cart", "query", "compress"])
        self.assertEqual(self.order("--sort", "samples", "--limit", "1"), ["GET /report"])
        self.refuse(2, "spans", "shop", "--sort", "size", says=("size", "duration, start, cpu, wall, queue, alloc, samples"))

    def test_filters(self):
        self.assertEqual(self.order("--roots"), ["GET /report", "GET /cart"])
        self.assertEqual(self.order("--trace", CART_TRACE), ["GET /cart"])
        self.refuse(1, "spans", "shop", "--name", "GET /nothing", says="no span matches")
        self.refuse(1, "spans", "shop", "--trace", "12" * 16, says="12" * 16)
        self.refuse(2, "spans", "shop", "--trace", "12", says="trace id")

    def test_a_remote_parent_in_the_files_makes_a_local_root(self):
        self.write("t.jsonl", json_lines(traces([
            span(REPORT_TRACE, REPORT, "client", 0, 9, kind=3),
            span(REPORT_TRACE, QUERY, "server", 1, 5, REPORT, kind=2, flags=0x300),
            span(REPORT_TRACE, RENDER, "inner", 2, 3, QUERY, flags=0x100)])))
        names = [s["name"] for s in self.answer_json("spans", "t.jsonl", "--roots", "--json")["spans"]]
        self.assertEqual(names, ["client", "server"])

    def test_services_have_a_column_when_there_are_several(self):
        self.write("t.jsonl", json_lines(traces(), traces([span("12" * 16, "34" * 8, "other", 0, 999)], service="billing")))
        lines = self.answer("spans", "t.jsonl", columns=140).splitlines()
        self.assertIn("service", lines[0])
        self.assertTrue(lines[1].endswith("billing   other"))

    def overrun(self, *samples, spans=None, period=10_000_000):
        """Write spans (of 50 ms, unless given) and samples as (span id, thread, ticks of 10 ms, or of PERIOD ns)."""
        self.write("o.traces.jsonl", json_lines(traces(spans or [span(REPORT_TRACE, REPORT, "first", 0, 50), span(CART_TRACE, CART, "second", 60, 50)])))
        d = Dictionary()
        made = request(d, profile(d, [(("main",), CART_TRACE if own == CART else REPORT_TRACE, own, ticks) for own, _, ticks in samples], period,
                                  ("samples", "count", "cpu", "nanoseconds"), {}))
        for written, (_, thread, _) in zip(made["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["samples"], samples):
            if thread:
                written["attributeIndices"] = [d.attribute("thread.name", "w"), d.attribute("thread.id", thread)]
        self.write("o.profiles.jsonl", json_lines(made))
        answer = self.answer_json("spans", "o", "--json")["spans"]
        return {s["name"]: (s["threads"], s["overruns"]) for s in answer}

    def test_a_span_with_more_cpu_time_than_it_lasted_is_marked(self):
        self.assertEqual(self.overrun((REPORT, 7, 20), (CART, 7, 5)), {"first": (1, True), "second": (1, False)})
        for arguments in (["spans", "o"], ["spans", "o", "--trace", REPORT_TRACE]):
            text = self.answer(*arguments)
            self.assertRegex(text, r"first  \[!\]\n")
            self.assertNotIn("second  [!]", text)
            self.assertEqual(text.count("\n[!] more CPU time than the span lasted, on all its threads: work went on below it after its end; was it ended too early, "
                                        "or its scope not detached?\n"), 1)
        self.assertNotIn("[!]", self.answer("spans", "o", "--trace", CART_TRACE))

    def test_a_span_whose_threads_can_have_used_its_cpu_time_is_not_marked(self):
        self.assertEqual(self.overrun(*[(REPORT, thread, 5) for thread in range(1, 5)])["first"], (4, False))
        self.assertEqual(self.overrun((REPORT, 7, 7))["first"], (1, False))  # a tick too many at both ends
        self.assertEqual(self.overrun((REPORT, 7, 8))["first"], (1, True))
        self.assertEqual(self.overrun((REPORT, None, 20))["first"], (0, False))  # profiles for the network name no threads
        short = [span(REPORT_TRACE, REPORT, "first", 0, 1), span(CART_TRACE, CART, "second", 5, 1)]  # at 1,000 Hz, with a kernel's tick of 4 ms
        self.assertEqual(self.overrun((REPORT, 7, 8), (CART, 7, 24), spans=short, period=1_000_000), {"first": (1, False), "second": (1, True)})
        chain = [span(REPORT_TRACE, REPORT, "first", 0, 50), span(REPORT_TRACE, QUERY, "child", 5, 500, REPORT)]
        self.assertEqual(self.overrun((REPORT, 7, 5), (QUERY, 8, 12), (QUERY, 8, 13), spans=chain), {"first": (2, True), "child": (1, False)})

    def test_files_without_profiles_have_no_samples(self):
        answer = self.answer_json("spans", "shop.traces.jsonl", "--json")
        self.assertEqual({s["total_count"] for s in answer["spans"]}, {0})

    def test_files_without_spans(self):
        self.refuse(2, "spans", "shop.profiles.jsonl", says="no spans")
        self.write("shop.traces.jsonl", b"")  # the only span never ended
        self.refuse(2, "spans", "shop", says="hold no span that has ended")

    def test_spans_delivered_twice_count_once(self):
        self.write("twice.jsonl", json_lines(traces(), traces()))
        self.assertEqual(self.answer_json("spans", "twice.jsonl", "--json")["count"], 5)

    def test_parents_in_a_circle_end(self):
        ids = [f"{i:016x}" for i in range(1, 6)]
        ring = [span(REPORT_TRACE, own, f"s{i}", i, 5, ids[i - 1]) for i, own in enumerate(ids)]
        self_parent = span(REPORT_TRACE, "99" * 8, "self", 0, 1, "99" * 8)
        self.write("ring.jsonl", json_lines(traces(ring + [self_parent])))
        self.assertEqual(self.answer("spans", "ring.jsonl", "--trace", REPORT_TRACE).count("\n"), 3 + 6 + 1)
        self.write("p.jsonl", json_lines(profiles([(("main",), REPORT_TRACE, ids[2], 40)])))
        self.assertEqual(self.answer_json("flame", "ring.jsonl", "p.jsonl", "--span", ids[2], "--format", "json")["count"], 40)

    def test_spans_nested_a_hundred_thousand_deep(self):
        count = 100_000
        chain = [span(REPORT_TRACE, f"{i + 1:016x}", "s", 0, 5, f"{i:016x}" if i else "") for i in range(count)]
        self.write("deep.jsonl", json_lines(traces(chain)))
        self.write("p.jsonl", json_lines(profiles([(("main",), REPORT_TRACE, f"{count:016x}", 40)])))
        self.assertEqual(self.answer("spans", "deep.jsonl", "--trace", REPORT_TRACE).count("\n"), 3 + count + 1)
        self.assertEqual(self.answer_json("spans", "deep.jsonl", "--roots", "--json")["count"], 1)
        root = f"{1:016x}"
        self.assertEqual(self.answer_json("flame", "deep.jsonl", "p.jsonl", "--span", root, "--format", "json")["count"], 40)


class ForgottenDetach(ToolTest):
    def test_a_program_that_forgets_to_detach_is_told_so(self):
        program = subprocess.run([os.environ["SPANPROF_TEST_FORGOTTEN_DETACH"], "r"], cwd=self.folder, check=True, stderr=subprocess.PIPE)
        warnings = [line for line in program.stderr.decode().splitlines() if "detach" in line]
        self.assertEqual(len(warnings), 1, program.stderr)
        self.assertIn("request", warnings[0])
        result = self.run_tool("spans", "r", "--json")
        self.assertIn("under a span that had ended 2 times, so its work counts for that span", result.stderr.decode())
        first, *others = sorted(json.loads(result.stdout)["spans"], key=lambda s: s["start_time_ns"])
        self.assertEqual((first["parent_span_id"], first["threads"], first["overruns"]), ("", 1, True))
        self.assertEqual({s["trace_id"] for s in others}, {first["trace_id"]})
        self.assertIn("  [!]\n", self.run_tool("spans", "r").stdout.decode())
        self.assertEqual(self.answer_json("stats", "r", "--json")["misuse"], {"ended_parent": 2})


class Stats(ToolTest):
    def test_text(self):
        self.write_shop()
        self.assertEqual(self.answer("stats", "shop"), STATS)

    def test_json_adds_up_by_type(self):
        wall = profiles(kind=("wall", "nanoseconds", "wall", "nanoseconds"), attributes={})
        self.write("p.jsonl", json_lines(profiles(), profiles(), wall))
        answer = self.answer_json("stats", "p.jsonl", "--json")
        self.assertEqual((answer["spans"], answer["profiles"], answer["links"], answer["links_with_span"]), (0, 3, 4, 0))
        cpu, wall = answer["types"]
        self.assertEqual(cpu, {"type": "cpu", "unit": "nanoseconds", "profiles": 2, "period": 10_000_000, "samples": 60,
                               "linked": 58, "none": 2, "unknown": 0, "boundary": 0, "unattributed_ns": 24690,
                               "unattributed_threads": {"w\x1b1/77": 24000},
                               "stacks": {"complete": 50, "no_table": 6, "folded": 4, "by_frame_pointer": 12},
                               "dropped": {"ring_full": 14}, "engine": "timer", "engine_reason": "asked for", "linked_samples": 58, "counted": "samples"})
        self.assertEqual((wall["type"], wall["linked"], wall["none"]), ("wall", 4, 1))  # told by the samples themselves


    def test_misuse_is_told_with_what_it_is(self):
        counts = {**COUNTS, "spanprof.misuse.ended_parent": 3, "spanprof.misuse.dead_span": 2, "spanprof.misuse.of\x1btomorrow": 1}
        wall = profiles(kind=WALL, attributes={"spanprof.misuse.ended_parent": 4})
        self.write("p.jsonl", json_lines(profiles(attributes=counts), wall))
        self.assertEqual(self.answer_json("stats", "p.jsonl", "--json")["misuse"], {"ended_parent": 7, "dead_span": 2, "of\x1btomorrow": 1})
        self.assertTrue(self.answer("stats", "p.jsonl").endswith("""
calls that make no sense (docs/numbers.md)
             7  ended_parent: times a thread went on under a span that had ended: its scope was not detached
             2  dead_span: calls had a span that had ended, or none: ended twice, or set too late
             1  of\\x1btomorrow
"""))
        self.write("p.jsonl", json_lines(profiles()))
        self.assertEqual(self.answer_json("stats", "p.jsonl", "--json")["misuse"], {})

    def test_misuse_is_told_where_spans_are_shown(self):
        """A flamegraph of all samples is right whatever their spans are. Calls that do nothing change no answer."""
        self.write("shop.traces.jsonl", json_lines(traces()))
        write = lambda counts: self.write("shop.profiles.jsonl", json_lines(profiles(attributes=counts), profiles(kind=WALL, attributes=counts)))
        shown = (("spans",), ("spans", "--by-name", "--json"), ("flame", "--span", REPORT), ("flame", "--trace", REPORT_TRACE),
                 ("flame", "--name", "GET /report"), ("flame", "--where", 'name = "GET /report"'), ("flame", "--group-by", "span"))
        notes = lambda command, *rest: self.run_tool(command, "shop", *rest).stderr.decode()
        write({**COUNTS, "spanprof.misuse.ended_parent": 3, "spanprof.misuse.foreign_scope": 1, "spanprof.misuse.fiber": 2})
        for words in shown:
            self.assertEqual(notes(*words).count("calls of the program that make no sense: a thread went on under a span that had ended 6 times, "), 1)
            self.assertIn("; a scope was detached on another thread than it was attached on 2 times, ", notes(*words))
            self.assertIn("; a fiber was used after its end or by two threads 4 times, ", notes(*words))
        self.assertNotIn("no sense", notes("flame"))
        write({**COUNTS, "spanprof.misuse.dead_span": 3, "spanprof.misuse.dead_scope": 1})
        for words in shown:
            self.assertNotIn("no sense", notes(*words))

    def test_unattributed_threads_of_another_shape_are_passed_over(self):
        for bad in ("text", 5, [], [5], [{}], [{"thread.name": 5, "thread.id": "x", "unattributed_ns": "y"}], [[{"unattributed_ns": 1}]]):
            self.write("p.jsonl", json_lines(profiles(attributes={"spanprof.unattributed_ns.threads": bad})))
            threads = self.answer_json("stats", "p.jsonl", "--json")["types"][0]["unattributed_threads"]
            self.assertIn(threads, ({}, {"/0": 0}))
            self.answer("stats", "p.jsonl")

    def test_several_producers_are_named(self):
        others = [profiles(service="billing", attributes={**COUNTS, "spanprof.engine": "perf"}) for _ in range(2)]
        for other in others:
            other["resourceProfiles"][0]["resource"]["attributes"].append(attribute("service.instance.id", "i\x1b1"))
        self.write("p.jsonl", json_lines(profiles(), others[0], profiles(), others[1]))
        text = self.answer("stats", "p.jsonl")
        self.assertIn("\n2 producers, whose numbers are added up below:\n  shop: 2 profiles\n  billing, instance i\\x1b1: 2 profiles\n\ncpu: ", text)
        self.assertIn(", engine timer, perf (asked for)\n", text)
        answer = self.answer_json("stats", "p.jsonl", "--json")
        self.assertEqual(answer["producers"], [{"service": "shop", "instance": "", "profiles": 2},
                                               {"service": "billing", "instance": "i\x1b1", "profiles": 2}])
        self.assertEqual(answer["types"][0]["samples"], 120)

    def test_instances_of_one_service_are_several_producers(self):
        instances = []
        for number in range(30):
            instances.append(profiles())
            instances[-1]["resourceProfiles"][0]["resource"]["attributes"].append(attribute("service.instance.id", f"i{number}"))
        self.write("p.jsonl", json_lines(*instances))
        text = self.answer("stats", "p.jsonl")
        self.assertIn("\n30 producers, ", text)
        self.assertIn("\n  shop, instance i19: 1 profile\n  and 10 more\n", text)

    def test_one_producer_is_not_named(self):
        self.write("p.jsonl", json_lines(profiles(), profiles()))
        self.assertNotIn("producer", self.answer("stats", "p.jsonl"))


class NoSpans(ToolTest):
    def test_a_prefix_whose_spans_never_ended_is_not_told_to_give_a_file(self):
        self.write("shop.profiles.jsonl", json_lines(profiles()))
        self.write("shop.traces.jsonl", b"")
        error = self.refuse(2, "spans", "shop", says=("no span that has ended", "spanprof_span_end", "`spanprof flame shop`"))
        self.assertNotIn(".traces file", error)
        self.refuse(2, "spans", "shop.profiles.jsonl", says="give the .traces file too")

    def test_a_program_that_was_killed_or_still_runs_is_a_cause(self):
        self.write("shop.profiles.jsonl", json_lines(profiles()))
        self.write("shop.traces.jsonl", b"")
        says = ("was killed, or still runs, before its spans ended", "or the sampler dropped all its spans (OTEL_TRACES_SAMPLER)", "end the program by exit or spanprof_stop, not by a signal that kills it")
        for command in (("spans", "shop"), ("spans", "shop", "--holders"), ("spans", "shop.profiles.jsonl")):
            self.refuse(2, *command, says=says)
        for question in (("--name", "GET /"), ("--where", "duration > 1s")):
            self.refuse(1, "flame", "shop", *question, says=says)


class Unseen(ToolTest):
    """Spans that no sample fell into: their time is not 0, it is not known."""

    def test_a_span_without_sample_has_a_bound(self):
        self.write("t.jsonl", json_lines(traces()))
        self.write("p.jsonl", json_lines(profiles([(("main",), REPORT_TRACE, RENDER, 2)], period=100_000_000)))
        line = next(l for l in self.answer("spans", "t.jsonl", "p.jsonl").splitlines() if l.endswith("query"))
        self.assertRegex(line, r" 40\.0 ms   <100 ms   <100 ms        0 ")
        self.assertIn("\n<100 ms: no sample, ", self.answer("spans", "t.jsonl", "p.jsonl", "--trace", REPORT_TRACE))
        self.assertRegex(self.answer("spans", "t.jsonl", "p.jsonl", "--by-name"), r"(?m)  <100 ms +<100 ms +<100 ms +<100 ms +<100 ms  query$")
        self.assertIn("cpu <100 ms, own <100 ms, samples 0,", self.answer("spans", "t.jsonl", "p.jsonl", "--name", "query", "--name", "compress"))

    def test_json_has_the_period(self):
        self.write_shop()
        for more in ([], ["--by-name"]):
            self.assertEqual(self.answer_json("spans", "shop", "--json", *more)["period"], 10_000_000)

    def test_files_without_samples_have_no_cpu_time(self):
        self.write("t.jsonl", json_lines(traces()))
        self.assertRegex(self.answer("spans", "t.jsonl", "--trace", REPORT_TRACE), r"  250 ms +- +0 +- +0 ")
        self.assertNotIn(" 0 ns", self.answer("spans", "t.jsonl", "--by-name"))


KIB = 1024
ALLOCATED = [(("main", "serve", "report"), REPORT_TRACE, REPORT, 1024 * KIB), (("main", "serve", "query"), REPORT_TRACE, QUERY, 3072 * KIB),
             (("main", "serve", "cart"), CART_TRACE, CART, 512 * KIB), (("main", "cache"), "", "", 512 * KIB)]


class Allocations(ToolTest):
    """The column of allocated bytes, which is there when the files have samples of them."""

    def write_files(self, samples=ALLOCATED, cpu=SAMPLES, kind="alloc_space"):
        d = Dictionary()
        made = [profile(d, samples, 512 * KIB, (kind, "bytes", "space", "bytes"), {})]
        made += [profile(d, cpu, 10 * MS, ("samples", "count", "cpu", "nanoseconds"), COUNTS)] if cpu else []
        self.write("shop.traces.jsonl", json_lines(traces()))
        self.write("shop.profiles.jsonl", json_lines(request(d, *made)))

    def order(self, *arguments):
        return [s["name"] for s in self.answer_json("spans", "shop", "--json", *arguments)["spans"]]

    def test_a_table_has_what_a_span_and_its_descendants_allocated(self):
        self.write_files()
        lines = self.answer("spans", "shop").splitlines()
        self.assertEqual(lines[0].split(), "duration cpu own alloc samples status trace id span id name".split())
        self.assertEqual([re.split("  +", line.strip())[3] for line in lines[1:6]], ["4.00 MiB", "<512 KiB", "512 KiB", "3.00 MiB", "<512 KiB"])
        self.assertIn("<512 KiB: no sample, so probably less than the bytes that one stands for\n", self.answer("spans", "shop"))
        self.assertIn("alloc <512 KiB, ", self.answer("spans", "shop", "--name", "render", "--name", "compress"))

    def test_sort_by_allocated_bytes(self):
        self.write_files()
        self.assertEqual(self.order("--sort", "alloc"), ["GET /report", "query", "GET /cart", "render", "compress"])
        self.assertEqual(self.on_terminal("spans", "shop", "--sort", "alloc", "--limit", "2", columns=160)[2].split()[-1], "/report")

    def test_a_tree_has_them_too(self):
        self.write_files()
        lines = self.answer("spans", "shop", "--trace", REPORT_TRACE).splitlines()
        self.assertIn("alloc", lines[2].split())
        self.assertIn(" 4.00 MiB  " + REPORT, lines[3])
        self.assertIn(" 3.00 MiB  " + QUERY, lines[4])

    def test_json_has_bytes_where_there_are_samples(self):
        self.write_files()
        found = {s["name"]: s["alloc_bytes"] for s in self.answer_json("spans", "shop", "--json")["spans"]}
        self.assertEqual(found, {"GET /report": 4096 * KIB, "query": 3072 * KIB, "GET /cart": 512 * KIB, "render": 0, "compress": 0})
        self.write_shop()
        self.assertNotIn("alloc_bytes", self.answer("spans", "shop", "--json"))
        self.assertNotIn("alloc", self.answer("spans", "shop"))

    def test_a_narrow_terminal_leaves_it_out(self):
        self.write_files()
        for columns in (80, 160):
            for more in ([], ["--trace", REPORT_TRACE]):
                lines = self.on_terminal("spans", "shop", *more, columns=columns)
                self.assertTrue(all(len(line) <= columns for line in lines if ":" not in line), lines)
        self.assertIn("alloc", self.on_terminal("spans", "shop", columns=80)[0])

    def test_a_narrow_terminal_keeps_the_column_by_which_lines_are_sorted(self):
        self.write_files()
        self.write("wall.jsonl", json_lines(wall_profiles()))
        files = ("spans", "shop", "wall.jsonl")
        self.assertEqual(self.on_terminal(*files, columns=80)[0].split(), "duration cpu wall went to span id name".split())
        lines = self.on_terminal(*files, "--sort", "alloc", columns=80)
        self.assertEqual(lines[0].split(), "duration cpu wall alloc span id name".split())
        self.assertTrue(all(len(line) <= 80 for line in lines[:6]), lines)
        self.assertNotIn("tenths", "".join(lines))

    def test_of_spans_below_a_root_nothing_is_known_when_samples_link_to_roots(self):
        self.write_files(to_roots(ALLOCATED), to_roots(SAMPLES))
        found = {s["name"]: s["alloc_bytes"] for s in self.answer_json("spans", "shop", "--json")["spans"]}
        self.assertEqual(found, {"GET /report": 4096 * KIB, "query": None, "GET /cart": 512 * KIB, "render": None, "compress": None})
        self.assertIn("link scope", self.answer("spans", "shop"))

    def test_it_is_one_column_when_nothing_else_was_measured(self):
        self.write_files(cpu=None)
        self.assertNotIn("alloc", self.answer("spans", "shop").splitlines()[0].split())
        self.assertIn("alloc_sp", self.answer("spans", "shop").splitlines()[0].split())
        self.assertEqual(self.order("--sort", "alloc"), ["GET /report", "query", "GET /cart", "render", "compress"])

    def test_bytes_by_innermost_span_are_taken_where_the_files_have_both(self):
        self.write_files(kind="alloc_space_innermost")
        self.assertEqual(self.order("--sort", "alloc", "--limit", "2"), ["GET /report", "query"])

    def test_names_have_the_sum_of_what_their_spans_allocated(self):
        self.write_files()
        lines = self.answer("spans", "shop", "--by-name", "--sort", "alloc").splitlines()
        self.assertEqual(lines[1].split()[-3:], ["total", "alloc", "name"])
        self.assertEqual([re.split("  +", line.strip())[-2:] for line in lines[2:7]],
                         [["4.00 MiB", "GET /report"], ["3.00 MiB", "query"], ["512 KiB", "GET /cart"], ["<512 KiB", "compress"], ["<512 KiB", "render"]])
        groups = self.answer_json("spans", "shop", "--by-name", "--sort", "alloc", "--json")["groups"]
        self.assertEqual([group["alloc_bytes"] for group in groups], [4096 * KIB, 3072 * KIB, 512 * KIB, 0, 0])
        self.write_shop()
        self.assertNotIn("alloc", self.answer("spans", "shop", "--by-name") + self.answer("spans", "shop", "--by-name", "--json"))
        self.refuse(1, "spans", "shop", "--by-name", "--sort", "alloc", says="no samples of allocations")

    def test_a_narrow_terminal_has_the_sum_by_which_names_are_sorted(self):
        self.write_files()
        for key, head, left in (("cpu", "total", "p95, alloc and max"), ("alloc", "alloc", "p95, the total and max")):
            lines = self.on_terminal("spans", "shop", "--by-name", "--sort", key, columns=80)
            self.assertTrue(all(len(line) <= 80 for line in lines if ":" not in line), lines)
            self.assertEqual((lines[1].split()[-2], lines[-1][:len(left)]), (head, left))

    def write_blocks(self, cpu=SAMPLES):
        """/report: 4 sampled blocks of 64 MiB, which are certain. query: 9 samples of small blocks, of 512 KiB each, ± 3 of them."""
        d = Dictionary()
        rows = [(("main", "report"), REPORT_TRACE, REPORT, 4 * 65536 * KIB, 4), (("main", "query"), REPORT_TRACE, QUERY, 9 * 512 * KIB, 9 * 512 * KIB // 16),
                (("main", "cart"), CART_TRACE, CART, 65536 * KIB, 1)]
        made = [profile(d, [row[:3] + (row[number],) for row in rows], 512 * KIB, (kind, unit, "space", "bytes"), {})
                for number, kind, unit in ((3, "alloc_space", "bytes"), (4, "alloc_objects", "count"))]
        made += [profile(d, cpu, 10 * MS, ("samples", "count", "cpu", "nanoseconds"), COUNTS)] if cpu else []
        self.write("shop.traces.jsonl", json_lines(traces()))
        self.write("shop.profiles.jsonl", json_lines(request(d, *made)))

    def test_values_have_their_standard_error(self):
        for cpu in (SAMPLES, None):
            self.write_blocks(cpu)
            lines = self.answer("spans", "shop", "--sort", "alloc").splitlines()
            column = 3 if cpu else 2
            self.assertEqual([re.split("  +", line.strip())[column] for line in lines[1:6]],
                             ["260 MiB ± 1.50 MiB", "64.0 MiB", "4.50 MiB ± 1.50 MiB", "<512 KiB", "<512 KiB"])
            self.assertEqual(lines[0].split().count("alloc") + lines[0].split().count("alloc_sp"), 1)
            self.assertIn("260 MiB ± 1.50 MiB  " + REPORT, self.answer("spans", "shop", "--trace", REPORT_TRACE))
            self.assertIn("260 MiB +- 1.50 MiB  " + REPORT, self.answer("spans", "shop", "--trace", REPORT_TRACE, locale="C"))
            self.assertRegex(self.answer("spans", "shop", "--by-name"), r"4.50 MiB ± 1.50 MiB  query\n")
            self.assertIn("alloc <512 KiB, ", self.answer("spans", "shop", "--name", "render", "--name", "compress"))
            for more in ([], ["--by-name"]):
                rows = self.answer_json("spans", "shop", "--json", *more)["groups" if more else "spans"]
                self.assertEqual({row["name"]: row["alloc_error"] for row in rows},
                                 {"GET /report": 1536 * KIB, "query": 1536 * KIB, "GET /cart": 0, "render": 512 * KIB, "compress": 512 * KIB})

    def test_a_narrow_terminal_has_values_without_errors(self):
        self.write_blocks()
        self.assertIn("±", "".join(self.on_terminal("spans", "shop", "--sort", "alloc", columns=160)))
        for more in ([], ["--by-name"], ["--trace", REPORT_TRACE]):
            lines = self.on_terminal("spans", "shop", "--sort", "alloc", *more, columns=80)
            self.assertTrue(all(len(line) <= 80 for line in lines if ":" not in line), lines)
            self.assertIn("260 MiB", "".join(lines))
            self.assertNotIn("±", "".join(lines))

    def test_without_objects_the_error_is_not_known(self):
        self.write_files()
        self.assertNotIn("±", self.answer("spans", "shop"))
        self.assertEqual({s["alloc_error"] for s in self.answer_json("spans", "shop", "--json")["spans"]}, {None})

    def test_without_samples_of_allocations_it_is_told_how_to_record_them(self):
        self.write_shop()
        self.refuse(1, "spans", "shop", "--sort", "alloc", says=("--sort alloc", "no samples of allocations", "SPANPROF_PROFILES=cpu,alloc", "LD_PRELOAD"))


class Unattributed(ToolTest):
    def test_below_the_table_much_time_without_samples_is_named(self):
        self.write_shop()
        for linked, said in ((34, True), (3400, False)):
            counts = {"spanprof.unattributed_ns": 522_000_000, "spanprof.samples.linked": linked}
            self.write("shop.profiles.jsonl", json_lines(profiles(SAMPLES[:2], attributes=counts)))
            for more in ((), ("--trace", REPORT_TRACE), ("--by-name",)):
                self.assertEqual("522 ms of CPU time is in no sample (unattributed), so spans may have used more" in self.answer("spans", "shop", *more), said, more)


def to_roots(samples):
    """Linked as on the network: to local roots."""
    return [(names, trace, REPORT if trace == REPORT_TRACE else own, *rest) for names, trace, own, *rest in samples]


class RootScope(ToolTest):
    """Samples that are linked to local roots only: of the spans below them nothing is known."""

    SAYS = "\n-: the files' link scope cannot answer: samples are linked to local roots only, "

    def setUp(self):
        super().setUp()
        self.write("r.traces.jsonl", json_lines(traces()))
        self.write("r.profiles.jsonl", json_lines(both_profiles(to_roots(SAMPLES), to_roots(WALL_SAMPLES))))

    def line(self, name, *arguments):
        return next(line for line in self.answer("spans", "r", *arguments).splitlines() if line.split()[-1].endswith(name))

    def test_a_table_has_no_times_of_spans_below_a_root(self):
        self.assertRegex(self.line("render"), r"^  190 ms         -         -         - {20}-  unset")
        self.assertRegex(self.line("report"), r"^  250 ms    250 ms         -    300 ms  c")
        self.assertRegex(self.line("cart"), r"^ 60.0 ms   40.0 ms   40.0 ms   60.0 ms  c")
        text = self.answer("spans", "r")
        self.assertEqual((text.count(self.SAYS), text.count("probably less")), (1, 0))
        self.assertIn("cpu -, own -, samples -, status unset", self.answer("spans", "r", "--name", "query", "--name", "render"))
        self.assertNotIn(self.SAYS, self.answer("spans", "r", "--trace", CART_TRACE))

    def test_a_tree_has_none_either(self):
        self.write("r.profiles.jsonl", json_lines(profiles(to_roots(SAMPLES))))
        text = self.answer("spans", "r", "--trace", REPORT_TRACE)
        self.assertRegex(text, r"(?m)^ 40\.0 ms         -      -         -      -  \S+  ")
        self.assertRegex(text, r"(?m)^  250 ms    250 ms     25         -      -  \S+  ")
        self.assertIn(self.SAYS, text)
        self.assertIn("░ the rest or not known\n", text)

    def test_children_too_short_for_a_sample_are_not_called_unknown(self):
        """Links may be to innermost spans, although no child has a sample."""
        made = [span(CART_TRACE, f"{2 * n:016x}", "GET /t", 100 * n, 50) for n in range(1, 11)]
        inner = [span(CART_TRACE, f"{2 * n + 1:016x}", "check", 100 * n, 0, f"{2 * n:016x}") for n in range(1, 11)]
        self.write("r.traces.jsonl", json_lines(traces(made + inner)))
        self.write("r.profiles.jsonl", json_lines(profiles([(("main",), CART_TRACE, f"{2 * n:016x}", 5) for n in range(1, 11)])))
        text = self.answer("spans", "r")
        self.assertNotIn(self.SAYS, text)
        self.assertEqual(text.count("50.0 ms   50.0 ms   50.0 ms        5"), 10)

    def test_profiles_say_what_their_links_lead_to(self):
        """A child that waits has no samples, whatever the scope is."""
        for scope, known in (("innermost", True), ("root", False), ("none", True), ("", False)):
            self.write("r.profiles.jsonl", json_lines(profiles(to_roots(SAMPLES), attributes={**COUNTS, "spanprof.link_scope": scope})))
            self.assertEqual(self.SAYS in self.answer("spans", "r"), not known, scope)
            found = {each["name"]: each["total_count"] for each in self.answer_json("spans", "r", "--json")["spans"]}
            self.assertEqual((found["render"], found["GET /report"]), (0 if known else None, 25))
        few = [(("main",), REPORT_TRACE, REPORT, 1)]
        for scope, known in (("root", False), ("", True)):
            self.write("r.profiles.jsonl", json_lines(profiles(few, attributes={"spanprof.link_scope": scope})))
            self.assertEqual(self.SAYS in self.answer("spans", "r"), not known, scope)

    def test_names_have_none_either(self):
        text = self.answer("spans", "r", "--by-name")
        self.assertRegex(text, r"(?m) -  +-  +-  +-  +render$")
        self.assertIn(self.SAYS, text)
        groups = {group["name"]: group for group in self.answer_json("spans", "r", "--by-name", "--json")["groups"]}
        self.assertEqual((groups["render"]["value"], groups["render"]["samples"], groups["GET /report"]["value"]["sum"]), (None, None, 250 * MS))

    def test_json_has_null(self):
        spans = {one["name"]: one for one in self.answer_json("spans", "r", "--json")["spans"]}
        values = lambda name: [spans[name][key] for key in ("own_value", "own_count", "total_value", "total_count")]
        self.assertEqual((values("render"), spans["render"]["wall"]), ([None] * 4, None))
        self.assertEqual(values("GET /report"), [None, None, 250 * MS, 25])
        self.assertEqual(values("GET /cart"), [40 * MS, 4, 40 * MS, 4])

    def test_one_link_to_an_inner_span_shows_the_scope(self):
        for cpu, wall in ((SAMPLES, to_roots(WALL_SAMPLES)), (to_roots(SAMPLES), WALL_SAMPLES)):
            self.write("r.profiles.jsonl", json_lines(both_profiles(cpu, wall)))
            self.assertNotIn(self.SAYS, self.answer("spans", "r"))
        self.write("r.profiles.jsonl", json_lines(profiles([SAMPLES[3]])))  # a root without spans below it
        self.assertNotIn(self.SAYS, self.answer("spans", "r"))


class Unattached(ToolTest):
    """Samples without spans, beside spans that were not attached."""

    def setUp(self):
        super().setUp()
        self.write("u.traces.jsonl", json_lines(traces()))

    def record(self, *samples):
        self.write("u.profiles.jsonl", json_lines(both_profiles(samples, [(("main", "poll"), "", "", 1000 * MS, "other")])))
        result = self.run_tool("spans", "u")
        self.assertEqual(result.returncode, 0)
        return result.stdout.decode(), result.stderr.decode()

    def test_no_time_is_bounded_by_samples_that_no_span_could_have(self):
        text, remark = self.record((("main", "burn"), "", "", 42))
        self.assertNotIn("<", text)
        self.assertIn("cpu -, own -, samples 0", text)
        self.assertIn("none of the 42 samples of cpu was taken while a span was active", remark)
        self.assertIn("spanprof_span_attach", remark)
        json_answer = json.loads(self.run_tool("spans", "u", "--json").stdout)["spans"][0]
        self.assertEqual((json_answer["total_value"], json_answer["wall"]), (None, None))

    def test_hardly_a_sample_is_like_none(self):
        text, remark = self.record((("main", "burn"), "", "", 200), (("main", "cart"), CART_TRACE, CART, 2))
        self.assertRegex(text, r"20\.0 ms.*GET /cart")
        self.assertIn("hardly one of the 202 samples of cpu was taken", remark)
        self.assertNotIn("probably less", text)

    def test_some_samples_are_not_remarked(self):
        for samples in (((("main", "burn"), "", "", 90), (("main", "cart"), CART_TRACE, CART, 10)), ((("main", "burn"), "", "", 3),)):
            text, remark = self.record(*samples)
            self.assertEqual(remark, "")
            self.assertIn("probably less", text)


class StatsExplained(ToolTest):
    """`spanprof stats --explain`: below each line a text that says what it means."""

    SOURCE = pathlib.Path(__file__).parents[3] / "src" / "profile" / "build_numbers.c"

    def explain(self, *files):
        """The lines of the answer, and those of them that no text follows: each text is there once."""
        lines = self.answer("stats", *files, "--explain").splitlines()
        self.assertEqual([line for line in lines if not line.startswith("    # ")], self.answer("stats", *files).splitlines())
        self.assertLessEqual(max(len(line) for line in lines if line.startswith("    # ")), 80)
        following = dict(zip(lines, lines[1:] + [""]))
        return "\n".join(lines), {line for line, after in following.items() if line and line[:5] != "    #" and after[:6] != "    # "}

    def test_each_count_that_the_recorder_writes_is_explained(self):
        keys = re.findall(r'"(spanprof\.(?:samples|wall|stacks|dropped|misuse|unattributed_ns|steal_ns)[a-z_.]*)"', self.SOURCE.read_text())
        self.assertGreater(len(keys), 25)
        counts = {key: 5 for key in keys} | {"spanprof.engine": "timer", "spanprof.steal_ns": 7, "spanprof.samples.folded": 3,
                                             "spanprof.unattributed_ns.threads": [{"thread.name": "w", "thread.id": 7, "unattributed_ns": 9}]}
        self.write("cpu.jsonl", json_lines(profiles(attributes=counts), profiles(service="billing", attributes={})))
        self.write("wall.jsonl", json_lines(wall_profiles(attributes=counts)))
        for name in ("cpu.jsonl", "wall.jsonl"):
            text, bare = self.explain(name)
            # Only lines of one text: a producer's, and the second kind of descriptor.
            self.assertEqual({line for line in bare if not re.search(r": \d+ profiles?$|  (file|device)$", line)}, set(), text)
            self.assertNotIn("does not know", text)

    def test_a_text_is_told_once(self):
        self.write("both.jsonl", json_lines(both_profiles()))
        text = self.explain("both.jsonl")[0]
        self.assertEqual(text.count("Samples that belong to a span"), 1)

    def test_a_word_of_a_later_version_is_told_to_be_one(self):
        self.write("p.jsonl", json_lines(profiles(attributes={"spanprof.dropped.moon": 1})))
        self.assertIn("  dropped: moon 1\n    # A loss that this version of the command does not know.", self.explain("p.jsonl")[0])

    def test_what_wrong_calls_change_is_explained(self):
        self.write("p.jsonl", json_lines(profiles(attributes={**COUNTS, "spanprof.misuse.ended_parent": 3, "spanprof.misuse.dead_span": 2})))
        text = " ".join(self.answer("stats", "p.jsonl", "--explain").replace("#", " ").split())
        self.assertNotIn("They change nothing", text)
        self.assertIn("Some give samples the wrong span or none.", text)
        self.assertIn("Later work counts for that span, which is wrong.", text)
        self.assertIn("Such a call does nothing. End each span once", text)

    def test_a_file_of_the_time_recorder_is_explained(self):
        text = (pathlib.Path(__file__).parents[2] / "golden" / "switches.hex").read_text()
        self.write("s", bytes.fromhex(re.sub(r"#.*", "", text)))
        self.assertIn("\n    # A file of the time recorder", self.explain("s")[0])

    def test_json_has_no_room_for_it(self):
        self.write_shop()
        self.refuse(2, "stats", "shop", "--json", "--explain", says="leave out one of them")


class Switches(ToolTest):
    """`spanprof stats` of the time recorder's file."""

    def setUp(self):
        super().setUp()
        text = (pathlib.Path(__file__).parents[2] / "golden" / "switches.hex").read_text()
        self.golden = bytes.fromhex(re.sub(r"#.*", "", text))
        self.header = self.golden[:64]

    def block(self, *words, slot=0):
        return struct.pack("<IIQ", 1, 8 * len(words), slot) + struct.pack(f"<{len(words)}Q", *words)

    def test_text(self):
        self.write("s", self.golden)
        self.assertIn("s: switches of process 4242: 1 thread, 8 switches of 3 contexts", self.answer("stats", "s"))

    def test_good_blocks_before_a_bad_one_are_told(self):
        self.write("good", self.golden)
        whole = self.answer_json("stats", "good", "--json")
        self.assertEqual((whole["threads"], whole["switches"], whole["damaged"]), (1, 8, False))
        # Of the bad block nothing counts, be it well at its beginning: a thread that begins, and context 9, which was never defined.
        self.write("bad", self.golden + self.block(1, 5 << 40, 1, 0, 0, 2, 2 | 9 << 4, slot=1) + self.golden[64:])
        result = self.run_tool("stats", "bad", "--json")
        error = result.stderr.decode()
        self.assertEqual(result.returncode, 0, error)
        self.assertRegex(error, r"\Aspanprof: [^\n]*bad: byte %d: a context number was never defined: [^\n]+\n\Z" % len(self.golden))
        self.assertEqual(json.loads(result.stdout), {**whole, "file": "bad", "damaged": True})

    def test_no_good_block_is_an_error(self):
        self.write("bad", self.header + self.block(0))
        self.refuse(2, "stats", "bad", says=("byte 64", "no kind"))
        self.write("bad", b"SPSWITCH" + bytes(100))
        self.refuse(2, "stats", "bad", says="version")


class Groups(ToolTest):
    def setUp(self):
        super().setUp()
        spans = [span(f"{n:032x}", f"{n:016x}", "GET /cart", n, n, status={"code": 2} if n % 10 == 0 else {}) for n in range(1, 101)]
        spans.append(span(f"{200:032x}", f"{200:016x}", "a\x1b[1mb", 1, 10_000, kind=2))
        self.write("t.traces.jsonl", json_lines(traces(spans)))
        self.write("t.profiles.jsonl", json_lines(profiles([(("main",), f"{n:032x}", f"{n:016x}", n % 4) for n in range(1, 101)])))

    def test_a_line_for_each_name_the_largest_sum_first(self):
        lines = self.answer("spans", "t", "--group-by", "name", columns=140).splitlines()
        self.assertEqual(lines[0].split(), ["duration", "cpu"])
        self.assertEqual(lines[1].split(), "spans errors p50 p95 p99 max p50 p95 p99 max total name".split())
        self.assertEqual(lines[2].split(), "1 0 10.0 s 10.0 s 10.0 s 10.0 s <10.0 ms <10.0 ms <10.0 ms <10.0 ms <10.0 ms a\\x1b[1mb".split())
        self.assertEqual(lines[3].split(), "100 10 50.0 ms 95.0 ms 99.0 ms 100 ms 10.0 ms 30.0 ms 30.0 ms 30.0 ms 1.50 s GET /cart".split())
        self.assertEqual(lines[4], "<10.0 ms: no sample, so probably less than the time that one stands for")

    def test_json(self):
        answer = self.answer_json("spans", "t", "--group-by", "name", "--json")
        self.assertEqual((answer["type"], answer["unit"], answer["count"]), ("cpu", "nanoseconds", 2))
        cart = answer["groups"][1]
        self.assertEqual((cart["name"], cart["count"], cart["errors"], cart["samples"]), ("GET /cart", 100, 10, 150))
        self.assertEqual(cart["duration_ns"], {"p50": 50 * MS, "p95": 95 * MS, "p99": 99 * MS, "max": 100 * MS, "sum": 5050 * MS})
        self.assertEqual(cart["value"]["sum"], 1500 * MS)

    def test_only_selected_spans_count(self):
        answer = self.answer_json("spans", "t", "--group-by", "name", "--json", "--where", "duration <= 3ms")
        self.assertEqual([(group["name"], group["count"], group["duration_ns"]["p50"]) for group in answer["groups"]],
                         [("GET /cart", 3, 2 * MS)])
        self.assertIn("… 1 more name (--limit 0 shows all)\n", self.answer("spans", "t", "--group-by", "name", "--limit", "1"))
        self.refuse(1, "spans", "t", "--group-by", "name", "--where", "false", says="no span matches")

    def test_a_terminal_of_80_columns_has_all_that_fits_there(self):
        name = "GET /" + "a" * 100
        self.write("long", json_lines(traces([span(f"{1:032x}", f"{1:016x}", name, 1, 2)])))
        self.assertIn(name + "\n", self.answer("spans", "long", "--by-name"))
        for columns in (80, 120):
            lines = self.on_terminal("spans", "long", "--by-name", columns=columns)
            self.assertTrue(all(len(line) <= columns for line in lines), lines)
            self.assertIn(" GET /aaa", lines[2])
        self.assertIn("max", lines[1])
        lines = self.on_terminal("spans", "long", "--by-name", columns=80)
        self.assertEqual(lines[1].split(), "spans errors p50 p99 p50 p99 total name".split())
        self.assertIn("p95 and max", lines[-1])

    def test_by_name_is_the_same_in_short(self):
        self.assertEqual(self.answer("spans", "t", "--by-name"), self.answer("spans", "t", "--group-by", "name"))

    def order(self, *arguments):
        return [(group["name"], group["total_value"]) for group in self.answer_json("spans", *arguments, "--by-name", "--json")["groups"]]

    def test_names_are_sorted_by_the_sum_of_their_cpu_time(self):
        self.assertEqual(self.order("t", "--sort", "cpu"), [("GET /cart", 1500 * MS), ("a\x1b[1mb", 0)])
        self.assertEqual(self.order("t", "--sort", "duration"), self.order("t"))
        self.assertEqual(self.on_terminal("spans", "t", "--by-name", "--sort", "cpu", columns=140)[3].split()[-1], "/cart")

    def test_a_span_below_one_of_its_name_is_in_the_total_once(self):
        ids = [f"{n:016x}" for n in range(1, 6)]
        tree = [("walk", ""), ("visit", ids[0]), ("walk", ids[1]), ("walk", ids[1]), ("visit", ids[3])]
        self.write("n.traces.jsonl", json_lines(traces([span(REPORT_TRACE, own, name, n, 50, parent) for n, (own, (name, parent)) in enumerate(zip(ids, tree))])))
        self.write("n.profiles.jsonl", json_lines(profiles([(("main",), REPORT_TRACE, own, 10 ** n) for n, own in enumerate(ids)], period=1)))
        self.assertEqual(dict(self.order("n")), {"walk": 11111, "visit": 11110})
        self.assertEqual(dict(self.order("n", "--where", f'span:id != "{ids[0]}"')), {"walk": 11100, "visit": 11110})
        self.assertEqual(dict(self.order("n", "--span", ids[3])), {"walk": 11000, "visit": 10000})

    def test_without_cpu_time_sorting_by_it_is_refused(self):
        says = ("--sort cpu", "no samples of CPU time", "SPANPROF_PROFILES=cpu")
        for more in ([], ["--by-name"]):
            self.refuse(1, "spans", "t.traces.jsonl", "--sort", "cpu", *more, says=says)
        self.write("w.profiles.jsonl", json_lines(wall_profiles()))
        self.refuse(1, "spans", "t.traces.jsonl", "w.profiles.jsonl", "--sort", "cpu", "--by-name", says=says)
        self.assertIn(" - ", self.answer("spans", "t.traces.jsonl", "--by-name"))

    def test_the_largest_is_last_on_a_terminal(self):
        self.assertEqual([line.split()[-1] for line in self.on_terminal("spans", "t", "--by-name", columns=140)[2:4]], ["/cart", "a\\x1b[1mb"])

    def test_wrong_calls(self):
        self.refuse(2, "spans", "t", "--group-by", "service", says=("service", "there is name"))
        for key in ("start", "samples", "size"):
            self.refuse(2, "spans", "t", "--group-by", "name", "--sort", key, says=(f"--sort {key}", "duration, cpu, alloc, wall, queue"))



class Missing(ToolTest):
    """Samples of spans that the files do not have."""

    def test_a_span_that_never_ended_is_told(self):
        every = traces()["resourceSpans"][0]["scopeSpans"][0]["spans"]
        self.write("m.traces.jsonl", json_lines(traces([one for one in every if one["spanId"] not in (RENDER, CART)])))
        self.write("m.profiles.jsonl", json_lines(profiles()))
        says = f"spanprof: 2 spans with 240 ms of cpu are not in these files, most of it of span {RENDER} of trace {REPORT_TRACE}: never ended, " \
               "ended after spanprof_stop, of a trace that is not sampled, or in the file of another process\n"
        for arguments in (["spans", "m"], ["spans", "m", "--json"], ["flame", "m", "--name", "query"], ["flame", "m", "--where", 'name = "query"']):
            result = self.run_tool(*arguments)
            self.assertEqual((result.returncode, result.stderr.decode()), (0, says))
        self.assertEqual(self.run_tool("flame", "m").stderr, b"")  # nothing is missing there

    def test_what_a_recording_cuts_off_at_its_end_is_not(self):
        self.write("m.traces.jsonl", json_lines(traces([span(REPORT_TRACE, REPORT, "whole", 0, 5000)])))
        d = Dictionary()
        samples = [(("main",), REPORT_TRACE, REPORT, 490), (("main",), CART_TRACE, CART, 9)]
        self.write("m.profiles.jsonl", json_lines(request(d, profile(d, samples, 10_000_000, ("samples", "count", "cpu", "nanoseconds"), {}))))
        self.answer("spans", "m")


    def test_many_samples_whose_span_is_not_certain_are_told(self):
        for unknown, says in ((15, "spanprof: 33 % of the samples of cpu have no span because it was not certain, so spans may have taken more than they have here; "
                                   "`spanprof stats` tells which mistakes were seen\n"), (3, ""), (4, "")):
            self.write("m.traces.jsonl", json_lines(traces()))
            self.write("m.profiles.jsonl", json_lines(profiles(attributes={**COUNTS, "spanprof.samples.unknown": unknown})))
            self.assertEqual(self.run_tool("spans", "m").stderr.decode(), says)


    OUTSIDE = {**COUNTS, "spanprof.from_outside": 1}

    def write_attached(self, service="shop", attach=(0, 10_000), **made):
        """A job a second before, during and after an attach of ten seconds, with spans below some of them; and one more process."""
        jobs = {"before": (-2000, 500), "during": (5000, 5), "after": (20_000, 500), "into": (-1000, 1200)}
        spans = [span("12" * 16, f"{i:016x}", name, *time) for i, (name, time) in enumerate(jobs.items(), 1)]
        spans.append(span("12" * 16, "00000000000000b1", "later", 6000, 50, "0000000000000001"))
        attach = traces([span("34" * 16, "00000000000000aa", "shop", attach[0], attach[1] - attach[0])], service=service)
        attach["resourceSpans"][0]["scopeSpans"][0]["scope"]["name"] = "spanprof run --attach"
        self.write("own.traces.jsonl", json_lines(traces(spans), traces([span("56" * 16, "00000000000000c1", "pay", 20_000, 5)], service="billing")))
        self.write("att.traces.jsonl", json_lines(attach))
        samples = [(("main",), "12" * 16, "00000000000000b1", 4), (("main",), "12" * 16, "0000000000000004", 2)]
        self.write("att.profiles.jsonl", json_lines(profiles(samples, service=service, attributes=self.OUTSIDE), *made.values()))

    def counts(self, *files):
        return {s["name"]: (s["own_count"], s["total_count"]) for s in self.answer_json("spans", *files, "--json")["spans"]}

    SEEN = {"before": (None, 4), "later": (4, 4), "during": (0, 0), "into": (2, 2), "after": (None, None), "pay": (None, None)}

    def test_spans_outside_an_attach_are_not_known(self):
        """A window without samples has no profile, so the span of the attach says when it sampled."""
        for service in ("shop", "another name"):
            self.write_attached(service)
            self.assertEqual(self.counts("att", "own.traces.jsonl"), {**self.SEEN, "shop": (0, 0)})
            self.assertEqual(self.counts("att.profiles.jsonl", "own.traces.jsonl"), self.SEEN)
        said = "-: not known: the span lies outside the time in which `run --attach` sampled its process\n"
        text = self.answer("spans", "att", "own.traces.jsonl")
        self.assertIn(said, text)
        self.assertNotIn("link scope", text)
        self.assertIn(said, self.answer("spans", "att", "own.traces.jsonl", "--trace", "12" * 16))
        self.refuse(1, "flame", "att", "own.traces.jsonl", "--span", "0000000000000003", says=("after", "outside the time", "is not known"))
        self.assertIn("2 spans of these lie outside the time in which `run --attach` sampled the process: what they took is not known (-)",
                      self.answer("spans", "att", "own.traces.jsonl", "--by-name"))

    def test_spans_outside_an_attach_that_the_sdk_sampled_are_known(self):
        self.write_attached(sdk=profiles([(("main",), "12" * 16, "00000000000000b1", 1)]))
        self.assertEqual(self.counts("att", "own.traces.jsonl")["after"], (0, 0))
        self.assertEqual(self.counts("att", "own.traces.jsonl")["pay"], (None, None))

    def test_profiles_from_outside_do_not_blame_the_program(self):
        every = traces()["resourceSpans"][0]["scopeSpans"][0]["spans"]
        self.write("m.traces.jsonl", json_lines(traces([one for one in every if one["spanId"] not in (RENDER, CART)])))
        self.write("m.profiles.jsonl", json_lines(profiles(attributes={**COUNTS, "spanprof.samples.unknown": 15, "spanprof.from_outside": 1})))
        missing, unknown = self.run_tool("spans", "m").stderr.decode().splitlines()
        self.assertIn(": the program was sampled from outside, so give its own traces, too; else never ended", missing)
        self.assertTrue(unknown.endswith("; a look from outside comes after the tick, and the thread had gone on"), unknown)
        text = " ".join(self.answer("stats", "m", "--explain").replace("#", "").split())
        self.assertIn("looks after the tick, and the thread had gone on", text)
        self.assertNotIn("spanprof_fiber_switch", text)


class TwoSamplers(ToolTest):
    """One process that is sampled twice at the same time."""

    def told(self, *files):
        """Write files of (name, instance, first second, seconds) and return what is said of them."""
        for name, instance, first_s, seconds in files:
            made = profiles()
            made["resourceProfiles"][0]["resource"]["attributes"].append(attribute("service.instance.id", instance))
            written = made["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]
            written.update(timeUnixNano=str(START + first_s * 1_000_000_000), durationNano=str(seconds * 1_000_000_000), profileId=f"{len(name):032x}")
            self.write(name, json_lines(made))
        result = self.run_tool("flame", *[name for name, *_ in files])
        self.assertEqual(result.returncode, 0)
        return result.stderr.decode()

    def test_it_is_told(self):
        self.assertRegex(self.told(("a.jsonl", "i", 0, 10), ("at.jsonl", "i", 3, 2)), r"\Aspanprof: a.jsonl and at.jsonl sampled one process at the same time, [^\n]*\n\Z")

    def test_what_is_not_is_not(self):
        self.assertEqual(self.told(("a.jsonl", "i", 0, 10), ("at.jsonl", "j", 3, 2)), "")  # two processes
        self.assertEqual(self.told(("a.jsonl", "i", 0, 10), ("at.jsonl", "i", 10, 10)), "")  # one after the other
        self.assertEqual(self.told(("a.jsonl", "i", 0, 10), ("at.jsonl", "i", 0, 10)), "")  # parts of one window


class TwoRuns(ToolTest):
    def test_traces_and_profiles_of_two_runs_are_told(self):
        self.write("t.jsonl", json_lines(traces([span("f" * 32, "f" * 16, "other run", 1, 2)])))
        self.write("p.jsonl", json_lines(profiles()))
        for command in ("spans", "stats"):
            result = self.run_tool(command, "t.jsonl", "p.jsonl")
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr.decode(), r"\Aspanprof: none of the 4 spans that samples belong to .* two runs, or [^\n]*\n\Z")
        for name in ("t.jsonl", "p.jsonl"):
            self.assertEqual(self.run_tool("stats", name).returncode, 0)

    def test_samples_of_another_run_do_not_bound_the_time_of_spans(self):
        self.write("t.jsonl", json_lines(traces([span("f" * 32, "f" * 16, "other run", 1, 2), span("f" * 32, "e" * 16, "below", 1, 1, "f" * 16)])))
        self.write("p.jsonl", json_lines(both_profiles()))
        for more in ([], ["--limit", "1"], ["--trace", "f" * 32], ["--by-name"]):
            result = self.run_tool("spans", "t.jsonl", "p.jsonl", *more)
            text = result.stdout.decode()
            self.assertEqual(result.returncode, 1)
            self.assertTrue("other run" in text and "<" not in text, text)
        self.assertIn("CPU time is not known: the samples are of none of these spans\n", self.run_tool("spans", "t.jsonl", "p.jsonl").stdout.decode())


if __name__ == "__main__":
    unittest.main()
