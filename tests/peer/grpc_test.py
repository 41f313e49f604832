#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The exporter over gRPC against a server of grpcio with OpenTelemetry's own stubs, which answers as each case says, and against one that
speaks HTTP/2 by hand and breaks the rules.

usage: grpc_test.py SENDS
"""
import base64
import socket
import sys
import threading
import unittest

import grpc
import h2.config
import h2.connection
import h2.events
import hyperframe.frame
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb2

import receivers
import side_by_side
from receivers import Raw, Server, fails, fine, status_with_retry_info
from shop import kept_port

SENDS = sys.argv.pop(1)


def send(port, count=1, **environment):
    return receivers.send(SENDS, f"http://127.0.0.1:{port}", count, OTEL_EXPORTER_OTLP_PROTOCOL="grpc", **environment)


class Answers(unittest.TestCase):
    def assert_books(self, told, **wanted):
        names = "spans", "refused", "unreachable", "queue_full"
        self.assertEqual({name: told[name] for name in names}, {**dict.fromkeys(names, 0), **wanted}, told["log"])

    def test_all_arrives_with_its_metadata(self):
        for compression in "gzip", "none":
            with self.subTest(compression), Server() as server:
                told = send(server.port, 3, OTEL_EXPORTER_OTLP_COMPRESSION=compression, OTEL_EXPORTER_OTLP_HEADERS="X-Tenant=acme")
                self.assert_books(told, spans=3)
                self.assertEqual(told["log"], "")
                spans = [span.name for request, _ in server.traces.calls for resource in request.resource_spans
                         for scope in resource.scope_spans for span in scope.spans]
                self.assertEqual(spans, ["request"] * 3)
                self.assertGreater(len(server.profiles.calls), 0)
                for service, version in (server.traces, None), (server.profiles, "1"):
                    for _, metadata in service.calls:
                        self.assertEqual(metadata["x-tenant"], "acme")
                        self.assertEqual(metadata.get("otlp-profiles-development-version"), version)
                        self.assertTrue(metadata["user-agent"].startswith("spanprof-OTLP-Exporter-C/"))

    def test_unavailable_is_tried_again(self):
        with Server([fails(grpc.StatusCode.UNAVAILABLE, "starting"), fine]) as server:
            told = send(server.port, SPANPROF_LOG="info")
            self.assert_books(told, spans=1)
            self.assertIn("gRPC status 14, UNAVAILABLE: starting; trying again", told["log"])
            self.assertEqual(server.traces.calls[0][0], server.traces.calls[1][0])

    def test_exhausted_is_tried_again_only_with_retry_info(self):
        exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
        with Server([fails(exhausted, "quota", status_with_retry_info(8, 0.1)), fine]) as server:
            self.assert_books(send(server.port), spans=1)
        with Server([fails(exhausted, "too large"), fine]) as server:
            told = send(server.port)
            self.assert_books(told, refused=1)
            self.assertIn("gRPC status 8, RESOURCE_EXHAUSTED: too large; dropped and counted", told["log"])

    def test_permanent_errors_drop_with_the_server_s_words(self):
        secret = "s3cr3t-t0ken-of-this-user"
        with Server([fails(grpc.StatusCode.UNAUTHENTICATED, f"bad tokén {secret}\n\x1b[31m")]) as server:
            told = send(server.port, 3, OTEL_EXPORTER_OTLP_HEADERS=f"authorization=Bearer {secret}")
            self.assert_books(told, refused=3)
            self.assertIn("gRPC status 16, UNAUTHENTICATED: bad tokén *** (credentials are a header: OTEL_EXPORTER_OTLP_HEADERS=Authorization=…); dropped and counted", told["log"])
            self.assertNotIn(secret, str(told))
            self.assertNotIn("\x1b", told["log"])
            self.assertEqual(told["log"].count("UNAUTHENTICATED"), 1)

    def test_receiver_without_profiles_is_said_once(self):
        with Server(profiles=[fails(grpc.StatusCode.UNIMPLEMENTED, "unknown service")]) as server:
            told = send(server.port, 3)
            self.assertEqual(told["spans"], 3)
            self.assertEqual(told["refused"], len(server.profiles.calls))
            self.assertEqual(told["log"].count("the receiver does not take profiles"), 1)

    def test_partial_success_is_counted_and_said(self):
        def partly(_):
            return trace_pb2.ExportTraceServiceResponse(partial_success=trace_pb2.ExportTracePartialSuccess(
                rejected_spans=1, error_message="too old"))
        with Server([partly]) as server:
            told = send(server.port)
            self.assert_books(told, spans=0)
            self.assertEqual(len(server.traces.calls), 1)
            self.assertIn("the receiver rejected 1 of the spans: too old", told["log"])

    def test_receiver_that_comes_late_gets_all(self):
        with kept_port() as kept:
            port = kept.getsockname()[1]
            server = Server(port=port)
            starts = threading.Timer(0.3, server.server.start)
            starts.start()
            told = send(port, 2)
            starts.join()
            server.server.stop(None).wait()
        self.assert_books(told, spans=2)

    def test_http_1_receiver_is_named(self):
        with Raw(answer_by_http_1) as server:
            told = send(server.port)
            self.assertEqual(told["spans"], 0)
            self.assertGreater(told["refused"] + told["unreachable"], 0)


# --- a server of HTTP/2 by hand ------------------------------------------------------------------------------------------------

def answer_by_http_1(connection):
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def calls(connection):
    """Each call of CONNECTION, when its request is whole: (h2 connection, stream)."""
    http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    http.initiate_connection()
    connection.sendall(http.data_to_send())
    while data := connection.recv(65536):
        for event in http.receive_data(data):
            if isinstance(event, h2.events.DataReceived):
                http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                yield http, event.stream_id
        connection.sendall(http.data_to_send())


GRPC = [(":status", "200"), ("content-type", "application/grpc")]


def by_hand(first):
    """FIRST answers the first call of all, whatever comes later is answered as it should."""
    seen = []

    def behave(connection):
        for http, stream in calls(connection):
            seen.append(stream)
            if len(seen) == 1:
                if first(http, stream, connection) is False:
                    return
                continue
            http.send_headers(stream, GRPC)
            http.send_data(stream, bytes(5))
            http.send_headers(stream, [("grpc-status", "0")], end_stream=True)
    return behave


class HttpTwo(unittest.TestCase):
    def told(self, first, spans, environment=None, count=1, **wanted):
        with Raw(by_hand(first)) as server:
            told = send(server.port, count, OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT="http://127.0.0.1:9", SPANPROF_PROFILES="none",
                        **(environment or {}))
        self.assertEqual(told["spans"], spans, told)
        for name, value in wanted.items():
            self.assertEqual(told[name], value, told)
        return told["log"]

    def test_trailers_only(self):
        def first(http, stream, _):
            http.send_headers(stream, [*GRPC, ("grpc-status", "3"), ("grpc-message", "bad%20index")], end_stream=True)
        self.assertIn("gRPC status 3, INVALID_ARGUMENT: bad index", self.told(first, 0, refused=1))

    def test_reset_stream_is_tried_again(self):
        def first(http, stream, _):
            http.reset_stream(stream, 7)  # REFUSED_STREAM
        self.told(first, 1)

    def test_goaway_before_the_answer_is_tried_again(self):
        def first(http, _, connection):
            http.close_connection(last_stream_id=0)
            connection.sendall(http.data_to_send())
            return False
        self.told(first, 1)

    def goaway_in_the_answer(self, http, stream, connection, error, last):
        """The headers of the answer and a part of its message, then GOAWAY: h2 would end the connection with it."""
        http.send_headers(stream, GRPC)
        http.send_data(stream, bytes(2))
        frame = hyperframe.frame.GoAwayFrame(last_stream_id=last, error_code=error)
        connection.sendall(http.data_to_send() + frame.serialize())

    def test_goaway_in_the_answer_that_still_comes_is_a_success(self):
        def first(http, stream, connection):
            self.goaway_in_the_answer(http, stream, connection, 0, stream)
            http.send_data(stream, bytes(3))
            http.send_headers(stream, [("grpc-status", "0")], end_stream=True)
        self.told(first, 2, count=2, unreachable=0, refused=0)  # libcurl 7.88 takes GOAWAY for the answer's end

    def test_goaway_in_the_answer_that_ends_with_it_is_tried_again(self):
        def first(http, stream, connection):
            self.goaway_in_the_answer(http, stream, connection, 2, 0)  # INTERNAL_ERROR
            return False
        self.told(first, 1, unreachable=0)

    def test_connection_closed_in_the_answer_is_tried_again(self):
        def first(http, stream, connection):
            http.send_headers(stream, GRPC)
            connection.sendall(http.data_to_send())
            return False
        self.told(first, 1)

    def test_hangs_before_and_after_its_headers_and_is_given_up(self):
        for begins in False, True:
            def first(http, stream, connection):
                if begins:
                    http.send_headers(stream, GRPC)
                    connection.sendall(http.data_to_send())
                while connection.recv(65536):
                    pass
                return False
            with self.subTest(begins):
                log = self.told(first, 0, {"OTEL_EXPORTER_OTLP_TIMEOUT": "1000"}, unreachable=1)
                self.assertEqual(log.count("sending 1 span"), 1, log)

    def test_answer_byte_by_byte_is_an_answer(self):
        def first(http, stream, connection):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            http.send_headers(stream, GRPC)
            http.send_data(stream, bytes(5))
            http.send_headers(stream, [("grpc-status", "0")], end_stream=True)
            for byte in http.data_to_send():
                connection.sendall(bytes([byte]))
        self.assertEqual(self.told(first, 1), "")

    def test_answer_of_another_content_type_is_no_success(self):
        def first(http, stream, _):
            http.send_headers(stream, [(":status", "200"), ("content-type", "text/html")])
            http.send_data(stream, b"<html>Welcome</html>", end_stream=True)
        self.told(first, 0, refused=1)

    def test_trailers_only_with_retry_info_is_tried_again(self):
        details = base64.b64encode(status_with_retry_info(8, 0.1)).rstrip(b"=").decode()

        def first(http, stream, _):
            http.send_headers(stream, [*GRPC, ("grpc-status", "8"), ("grpc-message", "quota"), ("grpc-status-details-bin", details)],
                              end_stream=True)
        self.told(first, 1, unreachable=0)

    def test_answer_without_a_status_is_tried_again(self):
        def first(http, stream, _):
            http.send_headers(stream, GRPC)
            http.send_data(stream, bytes(5), end_stream=True)
        self.assertIn("without a gRPC status", self.told(first, 1, {"SPANPROF_LOG": "info"}, refused=0))

    def test_status_that_is_no_number_is_none(self):
        def first(http, stream, _):
            http.send_headers(stream, [*GRPC, ("grpc-status", "fine")], end_stream=True)
        self.told(first, 0, refused=1)

    def test_garbage_for_a_message_is_delivered_and_said(self):
        def first(http, stream, _):
            http.send_headers(stream, GRPC)
            http.send_data(stream, b"\x01\xff\xff\xff\xff\x00")
            http.send_headers(stream, [("grpc-status", "0")], end_stream=True)
        self.assertIn("an answer that no OTLP receiver sends", self.told(first, 1))

    def test_proxy_s_answer_counts_by_its_code(self):
        def first(http, stream, _):
            http.send_headers(stream, [(":status", "502"), ("content-type", "text/html")])
            http.send_data(stream, b"<html>Bad Gateway</html>", end_stream=True)
        self.told(first, 1)


if __name__ == "__main__":
    sys.exit(side_by_side.run() != 0)
