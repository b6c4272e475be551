"""A geometry is judged where a subscription reads it, and nowhere else."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada import InvalidInput, Matcher
from contrada.cli import main
from contrada.matcher.inside import freeze
from contrada.spark.worker import EventColumns
from exact_engines import every_engine

if TYPE_CHECKING:
    from pathlib import Path

BOWTIE = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]).wkb
BAD = {
    "invalid": BOWTIE,
    "undecodable": b"\x01\x02",
    "not WKB": b"?",
    "infinite": struct.pack("<BIdd", 1, 1, float("inf"), 0),
    "a curve": struct.pack("<BII", 1, 8, 0),
    "not even the count": struct.pack("<BI", 1, 3),
}
every_fault = pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
POINT = shapely.Point(1, 1).wkb
READS_GEOMETRY = "S_INTERSECTS(geometry, POLYGON((0 0,4 0,4 4,0 0)))"


def matcher_of(engine: str, *filters: str) -> Matcher:
    matcher = Matcher(engine)
    for number, filter_ in enumerate(filters):
        matcher.add(number, filter_)
    return matcher


def answers(matcher: Matcher, event: dict[str, Any], **options: Any) -> list[Any]:
    """Match an event in every way that there is; all must agree."""
    table = pa.table({name: [value] for name, value in event.items()})
    received = EventColumns(
        tuple(table.schema.names), None, tuple(freeze(matcher).geometry_attributes), False
    ).receive(table.to_batches()[0])
    assert not received.bad
    found = matcher.match(event)
    for events in (table, [event]):
        assert matcher.match_many(events, **options)["subscription"].to_pylist() == found
    return found


@every_engine
@every_fault
def test_a_geometry_that_no_subscription_reads_is_not_judged(engine: str, bad: bytes) -> None:
    matcher = matcher_of(engine, READS_GEOMETRY, "n = 1", "geom2 IS NULL")
    assert answers(matcher, {"geometry": POINT, "geom2": bad, "n": 1}) == [0, 1]
    assert answers(matcher_of(engine, "n = 1"), {"geometry": bad, "n": 1}) == [0]
    heard: list[Any] = []
    for options in ({"repair": True}, {"quarantine": True}):
        hear: Any = {"on_bad": lambda *bad_row: heard.append(bad_row)}
        event = {"geometry": POINT, "geom2": bad, "n": 1}
        assert answers(matcher, event, **options, **hear) == [0, 1]
    assert not heard
    assert matcher.stats()["events_left_out"] == matcher.stats()["events_mended"] == 0


@every_engine
@every_fault
def test_it_is_judged_once_a_subscription_reads_it_and_until_none_does(
    engine: str, bad: bytes
) -> None:
    matcher = matcher_of(engine, "n = 1", "n = 1", "n = 2")
    event = {"geometry": bad, "n": 1}
    assert answers(matcher, event) == [0, 1]
    matcher.add(3, READS_GEOMETRY)
    for events in ([event], pa.Table.from_pylist([event])):
        with pytest.raises(InvalidInput, match="row 0"):
            matcher.match_many(events)
    with pytest.raises(InvalidInput, match="attribute 'geometry'"):
        matcher.match(event)
    matcher.remove(3)
    assert answers(matcher, event) == [0, 1]


def save(folder: Path, *, second: bool, bad: bytes) -> tuple[str, str]:
    """Write subscriptions that read one geometry at most, and events with another that is bad."""
    filters = [READS_GEOMETRY, "n > 0"] if second else ["n > 0"]
    subscriptions = folder / "subscriptions.csv"
    subscriptions.write_text("id,filter\n" + "".join(f'{i},"{f}"\n' for i, f in enumerate(filters)))
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": []}
    names = ["geometry", *(["geom2"] if second else [])]
    geo = {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": dict.fromkeys(names, column),
    }
    columns = {"id": [7, 8], "n": [1, 1], "geometry": [POINT, bad]}
    if second:
        columns |= {"geometry": [POINT, POINT], "geom2": [POINT, bad]}
    table = pa.table(columns).replace_schema_metadata({"geo": json.dumps(geo)})
    pq.write_table(table, folder / "events.parquet")
    return str(subscriptions), str(folder / "events.parquet")


@every_fault
@pytest.mark.parametrize("second", [False, True], ids=["the only one", "a second one"])
@pytest.mark.parametrize("options", [[], ["--repair"], ["--quarantine", "bad.csv"]])
def test_the_command_leaves_no_row_out_for_it(
    bad: bytes,
    second: bool,
    options: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = save(tmp_path, second=second, bad=bad)
    command = ["match", *paths, *options, "-o", "out.geoparquet", "--map", "map.html", "--json"]
    assert main(command) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    counts = [report[f"events_{name}"] for name in ("matched", "left_out", "mended")]
    assert counts == [2, 0, 0]
    found = pq.read_table(tmp_path / "out.geoparquet")
    assert found["event"].to_pylist() == ([7, 7, 8, 8] if second else [7, 8])
    written = shapely.from_wkb(found["geometry"].to_numpy())  # whatever is there can be read
    assert shapely.to_wkb(written[0]) == POINT
    if not second and bad is not BOWTIE and bad is not BAD["infinite"]:
        assert written[1] is None
