"""Errors as answers: `application/problem+json` in the library's words, and never a stack.

What the sender must change is a 4xx, with its place; what the machine lacks is a 503 or 507. What
nobody foresaw is a 500 that says no more than an id, under which the log has the rest.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from math import ceil
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contrada.errors import (
    BadRows,
    BrokerStarting,
    Conflict,
    ContradaError,
    Gone,
    InvalidInput,
    NotFound,
    OutOfSpace,
    Overloaded,
    Unavailable,
    UnknownSubscription,
)
from contrada.server.json_answers import write_json
from contrada.showing import brief

PROBLEM_TYPE = "application/problem+json"
STARTING = "starting"  # the code by which a client knows to wait

_CUT_OFF = "the server is stopping: this request may or may not have been done; send it again"
_LOG = logging.getLogger("contrada.server")
_STATUSES: tuple[tuple[type[ContradaError], int], ...] = (
    (NotFound, 404),
    (UnknownSubscription, 404),
    (Conflict, 409),
    (Gone, 410),
    (InvalidInput, 400),
    (Overloaded, 503),
    (OutOfSpace, 507),
    (Unavailable, 503),
)


class HttpRefusal(ContradaError):
    """A request that is refused for what it is in HTTP: its key, its type, its size, its pace."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        """Take the status, what is wrong, and headers that the answer must have."""
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


def describe_problem(fault: BaseException) -> dict[str, Any]:
    """Return the members of the problem that an error is; one nobody foresaw is also logged."""
    if isinstance(fault, HttpRefusal):
        return make_problem(fault.status, str(fault))
    for kind, status in _STATUSES:
        if isinstance(fault, kind):
            return make_problem(status, _words(fault), fault)
    id_ = secrets.token_hex(4)
    _LOG.error("unexpected error %s", id_, exc_info=fault)
    return make_problem(500, f"the broker failed; its log has the reason under {id_}") | {"id": id_}


def answer_problem(fault: BaseException) -> Response:
    """Make the answer to a request that failed."""
    problem = describe_problem(fault)
    headers = {**(getattr(fault, "headers", None) or {})}
    if isinstance(fault, Overloaded):
        headers["Retry-After"] = str(max(1, ceil(fault.retry_after_s)))
    if problem["status"] in (408, 413):
        headers["Connection"] = "close"  # the rest of the body is still on its way
    return Response(write_json(problem), problem["status"], headers, PROBLEM_TYPE)


async def answer_http_exception(request: Request, fault: Exception) -> Response:
    """Answer what Starlette itself refuses: a path or a method that does not exist."""
    assert isinstance(fault, HTTPException)
    path = brief(request.scope["path"])
    words = {
        404: f"there is nothing at {path}; /docs shows what there is",
        405: f"{brief(request.method)} is not among what {path} takes",
    }
    detail = words.get(fault.status_code, fault.detail)
    return answer_problem(HttpRefusal(fault.status_code, detail, fault.headers))


class ProblemAnswers:
    """ASGI middleware that answers every error; it logs what nobody foresaw."""

    def __init__(self, app: ASGIApp) -> None:
        """Take the application inside."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request; an error once the answer has begun can only end the connection."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def watch_send(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watch_send)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:  # the server stops, and has waited for as long as it may
            if scope["type"] != "http" or has_begun:
                raise
            await answer_problem(Overloaded(_CUT_OFF))(scope, receive, watch_send)
        except Exception as fault:
            if scope["type"] == "websocket" and not has_begun:
                await _deny(scope, watch_send, fault)
            elif scope["type"] == "http" and not has_begun:
                await answer_problem(fault)(scope, receive, watch_send)
            else:
                describe_problem(fault)


async def _deny(scope: Scope, send: Send, fault: Exception) -> None:
    """Refuse a handshake with a problem, or where the server cannot answer one, without words."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    response = answer_problem(fault)
    head = {"status": response.status_code, "headers": response.raw_headers}
    await send({"type": "websocket.http.response.start", **head})
    await send({"type": "websocket.http.response.body", "body": response.body})


def _words(fault: ContradaError) -> str:
    return fault.message if isinstance(fault, InvalidInput) else str(fault)


def make_problem(status: int, detail: str, fault: ContradaError | None = None) -> dict[str, Any]:
    """Make the members of a problem; those of an error say where it is."""
    title = HTTPStatus(status).phrase
    problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    if isinstance(fault, InvalidInput):
        problem |= {name: value for name in ("place", "code") if (value := getattr(fault, name))}
    if isinstance(fault, BadRows):
        problem["errors"] = [{"detail": text} for text in fault.rows]
    if isinstance(fault, Overloaded):
        problem["retry_after_s"] = fault.retry_after_s
    if isinstance(fault, BrokerStarting):
        problem["code"] = STARTING
    return problem
