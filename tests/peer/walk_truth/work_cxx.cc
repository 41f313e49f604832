// SPDX-License-Identifier: Apache-2.0
// Exceptions through many frames, with clean-ups on the way, thrown anew, nested, in destructors, from constructors; virtual
// inheritance; the standard library's containers and streams. For ever, on two threads.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((noinline))

static volatile unsigned sink;

NOINLINE static void spin(unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++)
        sink = sink + i;
}

struct Guard {
    explicit Guard(unsigned rounds) : rounds(rounds) {}
    NOINLINE ~Guard() { spin(rounds); }
    unsigned rounds;
};

struct Problem : std::runtime_error {
    explicit Problem(unsigned depth) : std::runtime_error("at depth " + std::to_string(depth)), depth(depth) {}
    unsigned depth;
};

NOINLINE static unsigned throw_deep(unsigned depth) {
    Guard guard(5);
    std::string text(depth, 'x');
    if (depth == 0)
        throw Problem(depth);
    return throw_deep(depth - 1) + static_cast<unsigned>(text.size());
}

NOINLINE static unsigned rethrow(unsigned depth) {
    try {
        return depth ? rethrow(depth - 1) : throw_deep(8);
    } catch (const std::exception &) {
        Guard guard(20);
        throw;
    }
}

// An exception that is caught while another one unwinds.
struct Careful {
    NOINLINE ~Careful() {
        try {
            throw_deep(3);
        } catch (const Problem &problem) {
            sink = problem.depth;
        }
    }
};

NOINLINE static void nest(unsigned depth) {
    Careful careful;
    try {
        throw_deep(depth);
    } catch (const Problem &) {
        std::throw_with_nested(std::logic_error("outer"));
    }
}

NOINLINE static void look_inside(const std::exception &error, unsigned depth) {
    try {
        std::rethrow_if_nested(error);
    } catch (const std::exception &inner) {
        look_inside(inner, depth + 1);
    }
}

struct Member {
    explicit Member(unsigned number) : text(number + 1, 'm') {
        if (number == 5)
            throw number;
    }
    std::string text;
};

struct Shape {
    explicit Shape(unsigned id) : id(id) {}
    virtual ~Shape() = default;
    virtual unsigned area(unsigned round) const = 0;
    virtual Shape *copy() const = 0;
    unsigned id;
};

struct Wide : virtual Shape {
    Wide() : Shape(1) {}
    unsigned area(unsigned round) const override { return round + id + width; }
    unsigned width = 3;
};

struct High : virtual Shape {
    High() : Shape(2) {}
    virtual unsigned height(unsigned round) const { return round * 2 + id; }
    unsigned levels = 4;
};

// Calls through a Shape * or High * go through thunks; copy's answer is adjusted, too.
struct Box : Wide, High {
    Box() : Shape(3) {}
    NOINLINE unsigned area(unsigned round) const override {
        spin(10);
        return Wide::area(round) * height(round);
    }
    NOINLINE unsigned height(unsigned round) const override {
        if (round % 11 == 0)
            throw round;
        return High::height(round) + levels;
    }
    Box *copy() const override { return new Box(*this); }
};

NOINLINE static unsigned use_shapes(const Shape *shape, const High *high, unsigned round) {
    unsigned sum = 0;
    for (unsigned i = 1; i < 20; i++) {
        try {
            std::unique_ptr<Shape> copy(shape->copy());
            sum += copy->area(round + i) + high->height(i);
        } catch (unsigned number) {
            sum += number;
        }
    }
    return sum;
}

NOINLINE static void use_library(unsigned round) {
    std::map<std::string, std::vector<unsigned>> words;
    for (unsigned i = 0; i < 60; i++) {
        std::ostringstream out;
        out << "word " << (i * round) % 17 << ' ' << i / 3.0;
        words[out.str().substr(0, 7)].push_back(i);
    }
    std::vector<std::string> names;
    for (const auto &word : words)
        names.push_back(word.first);
    std::sort(names.begin(), names.end(), [](const auto &a, const auto &b) { return b < a; });
    std::function<unsigned(unsigned)> recurse = [&](unsigned n) { return n ? recurse(n - 1) + 1 : 0; };
    static const std::regex pattern("w(o+)rd ([0-9]+)");
    std::smatch match;
    sink = recurse(20) + std::regex_search(names.front(), match, pattern);
    try {
        sink = static_cast<unsigned>(std::stoul("no number") + names.at(9999).size());
    } catch (const std::logic_error &error) {
        sink = static_cast<unsigned>(error.what()[0]);
    }
}

NOINLINE static void one_round(unsigned round) {
    try {
        round % 2 ? rethrow(round % 13) : throw_deep(round % 30);
    } catch (const Problem &problem) {
        sink = problem.depth;
    }
    try {
        nest(round % 9);
    } catch (const std::exception &error) {
        look_inside(error, 0);
    }
    try {
        std::vector<Member> members;
        for (unsigned i = 0; i < 6; i++)
            members.emplace_back(i);
    } catch (unsigned number) {
        sink = number;
    }
    Box box;
    sink = use_shapes(&box, &box, round);
    use_library(round);
}

static void work() {
    for (unsigned round = 0;; round++)
        one_round(round);
}

int main() {
    std::thread other(work);
    work();
}
