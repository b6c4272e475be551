"""Bodies of requests become events, or say what is wrong with each."""

from __future__ import annotations

import json
from typing import Any

from contrada.broker.incoming_events import IncomingEvents, read_body

POINT = {"type": "Point", "coordinates": [1.5, 2]}


def feature(**members: Any) -> dict[str, Any]:
    """A Feature at a point, with other members perhaps."""
    return {"type": "Feature", "geometry": POINT, "properties": {}, **members}


def read(value: Any, content_type: str | None = "application/json") -> IncomingEvents:
    """The events of a value that comes as JSON."""
    return read_body(json.dumps(value).encode(), content_type, {}, None)


def test_a_feature_is_one_event() -> None:
    events = read(feature(id=7, properties={"wind": 20, "kind": "gale"}))
    assert events.indexes == [0]
    assert not events.errors
    assert events.keys == [None]
    assert json.loads(events.texts[0]) == events.features[0]
    assert events.rows.column("wind").to_pylist() == [20]
    assert events.rows.column("id").to_pylist() == [7]
