# SPDX-License-Identifier: Apache-2.0
"""spanprof with opentelemetry-sdk: samples of native code, of the interpreter and of extensions, are linked to the span that was current.

    import spanprof_opentelemetry
    spanprof_opentelemetry.install()                                               # before any span
    provider.add_span_processor(spanprof_opentelemetry.SpanProcessor())            # before the exporter's

Four places are hooked:

1. OpenTelemetry's runtime context: here a thread's current span changes, unless asyncio changes it.
2. asyncio's handles: each task and callback runs in its own contextvars.Context. The event loop enters and leaves it without a call of OpenTelemetry.
3. The work items of thread pools, also of anyio: they may run in another contextvars.Context, too.
4. The span processor: it learns which spans there are and what their parents are, and marks the spans that have a profile.

docs/tracers/python.md says which changes cannot be seen. An error in this module is logged once, and the program continues."""
import asyncio, concurrent.futures.thread, contextvars, ctypes, ctypes.util, functools, logging, os, sys, threading
from asyncio import _get_running_loop

import opentelemetry.context
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor as _SpanProcessor
from opentelemetry.trace.propagation import _SPAN_KEY

_uint64, _pointer = ctypes.c_uint64, ctypes.c_char_p


class _Scope(ctypes.Structure):
    _fields_ = [("thread", ctypes.c_uint32), ("depth", ctypes.c_uint32), ("serial", _uint64)]


class _StartAttributes(ctypes.Structure):  # items: four of 24 bytes; only their count is read
    _fields_ = [("struct_size", ctypes.c_uint32), ("count", ctypes.c_uint32), ("items", _uint64 * 12), ("text", ctypes.c_char * 64)]


# A PyDLL keeps the interpreter's lock during a call. That is fine, because these calls wait for nothing except, rarely and briefly, spanprof's own locks.
_lib = ctypes.PyDLL(os.environ.get("SPANPROF_LIBRARY") or ctypes.util.find_library("spanprof") or "libspanprof.so.0")
_lib.spanprof_start.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_lib.spanprof_processor_on_start.argtypes = [_pointer, _pointer, _pointer, _uint64, ctypes.POINTER(_StartAttributes)]
_lib.spanprof_processor_on_end.argtypes = [_pointer, _uint64]
_attach, _detach = _lib.spanprof_context_attach, _lib.spanprof_scope_detach
_attach.argtypes, _attach.restype = [_pointer], _Scope
_detach.argtypes = [ctypes.POINTER(_Scope)]


_logger = logging.getLogger(__name__)


class _State:
    """What spanprof knows of one thread. It is not in the threading.local itself, because access to that is slow."""
    __slots__ = ("span", "scope", "turn")

    def __init__(self):
        self.span = self.scope = None  # the span that the thread's samples are linked to, and its spanprof_scope
        self.turn = None  # an object for the piece of work that runs (see _turn), or None


class _Here(threading.local):
    def __init__(self):
        self.state = _State()


_here = _Here()


@functools.cache
def _log_once():
    _logger.exception("a hook failed: samples may have no span")


def _pack(context):
    """The bytes of a spanprof_context for a SpanContext."""
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
        pass  # a span class with __slots__
    return packed


def _in_foreign_loop():
    """Whether this thread runs an event loop without asyncio's handles (uvloop, trio). Its switches from task to task cannot be seen."""
    trio = sys.modules.get("trio")
    return _get_running_loop() is not None or trio is not None and trio.lowlevel.in_trio_run()


def _tell(here, span):
    """Link this thread's samples to SPAN from now on; None: to no span."""
    try:
        if here.turn is None and _in_foreign_loop():
            span = None  # no link, because the span may be another task's
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
        """Make CONTEXT current. The token is a tuple: OpenTelemetry's own token, and this thread's state, turn and span before the call."""
        here = _here.state
        token = self._inner.attach(context), here, here.turn, here.span
        _tell(here, _span_of(context))
        return token

    def detach(self, token):
        """Link this thread's samples to the span that they were linked to before the attach. The current span may be a different one: the program may
        have entered a contextvars.Context since, without a call of OpenTelemetry. It may soon leave it in the same way, and a link to the Context's
        span would then remain."""
        here, there, turn, outer = _here.state, None, None, None
        if type(token) is tuple:  # no tuple: attached before install
            token, there, turn, outer = token
        try:
            self._inner.detach(token)
        finally:
            if there is here and turn is here.turn:
                _tell(here, outer)
            else:  # attached before install, in an earlier turn, or on another thread
                _tell(here, _current_span() if here.turn is not None else None)


def _turn(span, function, *arguments):
    """Call FUNCTION in a new turn, with samples linked to SPAN. A turn is one piece of work whose first span is known. Afterwards restore the turn and
    the span."""
    here = _here.state
    outer_turn, outer, here.turn = here.turn, here.span, object()
    try:
        _tell(here, span)
        return function(*arguments)
    finally:
        _tell(here, outer)
        here.turn = outer_turn


def _span_in(context):
    """The current span of a contextvars.Context."""
    try:
        return context.run(_current_span)
    except RuntimeError:
        return None  # the Context is already entered, perhaps by another thread


def _step(run):
    """Wrap asyncio.Handle._run, which runs a callback, or a task up to its next await, in the handle's Context."""
    @functools.wraps(run)
    def step(handle):
        _turn(_span_in(handle._context), run, handle)
    return step


def _pooled(run):
    """Wrap the run of a work item of concurrent.futures. The item's function is often Context.run (with asyncio.to_thread always), which changes the
    current span without a call of OpenTelemetry."""
    @functools.wraps(run)
    def work(item, *arguments):
        function = getattr(item, "fn", None)
        entered = getattr(function.func if isinstance(function, functools.partial) else function, "__self__", None)
        _turn(_span_in(entered) if isinstance(entered, contextvars.Context) else _current_span(), run, item, *arguments)
    return work


def carried(function):
    """Wrap FUNCTION for a program that calls contextvars.Context.run on its own threads: Context.run(carried(function), …). The samples of FUNCTION are
    linked to the Context's span."""
    @functools.wraps(function)
    def run(*arguments, **keywords):
        return _turn(_current_span(), functools.partial(function, *arguments, **keywords))
    return run


def _to_thread(run_sync):
    """Wrap anyio.to_thread.run_sync, which calls Context.run on anyio's own threads. Starlette and FastAPI run endpoints with it that are not
    coroutines."""
    @functools.wraps(run_sync)
    def run(function, *arguments, **keywords):
        return run_sync(carried(function), *arguments, **keywords)
    return run


def _greenlets():
    """The library that has replaced the threads of this program by greenlets: "gevent" or "eventlet"; else None. Switches of greenlets cannot be seen."""
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    if gevent and (gevent.is_module_patched("threading") or gevent.is_module_patched("socket")):
        return "gevent"
    return "eventlet" if eventlet and (eventlet.is_monkey_patched("thread") or eventlet.is_monkey_patched("socket")) else None


@functools.cache
def _refuse_once(patched):
    _logger.warning("%s has replaced threads by greenlets, whose switches are not told: spanprof is not started, for its links would be wrong", patched)


def start():
    """Start sampling and sending, with the settings of the environment. Call this in a forked worker; elsewhere call install. Returns 0, or a negative
    spanprof_status when the SDK does not start."""
    return _lib.spanprof_start(None, None)


def install():
    """Hook the changes of the current span, and start. In a program that gevent or eventlet has patched, do nothing except log one warning."""
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
            name = str(span.name).encode(errors="replace")  # OpenTelemetry accepts any object as name, and lone surrogates
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
