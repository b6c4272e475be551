"""Iceberg tables as events and subscriptions, and the matches as another.

Run with PySpark 4.1.4 and Iceberg 1.12.0, which is built for Spark 4.1; on PySpark 4.3 it fails
with IncompatibleClassChangeError.

    pip install "pyspark[sql]==4.1.4" && python examples/spark_iceberg.py

Rows of an Iceberg table have no number, so events need a column of ids: `event_id=`.
"""

import argparse
import tempfile

import contrada.spark

argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
).parse_args()

spark = contrada.spark.session(
    "local[2]",
    config={
        "spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": tempfile.mkdtemp(),
    },
)
ships = [("tug-7", "POINT(1 2)", 3.0), ("ferry-2", "POINT(7 7)", 18.0)]
fences = [("harbour", "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", None), ("fast", None, "speed > 12")]
spark.createDataFrame(ships, "ship string, geometry string, speed double").writeTo(
    "lake.sea.ships"
).create()
spark.createDataFrame(fences, "id string, geometry string, filter string").writeTo(
    "lake.sea.fences"
).create()

events, subscriptions = spark.table("lake.sea.ships"), spark.table("lake.sea.fences")
answer = contrada.spark.match(events, subscriptions, event_id="ship", keep=["speed"])
answer.writeTo("lake.sea.matches").create()

print(contrada.spark.counts(answer))
spark.table("lake.sea.matches").show()
spark.stop()
