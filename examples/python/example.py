#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program with OpenTelemetry as its tracer, which spends its time in native extensions. Its spans are exported as before, here to standard
output. Only the three lines marked below are new. They add a profile whose samples are linked to these spans, also across await. Try it:

  SPANPROF_EXPORTER=file SPANPROF_FILE=python python3 example.py
  spanprof flame python.profiles.jsonl --span ID      # ID: a span_id that was printed"""
import asyncio, os, sqlite3, zlib

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import spanprof_opentelemetry  # (1)

spanprof_opentelemetry.install()  # (2)
provider = TracerProvider()
provider.add_span_processor(spanprof_opentelemetry.SpanProcessor())  # (3)
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("example")


def count_orders():
    database = sqlite3.connect(":memory:")
    return database.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
                            " SELECT count(*) FROM n WHERE i % 7 = 0 AND printf('%d', i) LIKE '%3%'").fetchone()


async def serve(cart):
    with tracer.start_as_current_span("GET /cart", attributes={"cart": cart}):
        await asyncio.sleep(0.01)  # other requests are served meanwhile
        with tracer.start_as_current_span("count"):
            count_orders()
        await asyncio.sleep(0)
        zlib.compress(os.urandom(4 << 20))


async def main():
    await asyncio.gather(*(serve(cart) for cart in range(4)))


asyncio.run(main())
