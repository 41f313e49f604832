// SPDX-License-Identifier: Apache-2.0
// What the operations of a tracer cost, by OpenTelemetry's SDK for C++: run by tests/bench/tracers.py, whose words and rules are those of
// tests/bench/tracers/spanprof.c. Its exporter discards: the one for OTLP would bring gRPC's and protobuf's builds with it. So nothing is
// received, and what it costs to encode and to send is missing from what goes on beside the operations. With ADAPTED defined, it tells spanprof.
//
// usage: tracer CORE
#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "opentelemetry/context/propagation/text_map_propagator.h"
#include "opentelemetry/sdk/trace/batch_span_processor_factory.h"
#include "opentelemetry/sdk/trace/batch_span_processor_options.h"
#include "opentelemetry/sdk/trace/exporter.h"
#include "opentelemetry/sdk/trace/samplers/always_on_factory.h"
#include "opentelemetry/sdk/trace/samplers/parent_factory.h"
#include "opentelemetry/sdk/trace/span_data.h"
#include "opentelemetry/sdk/resource/resource.h"
#include "opentelemetry/sdk/trace/tracer_provider.h"
#include "opentelemetry/trace/propagation/http_trace_context.h"
#include "opentelemetry/trace/scope.h"
#ifdef ADAPTED
#include <spanprof/opentelemetry.hpp>
#endif

namespace api = opentelemetry::trace;
namespace sdk = opentelemetry::sdk::trace;
namespace ctx = opentelemetry::context;
namespace nostd = opentelemetry::nostd;
using Clock = std::chrono::steady_clock;
using Span = nostd::shared_ptr<api::Span>;

static constexpr int BURST = 1500, GROUP = 50, NESTED = 10;
static constexpr auto GROUP_TIME = std::chrono::microseconds(500);

enum class Kind { Plain, Recorded, Sustained };

struct Operation
{
    const char *name;
    Kind kind;
    std::function<void(int)> run;
};

class Discard : public sdk::SpanExporter
{
public:
    std::unique_ptr<sdk::Recordable> MakeRecordable() noexcept override
    {
        return std::make_unique<sdk::SpanData>();
    }
    opentelemetry::sdk::common::ExportResult
    Export(const nostd::span<std::unique_ptr<sdk::Recordable>> &) noexcept override
    {
        return opentelemetry::sdk::common::ExportResult::kSuccess;
    }
    bool ForceFlush(std::chrono::microseconds) noexcept override { return true; }
    bool Shutdown(std::chrono::microseconds) noexcept override { return true; }
};

class Headers : public ctx::propagation::TextMapCarrier
{
public:
    nostd::string_view Get(nostd::string_view key) const noexcept override
    {
        auto found = map.find(std::string(key));
        return found == map.end() ? nostd::string_view() : nostd::string_view(found->second);
    }
    void Set(nostd::string_view key, nostd::string_view value) noexcept override
    {
        map[std::string(key)] = std::string(value);
    }
    std::map<std::string, std::string> map;
};

static void attach(const Span &span, int count)
{
    for (int i = 0; i < count; i++)
        api::Scope scope(span);
}

static void attach_below(const Span &kept, const Span &other, int depth, int count)
{
    std::vector<std::unique_ptr<api::Scope>> below;
    for (int i = 0; i < depth; i++)
        below.push_back(std::make_unique<api::Scope>(other));
    attach(kept, count);
    while (!below.empty())
        below.pop_back();
}

static void nest(const Span &kept, const Span &other, int depth)
{
    if (depth == 0)
        return;
    api::Scope scope(depth % 2 ? kept : other);
    nest(kept, other, depth - 1);
}

static void make_spans(api::Tracer &tracer, const api::StartSpanOptions &options, bool attributes,
                       int count)
{
    for (int i = 0; i < count; i++) {
        Span span = tracer.StartSpan("GET /cart", options);
        {
            api::Scope scope(span);
            if (attributes) {
                span->SetAttribute("http.request.method", "GET");
                span->SetAttribute("http.response.status_code", 200);
            }
        }
        span->End();
    }
}

static std::vector<Operation> operations(nostd::shared_ptr<api::Tracer> tracer)
{
    auto headers = std::make_shared<Headers>();
    headers->map["traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    auto propagator = std::make_shared<api::propagation::HttpTraceContext>();
    ctx::Context remote = propagator->Extract(*headers, *std::make_unique<ctx::Context>());
    Span kept = tracer->StartSpan("kept"), other = tracer->StartSpan("other");
    auto spans = [=](bool attributes) {
        return [=](int n) { make_spans(*tracer, {}, attributes, n); };
    };
    api::StartSpanOptions unsampled;
    unsampled.parent = remote;
    return {
        {"attach", Kind::Plain, [=](int n) { attach(kept, n); }},
        {"attach_below", Kind::Plain, [=](int n) { attach_below(kept, other, 1, n); }},
        {"attach_at_depth_10", Kind::Plain, [=](int n) { attach_below(kept, other, NESTED, n); }},
        {"attach_10_nested", Kind::Plain,
         [=](int n) {
             for (int i = 0; i < n; i += NESTED)
                 nest(kept, other, NESTED);
         }},
        {"span", Kind::Recorded, spans(false)},
        {"span_sustained", Kind::Sustained, spans(false)},
        {"span_2_attributes", Kind::Recorded, spans(true)},
        {"span_2_attributes_sustained", Kind::Sustained, spans(true)},
        {"span_unsampled", Kind::Plain, [=](int n) { make_spans(*tracer, unsampled, false, n); }},
        {"extract", Kind::Plain,
         [=](int n) {
             ctx::Context root;
             for (int i = 0; i < n; i++)
                 propagator->Extract(*headers, root);
         }},
        {"inject", Kind::Plain,
         [=](int n) {
             Headers out;
             for (int i = 0; i < n; i++)
                 propagator->Inject(out, remote);
         }},
    };
}

/* Bursts; between them the queue is emptied. */
static double in_bursts(sdk::TracerProvider &provider, const Operation &operation,
                        Clock::duration span, long &made)
{
    Clock::duration took{};
    long count = 0;
    for (; took < span; count += BURST) {
        auto begin = Clock::now();
        operation.run(BURST);
        took += Clock::now() - begin;
        if (operation.kind == Kind::Recorded)
            provider.ForceFlush();
    }
    made += operation.kind == Kind::Recorded ? count : 0;
    return std::chrono::duration<double, std::nano>(took).count() / (double)count;
}

/* Groups at a constant rate, nothing waited for. */
static double sustained(const Operation &operation, Clock::duration span, long &made)
{
    Clock::duration took{};
    long count = 0;
    for (auto due = Clock::now(); took < span; count += GROUP) {
        while (Clock::now() < due)
            ;
        due += GROUP_TIME;
        auto begin = Clock::now();
        operation.run(GROUP);
        took += Clock::now() - begin;
    }
    made += count;
    return std::chrono::duration<double, std::nano>(took).count() / (double)count;
}

/* The calling thread only: the SDK's has been started. */
static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

int main(int, char **argv)
{
    sdk::BatchSpanProcessorOptions batch;
    batch.max_queue_size = 65536;
    auto processor = sdk::BatchSpanProcessorFactory::Create(std::make_unique<Discard>(), batch);
#ifdef ADAPTED
    spanprof::opentelemetry::install();
    processor = spanprof::opentelemetry::wrap(std::move(processor));
#endif
    sdk::TracerProvider provider(std::move(processor),
                                 opentelemetry::sdk::resource::Resource::Create({}),
                                 sdk::ParentBasedSamplerFactory::Create(sdk::AlwaysOnSamplerFactory::Create()));
    auto list = operations(provider.GetTracer("bench"));
    pin(std::stoi(argv[1]));
    std::cout << "ready";
    for (const auto &operation : list)
        std::cout << ' ' << operation.name;
    std::cout << std::endl;
    std::string name;
    long ms, made = 0;
    while (std::cin >> name >> ms)
        for (const auto &operation : list)
            if (operation.name == name)
                std::cout << (operation.kind == Kind::Sustained
                                  ? sustained(operation, std::chrono::milliseconds(ms), made)
                                  : in_bursts(provider, operation, std::chrono::milliseconds(ms), made))
                          << std::endl;
    std::cout << made << std::endl;
}
