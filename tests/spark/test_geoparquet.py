"""GeoParquet in and out of Spark: what footers state, what a covering prunes, what is written."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada.spark
from contrada.errors import InvalidInput
from contrada.files import is_same_crs, read_rows
from contrada.files.parquet_footer import read_footer
from contrada.spark.crs_metadata import refuse_two_systems, stated_crs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

GEO = {"version": "1.1.0", "primary_column": "geometry"}
SHAPES = [
    "POINT (1 2)",
    "POLYGON ((0 0, 4 0, 4 4, 0 0))",
    None,
    "POINT Z (5 6 7)",
    "POLYGON EMPTY",
    "MULTILINESTRING ((0 0, 9 9), (7 7, 8 -3))",
]


def points(path: Path, *, crs: str | None = "EPSG:2154", **options: Any) -> Path:
    """A GeoParquet file of ten points at (0.5, 0.5), (1.5, 0.5), …"""
    shapes = shapely.points(np.arange(10) + 0.5, 0.5)
    geopandas.GeoDataFrame({"id": range(10)}, geometry=shapes, crs=crs).to_parquet(path, **options)
    return path


def rows_read(frame: DataFrame) -> int:
    """How many rows the scan of files gave to the filter, in the last action on a DataFrame."""
    plan = frame._jdf.queryExecution().executedPlan()
    return int(plan.collectLeaves().head().metrics().apply("numOutputRows").value())


@pytest.fixture
def nothing_runs(spark: SparkSession) -> Callable[[], bool]:
    """A function that tells whether no job has started since the test began."""
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    return lambda: set(tracker.getJobIdsForGroup()) == before


# In


def test_a_folder_is_read_with_its_crs_which_stays_with_the_column(
    spark: SparkSession, tmp_path: Path
) -> None:
    points(tmp_path / "a.parquet")
    points(tmp_path / "b.parquet")
    frame = contrada.spark.read_geoparquet(spark, tmp_path)
    assert frame.columns == ["id", "geometry"]
    narrow = frame.where("id > 7").select("geometry", (frame.id * 2).alias("twice"))
    assert stated_crs(narrow, "geometry") == "EPSG:2154"
    assert stated_crs(narrow, "twice") is None
    rows = sorted(
        (row.twice, shapely.from_wkb(bytes(row.geometry)).wkt) for row in narrow.collect()
    )
    assert rows == [(16, "POINT (8.5 0.5)")] * 2 + [(18, "POINT (9.5 0.5)")] * 2


def test_edges_along_a_globe_are_warned_of(spark: SparkSession, tmp_path: Path) -> None:
    column = {"encoding": "WKB", "edges": "spherical"}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    table = pa.table({"geometry": [shapely.to_wkb(shapely.Point(1, 2))]})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match=r'a\.parquet: column "geometry" has "spherical" edges'):
        contrada.spark.read_geoparquet(spark, tmp_path / "a.parquet")


def test_a_primary_column_of_another_name_is_the_geometry_too_and_rows_are_their_own_ids(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "a b.parquet"
    shapes = shapely.points([1.0, 2.0, 9.0], 1)
    geopandas.GeoDataFrame({"where": shapes}, geometry="where", crs="EPSG:4326").to_parquet(path)
    frame = contrada.spark.read_geoparquet(spark, [path])
    assert frame.columns == ["where", "geometry"]
    assert {stated_crs(frame, name) for name in frame.columns} == {"EPSG:4326"}
    texts = ["S_WITHIN(geometry, BBOX(0, 0, 3, 3)) AND S_INTERSECTS(where, POINT(2 1))"]
    zones = spark.createDataFrame(list(enumerate(texts)), "id int, filter string")
    (row,) = contrada.spark.match(frame, zones).collect()
    assert row.event.endswith("b.parquet#1")


def write_geo(path: Path, geo: object, geometry: pa.Array | None = None) -> Path:
    column = pa.array([shapely.to_wkb(shapely.Point(1, 2))]) if geometry is None else geometry
    table = pa.table({"geometry": column})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    return path


def plain(folder: Path) -> None:
    pq.write_table(pa.table({"geometry": [b""]}), folder / "b.parquet")


def native(folder: Path) -> None:
    column = {"encoding": "point", "geometry_types": ["Point"]}
    struct = pa.array([{"x": 1.0, "y": 2.0}])
    write_geo(folder / "b.parquet", {**GEO, "columns": {"geometry": column}}, struct)


def without_the_primary(folder: Path) -> None:
    column = {"encoding": "WKB", "geometry_types": []}
    write_geo(folder / "b.parquet", {**GEO, "primary_column": "area", "columns": {"area": column}})


def no_crs(folder: Path) -> None:
    points(folder / "b.parquet", crs=None)


@pytest.mark.parametrize(
    ("put", "words"),
    [
        (lambda f: points(f / "b.parquet", crs="EPSG:4326"), "b.parquet is in EPSG:4326, "),
        (lambda f: points(f / "b.parquet", crs="EPSG:4326"), "a.parquet in EPSG:2154; read them"),
        (no_crs, "b.parquet is in an unknown coordinate system, .*a.parquet in EPSG:2154"),
        (plain, 'b.parquet: has no "geo" metadata, so it is plain .* spark.read.parquet'),
        (native, "b.parquet: column 'geometry' .* the encoding \"point\"; on Spark only WKB"),
        (without_the_primary, "b.parquet: has no column 'area', .*; the columns are geometry"),
        (lambda f: write_geo(f / "b.parquet", [1]), 'b.parquet: its "geo" metadata .*\\[1\\]'),
        (lambda f: (f / "b.parquet").write_text("hello"), "b.parquet: not a Parquet file"),
    ],
)
def test_files_that_do_not_go_together_are_refused_by_name_before_anything_runs(
    spark: SparkSession,
    tmp_path: Path,
    put: Callable[[Path], object],
    words: str,
    nothing_runs: Callable[[], bool],
) -> None:
    points(tmp_path / "a.parquet")
    put(tmp_path)
    with pytest.raises(InvalidInput, match=words):
        contrada.spark.read_geoparquet(spark, tmp_path)
    assert nothing_runs()


def test_paths_and_boxes_that_cannot_be_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    refused: list[tuple[Any, str]] = [
        (tmp_path / "nowhere.parquet", "nowhere.parquet: cannot be read: .*does not exist"),
        (tmp_path, "there is no file to read"),
        ([], "there is no path"),
    ]
    for paths, words in refused:
        with pytest.raises(InvalidInput, match=words):
            contrada.spark.read_geoparquet(spark, paths)
    for bbox in [(0, 1, 2), (0, 2, 1, 1), (0, 0, float("nan"), 1)]:
        with pytest.raises(InvalidInput, match=r"bbox must be \(west, south, east, north\)"):
            contrada.spark.read_geoparquet(spark, tmp_path, bbox=bbox)  # type: ignore[arg-type]


def test_a_codec_that_nobody_knows_is_refused_before_pyarrow_sees_the_footer(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = points(tmp_path / "a.parquet", write_covering_bbox=True)
    sound, words = path.read_bytes(), "unknown codec: [0-9]+"
    footer = range(len(sound) - 8 - int.from_bytes(sound[-8:-4], "little"), len(sound) - 8)
    for at in footer:
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x20]) + sound[at + 1 :])
        if re.search(words, fault_of(path)):
            break
    else:
        raise AssertionError("no byte of the footer states a codec")
    with pytest.raises(InvalidInput, match=words):
        contrada.spark.read_geoparquet(spark, path, bbox=(6, 0, 7, 1))


def fault_of(path: Path) -> str:
    """What is wrong with a footer, if anything is."""
    try:
        read_footer(path, "a")
    except InvalidInput as fault:
        return str(fault)
    return ""


def test_the_covering_prunes_row_groups(spark: SparkSession, tmp_path: Path) -> None:
    path = points(tmp_path / "a.parquet", write_covering_bbox=True, row_group_size=2)
    frame = contrada.spark.read_geoparquet(spark, path, bbox=(6.1, 0, 6.9, 1))
    assert [row.id for row in frame.collect()] == [6]
    assert rows_read(frame) == 2, "one row group of five"
    beyond = contrada.spark.read_geoparquet(spark, path, bbox=(8, 0, 1, 1))
    assert [row.id for row in beyond.collect()] == [0, 8, 9]
    assert rows_read(beyond) == 4, "the first and the last row group"


def test_single_precision_in_the_covering_loses_no_row(spark: SparkSession, tmp_path: Path) -> None:
    x = 0.1  # rounded up in single precision, and not by a writer that takes care
    rounded = float(np.float32(x))
    assert rounded > x
    box = pa.array([{"xmin": a, "ymin": 0, "xmax": a, "ymax": 0} for a in (rounded, 7.0)])
    sides = pa.struct([(side, pa.float32()) for side in ("xmin", "ymin", "xmax", "ymax")])
    covering = {"bbox": {side.name: ["bbox", side.name] for side in sides}}
    column = {"encoding": "WKB", "geometry_types": ["Point"], "covering": covering}
    table = pa.table(
        {"geometry": shapely.to_wkb(shapely.points([x, 7.0], 0)), "bbox": box.cast(sides)}
    ).replace_schema_metadata({"geo": json.dumps({**GEO, "columns": {"geometry": column}})})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=1)
    frame = contrada.spark.read_geoparquet(spark, path, bbox=(0, 0, x, 0))
    assert len(frame.collect()) == 1
    assert rows_read(frame) == 1


@pytest.mark.parametrize("fault", ["none", "in one file only", "no struct", "wraps"])
def test_without_a_covering_that_can_be_trusted_all_rows_come(
    spark: SparkSession, tmp_path: Path, fault: str
) -> None:
    has_one = fault != "none"
    path = points(tmp_path / "a.parquet", write_covering_bbox=has_one)
    table = pq.read_table(path)
    geo = json.loads(table.schema.metadata[b"geo"])
    if fault == "in one file only":
        points(tmp_path / "b.parquet")
    elif fault == "no struct":
        geo["columns"]["geometry"]["covering"]["bbox"]["xmin"] = ["id", "xmin"]
    elif fault == "wraps":
        geo["columns"]["geometry"]["bbox"] = [170, 0, -170, 1]
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    frame = contrada.spark.read_geoparquet(spark, tmp_path, bbox=(0, 0, 1, 1))
    assert frame.count() == (20 if fault == "in one file only" else 10)


# Both sides of a match


def stating(spark: SparkSession, crs: str | None, column: str = "geometry") -> DataFrame:
    frame = spark.createDataFrame([], f"id int, {column} binary")
    return frame if crs is None else frame.withMetadata(column, {"crs": crs})


def test_events_in_another_crs_than_the_subscriptions_are_refused_before_anything_runs(
    spark: SparkSession, tmp_path: Path, nothing_runs: Callable[[], bool]
) -> None:
    zones = stating(spark, "EPSG:2154")
    words = "subscriptions, column 'geometry' is in EPSG:2154, events, column 'area' in EPSG:4326"
    with pytest.raises(InvalidInput, match=words):
        contrada.spark.match(stating(spark, "EPSG:4326", "area"), zones)
    assert nothing_runs()
    refuse_two_systems(stating(spark, "EPSG:4326"), stating(spark, "OGC:CRS84"))
    refuse_two_systems(stating(spark, None), zones)
    refuse_two_systems(zones, stating(spark, None))
    native = spark.sql(
        "SELECT 1 AS id, st_setsrid(st_geomfromwkb(x'00'), 3857) AS geometry WHERE false"
    )
    with pytest.raises(InvalidInput, match=r"subscriptions.* EPSG:2154, events.* EPSG:3857"):
        refuse_two_systems(native, zones)


# Out


def shapes(spark: SparkSession) -> DataFrame:
    """A row for each of SHAPES, as WKT, in two partitions of which one begins with a null."""
    rows = [(number, text, {"n": [number]}) for number, text in enumerate(SHAPES)]
    frame = spark.createDataFrame(rows, "`id.x` long, `a``b` string, more struct<n: array<int>>")
    return frame.repartitionByRange(2, "`id.x`")


def check_geo(path: Path, geometry: str) -> dict[str, Any]:
    """Check the metadata of a file against the rules of GeoParquet 1.1; give its column's."""
    metadata = pq.read_metadata(path)
    geo = json.loads(metadata.metadata[b"geo"])
    assert geo.keys() == {"version", "primary_column", "columns"}
    assert (geo["version"], geo["primary_column"]) == ("1.1.0", geometry)
    column = dict(geo["columns"][geometry])
    assert column["encoding"] == "WKB"
    pattern = re.compile(r"(GeometryCollection|(Multi)?(Point|LineString|Polygon))( Z)?")
    assert all(pattern.fullmatch(kind) for kind in column["geometry_types"])
    assert len(set(column["geometry_types"])) == len(column["geometry_types"])
    assert column.get("crs", {}) is None or isinstance(column.get("crs", {}), dict)
    assert len(column.get("bbox", [0] * 4)) == 4
    assert column.keys() <= {"encoding", "geometry_types", "crs", "bbox"}
    leaf = metadata.schema.column(metadata.schema.names.index(geometry))
    assert (leaf.physical_type, leaf.path, leaf.max_repetition_level) == ("BYTE_ARRAY", geometry, 0)
    return column


def test_what_is_written_is_geoparquet_for_everybody(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    count = contrada.spark.write_geoparquet(shapes(spark), folder, geometry="a`b", crs="EPSG:2154")
    assert count == len(SHAPES)
    assert list(tmp_path.iterdir()) == [folder]
    success, *parts = sorted(folder.iterdir(), key=lambda path: path.suffix)
    assert (success.name, len(parts)) == ("_SUCCESS", 2)
    columns = [check_geo(part, "a`b") for part in sorted(parts)]
    assert [column["geometry_types"] for column in columns] == [
        ["Point", "Polygon"],
        ["MultiLineString", "Point Z", "Polygon"],
    ]
    assert [column["bbox"] for column in columns] == [[0, 0, 4, 4], [0, -3, 9, 9]]
    assert all(is_same_crs(json.dumps(column["crs"]), "EPSG:2154") for column in columns)

    seen = geopandas.read_parquet(folder)
    assert [None if shape is None else shape.wkt for shape in seen.geometry] == SHAPES
    assert seen.crs == "EPSG:2154"
    rows = read_rows(folder)
    assert (rows.geometry_columns, rows.crs, rows.count) == (("a`b",), "EPSG:2154", len(SHAPES))

    again = contrada.spark.read_geoparquet(spark, folder)
    assert stated_crs(again, "geometry") == "EPSG:2154"
    assert sorted((row["id.x"], row.more.n) for row in again.collect()) == [
        (number, [number]) for number in range(len(SHAPES))
    ]


@pytest.mark.parametrize(
    ("plan", "output", "crs"),
    [
        ("broadcast", "pairs", "EPSG:2154"),
        ("partitioned", "pairs", "EPSG:4326"),
        ("partitioned", "counts", "OGC:CRS84"),
    ],
)
def test_a_kept_geometry_is_written_in_the_system_that_it_was_read_in(
    spark: SparkSession, tmp_path: Path, plan: str, output: str, crs: str
) -> None:
    events = contrada.spark.read_geoparquet(spark, points(tmp_path / "in.parquet", crs=crs))
    zones = spark.createDataFrame([("a", "POINT(1.5 0.5)")], "id string, geometry string")
    found = contrada.spark.match(events, zones, plan=plan, output=output, keep=["geometry"])
    assert stated_crs(found, "geometry") == crs
    contrada.spark.write_geoparquet(found, tmp_path / "out.parquet")
    written = geopandas.read_parquet(tmp_path / "out.parquet")
    assert written.crs == crs
    assert len(written) == (1 if output == "pairs" else 10)


def test_sparks_own_geometries_are_kept_with_their_system(spark: SparkSession) -> None:
    from pyspark.errors import AnalysisException

    wkb = shapely.to_wkb(shapely.Point(1.5, 0.5), hex=True)
    try:
        events = spark.sql(
            f"SELECT 1 AS id, st_setsrid(st_geomfromwkb(X'{wkb}'), 3857) AS geometry"
        )
    except AnalysisException as error:
        pytest.skip(f"this Spark has no geometries: {error}"[:100])
    zones = spark.createDataFrame([("a", "POINT(1.5 0.5)")], "id string, geometry string")
    found = contrada.spark.match(events, zones, keep=["geometry"])
    assert stated_crs(found, "geometry") == stated_crs(events, "geometry") == "EPSG:3857"


def test_the_events_of_a_match_that_is_written_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = contrada.spark.read_geoparquet(spark, points(tmp_path / "a.parquet"))
    zones = spark.createDataFrame([("a", "POINT(6.5 0.5)")], "id string, geometry string")
    answer = contrada.spark.match(events, zones, keep=["geometry"])
    assert contrada.spark.write_geoparquet(answer, tmp_path / "out", crs="EPSG:2154") == 1
    assert contrada.spark.counts(answer).evaluated == 10


def test_a_folder_is_overwritten_where_asked_even_by_its_own_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    path.mkdir()
    points(path / "a.parquet")
    frame = contrada.spark.read_geoparquet(spark, path)
    with pytest.raises(InvalidInput, match=r'out: already exists; mode="overwrite"'):
        contrada.spark.write_geoparquet(frame, path)
    native = frame.where("id < 3").selectExpr(
        "id", "st_setsrid(st_geomfromwkb(geometry), 3857) AS geometry"
    )
    assert contrada.spark.write_geoparquet(native, path, mode="overwrite") == 3
    seen = geopandas.read_parquet(path)
    assert (list(seen.id), seen.crs.to_epsg()) == ([0, 1, 2], 3857)
    assert list(tmp_path.iterdir()) == [path]


def test_no_rows_are_a_file_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = stating(spark, "EPSG:2154")
    assert contrada.spark.write_geoparquet(frame, tmp_path / "out") == 0
    seen = geopandas.read_parquet(tmp_path / "out")
    assert (len(seen), list(seen.columns), seen.crs) == (0, ["id", "geometry"], "EPSG:2154")


def test_a_geometry_that_cannot_be_read_is_named_and_leaves_all_as_it_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [(1, "POINT (1 2)"), (2, "POINT (1 2"), (3, None)]
    frame = spark.createDataFrame(rows, "id int, geometry string").coalesce(1)
    with pytest.raises(InvalidInput, match=r"out: partition 0: row 1 has no readable geometry"):
        contrada.spark.write_geoparquet(frame, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"geometry": "shape"}, "no column 'shape' .*; the columns are id, geometry"),
        ({"geometry": "id"}, "column 'id' is of type int; geometries are binary"),
        ({"mode": "append"}, "mode 'append' is unknown; choose one of error, overwrite"),
        ({"crs": "EPSG:4326"}, "'geometry' is in EPSG:2154, not in EPSG:4326; transform it"),
        ({"crs": "EPSG:0"}, 'unknown coordinate system "EPSG:0"'),
        ({"crs": ""}, "the coordinate system is an empty string"),
    ],
)
def test_wrong_arguments_of_a_write_are_refused_before_anything_runs(
    spark: SparkSession,
    tmp_path: Path,
    options: dict[str, str],
    words: str,
    nothing_runs: Callable[[], bool],
) -> None:
    with pytest.raises(InvalidInput, match=words):
        contrada.spark.write_geoparquet(stating(spark, "EPSG:2154"), tmp_path / "out", **options)
    assert nothing_runs()


def test_frames_that_no_file_can_hold_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = stating(spark, None)
    stream = spark.readStream.format("rate").load()
    for wrong, words in [
        (stream, "a stream cannot be written"),
        ([1], "only a DataFrame can be written, not list"),
        (frame.union(frame).toDF("geometry", "geometry"), "2 columns are named 'geometry'"),
        (
            frame.selectExpr("*", "INTERVAL 1 MONTH AS span"),
            "out, column 'span': Spark cannot pass interval month",
        ),
    ]:
        with pytest.raises(InvalidInput, match=words):
            contrada.spark.write_geoparquet(wrong, tmp_path / "out")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
