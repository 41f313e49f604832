#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""snippets.py TREE CC CXX: each block of C or C++ in README.md and docs/ compiles against the headers of the tree.

A block is a program, or a piece of one. What a piece leaves to the reader is declared in DECLARATIONS, by page and number of the block.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

INCLUDES = "#include <errno.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n#include <unistd.h>\n"

# Declarations; and whether the block stands inside a function. None: it needs headers that are not here.
INSIDE, OUTSIDE = True, False
DECLARATIONS = {
    ("README.md", 1): ("void load_orders(void); void render_report(void);", OUTSIDE),
    ("README.md", 2): ("extern const char *traceparent_header; struct request; extern struct request *request; void serve(struct request *);",
                       INSIDE),
    ("README.md", 3): ("struct job { spanprof_context context; }; void render(struct job *); void queue_add(struct job *);", OUTSIDE),
    ("README.md", 4): ("struct job { spanprof_span span; }; void render(struct job *); void queue_add(struct job *);", OUTSIDE),
    ("README.md", 5): ("extern spanprof_span span; extern const char *const items[]; extern uint32_t item_count;", INSIDE),
    ("README.md", 6): ("#include <exception>\n#include <thread>\nextern std::exception &exception; void render();", INSIDE),
    ("README.md", 7): ("#include <functional>\n#include <memory>\n#include <thread>\nvoid render();", INSIDE),
    ("docs/limits.md", 1): ("#include <signal.h>\nvoid serve_next_request(void);", OUTSIDE),
    ("docs/fork.md", 1): ("void serve_requests(void);", INSIDE),
    ("docs/design/carriers.md", 1): ("#include <ucontext.h>\n#include <spanprof/fiber.h>\nextern spanprof_fiber to; extern ucontext_t here, there;",
                                     INSIDE),
    ("docs/design/processors.md", 1): ("struct span { const char *name; }; spanprof_context context_of(struct span *);\n"
                                       "spanprof_context context_of_parent(struct span *);\n"
                                       "void span_set_string(struct span *, const char *, const char *);", OUTSIDE),
    ("docs/design/processors.md", 2): ("extern struct counters { int errors; } my_counters; void count_error(void *, const char *);", INSIDE),
    ("docs/design/sample-attributes.md", 1): ("extern spanprof_span_options options;", INSIDE),
    ("docs/tracers/opentelemetry-cpp.md", 1): None,
}


def blocks(tree):
    pages = ["README.md"] + sorted(os.path.relpath(page, tree) for page in glob.glob(f"{tree}/docs/**/*.md", recursive=True))
    for page in pages:
        with open(os.path.join(tree, page), encoding="utf-8") as file:
            found = re.findall(r"^```(c|cpp)\n(.*?)^```", file.read(), flags=re.S | re.M)
        for number, (language, text) in enumerate(found, 1):
            yield page, number, language, text


def source_of(page, number, language, text):
    declared, inside = DECLARATIONS[page, number]
    header = "#include <spanprof/spanprof.hpp>\n" if language == "cpp" else "#include <spanprof/spanprof.h>\n"
    text = text.replace("= …;", "= {0};")
    functions = ""
    while re.match(r"static [^;{]*\n\{", text):  # a callback in front of the lines that use it
        end = text.index("\n}\n") + 3
        functions, text = functions + text[:end], text[end:]
    body = f"void snippet(void)\n{{\n{text}}}\n" if inside else text
    return INCLUDES + header + declared + "\n" + functions + body


def compiles(tree, compilers, language, source):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"snippet.{language}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        standard = "-std=c++17" if language == "cpp" else "-std=gnu11"
        done = subprocess.run([compilers[language], standard, "-Wall", "-Wno-unused", "-Werror", "-fsyntax-only",
                               f"-I{tree}/include", path], capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def main():
    tree, compilers = sys.argv[1], {"c": sys.argv[2], "cpp": sys.argv[3]}
    failed, count = 0, 0
    if compiles(tree, compilers, "c", source_of("docs/fork.md", 1, "c", "no_such_call();\n"))[0]:
        sys.exit("self-check: a call of a function that is not declared compiles")
    for page, number, language, text in blocks(tree):
        count += 1
        if (page, number) not in DECLARATIONS:
            print(f"{page}: block {number} of C is not in tests/headers/snippets.py: declare there what it uses")
            failed += 1
            continue
        if DECLARATIONS[page, number] is None:
            print(f"not compiled: {page}, block {number}: its headers are not here")
            continue
        done, errors = compiles(tree, compilers, language, source_of(page, number, language, text))
        if not done:
            print(f"{page}: block {number} does not compile:\n{errors}")
            failed += 1
    print(f"{count} blocks, {failed} failed")
    sys.exit(failed != 0)


main()
