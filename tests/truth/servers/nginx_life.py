#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nginx_life.py SPANPROF_MODULE: workers come and go, by a reload, by a new binary, by the end: each runs an SDK of its own, and no span is lost. What a
span says of its request."""
import argparse, glob, http.client, os, signal, socket, sys, tempfile, urllib.error, urllib.request
import nginx_server
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import truth

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SERVER = """
        spanprof on;
        location / { return 200 "$spanprof_trace_id\\n"; }
        location /fail { return 503 "no\\n"; }
        location /missing/ { root html; }
        location /proxy/ {
            proxy_pass http://127.0.0.1:%(port)d/;
            proxy_set_header traceparent $spanprof_traceparent;
            proxy_set_header tracestate $spanprof_tracestate;
        }
        location /named { spanprof_span_name "name of $arg_name"; return 204; }
        location /rewritten { rewrite ^ /named?name=inside&secret=1? last; }
"""
# What was asked for, and what the span has of it: values of keys that are known to be secrets are replaced.
QUERIES = {
    "y=z": "y=z",
    "sig=s3cret": "sig=REDACTED",
    "AWSAccessKeyId=k&Signature=a%2Bb&x=1": "AWSAccessKeyId=REDACTED&Signature=REDACTED&x=1",
    "a&X-Goog-Signature=0011&sig=&b": "a&X-Goog-Signature=REDACTED&sig=REDACTED&b",
    "Sig=1&signature=2&asig=3&sig2=4&sig": "Sig=1&signature=2&asig=3&sig2=4&sig",
    "sig=1=2&&sig=3": "sig=REDACTED&&sig=REDACTED",
}
# Requests that leave nginx without a host, headers, a method or a path, and some that end before there is one; and the status that each has (HTTP/0.9 has
# none).
ODD = {
    b"GET /odd/0.9\r\n": b"",
    b"GET /odd/1.0 HTTP/1.0\r\n\r\n": b"200",
    b"GET /odd/empty HTTP/1.0\r\nHost:\r\n\r\n": b"400",
    b"GET /odd/1.1 HTTP/1.1\r\n\r\n": b"400",
    b"GET /odd/long/" + b"a" * 40000 + b" HTTP/1.1\r\n\r\n": b"414",
    b"GET /odd/header HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 40000 + b"\r\n\r\n": b"400",
    b"GET http:///odd/host HTTP/1.1\r\nHost: a\r\n\r\n": b"400",
    b"CONNECT odd:80 HTTP/1.1\r\nHost: odd:80\r\n\r\n": b"400",
    b"ODD /odd/method HTTP/1.0\r\n\r\n": b"200",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n": b"400",
    b"\r\n\r\nG\r\n\r\n": b"400",
    b"GET /odd/cut HTTP/1.1\r\nHost: ": b"",
    b"GET /odd/c": b"",
    b"": b"",
}
WITHOUT = "server { listen unix:%s/with.sock; spanprof on; location / { return 200; } } server { listen unix:%s/without.sock; location / { return 200; } } "


def check(condition, what):
    if not condition:
        sys.exit("FAILED: " + what)


def ask(nginx, path, **headers):
    request = urllib.request.Request(nginx.url(path), headers=headers)
    try:
        return urllib.request.urlopen(request, timeout=nginx_server.PATIENCE_SECONDS).read().decode()
    except urllib.error.HTTPError as error:
        return str(error.code)


def ask_of(nginx, host, target):
    """A request with the header Host, whose request line has TARGET."""
    connection = http.client.HTTPConnection("127.0.0.1", nginx.port, timeout=nginx_server.PATIENCE_SECONDS)
    connection.request("GET", target, headers={"Host": host})
    connection.getresponse().read()
    connection.close()


def ask_oddly(address, text):
    """The status of what answers TEXT, after which nothing more is sent."""
    with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as connection:
        connection.settimeout(nginx_server.PATIENCE_SECONDS)
        connection.connect(address)
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer[9:12] if answer.startswith(b"HTTP/") else b""


def new_workers(nginx, before):
    """Waits until none of those of BEFORE is left."""
    nginx_server.wait_for(lambda: not before & set(nginx.workers()), "the old workers stay")


def new_master(nginx):
    """After SIGUSR2: the process id of the new one, a child of the old."""
    return nginx_server.wait_for(lambda: os.path.exists(nginx.directory + "/nginx.pid.oldbin") and nginx.read_master(), "no new master")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spanprof_module")
    arguments = parser.parse_args()
    nginx_server.need("nginx")
    directory = tempfile.TemporaryDirectory()
    prefix = directory.name + "/life"
    with nginx_server.Server(directory.name, [arguments.spanprof_module], SERVER, WITHOUT % (directory.name, directory.name), workers=2,
                             environment=truth.environment(prefix, 99)) as nginx:
        check(ask(nginx, "/proxy/x?y=z", traceparent=CALLER, tracestate="a=b") == CALLER[3:35] + "\n", "the trace id is not the caller's")
        check(ask(nginx, "/fail") == "503" and ask(nginx, "/missing/page") == "404", "wrong answers")
        ask(nginx, "/named?name=this")
        ask(nginx, "/rewritten?asked=1")
        ask(nginx, "/rewritten/none")
        for number, query in enumerate(QUERIES):
            ask(nginx, f"/query/{number}?{query}")
        for name, host in (("default", "shop.example"), ("given", "shop.example:8443"), ("v6", "[::1]:8080"), ("bad", "shop.example:99999")):
            ask_of(nginx, host, f"/host/{name}")
        ask_of(nginx, "other.example:1", "http://absolute.example:8081/host/absolute")
        ask_of(nginx, "other.example:1", "http://absolute.example/host/absolute/default")
        first = set(nginx.workers())
        for text, status in ODD.items():
            for address in (("127.0.0.1", nginx.port), directory.name + "/with.sock"):
                found = ask_oddly(address, text)
                check(found == status, f"{text[:60]!r} is answered with {found!r}")
        check(set(nginx.workers()) == first, "a worker has ended")
        nginx.signal(signal.SIGHUP)
        new_workers(nginx, first)
        ask(nginx, "/reloaded")
        nginx.signal(signal.SIGUSR2)
        successor = new_master(nginx)
        nginx.signal(signal.SIGQUIT)  # the old one leaves
        nginx.wait()
        nginx.follow(successor)
        ask(nginx, "/upgraded")
    run = truth.Run(directory, [p[: -len(".profiles.jsonl")] for p in glob.glob(prefix + ".*.profiles.jsonl")], "")
    spans = run.spans()
    by_path = {s.attributes.get("url.path", ""): (ids, s) for ids, s in spans.items()}
    alone = sorted(path for path in by_path if path.startswith("/") and not path.startswith(("/query/", "/host/", "/odd/")))
    check(alone == ["/fail", "/missing/page", "/named", "/proxy/x", "/reloaded", "/rewritten", "/rewritten/none", "/upgraded", "/x"], f"spans: {alone}")
    check(len(run.prefixes) == 6, f"{len(run.prefixes)} workers have files, of 6")
    proxy_ids, proxy = by_path["/proxy/x"]
    upstream_ids, upstream = by_path["/x"]
    check(proxy_ids[0] == CALLER[3:35] and proxy.parent == CALLER[36:52], "the caller's trace is not continued")
    check(upstream_ids[0] == proxy_ids[0] and upstream.parent == proxy_ids[1], "the upstream's span is not a child of the proxy's")
    check(proxy.name == "GET /proxy/" and by_path["/named"][1].name == "name of this", "names")
    attributes = dict(proxy.attributes)
    check(attributes.pop("pyroscope.profile.id") == proxy_ids[1], "profile id")
    check(attributes == {"http.request.method": "GET", "url.path": "/proxy/x", "url.scheme": "http", "url.query": "y=z",
                         "http.route": "/proxy/", "server.address": "127.0.0.1", "server.port": str(nginx.port), "client.address": "127.0.0.1",
                         "network.protocol.version": "1.1", "http.response.status_code": "200"}, f"attributes: {attributes}")
    queries = [by_path[path][1].attributes.get("url.query") for path in ("/rewritten", "/rewritten/none")]
    check(queries == ["asked=1", None], f"what a rewrite adds is not in the query that was sent: {queries}")
    shown = {query: by_path[f"/query/{number}"][1].attributes.get("url.query") for number, query in enumerate(QUERIES)}
    check(shown == QUERIES, f"queries: {shown}")
    hosts = {path[len("/host/"):]: (span.attributes.get("server.address"), span.attributes.get("server.port"))
             for path, (_, span) in by_path.items() if path.startswith("/host/")}
    check(hosts == {"default": ("shop.example", "80"), "given": ("shop.example", "8443"), "v6": ("[::1]", "8080"), "bad": ("shop.example", None),
                    "absolute": ("absolute.example", "8081"), "absolute/default": ("absolute.example", "80")}, f"hosts: {hosts}")
    odd = {path: (span.name, span.attributes.get("server.address"), span.attributes["http.response.status_code"])
           for path, (_, span) in by_path.items() if path in ("/odd/0.9", "/odd/1.0", "/odd/method")}
    check(odd == {"/odd/0.9": ("GET /", None, "200"), "/odd/1.0": ("GET /", None, "200"),
                  "/odd/method": ("HTTP /", None, "200")}, f"odd requests: {odd}")
    check(by_path["/fail"][1].attributes["error.type"] == "503", "error.type")
    check("error.type" not in by_path["/missing/page"][1].attributes, "404 is no error of the server's")
    print("spans of 6 workers of 3 generations are all there")


if __name__ == "__main__":
    main()
