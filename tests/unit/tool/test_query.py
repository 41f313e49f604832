#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--where Q` of the spanprof command: which spans a predicate selects, and what is said of wrong ones."""
from otlp import *

NAMES = ["GET /report", "query", "render", "compress", "GET /cart"]
EVERY = "report query render compress cart"
SHORT = dict(zip(EVERY.split(), NAMES))


def shop():
    """The spans of the shop's two traces, with attributes of each type."""
    made = traces()
    spans = made["resourceSpans"][0]["scopeSpans"][0]["spans"]
    by_name = {each["name"]: each for each in spans}
    by_name["query"]["kind"] = 3
    by_name["query"]["attributes"] += [attribute("db.rows", 1200), attribute("db.system", "sqlite"), attribute("big", 2**53 + 1)]
    by_name["render"]["attributes"] += [{"key": "cached", "value": {"boolValue": True}}, {"key": "ratio", "value": {"doubleValue": 0.25}},
                                        attribute("my key", "spaced"), attribute("version", "span")]
    made["resourceSpans"][0]["resource"]["attributes"] += [attribute("version", "resource"), attribute("region", "eu")]
    made["resourceSpans"][0]["scopeSpans"][0]["scope"] = {"name": "shop.http", "version": "1.2", "attributes": [attribute("team", "web")]}
    return made


# A query, and the spans that it selects.
RIGHT = [
    ('name = "query"', "query"),
    ('"query" = name', "query"),
    ("name = `query`", "query"),
    ('{ name = "query" }', "query"),
    ('{name="query"}', "query"),
    ("{}", EVERY),
    ("{ true }", EVERY),
    ("false", ""),
    ("(true) = true", EVERY),
    ('name != "query"', "report render compress cart"),
    ('name =~ "GET.*"', "report cart"),
    ('name =~ "GET"', ""),
    ('name !~ "GET.*"', "query render compress"),
    ('name =~ "query|render"', "query render"),
    ('"a" = "a"', EVERY),
    ('name > "query"', "render"),
    ('name <= "compress"', "report compress cart"),
    ("duration = 250ms", "report"),
    ("duration >= 60ms", "report render cart"),
    ("duration > 0.06s", "report render"),
    ("duration < 5000us", ""),
    ("duration <= 5000us", "compress"),
    ("duration < 5000001ns", "compress"),
    ("duration > 1m || duration > 1h30m", ""),
    ("duration < 1h30m1s", EVERY),
    ("100ms < duration", "report render"),
    ("status = error", "cart"),
    ("status != error", "report query render compress"),
    ("status = unset", "report query render compress"),
    ('statusMessage = "no such cart"', "cart"),
    ('span:statusMessage =~ "no.*"', "cart"),
    ("kind = server", "report cart"),
    ("kind = client", "query"),
    ("span:kind = internal", "render compress"),
    ("traceDuration > 100ms", "report query render compress"),
    ("trace:duration = 60ms", "cart"),
    ('rootName = "GET /report" && name != rootName', "query render compress"),
    ('trace:rootName = "GET /cart"', "cart"),
    ('rootServiceName = "shop"', EVERY),
    ('trace:rootService != "shop"', ""),
    (f'span:id = "{QUERY}"', "query"),
    (f'trace:id = "{CART_TRACE}"', "cart"),
    ('instrumentation:name = "shop.http"', EVERY),
    ('instrumentation:version = "1.2"', EVERY),
    ('instrumentation.team = "web"', EVERY),
    ("span.db.rows = 1200", "query"),
    (".db.rows > 1e3", "query"),
    (".db.rows > 1199.5", "query"),
    (".db.rows >= 1.2kB", "query"),
    (".db.rows < 2KiB", "query"),
    (".db.rows != 1200", ""),
    (".db.rows > -1", "query"),
    (f".big = {2**53 + 1}", "query"),
    (f".big = {2**53}", ""),
    ('.db.rows = "1200"', ""),
    ('span.db.system =~ "sql.*"', "query"),
    (".cached", "render"),
    (".cached = true", "render"),
    ("!.cached", "report query compress cart"),
    (".ratio = 0.25", "render"),
    (".ratio < .5", "render"),
    ('span."my key" = "spaced"', "render"),
    ('."my key" != nil', "render"),
    (".db.rows = nil", "report render compress cart"),
    ("nil != .db.rows", "query"),
    ('.version = "span"', "render"),
    ('.version = "resource"', "report query compress cart"),
    ('resource.version = "resource"', EVERY),
    ('span.version = "resource"', ""),
    ('resource.region = "eu" && duration < 10ms', "compress"),
    ('name = "query" || name = "render" && duration > 1h', "query"),
    ('(name = "query" || name = "render") && duration > 100ms', "render"),
    ('!(name = "query") && !(name = "render")', "report compress cart"),
    ('{ name = "GET /report" } > { }', "query render"),
    ('{ name = "GET /report" } >> { }', "query render compress"),
    ('{ name = "GET /report" } > {} > {}', "compress"),
    ('{ name = "GET /report" } >> { duration < 10ms }', "compress"),
    ('{ name = "query" } && { name = "compress" }', "query compress"),
    ('{ name = "query" } && { name = "GET /cart" }', ""),
    ('{ name = "query" } || { name = "GET /cart" }', "query cart"),
    ('({ name = "query" } || { name = "render" }) > { }', "compress"),
    ('{ name = "a{b" } || {name="query"}', "query"),
    ('name = "a{b" || name="query"', "query"),
    ('name = "qu\\"ery"', ""),
    ("  name\n=\t\"query\"  ", "query"),
]

# A wrong query with ^ in front of where the mistake is, and a part of what is said.
WRONG = [
    ("^", "empty"), ("   ^", "empty"), ("^nam = \"x\"", "nam is unknown"), ("name = ^x", "x is unknown; a text stands in quotes, \"x\", "), ("name ^== \"x\"", "equal is written ="),
    ("^name", "text is no condition"), ("^duration", "a duration is no condition"), ("^status", "a status is no condition"),
    ("^kind", "kind"), ("^5", "a number"), ("^\"x\"", "text"), ("^nil", "nil"), ("^100ms", "a duration"),
    ("duration > ^5", "needs a unit"), ("duration > ^\"5\"", "cannot be compared"), ("duration = ^error", "a status"),
    ("duration = ^true", "cannot be compared"), ("duration > ^name", "cannot be compared"), ("name = ^5", "a number"),
    ("name > ^100ms", "a duration"), ("name = ^ok", "a status"), ("name = ^server", "a kind"), ("name = ^true", "true or false"),
    ("status = ^\"error\"", "text"), ("status = ^server", "a kind"), ("status = ^2", "a number"), ("kind = ^ok", "a status"),
    ("kind = ^\"server\"", "text"), ("status ^> ok", "not more or less"), ("kind ^< server", "not more or less"),
    (".a ^> true", "not more or less"), (".a ^>= nil", "not more or less"), ("name ^< nil", "not more or less"), ("true ^> false", "not more"),
    ("name =~ ^5", "regular expression in quotes"), ("name =~ ^rootName", "regular expression"), ("^duration =~ \"x\"", "no text to match"),
    ("^status !~ \"x\"", "no text"), ("^5 =~ \"x\"", "no text"), ("name =~ ^\"(\"", "regular expression is wrong"),
    ("name =~ ^\"[a\"", "wrong"), ("name =~ ^\"a{2,1}\"", "wrong"), ("name =~ ^\"\\\\d\"", "[0-9]"), ("name =~ ^\"(?:a)\"", "POSIX"),
    ("name = ^\"x", "does not end"), ("name = ^`x", "does not end"), ("name = \"^\\x\"", "escape"), ("name = ^\"a\\", "does not end"),
    ("name = ^", "ends where"), ("^= \"x\"", "has to stand"), ("^&& true", None), ("true && ^", "ends where"), ("true || ^", "ends where"),
    ("true && ^&& true", None), ("true ^true", "an operator"), ("name = \"a\" ^\"b\"", "operator"), ("^(name = \"x\"", "does not close"),
    ("^((true)", "does not close"), ("true^)", "operator"), ("(true ^true)", "operator or )"), ("(^)", None), ("name = (^)", None),
    ("^{ true", "does not close"), ("{ true ^true }", "operator or }"), ("{ true } ^true", "operator"), ("{ true } && ^true", "braces"),
    ("^true && { true }", "braces"), ("{ true } > ^", "braces"), ("{ true } >> ^name", "braces"), ("^} {", "braces"), ("{ ^{ true } }", None),
    ("{ true } ^< { true }", "< is not supported"), ("{ true } ^<< { true }", "<< is not supported"), ("{ true } ^~ { true }", "~ is not"),
    ("{ true } ^!> { true }", "!> is not"), ("{ true } ^&>> { true }", "&> is not"), ("{ true } ^| count() > 2", "only selects"),
    ("{ true } ^| select(name)", "only selects"), ("{ true ^| false }", "only selects"), ("{ duration ^* 2 > 1s }", "arithmetic"),
    ("duration ^+ 1s > 2s", "arithmetic"), ("duration ^/ 2 > 2s", "arithmetic"), (".a ^- 1 > 2", "arithmetic"), (".a ^% 2 = 1", "arithmetic"),
    (".a = 1 ^^ 2", "arithmetic"), ("^event.name = \"x\"", "events"), ("^link.x = 1", "links"), ("^parent.x = 1", "parents"),
    ("^event:name = \"x\"", "events"), ("^link:spanID = \"x\"", "links"), ("^childCount > 2", "unknown"), ("^nestedSetLeft > 1", "unknown"),
    ("span.^ = 1", "name of an attribute"), (".^ = 1", "name of an attribute"), ("resource.^", "name of an attribute"),
    ("instrumentation.^ = 1", "name"), ("span.^\"\" = 1", "name of an attribute"), ("span.^\"a = 1", "does not end"),
    ("duration > 5^xs", "xs is no unit"), ("duration > 1^sec", "sec is no unit"), ("duration > 1^d", "d is no unit"), (".a > 1^TB", "no unit"),
    ("duration > 1h^30", "without a unit"), ("duration > 1h^30kB", "without a unit"), (".a > 1^x2", "no unit"), (".a > -^x", "minus"),
    (".a > -^", "minus"), (".a > ^1e999", "too large"), (".a > ^" + "9" * 400, "too large"), ("name = \"a\" ^= \"b\"", "each side"),
    ("true ^= (.a && .b)", "each side"), ("!^name = \"x\"", "no condition"), ("!^name", "no condition"),
    ("!^5", "no condition"), ("!^", "ends where"), ("^name && true", "no condition"), ("true && ^name", "no condition"),
    ("true || ^5", "no condition"), ("^5 || true", "no condition"), ("(^name) && true", "no condition"), ("{ ^name }", "no condition"),
    ("{ ^100ms }", "no condition"), ("^*", None), ("^,", None), ("name ^, kind", "operator"), ("true ^& true", None),
    ("true ^| true", "only selects"), ("true ^; true", None), ("^NAME = \"x\"", "unknown"), ("^Duration > 1s", "unknown"), ("status = ^Error", "no status: these are error, ok and unset"),
    ("^traceduration > 1s", "unknown"), ("^span:foo = 1", "unknown"), ("^trace:foo = 1", "unknown"), ("^instrumentation:foo = 1", "unknown"),
    ("^http.route = \"/\"", ".http.route"), ("traceDuration > ^5", "unit"), ("rootName = ^5", "number"), ("span:id = ^5", "number"),
    ("trace:id = ^ok", "status"), ("instrumentation:name = ^1", "number"), ("rootServiceName = ^nope", "unknown"), ("statusMessage = ^error", "status"),
]
# What other languages have.
WRONG += [
    ("{ name ^== \"x\" }", "written ="), (".a ^==5", "written ="), ("true ^and true", "and is written &&"), ("true ^AND true", "and is written &&"),
    ("true ^or false", "or is written ||"), ("^not true", "not is written !"), ("^not (name = \"x\")", "not is written !"), ("(true ^and true)", "written &&"),
    ("{ true ^and true }", "written &&"), ("{ true } ^and { true }", "written &&"), ("{ true } ^or { true }", "written ||"), ("^and true", "written &&"),
    (".a = 1 ^and .b = 2", "written &&"), ("name = ^'GET /'", "double quotes"), ("{ name = ^'GET /' }", "single quotes around the whole query"),
    ("name = ^'a{b'", "double quotes"), ("^'x' = name", "double quotes"), ("name =~ ^'x.*'", "double quotes"), (".a = ^'", "double quotes"),
    ("^cpu > 100ms", "CPU time is not a field of a query; `spanprof spans --sort cpu`"), ("{ ^own > 1s }", "--sort cpu"), ("^wall > 1s", "wall time is not a field"),
    ("1s < ^cpu", "--sort cpu"), ("^samples > 3", "--sort samples"), ("^alloc > 1MiB", "--sort alloc"), ("^andy = 1", "andy is unknown"), ("^cpus = 1", "cpus is unknown"),
]
WRONG += [
    ("^queue > 100ms", "time in a queue is not a field of a query; `spanprof spans --sort queue`"),
    ("^service = \"x\"", "the name of a service is resource.service.name"), ("^service.name = \"x\"", "resource.service.name"),
    ("^durration > 1ms", "durration is unknown; the nearest: duration; "), ("true && ^satus = error", "the nearest: status; "),
    ("status = ^\"Error\"", "write error without quotes"), ("kind != ^\"client\"", "write client without quotes"), ("\"ok\" = ^status", "write ok without quotes"),
    ("status = ^\"bad\"", "a status cannot be compared with text: its values are error, ok and unset"), ("name = ^nome", "nome is unknown; a text"),
]
# The same mistakes inside of more.
WRONG += [(f"({query})", says) for query, says in WRONG if query.startswith("duration > ^") or query.startswith("name = ^5")]
WRONG += [(f"{{ true && ({query}) }}", says) for query, says in WRONG
          if (" = ^" in query or " > ^" in query) and says and "end" not in says and query[0] not in "({" and "\\" not in query]
WRONG += [(f"{name} != ^{value}", says)
          for name in ("rootName", "rootServiceName", "statusMessage", "span:id", "trace:id", "instrumentation:name", "instrumentation:version")
          for value, says in (("100ms", "a duration"), ("1.5", "a number"), ("false", "true or false"), ("consumer", "a kind"))]


class QueryTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.write("shop.traces.jsonl", json_lines(shop()))
        self.write("shop.profiles.jsonl", json_lines(profiles()))


class Predicates(QueryTest):
    def selected(self, query):
        result = self.run_tool("spans", "shop", "--json", "--where", query)
        if result.returncode == 1:
            self.assertRegex(result.stderr.decode(), r"\Aspanprof: no span matches[^\n]+\n\Z")
            return set()
        self.assertEqual((result.returncode, result.stderr), (0, b""), query)
        return {each["name"] for each in json.loads(result.stdout)["spans"]}

    def test_right_queries_select_their_spans(self):
        for query, names in RIGHT:
            with self.subTest(query):
                self.assertEqual(self.selected(query), {SHORT[name] for name in names.split()})

    def test_wrong_queries_are_refused_with_their_position(self):
        for marked, says in WRONG:
            position = marked.index("^")
            query = marked[:position] + marked[position + 1:]
            with self.subTest(query):
                error = self.refuse(2, "spans", "shop", "--where", query, says=says or "--where")
                self.assertIn(f"--where: at character {position + 1}: ", error)

    def test_there_are_enough_of_both(self):
        self.assertGreaterEqual(len(RIGHT), 80)
        self.assertGreaterEqual(len(WRONG), 200)

    def test_deep_and_long_queries_are_refused(self):
        for query in ("(" * 1000 + "true" + ")" * 1000, "!" * 1000 + "true", "({}" * 500, " " * 9000 + "true"):
            self.refuse(2, "spans", "shop", "--where", query, says="--where: at character")
        self.assertEqual(len(self.selected(" || ".join(["false"] * 800) + " || true")), 5)
        self.assertEqual(len(self.selected("||".join(["{}"] * 1500))), 5)

    def test_queries_cut_at_every_byte_never_crash(self):
        query = '({ .a =~ "x|y" && span."b" >= 1h30m } >> { !(kind = server) || name != `q` })'
        for cut in range(0, len(query), int(os.environ.get("SPANPROF_TEST_CUT_STEP", "1"))):
            self.assertIn(self.run_tool("spans", "shop", "--where", query[:cut]).returncode, (1, 2))


# A query that selects nothing for what its attributes are, with ^ in front of the one that is the reason, and what is said of it.
REASONS = [
    ("^.db.rows = \"1200\"", "db.rows is a number in these files: write it without quotes"), ("{ \"1200\" = ^span.db.rows }", "without quotes"),
    ("^.db.rows != \"many\"", "is a number in these files: compare it with a number"), ("^.db.rows =~ \"12.*\"", "=~ is for text"), ("^.ratio = true", "is a number"),
    ("^.db.system = 5", "db.system is a text in these files: write it in quotes"), ("^.db.system > 5ms", "in quotes"), ("^.db.system = error", "in quotes"),
    ("^.db.system = true", "in quotes"), ("^resource.region = 5", "region is a text"), ("^.cached = \"true\"", "cached is true or false in these files"),
    ("^.cached = 1", "is true or false"), ("^.db.system", "not true or false"), ("^.tags = \"a\"", "a list or a map"),
    ("name = \"query\" && ^.db.rows = \"1\"", "without quotes"), ("{ ^.db.rows = \"1\" } >> { name = \"query\" }", "without quotes"),
    ("name = ^\"quer\"", "no span is called \"quer\"; the nearest: \"query\""), ("^\"nothing like it\" = name", "`spanprof spans --by-name` lists the names"),
    ("^.db.row = 5", "no span and no resource in the files has an attribute db.row; the nearest: .db.rows, "), ("^span.db_rows = 5", "no span in the files has an attribute db_rows; the nearest: span.db.rows, "),
    ("^span.region = \"eu\"", "the nearest: resource.region, "), ("^.spaced_key = 1", ".\"my key\""), ("^.team = \"web\"", "the nearest: instrumentation.team, "),
    ("^resource.db.rows = 5", "no resource in the files has an attribute db.rows; the nearest: span.db.rows, "), ("^instrumentation.version = \"1\"", "no instrumentation scope"),
    ("^.rows", "the nearest: .db.rows, "), ("^.nothing != nil", "no span and no resource"), ("^.old.db.system = \"sqlite\"", "the nearest: .db.system, "),
    ("resource.service.name = ^\"shopp\"", "no span has the value \"shopp\"; the nearest: \"shop\""), ("resource.region = ^\"us\"", "; there is only \"eu\""), ("^\"sqlit\" = .db.system", "no span has the value \"sqlit\"; the nearest: \"sqlite\""),
    (".db.system = ^\"nothing like it\"", "no span has the value \"nothing like it\"; there is only \"sqlite\""),
    (".pyroscope.profile.id = ^\"nothing like it\"", f"there are \"{REPORT}\", \"{QUERY}\", \"{RENDER}\", and others"),
    (".db.rows = ^5", "no span has the value 5; the nearest: 1200"), (".ratio = ^7.5", "no span has the value 7.5; the nearest: "),
    ("name = \"query\" && .db.rows = ^1201", "the nearest: 1200"), ("rootServiceName = ^\"shopp\"", "no span has the value \"shopp\"; the nearest: \"shop\""),
    ("kind = ^producer", "no span has the kind producer; there are only server, client, internal"), ("^ok = status", "no span has the status ok; there are only "),
    ("name = \"query\" && span:kind = ^unspecified", "no span has the kind unspecified"),
    ("^.nothing = .db.rows", "no span and no resource"), (".db.rows = ^.nothing", "no span and no resource"),
]
# The same, and attributes are not the reason.
OTHER_REASONS = ["duration > 1h", ".db.rows = 1200 && name = \"GET /cart\"", ".db.rows > 1201", ".db.system != .db.system", ".version != nil && .version = nil", "!(.db.rows = 1200) && name = \"query\"", ".nothing = nil && duration > 1h", ".db.rows > .db.system"]


class Nothing(QueryTest):
    """What is said of a query that is right and selects nothing."""

    def setUp(self):
        super().setUp()
        made = shop()
        made["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"].append(attribute("tags", ["a", "b"]))
        self.write("shop.traces.jsonl", json_lines(made))

    def test_an_attribute_that_is_the_reason_is_told_with_its_position(self):
        for marked, says in REASONS:
            position = marked.index("^")
            query = marked.replace("^", "")
            for command in (("spans",), ("flame",), ("spans", "--holders")):
                with self.subTest(query, command=command):
                    self.refuse(1, command[0], "shop", *command[1:], "--where", query, says=(f"no span matches --where: at character {position + 1}: ", says))

    def test_else_it_is_not_blamed(self):
        for query in OTHER_REASONS:
            with self.subTest(query):
                self.assertNotIn("at character", self.refuse(1, "spans", "shop", "--where", query, says="no span matches;"))
        self.assertNotIn("at character", self.refuse(1, "spans", "shop", "--where", "true || .nothing = 1", "--name", "x", says="no span matches --name"))

    def test_an_attribute_of_two_types_is_not_blamed(self):
        made = shop()
        made["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"].append(attribute("db.rows", "12"))
        self.write("shop.traces.jsonl", json_lines(made))
        self.refuse(1, "spans", "shop", "--where", '.db.rows = "13"', says='no span has the value "13"; the nearest: "12"')

    def test_spans_without_attributes_have_no_nearest(self):
        self.write("bare.jsonl", json_lines({"resourceSpans": [{"scopeSpans": [{"spans": [span(CART_TRACE, CART, "x", 1, 2)]}]}]}))
        self.refuse(1, "spans", "bare.jsonl", "--where", ".a = 1", says="has an attribute a; nothing in them has any")

    def test_diff_tells_it_too(self):
        self.refuse(1, "diff", "shop", "--where-a", ".db.rows = \"1\"", "--where-b", "true", says=("--where-a: at character", "without quotes"))
        self.refuse(1, "diff", "shop", "--where-a", "true", "--where-b", "duration > 1h", says="no span matches --where-b;")
        self.refuse(2, "diff", "shop", "--where-a", "true", "--where-b", "nam", says="--where-b: at character 1: nam is unknown")


class Flame(QueryTest):
    def folded(self, query, *more):
        return self.answer("flame", "shop", "--format", "folded", "--where", query, *more).splitlines()

    def test_samples_of_the_spans_and_their_descendants(self):
        self.assertEqual(len(self.folded('name = "GET /report"')), 3)
        self.assertEqual(self.folded('name = "render"', "--self"), ["main;serve;report;append_row 200000000"])
        self.assertEqual(self.folded('name = "query" || status = error'),
                         ["main;serve;cart 40000000", "main;serve;report;query_rows 30000000"])

    def test_nested_spans_count_once(self):
        self.assertEqual(self.folded("kind != client"), self.folded("true"))

    def test_with_a_trace_only_spans_of_it(self):
        self.assertEqual(self.folded("true", "--trace", CART_TRACE), ["main;serve;cart 40000000"])
        self.refuse(1, "flame", "shop", "--where", 'name = "query"', "--trace", CART_TRACE, says="no span matches")

    def test_text_says_how_many_match(self):
        self.assertIn("2 spans that match\nwith 3 descendants\n", self.answer("flame", "shop", "--where", "kind = server"))
        self.assertIn("1 span that matches\ncpu: ", self.answer("flame", "shop", "--where", 'name = "GET /cart"'))

    def test_what_cannot_be_answered(self):
        self.refuse(1, "flame", "shop", "--where", 'name = "nothing"', says="no span matches --where")
        self.refuse(1, "flame", "shop", "--self", "--where", 'name = "GET /report"', says=("1 span", "no samples"))
        self.refuse(2, "flame", "shop", "--where", "true", "--span", CART, says="--span and --where")
        self.refuse(2, "flame", "shop", "--where", "name ="  , says="at character 7")
        roots = [(names, trace, CART if trace == CART_TRACE else REPORT if trace else "", value) for names, trace, own, value in SAMPLES]
        self.write("shop.profiles.jsonl", json_lines(profiles(roots)))
        self.refuse(1, "flame", "shop", "--where", 'name = "query"', says="link scope")


if __name__ == "__main__":
    unittest.main()
