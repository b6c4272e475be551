"""Topics of a test: messages put into them with Spark's own writer, and taken out as they are."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka_broker import MESSAGE_BYTES_MAX, KafkaBroker
from kafka_cases import Sent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = (
    "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
)


class KafkaTopics:
    """What tests do with a broker through a session."""

    def __init__(self, spark: "SparkSession", broker: KafkaBroker) -> None:
        """Take both; they are closed by those who opened them."""
        self._spark, self._broker = spark, broker

    def uri(self, topic: str) -> str:
        """The URI of a topic."""
        return self._broker.uri(topic)

    def pair(self, name: str) -> dict[str, str]:
        """Where a stream writes its matches, and bad events."""
        return {"to": self.uri(name), "quarantine": self.uri(f"{name}-bad")}

    def ids_of(self, topic: str) -> list[str]:
        """The ids of the CloudEvents in a topic, with doubles, in an order of their own."""
        return sorted(json.loads(bytes(row["value"]))["id"] for row in self.take(topic))

    def put(self, topic: str, messages: Sequence[Sent]) -> None:
        """Write messages, all of them before the call returns."""
        rows = [(topic, m.key, m.value, _pairs(m)) for m in messages]
        self.write(self._spark.createDataFrame(rows, _SCHEMA).coalesce(1))

    def write(self, messages: "DataFrame") -> None:
        """Write the rows of a DataFrame, which has the columns of Spark's writer."""
        messages.write.format("kafka").options(**self.writing()).save()

    def writing(self) -> dict[str, str]:
        """The options of Spark's writer."""
        return {
            "kafka.bootstrap.servers": self._broker.address,
            "kafka.max.request.size": str(MESSAGE_BYTES_MAX),
            "includeHeaders": "true",
        }

    def take(self, topic: str) -> list[dict[str, Any]]:
        """Read all messages of a topic as Spark has them, nothing of ours."""
        reading = {"kafka.bootstrap.servers": self._broker.address, "subscribe": topic}
        frame = self._spark.read.format("kafka").options(includeHeaders="true", **reading).load()
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        for row in rows:
            row["headers"] = {h["key"]: bytes(h["value"]) for h in row["headers"] or []}
        return rows


def _pairs(message: Sent) -> list[tuple[str, bytes]] | None:
    headers = message.header_list()
    return None if headers is None else [(item["key"], item["value"]) for item in headers]
