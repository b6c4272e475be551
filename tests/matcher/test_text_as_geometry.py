"""Text where a geometry is meant: read as the geometry it is, or a bad row, however it comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada import InvalidInput, Matcher
from contrada.cli import main
from contrada.spark.worker import EventColumns
from exact_engines import every_engine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AREA = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
READS_GEOMETRY = f"S_INTERSECTS(geometry, {AREA})"
POINT = {"type": "Point", "coordinates": [1, 1]}
NONSENSE = ["nonsense", "P0INT(1 1)", "POLYGN((0 0,1 0,1 1,0 0))", "N/A", "POINT", "{}", '{"a":1}']
REASON = r"cannot read the geometry: it is not WKT, hex WKB or GeoJSON \(value "


def matcher_of(engine: str = "strtree", filter_: str = READS_GEOMETRY) -> Matcher:
    matcher = Matcher(engine)
    matcher.add("a", filter_)
    return matcher


def feature(geometry: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": {}}


def as_table(texts: list[str | None]) -> pa.Table:
    return pa.table({"geometry": pa.array(texts, pa.string())})


def as_dictionary(texts: list[str | None]) -> pa.Table:
    return pa.table({"geometry": pa.array(texts, pa.string()).dictionary_encode()})


def as_list(texts: list[str | None]) -> list[dict[str, Any]]:
    return [{"geometry": text} for text in texts]


def as_features(texts: list[str | None]) -> list[dict[str, Any]]:
    return [feature(text) for text in texts]


WAYS: list[Callable[[list[str | None]], Any]] = [as_table, as_dictionary, as_list, as_features]
every_way = pytest.mark.parametrize("give", WAYS)


def write_csv(folder: Path, texts: list[str | None]) -> Path:
    cells = ('"' + (text or "").replace('"', '""') + '"' for text in texts)
    path = folder / "events.csv"
    path.write_text("name,wkt\n" + "".join(f"x,{cell}\n" for cell in cells))
    return path


def write_geojson(folder: Path, texts: list[str | None]) -> Path:
    features = [*map(feature, texts), feature(POINT)]
    path = folder / "events.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def write_json_lines(folder: Path, texts: list[str | None]) -> Path:
    path = folder / "events.jsonl"
    path.write_text("".join(json.dumps({"geometry": text}) + "\n" for text in texts))
    return path


def write_parquet(folder: Path, texts: list[str | None]) -> Path:
    path = folder / "events.parquet"
    pq.write_table(as_table(texts), path)
    return path


every_file = pytest.mark.parametrize(
    "write", [write_csv, write_geojson, write_json_lines, write_parquet]
)


@every_engine
@pytest.mark.parametrize("text", NONSENSE)
def test_text_that_is_no_geometry_is_refused_with_its_value(engine: str, text: str) -> None:
    matcher = matcher_of(engine)
    for event in ({"geometry": text}, feature(text)):
        for ask in (matcher.match, matcher.subscribers, lambda e: matcher.why("a", e)):
            with pytest.raises(InvalidInput, match=rf"the event, attribute 'geometry': {REASON}"):
                ask(event)
    for give in WAYS:
        with pytest.raises(InvalidInput, match=rf"row 1, .*'geometry': {REASON}.*quarantine=True"):
            matcher.match_many(give(["POINT(1 1)", text]))


@every_way
@pytest.mark.parametrize("options", [{"quarantine": True}, {"repair": True}])
def test_it_is_left_out_and_reported_as_other_bad_rows_are(
    give: Callable[[list[str | None]], Any], options: dict[str, Any]
) -> None:
    heard: list[int] = []
    matcher = matcher_of()
    events = give(["POINT(1 1)", "nonsense", None, "POINT(9 9)"])
    answer = matcher.match_many(events, on_bad=lambda row, *_: heard.append(row), **options)
    assert (answer["event"].to_pylist(), heard) == ([0], [1])
    assert matcher.stats()["events_left_out"] == 1


@every_engine
@every_way
@pytest.mark.parametrize("blank", [None, "", " \n"])
def test_null_and_blank_text_are_no_geometry(
    engine: str, give: Callable[[list[str | None]], Any], blank: str | None
) -> None:
    matcher = matcher_of(engine)
    matcher.add("no", f"NOT {READS_GEOMETRY}")
    matcher.add("all", "name IS NULL")
    answer = matcher.match_many(give(["POINT(1 1)", blank]))
    assert answer["event"].to_pylist() == [0, 0, 1]
    assert answer["subscription"].to_pylist() == ["a", "all", "all"]


@every_engine
def test_text_in_any_other_attribute_is_unknown(engine: str) -> None:
    matcher = matcher_of(engine, f"S_INTERSECTS(name, {AREA})")
    matcher.add("no", f"NOT S_INTERSECTS(name, {AREA})")
    texts = ["Rome", "POINT(1 1)", json.dumps(POINT), '{"type":"Rome"}', "{", ""]
    assert [matcher.match({"name": text}) for text in texts] == [[], ["a"], ["a"], [], [], []]
    answer = matcher.match_many(pa.table({"name": texts}))
    assert answer["event"].to_pylist() == [1, 2]


@every_engine
def test_what_no_subscription_reads_is_not_judged(engine: str) -> None:
    matcher = matcher_of(engine, "n = 1")
    assert matcher.match({"geometry": "nonsense", "n": 1}) == ["a"]
    table = pa.table({"geometry": ["nonsense"], "n": [1]})
    assert matcher.match_many(table).num_rows == 1


@every_file
def test_files_are_judged_alike(
    write: Callable[[Path, list[str | None]], Path], tmp_path: Path
) -> None:
    heard: list[tuple[Any, ...]] = []
    texts = ["POINT(1 1)", "nonsense", "", None, json.dumps(POINT), "0" * 10]
    path = write(tmp_path, texts)
    answer = matcher_of().match_many(path, quarantine=True, on_bad=lambda *bad: heard.append(bad))
    assert [event for event in answer["event"].to_pylist() if event < len(texts)] == [0, 4]
    assert [(row, reason.partition(" (")[0]) for row, _, reason in heard] == [
        (row, "column 'geometry': cannot read the geometry: it is not WKT, hex WKB or GeoJSON")
        for row in (1, 5)
    ]


def test_the_primary_column_is_judged_under_its_own_name_and_as_geometry(tmp_path: Path) -> None:
    column = {"encoding": "WKB", "geometry_types": []}
    geo = {"version": "1.1.0", "primary_column": "area", "columns": {"area": column}}
    table = pa.table({"area": ["POINT(1 1)", "nonsense"], "name": ["x", "y"]})
    table = table.replace_schema_metadata({"geo": json.dumps(geo)})
    for name in ("area", "geometry"):
        matcher = matcher_of(filter_=f"S_INTERSECTS({name}, {AREA})")
        with pytest.raises(InvalidInput, match=rf"row 1, column '{name}': {REASON}'nonsense'"):
            matcher.match_many(table)
        columns = EventColumns(("area", "name"), None, (name,), False, primary="area")
        assert list(columns.receive(table.to_batches()[0]).bad) == [1]
    assert matcher_of(filter_=f"S_INTERSECTS(name, {AREA})").match_many(table).num_rows == 0


@every_engine
@every_way
@pytest.mark.parametrize("text", [json.dumps(POINT), f"\n {json.dumps(POINT)} "])
def test_geojson_as_text_is_the_geometry_it_is(
    engine: str, give: Callable[[list[str | None]], Any], text: str
) -> None:
    assert matcher_of(engine).match_many(give([text]))["event"].to_pylist() == [0]
    matcher = Matcher(engine)
    matcher.add("a", geometry=text)
    matcher.add_many(pa.table({"id": ["b"], "geometry": [text]}))
    assert matcher.match({"geometry": "POINT(1 1)"}) == ["a", "b"]


def test_geojson_as_text_that_cannot_be_read_says_why() -> None:
    reason = "cannot read the GeoJSON geometry: .*two or three coordinates"
    for give in WAYS:
        with pytest.raises(InvalidInput, match=reason):
            matcher_of().match_many(give(['{"type":"Point","coordinates":[-118.24]}']))


def test_it_is_written_as_the_geometry_it_is(tmp_path: Path) -> None:
    events = write_csv(tmp_path, [json.dumps(POINT), ""])
    subscriptions = tmp_path / "zones.csv"
    subscriptions.write_text(f'id,geometry\n1,"{AREA}"\n')
    out = tmp_path / "out.csv"
    assert (
        main(["match", str(subscriptions), str(events), "-o", str(out), "--keep", "geometry"]) == 0
    )
    assert out.read_text().splitlines()[1:] == ["0,1,POINT (1 1)"]


def test_blank_text_beside_a_filter_is_no_second_geometry() -> None:
    rows = pa.table({"id": ["a", "b"], "filter": ["n = 1", None], "geometry": ["", AREA]})
    matcher = Matcher()
    assert matcher.add_many(rows) == 2
    with pytest.raises(InvalidInput, match="column 'geometry': the geometry is missing"):
        matcher.add_many(pa.table({"id": ["c"], "geometry": [" "]}))


WKB = shapely.to_wkb(shapely.Point(1, 1))
LONG_LINE = shapely.to_wkb(shapely.LineString([(i, i) for i in range(90)]))
TOO_LONG = [
    *("POINT(1 1)\0garbage", (WKB + b"\0").hex(), WKB + b"\0", LONG_LINE + LONG_LINE),
    shapely.to_wkb(shapely.MultiPoint([(1, 1)])) + b"garbage",
]


@pytest.mark.parametrize("value", TOO_LONG)
def test_what_follows_a_geometry_makes_a_bad_row_however_it_comes(value: str | bytes) -> None:
    matcher = matcher_of()
    for events in (pa.table({"geometry": [value, None]}), [{"geometry": value}, {}]):
        with pytest.raises(InvalidInput, match=r"row 0.*cannot read the geometry: it (has|ends)"):
            matcher.match_many(events)
        assert matcher.match_many(events, quarantine=True).num_rows == 0
    assert matcher.stats()["events_left_out"] == 2
    with pytest.raises(InvalidInput, match=r"cannot read the geometry: it (has|ends)"):
        matcher.match({"geometry": value})
    with pytest.raises(InvalidInput, match=r"cannot read the geometry: it (has|ends)"):
        matcher.add("b", geometry=value)
    with pytest.raises(InvalidInput, match=r"cannot read the geometry: it (has|ends)"):
        matcher.add_many(pa.table({"geometry": [value]}))
