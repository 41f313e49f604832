# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium, which stays there for all pages of a test: its start takes many times as long as a page.

It is spoken to in its DevTools protocol, by pipes: messages of JSON, each of which ends with a NUL."""
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_SECONDS = 600  # for one message; the machine may be busy
WIDTH, HEIGHT = 1400, 900

# It reads from descriptor 3, and writes to 4.
PIPES = 'exec "$@" 3<&0 4>&1 </dev/null >&2'

WHOLE_DOCUMENT = "new XMLSerializer().serializeToString(document.doctype) + document.documentElement.outerHTML"


class Browser:
    """A context manager; its profile is in a folder of its own."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        home = pathlib.Path(self._folder.name)
        environment = dict(os.environ, HOME=str(home), XDG_CONFIG_HOME=str(home), XDG_CACHE_HOME=str(home))
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
                   "--host-resolver-rules=MAP * ~NOTFOUND", "--no-first-run", f"--user-data-dir={home}/browser",
                   f"--window-size={WIDTH},{HEIGHT}", "--remote-debugging-pipe"]
        with open(home / "log", "wb") as log:
            self._process = subprocess.Popen(["sh", "-c", PIPES, "sh", *command], env=environment, stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=log)
        self._bytes, self._events, self._number = b"", [], 0
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._ask("Browser.close")
        self._process.communicate(timeout=PATIENCE_SECONDS)
        self._folder.cleanup()

    def document(self, address, virtual_ms=5000):
        """The document at ADDRESS as it is once it is loaded and its timers ran for VIRTUAL_MS. It sees nothing that an earlier page left."""
        context = self._ask("Target.createBrowserContext")["browserContextId"]
        target = self._ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._ask("Page.enable", session)
        self._ask("Emulation.setDeviceMetricsOverride", session, width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        self._ask("Page.navigate", session, url=address)
        self._wait("Page.loadEventFired", session)
        # Not before: what the empty page spends of this time, the page would not have, and it would wait for ever.
        self._ask("Emulation.setVirtualTimePolicy", session, policy="pauseIfNetworkFetchesPending", budget=virtual_ms,
                  maxVirtualTimeTaskStarvationCount=9999)
        self._wait("Emulation.virtualTimeBudgetExpired", session)
        text = self._ask("Runtime.evaluate", session, expression=WHOLE_DOCUMENT)["result"]["value"]
        self._ask("Target.disposeBrowserContext", browserContextId=context)
        self._events.clear()
        return text

    def _ask(self, method, session=None, **parameters):
        """The result of METHOD. Events that come before it are kept for _wait."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        self._process.stdin.flush()
        while (answer := self._read()).get("id") != self._number:
            self._events.append(answer)
        if "result" not in answer:
            raise AssertionError(f"Chromium refuses {method}: {answer}")
        return answer["result"]

    def _wait(self, event, session):
        while not any(came.get("method") == event and came.get("sessionId") == session for came in self._events):
            self._events.append(self._read())

    def _read(self):
        while b"\0" not in self._bytes:
            ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE_SECONDS)
            data = os.read(self._process.stdout.fileno(), 1 << 20) if ready else b""
            if not data:
                log = (pathlib.Path(self._folder.name) / "log").read_text(encoding="utf-8", errors="replace")
                raise AssertionError(f"Chromium {'has ended' if ready else 'does not answer'}: {log[-2000:]}")
            self._bytes += data
        message, _, self._bytes = self._bytes.partition(b"\0")
        return json.loads(message)
