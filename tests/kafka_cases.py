"""Messages of Kafka for tests: good ones of each format, and bad ones with what is said of them."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import shapely

POINT = {"type": "Point", "coordinates": [1.5, 2.5]}
WKB = shapely.to_wkb(shapely.Point(1.5, 2.5))
MESSAGE_TYPE = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)


class Sent(NamedTuple):
    """A message as a producer sends it."""

    value: bytes | None
    headers: Mapping[str, str | bytes] = MappingProxyType({})
    key: bytes | None = None

    def header_list(self) -> list[dict[str, Any]] | None:
        """The headers as Spark has them; null where there are none."""
        pairs = [(k, v.encode() if isinstance(v, str) else v) for k, v in self.headers.items()]
        return [{"key": key, "value": value} for key, value in pairs] or None


def feature(wind: Any = 12.5, geometry: Any = POINT, **members: Any) -> dict[str, Any]:
    """A Feature with the one attribute of most tests."""
    return {"type": "Feature", "properties": {"wind": wind}, "geometry": geometry, **members}


def cloud_event(data: Any, id: str = "1", **members: Any) -> dict[str, Any]:
    """A CloudEvent in structured mode."""
    named = {"specversion": "1.0", "id": id, "source": "/test", "type": "moved"}
    return {**named, "data": data, **members}


def send(value: Any, headers: dict[str, str | bytes] | None = None) -> Sent:
    """A message whose value is JSON."""
    return Sent(json.dumps(value).encode(), headers or {})


CLOUD_HEADERS: dict[str, str | bytes] = {
    "ce_specversion": "1.0",
    "ce_id": "binary-1",
    "ce_source": "/test",
    "ce_type": "moved",
    "content-type": "application/geo+json",
}
# Each with the schema "wind double" and in the format "auto": code, message, and place inside.
BAD: list[tuple[Sent, str, str, str]] = [
    (Sent(None), "tombstone", "the message has no value (a tombstone)", ""),
    (Sent(b""), "undecodable", "not JSON at line 1, column 1: Expecting value", ""),
    (Sent(b"{oops"), "undecodable", "not JSON at line 1, column 2: Expecting property name", ""),
    (Sent(b'{"\xff"'), "undecodable", "not UTF-8 at byte 2: invalid start byte", ""),
    (Sent(b"[1]"), "undecodable", "the message is not a JSON object: [1]", ""),
    (send(feature("strong")), "bad_cell", "'strong' is not a number", ", column 'wind'"),
    (send(feature(id=[7])), "bad_cell", "[7] is not a text or a number", ", column 'id'"),
    (
        send({"type": "Feature", "properties": 7, "geometry": None}),
        "undecodable",
        "the message has properties that are not an object: 7",
        "",
    ),
    (
        send({"type": "FeatureCollection", "features": []}),
        "undecodable",
        "the message is a FeatureCollection; send each Feature as a message",
        "",
    ),
    (
        send(feature(geometry={"type": "Point", "coordinates": "x"})),
        "bad_cell",
        "cannot read the GeoJSON geometry: its \"coordinates\" are 'x', not a list",
        ", column 'geometry'",
    ),
    (Sent(b"\x01\x01\x00"), "undecodable", "cannot read the geometry: ", ", column 'geometry'"),
    (Sent(WKB, {"wind": "strong"}), "bad_cell", "'strong' is not a number", ", column 'wind'"),
    (Sent(WKB, {"wind": b"\xff"}), "undecodable", "b'\\xff' cannot be read", ", header 'wind'"),
    (send(cloud_event(None)), "undecodable", "the CloudEvent carries no data", ""),
    (send(cloud_event(cloud_event({}))), "undecodable", "the CloudEvent carries another one", ""),
    (send(cloud_event({}, id="")), "undecodable", '"id" of a CloudEvent is a text', ""),
    (
        Sent(b"hello", {**CLOUD_HEADERS, "content-type": "text/plain"}),
        "undecodable",
        "the CloudEvent carries data that is not JSON but 'text/plain'",
        "",
    ),
    (
        Sent(b"{}", {**CLOUD_HEADERS, "ce_id": b"\xff"}),
        "undecodable",
        "header 'ce_id' is not UTF-8: b'\\xff'",
        "",
    ),
]
