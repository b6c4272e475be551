"""Which files a stream finds, and how it opens them: names are names, whatever is in them."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from contrada.errors import InvalidInput, Unavailable
from contrada.spark.event_files import find_first, list_passed_over
from contrada.spark.file_stream import FileColumns, ReadFilesTask, read_file_stream
from contrada.spark.handshake import Handshake

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PATTERNS = ["a?.csv", "b[x].csv", "c{a,b}.csv", "d*.csv", "e\\f.csv", "]g.csv", "h}.csv"]
TEXT = "id,lon,lat\n{},0.5,0.5\n"
ODD = ["a#1.csv", "(a)^!$|+,.csv", "a%20b.csv", "a%.csv", "a b.csv", "a:b.csv", "A.CSV", "ä.Csv"]


def read(path: str, columns: FileColumns) -> list[object]:
    """The ids of the rows that a task reads from a file as Spark names it."""
    task = ReadFilesTask(Handshake.here(), columns)
    batch = pa.RecordBatch.from_pydict({"path": [path]})
    return [row["id"] for found in task(iter([batch])) for row in found.to_pylist()]


@pytest.fixture
def columns(tmp_path: Path) -> FileColumns:
    (tmp_path / "first.csv").write_text(TEXT.format(0))
    return FileColumns.survey(str(tmp_path / "first.csv"), None)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("scheme", ["file:", "file://", ""])
def test_a_file_is_opened_under_its_own_name(
    scheme: str, name: str, tmp_path: Path, columns: FileColumns
) -> None:
    (tmp_path / name).write_text(TEXT.format(7))
    assert read(f"{scheme}{tmp_path}/{name}", columns) == [7]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_batch_with_a_name_that_is_a_pattern_is_refused(
    name: str, tmp_path: Path, columns: FileColumns
) -> None:
    (tmp_path / name).write_text(TEXT.format(7))
    with pytest.raises(InvalidInput, match="which Spark takes for a pattern, and reads the other"):
        read(f"file:{tmp_path}/{name}", columns)


def test_a_file_that_is_taken_away_too_early_is_no_bad_row(
    tmp_path: Path, columns: FileColumns
) -> None:
    with pytest.raises(Unavailable, match=r"gone.csv: was taken away before it was read"):
        read(f"file:{tmp_path}/gone.csv", columns)


def test_a_file_elsewhere_is_refused(columns: FileColumns) -> None:
    with pytest.raises(InvalidInput, match="must be on a file system that every machine mounts"):
        read("hdfs://host/a.csv", columns)


def test_columns_are_not_learnt_from_what_spark_passes_over(tmp_path: Path) -> None:
    for name in (".hidden.csv", "_draft.csv", "notes.txt"):
        (tmp_path / name).write_text(TEXT.format(1))
    assert find_first(str(tmp_path)) is None
    assert find_first(str(tmp_path / "*.csv")) is None
    (tmp_path / "Z.CSV").write_text(TEXT.format(1))
    assert find_first(str(tmp_path)) == str(tmp_path / "Z.CSV")
    assert find_first(f"{tmp_path}/{{Y,Z}}.{{csv,CSV}}") == str(tmp_path / "Z.CSV")


def test_a_folder_that_spark_would_take_for_a_pattern_is_refused(
    tmp_path: Path, columns: FileColumns
) -> None:
    for name in ("in[1]", "in]"):
        (tmp_path / name).mkdir()
        message = rf"{re.escape(name)}: Spark takes a name with one of .* for a pattern; rename the"
        with pytest.raises(InvalidInput, match=message):
            read_file_stream(None, str(tmp_path / name), columns)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match=message):
            find_first(str(tmp_path / name))


@pytest.mark.parametrize("name", ["_draft.csv", ".hidden.csv"])
def test_a_file_that_spark_does_not_look_at_is_refused(
    name: str, tmp_path: Path, columns: FileColumns
) -> None:
    (tmp_path / name).write_text(TEXT.format(1))
    message = f"{name}: Spark does not look at files whose names begin with '.' or '_'; rename it"
    with pytest.raises(InvalidInput, match=message):
        read_file_stream(None, str(tmp_path / name), columns)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=message):
        find_first(str(tmp_path / name))


def test_files_that_are_not_read_are_listed_with_the_reason(tmp_path: Path) -> None:
    for name in ("a.csv", "b[1].csv", "c.geojson", ".hidden", "_draft"):
        (tmp_path / name).write_text(TEXT.format(1))
    (tmp_path / "folder").mkdir()
    (tmp_path / "d.parquet").touch()
    found = list_passed_over(str(tmp_path))
    names = ("b[1].csv", "c.geojson", "d.parquet")
    assert sorted(found) == [str(tmp_path / name) for name in names]
    assert "it is empty" in found[str(tmp_path / "d.parquet")]
    assert "for a pattern; rename it" in found[str(tmp_path / "b[1].csv")]
    assert "only files that end in .parquet, " in found[str(tmp_path / "c.geojson")]
    assert list(list_passed_over(f"{tmp_path}/*[v]")) == [str(tmp_path / "b[1].csv")]
    assert list_passed_over(str(tmp_path / "a.csv")) == {}


@pytest.mark.spark
@pytest.mark.parametrize("pattern", ["", "/*"])
def test_files_beside_one_whose_name_is_a_pattern_are_read_once(
    pattern: str, tmp_path: Path, columns: FileColumns, spark: SparkSession
) -> None:
    for name in ("a.csv", *PATTERNS):
        (tmp_path / name).write_text(TEXT.format(1))
    stream = read_file_stream(spark, str(tmp_path) + pattern, columns)
    query = stream.writeStream.format("memory").queryName("once").trigger(availableNow=True)
    query.start().awaitTermination()
    assert sorted(row["id"] for row in spark.table("once").collect()) == [0, 1]


@pytest.mark.spark
@pytest.mark.parametrize("name", ["a.csv", "(a)^!$|+,.csv", "a b#%20.csv", "a.geojson"])
def test_a_single_file_is_read_and_none_beside_it(
    name: str, tmp_path: Path, columns: FileColumns, spark: SparkSession
) -> None:
    for other in (f"b{name}", f"{name}.csv"):
        (tmp_path / other).write_text(TEXT.format(1))
    place = {"type": "Point", "coordinates": [0.5, 0.5]}
    feature = {"type": "Feature", "id": 7, "properties": {}, "geometry": place}
    is_json = name.endswith("json")
    (tmp_path / name).write_text(json.dumps(feature) if is_json else TEXT.format(7))
    stream = read_file_stream(spark, str(tmp_path / name), columns)
    query = stream.writeStream.format("memory").queryName("single").trigger(availableNow=True)
    query.start().awaitTermination()
    assert [row["id"] for row in spark.table("single").collect()] == [7]


@pytest.mark.spark
def test_a_stream_finds_every_file_whatever_its_name_and_age(
    tmp_path: Path, columns: FileColumns, spark: SparkSession
) -> None:
    for number, name in enumerate(ODD, 1):
        if name != "a:b.csv":  # which Hadoop cannot list
            (tmp_path / name).write_text(TEXT.format(number))
    os.utime(tmp_path / "A.CSV", (0, 0))
    stream = read_file_stream(spark, str(tmp_path), columns, files_max=1)
    query = stream.writeStream.format("memory").queryName("names").trigger(availableNow=True)
    query.start().awaitTermination()
    found = sorted(row["id"] for row in spark.table("names").where("__fault IS NULL").collect())
    assert found == [0, 1, 2, 3, 4, 5, 7, 8]
