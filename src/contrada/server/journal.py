"""The log: one JSON object a line on stderr, with who changed what; never a key, query or body.

Of what is refused it has the reason, which may show a value; that of a webhook's is left out.

Lines are written by a thread, so that whoever reads stderr slowly delays nobody; beyond a number of
lines that wait, lines are lost and counted.
"""

import asyncio
import json
import logging
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contrada.server.rates import RequestRates
from contrada.showing import cut

_ACCESS = logging.getLogger("contrada.access")
_WAITING_MAX = 10_000
_PATH_LENGTH_MAX = 300
_BODY_BYTES_MAX = 4_096  # of an answer that is looked at for its position
_REASON = re.compile(rb'"(detail|place)":("(?:[^"\\]|\\.)*")')
_FLUSH_S = 1.0
_READING = {"GET", "HEAD", "OPTIONS"}
_READINESS = "/readyz"  # which answers 503 while all is well
_DETAIL_LENGTH_MAX = 300
_SECRETIVE = "webhook"  # what the places of members with secrets begin with
_ROUTINE = ("/v1/events", "/v1/match", "/v1/explain", "/ack")  # what paths end with
_REFUSALS = {401, 403, 421, 429}
_REFUSALS_PER_S_MAX = 10


class _JsonLines(logging.Formatter):
    """Makes a line of JSON of a record, with the members that it has as `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        members: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            members["error"] = self.formatException(record.exc_info)
        return json.dumps(members, default=str)


class _LineWriter(logging.Handler):
    """Writes lines in a thread of its own, as long as not too many wait."""

    def __init__(self, write: Callable[[str], object]) -> None:
        super().__init__()
        self.setFormatter(_JsonLines())
        self._write = write
        self._waiting: queue.Queue[str | None] = queue.Queue(_WAITING_MAX)
        self._lost = 0
        self._thread = threading.Thread(target=self._run, name="contrada-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._waiting.put_nowait(self.format(record))
        except queue.Full:
            self._lost += 1
        except Exception:
            self.handleError(record)

    def _run(self) -> None:
        while (line := self._waiting.get()) is not None:
            if self._lost:
                lost, self._lost = self._lost, 0
                self._write(json.dumps({"level": "error", "message": f"{lost} lines were lost"}))
            self._write(line)

    def close(self) -> None:
        """Write what waits, but not for long."""
        super().close()
        try:
            self._waiting.put(None, timeout=_FLUSH_S)
        except queue.Full:
            return
        self._thread.join(_FLUSH_S)


def _write_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


@contextmanager
def logging_json(write: Callable[[str], object] = _write_stderr) -> Iterator[None]:
    """Log as JSON while this runs: what Contrada says, and warnings of whatever it uses."""
    root, ours, uvicorn = (logging.getLogger(name) for name in ("", "contrada", "uvicorn.error"))
    before = [(logger, logger.level) for logger in (root, ours, uvicorn)]
    writer = _LineWriter(write)
    root.addHandler(writer)
    ours.setLevel(logging.INFO)
    uvicorn.setLevel(logging.ERROR)  # its other lines have queries in them
    uvicorn.addFilter(_is_fault)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        for logger, level in before:
            logger.setLevel(level)
        uvicorn.removeFilter(_is_fault)
        root.removeHandler(writer)
        writer.close()


def _is_fault(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn's is not merely about a request that the end has cut off."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


class Journal:
    """ASGI middleware that logs changes and who made them, and what was refused or failed."""

    def __init__(self, app: ASGIApp, logged: Callable[[], str]) -> None:
        """Take the application inside, and whether "changes" or "all" requests are logged."""
        self._app, self._logged = app, logged
        self._rates = RequestRates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request, then log it."""
        scope.setdefault("state", {})
        answer = _LoggedAnswer(send)
        started_s = time.monotonic()
        try:
            await self._app(scope, receive, answer.send)
        finally:
            if self._is_logged(scope, answer.status):
                self._log(scope, answer, time.monotonic() - started_s)

    def _is_logged(self, scope: Scope, status: int) -> bool:
        if status in _REFUSALS:
            return not self._rates.take("refusals", _REFUSALS_PER_S_MAX, time.monotonic())
        if self._logged() == "all":
            return True
        if status >= 500:
            return bool(scope["path"] != _READINESS)
        is_reading = scope.get("method", "GET") in _READING
        return not is_reading and not scope["path"].endswith(_ROUTINE)

    def _log(self, scope: Scope, answer: "_LoggedAnswer", seconds: float) -> None:
        caller = scope["state"].get("caller")
        key = None if caller is None else caller.key
        fields = {
            "key": None if key is None else key.name,
            "tenant": None if key is None else key.tenant,
            "address": (scope.get("client") or (None,))[0],
            "method": scope.get("method", "SOCKET"),
            "path": cut(scope["path"], _PATH_LENGTH_MAX),
            "status": answer.status,
            "position": answer.position,
            "detail": answer.detail,
            "seconds": round(seconds, 4),
        }
        fields = {name: value for name, value in fields.items() if value is not None}
        is_fault = answer.status >= 500 and scope["path"] != _READINESS
        level = logging.ERROR if is_fault else logging.INFO
        _ACCESS.log(level, "request", extra={"fields": fields})


class _LoggedAnswer:
    """What goes out as the answer to one request, as far as the log wants to know."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0  # where the caller has gone before there was one
        self._body = b""

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        kind = message["type"]
        if kind in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
        elif kind == "websocket.accept":
            self.status = 101
        elif kind in ("http.response.body", "websocket.http.response.body") and not self._body:
            self._body = message.get("body", b"")[: _BODY_BYTES_MAX + 1]
        await self._send(message)

    @property
    def detail(self) -> str | None:
        """Why a request was refused, as the beginning of the problem says."""
        if self.status < 400:
            return None
        found = {
            name: json.loads(text) for name, text in _REASON.findall(self._body[:_BODY_BYTES_MAX])
        }
        place, detail = found.get(b"place", ""), found.get(b"detail")
        if detail is None or not place.startswith(_SECRETIVE):
            return None if detail is None else cut(detail, _DETAIL_LENGTH_MAX)
        return f"{place} is not as it should be"

    @property
    def position(self) -> str | None:
        """The position that the answer has, if it is a short JSON object with one."""
        if not self._body.startswith(b"{") or len(self._body) > _BODY_BYTES_MAX:
            return None
        try:
            found = json.loads(self._body).get("position")
        except ValueError:
            return None
        return found if isinstance(found, str) else None
