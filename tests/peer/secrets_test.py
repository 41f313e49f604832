#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Secrets in headers, URLs, proxies and key files against everything that comes out of a program: its log at level debug, its statistics and
errors, the files that it writes and keeps. Receivers and proxies send back all that they were sent, in every form.

usage: secrets_test.py SENDS
"""
import base64
import html
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

import grpc

import side_by_side
from keys import make_keys
from receivers import PATIENCE_S, Raw, Server, fails

SENDS = str(pathlib.Path(sys.argv.pop(1)).absolute())
TOKEN, KEY, PASSWORD, QUERY, PROXY = ("tok-9f+8/e7d6c5b4a392817", "k3y~0123456789zyxwvuts", "pa55w0rd&of<the>\"URL\"!", "qu3ry-77665544332211aabb",
                                      "pr0xy-pass-0a1b2c3d4e5f")
SECRETS = {"token": TOKEN, "key": KEY, "password": PASSWORD, "query": QUERY, "proxy": PROXY}
PART = 8  # of a secret: so much of it in a row must not come out


def forms(secret):
    """All texts that give SECRET, or a part of it, away."""
    found = {secret[at:at + PART] for at in range(len(secret) - PART + 1)}
    found |= {urllib.parse.quote(secret, safe=""), json.dumps(secret)[1:-1], html.escape(secret)}
    for shift in range(3):
        digits = base64.b64encode(b"\0" * shift + secret.encode()).decode().rstrip("=")
        found |= {digits[2 + shift:][at:at + 12] for at in range(len(digits) - 16 - shift)}
    return {form.encode() for form in found}


def found_in(data, secrets):
    return [name for name, secret in secrets.items() if any(form in data for form in forms(secret))]


def all_forms(text):
    """What a receiver may make of what it got."""
    return "\n".join([text, urllib.parse.quote(text), base64.b64encode(text.encode()).decode(), json.dumps(text), html.escape(text)] +
                     [base64.b64encode(word.encode()).decode() for word in text.split()])


def request_head(connection):
    data = b""
    while b"\r\n\r\n" not in data and (more := connection.recv(65536)):
        data += more
    return data.partition(b"\r\n\r\n")[0].decode("latin-1")


def decoded(head):
    """HEAD with the user and password of a Basic header in plain, too."""
    words = head.split()
    basic = [base64.b64decode(words[at + 1]).decode() for at, word in enumerate(words[:-1]) if word == "Basic"]
    return "\n".join([head, *basic, *(password for user in basic for password in user.split(":", 1)[1:])])


def answer(connection, status, kind, words):
    body = (json.dumps({"message": words}) if kind == "application/json" else words).encode()
    connection.sendall(f"HTTP/1.1 {status} No\r\nContent-Type: {kind}\r\nLocation: http://u:{PASSWORD}@there/{QUERY}?{TOKEN}\r\n"
                       f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)


def answers(status, kind):
    """A server that sends back the head of each request in all forms, the first time with STATUS, then with 401."""
    codes = [status, 401]

    def behave(connection):
        head = decoded(request_head(connection))
        answer(connection, codes.pop(0) if len(codes) > 1 else codes[0], kind, all_forms(head))
    return behave


def backwards(status, kind):
    """The same, the last header first, because only the beginning of an answer is shown."""
    codes = [status, 401]

    def behave(connection):
        head = decoded(request_head(connection))
        turned = " ".join(reversed([line for line in head.splitlines() if ":" in line or "?" in line]))
        answer(connection, codes.pop(0) if len(codes) > 1 else codes[0], kind, turned)
    return behave


def secret_lines(status, kind):
    """In turn each secret in each of its forms."""
    texts = [form for secret in SECRETS.values() for form in all_forms(secret).splitlines()]

    def behave(connection):
        request_head(connection)
        texts.append(text := texts.pop(0))
        answer(connection, status, kind, f"wrong: {text}")
    return behave, len(texts)


class Secrets(unittest.TestCase):
    maxDiff = 2000

    def url(self, port, scheme="http"):
        return f"{scheme}://user:{urllib.parse.quote(PASSWORD, safe='')}@127.0.0.1:{port}/in?token={QUERY}"

    def run_in(self, folder, endpoint, count=1, **environment):
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "SPANPROF_")) and "proxy" not in key.lower()}
        return subprocess.run([SENDS, str(count), "all"], cwd=folder, capture_output=True, timeout=PATIENCE_S, env={
            **inherited, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT": endpoint,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer {urllib.parse.quote(TOKEN, safe='')}",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS": f"authorization=Bearer {urllib.parse.quote(TOKEN, safe='')},x-api-key={KEY}",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_EXPORTER_OTLP_TIMEOUT": "60000", "SPANPROF_EXPORTER": "otlp,file",
            "SPANPROF_FILE": "out", "SPANPROF_SPOOL": "spool", "SPANPROF_LOG": "debug", "SPANPROF_CPU_HZ": "1000", **environment})

    def check(self, endpoint, says, count=1, secrets=SECRETS, **environment):
        """Nothing that comes out has one of SECRETS; the log SAYS what the case is about."""
        with tempfile.TemporaryDirectory(prefix="spanprof-secrets-") as name:
            folder = pathlib.Path(name)
            done = self.run_in(folder, endpoint, count, **environment)
            out = {str(path): str(path).encode() + path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stderr.decode(), says)
        out.update({"standard output": done.stdout, "standard error": done.stderr})
        self.assertTrue(any("traces" in name for name in out), "no files were made")
        for name, data in out.items():
            self.assertEqual(found_in(data, secrets), [], f"{name}: {data[:3000].decode(errors='replace')}")

    def test_the_search_finds_what_is_planted(self):
        for name, secret in SECRETS.items():
            for text in all_forms(f"user:{secret}").splitlines() + [secret[3:3 + PART]]:
                self.assertIn(name, found_in(text.encode(), SECRETS), text)
        self.assertEqual(found_in(b"export: sending 1 span to http://***@127.0.0.1:4318/in?***: HTTP 401: ***", SECRETS), [])

    def test_receiver_that_sends_all_of_it_back(self):
        for protocol in "http/protobuf", "http/json":
            for status in 401, 503:
                for kind in "text/plain", "application/json", "application/x-protobuf":
                    for behave in answers(status, kind), backwards(status, kind):
                        with self.subTest(f"{protocol} {status} {kind}"), Raw(behave) as server:
                            self.check(self.url(server.port), f"HTTP {status}", OTEL_EXPORTER_OTLP_PROTOCOL=protocol, SPANPROF_PROFILES="none")

    def test_receiver_that_sends_each_secret_back_in_each_form(self):
        for kind in "text/plain", "application/json":
            behave, count = secret_lines(400, kind)
            with self.subTest(kind), Raw(behave) as server:
                self.check(self.url(server.port), "HTTP 400: wrong", count, {name: SECRETS[name] for name in SECRETS if name != "proxy"},
                           SPANPROF_PROFILES="none")

    def test_receiver_that_redirects(self):
        with Raw(answers(307, "text/plain")) as server:
            self.check(self.url(server.port), "HTTP 307: it redirects to http://\\*\\*\\*@there")

    def test_receiver_that_takes_a_part_and_says_why(self):
        def behave(connection):
            head = decoded(request_head(connection))
            turned = " ".join(reversed(head.splitlines()))
            body = json.dumps({"partialSuccess": {"rejectedSpans": "1", "errorMessage": turned}}).encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        with Raw(behave) as server:
            self.check(self.url(server.port), "rejected 1 of the spans", OTEL_EXPORTER_OTLP_PROTOCOL="http/json", SPANPROF_PROFILES="none")

    def test_receiver_of_grpc_that_sends_all_of_it_back(self):
        def echo(context):
            values = [value for value in dict(context.invocation_metadata()).values() if isinstance(value, str)]
            context.abort(grpc.StatusCode.UNAUTHENTICATED, " ".join([*reversed(values), *(base64.b64encode(value.encode()).decode() for value in values)]))
        with Server([echo], [echo]) as server:
            self.check(self.url(server.port), "gRPC status 16", OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
        with Server([fails(grpc.StatusCode.UNAVAILABLE, f"{TOKEN} {KEY} {PASSWORD}"), echo]) as server:
            self.check(self.url(server.port), "gRPC status 14", OTEL_EXPORTER_OTLP_PROTOCOL="grpc", SPANPROF_PROFILES="none")

    def test_proxy_that_sends_all_of_it_back(self):
        for name in "http_proxy", "all_proxy":
            for status in 407, 403, 502:
                for behave in answers(status, "text/plain"), backwards(status, "text/plain"):
                    with self.subTest(f"{name} {status}"), Raw(behave) as proxy:
                        self.check(f"http://user:{urllib.parse.quote(PASSWORD, safe='')}@receiver.invalid/in?token={QUERY}", f"HTTP {status}",
                                   SPANPROF_PROFILES="none", **{name: f"http://puser:{PROXY}@127.0.0.1:{proxy.port}"})

    def test_proxy_that_refuses_to_connect(self):
        with Raw(answers(407, "text/plain")) as proxy:
            for name in "https_proxy", "HTTPS_PROXY", "ALL_PROXY":
                self.check(f"https://user:{urllib.parse.quote(PASSWORD, safe='')}@receiver.invalid/in?token={QUERY}", "response 40[17]",
                           OTEL_EXPORTER_OTLP_TIMEOUT="2000", **{name: f"http://puser:{PROXY}@127.0.0.1:{proxy.port}"})

    def test_nobody_there(self):
        self.check(self.url(9), "Connection refused", OTEL_EXPORTER_OTLP_TIMEOUT="2000")
        self.check(f"http://user:{PASSWORD[:9]}@nowhere.invalid/in?{QUERY}", "Could not resolve", OTEL_EXPORTER_OTLP_TIMEOUT="2000")
        self.check(self.url(9), "sending", http_proxy=f"http://puser:{PROXY}@proxy.invalid:1", OTEL_EXPORTER_OTLP_TIMEOUT="2000")
        self.check(self.url(9), "sending", http_proxy=f"http://puser:{PROXY}@[bad", OTEL_EXPORTER_OTLP_TIMEOUT="2000")

    def test_values_that_cannot_be_used(self):
        for endpoint in f"http://user:{PASSWORD}@[::1?{QUERY}", f"ht tp://user:{TOKEN}@host/?{QUERY}", f"user:{TOKEN}@host:4318/?{QUERY}", f"?{QUERY}":
            with self.subTest(endpoint):
                self.check(endpoint, "config: ", OTEL_EXPORTER_OTLP_TIMEOUT="2000")
        for headers in f"authorization: Bearer {TOKEN}", f"x-api-key={KEY},{TOKEN}", f"bad name={TOKEN}", f"x={TOKEN}%0d%0aevil: {KEY}", f"=%zz{TOKEN}":
            with self.subTest(headers):
                self.check(self.url(9), "HEADERS", OTEL_EXPORTER_OTLP_TIMEOUT="2000", OTEL_EXPORTER_OTLP_TRACES_HEADERS=headers)

    def test_content_of_keys(self):
        with tempfile.TemporaryDirectory(prefix="spanprof-keys-") as name:
            keys = pathlib.Path(name)
            make_keys(keys)
            (keys / "broken.key").write_text(f"-----BEGIN PRIVATE KEY-----\n{TOKEN}\n-----END PRIVATE KEY-----\n")
            lines = (keys / "client.key").read_text().splitlines()[1:-1]
            secrets = {**SECRETS, **{f"line {at} of the key": line for at, line in enumerate(lines)}}
            for key in "client.key", "broken.key":
                self.check(self.url(9, "https"), "sending", secrets=secrets, OTEL_EXPORTER_OTLP_CERTIFICATE=str(keys / "ca.pem"), OTEL_EXPORTER_OTLP_TIMEOUT="2000",
                           OTEL_EXPORTER_OTLP_CLIENT_KEY=str(keys / key), OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=str(keys / "client.pem"))


if __name__ == "__main__":
    sys.exit(side_by_side.run() != 0)
