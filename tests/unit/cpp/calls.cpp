/* SPDX-License-Identifier: Apache-2.0 */
#include <spanprof/spanprof.hpp>

#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "unit/cpp/calls.h"

static unsigned news;

unsigned cpp_news()
{
    return news;
}

/* None of the three is inline: gcc would see malloc() or free() where it expects their partner, and
 * warn. */
__attribute__((noinline)) void *operator new(std::size_t bytes)
{
    news++;
    void *memory = std::malloc(bytes);
    if (!memory)
        throw std::bad_alloc();
    return memory;
}

__attribute__((noinline)) void operator delete(void *memory) noexcept
{
    std::free(memory);
}

__attribute__((noinline)) void operator delete(void *memory, std::size_t) noexcept
{
    std::free(memory);
}

using spanprof::active_span;
using spanprof::context;
using spanprof::span;
using spanprof::span_options;

namespace app
{
struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
};
template <class T> struct odd : std::exception {
    const char *what() const noexcept override
    {
        return "";
    }
};
} // namespace app

namespace
{
struct hidden : std::exception {
    const char *what() const noexcept override
    {
        return "not to be named";
    }
};
} // namespace

/* --- with doubles in C ------------------------------------------------------------------------ */

void cpp_start_with_options()
{
    context remote = context::extract(calls_traceparent);
    span root("root", span_options{}
                          .kind(SPANPROF_SPAN_KIND_SERVER)
                          .parent(remote)
                          .start_time_ns(1000)
                          .attributes({{"one", 1}, {"two", "2"}}));
    root.end(2000);
}

void cpp_attributes()
{
    span s("attributes");
    s.set_attribute("true", true)
        .set_attribute("char", static_cast<signed char>(-7))
        .set_attribute("int", 42)
        .set_attribute("unsigned", 4000000000u)
        .set_attribute("long", INT64_MIN)
        .set_attribute("too large", UINT64_MAX)
        .set_attribute("float", 0.5f)
        .set_attribute("double", -1e300)
        .set_attribute("literal", "text")
        .set_attribute("empty", "")
        .set_attribute("int", 43);
}

void cpp_views()
{
    static const char bytes[] = "http.methodGET /cart";
    std::string_view view(bytes);
    span s(view.substr(11, 8));
    s.set_attribute(view.substr(0, 11), view.substr(11, 3))
        .set_attribute("empty view", std::string_view())
        .set_attribute("nul within", std::string_view("one\0two", 7));
    s.set_status(SPANPROF_SPAN_STATUS_ERROR, view.substr(12, 2));
}

/* Values are whole; names and keys are cut between two characters. */
void cpp_long_texts()
{
    std::string_view text(calls_long_text, 3000);
    span s("s");
    s.set_attribute("value", text).set_attribute("value from C", calls_long_text);
    s.set_attribute(text, 1);
    s.update_name(text.substr(0, 1022));
    s.add_event(text);
    s.add_event(calls_long_text);
}

void cpp_arrays()
{
    static const std::array<std::int64_t, 3> ints = {INT64_MIN, 0, INT64_MAX};
    static const double doubles[] = {0.5, -1};
    struct {
        const double *data() const
        {
            return doubles;
        }
        std::size_t size() const
        {
            return 2;
        }
    } const own_range;
    span s("arrays");
    s.set_attribute("ints", ints)
        .set_attribute("doubles", own_range)
        .set_attribute("bools", std::array<bool, 2>{true, false})
        .set_attribute("strings", {"one", "two"})
        .set_attribute("list", {std::int64_t{1}, std::int64_t{2}})
        .set_attribute("none", std::array<double, 0>{});
}

void cpp_events()
{
    span s("events");
    s.add_event("plain");
    s.add_event("at", {}, 12345);
    s.add_event("one", {{"key", 1}});
    s.add_event("three", {{"key", true}, {"view", std::string_view("abcdef", 3)}, {"key", 2.5}},
                54321);
    const std::array<spanprof::attribute, 2> attributes = {{{"a", "x"}, {"b", "y"}}};
    s.add_event("range", attributes);
}

void cpp_links()
{
    context remote = context::extract(calls_traceparent);
    spanprof_link early{};
    early.context = remote.c_context();
    span s("links", span_options{}.links(&early, 1));
    s.add_link(remote).add_link(remote, {{"why", "because"}}).add_link(context{});
}

void cpp_status_and_name()
{
    span s("before");
    s.set_status(SPANPROF_SPAN_STATUS_ERROR, "bad").update_name("after");
    span ok("ok");
    ok.set_status(SPANPROF_SPAN_STATUS_OK);
}

void cpp_errors()
{
    static const std::runtime_error of_std("standard");
    static const app::error of_app("own");
    span s("errors");
    s.record_error(of_std).record_error(of_app, {{"key", 1}}).record_error(hidden());
    s.record_error(app::odd<int>());
    s.record_error("ENOENT", "no such file");
}

void cpp_scopes()
{
    active_span root("root");
    root.set_attribute("key", 1);
    {
        active_span child("child");
        spanprof::scope none = context().attach();
        span orphan("orphan");
    }
    span sibling("sibling");
}

void cpp_contexts()
{
    span s("parent");
    context carried = s.context();
    std::optional<spanprof::scope> scope;
    scope.emplace(carried);
    span child("child");
    scope.reset();
    span other("other");
}

void cpp_instrumentation()
{
    spanprof::tracer plain("library", "1.2");
    spanprof::tracer full(std::string_view("library, cut").substr(0, 7), "1.2", "https://schema",
                          {{"key", "value"}});
    plain.start("plain");
    active_span in_full = full.start_active("full");
    spanprof::tracer{}.start("default");
}

/* --- without ---------------------------------------------------------------------------------- */

#define CHECK(condition)                                                                           \
    do                                                                                             \
        if (!(condition))                                                                          \
            return #condition;                                                                     \
    while (0)

static std::uint64_t misuse()
{
    spanprof_stats stats{};
    stats.struct_size = sizeof stats;
    spanprof_stats_get(&stats);
    return stats.misuse_dead_span + stats.misuse_dead_scope + stats.misuse_foreign_scope;
}

const char *cpp_moved_spans_end_once()
{
    span first("moved");
    span second(std::move(first));
    CHECK(second.is_recording() && first.c_span().slot == 0);
    first = span("moved");
    CHECK(first.is_recording());
    first = std::move(second); /* ends what first was */
    CHECK(first.is_recording());
    span &self = first;
    first = std::move(self);
    CHECK(first.is_recording());
    span taken(first.release());
    CHECK(taken.is_recording() && !first.is_recording());
    taken.end();
    taken.end();
    CHECK(!taken.is_recording());
    return nullptr;
}

const char *cpp_spans_end_when_something_is_thrown()
{
    try {
        active_span outer("thrown");
        active_span inner("thrown");
        throw app::error("thrown");
    } catch (const app::error &) {
        CHECK(!context::current().is_valid());
        return nullptr;
    }
    return "nothing was thrown";
}

const char *cpp_scopes_end_in_any_order()
{
    span outer("any"), inner("any");
    auto of_outer = std::make_unique<spanprof::scope>(outer.context());
    spanprof::scope of_inner = inner.attach();
    of_outer.reset();
    CHECK(std::memcmp(context::current().c_context()->span_id, inner.context().c_context()->span_id,
                      8) == 0);
    of_inner.detach();
    of_inner.detach();
    CHECK(!context::current().is_valid());
    return nullptr;
}

const char *cpp_headers_and_baggage_travel()
{
    span s("any");
    context out = s.context();
    CHECK(out.is_valid() && out.is_sampled() && !out.is_remote());
    CHECK(out.set_baggage("user", "M\xc3\xa9lanie") == SPANPROF_OK);
    CHECK(out.set_baggage("not a token", "x") == SPANPROF_ERROR_INVALID_ARGUMENT);
    std::map<std::string, std::string> headers;
    CHECK(out.inject_headers([&](const char *name, const char *value) { headers[name] = value; }) ==
          2);
    char traceparent[56];
    CHECK(out.inject(traceparent) && headers["traceparent"] == traceparent);
    context in = context::extract_headers(
        [&](const char *name, std::uint32_t index, std::string_view &value) {
            auto found = headers.find(name);
            if (index != 0 || found == headers.end())
                return false;
            value = found->second;
            return true;
        });
    CHECK(in.is_valid() && in.is_sampled() && in.is_remote());
    std::string baggage;
    CHECK(in.each_baggage([&](const char *key, const char *value, const char *) {
        baggage += std::string(key) + "=" + value;
        return true;
    }) == SPANPROF_OK);
    CHECK(baggage == "user=M\xc3\xa9lanie");
    CHECK(in.remove_baggage("user") == SPANPROF_OK);
    CHECK(in.set_attribute(std::string_view("tenant"), std::string("acme")) == SPANPROF_OK);
    CHECK(in.set_attribute("thread.id", "7") == SPANPROF_ERROR_INVALID_ARGUMENT);
    CHECK(in.remove_attribute("tenant") == SPANPROF_OK);
    CHECK(!context::extract("nonsense").is_valid() && !context{}.inject(traceparent));
    return nullptr;
}

static bool is_active(const span &s)
{
    return std::memcmp(context::current().c_context()->span_id, s.context().c_context()->span_id,
                       8) == 0;
}

const char *cpp_functions_carry_the_context_where_they_were_made()
{
    span s("any");
    std::unique_ptr<int> owned = std::make_unique<int>(5);
    std::function<bool()> copied;
    int calls = 0;
    auto carried = [&] {
        spanprof::scope scope = s.attach();
        copied = spanprof::carry([&s] { return is_active(s); });
        return spanprof::carry([&s, &calls, owned = std::move(owned)](int given) mutable -> int & {
            *owned += is_active(s) ? given : 1000;
            calls++;
            return *owned;
        });
    }();
    CHECK(!context::current().is_valid());
    int &result = carried(2);
    CHECK(result == 7 && &result == &carried(1) && result == 8 && calls == 2);
    CHECK(copied() && !context::current().is_valid());
    std::thread elsewhere([&, function = copied] { calls += function() ? 10 : 0; });
    elsewhere.join();
    CHECK(calls == 12);
    try {
        spanprof::carry([] { throw app::error("thrown"); })();
    } catch (const app::error &) {
        CHECK(!context::current().is_valid());
        return nullptr;
    }
    return "nothing was thrown";
}

const char *cpp_fibers_have_scopes_of_their_own()
{
    static char stack[1024];
    span s("any");
    spanprof::fiber first(stack, sizeof stack), fiber(std::move(first));
    CHECK(fiber.switch_to() == SPANPROF_OK);
    spanprof::scope scope = s.attach();
    spanprof::fiber::switch_back();
    CHECK(!context::current().is_valid());
    CHECK(fiber.switch_to() == SPANPROF_OK && is_active(s));
    scope.detach();
    spanprof::fiber::switch_back();
    fiber = spanprof::fiber(stack, sizeof stack);
    CHECK(fiber.switch_to() == SPANPROF_OK && !context::current().is_valid());
    spanprof::fiber::switch_back();
    return nullptr;
}

const char *cpp_nothing_is_misused()
{
    std::uint64_t before = misuse();
    {
        span none;
        span s("any");
        span moved(std::move(s));
        spanprof::scope scope = moved.attach();
        scope.detach();
        moved.end();
    }
    CHECK(misuse() == before);
    return nullptr;
}
