"""A stream that fails anywhere in a batch and is started again, or is killed, writes each row once.

Who reads the folders in between sees whole batches, and nothing twice.
"""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING

import pytest

import contrada.spark
from stream_runs import (
    PLACES,
    add_batch,
    check_partial,
    check_whole,
    child,
    fail_at,
    kill_at,
    query,
    read,
    read_by_arrow,
    read_by_duckdb,
    run,
    zones,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Path:
    """A folder with a published set and the events of two batches."""
    contrada.spark.publish(zones(spark), tmp_path / "zones")
    for number in range(2):
        add_batch(tmp_path, number)
    return tmp_path


@pytest.mark.parametrize("place", PLACES)
def test_a_batch_that_failed_anywhere_is_written_once(
    place: str, folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_at(place, spark, folder, monkeypatch)
    assert check_partial(*read(folder)) >= {0}
    run(spark, folder)
    check_whole(folder, 2)


def test_a_replayed_batch_names_the_version_that_it_named_at_first(
    folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_at("the drafts are written", spark, folder, monkeypatch)
    (first,) = versions(folder)
    second = contrada.spark.publish(zones(spark, 3), folder / "zones", lead=0)
    add_batch(folder, 2)
    run(spark, folder)
    assert versions(folder, "batch < 2") == {first}
    assert versions(folder, "batch = 2") == {second}


def versions(folder: Path, where: str = "true") -> set[str]:
    files = f"read_parquet('{folder}/matches/**/*.parquet')"
    return {version for (version,) in query(f"SELECT version FROM {files} WHERE {where}")}


def test_a_stream_that_is_killed_between_its_two_folders_goes_on(
    folder: Path, spark: SparkSession
) -> None:
    kill_at("the bad rows are in place", folder)
    assert check_partial(*read(folder)) == {0}
    run(spark, folder)
    check_whole(folder, 2)


@pytest.mark.soak
@pytest.mark.parametrize("place", PLACES)
def test_a_stream_that_is_killed_anywhere_goes_on(
    place: str, folder: Path, spark: SparkSession
) -> None:
    kill_at(place, folder)
    assert check_partial(*read(folder)) >= {0}
    run(spark, folder)
    check_whole(folder, 2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_a_stream_that_is_killed_at_random_writes_each_row_once(
    seed: int, folder: Path, spark: SparkSession
) -> None:
    batches, generator = 40, random.Random(seed)
    for number in range(2, batches):
        add_batch(folder, number)
    for _ in range(4):
        wanted = min(batches, generator.randrange(1, 6) + look(folder))
        with child(folder, "never") as process:
            while look(folder) < wanted:
                with pytest.raises(subprocess.TimeoutExpired):  # it does not end by itself
                    process.wait(0.1)
    run(spark, folder)
    check_whole(folder, batches)


def look(folder: Path) -> int:
    """Read the folders, of a stream that may be running, in two ways; return how far it is."""
    if not (folder / "bad").exists() or not (folder / "matches").exists():
        return 0
    check_partial(*read_by_arrow(folder))
    return len(check_partial(*read_by_duckdb(folder)))
