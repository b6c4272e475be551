"""Delta tables as events and subscriptions, and the matches as another.

Run with PySpark 4.1.4 and Delta 4.4.0, which is built for Spark 4.0 and 4.1; on PySpark 4.3 it
fails with NoSuchMethodError.

    pip install "pyspark[sql]==4.1.4" && python examples/spark_delta.py

Rows of a Delta table have no number, so events need a column of ids: `event_id=`.
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
        "spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
)
folder = tempfile.mkdtemp()
ships = [("tug-7", "POINT(1 2)", 3.0), ("ferry-2", "POINT(7 7)", 18.0)]
fences = [("harbour", "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", None), ("fast", None, "speed > 12")]
spark.createDataFrame(ships, "ship string, geometry string, speed double").write.format(
    "delta"
).save(f"{folder}/ships")
spark.createDataFrame(fences, "id string, geometry string, filter string").write.format(
    "delta"
).save(f"{folder}/fences")

events = spark.read.format("delta").load(f"{folder}/ships")
subscriptions = spark.read.format("delta").load(f"{folder}/fences")
answer = contrada.spark.match(events, subscriptions, event_id="ship", keep=["speed"])
answer.write.format("delta").save(f"{folder}/matches")

print(contrada.spark.counts(answer))
spark.read.format("delta").load(f"{folder}/matches").show()
spark.stop()
