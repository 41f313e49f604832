#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What spans cost, by spanprof and by other tracers side by side, also when those tell spanprof of their spans: prints the tables of
docs/benchmarks/tracer.md and adapters.md.

  tracers.py BUILD [--rounds N] [--ms N] [--core N] [--only NAME|…] [--operations NAME,…]

BUILD is a build directory with the targets tracer_shared, tracer_static and receiver. The peers are built once, and kept in SPANPROF_TEST_CACHE:
OpenTelemetry's SDKs for Go, Rust (with and without `tracing`) and Python, as far as their tools are there and the registries answer, and the
one for C++ where SPANPROF_TEST_OPENTELEMETRY_CPP names the prefix it is installed in. What is left out is told.

Each program sends spans to a receiver of its own that swallows them, by OTLP over HTTP, uncompressed (C++: its exporter discards), with a queue of
65,536 spans. One thread is measured, alone on its core; all else runs on the others. In each round every program does every operation
for some milliseconds; the table has the medians over the rounds. At the end the receivers say how many spans came: none may be lost."""
import argparse, collections, hashlib, os, pathlib, shutil, statistics, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent / "tracers"
ROOT = HERE.parents[2]
ADAPTED = ", adapted"  # behind the name of a tracer that tells spanprof
CACHE = pathlib.Path(os.environ.get("SPANPROF_TEST_CACHE")
                     or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "spanprof-test")
ENVIRONMENT = {"OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_BSP_MAX_QUEUE_SIZE": "65536",
               "OTEL_TRACES_SAMPLER": "parentbased_always_on", "OTEL_SERVICE_NAME": "bench", "SPANPROF_LOG": "error", "SPANPROF_CPU_HZ": "99"}
# The programs' words in the order and the words of the table.
OPERATIONS = {
    "attach": "attach + detach", "attach_below": "… below another", "attach_at_depth_10": "… at depth 10",
    "attach_10_nested": "… 10 nested, each", "await": "await, in a span", "attach_out_of_order": "… out of order, each",
    "span": "span, in bursts", "span_sustained": "… sustained",
    "span_2_attributes": "span with 2 attributes, in bursts", "span_2_attributes_sustained": "… sustained",
    "span_unsampled": "span, not sampled", "extract": "traceparent extract", "inject": "traceparent inject"}


class Skipped(Exception):
    pass


def call(command, what, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        print(done.stdout[-4000:], file=sys.stderr)
        raise Skipped(f"{what} failed")


def kept(name, sources, make):
    """The path of what MAKE(work directory) builds of SOURCES, which is kept by their hash."""
    text = b"".join(source.read_bytes() for source in sources)
    path = CACHE / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"
    if not path.exists():
        work = CACHE / f"work-{name}-{os.getpid()}"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        try:
            print(f"tracers: building {path} (once, takes minutes)", file=sys.stderr)
            os.rename(make(work, path), path)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return path


def need(program):
    if not shutil.which(program):
        raise Skipped(f"there is no {program} in the PATH")


def make_go(work, _):
    need("go")
    for source in (HERE / "go").iterdir():
        shutil.copy(source, work)
    environment = dict(os.environ, GOPATH=str(work / "go"), GOCACHE=str(work / "cache"), GOFLAGS="-modcacherw", GOTOOLCHAIN="local",
                       GOWORK="off", CGO_ENABLED="0")
    call(["go", "build", "-mod=readonly", "-trimpath", "-o", work / "tracer", "."], "go build", cwd=work, env=environment)
    return work / "tracer"


def make_rust(build=None):
    """Adapted, it is linked with the library in BUILD. The layer's crate is looked for where it lies from this one."""
    def make(work, _):
        need("cargo")
        for crate in HERE / "rust", ROOT / "examples" / "rust-tracing":
            shutil.copytree(crate, work / crate.relative_to(ROOT), ignore=shutil.ignore_patterns("target"))
        environment = dict(os.environ, CARGO_HOME=str(work / "home"), CARGO_TARGET_DIR=str(work / "target"), PKG_CONFIG_PATH=str(work))
        settings = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo") / "config.toml"
        if settings.exists():  # which says where this machine gets its crates
            (work / "home").mkdir()
            shutil.copy(settings, work / "home")
        if build:
            (work / "spanprof.pc").write_text(f"Name: spanprof\nDescription: not installed\nVersion: 0\nLibs: -L{build / 'src'} -lspanprof\n")
        call(["cargo", "build", "--release", "--quiet", *(["--features", "adapted"] if build else [])], "cargo build",
             cwd=work / (HERE / "rust").relative_to(ROOT), env=environment)
        return work / "target" / "release" / "tracer"
    return make


def make_python(work, path):
    """A virtual environment knows where it is, so it is made where it stays, and WORK only says that it is whole."""
    shutil.rmtree(f"{path}.venv", ignore_errors=True)
    call([sys.executable, "-m", "venv", f"{path}.venv"], "python -m venv")
    call([f"{path}.venv/bin/pip", "install", "--disable-pip-version-check", "--no-input", "--quiet", "-r",
          HERE / "python" / "requirements.txt"], "pip install")
    (work / "done").touch()
    return work / "done"


def make_cpp(prefix, build=None):
    def make(work, _):
        libraries = sorted(prefix.glob("lib*/libopentelemetry_*.a")) or sorted(prefix.glob("lib*/libopentelemetry_*.so"))
        wanted = [lib for lib in libraries if lib.name.split(".")[0][17:] in ("trace", "resources", "common", "version")]
        if not wanted:
            raise Skipped(f"{prefix} has no libopentelemetry_trace")
        call(["c++", "-std=c++17", "-O2", "-DNDEBUG", f"-I{prefix}/include", HERE / "cpp" / "main.cc", "-o", work / "tracer",
              *(["-DADAPTED", f"-I{ROOT / 'include'}", f"-L{build / 'src'}", "-lspanprof"] if build else []),
              "-Wl,--start-group", *wanted, "-Wl,--end-group", f"-Wl,-rpath,{wanted[0].parent}", "-lpthread"], "the build against " + str(prefix))
        return work / "tracer"
    return make


def find_programs(build, only):
    """{name: command}, and why others are missing."""
    rust_sources = [HERE / "rust" / "Cargo.toml", HERE / "rust" / "src" / "main.rs"]
    layer_sources = [ROOT / "examples" / "rust-tracing" / name for name in ("Cargo.toml", "build.rs", "src/lib.rs")]

    def rust(mode):
        return [kept("tracer-rust", rust_sources, make_rust()), mode]

    def python():
        requirements = HERE / "python" / "requirements.txt"
        return [f"{kept('tracer-python', [requirements], make_python)}.venv/bin/python", HERE / "python" / "tracer.py"]

    def cpp(adapted=False):
        prefix = os.environ.get("SPANPROF_TEST_OPENTELEMETRY_CPP")
        if not prefix:
            raise Skipped("SPANPROF_TEST_OPENTELEMETRY_CPP does not say where it is installed")
        if adapted:
            sources = [HERE / "cpp" / "main.cc", ROOT / "include" / "spanprof" / "opentelemetry.hpp"]
            return [kept("tracer-cpp-adapted", sources, make_cpp(pathlib.Path(prefix), build))]
        return [kept("tracer-cpp", [HERE / "cpp" / "main.cc"], make_cpp(pathlib.Path(prefix)))]

    tracers = build / "tests" / "bench" / "tracers"
    ways = {"shared": lambda: [tracers / "tracer_shared"], "static": lambda: [tracers / "tracer_static"], "C++": cpp,
            "Go": lambda: [kept("tracer-go", sorted((HERE / "go").iterdir()), make_go)],
            "Rust": lambda: rust("opentelemetry"), "Rust tracing": lambda: rust("tracing"), "Python": python,
            "C++" + ADAPTED: lambda: cpp(True), "Python" + ADAPTED: python,
            "Rust tracing" + ADAPTED: lambda: [kept("tracer-rust-adapted", rust_sources + layer_sources, make_rust(build)), "tracing"]}
    programs = {}
    for name, way in ways.items():
        try:
            if name in only or not only and not name.endswith(ADAPTED):
                programs[name] = way()
        except Skipped as reason:
            print(f"tracers: {name}: skipped: {reason}", file=sys.stderr)
    return programs


class Peer:
    """A program and its receiver."""

    def __init__(self, build, command, core, adapted):
        others = os.sched_getaffinity(0) - {core}
        self.receiver = subprocess.Popen([build / "tests" / "bench" / "tracers" / "receiver"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         preexec_fn=lambda: os.sched_setaffinity(0, others))
        port = self.receiver.stdout.readline().strip()
        environment = dict(os.environ, **ENVIRONMENT, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
                           LD_LIBRARY_PATH=str(build / "src"), SPANPROF_LIBRARY=str(build / "src" / "libspanprof.so"),
                           PYTHONPATH=str(ROOT / "examples" / "python"))
        words = [str(core), *(["adapted"] if adapted else [])]
        self.program = subprocess.Popen([*map(str, command), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment, preexec_fn=lambda: os.sched_setaffinity(0, others))
        words = self.program.stdout.readline().split()
        if not words or words[0] != "ready":
            raise SystemExit(f"tracers: {command[0]} does not start")
        self.operations = words[1:]

    def measure(self, operation, ms):
        self.program.stdin.write(f"{operation} {ms}\n")
        self.program.stdin.flush()
        return float(self.program.stdout.readline())

    def stop(self):
        """(spans made, spans received)"""
        made, _ = self.program.communicate()
        received, _ = self.receiver.communicate("?\n")
        return int(made), int(received.split()[2])


def tell(peers, ns):
    print("| ns | " + " | ".join(peers) + " |")
    print("|---" * (len(peers) + 1) + "|")
    for operation, words in OPERATIONS.items():
        cells = [statistics.median(ns[name, operation]) if (name, operation) in ns else None for name in peers]
        if any(cells):
            print(f"| {words} | " + " | ".join("–" if cell is None else f"{cell:,.1f}" if cell < 100 else f"{cell:,.0f}" for cell in cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--ms", type=int, default=2)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--only", type=lambda text: text.split("|"), default=[])
    parser.add_argument("--operations", type=lambda text: text.split(","), default=list(OPERATIONS))
    arguments = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("tracers: a core for the measured thread and one for the rest are needed")
    build = arguments.build.resolve()
    if not (build / "tests" / "bench" / "tracers" / "tracer_shared").exists():
        raise SystemExit(f"tracers: first: cmake --build {arguments.build} --target tracer_shared tracer_static receiver")
    programs = find_programs(build, arguments.only)
    try:
        os.nice(-15)
    except PermissionError:
        print("tracers: no privilege to go before other work: expect more noise", file=sys.stderr)
    peers = {name: Peer(build, command, arguments.core, name.endswith(ADAPTED)) for name, command in programs.items()}
    ns = collections.defaultdict(list)
    for round_number in range(arguments.rounds + 2):
        for operation in arguments.operations:
            for name, peer in peers.items():
                value = peer.measure(operation, arguments.ms) if operation in peer.operations else None
                if value is not None and round_number >= 2:  # two warm up
                    ns[name, operation].append(value)
    tell(peers, ns)
    for name, peer in peers.items():
        made, received = peer.stop()
        lost = "the exporter discards" if name.startswith("C++") else f"{received:,} received" + ("" if made <= received else f", {made - received:,} LOST")
        print(f"{name}: {made:,} spans made, {lost}")


if __name__ == "__main__":
    main()
