# SPDX-License-Identifier: Apache-2.0
"""spanprof under opentelemetry-sdk: samples of native code, be it the interpreter's or an extension's, are linked to the span that was current.

    import spanprof_opentelemetry
    spanprof_opentelemetry.install()                                               # before any span
    provider.add_span_processor(spanprof_opentelemetry.SpanProcessor())            # before the exporter's

Four places are hooked. OpenTelemetry's runtime context says when a thread's current span changes, unless asyncio changes it: each of its tasks
and callbacks runs in a context of its own, which the event loop enters and leaves without a word to OpenTelemetry. So its handles say it, too, and
so do the work items of thread pools, anyio's too. The span processor says which spans there are and who is whose parent, and marks them.
docs/tracers/python.md says what nobody can know here. Whatever fails in here is logged once, and the program goes on."""
import asyncio, concurrent.futures.thread, contextvars, ctypes, ctypes.util, functools, logging, os, sys, threading
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


_logger = logging.getLogger(__name__)


class _State:
    """What is told of one thread. Apart from its local object, for that is slow to ask."""
    __slots__ = ("span", "scope", "turn")

    def __init__(self):
        self.span = self.scope = None  # what its samples are linked to
        self.turn = None  # one for each piece of work whose contextvars.Context was known when it began, or None


class _Here(threading.local):
    def __init__(self):
        self.state = _State()


_here = _Here()


@functools.cache
def _log_once():
    _logger.exception("a hook failed: samples may have no span")


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


def _in_foreign_loop():
    """In an event loop that is not asyncio's (uvloop, trio): when it goes on to another task is not told."""
    trio = sys.modules.get("trio")
    return _get_running_loop() is not None or trio is not None and trio.lowlevel.in_trio_run()


def _tell(here, span):
    """This thread works for SPAN from now on, or for none."""
    try:
        if here.turn is None and _in_foreign_loop():
            span = None  # better than the span of another task
        if span is here.span:
            return
        packed = None if span is None else _packed(span)
    except Exception:
        _log_once()
        span = None
    scope, here.scope = here.scope, None
    if scope is not None:
        _detach(scope)
    if span is not None:
        here.scope = _attach(packed)
    here.span = span


def _span_of(context):
    return context.get(_SPAN_KEY) if isinstance(context, dict) else None


def _current_span():
    return _span_of(opentelemetry.context._RUNTIME_CONTEXT.get_current())


class _RuntimeContext:
    def __init__(self, inner):
        self._inner = inner
        self.get_current = inner.get_current

    def attach(self, context):
        """The token is a tuple: OpenTelemetry's own, and where this was and what was told there before."""
        here = _here.state
        token = self._inner.attach(context), here, here.turn, here.span
        _tell(here, _span_of(context))
        return token

    def detach(self, token):
        """Takes back what was told before the attach. That is not always the current span now: a contextvars.Context may have been entered in between
        and be left soon, both without a word, and then its span would stay."""
        here, there, turn, outer = _here.state, None, None, None
        if type(token) is tuple:  # else attached before install
            token, there, turn, outer = token
        try:
            self._inner.detach(token)
        finally:
            if there is here and turn is here.turn:
                _tell(here, outer)
            else:  # in a turn: attached in an earlier one, of the same Context
                _tell(here, _current_span() if here.turn is not None else None)


def _turn(span, function, *arguments):
    """FUNCTION in a turn that begins with SPAN. Afterwards it is again as before."""
    here = _here.state
    outer_turn, outer, here.turn = here.turn, here.span, object()
    try:
        _tell(here, span)
        return function(*arguments)
    finally:
        _tell(here, outer)
        here.turn = outer_turn


def _span_in(context):
    """What is current in a contextvars.Context."""
    try:
        return context.run(_current_span)
    except RuntimeError:
        return None  # entered already, perhaps by another thread: who is to run in it will say so


def _step(run):
    """asyncio.Handle._run, which runs a callback, or a task up to its next await, in the context that it belongs to."""
    @functools.wraps(run)
    def step(handle):
        _turn(_span_in(handle._context), run, handle)
    return step


def _pooled(run):
    """A work item of concurrent.futures. What it runs is often a Context's run, of asyncio.to_thread always: a switch without a word, too."""
    @functools.wraps(run)
    def work(item, *arguments):
        function = getattr(item, "fn", None)
        entered = getattr(function.func if isinstance(function, functools.partial) else function, "__self__", None)
        _turn(_span_in(entered) if isinstance(entered, contextvars.Context) else _current_span(), run, item, *arguments)
    return work


def carried(function):
    """FUNCTION for a contextvars.Context.run that nobody is told of, on a thread of one's own: Context.run(carried(function), …)."""
    @functools.wraps(function)
    def run(*arguments, **keywords):
        return _turn(_current_span(), functools.partial(function, *arguments, **keywords))
    return run


def _to_thread(run_sync):
    """anyio.to_thread.run_sync, by which Starlette and FastAPI run endpoints that are no coroutines: a Context's run on threads of anyio's own."""
    @functools.wraps(run_sync)
    def run(function, *arguments, **keywords):
        return run_sync(carried(function), *arguments, **keywords)
    return run


def _greenlets():
    """Who has replaced the threads of this program by greenlets, if anybody has: these switch without a word."""
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    if gevent and (gevent.is_module_patched("threading") or gevent.is_module_patched("socket")):
        return "gevent"
    return "eventlet" if eventlet and (eventlet.is_monkey_patched("thread") or eventlet.is_monkey_patched("socket")) else None


@functools.cache
def _refuse_once(patched):
    _logger.warning("%s has replaced threads by greenlets, whose switches are not told: spanprof is not started, for its links would be wrong", patched)


def start():
    """Start sampling and sending, by the environment. For a forked worker; others call install. Returns 0, or less when it does not start."""
    return _lib.spanprof_start(None, None)


def install():
    """Have every change of the current span told, and start. Not in a program that gevent or eventlet has patched: one warning says so."""
    if isinstance(opentelemetry.context._RUNTIME_CONTEXT, _RuntimeContext):
        return
    if patched := _greenlets():
        _refuse_once(patched)
        return
    opentelemetry.context._RUNTIME_CONTEXT = _RuntimeContext(opentelemetry.context._RUNTIME_CONTEXT)
    asyncio.Handle._run = _step(asyncio.Handle._run)
    concurrent.futures.thread._WorkItem.run = _pooled(concurrent.futures.thread._WorkItem.run)
    try:
        import anyio.to_thread
        anyio.to_thread.run_sync = _to_thread(anyio.to_thread.run_sync)
    except ImportError:
        pass  # not installed
    start()


class SpanProcessor(_SpanProcessor):
    """Tells spanprof which spans there are, and gives those that have a profile the attribute pyroscope.profile.id."""

    def on_start(self, span, parent_context=None):
        try:
            out = _StartAttributes(struct_size=ctypes.sizeof(_StartAttributes))
            name = str(span.name).encode(errors="replace")  # OpenTelemetry takes any object, and half surrogates
            _lib.spanprof_processor_on_start(_packed(span), span.parent and _pack(span.parent), name, 0, out)
            if out.count:
                span.set_attribute("pyroscope.profile.id", trace.format_span_id(span.get_span_context().span_id))
        except Exception:
            _log_once()

    def on_end(self, span):
        try:
            _lib.spanprof_processor_on_end(_pack(span.get_span_context()), 0)
        except Exception:
            _log_once()
