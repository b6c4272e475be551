"""Subscriptions and subscribers over HTTP."""

from typing import Any

import httpx
import pytest

from server.open_server import SQUARE, point

BAY = {"geometry": SQUARE, "where": "wind > 17", "subscriber": "ops"}


def test_a_subscription_is_put_shown_and_deleted(client: httpx.Client) -> None:
    put = client.put("/v1/subscriptions/bay", json=BAY)
    assert put.status_code == 201
    shown = client.get("/v1/subscriptions/bay")
    assert shown.json() == {"id": "bay", **BAY, "position": put.json()["position"]}
    assert client.delete("/v1/subscriptions/bay").status_code == 200
    assert client.get("/v1/subscriptions/bay").status_code == 404
    assert client.delete("/v1/subscriptions/bay").status_code == 404


def test_an_equal_body_changes_nothing(client: httpx.Client) -> None:
    first = client.put("/v1/subscriptions/bay", json=BAY)
    again = client.put("/v1/subscriptions/bay", json=BAY)
    other = client.put("/v1/subscriptions/bay", json={**BAY, "where": "wind > 18"})
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 200)
    assert again.json() == {"position": first.json()["position"], "changed": False}
    assert other.json()["changed"]
    assert other.json()["position"] != first.json()["position"]


def test_lists_come_in_pages(client: httpx.Client) -> None:
    for i in range(5):
        body = {"geometry": SQUARE, "subscriber": f"reader {i % 2}"}
        assert client.put(f"/v1/subscriptions/s{i}", json=body).status_code == 201
    seen, query = [], {"limit": 2}
    while True:
        page = client.get("/v1/subscriptions", params=query).json()
        seen += [each["id"] for each in page["subscriptions"]]
        if page["next"] is None:
            break
        query["after"] = page["next"]
    assert seen == ["s0", "s1", "s2", "s3", "s4"]
    own = client.get("/v1/subscriptions", params={"subscriber": "reader 1"}).json()
    assert [each["id"] for each in own["subscriptions"]] == ["s1", "s3"]
    subscribers = client.get("/v1/subscribers", params={"limit": 10_000}).json()
    assert [each["name"] for each in subscribers["subscribers"]] == ["reader 0", "reader 1"]
    assert subscribers["next"] is None


@pytest.mark.parametrize("name", ["a/b", "ä ö", "100%", "%2F", "..", "a?b#c", "東京"])
def test_a_name_may_have_any_letter(client: httpx.Client, name: str) -> None:
    from urllib.parse import quote

    path = f"/v1/subscriptions/{quote(name, safe='').replace('.', '%2E')}"
    assert client.put(path, json={"geometry": SQUARE}).status_code == 201
    assert client.get(path).json()["id"] == name
    assert client.get("/v1/subscriptions").json()["subscriptions"][0]["id"] == name


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"filter": "wind >"}, "at character 6"),
        ({"geometry": SQUARE, "colour": "red"}, "colour"),
        ({"geometry": SQUARE, "relation": "beside"}, "beside"),
        ([1, 2], "object"),
        ("text", "object"),
    ],
)
def test_a_body_that_is_wrong_is_told_where(client: httpx.Client, body: Any, words: str) -> None:
    answer = client.put("/v1/subscriptions/bay", json=body)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["title"] == "Bad Request"
    assert words in problem["detail"]
    assert client.get("/v1/subscriptions/bay").status_code == 404


def test_unknown_query_parameters_are_refused_by_name(client: httpx.Client) -> None:
    answer = client.get("/v1/subscriptions", params={"limitt": 3})
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("query parameter 'limitt': unknown")
    assert client.get("/v1/subscriptions?limit=1&limit=2").status_code == 400
    assert client.get("/v1/subscriptions?limit=0").status_code == 400
    assert client.get("/v1/subscriptions?limit=many").status_code == 400
    assert client.get("/v1/subscriptions?after=").status_code == 400
    assert client.put("/v1/subscriptions/a?x=1", json={"geometry": SQUARE}).status_code == 400


def test_no_option_of_the_library_is_recommended_to_who_has_none(client: httpx.Client) -> None:
    filters = " AND ".join(f"(a{number} > 1 OR b{number} > 2)" for number in range(14))
    answer = client.put("/v1/subscriptions/bay", json={"filter": filters})
    detail = answer.json()["detail"]
    assert "1024 filters" in detail
    assert detail.endswith("split it into several subscriptions")


def test_what_is_not_json_is_refused_with_its_place(client: httpx.Client) -> None:
    headers = {"content-type": "application/json"}
    answer = client.put("/v1/subscriptions/a", content=b'{"filter": }', headers=headers)
    assert answer.status_code == 400
    assert "line 1, column 12" in answer.json()["detail"]
    deep = b'{"filter": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    answer = client.put("/v1/subscriptions/a", content=deep, headers=headers)
    assert answer.status_code == 400
    assert "nested deeper" in answer.json()["detail"]


def test_a_type_that_is_not_json_is_refused(client: httpx.Client) -> None:
    answer = client.put(
        "/v1/subscriptions/a", content=b"<a/>", headers={"content-type": "application/xml"}
    )
    assert answer.status_code == 415
    assert "application/xml" in answer.json()["detail"]


def test_what_curl_calls_a_form_is_json_unless_a_page_sends_it(client: httpx.Client) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    path, body = "/v1/subscriptions/a", b'{"filter": "a = 1"}'
    assert client.put(path, content=body, headers=form).status_code == 201
    page = form | {"origin": "http://elsewhere.example"}
    assert client.put(path, content=body, headers=page).status_code == 415


def test_what_does_not_exist_is_a_problem(client: httpx.Client) -> None:
    nowhere = client.get("/v1/nowhere")
    assert nowhere.status_code == 404
    assert nowhere.headers["content-type"] == "application/problem+json"
    wrong = client.post("/v1/subscriptions/a", json={})
    assert wrong.status_code == 405
    assert set(wrong.headers["allow"].split(", ")) == {"GET", "HEAD", "PUT", "DELETE"}
    assert wrong.json()["status"] == 405


def test_a_subscriber_has_a_cursor_that_moves_forward_only(client: httpx.Client) -> None:
    assert client.put("/v1/subscribers/ops", json={}).status_code == 201
    assert client.put("/v1/subscribers/ops", json={}).status_code == 200
    begin = client.get("/v1/subscribers/ops").json()["cursor"]
    client.put("/v1/subscriptions/bay", json={"geometry": SQUARE, "subscriber": "ops"})
    end = client.post("/v1/events", json=point(1, 1)).json()["position"]
    ack = "/v1/subscribers/ops/ack"
    assert client.post(ack, json={"position": end}).json() == {"position": end}
    assert client.post(ack, json={"position": begin}).json() == {"position": end}
    assert client.get("/v1/subscribers/ops/deliveries").json()["deliveries"] == []
    cursor = "/v1/subscribers/ops/cursor"
    assert client.put(cursor, json={"position": begin}).json() == {"position": begin}
    assert len(client.get("/v1/subscribers/ops/deliveries").json()["deliveries"]) == 1
    moved = client.put(cursor, json={"time": "2090-01-01T00:00:00Z"}).json()
    assert moved == {"position": end}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("ack", {}, 400),
        ("ack", {"position": 5}, 400),
        ("ack", {"position": "nonsense"}, 400),
        ("ack", {"position": "aaaaaaaa-1"}, 410),
        ("ack", {"position": "aaaaaaaa-1", "more": 1}, 400),
        ("ack", [], 400),
        ("cursor", {}, 400),
        ("cursor", {"position": "aaaaaaaa-1", "time": "2020-01-01"}, 400),
        ("cursor", {"time": "yesterday"}, 400),
        ("cursor", {"position": "aaaaaaaa-1"}, 410),
    ],
)
def test_a_position_that_is_none_is_refused(
    client: httpx.Client, path: str, body: Any, status: int
) -> None:
    client.put("/v1/subscribers/ops", json={})
    method = "POST" if path == "ack" else "PUT"
    answer = client.request(method, f"/v1/subscribers/ops/{path}", json=body)
    assert answer.status_code == status
    assert client.request(method, f"/v1/subscribers/nobody/{path}", json=body).status_code >= 400


def test_a_deleted_subscriber_takes_its_subscriptions_along(client: httpx.Client) -> None:
    client.put("/v1/subscriptions/bay", json=BAY)
    assert client.delete("/v1/subscribers/ops").status_code == 200
    assert client.get("/v1/subscriptions/bay").status_code == 404
    assert client.delete("/v1/subscribers/ops").status_code == 404


def test_questions_store_nothing(client: httpx.Client) -> None:
    client.put("/v1/subscriptions/bay", json=BAY)
    question = {"event": point(1, 1, wind=20), "why": ["bay", "none"]}
    answer = client.post("/v1/match", json=question).json()
    assert [match["subscription"] for match in answer["matches"]] == ["bay"]
    assert answer["why"]["none"] is None
    assert answer["why"]["bay"]
    assert client.post("/v1/match", json=point(1, 1, wind=2)).json()["matches"] == []
    assert client.post("/v1/explain", json={"filter": "a = 1 OR a = 2"}).status_code == 200
    wrong = client.post("/v1/explain", json={"filter": "a ="})
    assert wrong.status_code == 400
    assert client.get("/v1/subscribers/ops/deliveries").json()["deliveries"] == []


def test_settings_are_put_and_shown(client: httpx.Client) -> None:
    before = client.get("/v1/settings").json()
    put = client.put("/v1/settings", json={"object": "van", "time": "at", "lateness": "10 s"})
    assert put.status_code == 200
    after = client.get("/v1/settings").json()
    assert (after["object"], after["time"]) == ("van", "at")
    assert after != before
    wrong = client.put("/v1/settings", json={"lateness": "soon"})
    assert wrong.status_code == 400
    assert "soon" in wrong.json()["detail"]
    assert client.put("/v1/settings", json=[]).status_code == 400
    assert client.get("/v1/settings").json() == after
