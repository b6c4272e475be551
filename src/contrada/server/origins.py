"""Which names a server answers to, and which web pages may talk to it.

A page anywhere can make a browser send requests to loopback, and with a name of its own that leads
there (DNS rebinding) even read the answers. So a server answers only to names that nobody else can
point at it: addresses, localhost, this machine's name, and those that it was told. A browser says
for which page it asks (`Origin`, `Sec-Fetch-Site`); pages from elsewhere are refused, unless they
are allowed.
"""

import re
import socket
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contrada.errors import InvalidInput
from contrada.server.problems import HttpRefusal
from contrada.showing import brief

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/\\%\s]+)(?::(\d{1,5}))?")
_ORIGIN = re.compile(rf"(https?)://({_HOST.pattern})", re.IGNORECASE)
_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
_ELSEWHERE = {"cross-site", "same-site"}  # of Sec-Fetch-Site; another port is the same site
_ALLOWED_METHODS = "GET, POST, PUT, DELETE"
_REMEMBERED_S = "600"  # how long a browser need not ask again


class AllowedOrigins:
    """The names that a server answers to, and the pages that may ask it."""

    def __init__(self, hosts: Iterable[str], origins: Iterable[str], *, is_loopback: bool) -> None:
        """Take names and pages beyond the server's own; on loopback other addresses are none."""
        self._hosts = {_read_host(host) for host in hosts} | {"localhost", _machine()}
        self._origins = {_read_origin(origin) for origin in origins}
        self._is_loopback = is_loopback

    def check_host(self, headers: Headers) -> None:
        """Refuse a request for a name that is not this server's."""
        stated = headers.getlist("host")
        if len(stated) != 1:
            raise HttpRefusal(400, "a request has one Host header")
        found = _HOST.fullmatch(stated[0])
        if found is None or not self._is_ours(found[1].lower()):
            raise HttpRefusal(
                421, f"this server is not {brief(stated[0])}; --allow-host adds a name that it has"
            )

    def check_origin(self, scope: Scope, headers: Headers) -> str | None:
        """Refuse a page from elsewhere; return the origin of one that is allowed expressly."""
        stated = headers.getlist("origin")
        if not stated:
            if _is_led_by_page(scope, headers):
                raise HttpRefusal(403, "a web page from elsewhere may not ask this server")
            return None
        found = _ORIGIN.fullmatch(stated[0]) if len(stated) == 1 else None
        if found is not None:
            origin = _normalise(found[1], found[3], found[4])
            if origin in self._origins or "*" in self._origins:
                return stated[0]
            if self._is_own(found, headers["host"]):
                return None
        raise HttpRefusal(
            403, f"a page of {brief(stated[0])} may not ask this server; --allow-origin allows one"
        )

    def _is_ours(self, name: str) -> bool:
        name = name.removesuffix(".")
        if name in self._hosts or name.endswith(".localhost") or "*" in self._hosts:
            return True
        try:
            address = IPv6Address(name[1:-1]) if name.startswith("[") else IPv4Address(name)
        except ValueError:
            return False
        return address.is_loopback if self._is_loopback else True

    def _is_own(self, origin: re.Match[str], host: str) -> bool:
        """Whether a page comes from this server; behind a proxy only the proxy knows the scheme."""
        own = _HOST.fullmatch(host)
        if own is None or own[1].lower() != origin[3].lower():
            return False
        default = _PORTS[origin[1].lower()]
        return (own[2] or default) == (origin[4] or default)


class OriginGuard:
    """ASGI middleware that lets no page from elsewhere in, and answers those that are allowed."""

    def __init__(self, app: ASGIApp, allowed: Callable[[], AllowedOrigins]) -> None:
        """Take the application inside, and what is allowed at the moment."""
        self._app, self._allowed = app, allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request before anything else looks at it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers, allowed = Headers(scope=scope), self._allowed()
        allowed.check_host(headers)
        origin = allowed.check_origin(scope, headers)
        if origin is None or scope["type"] == "websocket":
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _answer_preflight(origin, headers, send)
        else:
            await self._app(scope, receive, _with_headers(send, _grant(origin)))


def _is_led_by_page(scope: Scope, headers: Headers) -> bool:
    """Whether a page from elsewhere asks without an origin; who follows a link is no page."""
    if headers.get("sec-fetch-site") not in _ELSEWHERE:
        return False
    is_link = headers.get("sec-fetch-mode") == "navigate"
    is_link = is_link and headers.get("sec-fetch-dest") == "document"
    return not (is_link and scope.get("method") == "GET")


def _grant(origin: str) -> dict[str, str]:
    exposed = "Retry-After, Location"
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": exposed,
        "Vary": "Origin",
    }


async def _answer_preflight(origin: str, headers: Headers, send: Send) -> None:
    answer = _grant(origin) | {
        "Access-Control-Allow-Methods": _ALLOWED_METHODS,
        "Access-Control-Allow-Headers": headers.get("access-control-request-headers", ""),
        "Access-Control-Max-Age": _REMEMBERED_S,
        "Content-Length": "0",
    }
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.items()]
    await send({"type": "http.response.start", "status": 204, "headers": raw})
    await send({"type": "http.response.body", "body": b""})


def _with_headers(send: Send, more: Mapping[str, str]) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in more.items():
                headers.append(name, value)
        await send(message)

    return send_with_headers


def _machine() -> str:
    return socket.gethostname().lower()


def _read_host(text: str) -> str:
    found = _HOST.fullmatch(text)
    if text != "*" and (found is None or found[2] is not None):
        words = "is not a name without a port, such as maps.example"
        raise InvalidInput(f"{brief(text)} {words}", place="allow_host")
    return text.lower()


def _read_origin(text: str) -> str:
    found = _ORIGIN.fullmatch(text)
    if text == "*":
        return text
    if found is None:
        words = "is not an origin, such as https://maps.example"
        raise InvalidInput(f"{brief(text)} {words}", place="allow_origin")
    return _normalise(found[1], found[3], found[4])


def _normalise(scheme: str, host: str, port: str | None) -> str:
    scheme = scheme.lower()
    return f"{scheme}://{host.lower()}:{port or _PORTS[scheme]}"
