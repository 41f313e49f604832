// SPDX-License-Identifier: Apache-2.0
// A program with opentelemetry-cpp as its tracer. Its spans are exported as before, here to
// standard output. Only the three lines marked below are new. They add a profile whose samples are
// linked to these spans. Try it:
//
//   SPANPROF_EXPORTER=file SPANPROF_FILE=otel ./opentelemetry-cpp
//   spanprof flame otel.profiles.jsonl --span ID      # ID: a span_id that was printed
#include <cmath>
#include <cstdio>
#include <thread>

#include <opentelemetry/exporters/ostream/span_exporter_factory.h>
#include <opentelemetry/sdk/trace/simple_processor_factory.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>
#include <opentelemetry/trace/provider.h>

#include <spanprof/opentelemetry.hpp> // (1)

namespace trace = opentelemetry::trace;
namespace sdk = opentelemetry::sdk::trace;

static volatile double sink;

__attribute__((noinline)) static void price_cart()
{
    for (int i = 0; i < 40000000; i++)
        sink = sink + std::sqrt(i);
}

__attribute__((noinline)) static void render_page()
{
    for (int i = 0; i < 40000000; i++)
        sink = sink + std::sin(i);
}

static void serve(trace::Tracer &tracer)
{
    trace::Scope request(tracer.StartSpan("GET /cart"));
    {
        trace::Scope price(tracer.StartSpan("price"));
        price_cart();
    }
    render_page();
}

int main()
{
    spanprof::opentelemetry::install(); // (2)
    auto processor = sdk::SimpleSpanProcessorFactory::Create(
        opentelemetry::exporter::trace::OStreamSpanExporterFactory::Create());
    processor = spanprof::opentelemetry::wrap(std::move(processor)); // (3)
    trace::Provider::SetTracerProvider(opentelemetry::nostd::shared_ptr<trace::TracerProvider>(
        sdk::TracerProviderFactory::Create(std::move(processor)).release()));

    auto tracer = trace::Provider::GetTracerProvider()->GetTracer("example");
    std::thread other(serve, std::ref(*tracer));
    serve(*tracer);
    other.join();
    return 0;
}
