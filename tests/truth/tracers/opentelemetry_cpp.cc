// SPDX-License-Identifier: Apache-2.0
// Spans of opentelemetry-cpp in all the ways in which its contexts travel, each with work of its own; opentelemetry_cpp_test.py asks where the
// samples went. Prints a line for each span: trace id, span id, work.
//
// usage: opentelemetry_cpp SECONDS (of CPU time)
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include <opentelemetry/baggage/baggage.h>
#include <opentelemetry/baggage/baggage_context.h>
#include <opentelemetry/sdk/trace/exporter.h>
#include <opentelemetry/sdk/trace/samplers/always_off.h>
#include <opentelemetry/sdk/trace/simple_processor_factory.h>
#include <opentelemetry/sdk/trace/span_data.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/trace/default_span.h>
#include <opentelemetry/trace/scope.h>

#include <spanprof/opentelemetry.hpp>

#include "truth/truth_work.h"

namespace api = opentelemetry::trace;
namespace sdk = opentelemetry::sdk::trace;
namespace context = opentelemetry::context;
namespace nostd = opentelemetry::nostd;
using Span = nostd::shared_ptr<api::Span>;

static constexpr uint64_t piece_ns = 400000;
static std::atomic<unsigned> last_work;
static std::mutex output;
static std::map<std::string, std::string> marks; // span id: pyroscope.profile.id

/// Keeps what the attribute says. It gets back what it made, not what the adapter put around it.
class Marks : public sdk::SpanExporter
{
  public:
    std::unique_ptr<sdk::Recordable> MakeRecordable() noexcept override
    {
        return std::make_unique<sdk::SpanData>();
    }

    opentelemetry::sdk::common::ExportResult
    Export(const nostd::span<std::unique_ptr<sdk::Recordable>> &spans) noexcept override
    {
        std::lock_guard<std::mutex> lock(output);
        for (auto &span : spans) {
            auto *data = static_cast<sdk::SpanData *>(span.get());
            auto found = data->GetAttributes().find("pyroscope.profile.id");
            if (found == data->GetAttributes().end())
                continue;
            char id[16];
            data->GetSpanId().ToLowerBase16(id);
            marks[std::string(id, 16)] = nostd::get<std::string>(found->second);
        }
        return opentelemetry::sdk::common::ExportResult::kSuccess;
    }

    bool ForceFlush(std::chrono::microseconds) noexcept override
    {
        return true;
    }

    bool Shutdown(std::chrono::microseconds) noexcept override
    {
        return true;
    }
};

struct Work {
    Span span;
    unsigned number;

    void run(uint64_t ns = piece_ns) const
    {
        truth_work(number, ns);
    }
};

static nostd::shared_ptr<api::Tracer> tracer, unsampled_tracer;

static Work start(const api::StartSpanOptions &options = {})
{
    Work work{tracer->StartSpan("work", options), last_work++ % TRUTH_WORKS};
    char trace[32], span[16];
    work.span->GetContext().trace_id().ToLowerBase16(trace);
    work.span->GetContext().span_id().ToLowerBase16(span);
    std::lock_guard<std::mutex> lock(output);
    std::printf("span %.32s %.16s %u\n", trace, span, work.number);
    return work;
}

/* --- a pool: contexts are carried to its threads ------------------------------------------------------------------------- */

class Pool
{
  public:
    Pool()
    {
        for (auto &thread : threads_)
            thread = std::thread([this] { serve(); });
    }

    ~Pool()
    {
        for (auto &thread : threads_) {
            (void)thread;
            post({});
        }
        for (auto &thread : threads_)
            thread.join();
    }

    void post(std::function<void()> task)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        tasks_.push_back(std::move(task));
        filled_.notify_one();
    }

  private:
    void serve()
    {
        for (;;) {
            std::unique_lock<std::mutex> lock(mutex_);
            filled_.wait(lock, [this] { return !tasks_.empty(); });
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            if (!task)
                return;
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::function<void()>> tasks_;
    std::thread threads_[2];
};

static Pool *pool;

/// Run TASK on the pool, and wait.
static void on_pool(std::function<void()> task)
{
    std::promise<void> done;
    pool->post([&] {
        task();
        done.set_value();
    });
    done.get_future().wait();
}

/* --- the ways ------------------------------------------------------------------------------------------------------------ */

static void nested()
{
    Work outer = start();
    api::Scope scope(outer.span);
    outer.run();
    {
        Work inner = start();
        auto active = api::Tracer::WithActiveSpan(inner.span);
        inner.run();
        Work innermost = start();
        api::Scope below(innermost.span);
        innermost.run();
    }
    outer.run();
}

/// Spans end while they are active, where they are not, or nowhere near: what is attached counts.
static void ended_elsewhere()
{
    Work work = start(), other = start();
    on_pool([&] {
        api::Scope scope(work.span);
        work.run();
        other.span->End();
        work.run();
    });
    api::Scope scope(work.span);
    std::thread([&] { work.span->End(); }).join();
    work.run();
}

static void carried()
{
    Work work = start();
    api::Scope scope(work.span);
    context::Context saved = context::RuntimeContext::GetCurrent();
    std::promise<void> done;
    pool->post([&, saved] {
        auto token = context::RuntimeContext::Attach(saved);
        work.run();
        Work child = start();
        api::Scope inner(child.span);
        child.run();
        done.set_value();
    });
    work.run();
    done.get_future().wait();
}

static void baggage()
{
    Work work = start();
    api::Scope scope(work.span);
    work.run();
    {
        auto current = context::RuntimeContext::GetCurrent();
        auto with = opentelemetry::baggage::SetBaggage(
            current, opentelemetry::baggage::Baggage::GetDefault()->Set("tenant", "a"));
        auto token = context::RuntimeContext::Attach(with);
        work.run();
        Work inner = start();
        api::Scope below(inner.span);
        inner.run();
    }
    work.run();
}

/// No sample may link to a span that is not sampled, nor to one of another process, nor to the span around either.
static void not_here()
{
    Work outer = start();
    api::Scope scope(outer.span);
    {
        api::Scope unsampled(unsampled_tracer->StartSpan("unsampled"));
        truth_nothing(piece_ns);
    }
    outer.run();
    uint8_t trace[16] = {1}, span[8] = {2};
    api::SpanContext remote(api::TraceId(trace), api::SpanId(span), api::TraceFlags(1), true);
    {
        api::Scope active(Span(new api::DefaultSpan(remote)));
        truth_nothing(piece_ns);
        context::Context none;
        auto token = context::RuntimeContext::Attach(none);
        truth_nothing(piece_ns);
    }
    outer.run();
}

static void asynchronous()
{
    Work first = start(), second = start();
    auto run = [](Work work) {
        api::Scope scope(work.span);
        work.run();
    };
    auto one = std::async(std::launch::async, run, first);
    auto two = std::async(std::launch::async, run, second);
    one.get();
    two.get();
}

/// A token that is not the last detaches those above it, too; theirs do nothing then.
static void out_of_order()
{
    Work bottom = start(), middle = start(), top = start();
    api::Scope scope(bottom.span);
    auto first = std::make_unique<api::Scope>(middle.span);
    auto second = std::make_unique<api::Scope>(top.span);
    top.run();
    first.reset();
    bottom.run();
    second.reset();
    bottom.run();
}

/// The same context twice: its tokens are equal, so either takes off the topmost.
static void twice()
{
    Work work = start();
    auto with = context::RuntimeContext::GetCurrent().SetValue(api::kSpanKey, work.span);
    auto first = context::RuntimeContext::Attach(with);
    auto second = context::RuntimeContext::Attach(with);
    work.run();
    first.reset();
    work.run();
    second.reset();
    truth_nothing(piece_ns);
}

static void deep(int depth)
{
    Work work = start();
    api::Scope scope(work.span);
    if (depth > 0)
        deep(depth - 1);
    work.run(piece_ns / 10);
}

/// A token that outlives the objects of its thread.
static void late_token()
{
    Work work = start();
    std::thread([&] {
        static thread_local std::unique_ptr<api::Scope> kept;
        kept.reset();
        kept = std::make_unique<api::Scope>(work.span);
        work.run();
    }).join();
}

static void all_ways()
{
    nested();
    truth_nothing(piece_ns);
    ended_elsewhere();
    carried();
    baggage();
    not_here();
    asynchronous();
    out_of_order();
    twice();
    deep(40);
    truth_nothing(piece_ns);
}

static std::string id_of(const Span &span)
{
    char id[16];
    span->GetContext().span_id().ToLowerBase16(id);
    return std::string(id, 16);
}

/// Which of a root and its child have the attribute: it is their own id.
static void print_marks()
{
    Work root = start();
    api::StartSpanOptions below;
    below.parent = root.span->GetContext();
    Work child = start(below);
    child.span->End();
    root.span->End();
    std::lock_guard<std::mutex> lock(output);
    for (auto &mark : marks)
        if (mark.first != mark.second)
            std::printf("marks wrong: %s has %s\n", mark.first.c_str(), mark.second.c_str());
    std::printf("marks%s%s\n", marks.count(id_of(root.span)) ? " root" : "",
                marks.count(id_of(child.span)) ? " child" : "");
}

int main(int argc, char **argv)
{
    const double seconds = argc == 2 ? std::atof(argv[1]) : 1;
    if (spanprof::opentelemetry::install() != SPANPROF_OK)
        return std::fprintf(stderr, "the SDK does not start\n"), 1;
    std::vector<std::unique_ptr<sdk::SpanProcessor>> processors;
    processors.push_back(sdk::SimpleSpanProcessorFactory::Create(std::make_unique<Marks>()));
    processors.push_back(sdk::SimpleSpanProcessorFactory::Create(std::make_unique<Marks>()));
    sdk::TracerProvider provider(spanprof::opentelemetry::wrap(std::move(processors)));
    sdk::TracerProvider off(spanprof::opentelemetry::wrap(
                                sdk::SimpleSpanProcessorFactory::Create(std::make_unique<Marks>())),
                            opentelemetry::sdk::resource::Resource::Create({}),
                            std::make_unique<sdk::AlwaysOffSampler>());
    tracer = provider.GetTracer("truth");
    unsampled_tracer = off.GetTracer("truth");
    {
        Pool threads;
        pool = &threads;
        auto run = [seconds] {
            while (static_cast<double>(std::clock()) / CLOCKS_PER_SEC < seconds)
                all_ways();
        };
        std::thread beside(run);
        run();
        beside.join();
    }
    late_token();
    print_marks();
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_flush(UINT64_MAX);
    spanprof_stats_get(&stats);
    std::printf("misuse %llu\n", static_cast<unsigned long long>(stats.misuse_dead_scope +
                                                                 stats.misuse_foreign_scope));
    tracer = unsampled_tracer = {};
    return 0;
}
