"""Messages become rows, one for each: good ones with attributes, bad ones with what is wrong."""

import json
from typing import Any

import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.spark.handshake import Handshake
from contrada.spark.kafka_decoding import DecodeTask
from contrada.spark.kafka_headers import unpack_headers
from kafka_cases import (
    BAD,
    CLOUD_HEADERS,
    MESSAGE_TYPE,
    POINT,
    WKB,
    Sent,
    cloud_event,
    feature,
    send,
)

WIND = (pa.field("wind", pa.float64()),)


def decode(
    *messages: Sent,
    format: str = "auto",
    attributes: tuple[pa.Field, ...] = WIND,
    has_whole_ids: bool = False,
    **more: Any,
) -> pa.RecordBatch:
    columns = {
        "key": [m.key for m in messages],
        "value": [m.value for m in messages],
        "headers": [m.header_list() for m in messages],
        "partition": [3] * len(messages),
        "offset": list(range(41, 41 + len(messages))),
    }
    task = DecodeTask(Handshake.here(), "positions", format, attributes, has_whole_ids, **more)
    batch = pa.RecordBatch.from_pydict(columns, schema=MESSAGE_TYPE)
    (decoded,) = task(iter([batch, batch.slice(0, 0)]))
    assert decoded.num_rows == len(messages)
    decoded.validate(full=True)
    return decoded


def decode_good(*messages: Sent, **how: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = decode(*messages, **how).to_pylist()
    assert [row.pop("__fault") for row in rows] == [None] * len(rows)
    for row in rows:
        row.pop("__message")
        row["geometry"] = row["geometry"] and shapely.from_wkb(row["geometry"]).wkt
    return rows


ROW = {"id": "positions/3/41", "wind": 12.5, "geometry": "POINT (1.5 2.5)"}


@pytest.mark.parametrize("format", ["auto", "geojson"])
def test_a_feature_is_its_properties_and_geometry(format: str) -> None:
    assert decode_good(send(feature()), format=format) == [ROW]


@pytest.mark.parametrize("format", ["auto", "geojson"])
def test_a_bare_geometry_or_an_object_of_attributes_will_do(format: str) -> None:
    bare, plain = decode_good(send(POINT), send({"wind": 12.5, "geometry": POINT}), format=format)
    assert bare == {**ROW, "wind": None}
    assert plain == {**ROW, "id": "positions/3/42"}


@pytest.mark.parametrize("format", ["auto", "cloudevents"])
def test_a_cloud_event_carries_a_feature(format: str) -> None:
    structured = send(cloud_event(feature()))
    binary = Sent(json.dumps(feature()).encode(), CLOUD_HEADERS)
    rows = decode_good(structured, binary, format=format)
    assert rows == [{**ROW, "id": "1"}, {**ROW, "id": "binary-1"}]


def test_an_attribute_named_specversion_does_not_make_a_message_a_cloud_event() -> None:
    plain = {"specversion": "3.1", "wind": 12.5, "geometry": POINT}
    assert decode_good(send(plain), format="auto") == [{**ROW, "id": "positions/3/41"}]


@pytest.mark.parametrize("format", ["auto", "wkb"])
def test_wkb_has_its_attributes_in_headers(format: str) -> None:
    messages = [
        Sent(WKB, {"wind": "12.5"}),
        Sent(WKB, {"id": "van", "wind": "12.5", "other": b"\xff"}),
        Sent(WKB),
    ]
    rows = decode_good(*messages, format=format)
    expected = {**ROW, "id": "positions/3/43", "wind": None}
    assert rows == [ROW, {**ROW, "id": "van"}, expected]


def test_of_two_headers_of_one_name_the_last_counts() -> None:
    columns = {
        **{name: [None] for name in ("key",)},
        "value": [WKB],
        "headers": [[{"key": "wind", "value": b"1"}, {"key": "wind", "value": b"2"}]],
        "partition": [3],
        "offset": [41],
    }
    batch = pa.RecordBatch.from_pydict(columns, schema=MESSAGE_TYPE)
    task = DecodeTask(Handshake.here(), "positions", "wkb", WIND, False)
    assert task.decode(batch).column("wind").to_pylist() == [2.0]


def test_a_header_is_read_by_the_type_of_its_attribute() -> None:
    attributes = (
        pa.field("text", pa.string()),
        pa.field("whole", pa.int64()),
        pa.field("truth", pa.bool_()),
        pa.field("moment", pa.timestamp("us", "UTC")),
        pa.field("list", pa.list_(pa.int64())),
    )
    texts = {
        "text": "12",
        "whole": "12",
        "truth": "true",
        "moment": "2026-11-18T09:00:00Z",
        "list": "[1, 2]",
    }
    (row,) = decode_good(Sent(WKB, {**texts}), attributes=attributes)
    assert (row["text"], row["whole"], row["truth"], row["list"]) == ("12", 12, True, [1, 2])
    assert row["moment"].isoformat() == "2026-11-18T09:00:00+00:00"


@pytest.mark.parametrize(
    ("message", "id"),
    [
        (send(feature(id="own")), "own"),
        (send(feature(id=7)), "7"),
        (send(feature(id=7.5)), "7.5"),
        (send({**feature(id="own"), "properties": {"id": "property"}}), "own"),
        (send({**feature(), "properties": {"id": "property"}}), "property"),
        (send({"id": "member"}), "member"),
        (send(cloud_event(feature(id="own"))), "own"),
        (send(cloud_event({**feature(), "properties": {"id": "property"}})), "property"),
        (send(cloud_event(feature())), "1"),
        (send(feature()), "positions/3/41"),
    ],
)
def test_an_id_is_the_features_own_or_a_property_or_the_envelopes_or_the_place(
    message: Sent, id: str
) -> None:
    assert decode(message).column("id").to_pylist() == [id]


def test_ids_are_integers_if_they_are_declared_so_and_then_none_may_be_missing() -> None:
    messages = [send(feature(id=7)), send(feature(id="7")), send(feature()), Sent(WKB, {"id": "8"})]
    rows = decode(*messages, has_whole_ids=True).to_pylist()
    assert [row["id"] for row in rows] == [7, None, None, 8]
    assert [row["__fault"] and row["__fault"]["message"] for row in rows] == [
        None,
        "'7' is not an integer",
        "it is missing",
        None,
    ]


@pytest.mark.parametrize(("message", "code", "said", "place"), BAD)
def test_a_bad_message_is_a_row_that_says_what_is_wrong_and_has_it_whole(
    message: Sent, code: str, said: str, place: str
) -> None:
    for row in (decode(message).to_pylist()[0], decode(send(feature()), message).to_pylist()[1]):
        fault = row["__fault"]
        offset = row["__message"]["offset"]
        assert fault["code"] == code
        assert fault["message"].startswith(said)
        assert fault["place"] == f"positions/3/{offset}{place}"
        assert row["__message"]["value"] == message.value
        assert unpack_headers(row["__message"]["headers"]) == (message.header_list() or [])


@pytest.mark.parametrize("format", ["geojson", "cloudevents", "wkb"])
def test_what_is_of_another_format_than_the_stated_one_is_bad_or_plain(format: str) -> None:
    messages = [send(feature()), send(cloud_event(feature())), Sent(WKB)]
    faults = decode(*messages, format=format).column("__fault").to_pylist()
    assert [fault and fault["code"] for fault in faults] == {
        "geojson": [None, None, "undecodable"],  # an envelope is an object of attributes, too
        "cloudevents": ["undecodable", None, "undecodable"],
        "wkb": ["undecodable", "undecodable", None],
    }[format]


def test_messages_are_kept_only_where_they_may_be_needed() -> None:
    bow_tie = [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]
    messages = [
        send(feature()),
        send(feature(geometry={"type": "Polygon", "coordinates": bow_tie})),
        send(feature(geometry=None)),
        send(feature("strong")),
        Sent(WKB),
        Sent(shapely.to_wkb(shapely.Point(1, float("inf")))),
    ]
    batch = decode(*messages)
    kept = batch.column("__message").is_valid().to_pylist()
    assert kept == [False, True, False, True, False, True]
    assert decode(send(feature())).column("__message").null_count == 1


def test_place_and_name_come_along_if_asked_for() -> None:
    messages = [send(cloud_event(feature(id="own"))), send(feature()), send(cloud_event(None))]
    batch = decode(*messages, place="place", names_events=True)
    assert batch.schema.names == [
        "id",
        "wind",
        "geometry",
        "place",
        "__fault",
        "__message",
        "__name",
    ]
    assert batch.column("place").to_pylist() == [f"positions/3/{n}" for n in (41, 42, 43)]
    assert batch.column("__name").to_pylist() == ["5:/test1", "/positions/3/42", "/positions/3/43"]


def test_names_of_different_events_differ() -> None:
    sent = [cloud_event({}, id="b", source="a"), cloud_event({}, id="", source="ab")]
    sent += [cloud_event({}, id="ab", source="/"), cloud_event({}, id="b", source="/a")]
    names = decode(*map(send, sent), names_events=True).column("__name").to_pylist()
    assert len(set(names)) == len(names)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(
        st.sampled_from(
            ["type", "geometry", "properties", "id", "wind", "specversion", "data", "source", "x"]
        ),
        inside | st.sampled_from(["Feature", "Point", "1.0"]),
    ),
    max_leaves=12,
)  # fmt: skip
VALUES = st.none() | st.binary() | ANY_JSON.map(lambda value: json.dumps(value).encode())
HEADERS = st.dictionaries(
    st.sampled_from(["wind", "id", "content-type", *CLOUD_HEADERS]),
    st.binary() | st.sampled_from([*CLOUD_HEADERS.values(), "application/cloudevents+json"]),
)


@given(st.lists(st.builds(Sent, VALUES, HEADERS), min_size=1, max_size=5), st.booleans())
def test_whatever_comes_rows_out_are_messages_in(messages: list[Sent], has_whole_ids: bool) -> None:
    for stated in ("auto", "geojson", "cloudevents", "wkb"):
        batch = decode(*messages, format=stated, has_whole_ids=has_whole_ids, names_events=True)
        for message, row in zip(messages, batch.to_pylist(), strict=True):
            if row["__fault"] is not None:
                assert row["__message"]["value"] == message.value
            elif row["geometry"] is not None:
                shapely.from_wkb(row["geometry"])
