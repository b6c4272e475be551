"""What the tests of published sets and of streams share: sets of zones, and streams of points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import contrada.spark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StreamingQuery

ZONE = "id string, geometry string, subscriber string"
EVENT = "id long, geometry string, speed int"


def square(x: float, width: float = 1) -> str:
    """A square to the right of x, on the axis."""
    return f"POLYGON(({x} 0, {x + width} 0, {x + width} {width}, {x} {width}, {x} 0))"


def zones(spark: SparkSession, squares: Mapping[str, float], parts: int = 1) -> DataFrame:
    """A subscription for each name, to the square at its place."""
    rows = [(name, square(x), f"of {name}") for name, x in squares.items()]
    return spark.createDataFrame(rows, ZONE).repartition(parts)


def points(spark: SparkSession, places: Iterable[float]) -> DataFrame:
    """Events in the middle of squares, with the number of the square as their id."""
    rows = [(int(x), f"POINT({x + 0.5} 0.5)", int(x)) for x in places]
    return spark.createDataFrame(rows, EVENT)


def pairs_of(rows: Iterable[Row]) -> list[tuple[object, object]]:
    """The pairs of an answer, sorted."""
    return sorted((row["event"], row["subscription"]) for row in rows)


class PointStream:
    """A stream of files, one for each batch, whose answers are collected batch by batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        """Begin without a file."""
        self._spark, self._folder = spark, folder / "incoming"
        self._folder.mkdir()
        self._checkpoint = str(folder / "checkpoint")
        self.frame = (
            spark.readStream.schema(EVENT)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self._folder))
        )
        self.answers: dict[int, list[Row]] = {}
        self.failing = False

    def send(self, places: Iterable[float]) -> None:
        """Let one more file come in."""
        points(self._spark, places).coalesce(1).write.mode("append").parquet(str(self._folder))

    def match(self, subscriptions: DataFrame | str, **options: object) -> StreamingQuery:
        """Start to match; a batch that is to fail does so after its answer is known."""
        answer = contrada.spark.match(self.frame, subscriptions, **options)  # type: ignore[arg-type]

        def take(rows: DataFrame, number: int) -> None:
            self.answers[number] = rows.collect()
            if self.failing:
                raise RuntimeError("the sink is broken")

        writer = answer.writeStream.foreachBatch(take)
        return writer.option("checkpointLocation", self._checkpoint).start()
