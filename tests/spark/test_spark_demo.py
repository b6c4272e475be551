"""`contrada demo` as a whole: files, pictures and figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from contrada.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_demo_ends_stdout_with_one_json_object_and_leaves_the_session_running(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a" / "demo"
    assert main(["demo", "--folder", str(folder), "--master", "local[2]", "--json"]) == 0
    said = capsys.readouterr()
    (line,) = said.out.splitlines()
    figures = json.loads(line)
    assert figures["subscriptions"] == pq.read_metadata(folder / "sites.parquet").num_rows
    assert figures["events"] == pq.read_metadata(folder / "events.parquet").num_rows
    assert figures["matches"] == pq.read_table(folder / "matches.parquet").num_rows > 0
    assert figures["matches"] > figures["events_matched"] > figures["subscriptions_matched"] > 0
    assert figures["output"] == str(folder / "matches.parquet")
    assert figures["map"] == str(folder / "map.html")
    assert figures["image"] == str(folder / "map.png")
    assert (folder / "map.html").stat().st_size > (folder / "map.png").stat().st_size > 10_000
    assert f"{figures['matches']:,}" in said.err
    assert spark.range(3).count() == 3
