"""The calls of a client but for events, rows and deliveries, each as the steps that it takes."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from contrada.client.exchange import BrokerRequest, Steps, path_of
from contrada.client.outgoing import read_outgoing, write_json_text
from contrada.client.outgoing_shapes import spell_geometry
from contrada.client.received import (
    ChangeReceipt,
    ReceivedLetter,
    ReceivedMatch,
    ReceivedPage,
    WebhookReceipt,
    read_change,
    read_letter,
    read_match,
    read_page,
    read_position,
    read_webhook_receipt,
)
from contrada.client.refusals import read_object
from contrada.client.retrying import Attempts, Persistence, ask
from contrada.errors import InvalidInput, NotFound
from contrada.model.event import GEOMETRY
from contrada.model.relation import Relation, find_relation
from contrada.showing import brief

CREATED = 201
_JSON = {"content-type": "application/json"}
_PAGE = 100

ListPage = tuple[list[dict[str, Any]], str | None]  # some items, and after which the rest comes


def call(
    method: str,
    path: str,
    body: Any = None,
    *,
    persistence: Persistence,
    query: Mapping[str, str] | None = None,
    wait_s: float = 0.0,
) -> Steps[tuple[int, dict[str, Any]]]:
    """Send a request that may have a JSON body; return the status and the object answered."""
    content = b"" if body is None else write_json_text(body).encode()
    headers = {} if body is None else _JSON
    request = BrokerRequest(method, path, query or {}, content, headers, wait_s)
    attempts = Attempts(persistence)
    answer = yield from ask(request, attempts)
    try:
        return answer.status, read_object(answer)
    except NotFound as error:
        if method == "DELETE" and attempts.has_lost:
            words = f"{error.message}; an attempt whose answer was lost may have deleted it"
            raise NotFound(words, code=error.code) from None
        raise


def change(method: str, path: str, body: Any, persistence: Persistence) -> Steps[ChangeReceipt]:
    """Send a change."""
    status, answer = yield from call(method, path, body, persistence=persistence)
    return read_change(answer, status == CREATED)


def put_webhook(
    subscriber: str,
    url: str,
    secret: str | None,
    batch: int | None,
    rotate: bool,
    persistence: Persistence,
) -> Steps[WebhookReceipt]:
    """Let a subscriber be called."""
    wanted = {"url": url, "secret": secret, "batch": batch, "rotate": rotate or None}
    webhook = {name: value for name, value in wanted.items() if value is not None}
    path = path_of("subscribers", subscriber)
    status, answer = yield from call("PUT", path, {"webhook": webhook}, persistence=persistence)
    return read_webhook_receipt(answer, status == CREATED)


def get(path: str, persistence: Persistence) -> Steps[dict[str, Any]]:
    """Read one object."""
    _, answer = yield from call("GET", path, persistence=persistence)
    return answer


def post(path: str, body: Any, persistence: Persistence) -> Steps[dict[str, Any]]:
    """Ask a question that has a body."""
    _, answer = yield from call("POST", path, body, persistence=persistence)
    return answer


def list_part(
    kind: str, after: str | None, persistence: Persistence, subscriber: str | None = None
) -> Steps[ListPage]:
    """Read a part of the list of `subscriptions` or `subscribers`."""
    wanted = {"after": after, "subscriber": subscriber, "limit": str(_PAGE)}
    query = {name: value for name, value in wanted.items() if value is not None}
    _, answer = yield from call("GET", path_of(kind), query=query, persistence=persistence)
    return answer.get(kind, []), answer.get("next")


def list_letters(
    subscriber: str, after: str | None, persistence: Persistence
) -> Steps[tuple[list[ReceivedLetter], str | None]]:
    """Read a part of the list of dead letters."""
    query = {"limit": str(_PAGE)} | ({} if after is None else {"after": after})
    path = path_of("subscribers", subscriber, "dead-letters")
    _, answer = yield from call("GET", path, query=query, persistence=persistence)
    return list(map(read_letter, answer.get("dead_letters", ()))), answer.get("next")


def redrive(
    subscriber: str, positions: Iterable[str] | None, persistence: Persistence
) -> Steps[int]:
    """Let dead letters be sent again; return how many."""
    body = {} if positions is None else {"positions": list(positions)}
    path = f"{path_of('subscribers', subscriber, 'dead-letters')}/redrive"
    answer = yield from post(path, body, persistence)
    return int(answer.get("redriven", 0))


def read_deliveries(
    subscriber: str, after: str | None, limit: int, wait_s: float, persistence: Persistence
) -> Steps[ReceivedPage]:
    """Read the next deliveries."""
    if limit < 1:
        raise InvalidInput(f"limit must be at least 1, not {limit}")
    query = {"limit": str(limit)}
    if after is not None:
        query["after"] = after
    if wait_s > 0:
        query["wait"] = f"{wait_s:g}"
    path = path_of("subscribers", subscriber, "deliveries")
    request = BrokerRequest("GET", path, query, wait_s=wait_s)
    answer = yield from ask(request, Attempts(persistence))
    return read_page(read_object(answer))


def move(
    subscriber: str, path: str, body: Mapping[str, Any], persistence: Persistence
) -> Steps[str]:
    """Move the cursor of a subscriber; return where it is then."""
    method = "PUT" if path == "cursor" else "POST"
    path = path_of("subscribers", subscriber, path)
    _, answer = yield from call(method, path, body, persistence=persistence)
    return read_position(answer)


def put_cursor(
    subscriber: str, position: str | None, time: str | datetime | None, persistence: Persistence
) -> Steps[str]:
    """Move the cursor to a position or a time."""
    if (position is None) == (time is None):
        raise InvalidInput("give either a position or a time")
    body = {"time": spell_time(time)} if position is None else {"position": position}
    return move(subscriber, "cursor", body, persistence)


def match(event: Any, persistence: Persistence) -> Steps[list[ReceivedMatch]]:
    """Ask which subscriptions an event would match."""
    question = {"event": _read_one(event)}
    found: list[ReceivedMatch] = []
    while True:
        answer = yield from post(path_of("match"), question, persistence)
        found += map(read_match, answer.get("matches", ()))
        if answer.get("next") is None:
            return found
        question["after"] = answer["next"]


def why(id: str, event: Any, persistence: Persistence) -> Steps[dict[str, Any]]:
    """Ask why a subscription does or does not match an event."""
    body = {"event": _read_one(event), "why": [id]}
    answer = yield from post(path_of("match"), body, persistence)
    found = answer.get("why", {}).get(id)
    if not isinstance(found, dict):
        raise NotFound(f"there is no subscription {brief(id)}")
    return found


def _read_one(event: Any) -> Any:
    events = list(read_outgoing(event))
    if len(events) != 1:
        raise InvalidInput(f"expected one event, not {len(events):,}")
    if events[0].fault is not None:
        raise events[0].fault.within("the event")
    return json.loads(events[0].text)


def describe_subscription(
    filter: str | Mapping[str, Any] | bool | None,
    geometry: Any,
    relation: str | Relation | None,
    where: str | Mapping[str, Any] | None,
    attribute: str | None,
    subscriber: str | None,
    expires: str | datetime | None,
    transitions: bool | Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Make the body of a subscription; what is not given is left out."""
    members = {
        "filter": filter,
        GEOMETRY: spell_geometry(geometry, GEOMETRY),
        "relation": None if relation is None else _spell_relation(relation),
        "where": where,
        "attribute": attribute,
        "subscriber": subscriber,
        "expires": spell_time(expires),
        "transitions": transitions,
    }
    return {name: value for name, value in members.items() if value is not None}


def spell_time(time: str | datetime | None) -> str | None:
    """Write a time as ISO 8601; one without a zone is UTC."""
    if time is None or isinstance(time, str):
        return time
    if not isinstance(time, datetime):
        raise InvalidInput(f"expected a time as text or a datetime, not {brief(time)}")
    return (time.replace(tzinfo=UTC) if time.tzinfo is None else time).isoformat()


def _spell_relation(relation: str | Relation) -> str:
    return find_relation(relation).name if isinstance(relation, Relation) else relation
