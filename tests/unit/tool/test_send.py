#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`spanprof send`, to a receiver that keeps what it gets and answers as a test says."""
import gzip
import http.server
import shutil
import ssl
import threading

from otlp import *


class Receiver:
    """ANSWERS: one (status, headers, body) a request; the last one for all others. Status 0: it closes the connection without an answer."""

    def __init__(self, *answers):
        self.answers = list(answers) or [(200, {}, b"")]
        self.requests = []  # (path, headers, body)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.requests.append((self.path, dict(self.headers), body))
                status, headers, answer = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                for key, value in {"Content-Length": len(answer), "Content-Type": "application/json", **headers}.items():
                    self.send_header(key, str(value))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def paths(self):
        return [path for path, _, _ in self.requests]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def make_certificate(folder, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key",
                    "-out", f"{name}.pem", "-days", "1", "-subj", "/CN=spanprof test", "-addext", "subjectAltName=DNS:localhost"],
                   cwd=folder, check=True, capture_output=True)


class SendTest(ToolTest):
    def receiver(self, *answers):
        made = Receiver(*answers)
        self.addCleanup(made.close)
        return made

    def send(self, *words, environment=None):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "SPANPROF_", "http_proxy"))}
        result = call_tool("send", *words, cwd=self.folder, env={**kept, **(environment or {})})
        result.stdout, result.stderr = result.stdout.decode(), result.stderr.decode()
        return result


class Delivered(SendTest):
    def test_each_request_arrives_as_it_is_traces_first(self):
        self.write("shop.traces.jsonl", json_lines(traces(), traces([span(CART_TRACE, CART, "late", 1, 2)])))
        self.write("shop.profiles.jsonl", json_lines(profiles(), wall_profiles()))
        receiver = self.receiver()
        result = self.send("shop", "--to", "http://" + receiver.host)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("4 requests delivered: 6 spans, ", result.stdout)
        self.assertEqual(receiver.paths(), ["/v1/traces"] * 2 + ["/v1development/profiles"] * 2)
        self.write("got", receiver.requests[0][2])
        self.answer("convert", "got", "--to", "otlp-json", "-o", "got.json")
        self.assertEqual(json.loads((self.folder / "got.json").read_bytes()), traces())
        self.assertTrue(all(headers["Content-Encoding"] == "gzip" for _, headers, _ in receiver.requests))

    def test_a_url_with_the_path_of_a_signal(self):
        self.write_shop()
        development = "/v1development/profiles"
        for path, expected in (("/v1/traces", ["/v1/traces", development]), ("/v1/traces/", ["/v1/traces", development]),
                               (development, ["/v1/traces", development]), ("/v1/profiles", ["/v1/traces", "/v1/profiles"]),
                               ("/otlp/v1/profiles//?a=b", ["/otlp/v1/traces?a=b", "/otlp/v1/profiles?a=b"]),
                               ("/otlp/", ["/otlp/v1/traces", "/otlp" + development]),
                               ("/my-v1/traces", ["/my-v1/traces/v1/traces", "/my-v1/traces" + development])):
            receiver = self.receiver()
            result = self.send("shop", "--to", receiver.host + path)
            self.assertEqual((result.returncode, result.stderr), (0, ""), path)
            self.assertEqual(receiver.paths(), expected, path)

    def test_as_json(self):
        self.write_shop()
        receiver = self.receiver()
        result = self.send("shop", "--to", receiver.host, "--protocol", "http/json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(json.loads(receiver.requests[0][2]), traces())

    def test_variables_and_headers(self):
        self.write_shop()
        receiver = self.receiver()
        result = self.send("shop", "--header", "x-scope-orgid=me,a=b%20c", environment={
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{receiver.host}/base", "OTEL_EXPORTER_OTLP_COMPRESSION": "none"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(receiver.paths(), ["/base/v1/traces", "/base/v1development/profiles"])
        for _, headers, _ in receiver.requests:
            self.assertEqual((headers["x-scope-orgid"], headers["a"]), ("me", "b c"))
            self.assertNotIn("Content-Encoding", headers)

    def test_a_receiver_that_is_busy_is_asked_again(self):
        self.write_shop()
        receiver = self.receiver((503, {"Retry-After": 0}, b""), (200, {}, b""))
        result = self.send("shop", "--to", receiver.host)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(receiver.paths(), ["/v1/traces", "/v1/traces", "/v1development/profiles"])


class Holders(SendTest):
    def test_who_held_a_lock_stays_in_the_files(self):
        self.write_shop()
        self.write("locks.profiles.jsonl", json_lines(lock_profiles(locks=(("cache_mutex", "0x4010"),) * 4)))
        receiver = self.receiver()
        for protocol in ("http/json", "http/protobuf"):
            result = self.send("shop", "locks.profiles.jsonl", "--to", receiver.host, "--protocol", protocol)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            got = self.write("got", receiver.requests[-1][2])
            self.assertNotIn(b"spanprof.holder", receiver.requests[-1][2])
            self.assertNotIn(b"spanprof.lock.", receiver.requests[-1][2])
            self.assertNotIn(b"cache_mutex", receiver.requests[-1][2])
            self.assertNotIn(b"rebuild_index", receiver.requests[-1][2])
            self.answer("check", got)
            self.assertEqual(self.answer_json("flame", got, "--type", "delay", "--format", "json")["total"],
                             self.answer_json("flame", "locks.profiles.jsonl", "--type", "delay", "--format", "json")["total"])


class Links(SendTest):
    def links(self, receiver):
        answer = self.write("got", receiver.requests[-1][2])
        stacks = self.answer_json("flame", answer, "--format", "json")["stacks"]
        return {stack["span_id"] for stack in stacks if stack["span_id"]}

    def test_to_local_roots(self):
        self.write_shop()
        for scope, expected in (("root", {REPORT, CART}), ("innermost", {RENDER, QUERY, COMPRESS, CART})):
            receiver = self.receiver()
            result = self.send("shop", "--to", receiver.host, "--link-scope", scope)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(self.links(receiver), expected)

    def test_profiles_say_where_their_links_lead(self):
        for name, encode in (("p.jsonl", json_lines), ("p.pb", framed)):
            self.write("t.jsonl", json_lines(traces()))
            self.write(name, encode(profiles(attributes={"spanprof.link_scope": "innermost"})))
            for scope in ("innermost", "root"):
                receiver = self.receiver()
                result = self.send("t.jsonl", name, "--to", receiver.host, "--link-scope", scope)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.write("got", receiver.requests[-1][2])
                told = self.answer("convert", "got", "-o", "-", "--to", "otlp-json")
                self.assertEqual([word for word in ("innermost", "root") if f'"{word}"' in told], [scope])

    def test_spans_that_the_files_do_not_have(self):
        self.write_shop()
        self.write("one.jsonl", json_lines(traces([span(CART_TRACE, CART, "GET /cart", 1, 2)])))
        receiver = self.receiver()
        result = self.send("one.jsonl", "shop.profiles.jsonl", "--to", receiver.host, "--link-scope", "root")
        self.assertEqual(result.returncode, 0)
        self.assertIn("3 links to spans that the files do not have: kept as they are", result.stderr)
        self.assertEqual(self.links(receiver), {RENDER, QUERY, COMPRESS, CART})
        result = self.send("shop.profiles.jsonl", "--to", receiver.host, "--link-scope", "root")
        self.assertEqual((result.returncode, len(receiver.requests)), (2, 2))
        self.assertIn("the files have none: give the .traces file, too; nothing was sent", result.stderr)

    def test_samples_without_links_need_no_spans(self):
        self.write("stacks.folded", b"main;work 10\n")
        receiver = self.receiver()
        result = self.send("stacks.folded", "--to", receiver.host, "--link-scope", "root")
        self.assertEqual((result.returncode, result.stderr, len(receiver.requests)), (0, "", 1))


class Refused(SendTest):
    def test_a_request_that_is_refused_ends_it(self):
        self.write_shop()
        receiver = self.receiver((200, {}, b""), (401, {}, b'{"message": "who are you, Basic c2VjcmV0?"}'))
        result = self.send("shop", "--to", f"http://user:secret@{receiver.host}")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"HTTP 401: .* \(credentials are a header: OTEL_EXPORTER_OTLP_HEADERS=Authorization=…\)")
        self.assertRegex(result.stderr, r"shop\.profiles\.jsonl was not delivered.* 1 of 2 requests")
        self.assertNotIn("secret", result.stderr)
        self.assertEqual(len(receiver.requests), 2)

    def test_the_last_reason_is_told_also_when_the_first_attempt_had_another(self):
        self.write_shop()
        receiver = self.receiver((0, {}, b""), (503, {"Retry-After": 0}, b'{"message": "no room left"}'))
        result = self.send("shop", "--to", receiver.host)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"; trying again\n")
        self.assertIn("shop.traces.jsonl was not delivered: HTTP 503: no room left. Delivered before it: 0 of 2 requests", result.stderr)

    def test_a_part_that_is_rejected_is_told(self):
        self.write_shop()
        receiver = self.receiver((200, {}, b'{"partialSuccess": {"rejectedSpans": 2, "errorMessage": "too old"}}'), (200, {}, b"{}"))
        result = self.send("shop", "--to", receiver.host)
        self.assertEqual(result.returncode, 1)
        self.assertIn("too old", result.stderr)
        self.assertIn("did not take 2", result.stderr)

    def test_nobody_is_there(self):
        self.write_shop()
        receiver = self.receiver()
        result = self.send("shop", "--to", "http://127.0.0.1:1", environment={"OTEL_EXPORTER_OTLP_TIMEOUT": "300",
                                                                            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + receiver.host})
        self.assertEqual(result.returncode, 1)
        self.assertIn("0 of 2 requests", result.stderr)
        self.assertEqual(receiver.requests, [], "an endpoint that was not named got something")

    def test_calls_that_are_wrong(self):
        self.write_shop()
        self.refuse(2, "send", "shop", "--to", "ftp://user:secret@host", says=("ftp://***@host", "--to http://HOST:4318"))
        self.refuse(2, "send", "shop", "--link-scope", "all", says=("all", "root, innermost"))
        self.refuse(2, "send", "--to", "http://127.0.0.1:1", says="file")
        self.refuse(2, "send", "nothing", says="nothing")

    def test_a_wrong_header_sends_nothing(self):
        self.write_shop()
        receiver = self.receiver()
        for header, why in (("x-scope-orgid secret", "entry 1 is not key=value"), ("a=b,x: secret", "entry 2 is not key=value"),
                            ("x scope=secret", "entry 1 has a name"), ("a=%zz", "entry 1 has a broken percent escape"),
                            ("content-type=secret", "entry 1 is a header that the exporter sets")):
            error = self.refuse(2, "send", "shop", "--header", header, "--to", "http://" + receiver.host,
                                says=("--header", "NAME=VALUE", why))
            self.assertNotIn("secret", error)
        self.assertEqual(receiver.requests, [])


@unittest.skipUnless(shutil.which("openssl"), "openssl makes the certificates")
class Tls(SendTest):
    def setUp(self):
        super().setUp()
        for name in ("server", "other"):
            make_certificate(self.folder, name)
        self.write("t.jsonl", json_lines(traces()))
        self.receives = self.receiver()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.pem", self.folder / "server.key")
        self.receives.server.socket = context.wrap_socket(self.receives.server.socket, server_side=True)

    def told(self, host, **environment):
        result = self.send("t.jsonl", "--to", f"https://{host}:{self.receives.server.server_port}", environment=environment)
        return result.returncode, result.stderr

    def test_authorities_that_were_trusted_are_named(self):
        code, told = self.told("localhost", OTEL_EXPORTER_OTLP_CERTIFICATE=str(self.folder / "other.pem"))
        self.assertEqual(code, 1)
        self.assertIn("other.pem; OTEL_EXPORTER_OTLP_CERTIFICATE names a file of others)", told)
        code, told = self.told("localhost")
        self.assertRegex(told, r"\(trusted: the authorities of [^ ]+( system)?; OTEL_EXPORTER_OTLP_CERTIFICATE names a file of others\)")

    def test_certificate_of_another_host_is_not_a_matter_of_trust(self):
        code, told = self.told("127.0.0.1", OTEL_EXPORTER_OTLP_CERTIFICATE=str(self.folder / "server.pem"))
        self.assertEqual(code, 1)
        self.assertNotIn("trusted", told)

    def test_certificate_that_is_trusted(self):
        self.assertEqual(self.told("localhost", OTEL_EXPORTER_OTLP_CERTIFICATE=str(self.folder / "server.pem"))[0], 0)


if __name__ == "__main__":
    unittest.main()
