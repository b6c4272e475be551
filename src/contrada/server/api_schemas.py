"""The schemas of the API's document: what bodies and answers look like."""

from typing import Any

from contrada.limits import BROKER_NAME_LENGTH_MAX, MATCHES_AT_ONCE_MAX
from contrada.model.relation import RELATIONS

Schema = dict[str, Any]

POSITION_PATTERN = "^[A-Za-z0-9._-]+$"


def text(about: str = "", **more: Any) -> Schema:
    """Make the schema of a text."""
    return {"type": "string", **_about(about), **more}


def number(about: str = "", kind: str = "integer", **more: Any) -> Schema:
    """Make the schema of a number that is not negative."""
    return {"type": kind, "minimum": 0, **_about(about), **more}


def refer(name: str) -> Schema:
    """Refer to a schema by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def members(about: str = "", *required: str, **properties: Schema) -> Schema:
    """Make the schema of an object; members that are `required` are always there."""
    schema = {"type": "object", **_about(about), "properties": properties}
    return schema | ({"required": list(required)} if required else {})


def several(item: Schema, about: str = "", **more: Any) -> Schema:
    """Make the schema of an array."""
    return {"type": "array", **_about(about), "items": item, **more}


def _about(about: str) -> Schema:
    return {"description": about} if about else {}


def _position(about: str = "A place in the log; opaque.") -> Schema:
    return text(about, pattern=POSITION_PATTERN)


def _only(schema: Schema) -> Schema:
    """Refuse members that the schema does not name."""
    return schema | {"additionalProperties": False}


def _name(about: str) -> Schema:
    return text(about, minLength=1, maxLength=BROKER_NAME_LENGTH_MAX)


def list_schemas() -> dict[str, Schema]:
    """List all schemas by name."""
    return {
        **_geojson(),
        **_subscriptions(),
        **_events(),
        **_subscribers(),
        **_deliveries(),
        **_letters(),
        **_others(),
    }


def _geojson() -> dict[str, Schema]:
    kinds = "Point MultiPoint LineString MultiLineString Polygon MultiPolygon".split()
    plain = members("", "type", "coordinates", type=text(enum=kinds), coordinates={"type": "array"})
    collection = members(
        "",
        "type",
        "geometries",
        type=text(enum=["GeometryCollection"]),
        geometries=several(refer("Geometry")),
    )
    feature = members(
        "A GeoJSON Feature: its properties, its geometry and its id are an event's attributes.",
        "type",
        type=text(enum=["Feature"]),
        id={"type": ["string", "integer", "null"]},
        geometry={"anyOf": [refer("Geometry"), {"type": "null"}]},
        properties={"type": ["object", "null"]},
    )
    features = members(
        "",
        "type",
        "features",
        type=text(enum=["FeatureCollection"]),
        features=several(refer("Feature")),
    )
    cloud_event = members(
        "A CloudEvent 1.0 whose data are a Feature; source and id make a repeat.",
        "specversion",
        "id",
        "source",
        "type",
        "data",
        specversion=text(enum=["1.0"]),
        id=text(minLength=1),
        source=text(minLength=1),
        type=text(minLength=1),
        data=refer("Feature"),
    )
    return {
        "Geometry": {"description": "A GeoJSON geometry.", "oneOf": [plain, collection]},
        "Feature": feature,
        "FeatureCollection": features,
        "CloudEvent": cloud_event,
    }


def _subscriptions() -> dict[str, Schema]:
    predicate = {"type": ["string", "object"]}
    wanted: dict[str, Schema] = {
        "filter": {**predicate, "description": "CQL2, as text or JSON."},
        "geometry": {"$ref": "#/components/schemas/Geometry"},
        "relation": text(
            "How an event's geometry lies to this one; `intersects` by default.",
            anyOf=[{"enum": list(RELATIONS)}, {"pattern": "^[TF*012]{9}$"}],
        ),
        "where": {**predicate, "description": "CQL2 over the attributes, beside a geometry."},
        "attribute": text("Which geometry of an event is meant; `geometry` by default."),
        "subscriber": _name("Who gets the deliveries; by default the subscription's own id."),
        "expires": text("The moment at which it ends by itself.", format="date-time"),
        "transitions": {
            "description": "Enter, exit, cross and dwell instead of every match.",
            "anyOf": [{"type": "boolean"}, refer("TransitionTerms")],
        },
    }
    terms = members(
        "Which transitions, and when they count.",
        kinds=several(text(enum=["enter", "inside", "exit", "cross", "dwell"])),
        hysteresis=number("Metres beyond the boundary until it is left.", "number"),
        cooldown=text(
            "Such as `2 min`: so long an enter or exit stands; crossings lie so far apart."
        ),
        dwell=text("Such as `30 min`: a visit of this length is reported."),
    )
    about = (
        "What is wanted: a `filter`, or a `geometry` with a `relation`; with neither, a collection "
        "whose geometries are rows."
    )
    shown = members("A subscription as it stands.", "id", "position", id=text(), **wanted)
    shown["properties"] |= {
        "position": _position("Since when it stands so."),
        "rows": number("Of a collection: how many it has."),
        "rows_time": text("When they were put.", format="date-time"),
    }
    page = members(
        "",
        "subscriptions",
        "next",
        subscriptions=several(refer("StandingSubscription")),
        next={"type": ["string", "null"], "description": "Goes into `after`; null at the end."},
    )
    changed = members(
        "",
        "position",
        position=_position("What is published after this answer is matched with the change."),
        changed={"type": "boolean", "description": "False where it was like that already."},
        secret=text("Of a webhook, where it was made; nothing shows it again."),
        count=number("Of the rows of a collection."),
        warnings=several(text(), "What it asks for that can do nothing; absent if there is none."),
    )
    return {
        "Subscription": _only(members(about, **wanted)),
        "TransitionTerms": terms,
        "StandingSubscription": shown,
        "SubscriptionPage": page,
        "Changed": changed,
    }


def _events() -> dict[str, Schema]:
    bad = members("", "index", "detail", index=number("Its place in what was sent."), detail=text())
    published = members(
        "Events that are on disk.",
        "accepted",
        "position",
        "matches",
        "errors",
        accepted=number("How many are stored, or were before."),
        position=_position("Of the last of them."),
        matches=number("Of how many subscriptions, over all events."),
        errors=several(refer("BadEvent"), "Those that are not stored."),
        repeated=number("How many had been stored before; absent where none had."),
    )
    return {"BadEvent": bad, "Published": published}


def _subscribers() -> dict[str, Schema]:
    webhook = members(
        "Is called with deliveries, after Standard Webhooks.",
        "url",
        url=text("http or https."),
        secret=text("`whsec_…`; absent: the one that is there, or a new one."),
        batch=number("How many deliveries a request may have.", default=1),
        rotate={
            "type": "boolean",
            "description": "Make a new secret; the old one lives on a while.",
        },
    )
    shown = members(
        "A subscriber: its cursor, its channel, and how far it is.",
        "name",
        "cursor",
        name=text(),
        cursor=_position("The last position that was acknowledged."),
        waiting=number("How many deliveries wait after it; counted up to 10,000."),
        waiting_since=text("When the first of them was stored.", format="date-time"),
        gone=number("How many were no longer kept when it came to them."),
        dead_letters=number("How many a webhook that is no more has left; else absent."),
        webhook=refer("StandingWebhook"),
    )
    page = members(
        "",
        "subscribers",
        "next",
        subscribers=several(refer("StandingSubscriber")),
        next={"type": ["string", "null"], "description": "Goes into `after`; null at the end."},
    )
    return {
        "Subscriber": _only(
            members("How it gets deliveries; empty: it reads.", webhook=refer("Webhook"))
        ),
        "Webhook": webhook,
        "StandingSubscriber": shown,
        "StandingWebhook": _standing_webhook(),
        "SubscriberPage": page,
        "Acknowledged": _only(members("", "position", position=_position())),
        "CursorTarget": {
            "description": "A position, or a moment: before the first event stored since then.",
            "oneOf": [
                _only(members("", "position", position=_position())),
                _only(members("", "time", time=text(format="date-time"))),
            ],
        },
        "Cursor": members("", "position", position=_position("Where the cursor is now.")),
        "Settings": _only(_settings()),
    }


def _standing_webhook() -> Schema:
    moment = {"type": "string", "format": "date-time"}
    return members(
        "A webhook as it stands.",
        "url",
        "state",
        url=text(),
        batch=number("How many deliveries a request may have."),
        state=text("Whether it waits for its first answer, is called, or is paused."),
        breaker=text("Open while the endpoint is down.", enum=["open", "closed"]),
        failures=number("In a row."),
        last_success=moment,
        last_failure=moment,
        next_attempt=moment,
        last_error=text("What went wrong the last time."),
        dead_letters=number("How many deliveries were refused for good."),
    )


def _settings() -> Schema:
    return members(
        "Which events are positions of objects, and how late they may come.",
        object={"type": ["string", "null"], "description": "The attribute that names an object."},
        time={"type": ["string", "null"], "description": "The attribute that has the time."},
        lateness=text("Such as `30 s`: positions may overtake each other by as much."),
        silence={"type": ["string", "null"], "description": "Ends a visit without positions."},
        ahead=text("Such as `10 min`: how far a position may be ahead of the broker's clock."),
        idle=text("Such as `1 min`: without positions the clock moves on after so long."),
    )


def _deliveries() -> dict[str, Schema]:
    any_id = {"type": ["string", "integer"]}
    match = members(
        "A subscription that the event matched, or a transition of it.",
        "subscription",
        subscription=text(),
        row=any_id,
        relation=text(),
        transition=text(),
        object=any_id,
        time=text(),
        cause=text(),
    )
    data = members("", "matches", event=refer("Feature"), matches=several(refer("Match")))
    delivery = members(
        "One event for one subscriber, with all that it matched: a CloudEvent.",
        "specversion",
        "id",
        "source",
        "type",
        "position",
        "data",
        specversion=text(enum=["1.0"]),
        id=text(),
        source=text(),
        type=text(),
        time=text(format="date-time"),
        datacontenttype=text(),
        position=_position(),
        data=data,
    )
    gap = members(
        "Deliveries that are no longer kept.",
        "until",
        until=_position(),
        deliveries=number("How many; absent where that is not known."),
    )
    page = members(
        "",
        "deliveries",
        "next",
        deliveries=several(refer("Delivery")),
        next=_position("Goes into `after`, or into an `ack` once they are dealt with."),
        gap=refer("Gap"),
    )
    return {"Match": match, "Delivery": delivery, "Gap": gap, "DeliveryPage": page}


def _letters() -> dict[str, Schema]:
    letter = members(
        "A delivery that was refused.",
        "delivery",
        "error",
        "time",
        "due",
        delivery=refer("Delivery"),
        error=text("What the receiver answered."),
        time=text(format="date-time"),
        due={"type": "boolean", "description": "Whether it is about to be sent again."},
    )
    letters = members(
        "",
        "dead_letters",
        "next",
        dead_letters=several(refer("DeadLetter")),
        next={"type": ["string", "null"], "description": "Goes into `after`; null at the end."},
    )
    positions = several(_position(), "Which; all where they are absent.", maxItems=1_000)
    return {
        "DeadLetter": letter,
        "DeadLetterPage": letters,
        "Redrive": _only(members("", positions=positions)),
        "Redriven": members("", "redriven", redriven=number("How many will be sent again.")),
    }


def _others() -> dict[str, Schema]:
    question = members(
        "",
        "event",
        event=refer("Feature"),
        why=several(text(), "Ids of subscriptions to explain."),
        after=text("The `next` of an answer: what matches beyond that."),
    )
    matched = members(
        "",
        "matches",
        matches=several(refer("Match"), f"At most {MATCHES_AT_ONCE_MAX:,}."),
        count=number("How many there are."),
        next=text("Where there are more: the `after` of the next question."),
        why={
            "type": "object",
            "description": "By id; null where there is no such subscription.",
            "additionalProperties": {"anyOf": [refer("Why"), {"type": "null"}]},
        },
    )
    constraint = members("", "constraint", constraint=text(), value={"type": ["boolean", "null"]})
    reasons: dict[str, Schema] = {
        "matches": {"type": "boolean"},
        "filters": several(several(constraint), "One of them must have no constraint but true."),
        "text": text("The same for people to read."),
    }
    row = members("", "row", row={"type": ["string", "integer"]}, **reasons)
    why = members(
        "Why a subscription matches an event, or does not; a collection is told row by row.",
        "matches",
        **reasons,
        count=number("Of a collection: how many of its rows match."),
        of=number("How many rows it has."),
        rows=several(row, "The first of those that match."),
    )
    problem = members(
        "What went wrong, after RFC 9457.",
        "type",
        "title",
        "status",
        "detail",
        type=text(),
        title=text(),
        status=number(),
        detail=text("In words, with the value."),
        place=text("Where: a member's path, a query parameter, a character."),
        code=text("Of the kind of error, if it has one."),
        errors=several({"type": "object"}, "Bad events, or rows, one by one."),
        id=text("Under which the broker's log has the reason."),
    )
    return {
        "Question": {"oneOf": [_only(question), refer("Feature")]},
        "Matched": matched,
        "Why": why,
        "Explanation": {"type": "object", "description": "The predicate as it is understood."},
        "Problem": problem,
        "Status": members("", "status", status=text()),
    }
