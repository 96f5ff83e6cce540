"""Chromium without a window, driven over its debugging pipe: messages are JSON with a NUL behind each."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_KEY_NAMES = {"Enter": 13, "Escape": 27}


class Chromium:
    """One browser with one page. `requests` are the addresses that the page asked for, `errors` what its console and
    its scripts complained about."""

    def __init__(self, profile: Path, width: int = 1200, height: int = 800) -> None:
        assert PROGRAM is not None
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--remote-debugging-pipe", f"--user-data-dir={profile}", f"--window-size={width},{height}",
        ]  # fmt: skip
        # The browser reads its descriptor 3 and writes to 4, whatever numbers the pipes have here.
        shell = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, PROGRAM, *options, "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._buffer, self._session, self._loaded = 0, b"", "", False
        self.requests: list[str] = []
        self.errors: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command, and its result once it is there."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])

    def open(self, url: str) -> float:
        """Open a page; the seconds until it was loaded and laid out."""
        self.requests.clear()
        self.errors.clear()
        self._loaded = False
        started = time.monotonic()
        moved = "loaderId" not in self.send("Page.navigate", url=url)  # only to another place of the same page
        while not (self._loaded or moved):
            self._next()
        self.run("document.documentElement.getBoundingClientRect().height")  # not before everything has its place
        return time.monotonic() - started

    def run(self, script: str) -> Any:
        """The value of an expression in the page, awaited."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def key(self, *keys: str) -> None:
        """Press keys as a person would."""
        for key in keys:
            facts = {"key": key, "windowsVirtualKeyCode": _KEY_NAMES.get(key) or ord(key.upper())}
            text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
            self.send("Input.dispatchKeyEvent", type="keyDown", **facts, **text)
            self.send("Input.dispatchKeyEvent", type="keyUp", **facts)

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y = self.run(f"(b => [b.x + Math.min(b.width, 60) / 2, b.y + b.height / 2])({box})")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        self._session = ""
        try:
            self.send("Browser.close")
            self._process.wait(10)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], 60)
            data = os.read(self._in, 1 << 16) if ready else b""
            assert data, "the browser is silent"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, facts: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(facts["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.errors.append(str(facts["entry"]))
        elif method == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning", "assert"):
            self.errors.append(str(facts["args"]))
