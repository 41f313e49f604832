#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The exporter over TLS: through nginx, which ends TLS and speaks HTTP/2, and with certificates that nobody should trust.

usage: tls_test.py SENDS
"""
import pathlib
import shutil
import ssl
import sys
import tempfile
import unittest

import receivers
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
    def send(self, protocol, http_port=9, grpc_port=9):
        with tempfile.TemporaryDirectory(prefix="spanprof-nginx-") as name:
            with Nginx(pathlib.Path(name), http_port, grpc_port) as nginx:
                told = receivers.send(SENDS, f"https://127.0.0.1:{nginx.port}", 3, OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                                      OTEL_EXPORTER_OTLP_CERTIFICATE=str(KEYS / "ca.pem"))
                nginx.stop()
        self.assertEqual((told["spans"], told["refused"], told["unreachable"], told["log"]), (3, 0, 0, ""))

    def test_http(self):
        for protocol in "http/protobuf", "http/json":
            with self.subTest(protocol), HttpServer() as server:
                self.send(protocol, http_port=server.port)
                self.assertEqual(server.paths.count("/v1/traces"), 3)
                self.assertIn("/v1development/profiles", server.paths)

    def test_grpc(self):
        with Server() as server:
            self.send("grpc", grpc_port=server.port)
            self.assertEqual(len(server.traces.calls), 3)
            self.assertGreater(len(server.profiles.calls), 0)


class Certificates(unittest.TestCase):
    def told(self, name="server", client_ca=None, **environment):
        """Of one span sent to a server with the certificate NAME, by a client that trusts the CA of this test."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(KEYS / f"{name}.pem", KEYS / f"{name}.key")
        if client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(client_ca)
        with HttpServer(context) as server:
            told = receivers.send(SENDS, f"https://user:s3cr3t-w0rd@127.0.0.1:{server.port}", 1, **{
                "OTEL_EXPORTER_OTLP_CERTIFICATE": str(KEYS / "ca.pem"), "SPANPROF_PROFILES": "none", **environment})
        self.assertNotIn("s3cr3t", told["log"])
        return {**told, "came": len(server.paths)}

    def assert_refuses(self, told, words):
        self.assertEqual((told["came"], told["spans"]), (0, 0))
        self.assertGreaterEqual(told["unreachable"], 1)
        self.assertRegex(told["log"], words)

    def test_certificate_of_this_ca_is_trusted(self):
        told = self.told()
        self.assertEqual((told["spans"], told["log"]), (1, ""))

    def test_certificate_that_is_over(self):
        make_certificate(KEYS, "expired", "subjectAltName=IP:127.0.0.1", days=-1)
        self.assert_refuses(self.told("expired"), "certificate has expired.*given up")

    def test_certificate_of_another_host(self):
        make_certificate(KEYS, "other", "subjectAltName=DNS:example.org")
        self.assert_refuses(self.told("other"), "no alternative certificate subject name matches.*given up")

    def test_certificate_of_a_ca_that_nobody_named(self):
        self.assert_refuses(self.told(OTEL_EXPORTER_OTLP_CERTIFICATE=""), "(self-signed|unable to get local issuer).*given up")

    def test_client_certificate(self):
        ca = KEYS / "ca.pem"
        told = self.told(client_ca=ca)
        self.assertEqual((told["came"], told["spans"]), (0, 0))
        told = self.told(client_ca=ca, OTEL_EXPORTER_OTLP_CLIENT_KEY=str(KEYS / "client.key"),
                         OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=str(KEYS / "client.pem"))
        self.assertEqual((told["came"], told["spans"], told["log"]), (1, 1, ""))


def main():
    global KEYS
    with tempfile.TemporaryDirectory(prefix="spanprof-keys-") as folder:
        KEYS = pathlib.Path(folder)
        make_keys(KEYS)
        if not unittest.main(exit=False).result.wasSuccessful():
            sys.exit(1)


if __name__ == "__main__":
    main()
