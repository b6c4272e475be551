"""`/`, `/docs` and `/openapi.json`: how to use the API, for people and for programs.

The pages need no other site: a broker may stand where there is no internet.
"""

import re
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contrada.server.api_document import make_document
from contrada.server.json_answers import answer_json
from contrada.server.resources import resource

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+")
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def document_routes() -> list[Route]:
    """Make the routes of pages to read."""
    return [
        resource("/", GET=get_welcome),
        resource("/docs", GET=get_docs),
        resource("/openapi.json", GET=get_openapi),
    ]


async def get_welcome(request: Request) -> Response:
    """Answer a page that says how to begin."""
    origin = str(request.base_url).rstrip("/")
    if not _ORIGIN.fullmatch(origin):  # it ends up in a shell
        origin = "http://127.0.0.1:8080"
    return _answer_page(_read_page("welcome.html").replace("{{origin}}", origin))


async def get_docs(_: Request) -> Response:
    """Answer a page that shows the API from its document."""
    return _answer_page(_read_page("docs.html"))


async def get_openapi(_: Request) -> Response:
    """Answer the OpenAPI document."""
    return answer_json(make_document(version("contrada")))


def _answer_page(text: str) -> Response:
    return Response(text, headers=_PAGE_HEADERS, media_type="text/html")


@cache
def _read_page(name: str) -> str:
    return files("contrada.server").joinpath(name).read_text(encoding="utf-8")
