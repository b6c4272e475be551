"""The API's document: the server does what it says, and nothing in it makes the server fail."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route

from browser import Browser, Page, needs_browser
from contrada.server.api_document import make_document
from contrada.server.row_routes import row_routes
from contrada.server.server_limits import ServerLimits
from server.open_server import SQUARE, OpenServer, point, serving

DOCUMENT = make_document("0")
METHODS = ("get", "put", "post", "delete")
OPERATIONS = [
    (method, path) for path, item in DOCUMENT["paths"].items() for method in METHODS & item.keys()
]
FUZZED = [each for each in OPERATIONS if not each[1].endswith("/rows")]  # files, not values
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with something in it, and no patience."""
    limits = ServerLimits(wait_s_max=0.01)
    with serving(tmp_path_factory.mktemp("filled"), limits) as server:
        server.client.put("/v1/subscriptions/bay", json={"geometry": SQUARE})
        server.client.post("/v1/events", json=point(1, 1))
        yield server


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), FUZZED)
def test_whatever_is_sent_is_answered_as_the_document_says(
    filled: OpenServer, method: str, path: str, mode: GenerationMode
) -> None:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    operation = schema[path][method.upper()]
    if mode is GenerationMode.NEGATIVE and not list(operation.iter_parameters()):
        return
    with requests.Session() as session:

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=10,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        def send(case: Case[Any]) -> None:
            case.call_and_validate(base_url=filled.url, session=session, checks=CHECKS)

        send()


BAY = {"geometry": SQUARE, "subscriber": "ops", "where": "wind > 17"}
ROWS = {"type": "FeatureCollection", "features": [{**point(1, 1), "id": 1, "geometry": SQUARE}]}
IDLE = {"kinds": ["dwell"]}
EXPECTED: list[tuple[str, str, Any, int]] = [
    ("put", "/v1/subscribers/{name}", {}, 201),
    ("put", "/v1/subscribers/{name}", {}, 200),
    ("put", "/v1/subscriptions/{id}", BAY, 201),
    ("put", "/v1/subscriptions/{id}", BAY, 200),
    ("post", "/v1/events", point(1, 1, wind=20), 200),
    ("post", "/v1/events", [point(1, 1, wind=20), 5], 207),
    ("post", "/v1/events", 5, 400),
    ("get", "/v1/subscriptions", None, 200),
    ("get", "/v1/subscriptions/{id}", None, 200),
    ("get", "/v1/subscribers", None, 200),
    ("get", "/v1/subscribers/{name}", None, 200),
    ("get", "/v1/subscribers/{name}/deliveries", None, 200),
    ("post", "/v1/subscribers/{name}/ack", {"position": "POSITION"}, 200),
    ("put", "/v1/subscribers/{name}/cursor", {"position": "POSITION"}, 200),
    ("put", "/v1/subscribers/{name}/cursor", {"time": "2020-01-01T00:00:00Z"}, 200),
    ("post", "/v1/explain", BAY, 200),
    ("post", "/v1/match", {"event": point(1, 1, wind=20), "why": ["bay"]}, 200),
    ("post", "/v1/match", point(1, 1, wind=20), 200),
    ("put", "/v1/settings", {"object": "van", "time": "at", "lateness": "10 s"}, 200),
    ("put", "/v1/settings", {"objects": "van"}, 400),
    ("get", "/v1/settings", None, 200),
    ("get", "/healthz", None, 200),
    ("get", "/readyz", None, 200),
    ("get", "/metrics", None, 200),
    ("get", "/v1/subscribers/{name}/dead-letters", None, 200),
    ("post", "/v1/subscribers/{name}/dead-letters/redrive", {}, 409),
    ("put", "/v1/subscribers/{name}", {"webhook": {"url": "http://192.0.2.1/"}}, 200),
    ("post", "/v1/subscribers/{name}/dead-letters/redrive", {}, 200),
    ("post", "/v1/subscribers/{name}/dead-letters/redrive", None, 200),
    ("get", "/v1/subscribers/{name}", None, 200),
    ("delete", "/v1/subscriptions/{id}", None, 200),
    ("put", "/v1/subscriptions/{id}", {"subscriber": "ops"}, 201),
    ("put", "/v1/subscriptions/{id}", {"subscriber": "ops", "transitions": IDLE}, 200),
    ("put", "/v1/subscriptions/{id}/rows", ROWS, 200),
    ("get", "/v1/subscriptions/{id}", None, 200),
    ("post", "/v1/match", {"event": point(1, 1), "why": ["bay", "none"]}, 200),
    ("delete", "/v1/subscribers/{name}", None, 200),
    ("get", "/v1/subscriptions/{id}", None, 404),
    ("get", "/v1/subscribers/{name}/deliveries", None, 404),
]


def test_every_operation_answers_as_the_document_says(tmp_path: Path) -> None:
    with serving(tmp_path, more_routes=row_routes()) as server:
        position = ""
        for method, path, body, status in EXPECTED:
            filled_in = path.format(id="bay", name="ops")
            sent = {"position": position} if body == {"position": "POSITION"} else body
            answer = server.client.request(method.upper(), filled_in, json=sent)
            assert answer.status_code == status, (method, path, answer.text)
            check_answer(DOCUMENT["paths"][path][method], answer.status_code, answer)
            if path == "/v1/events" and status == 200:
                position = answer.json()["position"]
    assert {(method, path) for method, path, _, _ in EXPECTED} == set(OPERATIONS)


def check_answer(operation: dict[str, Any], status: int, answer: Any) -> None:
    content = operation["responses"][str(status)]["content"]
    media_type = answer.headers["content-type"].partition(";")[0]
    schema = content[media_type]["schema"]
    if media_type.endswith("json"):
        whole = {**schema, "components": DOCUMENT["components"]}
        jsonschema_rs.validator_for(whole).validate(answer.json())


def test_every_route_is_documented_with_its_methods(tmp_path: Path) -> None:
    with serving(tmp_path, more_routes=row_routes()) as server:
        routes = [route for route in server.app.routes if isinstance(route, Route)]
    found = {
        (method.lower(), route.path)
        for route in routes
        for method in route.methods or ()
        if method != "HEAD"
    }
    pages = {("get", path) for path in ("/", "/docs", "/openapi.json")}
    assert found - pages == set(OPERATIONS)


def test_the_document_is_served_and_holds_together(server: OpenServer) -> None:
    document = server.client.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert document["paths"] == DOCUMENT["paths"]
    names = set(
        re.findall(r'"#/components/schemas/(\w+)"', server.client.get("/openapi.json").text)
    )
    assert names <= document["components"]["schemas"].keys()
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.validator_for({**schema, "components": document["components"]})
    summaries = [
        item[m]["summary"] for item in document["paths"].values() for m in METHODS & item.keys()
    ]
    assert len(set(summaries)) == len(summaries)


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_load_nothing_from_elsewhere(server: OpenServer, path: str) -> None:
    answer = server.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", answer.text)


class WebAddress:
    """What stands for a file where a page of a server is shown."""

    def __init__(self, url: str) -> None:
        self._url = url

    def resolve(self) -> "WebAddress":
        return self

    def as_uri(self) -> str:
        return self._url


SHOWN = """new Promise((done) => {
  const look = () => document.querySelector("summary") && done();
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
  look();
})"""


@needs_browser
def test_the_api_is_shown_from_its_document_and_fetches_nothing_else(server: OpenServer) -> None:
    address = cast(Path, WebAddress(f"{server.url}/docs"))
    with Browser() as browser, Page(browser, address) as page:
        page.run(SHOWN)
        methods = [method.lower() for method in page.texts("summary b")]
        paths = page.texts("summary b + code")
        assert set(zip(methods, paths, strict=True)) == set(OPERATIONS)
        schemas = page.texts("details[id^=schema-] summary > code")
        assert schemas == list(DOCUMENT["components"]["schemas"])
        fetched = f"fetches {server.url}/openapi.json"
        assert [said for said in page.complaints() if said != fetched] == []


@pytest.mark.skipif(shutil.which("curl") is None, reason="without curl")
def test_the_first_page_has_commands_that_work(server: OpenServer) -> None:
    page = html.unescape(server.client.get("/").text)
    blocks = re.findall(r"<pre>(.*?)</pre>", page, re.S)
    put, post, read, stream, ack = (c for b in blocks for c in re.split(r"\n(?=curl)", b))
    assert server.url in put
    assert run(put)["changed"]
    assert run(post)["matches"] == 1
    page = run(read)
    assert len(page["deliveries"]) == 1
    assert run(ack.replace("POSITION", page["next"])) == {"position": page["next"]}
    assert "text/event-stream" in stream


def run(command: str) -> Any:
    done = subprocess.run(
        ["sh", "-c", f"{command} -sS"], capture_output=True, check=True, timeout=30
    )
    return json.loads(done.stdout)
