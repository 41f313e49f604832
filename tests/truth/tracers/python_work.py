#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spans of opentelemetry-sdk in all the ways in which its contexts travel, each with work of its own; python_test.py asks where the samples went.
Prints a line for each span: trace id, span id, work.

  python_work.py WORK_LIBRARY SECONDS              SECONDS of CPU time; works are functions of C
  python_work.py --extensions WORK_LIBRARY SECONDS works are what native extensions do

asyncio's tasks run on one thread in turns, each up to its next await; threads beside them."""
import asyncio, concurrent.futures, contextvars, ctypes, itertools, logging, os, sqlite3, sys, threading, time, zlib

from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

import anyio.to_thread
import numpy.random

import spanprof_opentelemetry

PIECE_NS = 400000
arguments = sys.argv[1:]
EXTENSIONS = arguments[0] == "--extensions"
LIBRARY, SECONDS = arguments[-2], float(arguments[-1])
marks = {}
random = os.urandom(1 << 18)
compressed = zlib.compress(bytes(1 << 20) + random)  # before there are samples, for no span stands for it


class Marks(SpanExporter):
    """Which spans have pyroscope.profile.id, and what it is."""

    def export(self, spans):
        for span in spans:
            if "pyroscope.profile.id" in span.attributes:
                marks[trace.format_span_id(span.context.span_id)] = span.attributes["pyroscope.profile.id"]
        return SpanExportResult.SUCCESS


class Failure(logging.Handler):
    """A hook that fails is only logged, and the test is to fail."""

    def emit(self, record):
        print(self.format(record), file=sys.stderr, flush=True)
        os._exit(1)


logging.getLogger("spanprof_opentelemetry").addHandler(Failure())
spanprof_opentelemetry.install()
provider, off = TracerProvider(), TracerProvider(sampler=sampling.ALWAYS_OFF)
for each in provider, off:
    each.add_span_processor(spanprof_opentelemetry.SpanProcessor())
    each.add_span_processor(SimpleSpanProcessor(Marks()))
tracer, unsampled_tracer = provider.get_tracer("truth"), off.get_tracer("truth")
pool = concurrent.futures.ThreadPoolExecutor(2)
numbers = itertools.count()

# --- works ----------------------------------------------------------------------------------------------------------------

library = ctypes.CDLL(LIBRARY)  # without the interpreter's lock, as extensions do that take long
library.truth_run.argtypes = [ctypes.c_uint, ctypes.c_uint64]
library.truth_run_nothing.argtypes = [ctypes.c_uint64]
def query():
    """Closes all: what is left to the garbage collector is closed on behalf of whichever span it comes in, and its samples say so."""
    database = sqlite3.connect(":memory:")
    cursor = database.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT sum(i * i) FROM n")
    cursor.fetchall()
    cursor.close()
    database.close()


def sort():
    numpy.sort(numpy.random.default_rng(1).random(50000))


EXTENSION_WORKS = {"deflate": lambda: zlib.compress(random, 9), "inflate": lambda: zlib.decompress(compressed), "sqlite": query, "numpy": sort}
WORKS = list(EXTENSION_WORKS) if EXTENSIONS else list(range(64))


def run(work):
    if EXTENSIONS:
        EXTENSION_WORKS[work]()
    else:
        library.truth_run(work, PIECE_NS)


def run_nothing():
    library.truth_run_nothing(PIECE_NS)


def start():
    """A span and its work, told on standard output."""
    work, span = WORKS[next(numbers) % len(WORKS)], tracer.start_span("work")
    ids = span.get_span_context()
    # Not by sys.stdout: before 3.12.4 CPython loses what several threads write to it (its issue 119506).
    os.write(1, f"span {trace.format_trace_id(ids.trace_id)} {trace.format_span_id(ids.span_id)} {work}\n".encode())
    return span, work


# --- the ways of threads ------------------------------------------------------------------------------------------------

def nested():
    span, work = start()
    with trace.use_span(span, end_on_exit=True):
        run(work)
        inner, inner_work = start()
        with trace.use_span(inner):
            run(inner_work)
            token = context.attach(baggage.set_baggage("tenant", "a"))
            run(inner_work)
            inner.end()
            run(inner_work)
            context.detach(token)
        run(work)
    run_nothing()


def run_and_attach(work):
    """Behind the detach it is this span again; behind the end of the whole, none."""
    run(work)
    context.detach(context.attach(context.Context()))
    run(work)


def carried():
    span, work = start()
    with trace.use_span(span):
        saved = context.get_current()

        def task():
            token = context.attach(saved)
            run(work)
            context.detach(token)
            run_nothing()
        future = pool.submit(task)
        run(work)
        future.result()
        pool.submit(contextvars.copy_context().run, run_and_attach, work).result()
        pool.submit(run_nothing).result()
        own = threading.Thread(target=contextvars.copy_context().run, args=(spanprof_opentelemetry.carried(run_and_attach), work))
        own.start()
        own.join()
    span.end()


def not_here():
    span, work = start()
    with trace.use_span(span, end_on_exit=True):
        with unsampled_tracer.start_as_current_span("unsampled", context.Context()):
            run_nothing()
        remote = trace.SpanContext(1, 2, is_remote=True, trace_flags=trace.TraceFlags(1))
        with trace.use_span(trace.NonRecordingSpan(remote)):
            run_nothing()
        run(work)


def pieces():
    """A generator runs in the context of whoever asks it for more, and has no other."""
    for _ in range(3):
        yield run_nothing()


def in_threads(end):
    while time.process_time() < end:
        nested()
        carried()
        not_here()
        for _ in pieces():
            span, work = start()
            with trace.use_span(span, end_on_exit=True):
                run(work)


# --- the ways of asyncio -----------------------------------------------------------------------------------------------

async def task(depth=2):
    span, work = start()
    with trace.use_span(span, end_on_exit=True):
        run(work)
        await asyncio.sleep(0)
        run(work)
        if depth:
            await asyncio.gather(task(depth - 1), task(depth - 1))
            run(work)
        inner, inner_work = start()
        with trace.use_span(inner, end_on_exit=True):
            await asyncio.sleep(0.0005)
            run(inner_work)
        await asyncio.to_thread(run, work)
        await anyio.to_thread.run_sync(run_and_attach, work)
        await anyio.to_thread.run_sync(run, work)
        await asyncio.get_running_loop().run_in_executor(pool, run_nothing)
        run(work)
        done = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(lambda: (run(work), done.set_result(None)))
        await done


async def several():
    """An asynchronous generator runs in the context of the task that asks."""
    for _ in range(2):
        await asyncio.sleep(0)
        yield start()


async def in_tasks(end):
    while time.process_time() < end:
        await asyncio.gather(*(task() for _ in range(3)))
        async for span, work in several():
            with trace.use_span(span, end_on_exit=True):
                run(work)
                await asyncio.sleep(0)
                run(work)
        run_nothing()


def print_marks():
    with tracer.start_as_current_span("root") as root, tracer.start_as_current_span("child") as child:
        pass
    for span, mark in marks.items():
        if span != mark:
            print(f"marks wrong: {span} has {mark}")
    has = {name: trace.format_span_id(span.get_span_context().span_id) in marks for name, span in (("root", root), ("child", child))}
    print(" ".join(["marks"] + [name for name in has if has[name]]))


end = time.process_time() + SECONDS
thread = threading.Thread(target=in_threads, args=(end,))
thread.start()
asyncio.run(in_tasks(end))
thread.join()
print_marks()
