"""Events of any kind become the JSON of Features, which say the same."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada.client.batching import cut_batches
from contrada.client.outgoing import read_outgoing
from contrada.client.outgoing_events import OutgoingEvent
from contrada.errors import InvalidInput

POINT = {"type": "Point", "coordinates": [5, 1]}


def written(events: Any) -> list[dict[str, Any]]:
    read = list(read_outgoing(events))
    assert all((event.fault is None) == (event.text != "null") for event in read)
    return [json.loads(event.text) for event in read if event.fault is None]


def faults(events: Any) -> dict[int, str]:
    read = enumerate(read_outgoing(events))
    return {index: str(event.fault) for index, event in read if event.fault is not None}


def feature(geometry: Any = None, id: Any = None, **properties: Any) -> dict[str, Any]:
    own = {} if id is None else {"id": id}
    return {"type": "Feature", **own, "geometry": geometry, "properties": properties}


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


CURVE = "CIRCULARSTRING(0 0, 1 1, 2 0)"


class Place:
    """A geometry of another library."""

    def __init__(self, interface: Mapping[str, Any]) -> None:
        self.__geo_interface__ = interface


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"wind": 20}, feature(wind=20)),
        ({"id": "a", "wind": 20}, feature(id="a", wind=20)),
        ({"id": 7, "geometry": "POINT(5 1)"}, feature(POINT, 7)),
        ({"id": 1.5}, feature() | {"properties": {"id": 1.5}}),
        ({"geometry": shapely.Point(5, 1)}, feature(POINT)),
        ({"geometry": shapely.Point(5, 1).wkb}, feature(POINT)),
        ({"geometry": POINT, "type": "storm"}, feature(POINT, type="storm")),
        ({"geometry": Place(POINT)}, feature(POINT)),
        ({"geometry": "", "area": shapely.Point(5, 1)}, feature(area=POINT)),
        ({"area": shapely.Point(5, 1).wkb}, feature(area=POINT)),
        (feature(POINT, wind=20), feature(POINT, wind=20)),
        (feature(shapely.Point(5, 1), wind=20), feature(POINT, wind=20)),
        (POINT, feature(POINT)),
        (shapely.Point(5, 1), feature(POINT)),
        (Place(POINT), feature(POINT)),
        (Place(feature(POINT, "a", wind=20)), feature(POINT, "a", wind=20)),
        ({"at": datetime(2026, 3, 2, 8, tzinfo=UTC)}, feature(at="2026-03-02T08:00:00+00:00")),
        ({"on": date(2026, 3, 2)}, feature(on="2026-03-02")),
        ({"at": np.datetime64("2026-03-02T08:00")}, feature(at="2026-03-02T08:00")),
        ({"n": np.int64(7), "x": np.float32(0.5), "ok": np.True_}, feature(n=7, x=0.5, ok=True)),
        ({"list": np.array([1, 2])}, feature(list=[1, 2])),
        ({"n": Decimal("2.50"), "m": Decimal(10**20)}, feature(n=2.5, m=10**20)),
        ({"of": UUID(int=1)}, feature(of="00000000-0000-0000-0000-000000000001")),
        (
            {"wind": float("nan"), "in": [{"x": np.nan}]},
            feature(wind=None, **{"in": [{"x": None}]}),
        ),
    ],
)
def test_an_event_becomes_a_feature(event: Any, expected: dict[str, Any]) -> None:
    assert written(event) == [expected]
    assert written([event, event]) == [expected, expected]


def test_a_collection_is_its_features() -> None:
    collection = {"type": "FeatureCollection", "features": [feature(wind=1), feature(wind=2)]}
    assert written(collection) == collection["features"]
    assert written([collection, {"wind": 3}]) == [feature(wind=n) for n in (1, 2, 3)]


def test_a_cloud_event_stays_as_it_is() -> None:
    cloud = {"specversion": "1.0", "id": "1", "source": "/ships", "type": "at", "data": feature()}
    (event,) = read_outgoing(cloud)
    assert event.is_envelope
    assert json.loads(event.text) == cloud


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"wind": float("inf")}, "an infinite number"),
        ({"wind": "\ud800"}, "a text has half a surrogate pair"),
        ({"wind": object()}, "a value of type object"),
        ({(1, 2): 3}, "cannot be written as JSON"),
        ({"geometry": "POINT(5"}, "cannot read the geometry"),
        ({"geometry": 7}, "7 is not a geometry"),
        ({"area": b"wkb"}, "cannot read the geometry"),
        ({"n": Decimal("inf")}, "an infinite number"),
        ({"type": "FeatureCollection", "features": 7}, "it is a int, not an event"),
        ({"geometry": CURVE}, "curves are not supported"),
        ({"deep": nested(300)}, "a value is nested deeper"),
        ({"deep": nested(100_000)}, "cannot be written as JSON"),
        (7, "it is a int, not an event"),
    ],
)
def test_what_json_cannot_hold_keeps_no_other_event_out(event: Any, words: str) -> None:
    events = [{"wind": 1}, event, {"wind": 2}]
    assert written(events) == [feature(wind=1), feature(wind=2)]
    (found,) = faults(events).items()
    assert found[0] == 1
    assert found[1].startswith(words)


def test_an_endless_event_is_refused() -> None:
    event: dict[str, Any] = {}
    event["again"] = event
    assert "cannot be written as JSON" in faults(event)[0]


@pytest.mark.parametrize("events", [7, b"POINT(5 1)", None])
def test_what_cannot_be_events_is_refused(events: Any) -> None:
    with pytest.raises(InvalidInput, match="expected an event, a list of events"):
        written(events)


def test_a_table_becomes_features_without_what_is_null() -> None:
    table = pa.table(
        {
            "id": ["a", None],
            "geometry": ["POINT(5 1)", None],
            "wind": pa.array([20.5, float("nan")]),
            "at": pa.array([datetime(2026, 3, 2, 8, tzinfo=UTC), None]),
            "kind": pa.array(["tug", None]).dictionary_encode(),
            "n": [2**60, None],
            "in": [{"a": [1]}, None],
        }
    )
    first, second = written(table)
    assert first == feature(
        POINT,
        "a",
        wind=20.5,
        at="2026-03-02T08:00:00.000000Z",
        kind="tug",
        n=2**60,
        **{"in": {"a": [1]}},
    )
    assert second == feature()


def test_a_geodataframe_and_its_file_are_the_same_events(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame(
        {"id": [1, 2], "wind": [20.0, 5.0]}, geometry=shapely.points([[5, 1], [6, 2]]), crs=4326
    )
    expected = [
        feature(POINT, 1, wind=20.0),
        feature({"type": "Point", "coordinates": [6, 2]}, 2, wind=5.0),
    ]
    frame.to_parquet(tmp_path / "events.parquet")
    frame.to_file(tmp_path / "events.geojson")
    assert written(frame) == expected
    assert written(tmp_path / "events.parquet") == expected
    assert written(str(tmp_path / "events.geojson")) == expected


def test_a_geometry_column_of_another_name_is_a_property() -> None:
    frame = geopandas.GeoDataFrame({"area": shapely.points([[5, 1]])}, geometry="area")
    assert written(frame) == [feature(area=POINT)]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([1.0, float("inf"), None]), "an infinite number"),
        (pa.array(np.array([1, np.inf, 2], np.float16)), "an infinite number"),
        (pa.array([1.0, float("-inf"), 2.0]).dictionary_encode(), "an infinite number"),
        (pa.array([[{"a": 1.0}], [{"a": float("inf")}], None]), "an infinite number"),
        (pa.array([0, 2**62, 1], pa.duration("s")), "cannot be written as JSON"),
    ],
)
def test_a_cell_that_json_cannot_hold_is_a_fault_of_its_row(column: pa.Array, words: str) -> None:
    table = pa.table({"wind": column})
    assert len(written(table)) == 2
    assert list(faults(table)) == [1]
    assert faults(table)[1].startswith(f"column 'wind': {words}")


def test_a_geometry_that_cannot_be_read_is_a_fault_of_its_row() -> None:
    texts = ["POINT(5 1)", "POINT(5", None, "nowhere", '{"type":"Point","coordinates":[5,1]}', ""]
    wkbs = [None if text is None else text.encode() for text in texts]
    wkbs[0] = shapely.Point(5, 1).wkb
    for column, bad in ((texts, [1, 3]), (wkbs, [1, 3, 4, 5])):
        table = pa.table({"geometry": column})
        assert written(table)[0] == feature(POINT)
        assert list(faults(table)) == bad
        assert "cannot read the geometry" in faults(table)[1]


def test_batches_are_of_bounded_size_and_of_one_kind() -> None:
    plain, cloud = OutgoingEvent("x" * 10), OutgoingEvent("x" * 10, is_envelope=True)
    events = [*[plain] * 7, *[cloud] * 2, OutgoingEvent("x" * 100), plain]
    batches = list(cut_batches(events, events_max=3, bytes_max=25))
    assert [(batch.first, len(batch.events)) for batch in batches] == [
        (0, 2),
        (2, 2),
        (4, 2),
        (6, 1),
        (7, 2),
        (9, 1),
        (10, 1),
    ]
    assert [event for batch in batches for event in batch.events] == events


def test_a_bad_event_is_of_either_kind() -> None:
    bad, cloud = OutgoingEvent.bad(InvalidInput("bad")), OutgoingEvent("{}", is_envelope=True)
    events = [bad, cloud, bad, cloud, OutgoingEvent("{}"), bad]
    assert [len(batch.events) for batch in cut_batches(events)] == [4, 2]


def test_a_full_batch_waits_for_no_other_event() -> None:
    taken = []

    def come() -> Iterator[OutgoingEvent]:
        for number in range(3):
            taken.append(number)
            yield OutgoingEvent("{}")

    batches = cut_batches(come(), events_max=1)
    next(batches)
    assert taken == [0]
