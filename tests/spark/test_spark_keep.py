"""`--keep` writes the same with and without Spark, and kept geometries are the mended ones."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada.spark
from contrada.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]

SPARK = ["--spark", "local[2]"]
BOW_TIE = shapely.from_wkt("POLYGON((0 0,4 4,4 0,0 4,0 0))")
POINTS = shapely.to_wkb(shapely.points([(1, 1), (3, 3), (9, 9)])).tolist()
RIDE = pa.struct([("speed", pa.uint8()), ("stops", pa.list_(pa.string()))])
# What Spark reads from Parquet just as it is.
PLAIN: dict[str, Any] = {
    "id": pa.array([1, 2, 3], pa.int32()),
    "geometry": pa.array(POINTS, pa.binary()),
    "tiny": pa.array([-1, None, 3], pa.int8()),
    "bare": pa.array([0, None, 255], pa.uint8()),
    "whole": pa.array([2**32 - 1, None, 0], pa.uint32()),
    "huge": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "real": pa.array([0.1, None, float("nan")], pa.float32()),
    "truth": pa.array([True, None, False]),
    "price": pa.array([Decimal("1.50"), None, Decimal("-3.25")], pa.decimal128(9, 2)),
    "day": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
    "at": pa.array([datetime(1, 1, 1, tzinfo=UTC), None, datetime(2026, 1, 2, 3, 4, 5, 6, UTC)]),
    "local": pa.array([253_370_764_800_000, None, 5], pa.timestamp("ms")),
    "second": pa.array([5, None, -5], pa.timestamp("s", "Europe/Paris")),
    "raw": pa.array([b"\x00\xff", None, b""]),
    "text": pa.array(["x", None, 'ä "b", c\n'], pa.large_string()),
    "kind": pa.array(["bus", None, "tram"]).dictionary_encode(),
    "tags": pa.array([["a", None], None, []], pa.list_(pa.string())),
    "ride": pa.array([{"speed": 200, "stops": ["a"]}, None, {"speed": None}], RIDE),
    "pairs": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "area": pa.array(POINTS, pa.large_binary()),
    # What Spark's own answer has, which ours has not, in any case of letters.
    "version": ["v1", None, "v3"],
    "Subscriber": [7, None, 9],
    "error": ["none", None, "e"],
    "a.b`c": [1, None, 3],
}
# What Spark cannot read, or not without loss.
ODD: dict[str, Any] = {
    "moment": pa.array([1_780_000_000_000_000_001, None, -1], pa.timestamp("ns", "UTC")),
    "clock": pa.array([1, None, 86_399_999_999], pa.time64("us")),
    "short": pa.array([1, None, 86_399], pa.time32("s")),
    "took": pa.array([timedelta(days=1), None, timedelta(0)], pa.duration("ns")),
    "wide": pa.array([Decimal("9" * 45), None, Decimal(-1)], pa.decimal256(50, 2)),
    "half": pa.array(np.array([0.5, 0.25, 1], np.float16)),
    "none": pa.nulls(3),
    "Tiny": [10, None, 30],
    "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    "two": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
}


def match_both_ways(folder: Path, output: str, *options: str) -> list[Path]:
    """Match `zones` and `events` of a folder with and without Spark; give both files."""
    paths = [folder / f"plain-{output}", folder / f"spark-{output}"]
    for path, more in zip(paths, ([], SPARK), strict=True):
        args = ["match", str(folder / "zones.csv"), str(folder / "events.parquet"), *more]
        assert main([*args, "-o", str(path), *options]) == 0
    return paths


def keep(*names: str) -> list[str]:
    return [word for name in names for word in ("--keep", name)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "zones.csv").write_text(
        "id,county,since,filter\n"
        'b,Kern,2026-01-01,"S_INTERSECTS(geometry, POLYGON((0 0,4 0,4 4,0 4,0 0)))"\n'
        "a,,2025-01-01,\"S_INTERSECTS(area, POINT(1 1)) OR tiny > 0 OR version = 'v9'\"\n"
    )
    return tmp_path


@pytest.mark.parametrize("columns", [PLAIN, PLAIN | ODD], ids=["plain", "odd"])
def test_columns_of_every_type_come_through_spark_as_without_it(
    columns: dict[str, Any], folder: Path
) -> None:
    pq.write_table(pa.table(columns), folder / "events.parquet")
    names = [*columns, "event.id", "subscription.county", "subscription.since"]
    paths = match_both_ways(folder, "out.parquet", *keep(*names))
    plain, spark = (
        pq.read_table(path).sort_by([("event", "ascending"), ("subscription", "ascending")])
        for path in paths
    )
    assert plain.column_names[2:] == names
    assert plain.num_rows == 4
    assert plain.schema == spark.schema
    for name in plain.column_names:
        assert str(plain[name].to_pylist()) == str(spark[name].to_pylist()), name
    rows = pa.array([event - 1 for event in plain["event"].to_pylist()])
    for name, values in columns.items():
        expected = pa.table({name: values})[name].take(rows).to_pylist()
        assert str(plain[name].to_pylist()) == str(expected), name


@pytest.mark.parametrize("output", ["out.csv", "out.jsonl"])
def test_text_formats_have_the_same_lines(output: str, folder: Path) -> None:
    pq.write_table(pa.table(PLAIN), folder / "events.parquet")
    plain, spark = match_both_ways(folder, output, *keep(*PLAIN, "subscription.county"))
    assert sorted(plain.read_text().split("\n")) == sorted(spark.read_text().split("\n"))
    assert len(plain.read_text()) > 500


@pytest.mark.parametrize("is_read", [True, False])
def test_geometries_that_were_mended_are_the_same_and_valid(is_read: bool, tmp_path: Path) -> None:
    condition = "S_INTERSECTS(geometry, POINT(1 2))" if is_read else "n > 0"
    (tmp_path / "zones.csv").write_text(f'id,filter\n1,"{condition}"\n2,"n = 1"\n')
    shapes = [BOW_TIE, shapely.box(0, 0, 3, 3), BOW_TIE]
    frame = geopandas.GeoDataFrame({"n": [1, 2, 3]}, geometry=shapes, crs="EPSG:2154")
    frame.to_parquet(tmp_path / "events.parquet")
    paths = match_both_ways(tmp_path, "out.geoparquet", "--repair", "--keep", "n")
    plain, spark = (
        geopandas.read_parquet(path).sort_values(["event", "subscription"], ignore_index=True)
        for path in paths
    )
    assert list(plain.columns) == ["event", "subscription", "n", "geometry"]
    assert len(plain) == 4
    assert plain.equals(spark)
    assert plain.is_valid.all()


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
@pytest.mark.parametrize("encoding", ["binary", "string"])
def test_a_dataframe_keeps_the_mended_geometry_in_its_own_encoding(
    plan: str, encoding: str, spark: SparkSession
) -> None:
    write = shapely.to_wkb if encoding == "binary" else shapely.to_wkt
    rows = [(1, write(BOW_TIE)), (2, write(shapely.Point(1, 2)))]
    events = spark.createDataFrame(rows, f"id int, geometry {encoding}")
    zones = spark.createDataFrame(
        [(1, "POLYGON((0 0,4 0,4 4,0 0,0 0))")], "id int, geometry string"
    )
    zones = zones.unionByName(spark.createDataFrame([(2, "POINT(1 2)")], "id int, geometry string"))
    answer = contrada.spark.match(events, zones, plan=plan, repair=True, keep=["geometry"])
    assert answer.schema["geometry"].dataType.simpleString() == encoding
    read = shapely.from_wkb if encoding == "binary" else shapely.from_wkt
    found = {(row.event, row.subscription): read(row.geometry) for row in answer.collect()}
    assert set(found) >= {(1, 1), (2, 2)}
    for (event, _), shape in found.items():
        expected = shapely.make_valid(BOW_TIE) if event == 1 else shapely.Point(1, 2)
        assert shapely.equals(shape, expected)


def test_counts_keep_columns_of_events_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table(PLAIN | ODD), folder / "events.parquet")
    args = ["match", str(folder / "zones.csv"), str(folder / "events.parquet"), "--counts", *SPARK]
    out = folder / "counts.jsonl"
    assert main([*args, "-o", str(out), *keep("version", "clock", "geometry", "event.id")]) == 0
    lines = sorted(map(json.loads, out.read_text().splitlines()), key=lambda line: line["event"])
    assert [line["n"] for line in lines] == [2, 1, 1]
    assert lines[0]["geometry"] == {"type": "Point", "coordinates": [1, 1]}
    assert [line["clock"] for line in lines] == ["00:00:00.000001", None, "23:59:59.999999"]
    capsys.readouterr()
    for name, words in (
        ("subscription.county", "--keep subscription.county cannot be combined with --counts"),
        ("n", "--keep n: the answer already has a column of that name; --keep event.n"),
    ):
        assert main([*args, "-o", str(out), "--keep", name]) == 2
        assert words in capsys.readouterr().err


def test_a_type_that_spark_cannot_carry_is_refused_before_spark_starts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = PLAIN | {"clocks": pa.array([[1], None, []], pa.list_(pa.time64("us")))}
    pq.write_table(pa.table(columns), folder / "events.parquet")
    args = ["match", str(folder / "zones.csv"), str(folder / "events.parquet"), *SPARK]
    assert main([*args, "-o", str(folder / "out.parquet"), "--keep", "clocks"]) == 2
    said = capsys.readouterr().err
    assert "--keep clocks: " in said
    assert "list<item: time64[us]>, which Spark cannot carry" in said
    assert "starting Spark" not in said
