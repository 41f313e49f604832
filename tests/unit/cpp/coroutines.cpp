/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/cpp/coroutines.h"

#include <spanprof/coroutine.hpp>

#include <cstring>
#include <exception>
#include <thread>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return #condition;                                                                     \
    } while (0)

namespace
{

struct task {
    struct promise_type {
        task get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend()
        {
            return {};
        }
        std::suspend_always final_suspend() noexcept
        {
            return {};
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
            std::terminate();
        }
    };
    std::coroutine_handle<promise_type> handle;
};

spanprof_context context_of(std::uint8_t id)
{
    spanprof_context context{};
    std::memset(context.trace_id, id, sizeof context.trace_id);
    std::memset(context.span_id, id, sizeof context.span_id);
    return context;
}

/* The first byte of the active span's id. */
int active()
{
    return spanprof_context_current().span_id[0];
}

std::uint64_t misuse()
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    return stats.misuse_dead_scope + stats.misuse_foreign_scope;
}

/* Notes in SEEN what is active in each part. */
task run_in_parts(int (&seen)[4])
{
    spanprof::coroutine_scope scope{context_of(1)};
    seen[0] = active();
    co_await scope.carry(std::suspend_always{});
    seen[1] = active();
    co_await scope.carry(std::suspend_never{});
    seen[2] = active();
    co_await scope.carry(std::suspend_always{});
    seen[3] = active();
}

task run_nested(int (&seen)[4])
{
    spanprof::coroutine_scope outer{context_of(1)};
    {
        spanprof::coroutine_scope inner{context_of(2)};
        seen[0] = active();
        co_await outer.carry(inner.carry(std::suspend_always{}));
        seen[1] = active();
    }
    seen[2] = active();
    co_await outer.carry(std::suspend_always{});
    seen[3] = active();
}

/* An awaitable by its member, whose awaiter does not suspend after all, and has a value. */
struct by_member {
    auto operator co_await() const
    {
        struct awaiter {
            bool await_ready()
            {
                return false;
            }
            bool await_suspend(std::coroutine_handle<>)
            {
                return active() != 0; /* the scope is off already */
            }
            int await_resume()
            {
                return active();
            }
        };
        return awaiter{};
    }
};

/* An awaitable by a function, that goes on with another coroutine. */
struct by_function {
    std::coroutine_handle<> next;
};
struct transfer {
    std::coroutine_handle<> next;
    bool await_ready()
    {
        return false;
    }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>)
    {
        return next;
    }
    void await_resume()
    {
    }
};
transfer operator co_await(by_function given)
{
    return {given.next};
}

task run_awaiters(int (&seen)[4])
{
    spanprof::coroutine_scope scope{context_of(1)};
    seen[0] = co_await scope.carry(by_member{});
    seen[1] = active();
    by_member kept;
    seen[2] = co_await scope.carry(kept);
    co_await scope.carry(by_function{std::noop_coroutine()});
    seen[3] = active();
}

struct full {
    bool await_ready()
    {
        return false;
    }
    void await_suspend(std::coroutine_handle<>)
    {
        throw active();
    }
    void await_resume()
    {
    }
};

/* The awaiter says by what it throws what was active in it. */
task run_throwing(int (&seen)[4])
{
    spanprof::coroutine_scope outer{context_of(1)};
    {
        spanprof::coroutine_scope inner{context_of(2)};
        try {
            co_await outer.carry(inner.carry(full{}));
        } catch (int in_awaiter) {
            seen[0] = in_awaiter;
        }
        seen[1] = active();
    }
    seen[2] = active();
    try {
        co_await outer.carry(full{});
    } catch (int) {
        seen[3] = active();
    }
}

/* A task type that takes no other awaitables than its library's. */
struct tick {
};
struct strict_task {
    struct promise_type : task::promise_type {
        strict_task get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always await_transform(tick)
        {
            return {};
        }
    };
    std::coroutine_handle<promise_type> handle;
};

strict_task run_strict(int (&seen)[4])
{
    {
        spanprof::scope scope{context_of(1)};
        seen[0] = active();
    }
    co_await tick{};
    {
        spanprof::scope scope{context_of(1)};
        seen[1] = active();
    }
}

} // namespace

const char *coroutine_context_is_active_only_while_it_runs()
{
    std::uint64_t before = misuse();
    int seen[4] = {-1, -1, -1, -1};
    spanprof::scope mine{context_of(9)};
    task t = run_in_parts(seen);
    CHECK(seen[0] == 1 && active() == 9);
    std::thread([&] { t.handle.resume(); }).join();
    CHECK(seen[1] == 1 && seen[2] == 1 && active() == 9);
    t.handle.resume();
    CHECK(seen[3] == 1 && active() == 9 && t.handle.done());
    t.handle.destroy();
    CHECK(misuse() == before);
    return nullptr;
}

const char *coroutine_nested_scopes_travel_together()
{
    std::uint64_t before = misuse();
    int seen[4] = {-1, -1, -1, -1};
    task t = run_nested(seen);
    CHECK(seen[0] == 2 && active() == 0);
    std::thread([&] { t.handle.resume(); }).join();
    CHECK(seen[1] == 2 && seen[2] == 1 && active() == 0);
    t.handle.resume();
    CHECK(seen[3] == 1 && t.handle.done());
    t.handle.destroy();
    CHECK(misuse() == before);
    return nullptr;
}

const char *coroutine_every_kind_of_awaiter_can_be_carried()
{
    std::uint64_t before = misuse();
    int seen[4] = {-1, -1, -1, -1};
    task t = run_awaiters(seen);
    CHECK(seen[0] == 1 && seen[1] == 1 && seen[2] == 1 && seen[3] == -1 && active() == 0);
    t.handle.resume();
    CHECK(seen[3] == 1 && t.handle.done());
    t.handle.destroy();
    CHECK(misuse() == before);
    return nullptr;
}

const char *coroutine_destroyed_while_suspended_detaches_nothing()
{
    std::uint64_t before = misuse();
    int seen[4] = {-1, -1, -1, -1};
    task t = run_nested(seen);
    std::thread([&] { t.handle.destroy(); }).join();
    CHECK(misuse() == before && active() == 0);
    return nullptr;
}

const char *coroutine_awaiter_that_throws_leaves_the_context_active()
{
    std::uint64_t before = misuse();
    int seen[4] = {-1, -1, -1, -1};
    task t = run_throwing(seen);
    CHECK(t.handle.done() && active() == 0);
    CHECK(seen[0] == 0 && seen[1] == 2 && seen[2] == 1 && seen[3] == 1);
    t.handle.destroy();
    CHECK(misuse() == before);
    return nullptr;
}

const char *coroutine_plain_scopes_between_awaits_of_a_strict_task()
{
    std::uint64_t before = misuse();
    int seen[4] = {-1, -1, -1, -1};
    strict_task t = run_strict(seen);
    CHECK(seen[0] == 1 && active() == 0);
    std::thread([&] { t.handle.resume(); }).join();
    CHECK(seen[1] == 1 && t.handle.done());
    t.handle.destroy();
    CHECK(misuse() == before);
    return nullptr;
}
