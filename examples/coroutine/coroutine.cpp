/* SPDX-License-Identifier: Apache-2.0 */
/* C++20 coroutines on two threads: a request waits for its turn several times, and continues on the
 * thread that is free. What carries the context: the coroutine's scope is detached before each
 * suspension and attached again after it.
 *
 *     ./coroutine [REQUESTS] */
#include <spanprof/coroutine.hpp>

#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "work.h"

/* The coroutines that are ready to run. The threads that call run() resume them. */
class executor
{
  public:
    void post(std::coroutine_handle<> ready)
    {
        std::lock_guard hold(lock_);
        ready_.push_back(ready);
        changed_.notify_one();
    }
    void close()
    {
        std::lock_guard hold(lock_);
        closed_ = true;
        changed_.notify_all();
    }
    void run()
    {
        for (std::unique_lock hold(lock_);;) {
            changed_.wait(hold, [this] { return closed_ || !ready_.empty(); });
            if (ready_.empty())
                return;
            std::coroutine_handle<> next = ready_.front();
            ready_.pop_front();
            hold.unlock();
            next.resume();
            hold.lock();
        }
    }

    /* co_await turn(): suspends the coroutine and puts it at the end of the queue. */
    auto turn()
    {
        struct awaiter : std::suspend_always {
            executor &here;
            explicit awaiter(executor &given) : here(given)
            {
            }
            void await_suspend(std::coroutine_handle<> coroutine)
            {
                here.post(coroutine);
            }
        };
        return awaiter{*this};
    }

  private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::coroutine_handle<>> ready_;
    bool closed_ = false;
};

/* A coroutine without a result to wait for. Its frame is freed when it ends. */
struct task {
    struct promise_type {
        task get_return_object()
        {
            return {};
        }
        std::suspend_never initial_suspend()
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
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
};

static executor threads;
static std::mutex open_lock;
static std::condition_variable one_ended;
static int open_requests;

static void wait_until_fewer_than(int limit)
{
    std::unique_lock hold(open_lock);
    one_ended.wait(hold, [limit] { return open_requests < limit; });
}

static task answer(unsigned number)
{
    co_await threads.turn(); /* continue on a thread of the executor */
    {
        spanprof::span span{"request"};
        span.set_attribute("request.number", number);
        spanprof::coroutine_scope scope{span.context()};
        for (int step = 0; step < 4; step++) {
            work(number);
            co_await scope.carry(threads.turn());
        }
    }
    std::lock_guard hold(open_lock);
    open_requests--;
    one_ended.notify_all();
}

int main(int argc, char **argv)
{
    unsigned requests = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 200;
    if (spanprof_start(nullptr, nullptr) != SPANPROF_OK)
        std::fprintf(stderr, "coroutine: running without spans\n");
    std::vector<std::thread> workers;
    for (int i = 0; i < 2; i++)
        workers.emplace_back([] { threads.run(); });
    for (unsigned number = 0; number < requests; number++) {
        wait_until_fewer_than(32);
        {
            std::lock_guard hold(open_lock);
            open_requests++;
        }
        answer(number);
    }
    wait_until_fewer_than(1);
    threads.close();
    for (std::thread &worker : workers)
        worker.join();
    spanprof_stop(UINT64_C(5000000000));
}
