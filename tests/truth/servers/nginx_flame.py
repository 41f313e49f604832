#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nginx_flame.py SPANPROF_MODULE SPANPROF [--hz HZ]: a page that nginx compresses and one that it does not, asked for at the same time from one worker.
zlib's deflate is in the flamegraphs of the first, and nowhere else. Prints the flamegraph of the slowest compressed request.

It measures: see verdict.py."""
import argparse, collections, glob, os, random, subprocess, sys, tempfile, threading
import nginx_server
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import truth
from truth import verdict

SERVER = """
        spanprof on;
        root html;
        location /report/ { gzip on; gzip_comp_level 6; gzip_min_length 0; gzip_proxied any; }
        location /static/ { }
"""


def write_pages(directory):
    os.makedirs(directory + "/html/report")
    os.makedirs(directory + "/html/static")
    words = [w.strip() for w in "customer order lamp shade street total sum page report of the and to a in month price".split()]
    choose = random.Random(1)
    page = " ".join(choose.choice(words) + str(choose.randrange(1000)) for _ in range(40000))
    open(directory + "/html/report/page.html", "w").write(page)
    open(directory + "/html/static/page.html", "w").write(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spanprof_module")
    parser.add_argument("spanprof")
    parser.add_argument("--hz", default="999")
    parser.add_argument("--seconds", type=verdict.seconds, default="3")
    parser.add_argument("--minimum-samples", type=verdict.count, default="1000", help="of the compressed page")
    parser.add_argument("--minimum-static", type=verdict.count, default="10", help="of the other page")
    arguments = parser.parse_args()
    nginx_server.need("nginx", "wrk")
    directory = tempfile.TemporaryDirectory()
    write_pages(directory.name)
    prefix = directory.name + "/flame"
    with nginx_server.Server(directory.name, [arguments.spanprof_module], SERVER,
                             environment=truth.environment(prefix, arguments.hz)) as nginx:
        script = directory.name + "/gzip.lua"
        open(script, "w").write('wrk.headers["Accept-Encoding"] = "gzip"\n')
        # Compressing takes a hundred times as long, so that few ask for it, or it would leave no time for the other page.
        asking = [threading.Thread(target=nginx_server.wrk, args=(nginx.url(f"/{page}/page.html"), int(arguments.seconds), connections, script))
                  for page, connections in (("report", 2), ("static", 64))]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
    run = truth.Run(directory, [p[: -len(".profiles.jsonl")] for p in glob.glob(prefix + ".*.profiles.jsonl")], "")
    spans = run.spans()
    samples, deflating = collections.Counter(), collections.Counter()
    for sample in run.samples():
        route = spans[sample.link].attributes.get("http.route") if sample.link in spans else "none"
        samples[route] += sample.count
        deflating[route] += sample.count if "deflate" in sample.names else 0
    requests = collections.Counter(s.attributes.get("http.route") for s in spans.values())
    for route in sorted(samples):
        print(f"{route:9} {requests[route]:7} requests {samples[route]:6} samples, {deflating[route]:6} in deflate")
    found = verdict.Verdict()
    found.enough(samples["/report/"], arguments.minimum_samples, "samples of the compressed page")
    found.enough(samples["/static/"], arguments.minimum_static, "samples of the other page")
    found.broken_if(samples["/report/"] >= arguments.minimum_samples and 2 * deflating["/report/"] <= samples["/report/"],
                    "less than half of the compressed page's samples are in deflate")
    found.broken_if(sum(deflating.values()) != deflating["/report/"], "samples in deflate are linked to what is not compressed")
    slowest = max((ids for ids, s in spans.items() if s.attributes.get("http.route") == "/report/"),
                  key=lambda ids: spans[ids].end_ns - spans[ids].start_ns, default=None)
    files = [f for p in run.prefixes for f in (p + ".traces.jsonl", p + ".profiles.jsonl")]
    if slowest:
        subprocess.run([arguments.spanprof, "flame", *files, "--span", slowest[1]])
    found.finish()


if __name__ == "__main__":
    main()
