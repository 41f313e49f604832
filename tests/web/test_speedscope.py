#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pprof of `spanprof convert`, opened in speedscope: the functions of its table have the times that the command tells.

speedscope is fetched once by npm and kept in SPANPROF_TEST_CACHE. It draws in headless Chromium, whose document is read."""
import base64
import contextlib
import fcntl
import html
import http.server
import pathlib
import re
import shutil
import sys
import threading

from otlp import *

HERE = pathlib.Path(__file__).resolve().parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


def install():
    """The page of speedscope."""
    cache = pathlib.Path(os.environ.get("SPANPROF_TEST_CACHE") or pathlib.Path.home() / ".cache" / "spanprof-test") / "speedscope-1.25.0"
    cache.mkdir(parents=True, exist_ok=True)
    page = cache / "node_modules" / "speedscope" / "dist" / "release" / "index.html"
    with open(cache / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if page.exists():
            return page
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "speedscope" / name, cache)
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"], cwd=cache, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
        if done.returncode:
            shutil.rmtree(cache / "node_modules", ignore_errors=True)
            print(done.stdout)
            unreachable = re.search(r"ENOTFOUND|ETIMEDOUT|ECONNREFUSED|EAI_AGAIN|network", done.stdout)
            print("SKIPPED: the registry of npm does not answer" if unreachable else "npm ci failed")
            sys.exit(77 if unreachable else 1)
    return page


class Door(http.server.BaseHTTPRequestHandler):
    """Answers /held once /open was asked for: a page that waits for an image is not yet loaded, and Chromium does not print it."""

    def do_GET(self):
        if self.path == "/held":
            self.server.is_open.wait(timeout=600)
        else:
            self.server.is_open.set()
        self.send_response(204)
        self.end_headers()

    def log_message(self, format, *arguments):  # pylint: disable=redefined-builtin
        pass


@contextlib.contextmanager
def door():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    server.is_open = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


# Until the table has rows.
WAIT = """
const held = new Image();
held.src = "%(door)s/held";
document.body.appendChild(held);
const timer = setInterval(() => {
    if (/[0-9](ns|µs|ms|s) \\(/.test(document.body.innerText)) {
        clearInterval(timer);
        new Image().src = "%(door)s/open";
    }
}, 20);
"""


class Speedscope(ToolTest):
    def table(self, pprof):
        """{function: (self, total)} in nanoseconds, of what speedscope shows."""
        data = base64.b64encode((self.folder / pprof).read_bytes()).decode()
        with door() as address:
            load = f'speedscope.loadFileFromBase64("{pprof}", "{data}");'
            self.write("profile.js", (load + WAIT % {"door": address}).encode())
            result = self.dump()
        self.assertEqual(result.returncode, 0, result.stderr.decode()[-2000:])
        texts = [html.unescape(text).strip() for text in re.findall(r">([^<>]+)<", result.stdout.decode())]
        texts = [text for text in texts if text]
        self.assertIn("Symbol Name", texts, "speedscope shows its table")
        rows = texts[texts.index("Symbol Name") + 1:]
        return {name: (self.ns(own), self.ns(total)) for total, own, name in zip(rows[::3], rows[1::3], rows[2::3])}

    def dump(self):
        """The document once it has loaded."""
        environment = dict(os.environ, HOME=str(self.folder), XDG_CONFIG_HOME=str(self.folder), XDG_CACHE_HOME=str(self.folder))
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
                   "--disable-dev-shm-usage", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--no-first-run",
                   f"--user-data-dir={self.folder}/browser", "--window-size=1400,2000", "--dump-dom",
                   f"{PAGE.as_uri()}#view=sandwich&localProfilePath={self.folder}/profile.js"]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)

    def ns(self, text):
        number, unit = re.match(r"([\d.]+)(ns|µs|ms|s)\b", text).groups()
        return float(number) * UNITS[unit]

    def expected(self, *arguments):
        found = {}
        for stack in self.answer_json("flame", *arguments, "--format", "json")["stacks"]:
            for i, name in enumerate(stack["frames"]):
                own, total = found.get(name, (0, 0))
                found[name] = (own + (stack["value"] if i == 0 else 0), total + (stack["value"] if name not in stack["frames"][:i] else 0))
        return found

    def compare(self, pprof, wanted):
        """Times are shown with two decimals."""
        shown = self.table(pprof)
        self.assertEqual(set(shown), set(wanted))
        for name, times in wanted.items():
            for got, want in zip(shown[name], times):
                self.assertAlmostEqual(got, want, delta=0.006 * max(want, 1e6), msg=name)

    def test_functions_have_their_times(self):
        self.write_shop()
        self.answer("convert", "shop", "--to", "pprof", "-o", "all.pb.gz")
        self.compare("all.pb.gz", self.expected("shop"))


if not CHROMIUM or not shutil.which("npm"):
    print("SKIPPED: there is no Chromium, or no npm, in the PATH")
    sys.exit(77)
PAGE = install()
if __name__ == "__main__":
    unittest.main()
