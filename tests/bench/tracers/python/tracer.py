#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the operations of a tracer cost, by OpenTelemetry's SDK for Python: run by tests/bench/tracers.py, whose words and rules are those of
tests/bench/tracers/spanprof.c.

  tracer.py CORE [adapted]     adapted: it tells spanprof"""
import asyncio, os, sys, time

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

BURST, GROUP, GROUP_NS, NESTED = 1500, 50, 500000, 10
PLAIN, RECORDED, SUSTAINED = range(3)

provider = TracerProvider()
if sys.argv[2:] == ["adapted"]:
    import spanprof_opentelemetry
    spanprof_opentelemetry.install()
    provider.add_span_processor(spanprof_opentelemetry.SpanProcessor())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("bench")
carrier = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}
propagator = TraceContextTextMapPropagator()
remote = propagator.extract(carrier)
kept = trace.set_span_in_context(trace.NonRecordingSpan(trace.get_current_span(remote).get_span_context()))
other = remote


def attach(count):
    for _ in range(count):
        context.detach(context.attach(kept))


def attach_at_depth(depth):
    def run(count):
        tokens = [context.attach(other) for _ in range(depth)]
        attach(count)
        for token in reversed(tokens):
            context.detach(token)
    return run


def attach_10_nested(count):
    for _ in range(count // NESTED):
        tokens = [context.attach(kept if i % 2 else other) for i in range(NESTED)]
        for token in reversed(tokens):
            context.detach(token)


def make_spans(parent=None, attributes=False):
    def run(count):
        for _ in range(count):
            span = tracer.start_span("GET /cart", parent)
            token = context.attach(trace.set_span_in_context(span))
            if attributes:
                span.set_attribute("http.request.method", "GET")
                span.set_attribute("http.response.status_code", 200)
            context.detach(token)
            span.end()
    return run


def await_in_span(count):
    """Steps of a task, from one await to the next."""
    async def steps():
        token = context.attach(kept)
        for _ in range(count):
            await asyncio.sleep(0)
        context.detach(token)
    asyncio.run(steps())


def extract(count):
    for _ in range(count):
        propagator.extract(carrier)


def inject(count):
    for _ in range(count):
        propagator.inject({}, remote)


OPERATIONS = {
    "attach": (PLAIN, attach),
    "attach_below": (PLAIN, attach_at_depth(1)),
    "attach_at_depth_10": (PLAIN, attach_at_depth(NESTED)),
    "attach_10_nested": (PLAIN, attach_10_nested),
    "await": (PLAIN, await_in_span),
    "span": (RECORDED, make_spans()),
    "span_sustained": (SUSTAINED, make_spans()),
    "span_2_attributes": (RECORDED, make_spans(attributes=True)),
    "span_2_attributes_sustained": (SUSTAINED, make_spans(attributes=True)),
    "span_unsampled": (PLAIN, make_spans(remote)),
    "extract": (PLAIN, extract),
    "inject": (PLAIN, inject),
}


def in_bursts(kind, run, span_ns):
    """Between bursts the queue is emptied."""
    took = count = 0
    while took < span_ns:
        begin = time.perf_counter_ns()
        run(BURST)
        took += time.perf_counter_ns() - begin
        count += BURST
        if kind == RECORDED:
            provider.force_flush()
    return took, count


def sustained(run, span_ns):
    """Groups at a tenth of the others' rate, for Python does not reach it. Asleep between them, lest the exporter's thread get nothing."""
    took = count = 0
    due = time.perf_counter_ns()
    while took < span_ns:
        time.sleep(max(0, due - time.perf_counter_ns()) / 1e9)
        due += 10 * GROUP_NS
        begin = time.perf_counter_ns()
        run(GROUP)
        took += time.perf_counter_ns() - begin
        count += GROUP
    return took, count


def main():
    os.sched_setaffinity(0, {int(sys.argv[1])})  # the calling thread only: the SDK's has been started
    print("ready", *OPERATIONS, flush=True)
    made = 0
    for line in sys.stdin:
        name, ms = line.split()
        kind, run = OPERATIONS[name]
        took, count = sustained(run, int(ms) * 1000000) if kind == SUSTAINED else in_bursts(kind, run, int(ms) * 1000000)
        made += count if kind != PLAIN else 0
        print(f"{took / count:.2f}", flush=True)
    provider.shutdown()
    print(made)


if __name__ == "__main__":
    main()
