"""The OpenAPI 3.1 document of the API: `/openapi.json` serves it, and tests hold it to its word."""

from typing import Any

from contrada.limits import BROKER_NAME_LENGTH_MAX, PAGE_DELIVERIES_MAX
from contrada.server.api_schemas import POSITION_PATTERN, Schema, list_schemas, refer
from contrada.server.event_routes import LINE_TYPES
from contrada.server.service import ADMIN, PUBLISH, SUBSCRIBE

_JSON, _PROBLEM = "application/json", "application/problem+json"
_TAGS = {
    "Subscriptions": "What is wanted.",
    "Events": "What happens.",
    "Subscribers": "Who reads, and from where on.",
    "Deliveries": "One event for one subscriber, with all that it matched.",
    "Questions": "Nothing is stored.",
    "Server": "How the server is.",
}
_ABOUT = """\
Spatial publish/subscribe over HTTP: register what is wanted, publish events, read what matched.

Errors are `application/problem+json`. Positions are opaque texts. Without keys the server listens
on loopback only; with keys each request has an `Authorization: Bearer` header, and each operation
names the scope that its key must have.

`/v1/socket` is a WebSocket that publishes and receives: `/docs` has its frames.
"""


def make_document(version: str) -> dict[str, Any]:
    """Make the document of a version of Contrada."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Contrada",
            "version": version,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name, "description": about} for name, about in _TAGS.items()],
        "paths": _subscription_paths() | _event_paths() | _subscriber_paths() | _other_paths(),
        "components": {
            "schemas": list_schemas(),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    tag: str,
    summary: str,
    answers: dict[str, Schema],
    *,
    scope: str | None = None,
    about: str = "",
    parameters: list[Schema] | None = None,
    body: Schema | None = None,
    is_body_needed: bool = True,
    problems: str = "400 404",
) -> Schema:
    """Make an operation; `answers` are schemas, or whole contents, by status."""
    operation: Schema = {"tags": [tag], "summary": summary}
    if about:
        operation["description"] = about
    if scope is not None:
        operation |= {"security": [{}, {"key": [scope]}], "x-scope": scope}
        problems += " 401 429 503"
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        content = body if "content" in body else {"content": {_JSON: {"schema": body}}}
        operation["requestBody"] = {"required": is_body_needed, **content}
        problems += " 408 413 415 507"
    found = {status: _answer(status, answer) for status, answer in answers.items()}
    for status in sorted({*problems.split(), "403", "421"} - set(answers)):
        found[status] = _problem(status)
    operation["responses"] = found
    return operation


def _answer(status: str, schema: Schema) -> Schema:
    about = _WORDS.get(status, "Done.")
    content = schema if "content" in schema else {"content": {_JSON: {"schema": schema}}}
    return {"description": about, **content}


_WORDS = {
    "201": "It is new.",
    "207": "Some events are bad: `errors` has them, and the others are stored.",
    "400": "Something about the request has to change.",
    "401": "A key is missing, unknown or revoked.",
    "403": "The key does not allow it, or the request comes from a web page.",
    "404": "There is no such thing.",
    "408": "The body did not come in time.",
    "409": "It conflicts with what is there.",
    "410": "The position is no longer kept, or of another log.",
    "413": "The body is too large.",
    "415": "The body has a type or an encoding that is not read.",
    "421": "The server has no such name as the header `Host` says.",
    "429": "Too many requests: `Retry-After` says when there may be more.",
    "503": "The broker is full, or not ready: `Retry-After` says when to come again.",
    "507": "The disk is nearly full.",
}


def _problem(status: str) -> Schema:
    return {
        "description": _WORDS[status],
        "content": {_PROBLEM: {"schema": refer("Problem")}},
    }


def _query(name: str, about: str, **schema: Any) -> Schema:
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _path(name: str, about: str) -> Schema:
    limits = {"minLength": 1, "maxLength": BROKER_NAME_LENGTH_MAX}
    schema = {"type": "string", **limits}
    return {"name": name, "in": "path", "required": True, "description": about, "schema": schema}


def _header(name: str, about: str, **schema: Any) -> Schema:
    return {
        "name": name,
        "in": "header",
        "description": about,
        "schema": {"type": "string", **schema},
    }


_LIMIT = _query(
    "limit",
    f"How many at most; more than {PAGE_DELIVERIES_MAX:,} count as that many.",
    type="integer",
    minimum=1,
    default=100,
)
_AFTER_NAME = _query("after", "The `next` of the page before.", type="string", minLength=1)


def _subscription_paths() -> dict[str, Any]:
    tag, id_ = "Subscriptions", _path("id", "The subscription.")
    own = _query("subscriber", "Only those of a subscriber.", type="string", minLength=1)
    changed = refer("Changed")
    return {
        "/v1/subscriptions": {
            "get": _operation(
                tag,
                "List subscriptions, by id",
                {"200": refer("SubscriptionPage")},
                scope=SUBSCRIBE,
                parameters=[_AFTER_NAME, _LIMIT, own],
            )
        },
        "/v1/subscriptions/{id}": {
            "parameters": [id_],
            "get": _operation(
                tag,
                "Show a subscription",
                {"200": refer("StandingSubscription")},
                scope=SUBSCRIBE,
            ),
            "put": _operation(
                tag,
                "Add a subscription, or change it",
                {"200": changed, "201": changed},
                scope=SUBSCRIBE,
                about="An equal body changes nothing. What is published after the answer sees it. "
                "Where a collection has rows, only `subscriber` and `expires` can be changed.",
                body=refer("Subscription"),
                problems="400 409",
            ),
            "delete": _operation(
                tag,
                "Remove a subscription",
                {"200": changed},
                scope=SUBSCRIBE,
                about="What it has matched is still delivered.",
            ),
        },
        "/v1/subscriptions/{id}/rows": {"parameters": [id_], "put": _putting_rows()},
    }


def _putting_rows() -> Schema:
    """Describe the rows of a collection, which come as a file."""
    file = {"type": "string", "contentMediaType": "application/octet-stream"}
    names = ["application/vnd.apache.parquet", "application/geo+json", *LINE_TYPES]
    return _operation(
        "Subscriptions",
        "Replace the rows of a collection",
        {"200": refer("Changed"), "201": refer("Changed")},
        scope=SUBSCRIBE,
        about="GeoParquet, GeoJSON or newline-delimited Features, each with a geometry and an "
        "`id`; where none has an id they are numbered from 0. Matches name the row. All rows "
        "before are gone at once. An id that is new becomes a collection with the defaults.",
        parameters=[_query("empty", "Take also a file without rows.", type="boolean")],
        body={"content": {name: {"schema": file} for name in names}},
        problems="400 404 409",
    )


def _event_paths() -> dict[str, Any]:
    events = {"anyOf": [refer("Feature"), refer("FeatureCollection"), refer("CloudEvent")]}
    content: dict[str, Any] = {
        "application/json": {"schema": events},
        "application/geo+json": {"schema": events},
        "application/cloudevents+json": {"schema": refer("CloudEvent")},
        "application/cloudevents-batch+json": {
            "schema": {"type": "array", "items": refer("CloudEvent")}
        },
    }
    lines = "One Feature, or CloudEvent, on each line."
    content |= {name: {"schema": {"type": "string", "description": lines}} for name in LINE_TYPES}
    every = _query("all", "Store none if any is bad.", type="boolean", default=False)
    key = _header(
        "Idempotency-Key",
        "Makes the request known when it comes again: nothing is stored twice.",
        minLength=1,
        maxLength=255,
        pattern="^[!-~]+$",
    )
    operation = _operation(
        "Events",
        "Publish events",
        {"200": refer("Published"), "207": refer("Published")},
        scope=PUBLISH,
        about="Answered once they are on disk. CloudEvents in binary mode have `ce-` headers.",
        parameters=[every, key],
        body={"content": content},
        problems="400",
    )
    return {"/v1/events": {"post": operation}}


def _subscriber_paths() -> dict[str, Any]:
    tag, name = "Subscribers", _path("name", "The subscriber.")
    cursor = {"200": refer("Cursor")}
    listing = _operation(
        tag,
        "List subscribers, by name",
        {"200": refer("SubscriberPage")},
        scope=SUBSCRIBE,
        parameters=[_AFTER_NAME, _LIMIT],
        problems="400",
    )
    acknowledging = _operation(
        tag,
        "Acknowledge deliveries",
        cursor,
        scope=SUBSCRIBE,
        about="Moves the cursor forward to a position, never back.",
        body=refer("Acknowledged"),
        problems="400 404 410",
    )
    moving = _operation(
        tag,
        "Go to a position or a time",
        cursor,
        scope=SUBSCRIBE,
        body=refer("CursorTarget"),
        problems="400 404 410",
    )
    path = "/v1/subscribers/{name}"
    return {
        "/v1/subscribers": {"get": listing},
        path: {"parameters": [name], **_subscriber_operations(tag)},
        f"{path}/deliveries": {"parameters": [name], "get": _reading()},
        f"{path}/dead-letters": {"parameters": [name], "get": _listing_letters()},
        f"{path}/dead-letters/redrive": {"parameters": [name], "post": _redriving()},
        f"{path}/ack": {"parameters": [name], "post": acknowledging},
        f"{path}/cursor": {"parameters": [name], "put": moving},
    }


def _subscriber_operations(tag: str) -> dict[str, Schema]:
    changed = refer("Changed")
    show = _operation(
        tag, "Show a subscriber", {"200": refer("StandingSubscriber")}, scope=SUBSCRIBE
    )
    put = _operation(
        tag,
        "Add a subscriber, or change its channel",
        {"200": changed, "201": changed},
        scope=SUBSCRIBE,
        body=refer("Subscriber"),
        problems="400 409",
    )
    delete = _operation(
        tag,
        "Remove a subscriber",
        {"200": changed},
        scope=SUBSCRIBE,
        about="Its subscriptions, its cursor and what waits for it go with it.",
    )
    return {"get": show, "put": put, "delete": delete}


def _listing_letters() -> Schema:
    return _operation(
        "Deliveries",
        "List dead letters: what a webhook's receiver has refused",
        {"200": refer("DeadLetterPage")},
        scope=SUBSCRIBE,
        parameters=[_after_position("Read on after this position."), _LIMIT],
        problems="400 404 410",
    )


def _redriving() -> Schema:
    return _operation(
        "Deliveries",
        "Send dead letters again",
        {"200": refer("Redriven")},
        scope=SUBSCRIBE,
        about="All of them where there is no body.",
        body=refer("Redrive"),
        is_body_needed=False,
        problems="400 404 409 410",
    )


def _after_position(about: str) -> Schema:
    return _query("after", about, type="string", pattern=POSITION_PATTERN)


def _reading() -> Schema:
    after = _after_position("Read on after this position; without it from the cursor.")
    wait = _query("wait", "Seconds to wait where nothing is there yet.", type="number", minimum=0)
    last = _header("Last-Event-ID", "For streams: read on after this position.")
    content = {
        _JSON: {"schema": refer("DeliveryPage")},
        "text/event-stream": {
            "schema": {
                "type": "string",
                "description": "Each event's data is a Delivery, its id the position. An event "
                "`gap` tells what is no longer kept, `problem` why the stream has ended.",
            }
        },
    }
    return _operation(
        "Deliveries",
        "Read deliveries, once or as a stream",
        {"200": {"content": content}},
        scope=SUBSCRIBE,
        about="Reading moves no cursor: acknowledge what is dealt with. With `Accept: "
        "text/event-stream` the answer goes on for ever.",
        parameters=[after, _LIMIT, wait, last],
        problems="400 404 410",
    )


def _other_paths() -> dict[str, Any]:
    return {
        "/v1/explain": {
            "post": _operation(
                "Questions",
                "Explain a subscription's predicate",
                {"200": refer("Explanation")},
                scope=SUBSCRIBE,
                body=refer("Subscription"),
                problems="400",
            )
        },
        "/v1/match": {
            "post": _operation(
                "Questions",
                "Match an event, and store nothing",
                {"200": refer("Matched")},
                scope=SUBSCRIBE,
                body=refer("Question"),
                problems="400",
            )
        },
        "/v1/settings": {
            "get": _operation(
                "Server",
                "Show the settings of the tenant",
                {"200": refer("Settings")},
                scope=SUBSCRIBE,
                problems="400",
            ),
            "put": _operation(
                "Server",
                "Replace the settings of the tenant",
                {"200": refer("Changed")},
                scope=ADMIN,
                about="What is not named has its default.",
                body=refer("Settings"),
                problems="400 409",
            ),
        },
        "/healthz": {"get": _status("The process lives", "200")},
        "/readyz": {"get": _status("200 once events are taken", "200 503")},
        "/metrics": {
            "get": _operation(
                "Server",
                "Counts, as Prometheus reads them",
                {"200": {"content": {"text/plain": {"schema": {"type": "string"}}}}},
                scope=ADMIN,
                about="Of the tenant of the key; the tenant `default` sees all, and the server.",
                problems="400",
            )
        },
    }


def _status(summary: str, statuses: str) -> Schema:
    answers = dict.fromkeys(statuses.split(), refer("Status"))
    return _operation("Server", summary, answers, problems="")
