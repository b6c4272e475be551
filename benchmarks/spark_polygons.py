"""Polygon events with full relations on local Spark, against Apache Sedona, Parquet to Parquet.

1,000 events of each type A, B, C (CR-tree paper, section 5.2) over 85,550 scattered polygons of
12–59 vertices. Asked is the Egenhofer relation of every pair that intersects. Ours are seven
subscriptions for each polygon, one for each relation but `ehDisjoint`, so that the id of a match
names the relation; Sedona joins by `ST_Intersects` and writes `ST_Relate` of each pair, with the
polygons decoded, cached and broadcast. Both must find the same relations as often.

Jobs take turns in sessions that are warm; medians of five; seed 1. Needs `make sedona`.

    python benchmarks/spark_polygons.py [--quick] [--repeats 5] [--events 1000]
"""

import argparse
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import contrada.spark
from contrada.model.geometry import as_array
from contrada.model.relation import EGENHOFER_NAMES, Relation, egenhofer
from contrada.reproduce.reporting import Column, Table
from contrada.reproduce.scenarios import EVENT_KINDS, event_region, scattered_regions
from reporting import Report, count, ratio, seconds
from sedona import Sedona, start_sedona
from spark_jobs import (
    Shapes,
    as_table,
    start_spark,
    time_in_turns,
    time_once,
    write_answer,
    write_events,
)

RELATIONS = [relation for relation in Relation if relation is not Relation.DISJOINT]
TARGET = 2.0


def main() -> int:
    """Race over all three types of events."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of polygons and events")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--events", type=int, default=1_000, help="of each type")
    options = parser.parse_args()
    share = 0.1 if options.quick else 1.0
    report = Report("spark_polygons", "pyspark")
    rng = np.random.default_rng(1)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sedona = stack.enter_context(start_sedona())
        if sedona is None:
            report.say("left out: there is no Sedona here (make sedona)")
            return 0
        report.say(f"Sedona: {sedona.versions}")
        spark = start_spark()
        stack.callback(spark.stop)
        race = Race(spark, sedona, folder, scattered_regions(rng, int(85_550 * share)))
        table = race.start(report)
        for kind in EVENT_KINDS:
            events = [event_region(rng, kind) for _ in range(int(options.events * share))]
            race.run(kind, as_array(events), options.repeats, table, report)
    return report.finish()


class Race:
    """We and Sedona over the same polygons."""

    def __init__(self, spark: Any, sedona: Sedona, folder: Path, polygons: Shapes) -> None:
        self._spark, self._sedona, self._folder = spark, sedona, folder
        self._zones = folder / "zones.parquet"
        numbers = np.arange(len(polygons))
        pq.write_table(as_table(numbers, polygons), self._zones)
        self._subscriptions = folder / "subscriptions.parquet"
        with pq.ParquetWriter(self._subscriptions, subscribe(numbers, polygons, 0).schema) as file:
            for number in range(len(RELATIONS)):
                file.write_table(subscribe(numbers, polygons, number))

    def start(self, report: Report) -> Table:
        """Say how many subscriptions there are; begin the table."""
        rows = pq.read_metadata(self._subscriptions).num_rows
        polygons = pq.read_metadata(self._zones).num_rows
        report.say(f"{polygons:,} polygons, {rows:,} subscriptions")
        return report.start_table(
            Column("type"),
            *map(count, ("events", "pairs")),
            *map(seconds, ("staging", "ours", "Sedona")),
            ratio("ratio"),
        )

    def run(self, kind: str, shapes: Shapes, repeats: int, table: Table, report: Report) -> None:
        """Time both on events of one type."""
        events = write_events(self._folder / kind, shapes)
        frame = self._spark.read.parquet(str(events))
        subscriptions = self._spark.read.parquet(str(self._subscriptions))
        answers: list[Any] = []
        staging_s = time_once(
            lambda: answers.append(contrada.spark.match(frame, subscriptions, plan="broadcast"))
        )
        ours, theirs = self._folder / "ours", self._folder / "theirs"
        jobs = {
            "ours": lambda: write_answer(answers[0], ours),
            "Sedona": lambda: self._sedona.join("relate", events, self._zones, theirs),
        }
        taken_s = time_in_turns(jobs, repeats)
        found = count_ours(ours)
        assert found == count_theirs(theirs), (found, count_theirs(theirs))
        faster = taken_s["Sedona"] / taken_s["ours"]
        pairs = sum(found.values())
        table.add(kind, len(shapes), pairs, staging_s, taken_s["ours"], taken_s["Sedona"], faster)
        report.ask_ratio(f"events of type {kind}: Sedona", faster, least=TARGET)


def subscribe(numbers: Any, polygons: Shapes, relation: int) -> pa.Table:
    """Subscribe to one relation to all polygons; the id is the polygon's number times 8 + it."""
    name = EGENHOFER_NAMES[RELATIONS[relation]]
    return as_table(numbers * 8 + relation, polygons, relation=[name] * len(polygons))


def count_ours(path: Path) -> Counter[Relation]:
    """Count our pairs by relation."""
    ids = pq.read_table(path, columns=["subscription"])["subscription"].to_numpy()
    numbers, counts = np.unique(ids % 8, return_counts=True)
    return Counter(
        {RELATIONS[n]: c for n, c in zip(numbers.tolist(), counts.tolist(), strict=True)}
    )


def count_theirs(path: Path) -> Counter[Relation]:
    """Count Sedona's pairs by relation, which its matrices tell."""
    found: Counter[Relation] = Counter()
    for row in pc.value_counts(pq.read_table(path, columns=["matrix"])["matrix"]).to_pylist():
        found[egenhofer(row["values"])] += row["counts"]
    return found


if __name__ == "__main__":
    sys.exit(main())
