#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Allocations and live blocks in the commands: snapshots are not added up, and --outlived keeps what ended requests still hold."""
import math
from random import Random

from otlp import *

KIB = 1024
PERIOD = 512 * KIB
ALLOC = ("alloc_space", "bytes", "space", "bytes")
OBJECTS = ("alloc_objects", "count", "space", "bytes")
INUSE = ("inuse_space", "bytes", "space", "bytes")
INUSE_OBJECTS = ("inuse_objects", "count", "space", "bytes")
COUNTED = {"spanprof.samples.linked": 30, "spanprof.samples.none": 0, "spanprof.samples.unknown": 0, "spanprof.samples.boundary": 0,
           "spanprof.stacks.complete": 30}
DROPPED = COUNTED | {"spanprof.dropped.calls": 2}


def live(d, start_s, blocks, kind=INUSE):
    """A snapshot. BLOCKS: names, trace, span, value, age, what has ended."""
    made = profile(d, [], PERIOD, kind, COUNTED, start_s)
    for names, trace, own, value, age, ended in blocks:
        attributes = [d.attribute("spanprof.live.age", age)] if age else []
        attributes += [d.attribute("spanprof.live.outlived", ended)] if ended else []
        made["samples"].append(sample(d, names, trace, own, value) | ({"attributeIndices": attributes} if attributes else {}))
    return made


def snapshots(*windows, service="shop"):
    d = Dictionary()
    return request(d, *[live(d, 10 * number, blocks) for number, blocks in enumerate(windows)], service=service)


FIRST = [(("main", "serve", "report"), REPORT_TRACE, REPORT, 100 * KIB, "0s", ""),
         (("main", "cache"), "", "", 7 * KIB, "0s", "")]
LAST = [(("main", "serve", "report"), REPORT_TRACE, REPORT, 40 * KIB, "10s", "request"),
        (("main", "serve", "query"), REPORT_TRACE, QUERY, 20 * KIB, "10s", "span"),
        (("main", "serve", "cart"), CART_TRACE, CART, 10 * KIB, "0s", ""),
        (("main", "cache"), "", "", 7 * KIB, "1m", "")]


class MemoryTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.write("t.jsonl", json_lines(traces()))
        self.write("live.jsonl", json_lines(snapshots(FIRST, LAST)))
        d = Dictionary()
        samples = [(("main", "serve", "report"), REPORT_TRACE, REPORT, 3000 * KIB), (("main", "cache"), "", "", 1000 * KIB)]
        objects = [(("main", "serve", "report"), REPORT_TRACE, REPORT, 300), (("main", "cache"), "", "", 10)]
        self.write("alloc.jsonl", json_lines(request(d, profile(d, samples, PERIOD, ALLOC, COUNTED),
                                                     profile(d, objects, PERIOD, OBJECTS, COUNTED))))


class Flame(MemoryTest):
    def test_alloc_is_the_space_and_each_type_has_its_name(self):
        self.assertEqual(self.answer("flame", "alloc.jsonl", "--type", "alloc", "--format", "folded"),
                         f"main;cache {1000 * KIB}\nmain;serve;report {3000 * KIB}\n")
        self.assertEqual(self.answer("flame", "alloc.jsonl", "--type", "alloc_objects", "--format", "folded"),
                         "main;cache 10\nmain;serve;report 300\n")
        self.assertEqual(self.answer("flame", "t.jsonl", "alloc.jsonl", "--type", "alloc", "--span", REPORT, "--format", "folded"),
                         f"main;serve;report {3000 * KIB}\n")

    def test_span_is_told_by_inner_links_where_there_are_both(self):
        d = Dictionary()
        both = request(d, profile(d, [(("main", "query"), REPORT_TRACE, REPORT, 9 * KIB)], PERIOD, ALLOC, COUNTED),
                       profile(d, [(("main", "query"), REPORT_TRACE, QUERY, 9 * KIB)], PERIOD,
                               ("alloc_space_innermost", "bytes", "space_innermost", "bytes"), COUNTED))
        self.write("both.jsonl", json_lines(both))
        for span_id in (QUERY, REPORT):
            self.assertEqual(self.answer("flame", "t.jsonl", "both.jsonl", "--type", "alloc", "--span", span_id, "--format", "folded"),
                             f"main;query {9 * KIB}\n")
        self.assertEqual(self.answer("flame", "t.jsonl", "both.jsonl", "--type", "alloc", "--format", "folded"), f"main;query {9 * KIB}\n")

    def test_last_snapshot_holds(self):
        self.assertEqual(self.answer("flame", "live.jsonl", "--type", "inuse", "--format", "folded"),
                         f"main;cache {7 * KIB}\nmain;serve;cart {10 * KIB}\nmain;serve;query {20 * KIB}\nmain;serve;report {40 * KIB}\n")

    def test_last_snapshot_of_each_process_is_added_up(self):
        self.write("other.jsonl", json_lines(snapshots(FIRST, service="other")))
        self.assertIn(f"main;serve;report {140 * KIB}\n",
                      self.answer("flame", "live.jsonl", "other.jsonl", "--type", "inuse_space", "--format", "folded"))

    def test_window_without_live_blocks_ends_what_was_held(self):
        d = Dictionary()
        windows = request(d, live(d, 0, FIRST), profile(d, [(("main", "serve"), "", "", 5)], PERIOD, ALLOC, COUNTED, 10))
        self.write("freed.jsonl", json_lines(windows))
        self.refuse(1, "flame", "freed.jsonl", "--type", "inuse", says="")

    def test_workers_of_one_instance_are_told_apart_by_their_pid(self):
        first, second = snapshots(FIRST), snapshots(FIRST, FIRST)
        for pid, made in ((11, first), (12, second)):
            made["resourceProfiles"][0]["resource"]["attributes"] += [
                attribute("service.instance.id", "pod"), {"key": "process.pid", "value": {"intValue": str(pid)}}]
        self.write("workers.jsonl", json_lines(first, second))
        self.assertIn(f"main;serve;report {200 * KIB}\n", self.answer("flame", "workers.jsonl", "--type", "inuse", "--format", "folded"))

    def test_parts_of_the_last_snapshot_are_added_up(self):
        d = Dictionary()
        parts = request(d, live(d, 10, LAST[:2]), live(d, 10, LAST[2:]), live(d, 0, FIRST))
        self.write("parts.jsonl", json_lines(parts))
        self.assertEqual(self.answer_json("flame", "parts.jsonl", "--type", "inuse", "--format", "json")["total"], 77 * KIB)

    def test_since_is_what_grew(self):
        """By stack and span, of any age; what shrank is left out, and what is new is all growth."""
        grown = [(("main", "serve", "report"), REPORT_TRACE, REPORT, 90 * KIB, "0s", ""), (("main", "serve", "report"), REPORT_TRACE, REPORT, 30 * KIB, "10s", ""),
                 (("main", "cache"), "", "", 6 * KIB, "10s", ""), (("main", "serve", "cart"), CART_TRACE, CART, 5 * KIB, "0s", "")]
        half = [(("main", "serve", "report"), REPORT_TRACE, REPORT, 115 * KIB, "0s", "")]
        self.write("grown.jsonl", json_lines(snapshots(FIRST, half, grown)))
        since = lambda time, *more: self.answer("flame", "t.jsonl", "grown.jsonl", "--since", time, "--format", "folded", *more)
        self.assertEqual(since("first"), f"main;serve;cart {5 * KIB}\nmain;serve;report {20 * KIB}\n")
        self.assertEqual(since("20s"), since("first"))
        self.assertEqual(since("10s"), f"main;cache {6 * KIB}\nmain;serve;cart {5 * KIB}\nmain;serve;report {5 * KIB}\n")
        self.assertEqual(since("first", "--span", CART), f"main;serve;cart {5 * KIB}\n")
        self.assertIn("more than 20.0 s before the last snapshot: 25.0 KiB", self.answer("flame", "grown.jsonl", "--since", "first"))

    def test_a_snapshot_has_the_time_at_which_it_was_taken(self):
        """The program ends 3 s after the last but one, in a short window."""
        d = Dictionary()
        held = lambda start, seconds, kib: {**live(d, start, [(("main", "cache"), "", "", kib * KIB, "0s", "")]), "durationNano": str(seconds * SECOND)}
        self.write("short.jsonl", json_lines(request(d, held(0, 10, 10), held(10, 10, 50), held(20, 3, 50))))
        self.assertIn("more than 13.0 s before the last snapshot: 40.0 KiB", self.answer("flame", "short.jsonl", "--since", "5s"))
        self.assertEqual(self.answer("flame", "short.jsonl", "--since", "10s", "--format", "folded"), f"main;cache {40 * KIB}\n")
        self.refuse(1, "flame", "short.jsonl", "--since", "3s", says="nothing of that kind grew in the 3.00 s before")
        self.write("other.jsonl", json_lines(snapshots(FIRST, FIRST, service="other")))
        self.assertIn("more than 10.0 s to 13.0 s before the last snapshot: ", self.answer("flame", "short.jsonl", "other.jsonl", "--since", "first"))

    def test_since_that_makes_no_sense_is_refused(self):
        self.refuse(2, "flame", "live.jsonl", "--since", "yesterday", says=("yesterday", "30s, 5m, 2h"))
        self.refuse(2, "flame", "live.jsonl", "--since", "first", "--outlived", says="two questions")
        self.refuse(2, "flame", "live.jsonl", "alloc.jsonl", "--type", "alloc", "--since", "first", says="--type inuse")
        self.refuse(1, "flame", "live.jsonl", "--since", "1h", says="so long before the last")
        self.write("once.jsonl", json_lines(snapshots(FIRST)))
        self.refuse(1, "flame", "once.jsonl", "--since", "first", says="several windows")
        self.write("same.jsonl", json_lines(snapshots(FIRST, FIRST)))
        self.refuse(1, "flame", "same.jsonl", "--since", "first", says="nothing of that kind grew")

    def test_outlived_is_what_ended_requests_hold(self):
        for options in (("--type", "inuse"), ("--type", "inuse_space"), ()):
            self.assertEqual(self.answer("flame", "live.jsonl", *options, "--outlived", "--format", "folded"),
                             f"main;serve;report {40 * KIB}\n")
        self.assertIn("held past its request: 40.0 KiB", self.answer("flame", "live.jsonl", "--outlived"))

    def test_json_tells_age_and_what_ended(self):
        stacks = self.answer_json("flame", "live.jsonl", "--type", "inuse", "--format", "json")["stacks"]
        self.assertEqual([(s["age"], s["outlived"]) for s in stacks],
                         [("10s", "request"), ("10s", "span"), ("0s", ""), ("1m", "")])

    def test_outlived_of_something_else_is_refused(self):
        self.refuse(2, "flame", "alloc.jsonl", "--type", "alloc", "--outlived", says=("--outlived", "--type inuse"))

    def test_outlived_without_attributes_says_so(self):
        self.write("network.jsonl", json_lines(snapshots([block[:4] + ("", "") for block in LAST])))
        self.refuse(1, "flame", "network.jsonl", "--outlived", says=("spanprof.live.age", "SPANPROF_EXPORTER=file"))

    def test_outlived_that_is_nothing_says_so(self):
        self.write("young.jsonl", json_lines(snapshots(FIRST)))
        self.refuse(1, "flame", "young.jsonl", "--outlived", says="past its request")

    def test_files_without_allocations_say_so(self):
        self.refuse(1, "flame", "t.jsonl", "live.jsonl", "--type", "alloc", says=("no profile of type alloc", "inuse_space (bytes)", "SPANPROF_PROFILES=cpu,alloc and libspanprof-preload.so in LD_PRELOAD"))


    def test_the_word_of_the_setting_points_to_the_type(self):
        points = "--type heap is unknown: what is still allocated is --type inuse (inuse_space, inuse_objects); the files have: "
        for command in (("flame", "live.jsonl"), ("diff", "live.jsonl", "live.jsonl")):
            self.assertNotIn("record it", self.refuse(2, *command, "--type", "heap", says=points + "inuse_space (bytes)"))
        self.refuse(2, "flame", "alloc.jsonl", "--type", "heap", says=(points + "alloc_space (bytes)", "; record it with SPANPROF_PROFILES=cpu,heap"))


class Blocks(ToolTest):
    def write_blocks(self, *blocks, kinds=(ALLOC, OBJECTS), told=COUNTED):
        """BLOCKS: (stack, how many were sampled, the size of each); what they stand for as the SDK writes it."""
        d, rows = Dictionary(), []
        for names, count, size in blocks:
            chance = 1 - math.exp(-size / PERIOD)
            rows.append((names, round(count * size / chance), round(count / chance)))
        made = [profile(d, [(row[0], CART_TRACE, CART, row[number]) for row in rows], PERIOD, kind, told) for number, kind in enumerate(kinds, 1)]
        self.write("t.jsonl", json_lines(traces()))
        self.write("a.jsonl", json_lines(request(d, *made)))


class Samples(Blocks):
    """How many blocks were sampled, which shares depend on: neither the bytes nor the objects that they stand for."""

    def counts(self, kind):
        return {";".join(reversed(s["frames"])): s["count"] for s in self.answer_json("flame", "a.jsonl", "--type", kind, "--format", "json")["stacks"]}

    def test_blocks_of_any_size_are_counted(self):
        self.write_blocks((("main", "small"), 40, 100), (("main", "middle"), 30, 300 * KIB), (("main", "large"), 2, 64 * 1024 * KIB))
        for kind in ("alloc_space", "alloc_objects"):
            self.assertEqual(self.counts(kind), {"main;small": 40, "main;middle": 30, "main;large": 2})
            self.assertIn(" in 72 samples\n", self.answer("flame", "a.jsonl", "--type", kind))
        self.assertIn("alloc_space: 1 profile, 72 samples, one in 512 KiB\n", self.answer("stats", "a.jsonl"))

    def test_a_share_of_two_blocks_has_no_number_however_many_bytes_they_are(self):
        self.write_blocks((("main", "small"), 40, 100), (("main", "large"), 2, 64 * 1024 * KIB))
        for kind in ("alloc_space", "alloc_objects"):
            text = self.answer("flame", "a.jsonl", "--type", kind, "--min-percent", "0", locale="C")
            self.assertRegex(text, r"(?m)^ +\? +\? .*large$")
            self.assertRegex(text, r"(?m)^ *\d+\.\d%.*small$")
            self.assertRegex(text, r"(?m)^ *100\.0%.*main$")
            shares = {f["name"]: f["total"]["low"] for f in self.answer_json("flame", "a.jsonl", "--type", kind, "--format", "json")["functions"]}
            self.assertEqual([shares[name] is None for name in ("large", "small", "main")], [True, False, False])
            self.assertRegex(self.answer("flame", "a.jsonl", "--type", kind, "--self", "--min-percent", "0"), r"(?m)^ +\? .*large$")

    def test_many_small_blocks_are_few_samples(self):
        self.write_blocks((("main", "small"), 5, 16))
        text = self.answer("flame", "a.jsonl", "--type", "alloc_objects", columns=300)
        self.assertIn(" count in 5 samples\n", text)
        self.assertIn("only 5 samples: too few samples to trust shares; record longer or with a smaller SPANPROF_ALLOC_BYTES\n", text)
        self.assertNotIn("HZ", text)

    def test_where_all_blocks_were_sampled_a_smaller_distance_is_no_advice(self):
        self.write_blocks((("main", "large"), 4, 64 * 1024 * KIB))
        self.assertIn("only 4 samples: too few samples to trust shares; record longer\n", self.answer("flame", "a.jsonl", "--type", "alloc", columns=300))
        self.write_blocks((("main", "large"), 4, 64 * 1024 * KIB), (("main", "small"), 1, 300 * KIB))
        self.assertIn("record longer or with a smaller SPANPROF_ALLOC_BYTES\n", self.answer("flame", "a.jsonl", "--type", "alloc", columns=300))

    def test_where_all_waits_were_sampled_a_smaller_distance_is_no_advice(self):
        d = Dictionary()
        made = [profile(d, [(("main", "lock"), CART_TRACE, CART, value)], 1, (kind, unit, "contentions", "count"), {"spanprof.lock_ns": 100_000})
                for kind, unit, value in (("contentions", "count", 4), ("delay", "nanoseconds", 800 * MS))]
        self.write("l.jsonl", json_lines(request(d, *made)))
        for kind in ("lock", "contentions"):
            self.assertIn("only 4 samples: too few samples to trust shares; record longer\n", self.answer("flame", "l.jsonl", "--type", kind, columns=300))

    def drawn(self, random, size, times):
        """How many of TIMES blocks of SIZE are sampled; of many small ones by the normal distribution."""
        chance = 1 - math.exp(-size / PERIOD)
        if times > 1000:
            return max(1, round(random.gauss(times * chance, math.sqrt(times * chance))))
        return max(1, sum(random.random() < chance for _ in range(times)))

    def intervals(self, kind):
        return {f["name"]: f["total"] for f in self.answer_json("flame", "a.jsonl", "--type", kind, "--format", "json")["functions"]}

    def test_large_blocks_are_almost_certain(self):
        """A block of 64 MiB is always sampled, and one of 1 MiB in 86 of 100 cases."""
        self.write_blocks((("main", "large"), 20, 64 * 1024 * KIB), (("main", "other"), 20, 64 * 1024 * KIB))
        self.assertIn("alloc_space: 2.50 GiB in 40 samples\n", self.answer("flame", "a.jsonl", "--type", "alloc"))
        for kind in ("alloc_space", "inuse_space"):
            self.write_blocks((("main", "large"), 20, 64 * 1024 * KIB), (("main", "other"), 20, 64 * 1024 * KIB),
                              kinds=(ALLOC, OBJECTS) if kind == "alloc_space" else (INUSE, INUSE_OBJECTS))
            share = self.intervals(kind)["large"]
            self.assertLess(share["high"] - share["low"], 0.2)
        self.write_blocks((("main", "large"), 20, 1024 * KIB), (("main", "other"), 20, 1024 * KIB))
        share = self.intervals("alloc_space")["large"]
        self.assertEqual((round(share["low"]), round(share["high"])), (44, 56))
        self.assertIn("alloc_space: 46.3 MiB ± 2.69 MiB in 40 samples\n", self.answer("flame", "a.jsonl", "--type", "alloc"))

    def test_small_blocks_have_the_error_of_their_own(self):
        """5 samples of 16 bytes stand for 163,840 objects. That 1,000 samples of other blocks stand for less does not make this number certain."""
        self.write_blocks((("main", "tiny"), 5, 16), (("main", "small"), 1000, 100))
        share = self.intervals("alloc_objects")["tiny"]
        self.assertLess(share["low"], 1)
        self.assertGreater(share["high"], 5)
        self.assertIn("alloc_objects: 5407223 count ± 181264 count in 1005 samples\n", self.answer("flame", "a.jsonl", "--type", "alloc_objects"))

    def test_intervals_contain_the_true_share(self):
        sizes = {"huge": (64 * 1024 * KIB, 2), "large": (1024 * KIB, 20), "middle": (300 * KIB, 60), "small": (100, 200_000)}
        bytes_of, objects = {n: s * t for n, (s, t) in sizes.items()}, {n: t for n, (_, t) in sizes.items()}
        random, tries, right, narrow = Random(1), 40, dict.fromkeys(sizes, 0), 0
        for _ in range(tries):
            self.write_blocks(*[(("main", name), self.drawn(random, size, times), size) for name, (size, times) in sizes.items()])
            shares = self.intervals("alloc_space")
            for name in set(sizes) - {"huge"}:
                true = 100 * bytes_of[name] / sum(bytes_of.values())
                right[name] += shares[name]["low"] <= true <= shares[name]["high"]
            narrow += shares["large"]["high"] - shares["large"]["low"] < 6
            shares = self.intervals("alloc_objects")
            true = 100 * objects["small"] / sum(objects.values())
            right["huge"] += shares["small"]["low"] <= true <= shares["small"]["high"]
        for name, times in right.items():
            self.assertGreaterEqual(times, 35, name)
        self.assertEqual(narrow, tries)

    def test_values_near_the_largest_have_an_error_that_is_a_number(self):
        d, most = Dictionary(), (1 << 63) - 1
        rows = [(("main", name), CART_TRACE, CART, most) for name in "abcdefgh"]
        self.write("t.jsonl", json_lines(traces()))
        self.write("a.jsonl", json_lines(request(d, *[profile(d, rows, PERIOD, kind, COUNTED) for kind in (ALLOC, OBJECTS)])))
        told = lambda *question: json.loads(self.run_tool(*question).stdout)
        cart = next(s for s in told("spans", "t.jsonl", "a.jsonl", "--json")["spans"] if s["span_id"] == CART)
        self.assertEqual(cart["alloc_bytes"], most)
        self.assertTrue(0 < cart["alloc_error"] <= most)
        for kind in ("alloc_space", "alloc_objects"):
            for shares in (function["total"] for function in told("flame", "a.jsonl", "--type", kind, "--format", "json")["functions"]):
                self.assertTrue(shares["low"] is None or 0 <= shares["low"] <= shares["share"] <= shares["high"] <= 100, shares)

    def test_what_grew_has_no_error(self):
        """Blocks that were freed and allocated again make it larger than the difference shows."""
        self.write("grown.jsonl", json_lines(snapshots(FIRST, LAST)))
        self.assertNotIn("±", self.answer("flame", "grown.jsonl", "--since", "first"))

    def test_live_blocks_are_counted_so_too(self):
        self.write_blocks((("main", "small"), 7, 100), kinds=(INUSE, INUSE_OBJECTS))
        self.assertEqual((self.counts("inuse_space"), self.counts("inuse_objects")), ({"main;small": 7}, {"main;small": 7}))

    def test_without_objects_each_sum_is_a_sample(self):
        self.write_blocks((("main", "small"), 40, 100), kinds=(ALLOC,))
        self.assertEqual(self.counts("alloc_space"), {"main;small": 1})

    def test_spans_without_allocations_get_advice_that_fits(self):
        self.write_blocks((("main", "small"), 5, 16))
        for question in (("--span", RENDER), ("--name", "render")):
            error = self.refuse(1, "flame", "t.jsonl", "a.jsonl", "--type", "alloc", *question, says=("allocated", "a smaller SPANPROF_ALLOC_BYTES"))
            self.assertNotIn("HZ", error)
            self.assertNotIn("wall", error)


class Dropped(Blocks):
    """Calls for which the SDK had no room are missing in the sums. More samples would make this worse."""
    NOTE = "spanprof: 2 sampled calls had no room and were dropped, so the values of {} are too small: record with a larger {}, so that fewer calls are sampled\n"
    FEWER = "record with a larger SPANPROF_ALLOC_BYTES, because sampled calls were dropped"

    def notes(self, *question):
        result = self.run_tool(*question)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.decode()

    def test_they_are_told_where_allocations_are_shown(self):
        self.write_blocks((("main", "small"), 5, 16), told=DROPPED)
        note = self.NOTE.format("alloc_space", "SPANPROF_ALLOC_BYTES")
        self.assertEqual(self.notes("spans", "t.jsonl", "a.jsonl"), note)
        self.assertEqual(self.notes("flame", "a.jsonl", "--type", "alloc"), note)
        self.assertEqual(self.notes("flame", "a.jsonl", "--type", "alloc", "--format", "json"), note)
        self.assertEqual(self.notes("diff", "a.jsonl", "a.jsonl", "--type", "alloc"), note)
        self.assertIn("dropped: calls 2\n", self.answer("stats", "a.jsonl"))

    def test_each_side_of_a_comparison_tells_its_own(self):
        self.write_blocks((("main", "small"), 5, 16), kinds=(INUSE, INUSE_OBJECTS), told=DROPPED)
        (self.folder / "a.jsonl").rename(self.folder / "lossy.jsonl")
        self.write_blocks((("main", "small"), 5, 16), kinds=(INUSE, INUSE_OBJECTS))
        note = self.NOTE.format("inuse_space", "SPANPROF_ALLOC_BYTES")
        for files, side in ((("lossy.jsonl", "a.jsonl"), "A: "), (("a.jsonl", "lossy.jsonl"), "B: ")):
            self.assertEqual(self.notes("diff", *files, "--type", "inuse"), note.replace("2 sampled", side + "2 sampled"))

    def test_no_advice_to_sample_more(self):
        self.write_blocks((("main", "small"), 5, 16), told=DROPPED)
        text = self.run_tool("flame", "a.jsonl", "--type", "alloc", columns=300).stdout.decode()
        self.assertIn(f"too few samples to trust shares; {self.FEWER}\n", text)
        result = self.run_tool("flame", "t.jsonl", "a.jsonl", "--type", "alloc", "--name", "render")
        self.assertEqual(result.returncode, 1)
        self.assertIn(self.FEWER, result.stderr.decode())
        self.assertIn("too small: ", result.stderr.decode())
        self.assertNotIn("smaller", result.stderr.decode())

    def test_of_waits_for_locks_too(self):
        self.write("t.jsonl", json_lines(traces()))
        self.write("l.jsonl", json_lines(lock_profiles({"spanprof.lock_ns": 100_000, "spanprof.dropped.calls": 2})))
        note = self.NOTE.format("delay", "SPANPROF_LOCK_NS")
        self.assertEqual(self.notes("flame", "l.jsonl", "--type", "lock"), note)
        self.assertEqual(self.notes("spans", "t.jsonl", "l.jsonl", "--holders"), note)

    def test_where_they_are_not_shown_they_are_not_told(self):
        self.write_blocks((("main", "small"), 5, 16), told=DROPPED)
        self.write("p.jsonl", json_lines(profiles()))
        self.answer("flame", "t.jsonl", "p.jsonl", "a.jsonl", "--type", "cpu")


class Others(MemoryTest):
    def test_stats_tell_the_period_and_no_unattributed(self):
        text = self.answer("stats", "alloc.jsonl")
        self.assertNotIn("dropped", text)
        self.assertIn("alloc_space: 1 profile, 8 samples, one in 512 KiB\n", text)
        self.assertIn("alloc_objects: 1 profile, 8 samples, one in 512 KiB\n", text)
        self.assertNotIn("unattributed", text)

    def test_stats_tell_samples_and_the_objects_that_they_stand_for(self):
        """Of samples without a span it is known which group they are in only if no other group has any."""
        for unknown, samples in ((0, ("1", "0")), (7, ("-", "-"))):
            told = COUNTED | {"spanprof.samples.linked": 300, "spanprof.samples.none": 10, "spanprof.samples.unknown": unknown, "spanprof.stacks.complete": 310}
            d, rows = Dictionary(), [(("main", "report"), REPORT_TRACE, REPORT, 1000 * KIB, 300), (("main", "cache"), "", "", 600 * KIB, 1)]
            made = [profile(d, [row[:3] + (row[number],) for row in rows], PERIOD, kind, told) for number, kind in ((3, ALLOC), (4, OBJECTS))]
            self.write("a.jsonl", json_lines(request(d, *made)))
            text = self.answer("stats", "a.jsonl")
            self.assertRegex(text, r"alloc_space: 1 profile, 3 samples, one in 512 KiB\n  linked +2  about +300 objects +9\d\.\d+ %\n")
            self.assertRegex(text, rf"  none +{samples[0]}  about +10 objects .*\n  unknown +{samples[1]}  about +{unknown} objects")
            for kind in self.answer_json("stats", "a.jsonl", "--json")["types"]:
                self.assertEqual((kind["samples"], kind["linked_samples"], kind["linked"], kind["counted"]), (3, 2, 300, "objects"))

    def test_stats_count_the_last_snapshot_once(self):
        d = Dictionary()
        windows = [profile(d, [(("main",), REPORT_TRACE, REPORT, value)], PERIOD, kind, {"spanprof.samples.linked": 50, "spanprof.stacks.complete": 50}, start)
                   for start in (0, 10) for kind, value in ((INUSE, 1000 * KIB), (INUSE_OBJECTS, 50))]
        self.write("live.jsonl", json_lines(request(d, *windows)))
        for kind in self.answer_json("stats", "live.jsonl", "--json")["types"]:
            self.assertEqual((kind["samples"], kind["linked"], kind["stacks"]), (2, 50, {"complete": 50}))

    def test_check_does_not_wonder_about_old_spans_of_live_blocks(self):
        d = Dictionary()
        self.write("late.jsonl", json_lines(request(d, live(d, 100, LAST))))
        self.assertNotIn("link-span-time", self.answer("check", "t.jsonl", "late.jsonl"))


if __name__ == "__main__":
    unittest.main()
