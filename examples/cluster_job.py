"""Match GeoParquet against GeoParquet on whatever cluster this is submitted to.

    spark-submit examples/cluster_job.py SUBSCRIPTIONS EVENTS MATCHES

All three are paths or URIs that every machine reaches, and so is `spark.contrada.staging`.
"""

import argparse

from pyspark.sql import SparkSession

import contrada.spark

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
for path in ("SUBSCRIPTIONS", "EVENTS", "MATCHES"):
    parser.add_argument(path)
paths = parser.parse_args()
spark = SparkSession.builder.appName("contrada").getOrCreate()
events = contrada.spark.read_geoparquet(spark, paths.EVENTS)
subscriptions = contrada.spark.read_geoparquet(spark, paths.SUBSCRIPTIONS)
print(contrada.spark.explain(events, subscriptions))

answer = contrada.spark.match(events, subscriptions, keep=["geometry"])
contrada.spark.write_geoparquet(answer, paths.MATCHES, mode="overwrite")
print(contrada.spark.counts(answer))
spark.stop()
