#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A shop sends to an OpenTelemetry Collector; what that wrote down has to join: each link of each profile leads to a span of the
traces pipeline. The spanprof command has to answer from it as from our own files.

usage: collector_test.py SHOP TOOL SENDS [CORE STABLE CONTRIB]     versions of a Collector, see collector/build.sh
Exits 77 when the Collector cannot be built (see collector/build.sh).
"""
import collections
import contextlib
import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import side_by_side
from keys import make_keys
from otlp_decode import decode
from receivers import send
from shop import Program, Shop, kept_port

SHOP, TOOL, SENDS = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
VERSIONS = sys.argv[1:4] if len(sys.argv) > 3 else []
del sys.argv[1:1 + len(VERSIONS)]
HERE = pathlib.Path(__file__).resolve().parent
REQUESTS = 60


class Collector(Program):
    """It writes traces.jsonl and profiles.jsonl into FOLDER. ports: HTTP and GRPC, HTTPS, and GRPCS, which wants a client's certificate."""
    binary = None
    keys = None

    def __init__(self, folder):
        self.files = [folder / "traces.jsonl", folder / "profiles.jsonl"]
        with contextlib.ExitStack() as kept:
            self.ports = {name: kept.enter_context(kept_port()).getsockname()[1] for name in ("HTTP", "GRPC", "HTTPS", "GRPCS")}
            super().__init__([self.binary, "--feature-gates=service.profilesSupport", f"--config={HERE}/collector/config.yaml"],
                             folder / "collector.log", {"FOLDER": str(folder), "KEYS": str(self.keys),
                                                        **{f"{name}_PORT": str(port) for name, port in self.ports.items()}})
            self.wait_for("Everything is ready")

    def errors(self):
        """Lines of its log that are worse than a warning, or are no log lines at all."""
        errors = []
        for line in self.text().splitlines():
            try:
                fine = json.loads(line)["level"] in ("debug", "info", "warn")
            except (ValueError, KeyError):
                fine = False
            if not fine:
                errors.append(line)
        return errors


def by_id(spans):
    return {(span["trace_id"], span["span_id"]): span for span in spans}


def links_of(profile):
    return {(stack["trace_id"], stack["span_id"]) for stack in profile["stacks"]} - {("", "")}


class Delivery:
    """One recording that went to files and to a Collector; the subclasses say how."""
    maxDiff = 4000
    environment = {}
    way = "http", "HTTP"  # scheme and port

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="spanprof-peer-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        with Collector(cls.folder) as collector:
            environment = {"SPANPROF_EXPORTER": "otlp,file", "SPANPROF_FILE": str(cls.folder / "shop"),
                           "OTEL_EXPORTER_OTLP_ENDPOINT": f"{cls.way[0]}://127.0.0.1:{collector.ports[cls.way[1]]}",
                           "OTEL_EXPORTER_OTLP_TIMEOUT": "120000",  # a busy machine is no complaint
                           "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=peer", "SPANPROF_CPU_HZ": "1000",
                           "SPANPROF_WINDOW_MS": "250", **cls.environment}
            with Shop(SHOP, cls.folder / "shop.log", environment) as shop:
                shop.visit(REQUESTS)
                shop.stop()
            collector.stop()
            cls.collector_files = collector.files
            cls.errors, cls.complaints = collector.errors(), shop.complaints()
        cls.got = decode(collector.files)
        cls.spans = by_id(cls.got["spans"])
        cls.own_files = [cls.folder / "shop.traces.jsonl", cls.folder / "shop.profiles.jsonl"]
        cls.own = decode(cls.own_files)

    def test_nobody_complained(self):
        self.assertEqual((self.errors, self.complaints), ([], []))

    def test_every_link_leads_to_a_span_that_overlaps_its_profile(self):
        profiles = self.got["profiles"]
        self.assertGreater(len(profiles), 1, "several windows")
        self.assertGreater(len(set().union(*map(links_of, profiles))), 20, "links")
        for profile in profiles:
            begin, end = profile["time_unix_nano"], profile["time_unix_nano"] + profile["duration_nano"]
            for link in links_of(profile):
                self.assertIn(link, self.spans)
                span = self.spans[link]
                self.assertLessEqual(span["start_time_unix_nano"], end, f"{link} begins after its profile")
                self.assertGreaterEqual(span["end_time_unix_nano"], begin, f"{link} ended before its profile")

    def test_functions_are_linked_to_the_spans_that_ran_them(self):
        names = collections.defaultdict(set)
        for profile in self.got["profiles"]:
            for stack in profile["stacks"]:
                if stack["span_id"]:
                    names[self.root_name(stack["trace_id"], stack["span_id"])].update(stack["frames"])
        for frame in ("append_row_to_report", "report_render", "answer_report"):
            self.assertIn(frame, names["GET /report"])
            self.assertEqual([name for name, frames in names.items() if frame in frames], ["GET /report"])

    def root_name(self, trace_id, span_id):
        span = self.spans[trace_id, span_id]
        while span["parent_span_id"]:
            span = self.spans[trace_id, span["parent_span_id"]]
        return span["name"]

    def test_traces_and_profiles_have_the_same_resource(self):
        resources = [item["resource"] for kind in self.got.values() for item in kind]
        for resource in resources:
            self.assertEqual(resource, resources[0])
        self.assertEqual(resources[0]["service.name"], "shop")
        self.assertEqual(resources[0]["deployment.environment.name"], "peer")
        self.assertRegex(resources[0]["service.instance.id"], "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")

    def test_spans_are_those_of_the_file(self):
        self.assertEqual(len(self.got["spans"]), len(self.spans), "a span was delivered twice")
        self.assertEqual(self.spans, by_id(self.own["spans"]))


class Defaults(Delivery, unittest.TestCase):
    """Over the network samples link to local roots, and a root tells by an attribute that it can be asked for."""

    def test_links_are_local_roots_that_say_so(self):
        for profile in self.got["profiles"]:
            for link in links_of(profile):
                self.assertEqual(self.spans[link]["parent_span_id"], "")
                self.assertEqual(self.spans[link]["attributes"].get("pyroscope.profile.id"), link[1])


class PlainInnermost(Delivery, unittest.TestCase):
    environment = {"OTEL_EXPORTER_OTLP_COMPRESSION": "none", "SPANPROF_LINK_SCOPE": "innermost",
                   "SPANPROF_THREAD_ATTRIBUTES": "1"}
    sent_by = {"http/protobuf": "HTTP", "http/json": "HTTP", "grpc": "GRPC"}

    def test_profiles_are_those_of_the_file(self):
        def without_id(profiles):
            """Each way out builds profiles of its own, so that they have ids of their own."""
            return [{**profile, "profile_id": ""} for profile in sorted(profiles, key=lambda item: item["time_unix_nano"])]
        self.assertEqual(without_id(self.got["profiles"]), without_id(self.own["profiles"]))

    def answers(self, *command):
        """Of the command, from what the Collector wrote and from our own files."""
        return [subprocess.run([TOOL, *command, *files], stdout=subprocess.PIPE, check=True, timeout=300).stdout
                for files in (self.collector_files, self.own_files)]

    def test_command_answers_the_same_from_the_collectors_files(self):
        for request in map(json.loads, self.collector_files[1].read_text().splitlines()):
            for resource in request["resourceProfiles"]:
                self.assertTrue(all("keyStrindex" in item for item in resource["resource"]["attributes"]), "no references")
        reports = [ids for ids, span in self.spans.items() if span["name"] == "GET /report"]
        self.assertGreater(len(reports), 2)
        flames = [["--span", span_id, "--trace", trace_id] for trace_id, span_id in reports[:3]]
        for command in (["stats", "--json"], ["spans", "--json", "--limit", "1000"], ["spans", "--trace", reports[0][0]],
                        ["flame", "--format", "json"], *(["flame", "--format", "json", *span] for span in flames)):
            theirs, ours = self.answers(*command)
            self.assertEqual(theirs.decode(), ours.decode(), command)
        self.assertEqual([item["service"] for item in json.loads(self.answers("stats", "--json")[0])["producers"]], ["shop"])

    def test_file_lines_are_requests_that_a_collector_takes(self):
        self.deliver("posted", self.post_lines)

    def test_files_that_the_command_sends_arrive_as_they_are(self):
        for protocol, port in self.sent_by.items():
            self.deliver(protocol.replace("/", "_"), lambda ports, to=protocol, of=port: subprocess.run(
                [TOOL, "send", *self.own_files, "--to", f"http://127.0.0.1:{ports[of]}", "--protocol", to],
                check=True, timeout=300, stdout=subprocess.PIPE))

    def deliver(self, name, send_to):
        """SEND_TO, which is told a Collector's ports, gives it our own files."""
        folder = self.folder / name
        folder.mkdir()
        with Collector(folder) as collector:
            send_to(collector.ports)
            collector.stop()
            self.assertEqual(collector.errors(), [])
        self.assertEqual(decode(collector.files), self.own)

    def post_lines(self, ports):
        for path, file in zip(("/v1/traces", "/v1development/profiles"), self.own_files):
            for line in file.read_bytes().splitlines():
                connection = http.client.HTTPConnection("127.0.0.1", ports["HTTP"], timeout=300)
                connection.request("POST", path, line, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                self.assertEqual((answer.status, json.loads(answer.read()).get("partialSuccess", {})), (200, {}), path)
                connection.close()


class Timestamps(PlainInnermost):
    sent_by = {"http/protobuf": "HTTP"}
    environment = {**PlainInnermost.environment, "SPANPROF_TIMESTAMPS": "1"}

    def test_every_time_is_kept(self):
        def times(file):
            profiles = [profile for line in file.read_text(encoding="utf-8").splitlines() for resource in json.loads(line)["resourceProfiles"]
                        for scope in resource["scopeProfiles"] for profile in scope["profiles"]]
            return sorted(int(time) for profile in profiles for sample in profile["samples"] for time in sample["timestampsUnixNano"])
        self.assertGreater(len(times(self.own_files[1])), 100)
        self.assertEqual(times(self.collector_files[1]), times(self.own_files[1]))


class Json(Delivery, unittest.TestCase):
    environment = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}


class Grpc(Delivery, unittest.TestCase):
    environment = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    way = "http", "GRPC"


class GrpcPlain(Delivery, unittest.TestCase):
    environment = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
    way = "http", "GRPC"


class Tls(Delivery, unittest.TestCase):
    """The certificate is of a CA that only the variable names."""
    way = "https", "HTTPS"

    @classmethod
    def setUpClass(cls):
        cls.environment = {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(Collector.keys / "ca.pem")}
        super().setUpClass()


class GrpcMutualTls(Delivery, unittest.TestCase):
    way = "https", "GRPCS"

    @classmethod
    def setUpClass(cls):
        cls.environment = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_CERTIFICATE": str(Collector.keys / "ca.pem"),
                           "OTEL_EXPORTER_OTLP_CLIENT_KEY": str(Collector.keys / "client.key"),
                           "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(Collector.keys / "client.pem")}
        super().setUpClass()


class EveryWay(unittest.TestCase):
    """One span, and what was sampled under it, by each protocol, with gzip and without, plain and by TLS."""

    def test_all_arrive(self):
        doors = {"http/protobuf": (("http", "HTTP"), ("https", "HTTPS")), "http/json": (("http", "HTTP"), ("https", "HTTPS")),
                 "grpc": (("http", "GRPC"), ("https", "GRPCS"))}
        ways = [(protocol, compression, *door) for protocol, both in doors.items() for compression in ("gzip", "none") for door in both]
        keys = {"OTEL_EXPORTER_OTLP_CERTIFICATE": "ca.pem", "OTEL_EXPORTER_OTLP_CLIENT_KEY": "client.key",
                "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "client.pem"}
        with tempfile.TemporaryDirectory(prefix="spanprof-peer-") as name:
            folder = pathlib.Path(name)
            with Collector(folder) as collector:
                for protocol, compression, scheme, port in ways:
                    told = send(SENDS, f"{scheme}://127.0.0.1:{collector.ports[port]}", 1, OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                                OTEL_EXPORTER_OTLP_COMPRESSION=compression, **{key: str(Collector.keys / file) for key, file in keys.items()})
                    way = protocol, compression, scheme
                    self.assertEqual((told["spans"], told["refused"], told["unreachable"], told["log"]), (1, 0, 0, ""), way)
                collector.stop()
                self.assertEqual(collector.errors(), [])
            got = decode(collector.files)
        self.assertEqual([span["name"] for span in got["spans"]], ["request"] * len(ways))
        links = set().union(*map(links_of, got["profiles"]))
        self.assertGreater(len(links), 0)
        self.assertLessEqual(links, set(by_id(got["spans"])))


PYTHON_WORK = """
import time
def inner(n):
    return sum(i * i for i in range(n))
def outer():
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        inner(1000)
outer()
"""


class Collapsed(unittest.TestCase):
    """Stacks that py-spy wrote go to a Collector, and come back as they were."""

    def test_py_spys_stacks_arrive_as_they_are(self):
        with tempfile.TemporaryDirectory(prefix="spanprof-peer-") as name:
            folder = pathlib.Path(name)
            taken, sent, back = folder / "spy.txt", folder / "spy.otlp", folder / "back.txt"
            subprocess.run([pathlib.Path(sys.executable).parent / "py-spy", "record", "--format", "raw", "--rate", "200", "--output", taken, "--",
                            sys.executable, "-S", "-c", PYTHON_WORK], check=True, timeout=300, stdout=subprocess.DEVNULL)
            with Collector(folder) as collector:
                subprocess.run([TOOL, "convert", taken, "--to", "otlp", "-o", sent], check=True, timeout=300)
                subprocess.run([TOOL, "send", sent, "--to", f"http://127.0.0.1:{collector.ports['HTTP']}"], check=True, timeout=300,
                               stdout=subprocess.PIPE)
                collector.stop()
                self.assertEqual(collector.errors(), [])
            subprocess.run([TOOL, "convert", folder / "profiles.jsonl", "--to", "folded", "-o", back], check=True, timeout=300)
            lines = lambda path: sorted(line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith(" "))
            self.assertIn(";inner ", taken.read_text(encoding="utf-8"))
            self.assertEqual(lines(back), lines(taken))


class Divided(unittest.TestCase):
    """A window that is too large for one request."""

    def test_every_sample_arrives_in_one_of_the_requests(self):
        for protocol, port in ("http/protobuf", "HTTP"), ("http/json", "HTTP"), ("grpc", "GRPC"):
            with self.subTest(protocol), tempfile.TemporaryDirectory(prefix="spanprof-peer-") as name:
                folder = pathlib.Path(name)
                with Collector(folder) as collector:
                    told = send(SENDS, f"http://127.0.0.1:{collector.ports[port]}", 60, OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                                SENDS_REQUEST_BYTES="4096", SPANPROF_EXPORTER="otlp,file", SPANPROF_FILE=str(folder / "own"),
                                SPANPROF_LINK_SCOPE="root")
                    collector.stop()
                    self.assertEqual((collector.errors(), told["log"]), ([], ""))
                got = decode(collector.files)["profiles"]
                ours = decode([folder / "own.profiles.jsonl"])["profiles"]
                self.assertGreater(len(got), len(ours), "a window was divided")
                self.assertEqual(len({profile["profile_id"] for profile in got}), len(got))
                self.assertEqual(self.by_link(got), self.by_link(ours))

    def by_link(self, profiles):
        values = collections.Counter()
        for profile in profiles:
            for stack in profile["stacks"]:
                values[stack["trace_id"], stack["span_id"], *stack["frames"]] += stack["value"]
        return values


def main():
    built = subprocess.run([HERE / "collector" / "build.sh", *VERSIONS], stdout=subprocess.PIPE, text=True)
    if built.returncode:
        sys.exit(built.returncode)
    Collector.binary = built.stdout.strip()
    with tempfile.TemporaryDirectory(prefix="spanprof-keys-") as folder:
        Collector.keys = pathlib.Path(folder)
        make_keys(Collector.keys)
        if side_by_side.run(classes=True, at_once=4):
            sys.exit(1)


if __name__ == "__main__":
    main()
