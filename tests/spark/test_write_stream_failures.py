"""A stream that fails anywhere in a batch and is started again writes each row once.

Who reads the folders in between sees whole batches, and nothing twice.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import contrada.spark
from contrada.errors import InvalidInput
from stream_runs import (
    PLACES,
    add_batch,
    answer,
    check_partial,
    check_whole,
    expected,
    fail_at,
    prepare,
    query,
    read,
    run,
    zones,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def folder(tmp_path: Path, published_zones: Path) -> Path:
    """A folder with a published set and the events of two batches."""
    return prepare(tmp_path, published_zones, 2)


@pytest.mark.parametrize("place", PLACES)
def test_a_batch_that_failed_anywhere_is_written_once(
    place: str, folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_at(place, spark, folder, monkeypatch)
    assert check_partial(*read(folder)) >= {0}
    run(spark, folder)
    check_whole(folder, 2)


def test_files_that_were_listed_for_a_batch_which_never_began_join_the_next_one(
    folder: Path, spark: SparkSession
) -> None:
    run(spark, folder)
    for name in ("offsets/1", "offsets/.1.crc", "commits/1", "commits/.1.crc", "contrada/1.placed"):
        (folder / "checkpoint" / name).unlink()  # as if it had been killed before the offsets
    for name in ("matches", "bad"):
        shutil.rmtree(folder / name / "batch=1")
    add_batch(folder, 2)
    run(spark, folder)
    check_whole(folder, 3)
    assert {batch for *_, batch in read(folder)[0]} == {0, 1}


def test_new_events_are_not_lost_to_a_checkpoint_that_was_restored_from_a_copy(
    folder: Path, spark: SparkSession
) -> None:
    from pyspark.errors import StreamingQueryException

    run(spark, folder)
    checkpoint, copy = folder / "checkpoint", folder / "copy"
    shutil.copytree(checkpoint, copy)
    add_batch(folder, 2)
    run(spark, folder)
    shutil.rmtree(checkpoint)
    copy.rename(checkpoint)
    add_batch(folder, 3)
    with pytest.raises(StreamingQueryException, match=r"has batch=2 already.* batch 2, of other"):
        run(spark, folder)
    check_whole(folder, 3)
    for name in ("matches", "bad"):  # as the message says
        (folder / name / "batch=2").rename(folder / f"{name} of batch 2")
    run(spark, folder)
    check_whole(folder, 4)


def test_new_events_are_not_lost_when_the_last_offsets_are(
    folder: Path, spark: SparkSession
) -> None:
    run(spark, folder)
    for name in ("offsets/1", "offsets/.1.crc", "commits/1", "commits/.1.crc"):
        (folder / "checkpoint" / name).unlink()
    add_batch(folder, 2)
    with pytest.raises(
        InvalidInput, match="batch 1, but batch 1 has been written: its folder 'off"
    ):
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


def test_sparks_own_file_sink_writes_each_row_once_for_sparks_readers_alone(
    folder: Path, spark: SparkSession
) -> None:
    def write() -> None:
        writer = answer(spark, folder).writeStream.trigger(availableNow=True)
        options = {"checkpointLocation": str(folder / "checkpoint"), "path": str(folder / "plain")}
        writer.options(**options).format("parquet").start().awaitTermination()

    write()
    for log in ("checkpoint/commits", "plain/_spark_metadata"):
        for name in ("1", ".1.crc"):  # as if it had been killed when rows were written, and no more
            (folder / log / name).unlink()
    write()
    matches, bad = expected(range(2))
    found = spark.read.parquet(str(folder / "plain")).select("event", "subscription").collect()
    wanted = [(e, zone) for e, zone, _ in matches] + [(e, None) for e, *_ in bad]
    assert sorted(map(repr, map(tuple, found))) == sorted(map(repr, wanted))
    (others,) = query(f"SELECT count(*) FROM read_parquet('{folder}/plain/*.parquet')")
    assert others == (len(wanted) * 3 // 2,), "what DuckDB sees of batch 1 is there twice"
