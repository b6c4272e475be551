"""A stream to topics of Kafka: each row is written at least once, and doubles have the same id."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contrada.errors import InvalidInput
from contrada.spark.kafka_jars import load_kafka
from contrada.spark.kafka_messages import as_messages
from contrada.spark.kafka_options import sink_options
from contrada.spark.kafka_uris import is_kafka_uri, read_kafka_uri
from contrada.spark.stream_watch import StreamWatch, count_written
from contrada.spark.task_errors import noting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class TopicSink:
    """The function for `foreachBatch`: write messages, then look whether they are all."""

    options: Mapping[str, str]
    watch: StreamWatch

    def __call__(self, messages: "DataFrame", number: int) -> None:
        """Write the messages of a batch."""
        with noting():
            messages.write.format("kafka").options(**dict(self.options)).save()
            self.watch.check(number)


def write_topics(
    answer: "DataFrame",
    to: str,
    quarantine: str | None,
    watch: StreamWatch,
    options: Mapping[str, Any],
) -> tuple["DataFrame", TopicSink]:
    """Make messages of an answer, and what writes a batch of them.

    The quarantine is a topic of the same servers, by its URI or its name alone.
    """
    topic, bad = read_kafka_uri(to), None
    if quarantine is not None:
        bad = read_kafka_uri(quarantine) if is_kafka_uri(quarantine) else topic.sibling(quarantine)
        if bad.servers != topic.servers:
            raise InvalidInput(
                f"{bad}: the servers are not those of {topic}; a query writes to one cluster"
            )
    writing = sink_options(topic, options)
    load_kafka(answer.sparkSession.read, {**writing, "subscribe": topic.topic})  # if there is any
    bad_topic = None if bad is None else bad.topic
    messages = as_messages(answer, topic.topic, bad_topic, count=count_written)
    return messages, TopicSink(writing, watch)
