"""A small stream of transitions that tests kill; as a program it follows what a folder has.

Each file of positions is a batch; the folder has a published set, and everything that the stream
writes.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

import contrada.spark
from boxed_tracks import EVENTS, OPTIONS, Position, as_table, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from transitions_oracle import Row


def add_positions(folder: Path, number: int, rows: list[Position]) -> None:
    """Add a file of positions: what is older comes before it."""
    (folder / "events").mkdir(exist_ok=True)
    path = folder / "events" / f"{number}.parquet"
    pq.write_table(as_table(rows), path)
    os.utime(path, (1_000_000 + number, 1_000_000 + number))


def follow_folder(spark: SparkSession, folder: Path) -> None:
    """Follow what there is, or go on with it."""
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not fences")
        answer = contrada.spark.transitions(
            events.parquet(str(folder / "events")), str(folder / "set"), shards=5, **OPTIONS
        )
    contrada.spark.write_stream(
        answer, folder / "moves", checkpoint=folder / "checkpoint", once=True
    ).awaitTermination()


def rows_of_batch(folder: Path, number: int) -> list[Row]:
    """The rows of a batch, in the order in which they were written."""
    files = sorted(folder.glob(f"moves/batch={number}/*.parquet"))
    return [row for file in files for row in read_rows(pq.ParquetFile(file).read())]


@contextmanager
def following(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that follows a folder; what is left of it in the end, its Java too, is killed."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    follow_folder(contrada.spark.session("local[2]"), parser.parse_args().folder)
