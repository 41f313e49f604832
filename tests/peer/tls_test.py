#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The exporter over TLS, by HTTP and by gRPC: through nginx, which ends TLS and speaks HTTP/2, to servers that want a certificate of the client's,
and with certificates that nobody should trust.

usage: tls_test.py SENDS
"""
import pathlib
import shutil
import ssl
import sys
import tempfile
import unittest

import grpc

import receivers
import side_by_side
from keys import make_certificate, make_keys
from receivers import HttpServer, Server
from shop import Program, kept_port

SENDS = sys.argv.pop(1)
KEYS = None  # a folder

CONFIGURATION = """
daemon off; pid %(folder)s/nginx.pid; error_log stderr notice; %(user)s
events {}
http {
    access_log off;
    client_body_temp_path %(folder)s/body; proxy_temp_path %(folder)s/proxy;
    fastcgi_temp_path %(folder)s/fastcgi; uwsgi_temp_path %(folder)s/uwsgi; scgi_temp_path %(folder)s/scgi;
    server {
        listen 127.0.0.1:%(port)d ssl http2;
        ssl_certificate %(keys)s/server.pem; ssl_certificate_key %(keys)s/server.key;
        location /v1 { proxy_pass http://127.0.0.1:%(http_port)d; }
        location /opentelemetry { grpc_pass grpc://127.0.0.1:%(grpc_port)d; }
    }
}
"""


class Nginx(Program):
    def __init__(self, folder, http_port, grpc_port):
        program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
        with kept_port() as kept:
            self.port = kept.getsockname()[1]
            (folder / "nginx.conf").write_text(CONFIGURATION % {
                "folder": folder, "keys": KEYS, "port": self.port, "http_port": http_port, "grpc_port": grpc_port,
                "user": "user root;" if folder.owner() == "root" else ""})
            super().__init__([program, "-p", f"{folder}/", "-c", "nginx.conf", "-e", "stderr"], folder / "nginx.log")
            self.wait_for("start worker process")


class ThroughNginx(unittest.TestCase):
    """Each protocol with gzip and without. nginx hands HTTP on as HTTP/1 (proxy_pass), and gRPC as HTTP/2 (grpc_pass)."""

    def send(self, protocol, compression, http_port=9, grpc_port=9):
        with tempfile.TemporaryDirectory(prefix="spanprof-nginx-") as name:
            with Nginx(pathlib.Path(name), http_port, grpc_port) as nginx:
                told = receivers.send(SENDS, f"https://127.0.0.1:{nginx.port}", 3, OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                                      OTEL_EXPORTER_OTLP_COMPRESSION=compression, OTEL_EXPORTER_OTLP_CERTIFICATE=str(KEYS / "ca.pem"))
                nginx.stop()
        self.assertEqual((told["spans"], told["refused"], told["unreachable"], told["log"]), (3, 0, 0, ""))

    def test_http(self):
        for protocol, compression in ("http/protobuf", "gzip"), ("http/protobuf", "none"), ("http/json", "gzip"), ("http/json", "none"):
            with self.subTest(protocol, compression=compression), HttpServer() as server:
                self.send(protocol, compression, http_port=server.port)
                self.assertEqual(server.paths.count("/v1/traces"), 3)
                self.assertIn("/v1development/profiles", server.paths)

    def test_grpc(self):
        for compression in "gzip", "none":
            with self.subTest(compression), Server() as server:
                self.send("grpc", compression, grpc_port=server.port)
                self.assertEqual(len(server.traces.calls), 3)
                self.assertGreater(len(server.profiles.calls), 0)


class Certificates:
    """What a client that trusts the CA of this test says of servers with one certificate or another. The subclasses have the servers."""
    environment = {}

    def server(self, name, client_ca):
        """With the certificate NAME, None: without TLS; it wants one of the client's that CLIENT_CA has signed."""
        raise NotImplementedError

    def told(self, name="server", client_ca=None, **environment):
        with self.server(name, client_ca) as server:
            told = receivers.send(SENDS, f"https://user:s3cr3t-w0rd@127.0.0.1:{server.port}", 1, **{
                "OTEL_EXPORTER_OTLP_CERTIFICATE": str(KEYS / "ca.pem"), "SPANPROF_PROFILES": "none", **self.environment, **environment})
            came = self.count(server)
        self.assertNotIn("s3cr3t", told["log"])
        return {**told, "came": came}

    def assert_refuses(self, told, words):
        self.assertEqual((told["came"], told["spans"]), (0, 0))
        self.assertGreaterEqual(told["unreachable"], 1)
        self.assertRegex(told["log"], words)

    def assert_delivers(self, told):
        self.assertEqual((told["came"], told["spans"], told["unreachable"], told["log"]), (1, 1, 0, ""))

    def test_certificate_of_this_ca_is_trusted(self):
        for compression in "gzip", "none":
            with self.subTest(compression):
                self.assert_delivers(self.told(OTEL_EXPORTER_OTLP_COMPRESSION=compression))

    def test_certificate_that_is_over(self):
        self.assert_refuses(self.told("expired"), "certificate has expired.*given up")

    def test_certificate_of_another_host(self):
        self.assert_refuses(self.told("other"), "no alternative certificate subject name matches.*given up")

    def test_certificate_of_a_ca_that_nobody_named(self):
        self.assert_refuses(self.told(OTEL_EXPORTER_OTLP_CERTIFICATE=""), "(self-signed|unable to get local issuer).*given up")

    def test_certificate_of_another_ca(self):
        told = self.told(OTEL_EXPORTER_OTLP_CERTIFICATE=str(KEYS / "foreign" / "ca.pem"))
        self.assert_refuses(told, "(self-signed|unable to get local issuer|signature failure).*given up")

    def test_server_without_tls(self):
        told = self.told(name=None)
        self.assert_refuses(told, "SSL|TLS")

    def test_client_certificate(self):
        own = {"OTEL_EXPORTER_OTLP_CLIENT_KEY": str(KEYS / "client.key"), "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(KEYS / "client.pem")}
        self.assert_delivers(self.told(client_ca=KEYS / "ca.pem", **own))

    def test_client_certificate_that_is_missing_or_of_another_ca(self):
        foreign = {"OTEL_EXPORTER_OTLP_CLIENT_KEY": str(KEYS / "foreign" / "client.key"),
                   "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(KEYS / "foreign" / "client.pem")}
        for own in {}, foreign:
            with self.subTest(own):
                self.assert_refuses(self.told(client_ca=KEYS / "ca.pem", **own), "trying again|given up")


class HttpCertificates(Certificates, unittest.TestCase):
    def server(self, name, client_ca):
        if not name:
            return HttpServer()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(KEYS / f"{name}.pem", KEYS / f"{name}.key")
        if client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(client_ca)
        return HttpServer(context)

    def count(self, server):
        return len(server.paths)


class GrpcCertificates(Certificates, unittest.TestCase):
    environment = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}

    def server(self, name, client_ca):
        if not name:
            return Server()
        pair = (KEYS / f"{name}.key").read_bytes(), (KEYS / f"{name}.pem").read_bytes()
        ca = client_ca.read_bytes() if client_ca else None
        return Server(credentials=grpc.ssl_server_credentials([pair], root_certificates=ca, require_client_auth=bool(ca)))

    def count(self, server):
        return len(server.traces.calls)

    def test_requests_are_answered_one_after_the_other(self):
        """Over one connection, unlike those without TLS (libcurl 7.88)."""
        with self.server("server", None) as server:
            told = receivers.send(SENDS, f"https://127.0.0.1:{server.port}", 5, OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
                                  OTEL_EXPORTER_OTLP_CERTIFICATE=str(KEYS / "ca.pem"))
        self.assertEqual((told["spans"], told["refused"], told["unreachable"], told["log"]), (5, 0, 0, ""))
        self.assertEqual(len(server.traces.calls), 5)
        self.assertGreater(len(server.profiles.calls), 0)


def make_all_keys():
    make_keys(KEYS)
    make_certificate(KEYS, "expired", "subjectAltName=IP:127.0.0.1", days=-1)
    make_certificate(KEYS, "other", "subjectAltName=DNS:example.org")
    (KEYS / "foreign").mkdir()
    make_keys(KEYS / "foreign")


def main():
    global KEYS
    with tempfile.TemporaryDirectory(prefix="spanprof-keys-") as folder:
        KEYS = pathlib.Path(folder)
        make_all_keys()
        if side_by_side.run():
            sys.exit(1)


if __name__ == "__main__":
    main()
