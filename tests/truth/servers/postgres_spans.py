#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""postgres_spans.py EXTENSION TRUTH_LIBRARY SPANPROF_LIBRARY: statements that are planned together before the first is executed (rules with several actions, SQL functions)
are one span each, with its planner and its executor; parallel workers have a parent or no span; a backend that is terminated says so; statements that an extension plans and runs without their text, or
with a place that is not in it, have spans without a text."""
import collections, glob, os, sys, tempfile
import postgres_server
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import truth

SETTINGS = """
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
max_parallel_workers = 8
"""
FUNCTIONS = """
CREATE TABLE orders (i int);
CREATE TABLE log (i int);
CREATE RULE twice AS ON INSERT TO orders DO ALSO (INSERT INTO log VALUES (NEW.i); INSERT INTO log VALUES (NEW.i + 1); UPDATE log SET i = 1 WHERE i = 2);
CREATE FUNCTION atomic(x int) RETURNS bigint LANGUAGE sql VOLATILE
BEGIN ATOMIC
    INSERT INTO log VALUES (x);
    INSERT INTO log VALUES (x + 1);
    SELECT count(*) FROM log;
END;
CREATE FUNCTION of_rule(x int) RETURNS void AS 'BEGIN INSERT INTO orders VALUES (x); INSERT INTO orders VALUES (x + 1); END' LANGUAGE plpgsql;
CREATE TABLE many AS SELECT i FROM generate_series(1, 2000) AS i;
ALTER TABLE many SET (parallel_workers = 2);
ANALYZE many;
CREATE FUNCTION parallel() RETURNS void AS 'BEGIN PERFORM count(*) FROM many; END' LANGUAGE plpgsql;
CREATE FUNCTION without_text() RETURNS int AS '%(library)s', 'truth_without_text_sql' LANGUAGE C VOLATILE;
CREATE FUNCTION outside_text() RETURNS int AS '%(library)s', 'truth_outside_text_sql' LANGUAGE C VOLATILE;
"""
PARENT = "b7ad6b7169203331"

# Each in a trace of its own: what is done, and how many spans of which statements it has.
RULE = {"INSERT": 3, "UPDATE": 1}
CASES = {
    "rule": ("INSERT INTO orders VALUES (1)", RULE),
    "atomic": ("SELECT atomic(1)", {"SELECT": 2, "INSERT": 2}),
    "both": ("SELECT atomic(1) + atomic(2)", {"SELECT": 3, "INSERT": 4}),
    "of_rule": ("SELECT of_rule(1)", {"SELECT": 1, "INSERT": 6, "UPDATE": 2}),
    "again": ("SELECT of_rule(1)", {"SELECT": 1, "INSERT": 6, "UPDATE": 2}),
    "without_text": ("SET spanprof.query_text = on; SELECT without_text()", {"SELECT": 2}),
    "outside_text": ("SET spanprof.query_text = on; SELECT outside_text()", {"SELECT": 2}),
}


def trace_id(name):
    return name.encode().hex().ljust(32, "1")


def comment(name):
    return f"/*traceparent='00-{trace_id(name)}-{PARENT}-01'*/"


def check(condition, what):
    if not condition:
        sys.exit("FAILED: " + what)


def check_statements(spans, name, wanted):
    """All spans of trace NAME: so many statements, each with a planner and an executor of its own."""
    trace = {ids: span for ids, span in spans.items() if ids[0] == trace_id(name)}
    statements = {ids: span for ids, span in trace.items() if "db.operation.name" in span.attributes}
    counts = collections.Counter(span.attributes["db.operation.name"] for span in statements.values())
    check(counts == wanted, f"{name}: statements {dict(counts)}, wanted {wanted}")
    for ids in statements:
        phases = sorted(span.name for span in trace.values() if span.parent == ids[1] and span.name in ("plan", "execute"))
        check(phases == ["execute", "plan"], f"{name}: a statement has phases {phases}")


def check_texts(spans, name):
    """The client's statement of trace NAME has its text, the one that the extension runs has none."""
    texts = [span.attributes.get("db.query.text") for ids, span in spans.items()
             if ids[0] == trace_id(name) and "db.operation.name" in span.attributes]
    wanted = f"SELECT {name}() {comment(name)}"
    check(sorted(texts, key=str) == [None, wanted], f"{name}: texts {texts}")


def terminate(postgres):
    """A statement that is under way when its backend has to end."""
    client = postgres.client("psql", "-X", "-q", "-c", f"SELECT pg_sleep(600) {comment('terminated')}")
    postgres_server.wait_for(lambda: postgres.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND wait_event = 'PgSleep'"),
        "the statement does not sleep")
    client.communicate()


def main():
    extension, truth_library, spanprof_library = sys.argv[1:]
    for name in ("psql", "pgbench", "initdb", "postgres"):
        postgres_server.program(name)
    directory = tempfile.TemporaryDirectory()
    prefix = directory.name + "/spans"
    with postgres_server.Server(directory.name, [extension, truth_library, spanprof_library], SETTINGS, truth.environment(prefix, 99)) as postgres:
        postgres.sql("LOAD 'plpgsql';\n" + FUNCTIONS % {"library": directory.name + "/" + os.path.basename(truth_library)})
        postgres.sql("".join(f"{sql} {comment(name)};\n" for name, (sql, _) in CASES.items()))
        # What was planned and not executed is nobody's plan.
        postgres.sql(f"BEGIN; EXPLAIN INSERT INTO orders VALUES (1); INSERT INTO orders VALUES (1) {comment('explained')}; COMMIT;")
        for mode in ("simple", "extended", "prepared"):
            file = f"{directory.name}/{mode}.sql"
            open(file, "w").write(f"INSERT INTO orders VALUES (1) {comment(mode)};\n")
            bench = postgres.client("pgbench", "-n", "-M", mode, "-t", "1", "-f", file)
            said = bench.communicate()[0]
            check(bench.returncode == 0, said)
        for track in ("top", "all"):
            postgres.sql(f"LOAD 'plpgsql'; SET spanprof.track = '{track}'; SELECT parallel() {comment('parallel ' + track)};")
        terminate(postgres)
    run = truth.Run(directory, [p[: -len(".profiles.jsonl")] for p in glob.glob(prefix + ".*.profiles.jsonl")], "")
    spans = run.spans()
    for name, (_, wanted) in CASES.items():
        check_statements(spans, name, wanted)
    for name in ("explained", "simple", "extended", "prepared"):
        check_statements(spans, name, RULE)
    for name in ("without_text", "outside_text"):
        check_texts(spans, name)
    workers = [(ids, span) for ids, span in spans.items() if span.name.startswith("parallel worker")]
    check(all(span.parent for _, span in workers), "a parallel worker began a trace")
    for track in ("top", "all"):
        check(any(ids[0] == trace_id("parallel " + track) for ids, _ in workers), f"no parallel worker with track = {track}")
    ended = [span for ids, span in spans.items() if ids[0] == trace_id("terminated") and "db.operation.name" in span.attributes]
    check([span.attributes.get("error.type") for span in ended] == ["57P01"], f"terminated: {[span.attributes for span in ended]}")
    print(f"{len(spans)} spans, each where it belongs")


if __name__ == "__main__":
    main()
