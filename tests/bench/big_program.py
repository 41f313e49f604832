#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a big program with more than 100 MB of debug information, for the benchmark of the symbolizer: C units full of structures and
of functions inlined several deep, C++ units with templates, namespaces, lambdas and the standard library. The same on each run.
Usage: big_program.py FOLDER [--compiler gcc|clang-14] [--scale F] [--flags "-g -O2 …"] [--jobs N]
Prints the path of the program, which is built once: a later run with the same folder, compiler, scale and flags finds it."""

import argparse
import concurrent.futures
import hashlib
import os
import random
import subprocess
import sys

C_UNITS, CPP_UNITS = 58, 12
STRUCTS, FIELDS = 8000, 8
HELPERS, FUNCTIONS = 48, 60


def types_header(rng):
    """Structures that refer to earlier ones; `everything` refers to all, so that each unit that uses it has them all."""
    scalars = ["uint64_t", "int32_t", "unsigned char", "double", "const char *", "uint16_t"]
    text = ["#ifndef TYPES_H", "#define TYPES_H", "#include <stdint.h>", "#include <stddef.h>"]
    for n in range(STRUCTS):
        text.append(f"struct record_{n} {{")
        for field in range(FIELDS):
            if n and rng.random() < 0.3:
                text.append(f"    struct record_{rng.randrange(n)} *link_{n}_{field};")
            else:
                text.append(f"    {rng.choice(scalars)} value_{n % 40}_{field}{rng.choice(['', '', '[4]'])};")
        text.append("    uint64_t key;\n};")
    text.append("struct everything {")
    text += [f"    struct record_{n} *all_{n};" for n in range(STRUCTS)]
    text += ["    uint64_t total;", "};", "#endif", ""]
    return "\n".join(text)


def body(rng, called, variable):
    """A few statements that change VARIABLE, with calls of functions out of CALLED."""
    lines = []
    for _ in range(rng.randrange(2, 5)):
        record, shift = rng.randrange(STRUCTS), rng.randrange(3, 29)
        lines.append(rng.choice([
            f"    if ({variable} & {1 << shift}u)\n        {variable} ^= all->all_{record}->key >> {shift};",
            f"    for (uint64_t i = 0; i < ({variable} & 7); i++)\n        {variable} += i * all->all_{record}->key;",
            f"    {variable} = {variable} * {rng.randrange(3, 99999)}u + (uint64_t)all->all_{record};",
            f"    if (__builtin_expect({variable} == {shift}u, 0))\n        give_up(\"{record}\", {variable});",
        ]))
        if called:
            lines.append(f"    {variable} += {rng.choice(called)}(all, {variable} + {shift}u);")
    return "\n".join(lines)


def c_unit(rng, unit):
    text = ['#include "types.h"', "__attribute__((cold, noreturn)) void give_up(const char *, uint64_t);"]
    levels = [[], [], [], []]
    for n in range(HELPERS):
        level = n * 4 // HELPERS
        name = f"help_{level}_{n}"
        text.append(f"static inline uint64_t {name}(struct everything *all, uint64_t seed)\n{{\n    uint64_t sum = seed;\n"
                    f"{body(rng, levels[level - 1] if level else [], 'sum')}\n    return sum;\n}}\n")
        levels[level].append(name)
    for n in range(FUNCTIONS):
        linkage = "static __attribute__((noinline)) " if n % 3 == 0 else ""
        text.append(f"{linkage}uint64_t work_{unit}_{n}(struct everything *all, uint64_t input)\n{{\n    uint64_t result = input;\n"
                    f"{body(rng, levels[rng.randrange(1, 4)], 'result')}\n    return result;\n}}\n")
    text.append(f"uint64_t unit_{unit}(struct everything *all, uint64_t x)\n{{")
    text += [f"    x += work_{unit}_{n}(all, x);" for n in range(FUNCTIONS)]
    return "\n".join(text + ["    return x;\n}\n"])


def cpp_unit(rng, unit):
    text = ['#include "types.h"', "#include <algorithm>", "#include <map>", "#include <memory>", "#include <string>", "#include <vector>",
            'extern "C" __attribute__((cold, noreturn)) void give_up(const char *, uint64_t);',
            f"namespace outer_{unit % 7} {{ namespace inner_{unit} {{",
            "template <class T, int N> struct box {\n    T items[N];\n    T sum() const\n    {\n        T total = 0;\n"
            "        for (const T &item : items)\n            total += item;\n        return total;\n    }\n"
            "    template <class F> void each(F function)\n    {\n        for (T &item : items)\n            function(item);\n    }\n};"]
    calls = []
    for n in range(24):
        size = rng.randrange(3, 40)
        text.append(f"namespace {{\nstruct shape_{n} {{\n    virtual ~shape_{n}() {{}}\n    virtual uint64_t area(struct everything *all, "
                    f"uint64_t x)\n    {{\n{body(rng, [], 'x')}\n        return x;\n    }}\n    std::string name;\n"
                    f"    std::vector<uint64_t> points;\n}};\n}}")
        text.append(f"__attribute__((noinline)) uint64_t run_{n}(struct everything *all, uint64_t x)\n{{\n"
                    f"    box<uint64_t, {size}> b{{}};\n    b.each([&](uint64_t &item) {{ item = x + all->all_{n}->key; }});\n"
                    f"    std::map<std::string, shape_{n}> shapes;\n    auto &shape = shapes[std::to_string(x)];\n"
                    f"    for (uint64_t i = 0; i < x % {size}; i++)\n        shape.points.push_back(i * x);\n"
                    f"    std::sort(shape.points.begin(), shape.points.end(),\n"
                    f"              [x](uint64_t a, uint64_t c) {{ return (a ^ x) < (c ^ x); }});\n"
                    f"{body(rng, [], 'x')}\n    return x + b.sum() + shape.area(all, x) + shape.points.size();\n}}")
        calls.append(f"    x += outer_{unit % 7}::inner_{unit}::run_{n}(all, x);")
    text.append(f'}} }}\nextern "C" uint64_t unit_{unit}(struct everything *all, uint64_t x)\n{{')
    return "\n".join(text + calls + ["    return x;\n}\n"])


def main_unit(units):
    text = ['#include "types.h"', "#include <stdio.h>", "#include <stdlib.h>",
            "__attribute__((cold, noreturn)) void give_up(const char *why, uint64_t x)\n{\n"
            '    fprintf(stderr, "%s %llu\\n", why, (unsigned long long)x);\n    abort();\n}']
    text += [f"uint64_t unit_{n}(struct everything *, uint64_t);" for n in range(units)]
    text.append("int main(int count, char **arguments)\n{\n    static struct everything all;\n    uint64_t x = (uint64_t)count;\n"
                "    (void)arguments;\n    if (count == 1)\n        return 0;")
    text += [f"    x += unit_{n}(&all, x);" for n in range(units)]
    return "\n".join(text + ["    return (int)x;\n}\n"])


def write_sources(folder, c_units, cpp_units):
    rng = random.Random(5)
    sources = {"types.h": types_header(rng), "main.c": main_unit(c_units + cpp_units)}
    sources |= {f"unit_{n}.c": c_unit(rng, n) for n in range(c_units)}
    sources |= {f"unit_{n}.cc": cpp_unit(rng, n) for n in range(c_units, c_units + cpp_units)}
    for name, text in sources.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return [name for name in sources if not name.endswith(".h")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--compiler", default="gcc", choices=["gcc", "clang-14"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--flags", default="-g -O2")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    key = hashlib.sha256(repr((open(__file__, "rb").read(), arguments.compiler, arguments.scale, arguments.flags)).encode()).hexdigest()
    folder = os.path.join(os.path.abspath(arguments.folder), key[:12])
    program = os.path.join(folder, "big_program")
    if os.path.exists(program):
        print(program)
        return
    os.makedirs(folder, exist_ok=True)
    units = write_sources(folder, max(1, int(C_UNITS * arguments.scale)), max(1, int(CPP_UNITS * arguments.scale)))
    c_compiler = arguments.compiler
    cpp_compiler = {"gcc": "g++", "clang-14": "clang++-14"}[c_compiler]

    def compile_unit(name):
        compiler = cpp_compiler if name.endswith(".cc") else c_compiler
        subprocess.run(["nice", compiler, *arguments.flags.split(), "-w", "-c", name, "-o", name + ".o"], cwd=folder, check=True)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(compile_unit, units))
    subprocess.run([cpp_compiler, "-Wl,--build-id", "-o", program + ".new", *[name + ".o" for name in units]], cwd=folder, check=True)
    for name in units:
        os.remove(os.path.join(folder, name + ".o"))
    os.replace(program + ".new", program)
    print(program)


if __name__ == "__main__":
    sys.exit(main())
