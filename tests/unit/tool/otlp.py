# SPDX-License-Identifier: Apache-2.0
"""Makes small OTLP files for the tests of the spanprof command. Requests are dictionaries in the form of OTLP/JSON. The encoder to protobuf has
its own table of field numbers, so that the command's reader is not tested against its own tables."""
import base64
import fcntl
import itertools
import json
import os
import pathlib
import pty
import re
import socket
import struct
import subprocess
import tempfile
import termios
import unittest

TOOL = os.environ.get("SPANPROF_TEST_TOOL", "spanprof")
SERVER = pathlib.Path(TOOL).with_name("tool_server")
# The environment of the tests without what changes the tool's output. Made once, because some tests call the tool a thousand times.
AROUND = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LC_ALL", "LANG", "LC_CTYPE")}

REPORT_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CART_TRACE = "0af7651916cd43dd8448eb211c80319c"
REPORT, QUERY, RENDER, COMPRESS, CART = ("00f067aa0ba902b7", "00000000000000a1", "00000000000000a2", "00000000000000a3",
                                         "b7ad6b7169203331")
PROFILE_IDS = itertools.count(0x01020304_05060708_090a0b0c_0d0e0f10)  # each profile that is made gets the next one
SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def any_value(value):
    """An AnyValue of a text, a number, a list, or a dictionary."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [attribute(*item) for item in value.items()]}}
    return {"intValue" if isinstance(value, int) else "stringValue": str(value)}


def attribute(key, value):
    return {"key": key, "value": any_value(value)}


def span(trace, span_id, name, start_ms, duration_ms, parent="", kind=1, **more):
    made = {"traceId": trace, "spanId": span_id, "name": name, "kind": kind,
            "startTimeUnixNano": str(START + start_ms * 1_000_000),
            "endTimeUnixNano": str(START + (start_ms + duration_ms) * 1_000_000), **more}
    if parent:
        made["parentSpanId"] = parent
    return made


def traces(spans=None, service="shop"):
    if spans is None:
        profile_id = lambda own: [attribute("pyroscope.profile.id", own)]
        spans = [
            span(REPORT_TRACE, REPORT, "GET /report", 1000, 250, kind=2, attributes=profile_id(REPORT)),
            span(REPORT_TRACE, QUERY, "query", 1005, 40, REPORT, attributes=profile_id(QUERY)),
            span(REPORT_TRACE, RENDER, "render", 1050, 190, REPORT, attributes=profile_id(RENDER)),
            span(REPORT_TRACE, COMPRESS, "compress", 1230, 5, RENDER, attributes=profile_id(COMPRESS)),
            span(CART_TRACE, CART, "GET /cart", 1500, 60, kind=2, status={"code": 2, "message": "no such cart"},
                 attributes=profile_id(CART)),
        ]
    return {"resourceSpans": [{"resource": {"attributes": [attribute("service.name", service)]},
                               "scopeSpans": [{"scope": {"name": "shop"}, "spans": spans}]}]}


class Dictionary:
    """The seven tables of a dictionary. Each method adds an entry, if it is not there yet, and returns its index."""

    def __init__(self):
        self.stacks = {}  # the index of each stack by its names; there are many, and their tables are long
        self.tables = {"mappingTable": [{}], "locationTable": [{}], "functionTable": [{}], "linkTable": [{}],
                       "stringTable": [""], "attributeTable": [{}], "stackTable": [{}]}

    def put(self, table, entry):
        entries = self.tables[table]
        if entry not in entries:
            entries.append(entry)
        return entries.index(entry)

    def string(self, text):
        return self.put("stringTable", text)

    def attribute(self, key, value):
        return self.put("attributeTable", {"keyStrindex": self.string(key), "value": attribute(key, value)["value"]})

    def mapping(self):
        return self.put("mappingTable", {"memoryStart": "4096", "memoryLimit": "8192", "filenameStrindex": self.string("/bin/shop"),
                                         "attributeIndices": [self.attribute("process.executable.build_id.gnu", "c0ffee")]})

    def location(self, name):
        if name in SYSTEM_CALLS:
            return self.put("locationTable", {"lines": [{"functionIndex": self.put("functionTable",
                                                                                   {"nameStrindex": self.string(name)})}]})
        function = self.put("functionTable", {"nameStrindex": self.string(name), "filenameStrindex": self.string("shop.c")})
        return self.put("locationTable", {"mappingIndex": self.mapping(), "address": str(4096 + function),
                                          "lines": [{"functionIndex": function, "line": "7"}]})

    def stack(self, *names):
        """NAMES from the root to the leaf."""
        if names not in self.stacks:
            self.stacks[names] = self.put("stackTable", {"locationIndices": [self.location(name) for name in reversed(names)]})
        return self.stacks[names]

    def link(self, trace, span_id):
        return self.put("linkTable", {"traceId": trace, "spanId": span_id}) if span_id else 0


SAMPLES = [
    (("main", "serve", "report", "append_row"), REPORT_TRACE, RENDER, 20),
    (("main", "serve", "report", "query_rows"), REPORT_TRACE, QUERY, 3),
    (("main", "serve", "deflate"), REPORT_TRACE, COMPRESS, 2),
    (("main", "serve", "cart"), CART_TRACE, CART, 4),
    (("main", "idle"), "", "", 1),
]
COUNTS = {"spanprof.engine": "timer", "spanprof.engine.reason": "asked for", "spanprof.unattributed_ns": 12345,
          "spanprof.unattributed_ns.threads": [{"thread.name": "w\x1b1", "thread.id": 77, "unattributed_ns": 12000}],
          "spanprof.samples.linked": 29, "spanprof.samples.none": 1,
          "spanprof.samples.unknown": 0, "spanprof.dropped.ring_full": 7,
          "spanprof.stacks.complete": 25, "spanprof.stacks.no_table": 3, "spanprof.samples.folded": 2,
          "spanprof.stacks.by_frame_pointer": 6}


# Leaf frames of threads that wait, in wall profiles. They have a name, but no address and no mapping.
SYSTEM_CALLS = {"recvfrom", "pread64", "futex", "clock_nanosleep", "poll", "[runnable]"}
MS = 1_000_000
WALL = ("wall", "nanoseconds", "wall", "nanoseconds")
WALL_SAMPLES = [
    (("main", "serve", "report", "append_row"), REPORT_TRACE, RENDER, 200 * MS),
    (("main", "serve", "report", "append_row", "[runnable]"), REPORT_TRACE, RENDER, 20 * MS, "runnable"),
    (("main", "serve", "report", "query_rows", "recvfrom"), REPORT_TRACE, QUERY, 20 * MS, "network", "socket"),
    (("main", "serve", "report", "query_rows", "pread64"), REPORT_TRACE, QUERY, 20 * MS, "disk", "file"),
    (("main", "serve", "deflate"), REPORT_TRACE, COMPRESS, 20 * MS),
    (("main", "serve", "futex"), REPORT_TRACE, REPORT, 20 * MS, "lock"),
    (("main", "serve", "cart"), CART_TRACE, CART, 40 * MS),
    (("main", "serve", "cart", "clock_nanosleep"), CART_TRACE, CART, 20 * MS, "sleep"),
    (("main", "idle", "poll"), "", "", 1000 * MS, "network", "socket"),
    (("main", "idle", "poll"), "", "", 20 * MS, "other", "device"),
]
WALL_COUNTS = {"spanprof.samples.linked": 18, "spanprof.samples.none": 51, "spanprof.samples.unknown": 1,
               "spanprof.samples.boundary": 0, "spanprof.wall.visits": 80, "spanprof.wall.unmoved": 40,
               "spanprof.wall.discarded": 2, "spanprof.stacks.complete": 70}


def sample(d, names, trace, own, value, wait="", descriptor="", holder=("", "", ""), lock=("", "")):
    words = [("spanprof.wait", wait), ("spanprof.wait.descriptor", descriptor), ("spanprof.holder.trace_id", holder[0]),
             ("spanprof.holder.span_id", holder[1]), ("spanprof.holder.stack", holder[2] if len(holder) > 2 else ""),
             ("spanprof.lock.name", lock[0]), ("spanprof.lock.address", lock[1])]
    made = {"stackIndex": d.stack(*names), "linkIndex": d.link(trace, own), "values": [str(value)],
            "attributeIndices": [d.attribute(key, word) for key, word in words if word]}
    return {key: item for key, item in made.items() if item != []}


def request(d, *made, service="shop"):
    """One request with the profiles MADE; D is their dictionary."""
    return {"resourceProfiles": [{"resource": {"attributes": [attribute("service.name", service)]},
                                  "scopeProfiles": [{"scope": {"name": "spanprof"}, "profiles": list(made)}]}],
            "dictionary": d.tables}


def profile(d, samples, period, kind, attributes, start_s=0):
    return {"sampleType": {"typeStrindex": d.string(kind[0]), "unitStrindex": d.string(kind[1])},
            "periodType": {"typeStrindex": d.string(kind[2]), "unitStrindex": d.string(kind[3])},
            "period": str(period), "timeUnixNano": str(START + start_s * SECOND), "durationNano": str(10 * SECOND),
            "profileId": f"{next(PROFILE_IDS):032x}",
            "attributeIndices": [d.attribute(key, value) for key, value in attributes.items()],
            "samples": [sample(d, *each) for each in samples]}


def profiles(samples=SAMPLES, service="shop", period=10_000_000, kind=("samples", "count", "cpu", "nanoseconds"),
             attributes=COUNTS):
    d = Dictionary()
    return request(d, profile(d, samples, period, kind, attributes), service=service)


def wall_profiles(samples=WALL_SAMPLES, period=20 * MS, kind=WALL, attributes=WALL_COUNTS):
    return profiles(samples, period=period, kind=kind, attributes=attributes)


def lock_profiles(attributes=None, locks=(("", ""),) * 4):
    """Waits for locks: many because of one span, one for a span that is not in the files, and one whose holder is not known."""
    stack, d = ("main", "serve", "look_up"), Dictionary()
    in_cpp = stack + ("std::unique_lock<std::mutex>::lock()", "__gthread_mutex_lock(pthread_mutex_t*)")
    waits = [(stack, CART_TRACE, CART, 30, 4, (REPORT_TRACE, RENDER, "main;rebuild_index")),
             (("main", "retry", "look_up"), CART_TRACE, CART, 10, 1,
              (REPORT_TRACE, RENDER, "main;other;rebuild_index;std::mutex::unlock();__gthread_mutex_unlock")),
             (in_cpp, CART_TRACE, CART, 2, 1, (REPORT_TRACE, "00000000000000ff")), (stack, "", "", 1, 2, ("", "not an id", "retry_lock"))]
    made = lambda kind, unit, values: profile(d, [(*wait[:3], value, "", "", wait[5], lock) for wait, lock, value in zip(waits, locks, values)], 1,
                                              (kind, unit, "contentions", "count"), attributes or {})
    return request(d, made("contentions", "count", [wait[4] for wait in waits]),
                   made("delay", "nanoseconds", [wait[3] * MS for wait in waits]))


def both_profiles(cpu=SAMPLES, wall=WALL_SAMPLES):
    """A request like those of the SDK: a CPU and a wall profile with one dictionary."""
    d = Dictionary()
    return request(d, profile(d, cpu, 10 * MS, ("samples", "count", "cpu", "nanoseconds"), COUNTS),
                   profile(d, wall, 20 * MS, WALL, WALL_COUNTS))


# ---- protobuf: {message: {json name: (number, kind)}}; a kind in capitals is a message, "[…]" is repeated ----

SCHEMA = {
    "TRACES": {"resourceSpans": (1, "[RESOURCE_SPANS]")},
    "RESOURCE_SPANS": {"resource": (1, "RESOURCE"), "scopeSpans": (2, "[SCOPE_SPANS]")},
    "SCOPE_SPANS": {"scope": (1, "SCOPE"), "spans": (2, "[SPAN]")},
    "SPAN": {"traceId": (1, "hex"), "spanId": (2, "hex"), "parentSpanId": (4, "hex"), "name": (5, "text"), "kind": (6, "varint"),
             "startTimeUnixNano": (7, "fixed64"), "endTimeUnixNano": (8, "fixed64"), "attributes": (9, "[KEY_VALUE]"),
             "status": (15, "STATUS"), "flags": (16, "fixed32")},
    "STATUS": {"message": (2, "text"), "code": (3, "varint")},
    "RESOURCE": {"attributes": (1, "[KEY_VALUE]")},
    "SCOPE": {"name": (1, "text"), "attributes": (3, "[KEY_VALUE]")},
    "KEY_VALUE": {"key": (1, "text"), "value": (2, "VALUE"), "keyStrindex": (3, "varint")},
    "VALUE": {"stringValue": (1, "text"), "intValue": (3, "varint"), "arrayValue": (5, "ARRAY"), "kvlistValue": (6, "KEY_VALUE_LIST"),
              "stringValueStrindex": (8, "varint")},
    "ARRAY": {"values": (1, "[VALUE]")},
    "KEY_VALUE_LIST": {"values": (1, "[KEY_VALUE]")},
    "PROFILES": {"resourceProfiles": (1, "[RESOURCE_PROFILES]"), "dictionary": (2, "DICTIONARY")},
    "RESOURCE_PROFILES": {"resource": (1, "RESOURCE"), "scopeProfiles": (2, "[SCOPE_PROFILES]")},
    "SCOPE_PROFILES": {"scope": (1, "SCOPE"), "profiles": (2, "[PROFILE]")},
    "PROFILE": {"sampleType": (1, "VALUE_TYPE"), "samples": (2, "[SAMPLE]"), "timeUnixNano": (3, "fixed64"),
                "durationNano": (4, "varint"), "periodType": (5, "VALUE_TYPE"), "period": (6, "varint"), "profileId": (7, "hex"),
                "originalPayloadFormat": (9, "text"), "originalPayload": (10, "base64"), "attributeIndices": (11, "[varint]")},
    "VALUE_TYPE": {"typeStrindex": (1, "varint"), "unitStrindex": (2, "varint")},
    "SAMPLE": {"stackIndex": (1, "varint"), "attributeIndices": (2, "[varint]"), "linkIndex": (3, "varint"),
               "values": (4, "[varint]"), "timestampsUnixNano": (5, "[fixed64]")},
    "DICTIONARY": {"mappingTable": (1, "[MAPPING]"), "locationTable": (2, "[LOCATION]"), "functionTable": (3, "[FUNCTION]"),
                   "linkTable": (4, "[LINK]"), "stringTable": (5, "[text]"), "attributeTable": (6, "[KEY_VALUE_AND_UNIT]"),
                   "stackTable": (7, "[STACK]")},
    "MAPPING": {"memoryStart": (1, "varint"), "memoryLimit": (2, "varint"), "filenameStrindex": (4, "varint"),
                "attributeIndices": (5, "[varint]")},
    "LOCATION": {"mappingIndex": (1, "varint"), "address": (2, "varint"), "lines": (3, "[LINE]")},
    "LINE": {"functionIndex": (1, "varint"), "line": (2, "varint"), "column": (3, "varint")},
    "FUNCTION": {"nameStrindex": (1, "varint"), "systemNameStrindex": (2, "varint"), "filenameStrindex": (3, "varint"),
                 "startLine": (4, "varint")},
    "LINK": {"traceId": (1, "hex"), "spanId": (2, "hex")},
    "KEY_VALUE_AND_UNIT": {"keyStrindex": (1, "varint"), "value": (2, "VALUE"), "unitStrindex": (3, "varint")},
    "STACK": {"locationIndices": (1, "[varint]")},
}


def varint(number):
    number &= 2**64 - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def scalar(kind, value):
    """The wire type and the bytes of a value that is not a message."""
    if kind == "varint":
        return 0, varint(int(value))
    if kind in ("fixed64", "fixed32"):
        return (1, int(value).to_bytes(8, "little")) if kind == "fixed64" else (5, int(value).to_bytes(4, "little"))
    data = {"hex": bytes.fromhex, "base64": base64.b64decode}.get(kind, lambda v: v if isinstance(v, bytes) else v.encode())(value)
    return 2, varint(len(data)) + data


def encode(message, value):
    out = b""
    for name, item in value.items():
        number, kind = SCHEMA[message][name]
        repeated, kind = kind.startswith("["), kind.strip("[]")
        if repeated and kind in ("varint", "fixed64"):
            packed = b"".join(scalar(kind, each)[1] for each in item)
            out += varint(number << 3 | 2) + varint(len(packed)) + packed
            continue
        for each in item if repeated else [item]:
            wire, data = scalar(kind, each) if kind in ("varint", "fixed64", "fixed32", "text", "hex", "base64") else (2, None)
            if data is None:
                inner = encode(kind, each)
                data = varint(len(inner)) + inner
            out += varint(number << 3 | wire) + data
    return out


def protobuf(request):
    return encode("TRACES" if "resourceSpans" in request else "PROFILES", request)


def json_lines(*requests):
    return "".join(json.dumps(request) + "\n" for request in requests).encode()


def framed(*requests):
    messages = [protobuf(request) for request in requests]
    return b"".join(varint(len(message)) + message for message in messages)


# ---- running the tool ----

def terminal_output(command, columns, cwd, **environment):
    """What COMMAND prints on a terminal of COLUMNS columns. Its exit code has to be 0."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    around = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    text = b""
    with subprocess.Popen(command, cwd=cwd, stdout=theirs, env={**around, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment}) as process:
        os.close(theirs)
        with open(ours, "rb", buffering=0) as terminal:
            try:
                while chunk := terminal.read(65536):
                    text += chunk
            except OSError:  # the command has closed the terminal
                pass
    assert process.returncode == 0, text
    return text.decode().replace("\r\n", "\n")


class ToolServer:
    """The process that runs the tool for this test file (tool_server.c). It is started with the first call, and has to end with 0."""
    current = None

    @classmethod
    def get(cls):
        if not cls.current:
            cls.current = cls()
            unittest.addModuleCleanup(cls.current.close)
        return cls.current

    def __init__(self):
        self.null, self.captured = os.open(os.devnull, os.O_RDONLY), [os.memfd_create(name) for name in ("stdout", "stderr")]
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen([SERVER], stdin=theirs)

    def close(self):
        ToolServer.current = None
        self.socket.close()
        for descriptor in (self.null, *self.captured):
            os.close(descriptor)
        if self.process.wait() != 0:
            raise RuntimeError(f"{SERVER} ended with {self.process.returncode}")

    def call(self, arguments, folder, environment, descriptors, timeout):
        """The exit code, as subprocess has it, and whether the tool was killed after TIMEOUT seconds. DESCRIPTORS are its standard input,
        output, and error."""
        words = [os.fsencode(word) for word in (folder, *arguments, *(f"{key}={value}" for key, value in environment.items()))]
        if any(b"\0" in word for word in words):
            raise ValueError("embedded null byte")
        data = b"".join(word + b"\0" for word in words)
        socket.send_fds(self.socket, [struct.pack("4I", len(data), len(words), len(arguments), round(timeout * 1000))], descriptors)
        self.socket.sendall(data)
        answer = self.socket.recv(8, socket.MSG_WAITALL)
        if len(answer) != 8:
            raise RuntimeError(f"{SERVER} has ended")
        status, timed_out = struct.unpack("2i", answer)
        return os.waitstatus_to_exitcode(status), bool(timed_out)

    def take_output(self):
        """What the last call wrote to the two captured descriptors."""
        taken = [os.pread(descriptor, os.fstat(descriptor).st_size, 0) for descriptor in self.captured]
        for descriptor in self.captured:
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
        return taken


def call_tool(*arguments, cwd, env, timeout=300):
    """What subprocess.run returns for TOOL with these ARGUMENTS, no input, and captured output."""
    server = ToolServer.get()
    code, timed_out = server.call([TOOL, *arguments], cwd, env, [server.null, *server.captured], timeout)
    output, error = server.take_output()
    if timed_out:
        raise subprocess.TimeoutExpired([TOOL, *arguments], timeout, output, error)
    return subprocess.CompletedProcess([TOOL, *arguments], code, output, error)


def without_colours(text):
    return re.sub(r"\x1b\[[0-9]*m", "", text)


class ToolTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, data):
        (self.folder / name).write_bytes(data)
        return name

    def write_shop(self):
        """Write the two files that belong to the prefix "shop"."""
        self.write("shop.traces.jsonl", json_lines(traces()))
        self.write("shop.profiles.jsonl", json_lines(profiles()))
        return "shop"

    def run_tool(self, *arguments, locale="C.UTF-8", columns=None, **more):
        """Call the tool. A test that needs a pipe, a terminal, or a signal starts the program itself."""
        environment = {**AROUND, "LC_ALL": locale}
        if columns:
            environment["COLUMNS"] = str(columns)
        return call_tool(*map(str, arguments), cwd=self.folder, env=environment, **more)

    def answer(self, *arguments, **more):
        """The standard output of the tool. It has to end with 0 and print no error."""
        result = self.run_tool(*arguments, **more)
        self.assertEqual((result.returncode, result.stderr), (0, b""), result.stdout[-2000:])
        return result.stdout.decode()

    def on_terminal(self, *arguments, columns=80, **environment):
        """The lines that the tool prints on a terminal of COLUMNS columns, without colours."""
        text = terminal_output([TOOL, *map(str, arguments)], columns, cwd=self.folder, **environment)
        return without_colours(text).splitlines()

    def answer_json(self, *arguments):
        return json.loads(self.answer(*arguments))

    def refuse(self, code, *arguments, says=()):
        """The tool has to end with CODE and one line on standard error, which contains all texts of SAYS. Returns the line."""
        result = self.run_tool(*arguments)
        error = result.stderr.decode()
        self.assertEqual(result.returncode, code, error)
        self.assertRegex(error, r"\Aspanprof: [^\n]+\n\Z")
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, error)
        return error


__all__ = [name for name in dir() if not name.startswith("_")]
