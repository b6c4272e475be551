"""What `contrada.spark.match` refuses, when, and what becomes of bad rows."""

from __future__ import annotations

import json
import struct
import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada.spark
from contrada.errors import BadRows, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

POINT = shapely.to_wkb(shapely.Point(1, 2))
BOW_TIE = shapely.to_wkb(shapely.from_wkt("POLYGON((0 0,4 4,4 0,0 4,0 0))"))
DIRTY: list[tuple[str | None, bytes | None, str]] = [
    ("good", POINT, "one"),
    ("bow tie", BOW_TIE, "two"),
    ("infinite", shapely.to_wkb(shapely.from_wkt("LINESTRING(0 0,1 inf)")), "three"),
    ("cut", POINT[:-1], "four"),
    (None, POINT, "five"),
    ("curve", bytes.fromhex("010800000003000000" + "00" * 48), "six"),
    ("empty", shapely.to_wkb(shapely.from_wkt("POLYGON EMPTY")), "seven"),
    ("nowhere", None, "eight"),
    ("deep", struct.pack("<BII", 1, 7, 1) * 30_000, "nine"),
    ("deep areas", struct.pack("<BII", 1, 6, 1) * 30_000, "ten"),
]
FAULTS = {
    "bow tie": ("invalid", "column 'geometry'", "self-intersection at (2, 2)"),
    "infinite": ("non_finite", "column 'geometry'", "(1.0, inf) at vertex 1"),
    "cut": ("undecodable", "column 'geometry'", "20 bytes"),
    None: ("null_id", "column 'id'", "the id is missing"),
    "curve": ("curve", "column 'geometry'", "curves are not supported"),
    "deep": ("undecodable", "column 'geometry'", "(GEOMETRY_DEPTH_MAX)"),
    "deep areas": ("undecodable", "column 'geometry'", "270000 bytes"),
}


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    """One event, at (1, 2)."""
    return spark.createDataFrame([(1, bytearray(POINT), 5)], "id long, geometry binary, wind int")


@pytest.fixture
def dirty(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        [(id_, wkb and bytearray(wkb), note) for id_, wkb, note in DIRTY],
        "id string, geometry binary, note string",
    ).repartition(3)


@pytest.fixture
def zone(spark: SparkSession) -> DataFrame:
    """One subscription, to all between 0 and 4."""
    box = bytearray(shapely.to_wkb(shapely.box(0, 0, 4, 4)))
    return spark.createDataFrame([("all", box)], "id string, geometry binary")


@pytest.fixture
def nothing_runs(spark: SparkSession) -> Callable[[], bool]:
    """A function that tells whether no job has started since the test began."""
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    return lambda: set(tracker.getJobIdsForGroup()) == before


# Arguments and schemas


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"plan": "magic"}, InvalidInput, "plan 'magic' is unknown; .*auto, broadcast"),
        ({"evaluator": "rough"}, InvalidInput, "evaluator 'rough' is unknown"),
        ({"output": "rows"}, InvalidInput, "output 'rows' is unknown; choose one of pairs, counts"),
        ({"event_id": "key"}, InvalidInput, r"events .*'key'.*id, geometry, wind; event_id=…"),
        ({"subscription_id": "key"}, InvalidInput, r"subscriptions .*'key'.*subscription_id"),
        ({"event_id": "geometry"}, InvalidInput, "events, column 'geometry': .* not binary"),
        ({"keep": ["wind", "kind"]}, InvalidInput, "'kind' to keep; they have id, geometry, wind"),
        ({"keep": "wind"}, InvalidInput, r"write keep=\['wind'\]"),
    ],
)
def test_a_wrong_argument_is_refused_by_name_before_anything_runs(
    events: DataFrame,
    zone: DataFrame,
    options: dict[str, Any],
    error: type[Exception],
    words: str,
    nothing_runs: Callable[[], bool],
) -> None:
    with pytest.raises(error, match=words):
        contrada.spark.match(events, zone, **options)
    assert nothing_runs()


@pytest.mark.parametrize("plan", ["auto", "broadcast"])
def test_the_plans_that_exist_give_the_same(events: DataFrame, zone: DataFrame, plan: str) -> None:
    answer = contrada.spark.match(events, zone, plan=plan, evaluator="exact")
    assert [tuple(row) for row in answer.collect()] == [(1, "all", None, None)]


def test_subscriptions_that_are_a_stream_are_refused(
    spark: SparkSession, events: DataFrame, nothing_runs: Callable[[], bool]
) -> None:
    stream = spark.readStream.format("rate").load().withColumnRenamed("value", "id")
    with pytest.raises(InvalidInput, match="subscriptions cannot be a stream"):
        contrada.spark.match(events, stream)
    assert nothing_runs()


@pytest.mark.parametrize("kind", ["double", "boolean", "decimal(20,0)", "timestamp"])
def test_ids_of_another_type_are_refused_by_column_and_type(
    events: DataFrame, zone: DataFrame, kind: str, nothing_runs: Callable[[], bool]
) -> None:
    typed = events.selectExpr(f"CAST(NULL AS {kind}) AS id", "geometry")
    for arguments, whose in (((typed, zone), "events"), ((events, typed), "subscriptions")):
        with pytest.raises(InvalidInput) as refused:
            contrada.spark.match(*arguments)
        assert f"{whose}, column 'id': " in str(refused.value)
        assert refused.value.message.endswith(f"not {kind}")
        assert f"{whose.removesuffix('s')}_id=…" in str(refused.value)
    assert nothing_runs()


@pytest.mark.parametrize(
    ("output", "clashing", "free"),
    [
        ("pairs", ["event", "subscription", "subscriber", "version", "error"], ["n"]),
        ("counts", ["event", "n", "error"], ["subscription", "version"]),
    ],
)
def test_a_kept_column_must_not_be_called_like_one_of_the_answer(
    events: DataFrame, zone: DataFrame, output: str, clashing: list[str], free: list[str]
) -> None:
    wide = events.selectExpr("*", *(f"7 AS {name}" for name in [*clashing, *free]))
    for name in clashing:
        with pytest.raises(InvalidInput, match=f"'{name}' cannot be kept"):
            contrada.spark.match(wide, zone, keep=[name], output=output)
    (row,) = contrada.spark.match(wide, zone, keep=free, output=output).collect()
    assert [row[name] for name in free] == [7] * len(free)


def test_subscriptions_need_a_filter_or_a_geometry(
    events: DataFrame, zone: DataFrame, nothing_runs: Callable[[], bool]
) -> None:
    with pytest.raises(InvalidInput, match="'filter' or 'geometry'; they have id, relation"):
        contrada.spark.match(events, zone.selectExpr("id", "'within' AS relation"))
    assert nothing_runs()


# Subscriptions


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("b", "wind LIEK 3", None, None), ["'filter'", '"LIEK"', "character 5", "'wind LIEK 3'"]),
        (("b", r'{"property": "\ud800"}', None, None), ["'filter'", "not valid Unicode at $.prop"]),
        (("b", "wind > 3", POINT, None), ["'filter'", "geometry as well"]),
        (("b", None, BOW_TIE, None), ["'geometry'", "self-intersection at (2, 2)", "0x0103"]),
        (("b", None, None, None), ["'geometry'", "missing"]),
        (("b", None, POINT[:-1], None), ["'geometry'", "20 bytes"]),
        (("b", None, POINT, "near"), ["'relation'", "'near'"]),
        ((None, None, POINT, None), ["'id'", "missing"]),
    ],
)
def test_a_bad_subscription_is_refused_by_id_and_value_before_events_are_looked_at(
    spark: SparkSession, row: tuple[Any, ...], words: list[str]
) -> None:
    def fail(batches: Any) -> Any:
        raise AssertionError("the events were looked at")

    events = spark.range(1).mapInArrow(fail, "id long, geometry binary, wind int")
    rows = [
        ("a", "wind > 3", None, None),
        tuple(bytearray(v) if isinstance(v, bytes) else v for v in row),
    ]
    schema = "id string, filter string, geometry binary, relation string"
    with pytest.raises(InvalidInput) as refused:
        contrada.spark.match(events, spark.createDataFrame(rows, schema).coalesce(1))
    assert str(refused.value).startswith("subscriptions: ")
    for word in ["1 of 2 cannot be used", f"subscription {row[0]!r}, column", *words]:
        assert word in str(refused.value)


def test_an_id_that_is_taken_is_refused(events: DataFrame, zone: DataFrame) -> None:
    with pytest.raises(InvalidInput, match="'all': 2 rows have this id"):
        contrada.spark.match(events, zone.union(zone))


@pytest.mark.parametrize("files", [1, 6], ids=["in one part", "in several"])
def test_rows_with_an_id_that_others_have_are_counted_among_all_rows(
    spark: SparkSession, events: DataFrame, files: int
) -> None:
    given = spark.sparkContext.parallelize([(each, "wind > 3") for each in "aaabbc"], files)
    rows = spark.createDataFrame(given, "id string, filter string")
    with pytest.raises(BadRows) as refused:
        contrada.spark.match(events, rows)
    assert refused.value.message == "subscriptions: 3 of 6 cannot be used"
    counts = {"'a'": 3, "'b'": 2}
    assert sorted(refused.value.rows) == [
        f"subscription {id_}: {count} rows have this id" for id_, count in counts.items()
    ]


def test_a_constraint_on_a_column_that_no_event_has_is_warned_of_or_refused(
    spark: SparkSession, events: DataFrame
) -> None:
    rich = events.selectExpr("*", "named_struct('name', 'a') AS place")
    texts = [(1, "wind > 3 OR winf > 3"), (2, "place.title = 'a'"), (3, "wind.speed > 1")]
    zones = spark.createDataFrame(texts, "id int, filter string")
    words = "constraints read 'place.title', 'wind.speed', 'winf', which no event has"
    with pytest.warns(UserWarning, match=words) as heard:
        answer = contrada.spark.match(rich, zones)
    (ours,) = (warning for warning in heard if warning.category is UserWarning)
    assert ours.filename == __file__
    assert [row.subscription for row in answer.collect()] == [1]
    with pytest.raises(InvalidInput, match=words):
        contrada.spark.match(rich, zones, strict=True)


def test_a_column_in_other_letters_than_it_should_be_is_warned_of_or_refused(
    events: DataFrame, zone: DataFrame
) -> None:
    words = "subscriptions: the column 'Where' is ignored; rename it to 'where' to use it"
    miscased = zone.selectExpr("*", "'wind > 9' AS Where")
    with pytest.warns(UserWarning, match=words) as heard:
        contrada.spark.match(events, miscased)
    (ours,) = (warning for warning in heard if warning.category is UserWarning)
    assert ours.filename == __file__
    with pytest.raises(InvalidInput, match=words):
        contrada.spark.match(events, miscased, strict=True)


def test_constraints_on_columns_that_all_events_have_are_not_warned_of(
    spark: SparkSession, events: DataFrame
) -> None:
    rich = events.selectExpr("*", "named_struct('name', 'a') AS place", "1 AS `x.y`")
    texts = [
        (1, "wind > 3 AND place.name = 'a'"),
        (2, '"x.y" = 1'),
        (3, "S_EQUALS(geometry, POINT(1 2))"),
    ]
    zones = spark.createDataFrame(texts, "id int, filter string")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        answer = contrada.spark.match(rich, zones, strict=True)
    assert sorted(row.subscription for row in answer.collect()) == [1, 2, 3]


# Events


@pytest.mark.parametrize("number", range(1, 6))
def test_a_bad_event_fails_the_job_and_is_named_by_id_column_and_reason(
    spark: SparkSession, zone: DataFrame, number: int
) -> None:
    from pyspark.errors import PythonException

    id_, wkb, _ = DIRTY[number]
    assert wkb is not None
    rows = [("good", bytearray(POINT)), (id_, bytearray(wkb))]
    answer = contrada.spark.match(spark.createDataFrame(rows, "id string, geometry binary"), zone)
    with pytest.raises(PythonException) as failed:
        answer.collect()
    _, place, reason = FAULTS[id_]
    (line,) = [line for line in str(failed.value).splitlines() if "InvalidInput: " in line]
    assert line.startswith(f"contrada.errors.InvalidInput: event {id_!r}, {place}: ")
    assert reason in line


def test_quarantine_gives_each_bad_event_back_once_and_leaves_the_others_alone(
    dirty: DataFrame, zone: DataFrame
) -> None:
    answer = contrada.spark.match(dirty, zone, quarantine=True, keep=["note"])
    assert answer.columns == ["event", "subscription", "subscriber", "version", "note", "error"]
    rows = answer.collect()
    assert len(rows) == len(FAULTS) + 1
    good = [row for row in rows if row.error is None]
    assert [(row.event, row.subscription, row.note) for row in good] == [("good", "all", "one")]
    notes = {id_: note for id_, _, note in DIRTY}
    bad = {row.event: row for row in rows if row.error is not None}
    assert bad.keys() == FAULTS.keys()
    for id_, (code, place, reason) in FAULTS.items():
        row = bad[id_]
        assert (row.subscription, row.subscriber, row.version) == (None, None, None)
        assert (row.note, row.error.code, row.error.place) == (notes[id_], code, place)
        assert reason in row.error.message


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
def test_quarantine_names_the_file_that_a_bad_event_is_read_from(
    spark: SparkSession, zone: DataFrame, tmp_path: Path, plan: str
) -> None:
    for number, wkb in enumerate((POINT, POINT, BOW_TIE)):
        table = pa.table({"id": [number], "geometry": pa.array([wkb], pa.binary())})
        pq.write_table(table, tmp_path / f"part {number}.parquet")
    events = spark.read.parquet(str(tmp_path))
    place = f"in {tmp_path.as_uri()}/part%202.parquet, column 'geometry'"
    answer = contrada.spark.match(events, zone, plan=plan, quarantine=True)
    assert answer.columns[-1] == "error"
    found = {row.event: row.error and row.error.place for row in answer.collect()}
    assert found == {0: None, 1: None, 2: place}


def test_quarantine_names_no_file_where_events_do_not_come_straight_from_one(
    spark: SparkSession, zone: DataFrame, tmp_path: Path
) -> None:
    table = pa.table({"id": [2], "geometry": pa.array([BOW_TIE], pa.binary())})
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.select(["id"]), tmp_path / "b.parquet")
    events = spark.read.parquet(str(tmp_path / "a.parquet"))
    others = spark.read.parquet(str(tmp_path / "b.parquet"))
    for frame in (events.repartition(2), events.join(others, "id")):
        (row,) = contrada.spark.match(frame, zone, quarantine=True).collect()
        assert (row.event, row.error.place) == (2, "column 'geometry'")


def test_quarantine_of_counts_has_no_count_for_a_bad_event(
    dirty: DataFrame, zone: DataFrame
) -> None:
    answer = contrada.spark.match(dirty, zone, quarantine=True, output="counts")
    assert answer.columns == ["event", "n", "error"]
    counts = {row.event: (row.n, row.error and row.error.code) for row in answer.collect()}
    assert answer.count() == len(DIRTY), "rows in = rows matched against + rows quarantined"
    assert counts == {
        "good": (1, None),
        "empty": (0, None),
        "nowhere": (0, None),
        **{id_: (None, code) for id_, (code, _, _) in FAULTS.items()},
    }


def test_a_bad_geometry_of_another_attribute_is_bad_only_where_a_constraint_reads_it(
    spark: SparkSession, zone: DataFrame
) -> None:
    events = spark.createDataFrame(
        [(1, bytearray(POINT), bytearray(BOW_TIE))], "id int, geometry binary, `site: area` binary"
    )
    reads_it = spark.createDataFrame(
        [("a", 'S_INTERSECTS("site: area", POINT(1 1)) OR TRUE')], "id string, filter string"
    )
    (row,) = contrada.spark.match(events, reads_it, quarantine=True).collect()
    assert (row.subscription, row.error.place) == (None, "column 'site: area'")
    (row,) = contrada.spark.match(events, zone, quarantine=True).collect()
    assert (row.subscription, row.error) == ("all", None)


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
def test_text_that_is_no_geometry_is_a_bad_event(spark: SparkSession, plan: str) -> None:
    texts = ["POINT(1 1)", "P0INT(1 1)", "", None, '{"type":"Point","coordinates":[1,1]}']
    rows = [(number, text, "nonsense") for number, text in enumerate(texts)]
    events = spark.createDataFrame(rows, "id int, geometry string, name string")
    area = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
    zones = [("a", f"S_INTERSECTS(geometry, {area})"), ("b", f"S_INTERSECTS(name, {area})")]
    subscriptions = spark.createDataFrame(zones, "id string, filter string")
    found = contrada.spark.match(events, subscriptions, plan=plan, quarantine=True).collect()
    answer = [(row.event, row.subscription, row.error and row.error.code) for row in found]
    assert sorted(answer) == [(0, "a", None), (1, None, "undecodable"), (4, "a", None)]
    (reason,) = (row.error.message for row in found if row.error)
    assert "it is not WKT, hex WKB or GeoJSON (value 'P0INT(1 1)')" in reason


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
def test_the_primary_column_is_judged_under_its_own_name(
    spark: SparkSession, tmp_path: Path, plan: str
) -> None:
    column = {"encoding": "WKB", "geometry_types": []}
    geo = {"version": "1.1.0", "primary_column": "area", "columns": {"area": column}}
    table = pa.table({"id": [1, 2], "area": ["POINT(1 1)", "nonsense"]})
    pq.write_table(
        table.replace_schema_metadata({"geo": json.dumps(geo)}), tmp_path / "events.parquet"
    )
    events = contrada.spark.read_geoparquet(spark, tmp_path / "events.parquet")
    reads_it = "S_INTERSECTS(area, POLYGON((0 0,4 0,4 4,0 4,0 0)))"
    subscriptions = spark.createDataFrame([("a", reads_it)], "id string, filter string")
    found = contrada.spark.match(events, subscriptions, plan=plan, quarantine=True).collect()
    answer = [(row.event, row.subscription, row.error and row.error.place) for row in found]
    assert sorted(answer)[0] == (1, "a", None)
    assert sorted(answer)[1][2].endswith("column 'area'")


def test_repair_mends_events_and_subscriptions(spark: SparkSession) -> None:
    from pyspark.errors import PythonException

    bow = bytearray(BOW_TIE)
    rows = [(1, bow), (2, bytearray(shapely.to_wkb(shapely.Point(3.5, 2))))]
    events = spark.createDataFrame(rows, "id int, geometry binary")
    zones = spark.createDataFrame(
        [("bow", bow), ("empty", bytearray(DIRTY[6][1] or b""))], "id string, geometry binary"
    )
    with pytest.raises(InvalidInput, match=r"'bow', column 'geometry'.*self-intersection"):
        contrada.spark.match(events, zones)
    answer = contrada.spark.match(events, zones, repair=True)
    assert sorted(map(tuple, answer.collect())) == [
        (1, "bow", None, None),
        (2, "bow", None, None),
    ]
    cut = events.selectExpr("id", "substring(geometry, 1, 20) AS geometry")
    with pytest.raises(PythonException, match=r"event [12], column 'geometry'"):
        contrada.spark.match(cut, zones, repair=True).collect()
    quarantined = contrada.spark.match(cut, zones, repair=True, quarantine=True).collect()
    assert sorted((row.event, row.error.code) for row in quarantined) == [
        (1, "undecodable"),
        (2, "undecodable"),
    ]
