"""A headless Chromium, spoken to in its DevTools protocol over two pipes.

Nothing here waits for a clock: a command waits for its answer, and a page for its own events.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not here")

OPTIONS = """
    --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run
    --disable-background-networking --disable-component-update --disable-extensions --disable-sync
    --remote-debugging-pipe
""".split()


class Browser:
    """A process of Chromium with a profile of its own, which ends with its `with`."""

    def __enter__(self) -> Self:
        assert CHROMIUM is not None
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        command = [CHROMIUM, *OPTIONS, f"--user-data-dir={self._profile.name}", "about:blank"]
        # Chromium reads commands from 3 and writes answers to 4, whatever our numbers are.
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(commands, answers),
        )
        os.close(commands)
        os.close(answers)
        self._unread = b""
        self._asked = 0
        self.events: list[dict[str, Any]] = []
        return self

    def __exit__(self, *_: object) -> None:
        self.ask("Browser.close")
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        self._profile.cleanup()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Give a command to the browser and wait for its result."""
        return self.ask_in({}, method, params)

    def ask_in(self, session: dict[str, str], method: str, params: Any) -> dict[str, Any]:
        """Give a command to a page; events that come before the result are kept."""
        self._asked += 1
        number = self._asked
        command = {"id": number, "method": method, "params": params, **session}
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while (message := self._read()).get("id") != number:
            self.events.append(message)
        assert "error" not in message, message
        result: dict[str, Any] = message["result"]
        return result

    def wait_for(self, is_wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Read events until one is as wanted, unless there is one already."""
        while not any(map(is_wanted, self.events)):
            self.events.append(self._read())

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            piece = os.read(self._answers, 1 << 20)
            assert piece, "Chromium has ended"
            self._unread += piece
        first, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message


class Page:
    """A file in a window as large as a laptop's, whose user asked for less motion."""

    def __init__(self, browser: Browser, path: Path) -> None:
        self._browser = browser
        self._target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.ask("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        browser.events.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")
        self._ask("Page.setLifecycleEventsEnabled", enabled=True)
        self.resize(1440, 900)
        loader = self._ask("Page.navigate", url=path.resolve().as_uri())["loaderId"]
        loaded = {"name": "load", "loaderId": loader}
        browser.wait_for(lambda event: loaded.items() <= event["params"].items())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.ask("Target.closeTarget", targetId=self._target)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.ask_in(self._session, method, params)

    def resize(self, width: int, height: int, *, theme: str = "light") -> None:
        """Give the window another size or theme."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", **size)
        media = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in media.items()]
        self._ask("Emulation.setEmulatedMedia", features=features)

    def run(self, script: str) -> Any:
        """Give the value of an expression in the page; a promise is waited for."""
        answer = self._ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def texts(self, selector: str) -> list[str]:
        """What a person reads in each such element; nothing where it is hidden."""
        read = "(element) => element.checkVisibility() ? element.innerText : ''"
        texts = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map({read})")
        return [text.replace("\N{NO-BREAK SPACE}", " ") for text in texts]

    def text(self, selector: str) -> str:
        """What a person reads in the one such element."""
        (text,) = self.texts(selector)
        return text

    def complaints(self) -> list[str]:
        """What the console says, errors that nobody caught, dialogs, and what is fetched."""
        self.settle()
        said = []
        for event in self._browser.events:
            match event["method"], event["params"]:
                case (
                    "Runtime.consoleAPICalled"
                    | "Runtime.exceptionThrown"
                    | "Log.entryAdded"
                    | "Page.javascriptDialogOpening",
                    params,
                ):
                    said.append(json.dumps(params))
                case "Network.requestWillBeSent", {"type": kind, "request": request}:
                    if kind != "Document":
                        said.append(f"fetches {request['url']}")
        return said

    def is_painted(self, canvas: str, places: Iterable[tuple[float, float]]) -> list[bool]:
        """Whether a canvas has any colour in the pixel at each place of it."""
        pixels = [[round(x), round(y)] for x, y in places]
        alphas = self.run(
            f"""(() => {{
              const canvas = document.getElementById({json.dumps(canvas)});
              const copy = new OffscreenCanvas(canvas.width, canvas.height);
              const context = copy.getContext("2d", {{ willReadFrequently: true }});
              context.drawImage(canvas, 0, 0);
              return {pixels}.map(([x, y]) => context.getImageData(x, y, 1, 1).data[3]);
            }})()"""
        )
        return [alpha > 0 for alpha in alphas]

    def move(self, x: float, y: float) -> None:
        """Bring the mouse to a place of the window."""
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float) -> None:
        """Click at a place of the window."""
        self.move(x, y)
        button = {"x": x, "y": y, "button": "left", "clickCount": 1}
        self._ask("Input.dispatchMouseEvent", type="mousePressed", **button)
        self._ask("Input.dispatchMouseEvent", type="mouseReleased", **button)

    def click_on(self, selector: str) -> None:
        """Click in the middle of an element, after scrolling to it."""
        quoted = json.dumps(selector)
        self.run(f"document.querySelector({quoted}).scrollIntoView({{block: 'nearest'}})")
        box = self.run(f"document.querySelector({quoted}).getBoundingClientRect().toJSON()")
        self.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def write(self, text: str) -> None:
        """Type a text where the focus is."""
        self._ask("Input.insertText", text=text)

    def press_enter(self) -> None:
        """Press the key Enter where the focus is."""
        self._ask("Input.dispatchKeyEvent", type="keyDown", key="Enter", text="\r")
        self._ask("Input.dispatchKeyEvent", type="keyUp", key="Enter")

    def shoot(self, path: Path) -> None:
        """Save a picture of the window."""
        self.settle()
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot")["data"]))
