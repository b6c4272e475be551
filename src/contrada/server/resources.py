"""A path, and what each method does there: one route, so that 405 names all of them."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contrada.errors import InvalidInput
from contrada.showing import brief, listed

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def resource(path: str, **methods: Endpoint) -> Route:
    """Make the route of a path, from the function of each method."""

    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await methods[method](request)

    return Route(path, answer, methods=list(methods))


def read_object(body: Any) -> dict[str, Any]:
    """Return a body if it is a JSON object."""
    if not isinstance(body, dict):
        raise InvalidInput(f"a JSON object is wanted, not {brief(body)}", place="the body")
    return body


def read_members(body: Any, *known: str) -> dict[str, Any]:
    """Return the members of a JSON object, without nulls; one that is not known is refused."""
    for name in read_object(body):
        if name not in known:
            raise InvalidInput(f"unknown; known here: {listed(known)}", place=brief(name))
    return {name: value for name, value in body.items() if value is not None}


def read_text_member(body: Any, name: str) -> str:
    """Return the one member that a body has, a text."""
    members = read_members(body, name)
    if name not in members:
        raise InvalidInput("it is missing", place=name)
    return check_text(members[name], name)


def check_text(value: Any, place: str) -> str:
    """Return a value if it is a text."""
    if not isinstance(value, str):
        raise InvalidInput(f"a text is wanted, not {brief(value)}", place=place)
    return value
