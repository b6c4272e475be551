"""Paths as they came: a name in a path may have any letter, a slash too, if it is escaped."""

from urllib.parse import quote, unquote

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from contrada.errors import InvalidInput
from contrada.showing import brief


class RawPaths:
    """ASGI middleware that routes by the path as it came, with its escapes."""

    def __init__(self, app: ASGIApp) -> None:
        """Take the application inside."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Put the raw path in place of the one that a server has decoded."""
        if "path" in scope:
            raw = scope.get("raw_path") or quote(scope["path"]).encode()
            scope = {**scope, "path": raw.decode("latin-1")}
        await self._app(scope, receive, send)


def read_path_name(connection: HTTPConnection, parameter: str) -> str:
    """Return a name that stands in the path of a request."""
    text: str = connection.path_params[parameter]
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput(f"{brief(text)} is not UTF-8 once decoded", place="the path") from None
