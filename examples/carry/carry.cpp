/* SPDX-License-Identifier: Apache-2.0 */
/* std::async, std::thread, and any pool that takes function objects. What carries the context:
 * spanprof::carry wraps a function, so that the function runs under the context that was active
 * when carry was called.
 *
 *     ./carry [REQUESTS] */
#include <spanprof/spanprof.hpp>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "work.h"

/* A pool that does not use spans. */
class pool
{
  public:
    explicit pool(int threads)
    {
        for (int i = 0; i < threads; i++)
            threads_.emplace_back([this] { run(); });
    }
    ~pool()
    {
        submit(nullptr);
        for (std::thread &thread : threads_)
            thread.join();
    }
    void submit(std::function<void()> function)
    {
        std::lock_guard hold(lock_);
        functions_.push_back(std::move(function));
        changed_.notify_all();
    }

  private:
    void run()
    {
        for (std::unique_lock hold(lock_);;) {
            changed_.wait(hold, [this] { return !functions_.empty(); });
            std::function<void()> next = functions_.front();
            if (!next)
                return; /* the empty function stays in the queue, for the other threads */
            functions_.pop_front();
            hold.unlock();
            next();
            hold.lock();
        }
    }

    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> functions_;
    std::vector<std::thread> threads_;
};

static void answer(pool &workers, unsigned number)
{
    spanprof::active_span span{"request"};
    span.set_attribute("request.number", number);
    auto in_pool =
        std::make_shared<std::packaged_task<void()>>(spanprof::carry([number] { work(number); }));
    workers.submit([in_pool] { (*in_pool)(); });
    std::future<void> elsewhere =
        std::async(std::launch::async, spanprof::carry([number] { work(number); }));
    work(number);
    in_pool->get_future().wait();
    elsewhere.wait();
}

int main(int argc, char **argv)
{
    unsigned requests = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 200;
    if (spanprof_start(nullptr, nullptr) != SPANPROF_OK)
        std::fprintf(stderr, "carry: running without spans\n");
    {
        pool workers(2);
        std::thread other([&workers, requests] {
            for (unsigned number = 1; number < requests; number += 2)
                answer(workers, number);
        });
        for (unsigned number = 0; number < requests; number += 2)
            answer(workers, number);
        other.join();
    }
    spanprof_stop(UINT64_C(5000000000));
}
