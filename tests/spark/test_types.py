"""Every row of the table of types in docs/spark.md: what a predicate sees, there as in the library.

The session is in New York, so that a moment read in the wrong zone would be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import contrada
import contrada.spark
from contrada.errors import InvalidInput, Remedy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:.*which is never true"),  # of other types
]

DOCUMENT = Path(__file__).parents[2] / "docs" / "spark.md"
WKB = "X'0101000000000000000000F03F000000000000F03F'"  # POINT(1 1)
HERE = "POINT(1 1)"


@dataclass(frozen=True)
class Case:
    """A column: which row of the table it is for, its value in SQL, and tests of it.

    `unknown` tests are neither true nor false of that value.
    """

    kind: str
    column: str
    value: str
    true: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


CASES = [
    Case("boolean", "yes", "true", ("yes = TRUE", "yes <> FALSE"), ("yes = 1", "yes = 'true'")),
    Case("tinyint, smallint, int, bigint", "tiny", "-128Y", ("tiny = -128",), ("tiny = '-128'",)),
    Case("tinyint, smallint, int, bigint", "small", "300S", ("small BETWEEN 300 AND 300.5",)),
    Case("tinyint, smallint, int, bigint", "whole", "7", ("whole = 7.0", "whole / 2 = 3.5")),
    Case(
        "tinyint, smallint, int, bigint",
        "huge",
        "9007199254740993L",
        ("huge = 9007199254740993", "huge > 9007199254740992", "huge < 9007199254740994"),
    ),
    Case("float, double", "single", "0.1F", ("single > 0.1", "single < 0.10000001")),
    Case("float, double", "double", "0.1D", ("double = 0.1",), ("double = '0.1'",)),
    Case("float, double", "nan", "double('NaN')", (), ("nan = 1", "nan <> 1")),
    Case("decimal", "tenth", "0.1BD", ("tenth < 0.1", "tenth > 0.09999999999999999")),
    Case(
        "decimal",
        "dear",
        "12345678901234567890.12BD",
        ("dear > 12345678901234567890", "dear < 12345678901234567891"),
        ("dear = '12345678901234567890.12'",),
    ),
    Case("string", "word", "'Aé'", ("word = 'Aé'", "CASEI(word) = CASEI('aÉ')"), ("word = 1",)),
    Case("string", "padded", "CAST('ab' AS CHAR(2))", ("padded = 'ab'",)),
    Case("string", "short", "CAST('ab' AS VARCHAR(3))", ("short LIKE '_b'",)),
    Case("string", "lower", "'a' COLLATE UTF8_LCASE", ("lower <> 'A'", "lower = 'a'")),
    Case("string", "iso", "'2026-06-01T12:00:00'", ("iso = TIMESTAMP('2026-06-01T12:00:00Z')",)),
    Case("string", "wkt", f"'{HERE}'", (f"S_EQUALS(wkt, {HERE})",)),
    Case(
        "date",
        "day",
        "DATE'1500-02-28'",
        ("day = DATE('1500-02-28')", "day < TIMESTAMP('1500-02-28T00:00:00.000001Z')"),
        ("day = 1",),
    ),
    Case(
        "timestamp",
        "moment",
        "TIMESTAMP'2026-06-01 12:00:00.123456'",
        ("moment = TIMESTAMP('2026-06-01T16:00:00.123456Z')",),
        ("moment = 1", "moment = 'noon'"),
    ),
    Case(
        "timestamp",
        "long_ago",
        "TIMESTAMP'1500-02-28 00:00:00 UTC'",
        ("long_ago = DATE('1500-02-28')",),
    ),
    Case(
        "timestamp_ntz",
        "naive",
        "TIMESTAMP_NTZ'2026-06-01 12:00:00.123456'",
        ("naive = TIMESTAMP('2026-06-01T12:00:00.123456Z')", "T_AFTER(naive, DATE('2026-06-01'))"),
    ),
    Case("binary", "wkb", WKB, (f"S_EQUALS(wkb, {HERE})",), ("wkb = 'a'", "wkb = 1")),
    Case(
        "geometry, geography",
        "planar",
        f"st_setsrid(st_geomfromwkb({WKB}), 4326)",
        (f"S_EQUALS(planar, {HERE})",),
        ("planar = 1",),
    ),
    Case("geometry, geography", "globe", f"st_geogfromwkb({WKB})", (f"S_EQUALS(globe, {HERE})",)),
    Case(
        "array",
        "levels",
        "array(1, 2)",
        ("A_CONTAINS(levels, (1))", "A_EQUALS(levels, (2, 1))"),
        ("levels = 1",),
    ),
    Case(
        "array",
        "span",
        "array(DATE'2026-06-01', DATE'2026-06-03')",
        ("T_CONTAINS(span, TIMESTAMP('2026-06-02T00:00:00Z'))",),
    ),
    Case("array", "structs", "array(named_struct('a', 1))", ("NOT A_OVERLAPS(structs, (1, 'a'))",)),
    Case(
        "struct",
        "vehicle",
        "named_struct('speed', 5, 'first.owner', 'Ada', 'engine', named_struct('power', 90BD))",
        ("vehicle.speed = 5", "vehicle.first.owner = 'Ada'", "vehicle.engine.power > 89.5"),
        ("vehicle = 5",),
    ),
    Case("struct", "with.dot", "named_struct('a', 1)", ("with.dot.a = 1",)),
    Case(
        "struct",
        "geojson",
        "named_struct('type', 'Point', 'coordinates', array(1D, 1D))",
        (f"S_EQUALS(geojson, {HERE})",),
    ),
    Case(
        "struct",
        "place",
        f"named_struct('inner', named_struct('shape', st_geomfromwkb({WKB}), 'n', 1))",
        (f"S_EQUALS(place.inner.shape, {HERE})", "place.inner.n = 1"),
    ),
    Case(
        "map",
        "labels",
        "map('a', 1, 'b.c', 2)",
        ("labels.a = 1", "labels.b.c = 2", "labels.z IS NULL"),
        ("labels = 1", "labels.z = 1"),
    ),
    Case("map", "numbered", "map(1, 'a')", ('"numbered.1" IS NULL',)),
    Case("day-time interval", "lasting", "INTERVAL '1' DAY", (), ("lasting = 1", "lasting = '1'")),
    Case(
        "time",
        "clock",
        "TIME'12:00:00'",
        (),
        ("clock = '12:00:00'", "clock < TIMESTAMP('2026-06-01T12:00:00Z')"),
    ),
    Case("variant", "anything", "parse_json('1')", (), ("anything = 1", "anything = '1'")),
    Case("void", "nothing", "NULL", ("nothing IS NULL",), ("nothing = 1",)),
]
REFUSED = {
    "year-month interval": "INTERVAL '1' YEAR",
    "interval": "make_interval(1, 1)",
    "array of void": "array()",
    "struct with a name twice": "named_struct('a', 1, 'a', 2)",
}
IDS = ("tiny", "small", "whole", "huge", "word", "padded", "short", "lower", "iso", "wkt")


@pytest.fixture(scope="module")
def in_new_york(spark: SparkSession) -> Iterator[SparkSession]:
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)
    spark.conf.unset("spark.sql.timeType.enabled")


@pytest.fixture(scope="module")
def cases(in_new_york: SparkSession) -> list[Case]:
    """The cases of this Spark: older ones lack some types."""
    from pyspark.errors import AnalysisException

    def is_known(case: Case) -> bool:
        try:
            return bool(in_new_york.sql(f"SELECT {case.value}").columns)
        except AnalysisException:
            return False

    known = [case for case in CASES if is_known(case)]
    assert len(known) == len(CASES) or in_new_york.version < "4.3"
    return known


@pytest.fixture(scope="module")
def events(in_new_york: SparkSession, cases: list[Case]) -> DataFrame:
    """An event that has all values, and one that has none."""
    values = ", ".join(f"{case.value} AS `{case.column}`" for case in cases)
    nulls = ", ".join("NULL" for _ in cases)
    return in_new_york.sql(f"SELECT 0 AS id, {values} UNION ALL SELECT 1, {nulls}").coalesce(1)


@pytest.fixture(scope="module")
def tests(cases: list[Case]) -> dict[str, list[int]]:
    """Filters, and the events that satisfy them."""
    found: dict[str, list[int]] = {}
    for case in cases:
        found |= {test: [0, 1] if "IS NULL" in test else [0] for test in case.true}
        for test in case.unknown:
            found |= {test: [], f"NOT ({test})": []}
        found[f"{case.column} IS NULL"] = [0, 1] if case.kind == "void" else [1]
    return found


def as_frame(spark: SparkSession, filters: list[str]) -> DataFrame:
    return spark.createDataFrame(list(enumerate(filters)), "id int, filter string")


def test_the_table_has_a_row_for_each_type_and_no_other() -> None:
    section = DOCUMENT.read_text().partition("\n## Types\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \|.*\|$", section, re.MULTILINE)[1:]
    plain = [row.replace("`", "") for row in rows if not row.startswith("---")]
    assert sorted(plain) == sorted({*(case.kind for case in CASES), *REFUSED})


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
def test_each_type_means_what_the_table_says(
    in_new_york: SparkSession, events: DataFrame, tests: dict[str, list[int]], plan: str
) -> None:
    filters = list(tests)
    answer = contrada.spark.match(events, as_frame(in_new_york, filters), plan=plan)
    found: dict[str, list[int]] = {test: [] for test in filters}
    for row in sorted(answer.collect()):
        found[filters[row.subscription]].append(row.event)
    assert found == tests


def test_each_type_means_in_the_library_what_it_means_on_spark(
    events: DataFrame, tests: dict[str, list[int]]
) -> None:
    spatial = ("planar", "globe", "place")  # in Arrow Spark has structs of its own for these
    # Spark's own `toArrow` takes no null among structs whose fields are never null.
    row = events.drop(*spatial).where("id = 0").toArrow()
    both = {
        name: pa.concat_arrays([*row[name].chunks, pa.nulls(1, row[name].type)])
        for name in row.column_names
    }
    table = pa.table(both | {"id": pa.array([0, 1])})
    matcher = contrada.Matcher()
    filters = [test for test in tests if not any(name in test for name in spatial)]
    matcher.add_many(pa.table({"id": range(len(filters)), "filter": filters}))
    found: dict[str, list[int]] = {test: [] for test in filters}
    for pair in matcher.match_many(table, threads=1).to_pylist():
        found[filters[pair["subscription"]]].append(pair["event"])
    assert found == {test: tests[test] for test in filters}


def test_each_type_can_be_kept(in_new_york: SparkSession, events: DataFrame) -> None:
    keep = events.columns[1:]
    answer = contrada.spark.match(events, as_frame(in_new_york, ["TRUE"]), keep=keep)
    plain = [name for name in keep if name not in {"planar", "globe", "place"}]
    columns = [f"`{name}`" for name in plain]
    for name in plain:
        assert answer.schema[name].dataType == events.schema[name].dataType
    expected = sorted(map(repr, events.select("id", *columns).collect()))
    kept = answer.select("event", *columns).withColumnRenamed("event", "id")
    assert sorted(map(repr, kept.collect())) == expected


@pytest.mark.parametrize("kind", REFUSED)
def test_a_type_that_python_cannot_have_is_refused_by_column_if_it_is_wanted(
    in_new_york: SparkSession, kind: str
) -> None:
    from pyspark.sql import functions

    events = in_new_york.range(1).withColumn("odd", functions.expr(REFUSED[kind]))
    words = r"events, column 'odd': Spark cannot pass .* to Python; cast it"
    with pytest.raises(InvalidInput, match=words):
        contrada.spark.match(events, as_frame(in_new_york, ["odd IS NULL"]))
    with pytest.raises(InvalidInput, match=words):
        contrada.spark.match(events, as_frame(in_new_york, ["TRUE"]), keep=["odd"])
    answer = contrada.spark.match(events, as_frame(in_new_york, ["TRUE"]))
    assert [row.event for row in answer.collect()] == [0]


def test_an_id_is_an_integer_or_a_string(events: DataFrame) -> None:
    from contrada.spark.frames import check_id

    for name in events.columns[1:]:
        if name in IDS:
            check_id(events, name, "events", Remedy.SPARK_EVENT_ID)
        else:
            with pytest.raises(InvalidInput, match=f"column {name!r}: an id must be a string"):
                check_id(events, name, "events", Remedy.SPARK_EVENT_ID)
