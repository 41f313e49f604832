/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of spanprof.hpp, also without exceptions and RTTI; compiled, never run. What it does
 * is in tests/unit/cpp. */
#include <spanprof/spanprof.hpp>

#include <array>
#include <optional>
#include <string>
#include <vector>

using namespace spanprof;

/* Spans move, scopes stay where they are, contexts are data. */
static_assert(std::is_nothrow_move_constructible_v<span> && !std::is_copy_constructible_v<span>);
static_assert(!std::is_move_constructible_v<scope> && !std::is_move_assignable_v<scope>);
static_assert(!std::is_move_constructible_v<active_span>);
static_assert(std::is_trivially_copyable_v<context> && sizeof(context) == 64);
static_assert(sizeof(span) == sizeof(spanprof_span) && sizeof(scope) == sizeof(spanprof_scope));

void use(const std::exception &error);

void use(const std::exception &error)
{
    tracer library{"library", std::string("1.0"), std::string_view("https://schema")};
    span request = library.start(
        "GET", span_options{}.kind(SPANPROF_SPAN_KIND_SERVER).attributes({{"a", 1}, {"b", "c"}}));
    request.set_attribute("int", 5)
        .set_attribute("string", std::string("x"))
        .set_attribute(std::string_view("key"), std::string_view("value"))
        .set_attribute("vector", std::vector<std::int64_t>{1, 2, 3})
        .set_attribute("array", std::array<double, 2>{1., 2.})
        .set_attribute("list", {"x", "y"});
    std::vector<attribute> list{{"a", 1u}, {"b", 2.f}};
    request.add_event("plain").add_event("with", {{"key", true}}, 5).add_event("list", list);
    request.record_error(error).record_error("type", "message");
    request.set_status(SPANPROF_SPAN_STATUS_ERROR, "bad").update_name("name");
    request.add_link(context::current(), {{"why", "because"}});
    auto active = request.attach();
    std::optional<scope> carried;
    carried.emplace(request.context());
    auto inner = library.start_active("inner");
    context remote = context::extract_headers(
        [](const char *, std::uint32_t, std::string_view &) { return false; });
    remote.inject_headers([](const char *, const char *) {});
    remote.each_baggage([](const char *, const char *, const char *) { return true; });
}
