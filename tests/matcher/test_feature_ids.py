"""The id of a Feature is the event's id and the attribute `id`, however the Feature comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contrada import Matcher
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
