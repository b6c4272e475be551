"""What tests of the broker share: events, bodies, and all deliveries of a subscriber."""

import json
from collections.abc import Sequence
from typing import Any

from contrada.broker import Broker
from contrada.broker.incoming_events import IncomingEvents, read_body

BOX = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}


def feature(id_: Any, x: float, y: float, **properties: Any) -> dict[str, Any]:
    point = {"type": "Point", "coordinates": [x, y]}
    return {"type": "Feature", "id": id_, "geometry": point, "properties": properties}


def incoming(features: Sequence[Any], key: str | None = None) -> IncomingEvents:
    body = json.dumps({"type": "FeatureCollection", "features": list(features)})
    return read_body(body.encode(), "application/geo+json", {}, key)


def cloud_event(source: str, id_: str, data: Any) -> IncomingEvents:
    event = {"specversion": "1.0", "id": id_, "source": source, "type": "seen", "data": data}
    return read_body(json.dumps(event).encode(), "application/cloudevents+json", {}, None)


def read_all(
    broker: Broker, subscriber: str, after: str | None = None, limit: int = 100
) -> list[dict[str, Any]]:
    """All deliveries of a subscriber, page by page."""
    found: list[dict[str, Any]] = []
    while True:
        page = broker.read_deliveries(subscriber, after=after, limit=limit)
        found += [json.loads(delivery.json) for delivery in page.deliveries]
        if page.is_end:
            return found
        assert page.deliveries or page.gap, "an empty page that is not the end"
        after = page.next


def matched(deliveries: Sequence[dict[str, Any]]) -> list[tuple[Any, list[str]]]:
    """The id of each event delivered, with the subscriptions that it matched."""
    return [
        (
            delivery["data"]["event"].get("id"),
            [match["subscription"] for match in delivery["data"]["matches"]],
        )
        for delivery in deliveries
    ]
