# SPDX-License-Identifier: Apache-2.0
"""Runs a program that sends, and receivers that answer as a test wants: grpcio with OpenTelemetry's own stubs, http.server, and a plain socket."""
import concurrent.futures
import contextlib
import http.server
import os
import socket
import subprocess
import threading

import grpc
from google.protobuf import any_pb2, duration_pb2
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as profiles_pb2
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2_grpc as profiles_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as trace_grpc

PATIENCE_S = 300


def send(sends, endpoint, count=1, **environment):
    """Runs the program SENDS, which sends COUNT spans to ENDPOINT. Returns the numbers that it prints, by name, and its log as "log"."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "SPANPROF_"))}
    done = subprocess.run([sends, str(count)], capture_output=True, text=True, timeout=PATIENCE_S, env={
        **inherited, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT": "120000", "SPANPROF_CPU_HZ": "1000",
        **environment})
    assert done.returncode == 0, done
    return {**{name: int(value) for name, value in (line.split("=") for line in done.stdout.splitlines())}, "log": done.stderr}


# --- a server of grpcio ------------------------------------------------------------------------------------------------------

def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def status_with_retry_info(code, seconds):
    """The bytes of a google.rpc.Status with a RetryInfo. They are made by hand, because grpcio has no class for them."""
    delay = duration_pb2.Duration(nanos=int(seconds * 1e9)).SerializeToString()
    info = b"\x0a" + varint(len(delay)) + delay
    details = any_pb2.Any(type_url="type.googleapis.com/google.rpc.RetryInfo", value=info).SerializeToString()
    return b"\x08" + varint(code) + b"\x1a" + varint(len(details)) + details


class Service(trace_grpc.TraceServiceServicer, profiles_grpc.ProfilesServiceServicer):
    """One of the two services. SCRIPT has a function for each call; the last function answers all further calls."""

    def __init__(self, script, answer):
        self.script, self.answer = list(script), answer
        self.calls = []  # (request, metadata)

    def Export(self, request, context):
        self.calls.append((request, dict(context.invocation_metadata())))
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return step(context) or self.answer()


def fine(_):
    return None


def fails(code, message="", details=None):
    def step(context):
        if details:
            context.set_trailing_metadata((("grpc-status-details-bin", details),))
        context.abort(code, message)
    return step


class Server:
    """A gRPC server that runs inside `with`. Its services are `traces` and `profiles`. CREDENTIALS are grpcio's, for TLS."""

    def __init__(self, traces=(fine,), profiles=(fine,), port=0, credentials=None):
        self.traces = Service(traces, trace_pb2.ExportTraceServiceResponse)
        self.profiles = Service(profiles, profiles_pb2.ExportProfilesServiceResponse)
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        trace_grpc.add_TraceServiceServicer_to_server(self.traces, self.server)
        profiles_grpc.add_ProfilesServiceServicer_to_server(self.profiles, self.server)
        address = f"127.0.0.1:{port}"
        self.port = self.server.add_secure_port(address, credentials) if credentials else self.server.add_insecure_port(address)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(None).wait()


class Raw:
    """A TCP server that calls BEHAVE for each connection, on a new thread."""

    def __init__(self, behave):
        self.behave = behave
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = []

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                threading.Thread(target=self.talk, args=[connection], daemon=True).start()

    def talk(self, connection):
        with contextlib.suppress(OSError), connection:
            self.behave(connection)

    def __exit__(self, *_):
        self.listener.close()


class HttpServer:
    """Answers each request with 200. `paths` are the paths of the requests. CONTEXT is an ssl.SSLContext, or None."""

    def __init__(self, context=None):
        self.paths = paths = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                paths.append(self.path)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                """Prints nothing, also when a client does not trust the certificate."""

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        if context:
            # The connection's own thread does the handshake, so that a slow client does not block others.
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
