#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases of examples/python/spanprof_opentelemetry.py in which contexts are switched without a word, or what a program does is unusual: which span the
library is told of, asked of the library. Run by python_test.py in its environment.

  python_cases.py                   all but those
  python_cases.py gevent|eventlet   of a program that one of these has patched"""
import asyncio, contextvars, ctypes, logging, random, sys, threading, types, unittest

if len(sys.argv) == 2 and sys.argv[1] == "gevent":
    import gevent.monkey
    gevent.monkey.patch_all()
if len(sys.argv) == 2 and sys.argv[1] == "eventlet":
    import eventlet
    eventlet.monkey_patch()

if not sys.argv[1:]:
    import anyio.to_thread
    import trio
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider

import spanprof_opentelemetry


class Bytes64(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


class Log(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


log = Log()
logging.getLogger("spanprof_opentelemetry").addHandler(log)
logging.getLogger("spanprof_opentelemetry").propagate = False
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
logging.getLogger("opentelemetry").propagate = False
spanprof_opentelemetry.install()
spanprof_opentelemetry.install()
spanprof_opentelemetry._lib.spanprof_context_current.restype = Bytes64
provider = TracerProvider()
provider.add_span_processor(spanprof_opentelemetry.SpanProcessor())
tracer = provider.get_tracer("cases")
NONE = "0" * 16


def told():
    return bytes(spanprof_opentelemetry._lib.spanprof_context_current().bytes[16:24]).hex()


def current():
    return trace.format_span_id(trace.get_current_span().get_span_context().span_id)


def in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def make_span():
    with tracer.start_as_current_span("inner"):
        assert told() == current()


class Cases(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(told(), NONE)
        self.assertEqual(log.lines, [])

    def test_a_context_that_was_run_leaves_nothing(self):
        with tracer.start_as_current_span("ended"):
            saved = contextvars.copy_context()
        saved.run(make_span)
        self.assertEqual(told(), NONE)
        with tracer.start_as_current_span("outer") as outer:
            saved.run(make_span)
            self.assertEqual(told(), current())
            self.assertEqual(current(), trace.format_span_id(outer.get_span_context().span_id))

    def test_a_detach_elsewhere_leaves_nothing(self):
        with tracer.start_as_current_span("ended"):
            saved = contextvars.copy_context()
        token = saved.run(context.attach, trace.set_span_in_context(tracer.start_span("attached")))

        def detach():
            saved.run(context.detach, token)
            return told()
        self.assertEqual(in_thread(detach), NONE)
        context.detach(token)  # which OpenTelemetry refuses; this thread is left alone

    def test_a_generator_that_is_closed_in_another_context(self):
        def generator():
            with tracer.start_as_current_span("generator"):
                yield
        held = generator()
        contextvars.copy_context().run(next, held)
        held.close()

    def test_detaches_out_of_order(self):
        spans = [trace.set_span_in_context(tracer.start_span(name)) for name in "ab"]
        tokens = [context.attach(each) for each in spans]
        for token in tokens:
            context.detach(token)
            self.assertEqual(told(), current())
        context.detach(context.attach(context.Context()))
        context.attach(context.Context())

    def test_anyio(self):
        async def main():
            with tracer.start_as_current_span("request 1"):
                await anyio.to_thread.run_sync(make_span)
            with tracer.start_as_current_span("request 2"):
                self.assertEqual(await anyio.to_thread.run_sync(lambda: (told(), told() != NONE)), (current(), True))
                await anyio.to_thread.run_sync(make_span, abandon_on_cancel=True)
            self.assertEqual(await anyio.to_thread.run_sync(told), NONE)
        asyncio.run(main())
        trio.run(main)

    def test_trio(self):
        async def task():
            with tracer.start_as_current_span("task"):
                for _ in range(10):
                    self.assertIn(told(), (NONE, current()))
                    await trio.sleep(0)
            self.assertIn(told(), (NONE, current()))

        async def main():
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(task)
        trio.run(main)

    def test_tasks_and_what_they_detach_later(self):
        async def generator():
            with tracer.start_as_current_span("generator"):
                yield
                yield

        async def main():
            with tracer.start_as_current_span("main"):
                asks = generator()
                await anext(asks)

                async def other():
                    with tracer.start_as_current_span("other"):
                        await asks.aclose()
                        self.assertEqual(told(), current())
                        token = context.attach(trace.set_span_in_context(tracer.start_span("attached")))
                        await asyncio.sleep(0)
                        self.assertEqual(told(), current())
                        context.detach(token)
                        self.assertEqual(told(), current())
                    self.assertEqual(told(), current())
                await asyncio.create_task(other())
                self.assertEqual(told(), current())
        asyncio.run(main())

    def test_a_callback_whose_context_is_entered_already(self):
        errors, entered = [], contextvars.copy_context()

        async def main():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda loop, error: errors.append(type(error["exception"])))
            loop.call_soon(lambda: None, context=entered)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return "goes on"
        self.assertEqual(entered.run(asyncio.run, main()), "goes on")
        self.assertEqual(errors, [RuntimeError])

    def test_names_that_are_no_text(self):
        for name in "ok", "a\udcffb", None, 7, "x\0y", "é" * 1000:
            with self.subTest(name), tracer.start_as_current_span(name):
                self.assertEqual(told(), current())

    def test_contexts_that_are_none(self):
        token = context.attach(None)
        self.assertEqual(told(), NONE)
        context.detach(token)


class AnyMix(unittest.TestCase):
    """Whatever contexts are run, in which order: a span that has ended is never told."""

    def setUp(self):
        self.random, self.open, self.saved, self.stale, self.linked = random.Random(8), set(), [], 0, 0

    def check(self):
        span = told()
        self.linked += span != NONE
        self.stale += span != NONE and span != current() and span not in self.open

    def work(self, depth):
        for _ in range(self.random.randrange(4)):
            choice = self.random.random()
            if choice < 0.4:
                with tracer.start_as_current_span("mixed"):
                    span = current()
                    self.open.add(span)
                    self.check()
                    if depth:
                        self.work(depth - 1)
                    self.check()
                    self.saved.append(contextvars.copy_context())
                self.open.remove(span)
            elif choice < 0.8 and depth and self.saved:
                try:
                    self.random.choice(self.saved[-20:]).run(self.work, depth - 1)
                except RuntimeError:
                    pass  # entered already
            self.check()

    async def turns(self):
        for _ in range(200):
            self.work(3)
            await asyncio.sleep(0)
            self.check()

    async def tasks(self):
        await asyncio.gather(self.turns(), self.turns())

    def test_any_mix(self):
        for _ in range(200):
            self.work(4)
        asyncio.run(self.tasks())
        in_thread(lambda: [self.work(4) for _ in range(200)])
        self.assertEqual((self.stale, told()), (0, NONE))
        self.assertGreater(self.linked, 1000)


class Failures(unittest.TestCase):
    """What fails in a hook is logged once, and does not reach the program."""

    def test_failures(self):
        class Broken:
            def get_span_context(self):
                return types.SimpleNamespace(trace_id=1 << 200, span_id="x", trace_flags=0, is_remote=False)

            def __getattr__(self, name):
                raise AttributeError(name)
        log.lines.clear()
        processor = spanprof_opentelemetry.SpanProcessor()
        for _ in range(2):
            processor.on_start(Broken())
            processor.on_end(Broken())
            with tracer.start_as_current_span("outer"):
                token = context.attach({**context.get_current(), spanprof_opentelemetry._SPAN_KEY: Broken()})
                self.assertEqual(told(), NONE)
                context.detach(token)
                self.assertEqual(told(), current())
        self.assertEqual(len(log.lines), 1, log.lines)


def refused(who):
    """Nothing is told in a program whose threads are greenlets, and one line says why."""
    with tracer.start_as_current_span("greenlet"):
        assert told() == NONE, told()
    assert len(log.lines) == 1 and log.lines[0].startswith(f"{who} has replaced threads"), log.lines


if sys.argv[1:]:  # trio cannot be imported there
    refused(sys.argv[1])
else:
    unittest.main()
