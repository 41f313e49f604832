#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The html page of `spanprof flame`, in headless Chromium: it draws the frames, finds and zooms, and names do no harm.

The document is read as it is once all timers ran."""
import html.parser
import re
import sys

from browser import CHROMIUM, Browser
from otlp import *

FOUND_COLOUR = "#7b5cd6"
HOSTILE = """</script><img src=x onerror="document.title='harm'"><b>&amp;\u2028'"`${document.title='harm'}"""


class Page(html.parser.HTMLParser):
    """What a document holds: frames of the graph, texts by id, all tags."""

    def __init__(self, text):
        super().__init__()
        self.frames, self.texts, self.tags, self.attributes, self.open = [], {}, [], [], []
        self.first = None  # what a script of the test saw
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "input", "link", "br", "img"):
            self.open.append((tag, attrs.get("id")))
        if tag == "g":
            # after a click the group's width is set at once, its rectangle's by a transition, for which no frames are rendered here
            self.frames.append({"name": attrs.get("name"), "class": attrs.get("class"), "width": float(attrs.get("width", 0))})
        elif tag == "rect" and self.frames:
            self.frames[-1]["fill"] = attrs.get("fill")
        elif tag == "p" and attrs.get("id") == "first":
            self.first = json.loads(attrs["data-rectangles"])

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, key in self.open:
            if key:
                self.texts[key] = self.texts.get(key, "") + data

    def frame(self, name):
        return next(frame for frame in self.frames if frame["name"] == name)


class FlamePage(ToolTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(Browser())

    def page_of(self, *arguments, command="flame"):
        self.answer(command, *arguments, "--format", "html", "-o", "page.html")
        return (self.folder / "page.html").read_text(encoding="utf-8")

    def load(self, anchor="", script=""):
        """The document after SCRIPT ran behind the page's own."""
        if script:
            page = (self.folder / "page.html").read_text(encoding="utf-8")
            self.write("page.html", page.replace("</body>", f"<script>{script}</script></body>").encode())
        return Page(self.browser.document((self.folder / "page.html").as_uri() + anchor))

    def test_frames_and_legend_are_drawn(self):
        self.write_shop()
        self.page_of("shop", "--span", REPORT)
        page = self.load()
        self.assertEqual([frame["name"] for frame in page.frames],
                         ["GET /report", "main", "serve", "report", "deflate", "append_row", "query_rows"])
        whole = page.frame("main")["width"]
        self.assertGreater(whole, 1000)
        self.assertAlmostEqual(page.frame("append_row")["width"] / whole, 0.80, places=2)
        self.assertEqual(page.texts["subject"], "GET /report")
        for part in (REPORT, REPORT_TRACE, "shop", "250 ms"):
            self.assertIn(part, page.texts["details"])
        self.assertEqual(page.texts["amount"], "cpu: 250 ms in 25 samples")
        self.assertEqual(page.texts.get("confidence", ""), "")
        self.assertRegex(page.texts["functions"], r"200 ms\s*80\.0 %\s*200 ms\s*80\.0 %\s*append_row")

    def test_frames_have_their_width_and_name_at_once(self):
        self.write_shop()
        self.page_of("shop", "--span", REPORT)
        # This runs behind the page's own script, before any timer and any picture.
        look = """{
            const note = document.body.appendChild(document.createElement('p'));
            note.id = 'first';
            note.dataset.rectangles = JSON.stringify([...document.querySelectorAll('#chart g')].map((group) =>
                [group.getAttribute('name'), group.querySelector('rect').getBoundingClientRect().width, Number(group.getAttribute('width')),
                 group.querySelector('div').textContent]));}"""
        for anchor in ("", "#search=append"):
            page = self.load(anchor, script=look)
            self.assertEqual(len(page.first), 7)
            self.assertGreater(page.first[0][1], 1000)
            for name, drawn, meant, label in page.first:
                self.assertAlmostEqual(drawn, meant, delta=2)
                self.assertEqual(label, name)

    def test_few_samples_are_told(self):
        self.write_shop()
        self.page_of("shop", "--span", CART)
        self.assertIn("only 4 samples", self.load().texts["confidence"])

    def test_wall_time_says_where_it_went(self):
        self.write("t.jsonl", json_lines(traces()))
        self.write("both.jsonl", json_lines(both_profiles()))
        self.page_of("t.jsonl", "both.jsonl", "--span", REPORT, "--type", "offcpu")
        page = self.load()
        self.assertEqual(page.texts["amount"], "off-CPU time: 80.0 ms ± 40.0 ms in 4 samples")
        self.assertEqual(page.texts["where"], "runnable 25 %, lock 25 %, disk 25 %, network 25 %")
        self.assertAlmostEqual(page.frame("futex")["width"] / page.frame("main")["width"], 0.25, places=2)
        self.assertEqual(page.frame("[runnable]")["width"], page.frame("futex")["width"])
        self.page_of("t.jsonl", "both.jsonl", "--span", REPORT)
        self.assertEqual(self.load().texts.get("where", ""), "")

    def test_hint_points_at_the_button_that_shows_wall_time(self):
        self.write("t.jsonl", json_lines(traces([span(CART_TRACE, CART, "GET /cart", 1500, 600)])))
        wall = [(("main", "poll"), CART_TRACE, CART, 400 * MS, "network", "socket")]
        self.write("both.jsonl", json_lines(both_profiles([SAMPLES[3]], wall)))
        self.page_of("t.jsonl", "both.jsonl", "--span", CART)
        page = self.load()
        self.assertTrue(page.texts["confidence"].endswith('most of its time it waited: the button "Show wall time" shows where'),
                        page.texts["confidence"])
        self.assertEqual(page.texts["switch"], "Show wall time")
        for form in ("text", "svg"):
            self.assertIn("ask for --type wall to see where", self.answer("flame", "t.jsonl", "both.jsonl", "--span", CART, "--format", form, columns=200))
        self.write("cpu.jsonl", json_lines(profiles([SAMPLES[3]])))
        self.page_of("t.jsonl", "cpu.jsonl", "--span", CART)
        self.assertIn("record wall time", self.load().texts["confidence"])

    def test_time_in_a_queue_is_told_by_both_graphs(self):
        self.write("t.jsonl", json_lines(traces([span(CART_TRACE, CART, "GET /cart", 1500, 600)])))
        wall = [(("main", "poll"), CART_TRACE, CART, 60 * MS, "network", "socket"),
                (("main", "poll"), REPORT_TRACE, REPORT, 4000 * MS, "network", "socket")]
        self.write("both.jsonl", json_lines(both_profiles([SAMPLES[3]], wall)))
        self.page_of("t.jsonl", "both.jsonl", "--span", CART)
        said = self.load(script=self.NOTE + """
            noted.cpu = text('queued');
            document.getElementById('switch').click();
            noted.wall = text('queued');
            finish();""").first
        self.assertEqual(said["cpu"], said["wall"])
        self.assertIn("about 540 ms of its 600 ms no thread carried this span", said["cpu"])
        self.page_of("t.jsonl", "both.jsonl")
        self.assertEqual(self.load().texts.get("queued", ""), "")

    def test_search_marks_what_matches(self):
        self.write_shop()
        self.page_of("shop", "--span", REPORT)
        page = self.load("#search=Append_")
        self.assertEqual([frame["name"] for frame in page.frames if frame["fill"] == FOUND_COLOUR], ["append_row"])
        self.assertEqual(page.texts["status"], "1 frame matches, 200 ms (80.0 %)")

    def test_search_takes_any_text_literally(self):
        self.write_shop()
        self.page_of("shop", "--span", REPORT)
        page = self.load(script="""
            const box = document.getElementById('search');
            box.value = '(['; box.dispatchEvent(new Event('input'));""")
        self.assertEqual(page.texts["status"], "0 frames match, 0 ns (0.0 %)")

    def test_click_zooms_and_reset_goes_back(self):
        self.write_shop()
        self.page_of("shop", "--span", REPORT)
        click = "document.querySelector('g[name=query_rows]').dispatchEvent(new MouseEvent('click', {bubbles: true}));"
        zoomed = self.load(script=click)
        self.assertGreater(zoomed.frame("query_rows")["width"], 1000)
        back = self.load(script="setTimeout(() => document.getElementById('reset').click(), 1000);")
        self.assertAlmostEqual(back.frame("query_rows")["width"] / back.frame("main")["width"], 0.12, places=2)

    def test_names_do_no_harm(self):
        self.write("t.jsonl", json_lines(traces([span(REPORT_TRACE, REPORT, HOSTILE, 0, 9)], service=HOSTILE)))
        self.write("p.jsonl", json_lines(profiles([((HOSTILE, "leaf"), REPORT_TRACE, REPORT, 30)])))
        source = self.page_of("t.jsonl", "p.jsonl", "--span", REPORT)
        self.assertNotIn("onerror=\"", source)
        self.assertNotIn("\u2028", source)
        page = self.load("#search=leaf")
        self.assertEqual([frame["name"] for frame in page.frames], [HOSTILE, HOSTILE, "leaf"])
        self.assertEqual(page.texts["subject"], HOSTILE)
        self.assertNotIn("img", page.tags)
        self.assertNotIn("b", page.tags)
        self.assertNotIn("onerror", page.attributes)
        self.assertEqual(page.tags.count("script"), 3)

    # What several steps leave on the page, as data of an element that Page reads.
    NOTE = """
        const noted = {};
        const frames = (id) => [...document.querySelectorAll('#' + id + ' g')].map((group) =>
            [group.getAttribute('name'), group.querySelector('rect').getAttribute('fill')]);
        const choose = (value) => { const box = document.getElementById('colors'); box.value = value; box.dispatchEvent(new Event('change')); };
        const text = (id) => document.getElementById(id).hidden ? '' : document.getElementById(id).textContent;
        const finish = () => {
            const note = document.body.appendChild(document.createElement('p'));
            note.id = 'first';
            note.dataset.rectangles = JSON.stringify(noted);
        };"""

    def test_click_tells_file_line_and_module_and_opens_callers_and_callees(self):
        self.write_shop()
        self.page_of("shop")
        noted = self.load(script=self.NOTE + """
            document.querySelector('g[name=report]').dispatchEvent(new MouseEvent('click', {bubbles: true}));
            noted.selected = text('selected-text');
            document.getElementById('selected-open').click();
            noted.name = text('sandwich-name');
            noted.callers = frames('callers').map((frame) => frame[0]);
            noted.callees = frames('callees').map((frame) => frame[0]);
            noted.callersEnd = document.getElementById('callers').getBoundingClientRect().bottom;
            noted.ownAbove = document.querySelector('#callers g[name=report] rect').getBoundingClientRect().top;
            noted.calleesBegin = document.querySelector('#callees g[name=report] rect').getBoundingClientRect().top;
            noted.hover = document.querySelector('#chart g[name=append_row] title').textContent;
            document.getElementById('sandwich-close').click();
            noted.closed = document.getElementById('sandwich').hidden;
            finish();""").first
        self.assertEqual(noted["selected"], "report: 230 ms (76.7 %, 95 %: 59–89 %) – shop.c:7, shop")
        self.assertIn("shop.c:7, shop", noted["hover"])
        self.assertEqual(noted["name"], "report: 230 ms (76.7 %)")
        self.assertLessEqual(noted["callersEnd"], noted["calleesBegin"] + 1)  # the function is drawn once: that of the callers is clipped
        self.assertLessEqual(noted["callersEnd"], noted["ownAbove"] + 1)
        self.assertEqual(noted["callers"], ["report", "serve", "main"])
        self.assertEqual(noted["callees"], ["report", "append_row", "query_rows"])
        self.assertTrue(noted["closed"])

    def test_colours_tell_module_and_wait_and_the_page_switches_to_wall_time(self):
        self.write("t.jsonl", json_lines(traces()))
        self.write("both.jsonl", json_lines(both_profiles()))
        self.page_of("t.jsonl", "both.jsonl", "--span", REPORT)
        noted = self.load(script=self.NOTE + """
            noted.title = document.title;
            choose('module');
            noted.module = frames('chart');
            noted.moduleKey = text('key');
            choose('wait');
            noted.cpuKey = text('key');
            noted.button = text('switch');
            document.getElementById('switch').click();
            noted.amount = text('amount');
            noted.wait = frames('chart');
            noted.waitKey = text('key');
            noted.back = text('switch');
            document.getElementById('switch').click();
            noted.again = text('amount');
            finish();""").first
        self.assertEqual(noted["title"], "GET /report – shop – flamegraph")
        self.assertEqual(len({fill for name, fill in noted["module"] if name != "GET /report"}), 1)
        self.assertEqual(noted["moduleKey"], "shop")
        self.assertIn("does not tell", noted["cpuKey"])
        self.assertEqual((noted["button"], noted["back"]), ("Show wall time", "Show CPU time"))
        self.assertEqual(noted["amount"], "wall time: 300 ms ± 40.0 ms in 15 samples")
        self.assertEqual(noted["again"], "cpu: 250 ms in 25 samples")
        colours = dict(noted["wait"])
        self.assertEqual(len({colours[name] for name in ("futex", "recvfrom", "pread64", "[runnable]", "deflate")}), 5)
        self.assertEqual(noted["waitKey"], "cpudisklocknetworkrunnable")

    def test_names_switch_between_short_folded_and_full(self):
        request = profiles([(("main", "leaf"), "", "", 30)])
        strings = request["dictionary"]["stringTable"]
        strings.append("_ZN2ns1fISt6vectorIiSaIiEEEEvT_")
        for entry in request["dictionary"]["functionTable"]:
            if entry and strings[entry["nameStrindex"]] == "leaf":
                entry["systemNameStrindex"] = len(strings) - 1
        self.write("p.jsonl", json_lines(request))
        self.page_of("p.jsonl")
        noted = self.load(script=self.NOTE + """
            noted.first = frames('chart').map((frame) => frame[0]);
            noted.choice = document.getElementById('names').value;
            for (const style of ['short', 'full', 'folded']) {
                const box = document.getElementById('names');
                box.value = style;
                box.dispatchEvent(new Event('change'));
                noted[style] = [...document.querySelectorAll('#chart g div')].map((label) => label.textContent);
                noted[style + 'Table'] = text('functions');
            }
            document.getElementById('search').value = 'vector';
            document.getElementById('search').dispatchEvent(new Event('input'));
            noted.found = text('status');
            finish();""").first
        vector = "std::vector<int, std::allocator<int> >"
        self.assertEqual(noted["choice"], "folded")
        self.assertEqual(noted["first"][1:], ["main", "ns::f<…>"])
        self.assertEqual(noted["folded"][1:], ["main", "ns::f<…>"])
        self.assertEqual(noted["short"][1:], ["main", f"ns::f<{vector} >"])
        self.assertEqual(noted["full"][1:], ["main", f"void ns::f<{vector} >({vector})"])
        self.assertIn(f"void ns::f<{vector} >({vector})", noted["fullTable"])
        self.assertEqual(noted["found"], "0 frames match, 0 ns (0.0 %)")
        self.write_shop()
        self.page_of("shop")
        self.assertTrue(self.load(script=self.NOTE + "noted.hidden = document.getElementById('names').hidden; finish();").first["hidden"])

    def test_flip_and_colours_keep_the_zoom(self):
        self.write_shop()
        self.page_of("shop", "--span", REPORT)
        noted = self.load(script=self.NOTE + """
            const width = (name) => Number(document.querySelector(`#chart g[name=${name}]`).getAttribute('width'));
            const wait = (then) => setTimeout(then, 500);
            document.querySelector('#chart g[name=query_rows]').dispatchEvent(new MouseEvent('click', {bubbles: true}));
            wait(() => {
                document.getElementById('flip').click();
                wait(() => {
                    noted.flipped = width('query_rows');
                    noted.selected = text('selected-text');
                    choose('module');
                    wait(() => {
                        noted.coloured = width('query_rows');
                        document.getElementById('reset').click();
                        wait(() => { document.getElementById('flip').click(); wait(() => { noted.whole = width('query_rows'); finish(); }); });
                    });
                });
            });""").first
        self.assertGreater(noted["flipped"], 1000)
        self.assertIn("query_rows: ", noted["selected"])
        self.assertGreater(noted["coloured"], 1000)
        self.assertLess(noted["whole"], 400)

    def test_diff_is_red_and_blue_and_shows_the_widths_of_both_sides(self):
        def record(name, **functions):
            self.write(f"{name}.jsonl", json_lines(profiles([(("main", function), "", "", count) for function, count in functions.items()])))
            return f"{name}.jsonl"
        self.page_of(record("before", parse=100, old=60, rare=1), record("after", parse=104, index=60), command="diff")
        noted = self.load(script=self.NOTE + """
            noted.title = document.title;
            noted.legend = ['subject', 'details', 'amount', 'where', 'key'].map(text);
            noted.b = frames('chart');
            noted.hover = ['index', 'parse'].map((name) => document.querySelector(`#chart g[name=${name}] title`).textContent);
            noted.choice = document.getElementById('colors').value;
            noted.button = text('switch');
            document.getElementById('switch').click();
            noted.a = frames('chart');
            noted.rare = document.querySelector('#chart g[name=rare] title').textContent;
            noted.subject = text('subject');
            choose('function');
            noted.function = frames('chart');
            finish();""").first
        self.assertEqual(noted["title"], "From before.jsonl (A) to after.jsonl (B) – shop – flamegraph")
        self.assertEqual(noted["legend"][1:3], ["A: before.jsonl: cpu 1.61 s in 161 samples, 0 requests",
                                                "B: after.jsonl: cpu 1.64 s in 164 samples, 0 requests"])
        self.assertIn("2 of 5 frames changed beyond chance", noted["legend"][3])
        self.assertEqual(noted["legend"][4], "−20 or more−5−1within chance+1+5+20 or more")
        white = "rgb(255,255,255)"
        self.assertEqual([name for name, _ in noted["b"]][1:], ["main", "parse", "index"])
        self.assertEqual(dict(noted["b"]), {noted["b"][0][0]: white, "main": white, "parse": white, "index": "rgb(238,82,74)"})
        self.assertEqual([name for name, _ in noted["a"]][1:], ["main", "parse", "old", "rare"])
        self.assertEqual((dict(noted["a"])["old"], dict(noted["a"])["rare"]), ("rgb(84,140,236)", white))
        self.assertRegex(noted["hover"][0], r"\Aindex: 600 ms \(A nothing, B 36\.6 % \(95 %: \d+\.\d–\d+\.\d\), change \+36\.6 \(for sure \+\d+\.\d to \+\d+\.\d\), own")
        self.assertRegex(noted["hover"][1], r"\Aparse: 1\.04 s \(A 62\.1 % \(95 %: .*, change \+1\.3 \(for sure −\d+\.\d to \+")
        self.assertIn("too few samples to compare", noted["rare"])
        self.assertEqual((noted["choice"], noted["button"], noted["subject"]),
                         ("change", "Show widths of A", "From before.jsonl (A) to after.jsonl (B): widths of A"))
        self.assertTrue(dict(noted["function"])["old"].startswith("hsl"))

    def test_page_needs_nothing_from_outside(self):
        self.write_shop()
        source = self.page_of("shop")
        body = re.sub(r"<!--.*?-->", "", source, flags=re.S)
        self.assertNotRegex(body, r"<[a-z]+[^>]*\s(src|href)=")
        self.assertNotRegex(body, r"@import|url\(|fetch\(|XMLHttpRequest|importScripts")
        self.assertIn("default-src 'none'", body)
        for text in ("d3-flame-graph 5.0.0", "Apache License", "Permission to use, copy, modify"):
            self.assertIn(text, source)

    def test_deep_stacks_are_drawn_and_said_to_be_cut(self):
        self.write("p.jsonl", json_lines(profiles([(tuple(f"f{i}" for i in range(3000)), "", "", 30)])))
        self.page_of("p.jsonl")
        page = self.load()
        self.assertEqual(len(page.frames), 1001)
        self.assertIn("cut", page.texts["status"])


if __name__ == "__main__":
    if not CHROMIUM:
        print("skipped: no Chromium was found (Debian: chromium)")
        sys.exit(77)
    probe = subprocess.run([TOOL, "flame", "/dev/null", "--format", "html"], stderr=subprocess.PIPE, check=False)
    if b"built without the page" in probe.stderr:
        print("skipped: spanprof was built without the page, for npm was missing")
        sys.exit(77)
    unittest.main()
