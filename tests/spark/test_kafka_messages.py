"""An answer goes out as CloudEvents, one for each row; bad events go out as they came."""

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import shapely

import contrada.spark
from contrada.errors import InvalidInput
from contrada.files.cloudevents import read_structured
from contrada.spark.frames import FAULT_TYPE
from contrada.spark.handshake import Handshake
from contrada.spark.kafka_decoding import MESSAGE_TYPE
from contrada.spark.kafka_headers import pack_headers, unpack_headers
from contrada.spark.kafka_messages import EncodeTask, as_messages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WKB = shapely.to_wkb(shapely.Point(1, 2))
ERROR = {"code": "bad_cell", "message": "'x' is not a number", "place": "positions/3/41"}


def encode(columns: dict[str, pa.Array], *shapes: str) -> list[dict[str, Any]]:
    task = EncodeTask(Handshake.here(), tuple(columns), shapes, "/test")
    numbered = {f"column{i}": column for i, column in enumerate(columns.values())}
    batch = pa.RecordBatch.from_pydict(numbered)
    rows: list[dict[str, Any]] = pa.Table.from_batches([*task(iter([batch]))]).to_pylist()
    assert len(rows) == batch.num_rows
    return rows


def test_each_row_is_a_cloud_event_keyed_by_its_event() -> None:
    columns = {
        "event": pa.array(["van/1", 'q"|%']),
        "subscription": pa.array(["Zürich", "fence"]),
        "subscriber": pa.nulls(2, pa.string()),
        "version": pa.array(["v1", None]),
        "geometry": pa.array([WKB, None]),
        "a.b": pa.array([1.5, float("inf")]),
    }
    rows = encode(columns, "geometry")
    assert [row["key"] for row in rows] == [b"van/1", b'q"|%']
    assert [row["headers"] for row in rows] == [None, None]
    first, second = (read_structured(row["value"]) for row in rows)
    assert (first.id, first.source, first.type) == ("van/1|Zürich", "/test", "contrada.match")
    assert first.others == {"datacontenttype": "application/json"}
    assert first.data == {
        "event": "van/1",
        "subscription": "Zürich",
        "subscriber": None,
        "version": "v1",
        "geometry": {"type": "Point", "coordinates": [1.0, 2.0]},
        "a.b": 1.5,
    }
    assert second.id == 'q"%7C%25|fence'
    assert second.data["geometry"] is None
    assert second.data["a.b"] is None


def test_a_transition_is_keyed_by_its_object_and_named_by_all_that_names_the_row() -> None:
    columns = {
        "object": pa.array(["van|7", "van|7", "van|7"]),
        "subscription": pa.array(["depot", None, "depot"]),
        "subscriber": pa.array(["gate 1", None, None]),
        "transition": pa.array(["enter", "late", "exit"]),
        "time": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
        "event": pa.array([4, 5, None]),
        "version": pa.array(["3-0a", "3-0a", "4-0b"]),
        "cause": pa.array(["position", "position", "version"]),
    }
    rows = encode(columns)
    assert [row["key"] for row in rows] == [b"van|7"] * 3
    events = [read_structured(row["value"]) for row in rows]
    assert {event.type for event in events} == {"contrada.transition"}
    assert events[0].id == "van%7C7|depot|enter|1970-01-01T00:00:00.000001Z|4|3-0a"
    assert len({event.id for event in events}) == 3
    assert events[0].data == {name: column[0].as_py() for name, column in columns.items()} | {
        "time": "1970-01-01T00:00:00.000001Z"
    }
    assert events[2].data["event"] is None


def test_the_id_leaves_out_the_version_so_that_doubles_have_the_same() -> None:
    columns = {"event": pa.array([7, 7]), "subscription": pa.array([3, 3])}
    versions = {"version": pa.array(["v1", "v2"])}
    ids = {read_structured(row["value"]).id for row in encode({**columns, **versions})}
    assert ids == {"7|3"}


def test_no_two_pairs_have_one_id() -> None:
    events, subscriptions = ["a", "a|b", "a%7Cb", "a"], ["b|c", "c", "c", "c"]
    rows = encode({"event": pa.array(events), "subscription": pa.array(subscriptions)})
    assert len({read_structured(row["value"]).id for row in rows}) == len(rows)


def test_headers_that_were_packed_are_unpacked_as_they_were() -> None:
    headers: list[dict[str, Any]] = [{"key": "é", "value": b"\0\xff"}, {"key": "é", "value": None}]
    assert unpack_headers(pack_headers(headers)) == headers
    assert unpack_headers(pack_headers([{"key": "", "value": b""}])) == [{"key": "", "value": b""}]
    assert pack_headers([]) is pack_headers(None) is None
    assert unpack_headers(None) == []


def test_counts_are_events_of_their_own_type() -> None:
    (row,) = encode({"event": pa.array(["a"]), "n": pa.array([3])})
    event = read_structured(row["value"])
    assert (event.id, event.type, event.data) == ("a", "contrada.count", {"event": "a", "n": 3})


def quarantined(message: dict[str, Any] | None) -> list[dict[str, Any]]:
    columns = {
        "event": pa.array(["good", "bad"]),
        "subscription": pa.array(["fence", None], pa.string()),
        "error": pa.array([None, ERROR], FAULT_TYPE),
        "__message": pa.array([None, message], MESSAGE_TYPE),
    }
    return encode(columns)


def test_a_bad_event_goes_out_as_it_came_with_its_error_in_headers() -> None:
    original = {
        "key": b"\xff",
        "value": b"{oops",
        "headers": pack_headers([{"key": "trace", "value": b"1"}]),
        "topic": "positions",
        "partition": 3,
        "offset": 41,
    }
    good, bad = quarantined(original)
    assert read_structured(good["value"]).data == {"event": "good", "subscription": "fence"}
    assert (bad["key"], bad["value"]) == (b"\xff", b"{oops")
    assert {header["key"]: header["value"] for header in bad["headers"]} == {
        "trace": b"1",
        "contrada-error-code": b"bad_cell",
        "contrada-error-message": b"'x' is not a number",
        "contrada-error-place": b"positions/3/41",
        "contrada-source": b"positions/3/41",
    }
    _, tombstone = quarantined({**original, "value": None, "headers": None})
    assert tombstone["value"] is None
    assert len(tombstone["headers"]) == 4


def test_a_bad_event_that_came_in_no_message_is_a_cloud_event() -> None:
    _, bad = quarantined(None)
    event = read_structured(bad["value"])
    assert bad["key"] == b"bad"
    assert (event.id, event.type) == ("bad|error", "contrada.error")
    assert event.data == {"event": "bad", "subscription": None, "error": ERROR}
    assert bad["headers"][0]["key"] == "content-type"
    assert bad["headers"][1] == {"key": "contrada-error-code", "value": b"bad_cell"}


def test_bad_events_without_an_id_are_told_apart_by_their_place() -> None:
    places = ["a.parquet, from row 0", "b.parquet, from row 0"]
    columns = {
        "event": pa.nulls(2, pa.int64()),
        "error": pa.array([ERROR | {"place": place} for place in places], FAULT_TYPE),
    }
    rows = encode(columns)
    assert [row["key"] for row in rows] == [None, None]
    ids = [read_structured(row["value"]).id for row in rows]
    assert ids == [f"{place}|error" for place in places]


def test_the_place_of_a_message_names_its_event_and_is_not_in_the_data() -> None:
    columns = {
        "event": pa.array(["van", "van"]),
        "subscription": pa.array(["fence", "fence"]),
        "__place": pa.array(["positions/0/7", "positions/0/8"]),
    }
    rows = encode(columns)
    assert [row["key"] for row in rows] == [b"van", b"van"]
    events = [read_structured(row["value"]) for row in rows]
    assert [event.id for event in events] == ["positions/0/7|fence", "positions/0/8|fence"]
    assert events[0].data == {"event": "van", "subscription": "fence"}


@pytest.mark.spark
def test_an_answer_becomes_messages_for_two_topics(spark: "SparkSession") -> None:
    error = "struct<code: string, message: string, place: string>"
    schema = f"event string, subscription string, `a.b` int, error {error}"
    answer = spark.createDataFrame([("a", "s", 1, None), ("b", None, 2, ("c", "m", "p"))], schema)
    rows = as_messages(answer, "matches", "bad").collect()
    assert [(row["topic"], bytes(row["key"])) for row in rows] == [("matches", b"a"), ("bad", b"b")]
    assert [header["key"] for header in rows[0]["headers"]] == ["content-type"]
    assert bytes(rows[0]["headers"][0]["value"]) == b"application/cloudevents+json; charset=UTF-8"
    event = json.loads(rows[0]["value"])
    assert event["source"] == "/contrada/matches"
    assert event["data"] == {"event": "a", "subscription": "s", "a.b": 1}
    (named,) = as_messages(answer.limit(1), "matches", "bad", source="/mine").collect()
    assert json.loads(named["value"])["source"] == "/mine"


@pytest.mark.spark
@pytest.mark.parametrize("crs", ["EPSG:4326", None])
def test_a_column_that_states_a_system_is_a_geometry_though_it_be_unknown(
    spark: "SparkSession", crs: str | None
) -> None:
    events = spark.createDataFrame([("van", WKB)], "id string, area binary")
    events = events.select("id", events["area"].alias("area", metadata={"crs": crs}))
    anything = spark.createDataFrame([("all", "id IS NOT NULL")], "id string, filter string")
    answer = contrada.spark.match(events, anything, keep=["area"])
    (row,) = as_messages(answer, "matches").collect()
    area = read_structured(bytes(row["value"])).data["area"]
    assert area == {"type": "Point", "coordinates": [1.0, 2.0]}


@pytest.mark.spark
def test_what_cannot_be_messages_is_refused(spark: "SparkSession") -> None:
    answer = spark.createDataFrame([("a", None)], "event string, error string")
    with pytest.raises(InvalidInput, match="has bad events, in its column 'error': name a topic"):
        as_messages(answer, "matches")
    with pytest.raises(InvalidInput, match="'a/b' is not the name of a topic"):
        as_messages(answer, "a/b", "bad")
    with pytest.raises(InvalidInput, match="'a b' is not the name of a topic"):
        as_messages(answer, "matches", "a b")
    with pytest.raises(InvalidInput, match="has a column 'event'; there are id"):
        as_messages(spark.range(1), "matches")
