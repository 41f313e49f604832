#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""postgres_truth.py EXTENSION TRUTH_LIBRARY SPANPROF_LIBRARY [--rounds N] [--minimum-samples N]: statements in several backends, nested, planned,
failing, cancelled, in cursors that take turns, by parallel workers; is every sample linked to the statement that it was taken in?

A statement's text, which its span has as db.query.text, begins with its work: work K. Planner and executor have spans of their own, of the
same work."""
import glob, os, random, re, sys, tempfile
import postgres_server
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import truth
from truth import verdict

SETTINGS = """
spanprof.query_text = on
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
max_parallel_workers = 8
"""
TRACE = "0af7651916cd43dd8448eb211c80319c"
WORKS = 64  # of truth_work.h


def script(rounds, seed):
    """SQL of one session. The works of statements that follow each other differ."""
    choose = random.Random(seed)
    lines = ["LOAD 'plpgsql';"]
    for _ in range(rounds):
        a, b, c, d, e, f = choose.sample(range(WORKS), 6)
        us = choose.randrange(200, 1000, 50)
        lines += [
            f"/* work {a} */ SELECT truth_work({a}, {us});",
            f"/* work {b} */ SELECT truth_outer({b}, {us}, {c}) /*traceparent='00-{TRACE}-b7ad6b7169203331-01'*/;",
            f"/* work {d} */ SELECT truth_plan({d}, {us});",
            f"/* work {a} */ SELECT truth_work({a}, {us}), 1 / (truth_work({a}, 1) - 1);",
            f"/* work {e} */ SELECT truth_caught({e}, {us}, {f});",
            f"BEGIN; SET LOCAL statement_timeout = '2ms'; /* work {c} */ SELECT truth_work({c}, 100000); ROLLBACK;",
            "BEGIN; SET LOCAL spanprof.track = 'none'; SELECT truth_nothing(500); COMMIT;",
            f"BEGIN; /* work {d} */ DECLARE one CURSOR FOR SELECT truth_work({d}, 50) FROM generate_series(1, 100);",
            f"/* work {f} */ DECLARE two CURSOR FOR SELECT truth_work({f}, 50) FROM generate_series(1, 100);",
            "FETCH 4 FROM one;", "FETCH 4 FROM two;", "FETCH 4 FROM one;", f"/* work {b} */ SELECT truth_work({b}, {us});",
            "FETCH 4 FROM two; COMMIT;",
            f"/* work {e} */ PREPARE p AS SELECT truth_work({e}, {us}); EXECUTE p; EXECUTE p; DEALLOCATE p;",
        ]
    a = choose.randrange(WORKS)
    lines += [f"/* work {a} */ SELECT sum(truth_work({a}, 50)) FROM rows_of_truth WHERE i <= 1500;"]
    return "\n".join(lines)


def labels(spans):
    """{ids: work} of statements and of their phases."""
    found = {}
    for ids, span in spans.items():
        match = re.search(r"work (\d+) ", span.attributes.get("db.query.text", ""))
        if match:
            found[ids] = match.group(1)
    for ids, span in spans.items():
        parent = (ids[0], span.parent)
        if span.name in ("plan", "execute") and parent in found:
            found[ids] = found[parent]
    return found


def rounds(text):
    """For argparse: in the short form not so few that the sessions' begin, which names no work, is a large part of them. With 20 rounds
    it is a quarter on some days, and three runs of those take longer than one of 40."""
    return max(verdict.count(text), min(int(text), 40))


def check_spans(spans):
    """What must be among SPANS, or a reason to fail."""
    statements = [(ids, s) for ids, s in spans.items() if "db.query.text" in s.attributes]
    continued = [s for ids, s in statements if ids[0] == TRACE and s.parent == "b7ad6b7169203331"]
    nested = [s for ids, s in statements if ids[0] == TRACE and spans.get((TRACE, s.parent), s).name == "execute"]
    errors = {s.attributes.get("db.response.status_code") for _, s in statements}
    names = {s.name for s in spans.values()}
    for what, is_there in (("continued traces", continued), ("nested statements", nested), ("divisions by zero", "22012" in errors),
                           ("cancelled statements", "57014" in errors), ("planners", "plan" in names),
                           ("parallel workers", "parallel worker postgres" in names)):
        if not is_there:
            verdict.fail(f"there are no spans of {what}; names are {sorted(names)}")


def run_scripts(postgres, rounds, backends):
    sessions = []
    for i in range(backends):
        file = f"{postgres.directory}/session-{i}.sql"
        open(file, "w").write(script(rounds, i))
        sessions.append(postgres.client("psql", "-X", "-q", "-f", file))
    for session in sessions:
        session.communicate()


def run_pgbench(postgres, transactions):
    """The extended protocol: each script is parsed, planned and executed by messages of their own."""
    arguments = []
    for k in range(8):
        file = f"{postgres.directory}/bench-{k}.sql"
        open(file, "w").write(f"/* work {k} */ SELECT truth_work({k}, 300);\n")
        arguments += ["-f", file]
    for mode in ("extended", "prepared"):
        done = postgres.client("pgbench", "-n", "-M", mode, "-c", "4", "-t", str(transactions), *arguments)
        said = done.communicate()[0]
        if done.returncode:
            sys.exit("FAILED: pgbench: " + said)


def main():
    parser = truth.arguments(__doc__)
    parser.add_argument("extension")
    parser.add_argument("truth_library")
    parser.add_argument("spanprof_library")
    parser.add_argument("--rounds", type=rounds, default="60")
    parser.add_argument("--backends", type=int, default=4)
    arguments = parser.parse_args()
    for name in ("psql", "pgbench", "initdb", "postgres"):
        postgres_server.program(name)
    directory = tempfile.TemporaryDirectory()
    prefix = directory.name + "/truth"
    environment = truth.environment(prefix, arguments.hz, arguments.engine, SPANPROF_WINDOW_MS="1000")
    libraries = [arguments.extension, arguments.truth_library, arguments.spanprof_library]
    server = postgres_server.Server(directory.name, libraries, SETTINGS, environment)
    with server as postgres:
        functions = open(os.path.join(os.path.dirname(__file__), "postgres", "functions.sql")).read()
        library = os.path.join(directory.name, os.path.basename(arguments.truth_library))
        postgres.sql(f"\\set library '{library}'\n" + functions)
        run_scripts(postgres, arguments.rounds, arguments.backends)
        run_pgbench(postgres, arguments.rounds)
    prefixes = [p[: -len(".profiles.jsonl")] for p in glob.glob(prefix + ".*.profiles.jsonl")]
    truth.skip_without(arguments.engine, prefixes)
    run = truth.Run(directory, prefixes, "")
    spans = run.spans()
    check_spans(spans)
    truth.finish("PostgreSQL", run, truth.judge(run.samples(), labels(spans)), minimum=arguments.minimum_samples, labels=arguments.labels)


if __name__ == "__main__":
    main()
