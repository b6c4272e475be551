"""The id of a Feature is the event's id and the attribute `id`, however the Feature comes."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from contrada import InvalidInput, Matcher
from contrada.cli import main

if TYPE_CHECKING:
    from pathlib import Path

POINT = {"type": "Point", "coordinates": [3, 1]}


def feature(**members: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": POINT, "properties": {}} | members


CASES = {  # and the id that each must have
    "own id and property": (feature(id=1, properties={"id": 7}), 1),
    "own id": (feature(id=1), 1),
    "property": (feature(properties={"id": 7}), 7),
    "null and property": (feature(id=None, properties={"id": 7}), 7),
    "own id and null": (feature(id=1, properties={"id": None}), 1),
    "own id of zero": (feature(id=0, properties={"id": 7}), 0),
    "no properties": (feature(id=1, properties=None), 1),
}
every_case = pytest.mark.parametrize(("given", "id_"), CASES.values(), ids=CASES.keys())


def id_matcher() -> Matcher:
    """Subscriptions to each id, and one to every event."""
    matcher = Matcher()
    for id_ in (0, 1, 7):
        matcher.add(f"id {id_}", f"id = {id_}")
    matcher.add("no id", "id IS NULL")
    return matcher


@every_case
def test_the_attribute_is_the_same_for_match_lists_and_files(
    given: dict[str, Any], id_: int, tmp_path: Path
) -> None:
    matcher = id_matcher()
    collection = tmp_path / "events.geojson"
    collection.write_text(json.dumps({"type": "FeatureCollection", "features": [given]}))
    lines = tmp_path / "events.geojsonl"
    lines.write_text(json.dumps(given))
    cloud = {"specversion": "1.0", "id": "c", "source": "/x", "type": "t", "data": given}
    assert matcher.match(given) == matcher.match(cloud) == [f"id {id_}"]
    assert matcher.subscribers(given) == []
    for events in ([given], [cloud], collection, lines):
        assert matcher.match_many(events).to_pylist() == [
            {"event": id_, "subscription": f"id {id_}"}
        ]


@every_case
def test_the_command_tells_the_same_id(
    given: dict[str, Any], id_: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "subscriptions.csv").write_text(f"id,filter\nfound,id = {id_}\n")
    (tmp_path / "events.geojsonl").write_text(json.dumps(given))
    paths = [str(tmp_path / name) for name in ("subscriptions.csv", "events.geojsonl", "out.csv")]
    assert main(["match", *paths[:2], "-o", paths[2]]) == 0
    capsys.readouterr()
    assert (tmp_path / "out.csv").read_text().splitlines() == ["event,subscription", f"{id_},found"]


def test_the_id_of_a_cloud_event_counts_where_what_it_carries_has_none() -> None:
    matcher = id_matcher()
    cloud = {"specversion": "1.0", "id": 5, "source": "/x", "type": "t"}
    for data in (feature(), {"n": 1}):
        assert matcher.match_many([{**cloud, "data": data}]).to_pylist() == [
            {"event": 5, "subscription": "no id"}
        ]
    assert matcher.match_many([{**cloud, "data": {"id": 7}}])["event"].to_pylist() == [7]


def test_a_mapping_whose_type_is_feature_but_has_nothing_of_one_is_a_mapping_everywhere(
    tmp_path: Path,
) -> None:
    matcher = Matcher()
    matcher.add("found", "wind = 5 AND type = 'Feature'")
    given = {"type": "Feature", "id": 1, "wind": 5}
    lines = tmp_path / "events.jsonl"
    lines.write_text(json.dumps(given))
    assert matcher.match(given) == ["found"]
    for events in ([given], lines):
        assert matcher.match_many(events)["event"].to_pylist() == [1]


@pytest.mark.parametrize(
    "events",
    [
        [{"id": 1, "n": 5}, {"id": None, "n": 5}],
        [{"id": 1, "n": 5}, {"n": 5}],
        [{"id": "a", "n": 5}, {"n": 5}],
        [feature(id=1), feature(id=None)],
        [feature(id=1), feature()],
    ],
)
def test_an_event_without_an_id_among_others_is_bad_in_a_list_as_in_a_table(
    events: list[dict[str, Any]], tmp_path: Path
) -> None:
    matcher = Matcher()
    matcher.add("all", True)
    lines = tmp_path / "events.jsonl"
    lines.write_text("\n".join(map(json.dumps, events)))
    source: Any
    for source in (events, lines):
        with pytest.raises(InvalidInput, match=r"row 1\b.*id.*quarantine=True"):
            matcher.match_many(source)
        assert matcher.match_many(source, quarantine=True).num_rows == 1
    assert matcher.stats()["events_left_out"] == 2


def test_a_list_of_events_that_have_only_null_ids_is_refused_and_one_without_any_is_numbered() -> (
    None
):
    matcher = Matcher()
    matcher.add("all", True)
    for events in ([{"id": None}], [feature(id=None)], pa.table({"id": pa.nulls(1)})):
        with pytest.raises(InvalidInput, match=r"row 0.*the id is missing; id="):
            matcher.match_many(events)
    for events in ([{"n": 1}], [feature()], [{"n": 1}, {"n": None}]):
        assert matcher.match_many(events)["event"].to_pylist() == list(range(len(events)))


def test_a_uuid_is_its_text_in_lists_as_in_tables() -> None:
    id_ = uuid.UUID(int=2**100 + 7)
    matcher = Matcher()
    matcher.add("found", f"id = '{id_}' AND A_CONTAINS(seen, ('{id_}'))")
    table = pa.table(
        {
            "id": pa.array([id_.bytes], pa.uuid()),
            "seen": pa.ListArray.from_arrays([0, 1], pa.array([id_.bytes], pa.uuid())),
        }
    )
    cloud = {"specversion": "1.0", "id": id_, "data": {"n": 1}}
    assert matcher.match(table.to_pylist()[0]) == ["found"]
    assert isinstance(table.to_pylist()[0]["id"], uuid.UUID)
    for events in (table, table.to_pylist()):
        assert matcher.match_many(events)["event"].to_pylist() == [str(id_)]
    matcher.add("other", "n = 1")
    assert matcher.match_many([cloud])["event"].to_pylist() == [str(id_)]
