"""Match GeoParquet against GeoParquet on whatever cluster this is submitted to.

    spark-submit examples/cluster_job.py SUBSCRIPTIONS EVENTS MATCHES

All three are paths or URIs that every machine reaches, and so is `spark.contrada.staging`.
"""

import sys

from pyspark.sql import SparkSession

import contrada.spark

subscriptions_path, events_path, matches_path = sys.argv[1:]
spark = SparkSession.builder.appName("contrada").getOrCreate()
events = contrada.spark.read_geoparquet(spark, events_path)
subscriptions = contrada.spark.read_geoparquet(spark, subscriptions_path)
print(contrada.spark.explain(events, subscriptions))

answer = contrada.spark.match(events, subscriptions, keep=["geometry"])
contrada.spark.write_geoparquet(answer, matches_path, mode="overwrite")
print(contrada.spark.counts(answer))
spark.stop()
