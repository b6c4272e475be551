"""Bodies of requests become events, or say what is wrong with each."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import shapely

from contrada.broker.incoming_events import IncomingEvents, read_body
from contrada.errors import InvalidInput
from contrada.limits import (
    COLUMNS_MAX,
    EVENT_BYTES_MAX,
    EVENT_VERTICES_MAX,
    JSON_DEPTH_MAX,
    MESSAGE_BYTES_MAX,
    REQUEST_CELLS_MAX,
    REQUEST_EVENTS_MAX,
)

POINT = {"type": "Point", "coordinates": [1.5, 2]}
BOW_TIE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}
BATCH = "application/cloudevents-batch+json"
LINES = "application/x-ndjson"


def feature(**members: Any) -> dict[str, Any]:
    """A Feature at a point, with other members perhaps."""
    return {"type": "Feature", "geometry": POINT, "properties": {}, **members}


def cloud(data: Any, id: str = "c1", **members: Any) -> dict[str, Any]:
    """A CloudEvent."""
    return {"specversion": "1.0", "id": id, "source": "/s", "type": "t", "data": data, **members}


def collection(*features: Any) -> dict[str, Any]:
    """A FeatureCollection."""
    return {"type": "FeatureCollection", "features": list(features)}


def read(value: Any, content_type: str | None = "application/json") -> IncomingEvents:
    """The events of a value that comes as JSON."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_body(body, content_type, {}, None)


def detail(value: Any) -> str:
    """What is wrong with a single event."""
    events = read(value)
    assert not events.texts
    (error,) = events.errors
    assert error.index == 0
    return error.detail


def compact(value: Any) -> bytes:
    """A value as JSON without white space."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def test_a_feature_is_one_event() -> None:
    events = read(feature(id=7, properties={"wind": 20, "kind": "gale"}))
    assert events.indexes == [0]
    assert not events.errors
    assert events.keys == [None]
    assert events.texts == [compact(events.features[0])]
    assert events.rows.column("wind").to_pylist() == [20]
    assert events.rows.column("id").to_pylist() == [7]
    assert shapely.from_wkb(events.rows.column("geometry").to_pylist()) == [shapely.Point(1.5, 2)]


@pytest.mark.parametrize("count", [0, 1, 3, 20])
@pytest.mark.parametrize("indent", [None, 1])
def test_features_come_as_a_collection_or_on_lines(count: int, indent: int | None) -> None:
    features = [feature(id=i, properties={"name": f"é \\ {i}", "n": i / 3}) for i in range(count)]
    texts = [compact(each) for each in features]
    whole = json.dumps({"name": "x", **collection(*features), "bbox": [1, 2]}, indent=indent)
    lines = "\n\n".join(json.dumps(each) for each in features) + "\r\n"
    records = "".join(f"\x1e{json.dumps(each, indent=indent)}\n" for each in features)
    forms = [(whole, None), (json.dumps(features), "application/json; charset=utf-8")]
    if count:
        forms += [(lines, LINES), (records, "application/geo+json-seq")]
    for body, content_type in forms:
        events = read(body.encode(), content_type)
        assert not events.errors
        assert events.features == features
        assert [json.loads(text) for text in events.texts] == features
        assert sum(map(len, events.texts)) <= sum(map(len, texts)) + 10 * count  # é as an escape
        assert events.indexes == list(range(count))
        assert events.rows.num_rows == count


@pytest.mark.parametrize("form", ["collection", "lines"])
def test_bad_events_are_told_by_their_index_and_the_others_are_kept(form: str) -> None:
    features = [feature(id=i) for i in range(12)]
    features[3]["geometry"] = BOW_TIE
    features[5] = {"wind": 3}
    features[11] = feature(properties=[1])
    body = (
        compact(collection(*features))
        if form == "collection"
        else b"\n".join(map(compact, features))
    )
    events = read(body, LINES if form == "lines" else None)
    assert [error.index for error in events.errors] == [3, 5, 11]
    assert events.errors[0].detail.startswith("geometry: invalid Polygon: self-intersection at")
    assert events.errors[1].detail.startswith("it is not a Feature but {'wind': 3}; expected a")
    assert events.errors[2].detail == "properties must be an object, not [1]"
    assert events.indexes == [0, 1, 2, 4, 6, 7, 8, 9, 10]
    assert events.rows.column("id").to_pylist() == events.indexes
    assert len(events.texts) == len(events.keys) == len(events.features) == 9


def test_a_line_that_is_not_json_is_one_bad_event() -> None:
    good = compact(feature())
    lines = [good, b'{"type":', b"}{", b'{"a":1},{"b":2}', b"\xff", b"[" * 100_000, good] + [
        good
    ] * 5
    events = read(b"\n".join(lines), LINES)
    assert [error.index for error in events.errors] == [1, 2, 3, 4, 5]
    assert events.errors[0].detail.startswith("not JSON at line 1, column 9")
    assert "not UTF-8 at byte 0" in events.errors[3].detail
    assert events.texts == [good] * 7


@pytest.mark.parametrize(
    ("body", "content_type", "words"),
    [
        (b"", None, "the body: it is empty; expected a GeoJSON Feature"),
        (b" \n", LINES, "the body: it is empty"),
        (b'{"type":', None, "the body: not JSON at line 1, column 9"),
        (b'{"a": "\xff"}', None, "the body: not UTF-8 at byte 7"),
        (b"[" * 100_000, None, "the body: a value is nested deeper than"),
        (b'{"a":' + b"1" * 5000 + b"}", None, "the body: a number has more than 4,300 digits"),
        (b"{}", "text/plain", "events do not come in the content type 'text/plain'; expected a"),
        (b"{}", BATCH, "a batch of CloudEvents is an array, not {}"),
        (
            compact({"type": "FeatureCollection", "features": 1}),
            None,
            '"features" must be an array',
        ),
        (b" " * (MESSAGE_BYTES_MAX + 1), None, "MESSAGE_BYTES_MAX"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_as_a_whole(
    body: bytes, content_type: str | None, words: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(body, content_type)
    assert words in caught.value.message


def test_cloud_events_come_structured_and_in_batches() -> None:
    plain = feature(id="f", properties={"wind": 1})
    events = read(cloud(plain), "application/cloudevents+json")
    assert events.texts == [compact(plain)]
    assert len(events.keys[0] or b"") == 16
    assert read(cloud(plain)).keys == events.keys
    assert read(cloud(plain, id="c2")).keys != events.keys
    assert read(cloud(plain, source="/")).keys != events.keys
    for count in (2, 30):
        batch = read([cloud(plain, id=f"c{i}") for i in range(count)], BATCH)
        assert batch.texts == [compact(plain)] * count
        assert batch.keys[1] == events.keys[0]
        assert len(set(batch.keys)) == count


def test_the_binary_mode_has_its_attributes_in_headers() -> None:
    headers = {"CE-SpecVersion": "1.0", "ce-id": '"c%201"', "ce-source": "/s", "ce-type": "t"}
    events = read_body(compact(feature()), "application/json", headers, "key")
    assert events.keys == read(cloud(feature(), id="c 1")).keys
    assert events.features[0]["id"] == "c 1"
    (error,) = read_body(b"x", "text/plain", headers, None).errors
    assert "data that is not JSON but 'text/plain'" in error.detail
    with pytest.raises(InvalidInput, match='"type" of a CloudEvent'):
        read_body(b"{}", None, {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s"}, None)
    with pytest.raises(InvalidInput, match="header ce-id: it is not UTF-8"):
        read_body(b"{}", None, {**headers, "ce-id": "%ff"}, None)


@pytest.mark.parametrize("count", [1, 10])
def test_the_id_of_a_cloud_event_names_a_feature_without_one_and_is_no_attribute(
    count: int,
) -> None:
    unnamed, null = feature(), feature(id=None)
    named, by_property = feature(id=5), feature(properties={"id": "p"})
    for data, own, attribute in (
        (unnamed, "c1", None),
        (null, "c1", None),
        (named, 5, 5),
        (by_property, None, "p"),
    ):
        events = read([cloud(data)] * count, BATCH)
        assert [each.get("id") for each in events.features] == [own] * count
        assert [json.loads(text) for text in events.texts] == events.features
        rows = events.rows
        ids = rows.column("id").to_pylist() if "id" in rows.schema.names else [None] * count
        assert ids == [attribute] * count


def test_attributes_that_a_cloud_event_carries_become_a_feature() -> None:
    data = {"wind": 3, "geometry": "SRID=4326;POINT Z (1 2 3)", "type": "gust"}
    events = read(cloud(data))
    assert events.features == [
        {
            "id": "c1",
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": (1.0, 2.0)},
            "properties": {"wind": 3, "type": "gust"},
        }
    ]
    assert b'"coordinates":[1.0,2.0]' in events.texts[0]
    wkb = shapely.to_wkb(shapely.Point(1, 2), hex=True)
    assert read(feature(geometry=wkb)).rows.column("geometry").to_pylist() == [bytes.fromhex(wkb)]
    encoded = base64.b64encode(compact(feature(id=3))).decode()
    of_bytes = {**cloud(None), "data_base64": encoded}
    assert read(of_bytes).texts == [compact(feature(id=3))]
    assert (
        read([of_bytes, cloud(feature(id=4))] * 5, BATCH).rows.column("id").to_pylist()
        == [
            3,
            4,
        ]
        * 5
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "the CloudEvent carries no data"),
        (5, "the CloudEvent must carry a Feature or attributes, not 5"),
        (cloud({}), "the CloudEvent carries another one"),
        (collection(), "must carry a Feature or attributes, not a FeatureCollection"),
        ({"geometry": "POINT(1"}, "geometry: cannot read the geometry"),
        ({"geometry": 5}, "geometry: it is not a geometry of GeoJSON: 5"),
    ],
)
def test_a_cloud_event_that_carries_no_event_is_bad(data: Any, words: str) -> None:
    assert words in detail(cloud(data))


def test_a_batch_has_nothing_but_cloud_events() -> None:
    (error,) = read([feature()], BATCH).errors
    assert '"specversion" is None' in error.detail


def test_a_key_of_the_request_makes_repeats_by_index() -> None:
    features = [feature(id=i) for i in range(10)]
    first = read_body(compact(collection(*features)), None, {}, "k")
    again = read_body(compact(features), None, {}, "k")
    other = read_body(compact(features), None, {}, "l")
    assert first.keys == again.keys
    assert len({*first.keys, *other.keys}) == 20
    features[0] = {}
    assert read_body(compact(features), None, {}, "k").keys == first.keys[1:]


@pytest.mark.parametrize("others", [0, 20])
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b'{"type":"Feature","geometry":null,"properties":{"a":NaN}}', "a number is not finite"),
        (b'{"type":"Feature","geometry":null,"properties":{},"x":[1e999]}', "is not finite"),
        (b'{"type":"Feature","geometry":null,"properties":{"a":"\\uD83d"}}', "surrogate pair"),
        (b'{"type":"Feature","geometry":null,"properties":{"\\ud800":1}}', "surrogate pair"),
        (
            b'{"type":"Feature","geometry":{"type":"Point","coordinates":[1,-1e999]}}',
            "a number is not finite",
        ),
    ],
)
def test_what_not_everybody_could_read_is_refused(bad: bytes, words: str, others: int) -> None:
    events = read(b"[%b]" % b",".join([compact(feature())] * others + [bad]))
    (error,) = events.errors
    assert error.index == others
    assert words in error.detail
    assert len(events.texts) == others


def test_surrogate_pairs_and_nulls_are_text_like_any() -> None:
    body = b'{"type":"Feature","geometry":null,"properties":{"a":"\\ud83d\\ude00\\u0000"}}'
    for events in (read(body), read(b"[%b]" % b",".join([body] * 9))):
        assert not events.errors
        assert {json.loads(text)["properties"]["a"] for text in events.texts} == {"\U0001f600\0"}


def test_a_name_that_comes_twice_is_delivered_once_as_it_was_read() -> None:
    body = (
        b'{"type":"Feature","id":1,"geometry":null,"properties":{"a":1,"a":{"b":1,"b":2}},"id":2}'
    )
    for events in (read(body), read(b"[%b]" % b",".join([body] * 9))):
        text = b'{"type":"Feature","id":2,"geometry":null,"properties":{"a":{"b":2}}}'
        assert set(events.texts) == {text}
    fake = compact(collection(*[feature(id=0)] * 9))
    last = compact(collection(*[feature(id=1)] * 9))
    twice = fake[:-1] + b"," + last[last.index(b'"features"') :]
    assert set(read(twice).texts) == {compact(feature(id=1))}
    hidden = b'{"specversion":"1.0","id":"c","source":"s","type":"t","data":%b,"d\\u0061ta":%b}'
    one = hidden % (compact(feature(id=0)), compact(feature(id=1)))
    assert set(read(b"[%b]" % b",".join([one] * 9)).texts) == {compact(feature(id=1))}


def nested(levels: int) -> list[Any]:
    """A list in a list in a list."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("others", [0, 20])
def test_limits_of_an_event(others: int) -> None:
    rest = [feature()] * others
    long = feature(properties={"a": "x" * EVENT_BYTES_MAX})
    deep = feature(properties={"a": nested(JSON_DEPTH_MAX - 1)})
    fits = feature(properties={"a": nested(JSON_DEPTH_MAX - 2)})
    wide = feature(properties={str(i): i for i in range(COLUMNS_MAX + 1)})
    vertices = ",".join(["0 0"] * (EVENT_VERTICES_MAX + 1))
    area = feature(properties={"area": f"LINESTRING({vertices})"})
    shape = feature(geometry=f"MULTIPOINT({vertices})")
    events = read(collection(*rest, long, deep, fits, wide, area, shape))
    assert [error.index - others for error in events.errors] == [0, 1, 3, 4, 5]
    limits = [error.detail.rpartition("(")[2].rstrip(")") for error in events.errors]
    names = "EVENT_BYTES_MAX JSON_DEPTH_MAX COLUMNS_MAX EVENT_VERTICES_MAX"
    assert limits == [*names.split(), "EVENT_BYTES_MAX"]
    assert len(events.texts) == others + 1


def test_a_geometry_has_levels_of_its_own() -> None:
    geometry: dict[str, Any] = POINT
    for _ in range(80):
        geometry = {"type": "GeometryCollection", "geometries": [geometry]}
    assert not read(feature(geometry=geometry)).errors
    for _ in range(30):
        geometry = {"type": "GeometryCollection", "geometries": [geometry]}
    assert "GEOMETRY_DEPTH_MAX" in detail(feature(geometry=geometry))
    odd = feature(geometry={"type": "Point", "coordinates": nested(400)})
    assert "nested" in detail(odd)


def test_limits_of_a_request() -> None:
    with pytest.raises(InvalidInput, match="REQUEST_EVENTS_MAX"):
        read(b"[%b]" % b",".join([b"1"] * (REQUEST_EVENTS_MAX + 1)))
    with pytest.raises(InvalidInput, match="REQUEST_EVENTS_MAX"):
        read(b"1\n" * (REQUEST_EVENTS_MAX + 1), LINES)
    names = REQUEST_CELLS_MAX // 5_000 + 1
    many = [feature(properties={f"n{i % names}": i}) for i in range(5_000)]
    with pytest.raises(InvalidInput, match="REQUEST_CELLS_MAX"):
        read(collection(*many))


def test_null_and_empty_geometries_are_fine() -> None:
    empty = {"type": "Polygon", "coordinates": []}
    nothing = {"type": "GeometryCollection", "geometries": []}
    missing = {"type": "Feature", "properties": {}}
    events = read(
        collection(
            feature(geometry=None), missing, feature(geometry=empty), feature(geometry=nothing)
        )
    )
    assert not events.errors
    shapes = [wkb and shapely.from_wkb(wkb) for wkb in events.rows.column("geometry").to_pylist()]
    assert shapes[:2] == [None, None]
    assert [shape.is_empty for shape in shapes[2:]] == [True, True]


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        ({"type": "Point", "coordinates": ["1", 2]}, "geometry: coordinates[0]: a number is"),
        ({"type": "Point", "coordinates": [1]}, "geometry: coordinates: a position has two"),
        ({"type": "Circle", "coordinates": [1, 2]}, "geometry: it is not a geometry of GeoJSON"),
        ({}, "geometry: it is not a geometry of GeoJSON: {}"),
        ([1, 2], "geometry: it is not a geometry of GeoJSON: [1, 2]"),
        ("", "geometry: it is neither GeoJSON nor WKT nor hex WKB: ''"),
        ("POINT(nan 1)", "geometry: it has a coordinate that is not finite"),
        (BOW_TIE, "geometry: invalid Polygon: self-intersection at (1, 1)"),
    ],
)
def test_a_bad_geometry_is_told_whoever_reads_it(geometry: Any, words: str) -> None:
    assert detail(feature(geometry=geometry)).startswith(words)
    events = read(collection(*[feature()] * 20, feature(geometry=geometry)))
    assert [error.index for error in events.errors] == [20]
    assert events.errors[0].detail.startswith(words)


def test_numbers_that_overflow_doubles_are_no_coordinates() -> None:
    assert "geometry" in detail(feature(geometry={"type": "Point", "coordinates": [10**400, 1]}))
