"""Which files a stream finds, and how it opens them: names are names, whatever is in them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from contrada.errors import InvalidInput, Unavailable
from contrada.spark.event_files import find_first
from contrada.spark.file_stream import FileColumns, ReadFilesTask, read_file_stream
from contrada.spark.handshake import Handshake

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TEXT = "id,lon,lat\n{},0.5,0.5\n"
ODD = ["a#1.csv", "a?.csv", "a%20b.csv", "a%.csv", "a b.csv", "a:b.csv", "A.CSV", "ä.Csv"]


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
    (tmp_path / "in[1]").mkdir()
    with pytest.raises(
        InvalidInput, match=r"in\[1\]: Spark takes a name with one of .* for a patt"
    ):
        read_file_stream(None, str(tmp_path / "in[1]"), columns)  # type: ignore[arg-type]


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
