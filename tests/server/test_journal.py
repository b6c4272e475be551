"""The log: a JSON object a line, who changed what, and never a secret."""

import json
import logging
import threading
from pathlib import Path
from typing import Any

from contrada.server.journal import logging_json
from hosted import FEATURE, hosted


def test_changes_are_logged_with_who_made_them_and_reading_is_not(tmp_path: Path) -> None:
    lines: list[str] = []
    with logging_json(lines.append), hosted(tmp_path) as server:
        key = server.add_key("harbour", "subscribe publish", "north")
        token = key["Authorization"].removeprefix("Bearer ")
        with server.client(key) as client:
            path = "/v1/subscriptions/a"
            body = {"filter": "secret = 1"}
            position = client.put(path, json=body).json()["position"]
            client.get(path, params={"key": "secret-query"})
            client.get(path, headers={"Authorization": "Bearer secret-key"})
            client.post("/v1/events", json=FEATURE)
            client.delete(path, headers={"Cookie": "secret-cookie"})
    text = "\n".join(lines)
    for secret in (token, token.split("_", 2)[2], "secret"):
        assert secret not in text
    found: list[dict[str, Any]] = [json.loads(line) for line in lines]
    assert all(line.keys() >= {"time", "level", "message"} for line in found)
    asked = [line for line in found if line["message"] == "request"]
    requests = [(line["method"], line["status"], line.get("key")) for line in asked]
    assert requests == [("PUT", 201, "harbour"), ("GET", 401, None), ("DELETE", 200, "harbour")]
    assert (asked[0]["position"], asked[0]["tenant"]) == (position, "north")
    assert asked[0]["path"] == "/v1/subscriptions/a"


def test_all_requests_are_logged_if_that_is_asked_for(tmp_path: Path) -> None:
    lines: list[str] = []
    with (
        logging_json(lines.append),
        hosted(tmp_path, log="all") as server,
        server.client() as client,
    ):
        client.get("/v1/subscriptions", params={"after": "a"})
        client.post("/v1/events", json=FEATURE)
    asked = [json.loads(line) for line in lines if '"request"' in line]
    paths = [(line["method"], line["path"], line["status"]) for line in asked]
    assert paths == [("GET", "/v1/subscriptions", 200), ("POST", "/v1/events", 200)]


def test_what_is_refused_is_logged_with_its_reason_and_no_secret(tmp_path: Path) -> None:
    lines: list[str] = []
    with logging_json(lines.append), hosted(tmp_path) as server, server.client() as client:
        client.put("/v1/subscriptions/a", json={"filter": "wind >"})
        client.put("/v1/subscribers/a", json={"webhook": {"url": "https://u:pass@h/?t=hidden"}})
        client.put("/v1/subscribers/a", json={"webhook": {"url": "https://h", "secret": "hidden"}})
        client.put("/v1/subscriptions/a", content=b"x", headers={"Content-Type": "a/b"})
        server.host._app.state.stopping.set()
        assert client.get("/readyz").status_code == 503
    found = [json.loads(line) for line in lines]
    details = [line["detail"] for line in found if line["message"] == "request"]
    assert details[0] == "the predicate ends too early, at character 6"
    assert details[1].startswith("webhook.url: ") or details[1].startswith("webhook.url is")
    assert "application/json" in details[3]
    assert len(details) == 4
    assert "hidden" not in "".join(lines) and "pass" not in "".join(lines)
    assert not [line for line in found if line["level"] == "error"]
    said = [line["message"] for line in found if line["message"].startswith("the server")]
    assert said == ["the server is ready", "the server stops", "the server has ended"]


def test_what_is_refused_again_and_again_is_not_logged_each_time(tmp_path: Path) -> None:
    lines: list[str] = []
    with (
        logging_json(lines.append),
        hosted(tmp_path) as server,
        server.client({"Host": "evil.example"}) as client,
    ):
        for _ in range(200):
            assert client.get("/").status_code == 421
    assert 10 <= sum('"status": 421' in line for line in lines) < 150


def test_a_reader_that_is_stuck_delays_nobody_and_what_was_lost_is_counted() -> None:
    lines: list[str] = []
    released = threading.Event()

    def write(line: str) -> None:
        released.wait()
        lines.append(line)

    log = logging.getLogger("contrada.server")
    with logging_json(write):
        for number in range(10_100):
            log.info("line %s", number)
        released.set()
    assert any("lines were lost" in line for line in lines)


def test_an_error_is_one_line_with_its_trace_and_control_characters_are_escapes() -> None:
    lines: list[str] = []
    log = logging.getLogger("contrada.server")
    with logging_json(lines.append):
        try:
            raise ValueError("\x1b[31mred\n")
        except ValueError:
            log.exception("it failed: %s", "\u202e")
    (line,) = lines
    assert line.isascii() and line.isprintable()
    found = json.loads(line)
    assert (found["level"], found["message"]) == ("error", "it failed: \u202e")
    assert "Traceback" in found["error"]
