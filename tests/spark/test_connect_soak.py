"""Spark Connect: everything public works through a remote session, which has no JVM and no RDDs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from contrada.spark import java

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.soak, pytest.mark.spark]

# A process of its own: one that has a classic session can have no remote one.
SCRIPT = """
import json

import pyspark.sql.connect.dataframe
from pyspark.sql import SparkSession

import contrada.spark

spark = SparkSession.builder.remote("local[2]").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "4")
events = spark.createDataFrame(
    [(n, f"POINT({n % 10} {n // 10})", float(n)) for n in range(100)],
    "id long, geometry string, wind double",
)
assert isinstance(events, pyspark.sql.connect.dataframe.DataFrame)
zones = spark.createDataFrame(
    [
        ("a", "POLYGON((0 0, 5 0, 5 5, 0 0))", None),
        ("b", "POLYGON((3 0, 9 0, 9 9, 3 0))", "wind > 5"),
    ],
    "id string, geometry string, where string",
)


def find(events, plan):
    answer = contrada.spark.match(events, zones, plan=plan)
    pairs = sorted((row.event, row.subscription) for row in answer.collect())
    found = contrada.spark.counts(answer)
    assert (found.events, found.evaluated, found.set_aside) == (100, 100, 0), found
    return pairs


def count(plan):
    answer = contrada.spark.match(events, zones, plan=plan, output="counts")
    return sum(row.n for row in answer.collect())


results = {"broadcast": find(events, "broadcast"), "partitioned": find(events, "partitioned")}
totals = {f"counts {plan}": count(plan) for plan in ("broadcast", "partitioned")}

contrada.spark.register(spark, "fences", zones)
events.createOrReplaceTempView("events")
found = spark.sql("SELECT id, explode(fences(struct(*))) AS zone FROM events").collect()
results["function"] = sorted((row.id, row.zone) for row in found)
found = spark.sql("SELECT * FROM fences_match(TABLE(events))").collect()
results["table function"] = sorted((int(row.event), row.subscription) for row in found)

rows = contrada.spark.write_geoparquet(events, "events.parquet", crs="EPSG:4326")
assert rows == 100, rows
again = contrada.spark.read_geoparquet(spark, "events.parquet")
results["GeoParquet"] = find(again, "auto")
explained = {plan: str(contrada.spark.explain(events, zones, plan=plan)) for plan in (
    "broadcast", "partitioned"
)}
print(json.dumps({"results": results, "totals": totals, "explained": explained}))
spark.stop()
"""


def expected_pairs() -> list[list[object]]:
    """What the matcher finds."""
    import contrada

    matcher = contrada.Matcher()
    matcher.add("a", geometry="POLYGON((0 0, 5 0, 5 5, 0 0))")
    matcher.add("b", geometry="POLYGON((3 0, 9 0, 9 9, 3 0))", where="wind > 5")
    events = [{"geometry": f"POINT({n % 10} {n // 10})", "wind": float(n)} for n in range(100)]
    return [[n, zone] for n, event in enumerate(events) for zone in matcher.match(event)]


def test_everything_works_through_spark_connect(tmp_path: Path) -> None:
    environment = os.environ | {
        "JAVA_HOME": str(java.launcher_home(java.find())),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    expected = expected_pairs()
    assert len(expected) > 20
    for name, pairs in said["results"].items():
        assert pairs == expected, name
    assert said["totals"] == dict.fromkeys(said["totals"], len(expected))
    for plan, text in said["explained"].items():
        assert text.startswith(f"plan: {plan} ")
