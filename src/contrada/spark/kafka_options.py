"""Options of Spark's connector for Kafka: which pass, which are ours to set, and none is shown.

What connects (`kafka.security.protocol`, `kafka.sasl.…`, `kafka.ssl.…`) may be secret: errors name
options and never have a value of one.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from contrada.errors import InvalidInput
from contrada.model.instant import read_instant
from contrada.showing import brief, brief_text
from contrada.spark.kafka_uris import KafkaTopic

Starting = str | datetime | Mapping[int, int]

_CLIENT = "kafka."
_OURS = {
    "kafka.bootstrap.servers": "the URI names the servers",
    "subscribe": "the URI names the topic",
    "subscribepattern": "the URI names the topic",
    "assign": "the URI names the topic",
    "topic": "the URI names the topic",
    "includeheaders": "headers are always read and written",
    "startingoffsets": "starting=… says where to begin",
    "startingtimestamp": "starting=… says where to begin",
    "startingoffsetsbytimestamp": "starting=… says where to begin",
}
_READING = (
    "failOnDataLoss",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "maxRecordsPerPartition",
    "minPartitions",
    "startingOffsetsByTimestampStrategy",
)
_STREAMING = ("maxOffsetsPerTrigger", "maxTriggerDelay", "minOffsetsPerTrigger")
_BATCH = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_SERVERS = "kafka.bootstrap.servers"


def source_options(
    topic: KafkaTopic, starting: Starting, is_batch: bool, given: Mapping[str, Any]
) -> dict[str, str]:
    """Return the options with which Spark reads a topic."""
    known = (*_READING, *(_BATCH if is_batch else _STREAMING))
    return {
        **_read_starting(starting, topic),
        **_read_given(given, known, "read_kafka"),
        _SERVERS: ",".join(topic.servers),
        "subscribe": topic.topic,
        "includeHeaders": "true",
    }


def sink_options(topic: KafkaTopic, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the options with which Spark writes messages that name their topics."""
    return {
        **_read_given(given, (), "writing to Kafka"),
        _SERVERS: ",".join(topic.servers),
        "includeHeaders": "true",
    }


def _read_given(given: Mapping[str, Any], known: tuple[str, ...], whose: str) -> dict[str, str]:
    lowered = {name.lower() for name in known}
    options = {}
    for name, value in given.items():
        lower = name.lower()
        if lower in _OURS:
            raise InvalidInput(f"the option {name!r} cannot be given: {_OURS[lower]}")
        if lower not in lowered and not lower.startswith(_CLIENT):
            names = ", ".join((*known, f"those of Kafka's clients, as '{_CLIENT}…'"))
            raise InvalidInput(f"{whose} has no option {brief_text(name)!r}; it has {names}")
        if not isinstance(value, str | int | float):
            kind = type(value).__name__
            raise InvalidInput(f"the option {name!r} must be a text or a number, not {kind}")
        options[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return options


def _read_starting(starting: Starting, topic: KafkaTopic) -> dict[str, str]:
    """Write in Spark's words where to begin; a partition without so late a message at its end."""
    if isinstance(starting, Mapping):
        offsets = {str(partition): offset for partition, offset in starting.items()}
        if all(isinstance(n, int) for pair in starting.items() for n in pair):
            return {"startingOffsets": json.dumps({topic.topic: offsets})}
    elif starting in ("earliest", "latest"):
        return {"startingOffsets": str(starting)}
    elif (moment := read_instant(starting)) is not None:
        return {
            "startingTimestamp": str(moment.ns // 1_000_000),
            "startingOffsetsByTimestampStrategy": "latest",
        }
    raise InvalidInput(
        "starting is 'earliest', 'latest', a moment or the offset of each partition, not "
        f"{brief(starting)}"
    )
