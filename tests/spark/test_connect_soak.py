"""Spark Connect: what is public works through a remote session, which has no JVM and no RDDs.

What does not is refused by name: streams of transitions, `write_stream`, and Kafka where the server
has no connector for it.
"""

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
from contrada.errors import ContradaError

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

version = contrada.spark.publish(zones, "zones", partitions=2)
events.write.parquet("in")
stream = spark.readStream.schema("id long, geometry string, wind double").parquet("in")
for plan in ("broadcast", "partitioned"):
    answer = contrada.spark.match(stream, "zones", plan=plan)
    places = {"checkpointLocation": f"checkpoint-{plan}", "path": f"out-{plan}"}
    writer = answer.writeStream.format("parquet").options(**places)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    rows = spark.read.parquet(f"out-{plan}").collect()
    assert {row.version for row in rows} == {version}
    results[f"stream {plan}"] = sorted((row.event, row.subscription) for row in rows)


def refused(call, *words, **options):
    try:
        call(*words, **options)
    except ContradaError as error:
        return str(error)


refusals = {
    "write_stream": refused(contrada.spark.write_stream, answer, "out", checkpoint="state"),
    "transitions": refused(
        contrada.spark.transitions,
        stream.selectExpr("*", "id AS object_id", "now() AS time"),
        "zones",
    ),
    "read_kafka": refused(contrada.spark.read_kafka, spark, "kafka://localhost/topic"),
}
said = {"results": results, "totals": totals, "explained": explained, "refusals": refusals}
print(json.dumps(said))
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
    refusals = said["refusals"]
    assert "write_stream does not run over Spark Connect" in refusals["write_stream"]
    assert "a stream do not run over Spark Connect" in refusals["transitions"]
    assert "this Spark session has no connector for Kafka" in refusals["read_kafka"]
