/* SPDX-License-Identifier: Apache-2.0 */
/* The active context in C++20 coroutines, whatever their task type, executor or library.
 *
 *     task answer(request r)
 *     {
 *         spanprof::span span{"answer"};
 *         spanprof::coroutine_scope scope{span.context()};
 *         parse(r);
 *         auto rows = co_await scope.carry(query(r));  // the span is not active while suspended
 *         render(rows);                                // it is active again, on whichever thread
 *     }
 *
 * A suspended coroutine leaves its thread to other work, so its context has to be detached before,
 * and attached again where it continues. An await that is not carried leaves the context on the
 * thread: then the thread's next work counts for this span. A coroutine with a stack of its own is
 * a fiber: <spanprof/fiber.h>.
 *
 * A carried awaitable has another type than the awaitable. A task type whose promise takes only
 * awaitables that it knows (await_transform: asio::awaitable, and others that are made for one
 * library) does not compile with it. There, a plain scope lasts from one await to the next:
 *
 *         { spanprof::scope scope{span.context()}; parse(r); }
 *         auto rows = co_await query(r);
 *         { spanprof::scope scope{span.context()}; render(rows); }
 *
 * Everything is inline, and does not throw (exceptions of an awaiter are passed on) or allocate. A
 * carried await costs an attach and a detach more than the await itself. */
#ifndef SPANPROF_COROUTINE_HPP
#define SPANPROF_COROUTINE_HPP

#include <coroutine>
#include <type_traits>
#include <utility>

#include <spanprof/spanprof.hpp>

namespace spanprof
{

namespace detail
{

/* The awaiter that co_await would use: the result of the operator, if there is one, else the
 * awaitable itself. */
template <class Awaitable> decltype(auto) get_awaiter(Awaitable &&awaitable)
{
    if constexpr (requires { std::forward<Awaitable>(awaitable).operator co_await(); })
        return std::forward<Awaitable>(awaitable).operator co_await();
    else if constexpr (requires { operator co_await(std::forward<Awaitable>(awaitable)); })
        return operator co_await(std::forward<Awaitable>(awaitable));
    else
        return std::forward<Awaitable>(awaitable);
}

} // namespace detail

/* A scope in a coroutine: CONTEXT is active whenever the coroutine runs, as long as each await in
 * this scope is carried. Scopes in one coroutine may nest: carry by each of them, the innermost
 * first: outer.carry(inner.carry(awaitable)). */
class [[nodiscard]] coroutine_scope
{
  public:
    explicit coroutine_scope(const context &active = context::current()) noexcept : context_(active)
    {
        attach();
    }
    coroutine_scope(const coroutine_scope &) = delete;
    coroutine_scope &operator=(const coroutine_scope &) = delete;
    ~coroutine_scope()
    {
        detach();
    }

    /* Wrap AWAITABLE for a co_await in the coroutine that owns the scope. */
    template <class Awaitable> auto carry(Awaitable &&awaitable)
    {
        return carried<decltype(detail::get_awaiter(std::forward<Awaitable>(awaitable)))>{
            *this, detail::get_awaiter(std::forward<Awaitable>(awaitable))};
    }

  private:
    template <class Awaiter> struct carried {
        coroutine_scope &scope;
        Awaiter awaiter; /* a reference where the awaitable is one */

        bool await_ready()
        {
            return awaiter.await_ready();
        }
        /* The coroutine may be running elsewhere before the awaiter's function returns, so nothing
         * is accessed after it. When it throws, the coroutine continues here, without an
         * await_resume. */
        template <class Promise> auto await_suspend(std::coroutine_handle<Promise> coroutine)
        {
            scope.detach();
#ifdef __cpp_exceptions
            try {
                return awaiter.await_suspend(coroutine);
            } catch (...) {
                spanprof_attach_again();
                throw;
            }
#else
            return awaiter.await_suspend(coroutine);
#endif
        }
        /* The awaiter may be a `carried`, too. Its scope is the inner one, and is attached already,
         * so it is attached again after the outer one. */
        void spanprof_attach_again() noexcept
        {
            scope.detach();
            scope.attach();
            if constexpr (requires { awaiter.spanprof_attach_again(); })
                awaiter.spanprof_attach_again();
        }
        decltype(auto) await_resume()
        {
            scope.attach();
            return awaiter.await_resume();
        }
    };

    void attach() noexcept
    {
        if (scope_.serial == 0)
            scope_ = spanprof_context_attach(context_.c_context());
    }
    void detach() noexcept
    {
        if (scope_.serial != 0)
            spanprof_scope_detach(&scope_);
    }

    context context_;
    spanprof_scope scope_{};
};

} // namespace spanprof

#endif
