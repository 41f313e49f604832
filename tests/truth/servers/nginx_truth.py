#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nginx_truth.py SPANPROF_MODULE TRUTH_MODULE [--seconds S] [--minimum-samples N]: hundreds of requests are at work at once on one worker,
in slices; is every sample linked to the request that it was taken in?

The path of a request, which its span has as url.path, says its work. Requests of a server without spans do the work of paths /nothing/…:
their samples must have no link."""
import glob, os, random, re, subprocess, sys, tempfile
import nginx_server
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import truth
from truth import verdict

SERVER = """
        spanprof on;
        location /slices/ { truth_handler; }
        location /subrequest/ { auth_request /auth; truth_handler; }
        location = /auth { internal; truth_handler; }
        location ~ ^/proxy/(\\d+)/(\\d+)/(\\d+)/(\\d+)$ {
            proxy_pass http://127.0.0.1:%(port)d/slices/$4/$2/$3;
            proxy_set_header traceparent $spanprof_traceparent;
            truth_filter on;
        }
        location /file/ { root html; try_files /truth.txt =404; aio threads; sendfile off; output_buffers 1 16k; truth_filter on; }
        location /nothing/ { proxy_pass http://unix:%(directory)s/without.sock; }
"""
WITHOUT = "server { listen unix:%s/without.sock; location / { truth_handler; } } "


def many_streams(nginx, seconds):
    """Requests over one connection of HTTP/2 after the other, fifty at once."""
    with open(nginx.directory + "/urls", "w") as urls:
        for i in range(2000 * seconds):
            path = f"/slices/{random.randrange(32)}/{random.randrange(2, 8)}/50"
            urls.write(f'url = "http://127.0.0.1:{nginx.port2}{path}"\noutput = "/dev/null"\n')
            if i % 4 == 0:
                urls.write('next\n')
    subprocess.run(["curl", "--silent", "--http2-prior-knowledge", "--parallel", "--parallel-max", "50", "--max-time", str(seconds),
                    "--config", nginx.directory + "/urls"], stdout=subprocess.DEVNULL, timeout=seconds + 30)


def labels(run):
    """{ids: work}"""
    return {ids: re.match(r"/\w+/(\d+)/", span.attributes["url.path"]).group(1) for ids, span in run.spans().items()}


def main():
    parser = truth.arguments(__doc__)
    parser.add_argument("spanprof_module")
    parser.add_argument("truth_module")
    parser.add_argument("--seconds", type=verdict.seconds, default="5")
    parser.add_argument("--connections", type=int, default=200)
    arguments = parser.parse_args()
    nginx_server.need("nginx", "wrk", "curl")
    directory = tempfile.TemporaryDirectory()
    os.mkdir(directory.name + "/html")
    open(directory.name + "/html/truth.txt", "w").write(100000 * "x")  # seven reads by threads, and as many turns
    prefix = directory.name + "/truth"
    environment = truth.environment(prefix, arguments.hz, arguments.engine, SPANPROF_WINDOW_MS="1000")
    script = os.path.join(os.path.dirname(__file__), "nginx", "requests.lua")
    with nginx_server.Server(directory.name, [arguments.spanprof_module, arguments.truth_module], SERVER, WITHOUT % directory.name,
                             environment=environment) as nginx:
        seconds = round(arguments.seconds)
        said = nginx_server.wrk(nginx.url(), seconds, arguments.connections, script)
        many_streams(nginx, max(seconds // 4, 1))
    prefixes = [p[: -len(".profiles.jsonl")] for p in glob.glob(prefix + ".*.profiles.jsonl")]
    truth.skip_without(arguments.engine, prefixes)
    run = truth.Run(directory, prefixes, said)
    print(said)
    truth.finish("nginx", run, truth.judge(run.samples(), labels(run)), minimum=arguments.minimum_samples, labels=arguments.labels)


if __name__ == "__main__":
    main()
