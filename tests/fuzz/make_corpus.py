#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the corpus of the fuzz targets anew: where libFuzzer begins. Inputs that once broke something are in the same folders
under names that begin with `was-`, and some are made by hand (BY_HAND): they are left alone. Needs gcc, clang and objcopy for what compilers make.

usage: make_corpus.py           writes the corpus
       make_corpus.py --check   the corpus in the tree is what this script makes: exits 1 with a line for each file that is not

What a compiler makes (COMPILED) differs from one version to the next: of these inputs --check looks at the names only.
"""
import base64
import gzip
import json
import lzma
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "unit" / "tool"))
import otlp

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

CONTAINER = "4a5b8c1d9e0f2736455463728190abcdef0123456789abcdef0123456789abcd"

TEXTS = {
    "traceparent": {
        "plain": f"00-{TRACE}-{SPAN}-01",
        "blanks": f" \t00-{TRACE}-{SPAN}-03 ",
        "later-version": f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like",
        "version-ff": f"ff-{TRACE}-{SPAN}-01",
        "zero-trace": f"00-{'0' * 32}-{SPAN}-00",
        "upper-case": f"00-{TRACE.upper()}-{SPAN}-00",
    },
    "headers": {
        "two": "api-key=secret,x-tenant=shop",
        "encoded": "Authorization=Bearer%20abc%3D%3D , empty=\nno access for abc==, which is Bearer abc==",
        "injection": "a=b%0d%0aContent-Length: 0,%0a=c,key",
        "own": "content-type=text/plain,Expect=100-continue,ok=1",
    },
    "pull_request": {
        "profile": "GET /debug/pprof/profile?seconds=5&debug=0 HTTP/1.1\r\nHost: 127.0.0.1:6060\r\nAccept: */*\r\n\r\n",
        "heap": "GET /debug/pprof/heap HTTP/1.0\r\nhost: [::1]:1\r\n\r\n",
        "mutex": "GET /debug/pprof/mutex?seconds=3600 HTTP/1.1\nHost: localhost\n\n",
        "host": "GET /debug/pprof/block HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    },
    "resource": {
        "two": "service.name=shop,deployment.environment.name=prod",
        "encoded": " service.version = 1.0%2C2 ,city=Z%C3%BCrich,,",
        "broken": "a=%zz,b=%ff,c",
        "ours": "telemetry.sdk.name=other,service.name=,process.pid=1",
    },
    "container": {
        "docker": f"12:pids:/docker/{CONTAINER}\n1:name=systemd:/docker/{CONTAINER}\n0::/\n",
        "containerd": f"0::/kubepods.slice/kubepods-podabc.slice/cri-containerd-{CONTAINER}.scope\n",
        "podman": f"0::/machine.slice/libpod-{CONTAINER}.scope/container\n0::/libpod-conmon-{CONTAINER}.scope",
        "fargate": f"1:name=systemd:/ecs/{CONTAINER[:32]}/{CONTAINER[:32]}-1234567890\n",
        "mounts": f"1 0 0:56 / / rw - overlay overlay rw\n9 1 8:1 /docker/containers/{CONTAINER}/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n",
        "sandbox": f"9 1 8:1 /containerd/sandboxes/{CONTAINER}/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n",
        "pod": f"9 1 8:1 /containers/{CONTAINER}/hostname /etc/hostname rw\n9 1 8:1 /var/lib/kubelet/pods/6b2e/etc-hosts /etc/hosts rw\n",
        "stat": "42 (a b) c) S 1 42 42 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0 12345 1000 20 18446744073709551615\n",
    },
    "endpoint": {
        "base": "http://localhost:4318",
        "path": "https://collector.example/otlp/?key=secret#part",
        "secret": "https://user:p@ss@[::1]:443/x@y",
        "at-in-query": "http://host/v1?mail=me@SECRET",
        "no-scheme": "localhost:4318",
        "bad-port": "http://host:99999/",
    },
    "retry_after": {
        "seconds": "120",
        "large": "99999999999999999999",
        "date": "Wed, 15 Nov 2023 08:00:00 GMT",
        "before-1970": "Thu, 01 Jan 1960 00:00:00 GMT",
        "past": "Sunday, 06-Nov-94 08:49:37 GMT",
        "neither": "soon",
    },
    "perf_map": {
        "node": "3ef0a1c2d3c0 1c8 LazyCompile:*render /srv/app.js:7\n3ef0a1c2d600 40 RegExp:[a-z]\n",
        "overlaps": "1000 1000 a\n1800 1000 b\n1400 100 c\nf00 200 d\n1000 10 e\n",
        "odd": "0x1000 0x20 x\r\nfffffffffffffff0 20 wraps\n11111111111111111 1 y\n\n2000  20  two\n3000 20 no end",
    },
    "demangle": {
        "cpp": "_ZN2ns1fIiEEvPc",
        "cpp-lambda": "_ZZ4mainENKUlvE_clEv.isra.0",
        "cpp-thunk": "_ZThn16_NSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEED1Ev",
        "rust-legacy": "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
        "rust-v0": "_RNvMs0_NtCs1234_5crate3fooINtB5_3BarmE3baz",
        "rust-punycode": "_RNvC5crateu8gdel_5qa",
        "c": "memcpy",
    },
}


BY_HAND = {"input/labels.pprof"}
COMPILED = {"elf/symtab.so", "elf/dynsym.so", "gnu_debugdata/image", "gnu_debugdata/stripped", "gnu_debugdata/xz", "unwind/compiled",
            "dwarf/gcc5", "dwarf/gcc4", "dwarf/gxx5", "dwarf/clang5", "dwarf/clangxx4"}


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def golden(name):
    """The bytes that tests/golden/NAME writes down."""
    text = (HERE.parent / "golden" / name).read_text()
    return bytes.fromhex(re.sub(r"#.*", "", text))


def answers():
    partial = field(1, 3) + field(2, b"3 were too old")
    return {"partial": field(1, partial), "status": field(1, 8) + field(2, "over the limit: 5 ü".encode()),
            "status-details": field(1, 3) + field(2, b"bad") + field(3, field(1, b"type") + field(2, b"value")),
            "json": b'{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "too old \\u00e9"}, "message": "no"}',
            "grpc-frame": b"\0" + len(partial).to_bytes(4, "big") + partial, "grpc-message": b"caf%C3%A9 100%25",
            "grpc-gzip": b"\1" + len(gzip.compress(partial, mtime=0)).to_bytes(4, "big") + gzip.compress(partial, mtime=0),
            "grpc-details": base64.b64encode(field(1, 8) + field(3, field(1, b"x/google.rpc.RetryInfo") + field(2, field(1, field(1, 2))))),
            "grpc-details-empty": base64.b64encode(field(1, 8) + field(3, field(1, b"x/google.rpc.RetryInfo") + field(6, field(6, field(1, 2))))),
            "text": b"404 page not found\n", "html": b"<html>\r\n<b>502</b> \xff\x01"}


def switches():
    """The time recorder's file: whole, cut, with a loss, and with a slot used twice."""
    whole = golden("switches.hex")
    header, block, records, end = whole[:64], whole[64:80], whole[80:-56], whole[-56:]
    word = lambda *numbers: b"".join(n.to_bytes(8, "little") for n in numbers)
    framed = lambda content, slot=0: (1).to_bytes(4, "little") + len(content).to_bytes(4, "little") + slot.to_bytes(8, "little") + content
    begin, rest = records[:40], records[40:]
    lost = begin + rest[:40] + word(7 | 5 << 28, 3) + rest[:40] + word(5 | 2 << 12 | 9 << 28)
    return {"golden": whole, "cut": whole[:150], "header": header, "lost": header + framed(lost) + end,
            "twice": header + framed(begin + begin + rest) + framed(begin, 3) + end + end, "several": header + block + records + end + framed(word(6, 1 << 60)),
            "undefined": header + framed(begin + word(2 | 9 << 4))}


def files():
    """What the command reads: both signals, JSON and protobuf, bare and framed, one and several."""
    traces, profiles = golden("traces.hex"), golden("profiles.hex")
    json_traces = (HERE.parent / "golden" / "traces.json").read_bytes()
    json_profiles = (HERE.parent / "golden" / "profiles.json").read_bytes()
    shop = json.dumps(otlp.traces(), separators=(",", ":")).encode()
    cycle = json.dumps(otlp.traces([otlp.span(TRACE, "00000000000000a1", "a", 0, 9, "00000000000000a2"),
                                    otlp.span(TRACE, "00000000000000a2", "b", 1, 5, "00000000000000a1")])).encode()
    wire = {"traces.pb": traces, "profiles.pb": profiles}
    text = {"traces.json": json_traces, "profiles.json": json_profiles, "shop.json": shop, "cycle.json": cycle}
    both = {"framed.pb": varint(len(traces)) + traces + varint(len(traces)) + traces,
            "two.jsonl": shop + b"\n" + json_profiles, "collapsed": b"main;work;leaf 12\n", "no_newline.folded": b"root;b 12",
            "wall.pb": otlp.protobuf(otlp.both_profiles())}
    return wire, text, {**wire, **text, **both}


SOURCE = """
__attribute__((weak)) int hook(int x) { return x; }
static __attribute__((noinline)) int inner(int x) { return hook(x) + 1; }
int outer(int n) { volatile char room[n]; room[0] = 1; return inner(room[0]) * 2; }
"""


def elf():
    with tempfile.TemporaryDirectory() as folder:
        run = lambda *words: subprocess.run(words, cwd=folder, check=True)
        pathlib.Path(folder, "a.c").write_text(SOURCE)
        run("gcc", "-O1", "-fno-omit-frame-pointer", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=none,-z,noseparate-code,-z,norelro",
            "-o", "a.so", "a.c")
        run("objcopy", "--remove-section=.comment", "a.so")
        run("objcopy", "-O", "binary", "--only-section=.eh_frame", "a.so", "frames")
        run("strip", "-o", "stripped.so", "a.so")
        read = lambda name: pathlib.Path(folder, name).read_bytes()
        return {"symtab.so": read("a.so"), "dynsym.so": read("stripped.so")}, read("frames")


INLINED = """
struct shop { int open; struct shop *next; };
static inline int leaf(struct shop *s) { return s->open ? s->open * 3 : 7; }
static inline int middle(struct shop *s) { int sum = leaf(s); for (int i = 0; i < sum; i++) sum ^= leaf(s->next); return sum; }
int work(struct shop *s) { return middle(s) + middle(s->next); }
void _start(void) { static struct shop s; s.open = work(&s); }
"""
NAMESPACES = """
namespace outer { namespace { struct box { int items[4]; template <class F> int each(F f) { int n = 0; for (int i : items) n += f(i); return n; } }; } }
int work(int x) { outer::box b = {{x, 2, 3, x}}; return b.each([x](int i) { return i * x; }); }
extern "C" void _start() { static volatile int x; x = work(x); }
"""
# The order of section_names in fuzz_dwarf.c.
DWARF_SECTIONS = ["str", "line_str", "addr", "str_offsets", "ranges", "rnglists", "line", "abbrev", "info"]
SEPARATOR = b"\n--\n"


def dwarf(compiler, language, source, *options):
    """The contents of the sections with debug information of a small program linked at 0x10000."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([compiler, "-x", language, "-", "-g", "-O2", *options, f"-ffile-prefix-map={folder}=/src", "-nostdlib", "-static", "-fno-exceptions",
                        "-Wl,-Ttext=0x10000,--build-id=none", "-o", "a"],
                       input=source, text=True, cwd=folder, check=True)
        contents = []
        for name in DWARF_SECTIONS:
            subprocess.run(["objcopy", "-O", "binary", "--only-section=.debug_" + name, "--set-section-flags",
                            f".debug_{name}=alloc", "a", name], cwd=folder, check=False, capture_output=True)
            path = pathlib.Path(folder, name)
            contents.append(path.read_bytes() if path.exists() else b"")
            assert SEPARATOR not in contents[-1]
        return SEPARATOR.join(contents)


def entry(content):
    """One entry of .eh_frame: CIE or FDE without its length, which is put before it."""
    content += bytes(-len(content) % 4)
    return len(content).to_bytes(4, "little") + content


def frames(compiled):
    """Head of two bytes (functions promised; where the section is, in pages behind 0x10000), then the section."""
    cie = entry(bytes(4) + b"\x01zRS\0\x01\x78\x10\x01\x03\x0c\x07\x08\x90\x01")
    fde = entry((len(cie) + 4).to_bytes(4, "little") + (0x10100).to_bytes(4, "little") + (0x40).to_bytes(4, "little") + b"\0"
                + bytes.fromhex("410e1086024 30d066c0c0708c6".replace(" ", "")))
    expression = entry((len(cie) + len(fde) + 4).to_bytes(4, "little") + (0x10200).to_bytes(4, "little") + b"\x20\0\0\0\0"
                       + bytes.fromhex("0f03770806" "0a410e200b"))
    return {"compiled": b"\0\x02" + compiled, "written": b"\x02\x08" + cie + fde + expression, "limit": b"\x01\x08" + cie + fde,
            "terminators": b"\0\x08" + cie + fde + bytes(12) + expression + bytes(4), "zeros": bytes(64)}


def section_headers():
    """Small ELF files: two sections, the names and .eh_frame, and what may be wrong with their headers."""
    names = b"\0.eh_frame\0.shstrtab\0"

    def file(count=3, size=64, name=1, flags=2, offset=0x100, length=24, first=0, index=2, names_at=0x140):
        head = (b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 0x180, 0, 64, 56, 0, size, count, index))
        header = lambda *fields: struct.pack("<IIQQQQIIQQ", *fields)
        table = (header(0, 0, 0, 0, 0, first, 0, 0, 0, 0) + header(name, 1, flags, 0x1000, offset, length, 0, 0, 8, 0)
                 + header(11, 3, 0, 0, names_at, len(names), 0, 0, 1, 0))
        return head.ljust(0x140, b"\0") + names.ljust(0x40, b"\0") + table

    most = (1 << 64) - 1
    return {"plain": file(), "counted-in-section-0": file(count=0, first=3), "too-many": file(count=0, first=most),
            "no-sections": file(count=0), "other-size": file(size=40), "name-outside": file(name=most >> 32), "not-loaded": file(flags=0),
            "names-outside": file(names_at=most), "names-number": file(index=9), "empty": file(length=0), "huge": file(length=most),
            "compressed": file(flags=0x802), "cut": file()[:0x1c0], "head": file()[:64]}


def debugdata(images):
    """A first byte that tells what follows: an image, or what is compressed."""
    return {"image": b"\0" + images["symtab.so"], "stripped": b"\0" + images["dynsym.so"],
            "xz": b"\x01" + lzma.compress(images["symtab.so"], preset=0), "two-streams": b"\x01" + 2 * lzma.compress(b"x")}


def jitdump():
    word = lambda size, *values: b"".join((value % (1 << 8 * size)).to_bytes(size, "little") for value in values)
    header = word(4, 0x4A695444, 1, 40, 62, 0, 1234) + word(8, 0, 0)
    record = lambda number, content: word(4, number, 16 + len(content)) + word(8, 0) + content
    load = lambda start, size, name: record(0, word(4, 1, 1) + word(8, start, start, size, 1) + name + b"\0" + bytes(size))
    move = lambda old, new, size: record(1, word(4, 1, 1) + word(8, new, old, new, size, 1))
    line = lambda address, number, file: word(8, address) + word(4, number, 0) + file + b"\0"
    lines = record(2, word(8, 0x1000, 2) + line(0x1000, 10, b"app.js") + line(0x1008, 12, b"\xff"))
    unwinding = record(4, word(8, 0, 0, 0))
    return {"all": header + lines + load(0x1000, 32, b"first") + load(0x1010, 16, b"second") + unwinding
            + move(0x1000, 0x2000, 32) + record(3, b""),
            "swapped": word(4, 0x4454694A) + header[4:], "no-length": header + load(0x1000, 1, b"f") + bytes(16),
            "later": header + record(99, b"what the future brings") + load(-16, 64, b"wraps")}


def walks():
    """Flags; a section; how many words; pc, sp, fp and rbx; the words. Words 0 to 95 are code, then the made-up module's, what returns
    from a call, a signal trampoline, the stack's own addresses, small numbers, and anything (fuzz_walk.c)."""
    code = lambda where, offset: bytes([where]) + offset.to_bytes(3, "little")
    made_up = lambda offset: bytes([100]) + offset.to_bytes(2, "little")
    stack = lambda offset: bytes([150]) + offset.to_bytes(2, "little")
    after_call, trampoline, zero = bytes([126]), bytes([127]), bytes([208])

    def section(program, augmentation=b"zR"):
        """The length of what follows; a common entry, and one for [0x100, 0x500)."""
        cie = entry(bytes(4) + b"\x01" + augmentation + b"\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01")
        fde = entry((len(cie) + 4).to_bytes(4, "little") + (0x100 - 0x8008 - len(cie)).to_bytes(4, "little", signed=True)
                    + (0x400).to_bytes(4, "little") + b"\0" + bytes.fromhex(program))
        return bytes([len(cie + fde)]) + cie + fde

    framed = "410e108602430d06"  # push %rbp; mov %rsp, %rbp
    # The CFA is *(rsp + 8) + 16; rbp is at rsp + 16, the return address at rsp + 24.
    pointed = "0f057708062310" "1006027710" "1010027718"
    pointers = b"".join(zero + stack(64 * i + 48) + stack(64 * i + 32) + made_up(0x110 + i) + 4 * zero for i in range(11))
    # Return address of a handler; then what the kernel saved: rbp, rbx, rsp and pc are words 15, 16, 20 and 21 of it.
    interrupted = (stack(0) + trampoline + 15 * zero + stack(26 * 8) + stack(8) + 3 * zero + stack(24 * 8) + made_up(0x120)
                   + 2 * zero + b"".join(stack(16 * i + 28 * 8) + made_up(0x110 + i) for i in range(20)))
    chain = b"".join(stack(16 * i + 16) + made_up(0x5000) for i in range(20))
    calls = b"".join(code(i * 5, 0x1000 + 977 * i) + stack(8 * i) for i in range(30))
    ending = b"".join(stack(16 * i + 16) + after_call for i in range(5)) + zero + after_call
    return {"chain": b"\x04\0\x5f" + made_up(0x5000) + stack(0) + stack(0) + stack(0) + chain,
            "code": b"\x04\0\x5f" + code(0, 0x2345) + stack(0) + stack(16) + stack(8) + calls,
            "no-modules": b"\x05\0\x1f" + code(0, 0x2345) + stack(0) + stack(0) + stack(0) + chain,
            "no-modules-ending": b"\x05\0\x1f" + after_call + stack(0) + stack(0) + stack(0) + ending,
            "section": b"\x04" + section(framed, b"zRS") + b"\x5f" + made_up(0x108) + stack(0) + stack(0) + stack(8)
                       + b"".join(stack(16 * i + 16) + made_up(0x110 + i) for i in range(20)),
            "pointed": b"\x04" + section(pointed) + b"\x5f" + made_up(0x108) + stack(0) + stack(0) + stack(8) + pointers,
            "signal": b"\x04" + section(framed) + b"\x5f" + made_up(0x108) + stack(0) + stack(0) + stack(8) + interrupted,
            "context": b"\x0e\0\x5f" + code(3, 0x1234) + stack(8) + stack(40) + stack(8) + calls}


def depths():
    """Flags, the place, code (fuzz_frame_depth.c): of frames that are fixed, dynamic, realigned, taken page by page, and of a part elsewhere."""
    begin, end = bytes.fromhex("554889e553"), bytes.fromhex("488d65f85b5dc3")
    call, wide = bytes.fromhex("e8fbffffff"), bytes.fromhex("4881ec00100000")
    probed = bytes.fromhex("4c8d9c240000ffff") + wide + bytes.fromhex("48830c24004c39dc75ef")
    at = lambda code: len(code).to_bytes(2, "little")
    cases = {"fixed": b"4883ec28", "dynamic": b"4829c4", "realigned": b"4883e4e0", "pushes": b"6a016a02", "loop": b"48ffc87508eb02c9c34829c4ebf1"}
    inputs = {}
    for name, text in cases.items():
        code = begin + bytes.fromhex(text.decode()) + call
        inputs[name] = b"\0" + at(code) + code + end
    code = begin + probed + call
    inputs["probed"] = b"\0" + at(code) + code + end
    half = begin + bytes.fromhex("85ff7509") + call + end[:6]
    inputs["part"] = b"\1" + at(half + call) + half + call + bytes.fromhex("ebe0") + bytes(len(half) - len(call) - 2)
    return inputs


def spools():
    """The byte that fuzz_spool.c takes its choices from, and a file of the spool."""
    def request(choice, signal=0, format=0, body=b"body"):
        rest = struct.pack("<BBBBQQ", signal, format, 1, 0, 5, len(body)) + body
        return bytes([choice]) + b"SPSPOOL1" + struct.pack("<I", zlib.crc32(rest)) + rest
    return {"traces": request(0), "profiles": request(2, 1), "no-body": request(0, body=b""), "other-format": request(1),
            "json": request(1, format=1), "other-signal": request(0, 1), "year-2554": request(4), "new": request(6),
            "torn": request(0)[:-1], "longer": request(0) + b"x", "head": request(0)[:20], "empty": b"\0"}


def propagation():
    """Headers, one a line: t is a traceparent, s a tracestate, b a baggage."""
    parent = f"t00-{TRACE}-{SPAN}-01\n"
    members = lambda count: ",".join(f"k{i}=1" for i in range(count))
    long = ",".join(f"k{i}={'v' * 40 * i}" for i in range(1, 7))
    return {"plain": parent + "srojo=00f067aa0ba902b7,congo@eu=t61rcWkgMzE\nbuserId=alice,serverNode=DF%2028;ttl=10;x",
            "blanks": parent + "sfoo=1 \t, \tbar=2\ns\nsbaz=  3\nb a = 1 ; p , b=%C3%A9%ff%4", "baggage-only": "sfoo=1\nba=1,a=2,bad,c=3",
            "two-traceparents": 2 * parent + "sfoo=1\nba=1", "thirty-three": parent + "s" + members(33), "many-keys": parent + "b" + members(190),
            "long-members": parent + "s" + long}


def corpus(compiled):
    """The inputs of each target. COMPILED: those that a compiler makes, too; else empty ones."""
    wire, text, every = files()
    images, frame_bytes = elf() if compiled else ({"symtab.so": b"", "dynsym.so": b""}, b"")
    programs = {"gcc5": ("gcc", "c", INLINED), "gcc4": ("gcc", "c", INLINED, "-gdwarf-4"), "gxx5": ("g++", "c++", NAMESPACES),
                "clang5": ("clang-14", "c", INLINED), "clangxx4": ("clang++-14", "c++", NAMESPACES, "-gdwarf-4")}
    return {**TEXTS, "propagation": propagation(), "answer": answers(), "wire": wire, "json": text, "switches": switches(), "input": every,
            "elf": images, "gnu_debugdata": debugdata(images), "jitdump": jitdump(), "unwind": frames(frame_bytes),
            "frame_section": section_headers(), "dwarf": {name: dwarf(*program) if compiled else b"" for name, program in programs.items()},
            "walk": walks(), "frame_depth": depths(), "spool": spools()}


def made(compiled):
    """The same by path below the corpus, as bytes."""
    return {f"{target}/{name}": content if isinstance(content, bytes) else content.encode()
            for target, inputs in corpus(compiled).items() for name, content in inputs.items()}


def in_tree():
    paths = (path for path in (HERE / "corpus").glob("*/*") if not path.name.startswith("was-"))
    return {str(path.relative_to(HERE / "corpus")): path for path in paths if str(path.relative_to(HERE / "corpus")) not in BY_HAND}


def write():
    inputs = made(True)
    for name, path in in_tree().items():
        if name not in inputs:
            path.unlink()
    for name, content in inputs.items():
        path = HERE / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def check():
    inputs, tree = made(False), in_tree()
    wrong = [f"{name}: the script does not make it" for name in sorted(set(tree) - set(inputs))]
    wrong += [f"{name}: is not in the tree" for name in sorted(set(inputs) - set(tree))]
    wrong += [f"{name}: differs from what the script makes" for name in sorted(set(inputs) & set(tree) - COMPILED)
              if tree[name].read_bytes() != inputs[name]]
    wrong += [f"{name}: is not in the tree" for name in sorted(BY_HAND) if not (HERE / "corpus" / name).exists()]
    print("\n".join(wrong) or f"{len(inputs)} files are those of the script")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(check() if sys.argv[1:] == ["--check"] else write())
