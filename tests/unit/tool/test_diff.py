#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`spanprof diff`: what has grown is found and named, and equal programs show nothing."""
import random
import re
import xml.etree.ElementTree

from otlp import *

CPU = ("samples", "count", "cpu", "nanoseconds")
PERIOD = 10 * MS
# Each call takes ten times as long with a sanitizer, which asks nothing of chance.
PART = 1 if os.environ.get("SPANPROF_TEST_CUT_STEP", "1") == "1" else 10
HOT = {"parse": 50, "render": 30, "store": 15, "index": 5}


def ids(number):
    return f"{number + 1:032x}", f"{number + 1:016x}"


def draw(dice, shares, events):
    """How many of EVENTS each function gets."""
    counts = dict.fromkeys(shares, 0)
    for name in dice.choices(list(shares), list(shares.values()), k=events):
        counts[name] += 1
    return counts


class DiffTest(ToolTest):
    def record(self, name, requests, *, duration_s=10, kind=CPU, unlinked=(), lasts=lambda number: 5):
        """A prefix NAME. REQUESTS: for each, how many samples each function has; in the stack it is below "main" and "serve".
        LASTS: how many ms the request of a number lasts."""
        spans, samples = [], []
        for number, counts in enumerate(requests):
            trace, own = ids(number)
            spans.append(span(trace, own, "GET /", 10 * number, lasts(number), kind=2))
            samples += [(("main", "serve", function), trace, own, count) for function, count in counts.items() if count]
        samples += [(("main", function), "", "", count) for function, count in unlinked]
        d = Dictionary()
        made = profile(d, samples, PERIOD, kind, COUNTS)
        made["durationNano"] = str(int(duration_s * SECOND))
        self.write(f"{name}.traces.jsonl", json_lines(traces(spans)))
        self.write(f"{name}.profiles.jsonl", json_lines(request(d, made)))
        return name

    def program(self, name, seed, *, requests=50, events=20, **changed):
        """A program whose requests are alike. CHANGED: other shares of functions."""
        dice = random.Random(seed)
        return self.record(name, [draw(dice, HOT | changed, events) for _ in range(requests)])

    def moved(self, a, b, *more):
        answer = self.answer_json("diff", a, b, "--format", "json", *more)
        return [item["name"] for item in answer["functions"][:answer["moved"]]]


class Found(DiffTest):
    def test_what_grew_is_first_and_what_shrank_is_there(self):
        a, b = self.program("a", 1), self.program("b", 2, index=40)
        self.assertEqual(self.moved(a, b)[0], "index")
        self.assertNotIn("main", self.moved(a, b))
        text = self.answer("diff", a, b)
        self.assertRegex(text, r"(?s)A: a: cpu 10\.0 s in 1000 samples, 50 requests\nB: b: .*\ngrew\n +\+2\d\.\d.* index\nshrank\n")
        self.assertRegex(text, r"\n\d functions? moved, of \d+ questions asked at once\n")
        item = self.answer_json("diff", a, b, "--format", "json")["functions"][0]
        self.assertTrue(item["total"]["low"] < item["total"]["change"] < item["total"]["high"])
        self.assertTrue(item["total"]["sure_low"] < item["total"]["low"] and item["total"]["p"] < 0.001)
        self.assertAlmostEqual(item["total"]["change"], item["total"]["b"] - item["total"]["a"])

    def test_limit_0_shows_all(self):
        a, b = self.program("a", 1), self.program("b", 2, brand_new=20)
        count = lambda *more: len(self.answer_json("diff", a, b, "--format", "json", *more)["functions"])
        self.assertEqual(count("--limit", "0"), count())
        self.assertGreater(count(), count("--limit", "2"))
        self.assertEqual(self.answer("diff", a, b, "--limit", "0"), self.answer("diff", a, b))

    def test_nothing_has_moved_in_equal_programs(self):
        self.program("a", 1)
        self.assertEqual(self.moved("a", "a"), [])
        text = self.answer("diff", "a", "a")
        self.assertIn("within chance\n", text)
        self.assertIn("0 functions moved", text)

    def test_end_of_the_file_chooses_the_format(self):
        self.program("a", 1)
        for name, start in (("d.json", "{"), ("d.txt", "A: a: cpu"), ("d", "A: a: cpu")):
            self.assertEqual(self.answer("diff", "a", "a", "-o", name), "")
            self.assertTrue((self.folder / name).read_text().startswith(start), name)
        self.refuse(2, "diff", "a", "a", "-o", "d.pdf", says=("d.pdf", ".html, .svg, .json or .txt", "--format"))
        self.refuse(2, "diff", "a", "a", "-o", "d.folded", says=("folded", "text, json, svg, html"))
        self.answer("diff", "a", "a", "-o", "d.pdf", "--format", "text")

    def test_a_function_that_only_one_side_has(self):
        a, b = self.program("a", 1), self.program("b", 2, brand_new=20)
        self.assertEqual(self.moved(a, b)[0], "brand_new")
        self.assertEqual(self.moved(b, a)[0], "brand_new")

    def test_by_spans_all_may_grow(self):
        a = self.program("a", 1, events=20)
        b = self.program("b", 2, events=30)
        self.assertEqual(self.moved(a, b), [])
        answer = self.answer_json("diff", a, b, "--by", "spans", "--format", "json")
        self.assertAlmostEqual(answer["whole"]["b"], 150)
        self.assertIn("main", [item["name"] for item in answer["functions"][:answer["moved"]]])
        self.assertIn("a request of B takes 150.0 % of what it takes in A", self.answer("diff", a, b, "--by", "spans"))

    def test_functions_of_every_sample_have_no_row_when_all_grows(self):
        """They would hide what made it grow, as a retry that few requests of the other side have, too."""
        plain, retried = {"parse": 4}, {"parse": 4, "retry": 12}
        a, b = self.record("a", [plain] * 50 + [retried] * 4), self.record("b", [retried] * 6)
        text = self.answer("diff", a, b, "--by", "spans")
        self.assertRegex(text, r"\n +\+[\d.]+ .* retry\n")
        self.assertNotRegex(text, r" (main|serve)\n")
        self.assertIn("\nin every sample, so they changed as the whole did: 2 functions\n", text)

    def test_shares_that_hide_what_a_request_takes(self):
        a, b = self.program("a", 1, events=20), self.program("b", 2, events=60)
        self.assertIn("for each request B has 300 % of what A has, which shares do not show: --by spans", self.answer("diff", a, b))
        self.assertIn("for each request B has 33 % of what A has", self.answer("diff", b, a))
        self.assertNotIn("for each request B has", self.answer("diff", a, a) + self.answer("diff", a, b, "--by", "spans"))

    def test_durations_of_requests_are_compared_without_samples(self):
        """Requests that wait in a queue last longer, and have the samples that they had."""
        counts = [HOT] * 40
        lasting = lambda name, ms, requests=counts: self.record(name, requests, kind=WALL, lasts=lambda number: ms + number % 7)
        a, b = lasting("a", 80), lasting("b", 130)
        line = r"\nrequests last 83\.0 ms in A and 133 ms in B \(medians\): \+60\.2 % \(\+5\d\.\d to \+6\d\.\d %\)\n"
        for words in ((), ("--by", "spans")):
            self.assertRegex(self.answer("diff", a, b, "--type", "wall", *words), line)
            result = self.run_tool("diff", a, b, "--type", "wall", "--fail-above", "5%", *words)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr.decode(), r"\Aspanprof: requests last 60\.2 % longer \(the median\), for sure more than 5\d\.\d %: "
                                                     r"above --fail-above 5%\n\Z")
            self.answer("diff", a, b, "--type", "wall", "--fail-above", "61%", *words)
            self.answer("diff", b, a, "--type", "wall", "--fail-above", "5%", *words)
        self.answer("diff", a, b, "--type", "wall", "--fail-above", "5%", "--by", "samples")
        answer = self.answer_json("diff", a, b, "--type", "wall", "--format", "json")
        self.assertEqual((answer["a"]["median_duration_ns"], answer["b"]["median_duration_ns"]), (83 * MS, 133 * MS))

    def test_durations_of_few_requests_have_no_interval(self):
        a, b = (self.record(name, [HOT] * 9, kind=WALL, lasts=lambda _, ms=ms: ms) for name, ms in (("a", 80), ("b", 800)))
        self.assertIn("+900.0 % (? %: fewer than 10 requests on a side)", self.answer("diff", a, b, "--type", "wall"))
        self.answer("diff", a, b, "--type", "wall", "--fail-above", "5%", "--by", "spans")

    def test_durations_are_those_of_the_spans_that_match(self):
        self.record("a", [HOT] * 40, kind=WALL, lasts=lambda number: 10 if number % 2 else 30)
        text = self.answer("diff", "a", "--where-a", "duration < 20ms", "--where-b", "duration > 20ms", "--type", "wall")
        self.assertIn("requests last 10.0 ms in A and 30.0 ms in B (medians): +200.0 % (+200.0 to +200.0 %)", text)

    def test_with_cpu_time_durations_are_shown_and_not_judged(self):
        a, b = (self.record(name, [HOT] * 40, lasts=lambda _, ms=ms: ms) for name, ms in (("a", 80), ("b", 130)))
        self.assertIn("requests last 80.0 ms in A and 130 ms in B", self.answer("diff", a, b, "--fail-above", "5%", "--by", "spans"))

    def test_by_spans_leaves_out_what_belongs_to_none(self):
        a = self.record("a", [{"parse": 10}] * 30, unlinked=[("idle", 1000)])
        b = self.record("b", [{"parse": 10}] * 30)
        self.assertEqual(self.moved(a, b, "--by", "spans"), [])
        self.assertIn("idle", self.moved(a, b))

    def test_few_requests_give_no_interval_that_cannot_be(self):
        a = self.record("a", [{"parse": 4}, {"parse": 1}])
        b = self.record("b", [{"parse": 1, "index": 2}, {"index": 1}])
        text = self.answer("diff", a, b, "--by", "spans")
        self.assertIn("a request of B takes 80.0 % of what it takes in A (? %: too few samples", text)
        self.assertRegex(text, r"\n +-80\.0 +\? +\? +100\.0 +20\.0 .* parse\n")
        answer = self.answer_json("diff", a, b, "--by", "spans", "--format", "json")
        self.assertIsNone(answer["whole"]["low"])

    def test_no_interval_leaves_what_is_possible(self):
        a = self.record("a", [{"parse": 9, "rare": 1}] * 3 + [{"parse": 60}])
        b = self.record("b", [{"parse": 3}] * 3 + [{"index": 4}])
        for by in ("samples", "spans", "time"):
            answer = self.answer_json("diff", a, b, "--by", by, "--format", "json")
            changes = [each[kind] for each in answer["functions"] for kind in ("total", "self")] + [answer["whole"] or {}]
            for change in changes:
                for low in filter(None, (change.get("low"), change.get("sure_low"))):
                    self.assertGreaterEqual(low, -100, (by, change))
                for high in filter(None, (change.get("high"), change.get("sure_high"))):
                    self.assertTrue(by != "samples" or high <= 100, change)

    def test_sides_of_one_recording_are_named_by_their_queries(self):
        a = self.program("a", 1)
        queries = ("--where-a", 'name = "GET /"', "--where-b", "duration > 1ms")
        text = self.answer("diff", a, *queries)
        self.assertIn('A: a where name = "GET /": cpu', text)
        self.assertIn("B: a where duration > 1ms: cpu", text)
        sides = self.answer_json("diff", a, *queries, "--format", "json")
        self.assertEqual([sides[side]["name"] for side in "ab"], ['a where name = "GET /"', "a where duration > 1ms"])
        self.assertIn("From a where name = &quot;GET /&quot; (A) to a where duration &gt; 1ms (B)",
                      self.answer("diff", a, *queries, "--format", "svg"))

    def test_by_time(self):
        a = self.record("a", [{"parse": 10}] * 100, duration_s=10)
        b = self.record("b", [{"parse": 10}] * 100, duration_s=5)
        answer = self.answer_json("diff", a, b, "--by", "time", "--format", "json")
        self.assertAlmostEqual(answer["whole"]["b"], 200)
        self.assertTrue(answer["whole"]["moved"])
        self.assertEqual(self.moved(a, b), [])


class Where(DiffTest):
    def record_kinds(self, name, slow_index):
        """Half of the requests are called "slow" and have other shares."""
        dice = random.Random(name)
        spans, samples = [], []
        for number in range(80):
            trace, own = ids(number)
            slow = number % 2
            spans.append(span(trace, own, "slow" if slow else "fast", 10 * number, 5, kind=2))
            samples += [(("main", function), trace, own, count)
                        for function, count in draw(dice, HOT | ({"index": slow_index} if slow else {}), 20).items() if count]
        d = Dictionary()
        self.write(f"{name}.traces.jsonl", json_lines(traces(spans)))
        self.write(f"{name}.profiles.jsonl", json_lines(request(d, profile(d, samples, PERIOD, CPU, COUNTS))))

    def test_two_kinds_of_requests_of_one_recording(self):
        self.record_kinds("a", 60)
        answer = self.answer_json("diff", "a", "--where-a", '{ name = "fast" }', "--where-b", '{ name = "slow" }', "--by", "spans",
                                  "--format", "json")
        self.assertEqual((answer["a"]["requests"], answer["b"]["requests"]), (40, 40))
        self.assertEqual(answer["functions"][0]["name"], "index")
        self.assertTrue(answer["functions"][0]["total"]["moved"])

    def test_one_kind_of_two_recordings(self):
        self.record_kinds("a", 5)
        self.record_kinds("b", 60)
        fast = ("--where-a", '{ name = "fast" }', "--where-b", '{ name = "fast" }')
        self.assertEqual(self.moved("a", "b", *fast), [])
        self.assertEqual(self.moved("a", "b", *[word.replace("fast", "slow") for word in fast])[0], "index")
        self.refuse(1, "diff", "a", "b", "--where-a", '{ name = "no" }', says="no span matches")
        self.refuse(2, "diff", "a", "b", "--where-b", '{ name = }', says="where")


class Chance(DiffTest):
    def test_requests_that_differ_are_no_change(self):
        """One request in ten is of another kind, ten times as long: how many of them a recording has is chance. As independent
        samples they would show a change nearly always."""
        false, by_events = 0, 0
        for seed in range(40 // PART):
            sides = []
            for name in "ab":
                dice = random.Random(f"{seed}{name}")
                requests = [draw(dice, {"rebuild": 1}, 100) if dice.random() < 0.1 else draw(dice, HOT, 10) for _ in range(60)]
                sides.append(self.record(name, requests))
            answer = self.answer_json("diff", *sides, "--format", "json")
            false += answer["moved"] > 0
            rebuild = next(item["total"] for item in answer["functions"] if item["name"] == "rebuild")
            n = [side["count"] for side in (answer["a"], answer["b"])]
            error = sum(rebuild[side] * (100 - rebuild[side]) / count for side, count in zip("ab", n)) ** 0.5
            by_events += abs(rebuild["change"]) > 3 * error
        self.assertLessEqual(false, 2)
        self.assertGreaterEqual(by_events, 10 // PART, "the data is no test")

    def test_intervals_hold_what_they_say(self):
        """The share of index is 5 % in A and 10 % in B, in requests of all sizes."""
        held = 0
        for seed in range(60 // PART):
            sides = []
            for name, share in (("a", 5), ("b", 10)):
                dice = random.Random(f"{seed}{name}")
                sides.append(self.record(name, [draw(dice, {"index": share, "parse": 100 - share}, dice.randrange(1, 40))
                                                for _ in range(40)]))
            answer = self.answer_json("diff", *sides, "--format", "json")
            change = next(item["total"] for item in answer["functions"] if item["name"] == "index")
            held += change["low"] <= 5 <= change["high"]
        self.assertGreaterEqual(held, 55 // PART)


class FailAbove(DiffTest):
    def test_names_the_function_and_not_its_callers(self):
        a, b = self.program("a", 1), self.program("b", 2, index=60)
        for words in ((), ("--by", "spans"), ("--by", "time")):
            result = self.run_tool("diff", a, b, "--fail-above", "5%", *words)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr.decode(), r"\Aspanprof: index grew by \d+\.\d % of the whole, for sure by more than")
            self.assertIn(b"grew", result.stdout)

    def test_what_is_not_sure_does_not_fail(self):
        a, b = self.program("a", 1), self.program("b", 2, index=60)
        self.assertEqual(self.run_tool("diff", a, b, "--fail-above", "60").returncode, 0)
        few_a, few_b = self.program("c", 3, requests=1, events=10), self.program("d", 4, requests=1, events=10, index=60)
        self.assertEqual(self.run_tool("diff", few_a, few_b, "--fail-above", "5").returncode, 0)
        self.assertEqual(self.run_tool("diff", b, a, "--fail-above", "100").returncode, 0)

    def test_the_whole_may_grow(self):
        a = self.record("a", [{"one": 6, "two": 6}] * 40)
        b = self.record("b", [{"one": 9, "two": 9}] * 40)
        result = self.run_tool("diff", a, b, "--by", "spans", "--fail-above", "1%")
        self.assertEqual(result.returncode, 1)


    def test_what_a_request_takes_is_judged_too_unless_by_is_given(self):
        """When everything takes six times as long, the shares are the same."""
        a = self.record("a", [{"one": 6, "two": 6}] * 40)
        b = self.record("b", [{"one": 36, "two": 36}] * 40)
        result = self.run_tool("diff", a, b, "--fail-above", "5%")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr.decode(), r"\Aspanprof: \w+ grew by \d+\.\d % .*: above --fail-above 5%, per request: --by spans shows it\n\Z")
        self.assertEqual(self.answer("diff", a, b), result.stdout.decode())
        result = self.run_tool("diff", a, b, "--fail-above", "5%", "--by", "samples")
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        result = self.run_tool("diff", b, a, "--fail-above", "5%")
        self.assertEqual((result.returncode, result.stderr), (0, b""))

    def test_a_side_without_requests_is_named(self):
        a = self.record("a", [{"one": 6, "two": 6}] * 40)
        for name, requests in (("none", []), ("idle", [{}] * 40)):
            self.record(name, requests, unlinked=[(function, 1400) for function in ("one", "two")])
            for sides in ((a, name), (name, a)):
                result = self.run_tool("diff", *sides, "--fail-above", "100%")
                self.assertEqual(result.returncode, 0)
                self.assertIn(f"shares of the whole only, and these stay the same when everything takes longer: {name} has no spans", result.stderr.decode())


class Picture(DiffTest):
    SVG = "{http://www.w3.org/2000/svg}"
    WHITE = "rgb(255,255,255)"

    def frames(self, *arguments):
        """[title, colour] of each frame: of the graph of B, then of that of A."""
        picture = xml.etree.ElementTree.fromstring(self.answer("diff", *arguments, "--format", "svg"))
        self.texts = [text.text for text in picture.iter(self.SVG + "text")]
        return [(group.find(self.SVG + "title").text, group.find(self.SVG + "rect").get("fill")) for group in picture.iter(self.SVG + "g")]

    def colours(self, frames, name):
        return [colour for title, colour in frames if title.startswith(name + ":")]

    def is_red(self, colour):
        red, _, blue = map(int, re.findall(r"\d+", colour))
        return red > blue

    def test_what_grew_is_red_and_what_shrank_is_blue(self):
        a, b = self.program("a", 1, old=20), self.program("b", 2, index=60, new=20)
        frames = self.frames(a, b)
        for name in ("index", "new"):
            self.assertTrue(all(map(self.is_red, self.colours(frames, name))), frames)
        for name in ("parse", "old"):
            self.assertFalse(any(map(self.is_red, self.colours(frames, name))), frames)
        self.assertEqual(self.colours(frames, "serve"), [self.WHITE] * 2)
        self.assertEqual([len(self.colours(frames, name)) for name in ("index", "new", "old")], [2, 1, 1])
        self.assertRegex(next(title for title, _ in frames if title.startswith("new:")),
                         r"\Anew: [\d.]+ s \(A nothing, B \d+\.\d % \(\d+\.\d–\d+\.\d\), change \+\d+\.\d \(\+\d+\.\d to \+\d+\.\d\)\)\Z")
        self.assertEqual(self.texts[0], "From a (A) to b (B)")
        for text in ("widths of A", "widths of B", "within chance", "+20"):
            self.assertIn(text, self.texts)
        self.assertRegex("\n".join(self.texts), r"\n[4-9] of \d+ frames changed beyond chance; changes are in % of all samples of its side\n")

    def test_chance_is_white(self):
        coloured = 0
        for seed in range(30 // PART):
            frames = self.frames(self.program("a", f"{seed}a"), self.program("b", f"{seed}b"))
            coloured += any(colour != self.WHITE for _, colour in frames)
        self.assertLessEqual(coloured, 3)

    def test_path_counts_not_only_the_name(self):
        """The same function moves from one caller to another: it is the same as ever, and its two frames are not."""
        def record(name, caller):
            d = Dictionary()
            made = profile(d, [(("main", caller, "copy"), "", "", 200), (("main", "other"), "", "", 200)], PERIOD, CPU, COUNTS)
            self.write(f"{name}.jsonl", json_lines(request(d, made)))
            return f"{name}.jsonl"
        a, b = record("a", "load"), record("b", "save")
        self.assertNotIn("copy", self.moved(a, b))
        in_b, in_a = self.colours(self.frames(a, b), "copy")
        self.assertTrue(self.is_red(in_b) and not self.is_red(in_a))

    def test_by_spans_all_may_grow(self):
        a, b = self.program("a", 1, events=20), self.program("b", 2, events=30)
        self.assertTrue(self.is_red(self.colours(self.frames(a, b, "--by", "spans"), "main")[0]))
        self.assertRegex("\n".join(self.texts), r"\na request of B takes 150\.0 % of what it takes in A \(.*\); .* frames changed beyond chance")
        self.record("a", [{"parse": 10}] * 30, unlinked=[("idle", 1000)])
        self.record("b", [{"parse": 10}] * 30)
        self.assertEqual(self.colours(self.frames("a", "b", "--by", "spans"), "idle"), [])

    def test_file_names_choose_the_format(self):
        a, b = self.program("a", 1), self.program("b", 2, index=40)
        for name, start in (("x.svg", "<?xml"), ("x.json", '{"by"'), ("x.txt", "A: a"), ("x.html", "<!DOCTYPE html>")):
            result = self.run_tool("diff", a, b, "-o", name)
            if b"without the page" in result.stderr:
                continue
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue((self.folder / name).read_text(encoding="utf-8").startswith(start))

    def test_slow_spans_against_the_rest(self):
        spans, samples = [], []
        for number in range(100):
            trace, own = ids(number)
            slow = number >= 90
            spans.append(span(trace, own, "GET /", 10 * number, 50 if slow else 5, kind=2))
            samples += [(("main", "index" if slow else "parse"), trace, own, 40)]
        d = Dictionary()
        self.write("s.traces.jsonl", json_lines(traces(spans)))
        self.write("s.profiles.jsonl", json_lines(request(d, profile(d, samples, PERIOD, CPU, COUNTS))))
        picture = self.answer("flame", "s", "--name", "GET /", "--percentile", "p90", "--against", "--format", "svg")
        self.assertIn("From the rest, 90 spans (A) to 10 slow spans, from 50.0 ms (B)", picture)
        self.refuse(2, "flame", "s", "--name", "GET /", "--percentile", "p90", "--against", "--format", "folded", says="text, json, svg, html")

    def test_names_do_no_harm(self):
        name = "</svg><script>alert(1)</script>\x1b[2J&\ufffe\u202e\"'"
        self.record("a", [{"parse": 10}] * 20)
        self.record("b", [{name: 10}] * 20)
        picture = xml.etree.ElementTree.fromstring(self.answer("diff", "a", "b", "--format", "svg"))
        self.assertEqual({element.tag for element in picture.iter()}, {self.SVG + tag for tag in ("svg", "g", "title", "rect", "text")})


class Wrong(DiffTest):
    def test_calls(self):
        self.program("a", 1, requests=2)
        self.refuse(2, "diff", "a", says="two files")
        self.refuse(2, "diff", "a", "a", "a", says="two files")
        self.refuse(2, "diff", "a", "a", "--by", "weight", says=("weight", "samples, spans, time"))
        self.refuse(2, "diff", "a", "a", "--format", "pprof", says=("pprof", "text, json, svg, html"))
        self.refuse(2, "diff", "a", "a", "-o", "x.folded", says="folded")
        for word in ("much", "5%%", "-1", "", "nan"):
            self.refuse(2, "diff", "a", "a", "--fail-above", word, says="--fail-above")
        self.refuse(2, "diff", "a", "nothing", says="nothing")

    def test_a_side_without_names_is_told(self):
        """Functions without a name match none of the other side, so that all of them seem to have moved."""
        self.record("named", [{"parse": 10, "render": 10}] * 20)
        self.record("stripped", [{"shop+0x1140": 10, "shop+0x1200": 10}] * 20)
        says = "100 % of the samples are in functions without a name, most of them in shop: "
        for a, b, sides in (("stripped", "named", "A"), ("named", "stripped", "B"), ("stripped", "stripped", "AB")):
            result = self.run_tool("diff", a, b)
            self.assertEqual(result.returncode, 0)
            notes = result.stderr.decode().splitlines()
            self.assertEqual([note.split(says)[0] for note in notes], [f"spanprof: {side}: " for side in sides])
        self.answer("diff", "named", "named")

    def test_callers_without_names_that_only_one_side_has_are_told(self):
        """Most samples are in functions with names, those of a library."""
        for name, caller in (("named", "work"), ("stripped", "shop+0x1140")):
            self.write(name, json_lines(profiles([(("main", caller, "malloc", "sysmalloc", "brk"), "", "", 200), (("main", "libc.so.6+0x10"), "", "", 90)])))
        for a, b, side in (("stripped", "named", "A"), ("named", "stripped", "B")):
            result = self.run_tool("diff", a, b)
            self.assertEqual(result.returncode, 0)
            self.assertRegex(result.stderr.decode(), rf"\Aspanprof: {side}: 1 of the functions that moved has no name, such as shop\+0x1140, and the other side may have it "
                                                     r"by name: install the debug symbols [^\n]+; then record again\n\Z")
        self.answer("diff", "stripped", "stripped")

    def test_sides_of_two_services_are_told(self):
        self.write("a.jsonl", json_lines(profiles()))
        self.write("b.jsonl", json_lines(profiles(service="cart\x1b")))
        self.write("both.jsonl", json_lines(profiles(), profiles(service="cart\x1b")))
        self.write("unknown.jsonl", json_lines(profiles(service="")))
        result = self.run_tool("diff", "a.jsonl", "b.jsonl")
        self.assertEqual((result.returncode, result.stderr.decode()),
                         (0, "spanprof: A is of the service shop and B of cart\\x1b: functions that only one of them has are listed as moved\n"))
        for other in ("a.jsonl", "both.jsonl", "unknown.jsonl"):
            self.answer("diff", "a.jsonl", other)

    def test_sides_that_cannot_be_compared(self):
        self.program("a", 1, requests=2)
        self.record("wall", [{"parse": 10 * MS}], kind=WALL)
        self.refuse(2, "diff", "a", "wall", says=("cpu", "wall", "--type"))
        self.record("none", [], unlinked=[("idle", 30)])
        self.refuse(1, "diff", "a", "none", "--by", "spans", says=("B ", "--by spans"))
        self.record("timeless", [{"parse": 10}], duration_s=0)
        self.refuse(1, "diff", "timeless", "a", "--by", "time", says=("A ", "--by time"))

    def test_names_do_no_harm(self):
        self.record("a", [{"parse": 10}] * 20)
        self.record("b", [{"\x1b[31mred\u202e": 10}] * 20)
        text = self.answer("diff", "a", "b")
        self.assertNotIn("\x1b", text)
        self.assertIn("\\x1b[31mred\\u{202e}", text)


if __name__ == "__main__":
    unittest.main()
