"""A real browser, spoken to over its own pipe: no driver, no port, no other package."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_FLAGS: Final = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)


def installed_browser() -> str | None:
    """Return the path of a Chromium on this machine; `None` without one."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Tab:
    """One page of the browser, and what it complained about."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to = to_browser
        self._from = from_browser
        self._unread = b""
        self._number = 0
        self._session = ""
        self._events: list[dict[str, Any]] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits", "Accessibility"):
            self._ask(f"{domain}.enable")

    @property
    def complaints(self) -> list[str]:
        """What the browser logged about the page, and its issues."""
        kinds = ("Log.entryAdded", "Runtime.exceptionThrown", "Audits.issueAdded")
        return [json.dumps(one["params"]) for one in self._events if one["method"] in kinds]

    @property
    def requests(self) -> list[str]:
        """Every address that was asked for."""
        return [
            one["params"]["request"]["url"]
            for one in self._events
            if one["method"] == "Network.requestWillBeSent"
        ]

    def look(
        self, place: Path, *, width: int, scheme: str = "light", media: str = "screen"
    ) -> None:
        """Open a file in a window of this width."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._ask("Emulation.setEmulatedMedia", media=media, features=[feature])
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=False,
        )
        self._events.clear()
        self._ask("Page.navigate", url=place.as_uri())
        self._wait_for("Page.loadEventFired")

    def tell(self, expression: str) -> Any:
        """Return what an expression says about the page; the page's own scripts stay off."""
        said = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def outline(self) -> list[dict[str, Any]]:
        """Return the page as a screen reader hears it."""
        nodes: list[dict[str, Any]] = self._ask("Accessibility.getFullAXTree")["nodes"]
        return [node for node in nodes if not node.get("ignored")]

    def photograph(self, place: Path, *, width: int, top: int = 0, height: int = 3000) -> None:
        """Save a part of the page as a PNG."""
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        shot = self._ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        place.write_bytes(base64.b64decode(shot["data"]))

    def printed(self) -> bytes:
        """Return the page as PDF."""
        pdf = self._ask("Page.printToPDF", printBackground=False, paperWidth=8.27)
        return base64.b64decode(pdf["data"])

    def press(self, key: str) -> None:
        """Press one key."""
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._hear()
            if heard.get("id") == self._number:
                assert "error" not in heard, (method, heard["error"])
                result: dict[str, Any] = heard["result"]
                return result
            self._events.append(heard)

    def _wait_for(self, method: str) -> None:
        while not any(one["method"] == method for one in self._events):
            self._events.append(self._hear())

    def _hear(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            some = os.read(self._from, 1 << 20)
            assert some, "the browser is gone"
            self._unread += some
        message, _, self._unread = self._unread.partition(b"\0")
        heard: dict[str, Any] = json.loads(message)
        return heard


@contextmanager
def browser(program: str, folder: Path, more: Sequence[str] = ()) -> Iterator[Tab]:
    """Start a browser with an empty profile below `folder`, and end it."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    flags = [*_FLAGS, f"--user-data-dir={folder / 'profile'}", *more]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    # The browser reads its pipe 3 and writes its pipe 4, whatever numbers ours have.
    start = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", start, "bash", program, *flags],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Tab(ours_out, ours_in)
    finally:
        process.terminate()
        process.wait()
        os.close(ours_out)
        os.close(ours_in)
