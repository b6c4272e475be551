"""Apache Sedona as a peer: a process of its own that joins Parquet files when it is asked to.

Sedona needs Spark 4.0, and so an environment of its own (`make sedona` makes it); this file needs
nothing but PySpark, and is started by `sedona.py`. Each line that comes in is a JSON object:

    {"query": "within", "events": path, "zones": path, "out": path}

Each is answered by a line when the job is done; the first line of all says what has started.
Events and zones are Parquet with `id` and `geometry` (WKB); `within` writes `event, subscription`,
and `relate` besides these the DE-9IM matrix of each pair that intersects. As Sedona's users are
told to, the job broadcasts the zones. They are decoded and cached before the first job over them is
timed; the index over them is built by each job, since Sedona cannot keep it.
"""

import argparse
import json
import os
import sys

from pyspark.sql import DataFrame, SparkSession

PACKAGES = (
    "org.apache.sedona:sedona-spark-shaded-4.0_2.13:1.8.0",
    "org.datasyslab:geotools-wrapper:1.8.1-33.1",
)
SETTINGS = {
    "spark.jars.packages": ",".join(PACKAGES),
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.sedona.core.serde.SedonaKryoRegistrator",
    "spark.sql.extensions": "org.apache.sedona.sql.SedonaSqlExtensions",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
QUERIES = {
    "within": """
        SELECT /*+ BROADCAST(z) */ e.id AS event, z.id AS subscription
        FROM events e JOIN zones z ON ST_Within(e.geometry, z.geometry)""",
    "relate": """
        SELECT /*+ BROADCAST(z) */ e.id AS event, z.id AS subscription,
               ST_Relate(e.geometry, z.geometry) AS matrix
        FROM events e JOIN zones z ON ST_Intersects(e.geometry, z.geometry)""",
}


def main() -> None:
    """Start Spark, say so, and answer until no more lines come in."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    # Spark and Ivy print what they like: only answers may go where answers are read.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    builder = SparkSession.builder.master("local[2]").appName("sedona")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    peer = Peer(spark)
    print(json.dumps({"spark": spark.version, "sedona": PACKAGES[0]}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(peer.run(**json.loads(line))), file=answers, flush=True)
    spark.stop()


class Peer:
    """One session; it keeps the zones of the last job."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._events = self._zones = ""

    def run(self, query: str, events: str, zones: str, out: str) -> dict[str, str]:
        """Join events and zones into a folder."""
        if events != self._events:
            self._read(events).createOrReplaceTempView("events")
            self._events = events
        if zones != self._zones:
            self._spark.catalog.clearCache()
            decoded = self._read(zones).cache()
            decoded.count()
            decoded.createOrReplaceTempView("zones")
            self._zones = zones
        self._spark.sql(QUERIES[query]).write.mode("overwrite").parquet(out)
        return {"written": out}

    def _read(self, path: str) -> DataFrame:
        frame = self._spark.read.parquet(path)
        return frame.selectExpr("id", "ST_GeomFromWKB(geometry) AS geometry")


if __name__ == "__main__":
    main()
