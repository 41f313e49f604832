# SPDX-License-Identifier: Apache-2.0
"""spanprof under opentelemetry-sdk: samples of native code, be it the interpreter's or an extension's, are linked to the span that was current.

    import spanprof_opentelemetry
    spanprof_opentelemetry.install()                                               # before any span
    provider.add_span_processor(spanprof_opentelemetry.SpanProcessor())            # before the exporter's

Four places are hooked. OpenTelemetry's runtime context says when a thread's current span changes, unless asyncio changes it: each of its tasks
and callbacks runs in a context of its own, which the event loop enters and leaves without a word to OpenTelemetry. So its handles say it, too, and
so do the work items of thread pools. The span processor says which spans there are and who is whose parent, and marks them. docs/tracers/python.md says what
nobody can know here."""
import asyncio, concurrent.futures.thread, contextlib, contextvars, ctypes, ctypes.util, functools, os, threading
from asyncio import _get_running_loop

import opentelemetry.context
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor as _SpanProcessor
from opentelemetry.trace.propagation import _SPAN_KEY

_uint64, _pointer = ctypes.c_uint64, ctypes.c_char_p


class _Scope(ctypes.Structure):
    _fields_ = [("thread", ctypes.c_uint32), ("depth", ctypes.c_uint32), ("serial", _uint64)]


class _StartAttributes(ctypes.Structure):  # four items of 24 bytes, which are not read: how many there are says it
    _fields_ = [("struct_size", ctypes.c_uint32), ("count", ctypes.c_uint32), ("items", _uint64 * 12), ("text", ctypes.c_char * 64)]


# A PyDLL keeps the interpreter's lock: none of these calls waits for anything but, sometimes and briefly, a lock of spanprof's own.
_lib = ctypes.PyDLL(os.environ.get("SPANPROF_LIBRARY") or ctypes.util.find_library("spanprof") or "libspanprof.so.0")
_lib.spanprof_start.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_lib.spanprof_processor_on_start.argtypes = [_pointer, _pointer, _pointer, _uint64, ctypes.POINTER(_StartAttributes)]
_lib.spanprof_processor_on_end.argtypes = [_pointer, _uint64]
_attach, _detach = _lib.spanprof_context_attach, _lib.spanprof_scope_detach
_attach.argtypes, _attach.restype = [_pointer], _Scope
_detach.argtypes = [ctypes.POINTER(_Scope)]


class _State:
    """What is told of one thread. Apart from its local object, for that is slow to ask."""
    __slots__ = ("span", "scope", "stepping")

    def __init__(self):
        self.span = self.scope = None  # what its samples are linked to
        self.stepping = False  # in a callback of asyncio's own event loop


class _Here(threading.local):
    def __init__(self):
        self.state = _State()


_here = _Here()


def _pack(context):
    """A spanprof_context of a SpanContext."""
    return (context.trace_id.to_bytes(16, "big") + context.span_id.to_bytes(8, "big") + bytes(8)
            + bytes((context.trace_flags & 255, context.is_remote)) + bytes(30))


def _packed(span):
    try:
        return span._spanprof
    except AttributeError:
        packed = _pack(span.get_span_context())
    try:
        span._spanprof = packed
    except AttributeError:
        pass  # a kind of span that has __slots__
    return packed


def _publish(context):
    """This thread works for the span of CONTEXT from now on."""
    here, span = _here.state, context.get(_SPAN_KEY)
    if not here.stepping and _get_running_loop() is not None:
        span = None  # another event loop (uvloop): when it goes on to another task is not told, so no span is better
    if span is here.span:
        return
    here.span, scope, here.scope = span, here.scope, None
    if scope is not None:
        _detach(scope)
    if span is not None:
        here.scope = _attach(_packed(span))


class _RuntimeContext:
    def __init__(self, inner):
        self._inner = inner
        self.get_current = inner.get_current

    def attach(self, context):
        token = self._inner.attach(context)
        _publish(context)
        return token

    def detach(self, token):
        self._inner.detach(token)
        _publish(self._inner.get_current())


def _step(run):
    """asyncio.Handle._run, which runs a callback, or a task up to its next await, in the context that it belongs to."""
    @functools.wraps(run)
    def step(handle):
        get_current, here = opentelemetry.context._RUNTIME_CONTEXT.get_current, _here.state
        outer, here.stepping = here.stepping, True
        _publish(handle._context.run(get_current))
        try:
            run(handle)
        finally:
            _publish(get_current())
            here.stepping = outer
    return step


def _pooled(run):
    """A work item of concurrent.futures. What it runs is often a Context's run, of asyncio.to_thread always: a switch without a word, too."""
    @functools.wraps(run)
    def work(item, *arguments):
        get_current, function = opentelemetry.context._RUNTIME_CONTEXT.get_current, getattr(item, "fn", None)
        entered = getattr(function.func if isinstance(function, functools.partial) else function, "__self__", None)
        if isinstance(entered, contextvars.Context):
            with contextlib.suppress(RuntimeError):  # entered by another thread: run will say so
                _publish(entered.run(get_current))
        try:
            run(item, *arguments)
        finally:
            _publish(get_current())
    return work


def carried(function):
    """FUNCTION for a contextvars.Context.run that nobody is told of, on a thread of one's own: Context.run(carried(function), …)."""
    @functools.wraps(function)
    def run(*arguments, **keywords):
        outer = _here.state.span
        _publish(opentelemetry.context.get_current())
        try:
            return function(*arguments, **keywords)
        finally:
            _publish({_SPAN_KEY: outer})
    return run


def start():
    """Start sampling and sending, by the environment. For a forked worker; others call install. Returns 0, or less when it does not start."""
    return _lib.spanprof_start(None, None)


def install():
    """Have every change of the current span told, and start."""
    if isinstance(opentelemetry.context._RUNTIME_CONTEXT, _RuntimeContext):
        return
    opentelemetry.context._RUNTIME_CONTEXT = _RuntimeContext(opentelemetry.context._RUNTIME_CONTEXT)
    asyncio.Handle._run = _step(asyncio.Handle._run)
    concurrent.futures.thread._WorkItem.run = _pooled(concurrent.futures.thread._WorkItem.run)
    start()


class SpanProcessor(_SpanProcessor):
    """Tells spanprof which spans there are, and gives those that have a profile the attribute pyroscope.profile.id."""

    def on_start(self, span, parent_context=None):
        out = _StartAttributes(struct_size=ctypes.sizeof(_StartAttributes))
        _lib.spanprof_processor_on_start(_packed(span), span.parent and _pack(span.parent), span.name.encode(), 0, out)
        if out.count:
            span.set_attribute("pyroscope.profile.id", trace.format_span_id(span.get_span_context().span_id))

    def on_end(self, span):
        _lib.spanprof_processor_on_end(_pack(span.get_span_context()), 0)
