"""How fast points go from a topic of Kafka to another one through `match`, beside an identity.

1,000,000 points as WKB, in a topic of two partitions, over the 5,702 communes of
`fr_communes_paris_basin` (as many scattered polygons where the layer is not in `../shared/data`),
published as WKB, `within`. `ours` is `read_kafka`, `match` and `write_stream(…, once=True)`: a
CloudEvent for each pair. `identity` is a `mapInArrow` between Spark's own source and sink with the
trigger availableNow, which decodes nothing and writes as many messages of the same sizes, taken
from those that `ours` has written. Both are timed from the start of the query to its end, in a
broker and a Spark that are warm, and take turns in an order drawn anew each time; medians of five;
seed 1. Needs `make kafka`.

    python benchmarks/streams_kafka.py [--quick] [--points 1000000] [--repeats 5]
"""

import argparse
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import shapely

import contrada.spark
from contrada.reproduce.reporting import Column
from contrada.reproduce.scenarios import scattered_regions
from reporting import MIB, Report, count, mebibytes, ratio, seconds
from spark_jobs import (
    Task,
    own_workers,
    points_in,
    read_layer,
    start_spark,
    time_once,
    write_events,
    write_zones,
)

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # where the broker is

if TYPE_CHECKING:
    from kafka_broker import KafkaBroker

LAYER, POLYGONS = "fr_communes_paris_basin", 5_702
LEAST = 0.7
_SAMPLE = 10_000  # messages that identity writes again and again
_MESSAGE = "key binary, value binary"
_HEADER = "array(named_struct('key', 'content-type', 'value', cast({!r} AS binary)))"


def main() -> int:
    """Measure both jobs; print a table, and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="100,000 points, three runs")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    points, repeats = (100_000, 3) if options.quick else (options.points, options.repeats)
    from kafka_broker import KafkaBroker, missing_for_kafka

    if (missing := missing_for_kafka()) is not None:
        print(f"skipped: {missing}")
        return 0
    report = Report("streams_kafka", "pyspark")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "broker").mkdir()
        broker = stack.enter_context(KafkaBroker(folder / "broker"))
        spark = start_spark()
        stack.callback(spark.stop)
        topics = Topics(spark, broker, folder, points)
        taken_s = run_in_turns(topics.jobs(), repeats)
        topics.compare_written()
    tell(report, topics, taken_s)
    return report.finish()


def run_in_turns(jobs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Time jobs in an order drawn anew for each turn, after one that warms up; the medians."""
    shuffled = random.Random(1)
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(repeats + 1):
        for name in shuffled.sample([*jobs], len(jobs)):
            taken_s = time_once(jobs[name])
            if turn:
                taken[name].append(taken_s)
    return {name: statistics.median(times) for name, times in taken.items()}


def tell(report: Report, topics: "Topics", taken_s: dict[str, float]) -> None:
    """Write the figures of one run."""
    table = report.start_table(
        Column("job", width_min=10, is_text=True),
        *map(count, ("points", "messages")),
        mebibytes("written"),
        seconds(""),
        count("points/s"),
        ratio("share"),
    )
    for name, job_s in taken_s.items():
        share = taken_s["identity"] / job_s
        messages, size = topics.written[name]
        rate = round(topics.points / job_s)
        table.add(name, topics.points, messages, size / MIB, job_s, rate, share)
    share = taken_s["identity"] / taken_s["ours"]
    work = f"{topics.points:,} points from Kafka to Kafka, of the speed of identity"
    report.ask(work, f"≥ {LEAST:.0%}", f"{share:.0%}", share >= LEAST)


class Topics:
    """A topic of points, a published set, and jobs that each write a topic of their own."""

    def __init__(self, spark: Any, broker: "KafkaBroker", folder: Path, points: int) -> None:
        """Fill the topic, publish, and let `ours` write once what identity is to write."""
        self.points = points
        self.written: dict[str, tuple[int, int]] = {}
        self._spark, self._broker, self._folder = spark, broker, folder
        rng = np.random.default_rng(1)
        polygons = read_layer(LAYER)
        if polygons is None:
            polygons = np.array(scattered_regions(rng, POLYGONS))
        self._zones = str(folder / "zones")
        zones = write_zones(folder / "zones.parquet", polygons, "within")
        contrada.spark.publish(spark.read.parquet(str(zones)), self._zones)
        scattered = points_in(rng, shapely.total_bounds(polygons), points)
        events = spark.read.parquet(str(write_events(folder / "events", scattered)))
        self._runs = 0
        # Spark's writer deals messages without a key out in runs; keys spread them evenly.
        messages = events.selectExpr(
            "cast(cast(id AS string) AS binary) AS key", "geometry AS value"
        )
        messages.write.format("kafka").options(**self._servers(), topic="points").save()
        self._sample = self._take_sample(self._run_ours())

    def jobs(self) -> dict[str, Callable[[], object]]:
        """Make the two jobs."""
        return {"identity": self._run_identity, "ours": self._run_ours}

    def _servers(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self._broker.address, "includeHeaders": "true"}

    def _run_ours(self) -> str:
        topic, checkpoint = self._begin("ours")
        with own_workers(self._spark, "ours"):
            events = contrada.spark.read_kafka(
                self._spark, self._broker.uri("points"), format="wkb"
            )
            answer = contrada.spark.match(events, self._zones)
            query = contrada.spark.write_stream(
                answer, self._broker.uri(topic), checkpoint=checkpoint, once=True
            )
        query.awaitTermination()
        return topic

    def _run_identity(self) -> str:
        topic, checkpoint = self._begin("identity")
        with own_workers(self._spark, "identity"):
            reader = self._spark.readStream.format("kafka").options(**self._servers())
            reader = reader.options(subscribe="points", startingOffsets="earliest")
            values = reader.load().select("value")
            messages = values.mapInArrow(make_writer(self._sample, self._share), _MESSAGE)
        content = "application/cloudevents+json; charset=UTF-8"
        answer = messages.selectExpr("*", f"{_HEADER.format(content)} AS headers")
        writer = answer.writeStream.format("kafka").options(**self._servers(), topic=topic)
        writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        writer.start().awaitTermination()
        return topic

    def _begin(self, job: str) -> tuple[str, str]:
        self._runs += 1
        name = f"{job}-{self._runs}"
        return name, str(self._folder / f"checkpoint-{name}")

    def compare_written(self) -> None:
        """Count what identity writes: all but as many messages and bytes."""
        self._count_written("identity", self._run_identity())
        pairs = zip(self.written["identity"], self.written["ours"], strict=True)
        assert all(abs(theirs / own - 1) < 0.01 for theirs, own in pairs), self.written

    def _count_written(self, job: str, topic: str) -> None:
        """Count the messages of a topic that a job has written, and their bytes."""
        frame = self._read(topic).selectExpr("count(*)", "sum(length(key) + length(value))")
        messages, size = frame.first()
        self.written[job] = messages, size

    def _take_sample(self, topic: str) -> pa.Table:
        """Take some of the messages that `ours` has written, spread over all."""
        self._count_written("ours", topic)
        messages, _ = self.written["ours"]
        self._share = messages / self.points
        every = max(1, messages // _SAMPLE)
        sample: pa.Table = self._read(topic).where(f"offset % {every} = 0").toArrow()
        return sample.combine_chunks()

    def _read(self, topic: str) -> Any:
        reader = self._spark.read.format("kafka").options(**self._servers(), subscribe=topic)
        return reader.load().select("key", "value", "offset")


def make_writer(sample: pa.Table, share: float) -> Task:
    """Make a task that only answers: so many messages of a sample for each row that comes in."""
    keys, values = (sample[name].combine_chunks() for name in ("key", "value"))

    def run_identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            at = pa.array(np.arange(round(batch.num_rows * share)) % len(keys))
            yield pa.RecordBatch.from_arrays([keys.take(at), values.take(at)], ["key", "value"])

    return run_identity


if __name__ == "__main__":
    sys.exit(main())
