#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""house.py TREE: rules of the house that can be checked without a build (CONTRIBUTING.md, "Rules that are checked").

1. A folder of src/ includes only itself and folders before it in ORDER, in which who calls is below what it calls.
2. No two files of src/ and include/ have one name.
3. Links between the pages of the tree lead to a file, and to a heading where they name one.
4. Files of src/ and tests/ that pages and comments name in full exist.
5. No function of src/ is longer than 60 lines.
6. The way of the data (docs/design/way.md) names files and functions that exist.
7. Each page below docs/ is linked from docs/README.md.
8. Each variable that src/ names in full is in docs/settings.md, and each that stands there is known to src/sdk/variables.c.
9. No line of src/ and include/ is wider than 100 columns, except rows of tables in comments.
10. No file but src/core/worker.c creates a thread or initializes a condition, unless docs/design/worker.md names it with its reason.
11. No two sources of src/, each with its header, include each other, also not by way of others, unless CONTRIBUTING.md names them with the reason.

Each rule first proves on a small tree of its own that it would see a violation.
"""
import os
import re
import sys
import tempfile

ORDER = ["core", "context", "trace", "unwind", "cpu", "wall", "call", "alloc", "lock", "preload", "symbol", "profile", "proto", "wire", "export", "collect",
         "sdk", "run", "outside", "attach", "tool/text", "tool/read", "tool/model", "tool/draw", "tool/check", "tool/command"]
FUNCTION_LINES = 60
COLUMNS = 100
VARIABLES = "src/sdk/variables.c"
OTHERWISE = "Threads that live otherwise"
EACH_OTHER = "Files that include each other"
PAGES = ("README.md", "CONTRIBUTING.md", "docs", "examples")


def files(tree, *parts, ends):
    """Paths below the given parts of TREE, relative to it, in order."""
    found = []
    for part in parts:
        top = os.path.join(tree, part)
        if os.path.isfile(top):
            found.append(part)
        for folder, inner, names in os.walk(top):
            inner[:] = [name for name in inner if name not in ("node_modules", "target", "__pycache__")]
            found += [os.path.relpath(os.path.join(folder, name), tree) for name in names if name.endswith(ends)]
    return sorted(found)


def read(tree, path):
    with open(os.path.join(tree, path), encoding="utf-8") as file:
        return file.read()


def folder_of(path):
    """core/log.h: core; tool/read/input.h: tool/read, because the tool's folders have an order of their own."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "tool" and len(parts) > 2 else parts[0]


def include_order(tree):
    for path in files(tree, "src", ends=(".c", ".h")):
        folder = folder_of(path[len("src/"):])
        for number, line in enumerate(read(tree, path).split("\n"), 1):
            found = re.match(r'\s*#\s*include\s*["<]([^">]+)', line)
            target = found.group(1) if found and '"' in line else ""
            if target.startswith("../"):
                yield f'{path}:{number}: includes "{target}": name it by its folder'
            elif "/" not in target or target.startswith("spanprof/"):
                continue  # beside the file that includes it, or the public contract
            elif folder not in ORDER:
                yield f"{path}:{number}: the folder {folder} has no place in the order"
            elif folder_of(target) not in ORDER:
                yield f'{path}:{number}: includes "{target}", whose folder has no place in the order'
            elif ORDER.index(folder_of(target)) > ORDER.index(folder):
                yield f'{path}:{number}: {folder} includes "{target}", which comes after it'


def one_name(tree):
    homes = {}
    for path in files(tree, "src", "include", ends=(".c", ".h", ".hpp")):
        homes.setdefault(os.path.basename(path), []).append(path)
    for name, paths in sorted(homes.items()):
        if len(paths) > 1:
            yield f"{name} is the name of {' and '.join(paths)}"


def anchors(text):
    """The names that a page's headings have in links."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(tree):
    for path in files(tree, *PAGES, ends=(".md",)):
        for target in re.findall(r"\]\(([^)\s]+)\)", read(tree, path)):
            name, _, anchor = target.partition("#")
            if re.match(r"\w+:", target):
                continue
            page = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(os.path.join(tree, page)):
                yield f"{path}: links to {target}, which is not there"
            elif anchor and page.endswith(".md") and anchor not in anchors(read(tree, page)):
                yield f"{path}: links to {target}, and {page} has no such heading"


def named_files(tree):
    """A name in capitals stands for any; what the build makes (.pb-c.h) is not in the tree."""
    named = re.compile(r"(?<![\w/.-])((?:src|tests|include|docs|scripts|proto|cmake)/[\w./-]*\w\.(?:c|h|hpp|cpp|py|sh|md|txt|cmake|proto))\b")
    for path in files(tree, *PAGES, "src", "include", "tests", "cmake", ends=(".md", ".c", ".h", ".hpp", ".py", ".sh", ".cmake", ".txt")):
        for name in () if path.startswith("tests/lint/") else named.findall(read(tree, path)):
            if name.endswith(".pb-c.h") or re.search("[A-Z]{2}", os.path.basename(os.path.dirname(name)) + name.split("_")[-1]):
                continue
            if not os.path.exists(os.path.join(tree, name)):
                yield f"{path}: names {name}, which is not there"


def functions(text):
    """(name, lines) of each function of a C file in our format: its brace opens and closes in the first column."""
    start = None
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 6):start])
            names = re.findall(r"(\w+)\(", head)
            yield (names[-1] if names else "?", number - start + 1)
            start = None


def short_functions(tree):
    for path in files(tree, "src", ends=(".c", ".h")):
        for name, lines in functions(read(tree, path)):
            if lines > FUNCTION_LINES:
                yield f"{path}: {name} has {lines} lines, {FUNCTION_LINES} are allowed"


def way(tree):
    """Rows | step | `file` | `function` | … of the page's table."""
    path = "docs/design/way.md"
    if not os.path.exists(os.path.join(tree, path)):
        yield f"{path} is not there"
        return
    rows = re.findall(r"^\|[^|]*\| `(src/[^`]+)` \| `(\w+)` \|", read(tree, path), flags=re.M)
    if len(rows) < 8:
        yield f"{path} has {len(rows)} steps: the table `| step | file | function |` was not found"
    for file, function in rows:
        if not os.path.exists(os.path.join(tree, file)):
            yield f"{path}: {file} is not there"
        elif not re.search(rf"^[^\n;]*\b{function}\([^;]*?^{{", read(tree, file), flags=re.S | re.M):
            yield f"{path}: {file} does not define {function}"


def index(tree):
    """Pages of docs/ that its index does not link, except the index."""
    pages = set(files(tree, "docs", ends=(".md",))) - {"docs/README.md"}
    linked = re.findall(r"\]\(([^)#\s]+\.md)", read(tree, "docs/README.md") if pages else "")
    for page in sorted(pages - {os.path.normpath(os.path.join("docs", link)) for link in linked}):
        yield f"{page} is not linked from docs/README.md"


def settings(tree):
    named = {name for path in files(tree, "src", ends=(".c", ".h"))
             for name in re.findall(r'"((?:SPANPROF|OTEL)_[A-Z_]*[A-Z])"', read(tree, path))} - {"OTEL_CTX"}  # a mapping's
    told = read(tree, "docs/settings.md") if named else ""
    for name in sorted(named):
        if not re.search(rf"\b{name}\b", told):
            yield f"docs/settings.md does not say what {name} is"
    listed = read(tree, VARIABLES) if os.path.exists(os.path.join(tree, VARIABLES)) else ""
    for name in sorted(set(re.findall(r"`SPANPROF_((?!ERROR_)[A-Z_]*[A-Z])`", told))):
        if listed and f'"{name}"' not in listed:
            yield f"{VARIABLES} does not know SPANPROF_{name}, which docs/settings.md has"


def narrow(tree):
    for path in files(tree, "src", "include", ends=(".c", ".h", ".hpp")):
        for number, line in enumerate(read(tree, path).split("\n"), 1):
            if len(line) > COLUMNS and not re.match(r" \* +\|.*\|$", line):
                yield f"{path}:{number}: {len(line)} columns, {COLUMNS} are allowed"


def threads(tree):
    """Files that create threads or initialize conditions, and those that the section of docs/design/worker.md names."""
    page = os.path.join(tree, "docs/design/worker.md")
    _, _, section = read(tree, "docs/design/worker.md").partition(f"\n## {OTHERWISE}\n") if os.path.exists(page) else ("", "", "")
    excused = set(re.findall(r"`(src/[\w/]+\.c)`", section.split("\n## ")[0]))
    makes = re.compile(r"\b(?:(?:pthread|sp_worker_thread|thrd)_create|(?:pthread_cond|sp_condition|cnd)_init)\(|\bPTHREAD_COND_INITIALIZER\b")
    found = {path for path in files(tree, "src", ends=(".c",)) if makes.search(read(tree, path))} - {"src/core/worker.c"}
    for path in sorted(found - excused):
        yield f'{path}: creates a thread or a condition: use core/worker, or give the reason in docs/design/worker.md, "{OTHERWISE}"'
    for path in sorted(excused - found):
        yield f'docs/design/worker.md: "{OTHERWISE}" names {path}, which creates no thread and no condition'


def included_sources(tree):
    """Source without its ending: the sources that it or its header includes. Headers without a source are no knots."""
    sources = {path[len("src/"):-2] for path in files(tree, "src", ends=".c")}
    found = {source: set() for source in sources}
    for path in files(tree, "src", ends=(".c", ".h")):
        unit = path[len("src/"):-2]
        if unit in sources:
            found[unit] |= {name[:-2] for name in re.findall(r'#\s*include\s*"([^"]+)"', read(tree, path)) if name[:-2] in sources - {unit}}
    return found


def reached(knots, start):
    seen, left = set(), [start]
    while left:
        for following in knots[left.pop()] - seen:
            seen.add(following)
            left.append(following)
    return seen


def circles(tree):
    knots = included_sources(tree)
    reach = {knot: reached(knots, knot) for knot in knots}
    rings = {frozenset(other for other in reach[knot] if knot in reach[other]) for knot in knots if knot in reach[knot]}
    text = read(tree, "CONTRIBUTING.md") if os.path.exists(os.path.join(tree, "CONTRIBUTING.md")) else ""
    section = text.partition(f"## {EACH_OTHER}\n")[2].partition("\n## ")[0]
    named = {frozenset(re.findall(r"`([a-z_/0-9]+)`", row.split("|")[1])) for row in section.split("\n") if row.startswith("| `")}
    for ring in sorted(sorted(ring) for ring in rings - named):
        yield f"src/: {', '.join(ring)} include each other: put what they share into a header of its own, or give the reason in CONTRIBUTING.md"
    for ring in sorted(sorted(ring) for ring in named - rings):
        yield f"CONTRIBUTING.md: {', '.join(ring)} do not include each other"


RULES = (include_order, one_name, links, named_files, short_functions, way, index, settings, narrow, threads, circles)
WAY = "| a | `src/core/a.c` | `made` |\n"

# For each rule: files that keep it, files that break it, and what is said of them.
SELF_CHECK = (
    (include_order, {"src/sdk/a.c": '#include "core/a.h"\n#include <sys/types.h>\n#include "b.h"\n'},
     {"src/core/a.c": '#  include "sdk/a.h"\n'}, 'core includes "sdk/a.h"'),
    (include_order, {"src/tool/read/a.c": '#include "tool/text/a.h"\n'},
     {"src/tool/text/a.c": '#include "tool/read/a.h"\n'}, "tool/text includes"),
    (include_order, {"src/core/a.c": ""}, {"src/core/a.c": '#include "else/a.h"\n'}, "has no place"),
    (include_order, {"src/core/a.c": ""}, {"src/core/a.c": '#include "../sdk/a.h"\n'}, "name it by its folder"),
    (one_name, {"src/core/a.c": ""}, {"src/core/a.c": "", "src/sdk/a.c": ""}, "is the name of"),
    (links, {"docs/a.md": "[b](b.md#two-words)", "docs/b.md": "# Two `words`\n"}, {"docs/a.md": "[b](c.md)"}, "not there"),
    (links, {"docs/a.md": "[b](#b)\n# B\n"}, {"docs/a.md": "[b](#c)\n# B\n"}, "no such heading"),
    (named_files, {"docs/a.md": "`src/core/a.c`", "src/core/a.c": ""}, {"docs/a.md": "`src/core/gone.c`"}, "gone.c"),
    (short_functions, {"src/core/a.c": "int f(void)\n{\n}\n"}, {"src/core/a.c": "int f(void)\n{\n" + "\n" * 60 + "}\n"}, "f has 62"),
    (way, {"docs/design/way.md": WAY * 8, "src/core/a.c": "int made(int a)\n{\n}\n"},
     {"docs/design/way.md": WAY * 8, "src/core/a.c": "int made(int a);\nint other(void)\n{\n}\n"}, "does not define made"),
    (way, {"docs/design/way.md": WAY * 8, "src/core/a.c": "int made(int a)\n{\n}\n"}, {"docs/design/way.md": ""}, "0 steps"),
    (index, {"docs/README.md": "[a](a.md)", "docs/a.md": ""}, {"docs/README.md": "", "docs/a.md": ""}, "a.md is not linked"),
    (settings, {"docs/settings.md": "`SPANPROF_A`", "src/core/a.c": 'env("SPANPROF_A")'},
     {"docs/settings.md": "`SPANPROF_AB`", "src/core/a.c": 'env("SPANPROF_A")'}, "SPANPROF_A is"),
    (settings, {"docs/settings.md": "`SPANPROF_A`", "src/sdk/variables.c": '"A" env("SPANPROF_A")'},
     {"docs/settings.md": "`SPANPROF_A` `SPANPROF_B`", "src/sdk/variables.c": '"A" env("SPANPROF_A")'}, "does not know SPANPROF_B"),
    (threads, {"docs/design/worker.md": f"\n## {OTHERWISE}\n`src/core/a.c`\n", "src/core/a.c": "pthread_create(t)",
               "src/core/worker.c": "pthread_cond_init(c)", "src/core/b.c": "sp_worker_start(w)"},
     {"docs/design/worker.md": f"`src/core/a.c`\n## {OTHERWISE}\n", "src/core/a.c": "pthread_create(t)"}, "src/core/a.c: creates"),
    (threads, {"src/core/a.c": "sp_condition_waits(c)"}, {"src/core/a.c": "sp_condition_init(c)"}, "src/core/a.c: creates"),
    (threads, {"src/core/a.c": "#define X PTHREAD_COND_INITIALIZERS"}, {"src/core/a.c": "= PTHREAD_COND_INITIALIZER;"}, "src/core/a.c: creates"),
    (threads, {"docs/design/worker.md": ""}, {"docs/design/worker.md": f"\n## {OTHERWISE}\n`src/core/a.c`", "src/core/a.c": ""}, "which creates no"),
    (circles, {"src/core/a.c": '#include "core/b.h"', "src/core/b.c": "", "src/core/b.h": '#include "core/c.h"', "src/core/c.h": '#include "core/a.h"'},
     {"src/core/a.c": '#include "core/b.h"', "src/core/b.c": "", "src/core/b.h": '#include "core/a.h"'}, "core/a, core/b include each other"),
    (circles, {"CONTRIBUTING.md": f"## {EACH_OTHER}\n| `core/a`, `core/b` | b |\n", "src/core/a.c": '#include "core/b.h"',
               "src/core/b.c": '#include "core/a.h"'},
     {"CONTRIBUTING.md": f"## {EACH_OTHER}\n| `core/a`, `core/b` | b |\n", "src/core/a.c": "", "src/core/b.c": ""}, "do not include"),
    (narrow, {"src/core/a.c": " * | " + "-" * 100 + " |\n"}, {"src/core/a.c": "x" * 101}, "101 columns"),
)


def found_in(rule, contents):
    with tempfile.TemporaryDirectory() as tree:
        for path, text in contents.items():
            os.makedirs(os.path.join(tree, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                file.write(text)
        return list(rule(tree))


def self_check():
    for rule, good, bad, said in SELF_CHECK:
        if found_in(rule, good):
            sys.exit(f"self-check: {rule.__name__} refuses what is right: {found_in(rule, good)}")
        if not any(said in line for line in found_in(rule, bad)):
            sys.exit(f"self-check: {rule.__name__} does not say '{said}', but {found_in(rule, bad)}")


def main():
    self_check()
    violations = [line for rule in RULES for line in rule(sys.argv[1])]
    print("\n".join(violations) if violations else f"{len(RULES)} rules are kept")
    sys.exit(bool(violations))


main()
