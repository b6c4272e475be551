"""Match messages of Kafka as they come against a published set, on whatever cluster this runs.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION \\
        examples/stream_job.py kafka://host:9092/positions kafka://host:9092/matches \\
        SUBSCRIPTIONS CHECKPOINT

SUBSCRIPTIONS is what contrada.spark.publish has published, and CHECKPOINT a folder of this job
alone; both are paths or URIs that every machine reaches. Whoever publishes anew needs not stop it.
"""

import argparse

from pyspark.sql import SparkSession

import contrada.spark

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
for place in ("EVENTS", "MATCHES", "SUBSCRIPTIONS", "CHECKPOINT"):
    parser.add_argument(place)
parser.add_argument("--schema", default="speed double, fleet string", help="of the messages")
parser.add_argument("--quarantine", default="matches-bad", help="the topic of bad messages")
parser.add_argument("--once", action="store_true", help="end when all that is there is matched")
given = parser.parse_args()

spark = SparkSession.builder.appName("contrada").getOrCreate()
events = contrada.spark.read_kafka(
    spark, given.EVENTS, schema=given.schema, maxOffsetsPerTrigger=200_000
)
answer = contrada.spark.match(events, given.SUBSCRIPTIONS, quarantine=True)
query = contrada.spark.write_stream(
    answer,
    given.MATCHES,
    quarantine=given.quarantine,
    checkpoint=given.CHECKPOINT,
    once=given.once,
    on_batch=print,
)
query.awaitTermination()
