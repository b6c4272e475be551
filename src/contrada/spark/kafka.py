"""`contrada.spark.read_kafka`: topics of Kafka as DataFrames of events, streaming or not.

Spark's own connector reads the messages. What they hold is judged in Python, by the readers of
files, since Spark's `from_json` makes nulls of what it cannot read.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from contrada.errors import InvalidInput
from contrada.files.crs import CRS84, spell_given_crs
from contrada.flags import check_flags
from contrada.model.event import GEOMETRY
from contrada.showing import brief
from contrada.spark.crs_metadata import state_crs
from contrada.spark.frames import SOURCE_PLACE
from contrada.spark.handshake import Handshake
from contrada.spark.kafka_decoding import (
    CLOUD_NAME,
    SOURCE_COLUMNS,
    DecodedColumns,
    DecodeTask,
)
from contrada.spark.kafka_jars import load_kafka
from contrada.spark.kafka_options import Starting, source_options
from contrada.spark.kafka_reading import FORMATS, ID
from contrada.spark.kafka_schema import (
    declares_whole_ids,
    read_schema,
    refuse_names,
    row_schema,
    to_arrow,
)
from contrada.spark.kafka_uris import read_kafka_uri
from contrada.spark.task_chains import EventOrigin, note_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_READ_AT = "__read_at"
_NO_HEADERS = "coalesce(headers, cast(array() AS array<struct<key: string, value: binary>>))"


def read_kafka(
    spark: "SparkSession",
    uri: str,
    *,
    schema: "str | StructType" = "",
    format: str = "auto",
    batch: bool = False,
    starting: Starting = "earliest",
    crs: str | None = None,
    drop_doubles: str | None = None,
    place: str | None = None,
    time: str | None = None,
    **options: Any,
) -> "DataFrame":
    """Read a topic of Kafka as a DataFrame of events, a row for every message.

    `uri` is `kafka://host:port/topic`, with more servers after commas. `schema` has the attributes,
    as DDL or a StructType; the geometry comes as WKB in the column `geometry`. `format` is

    - "geojson": Features, bare geometries, or objects whose members are attributes;
    - "cloudevents": CloudEvents that carry one of these, in structured or binary mode;
    - "wkb": WKB, with attributes as headers, texts as they are and others as JSON;
    - "auto": each message as what it shows to be.

    The column `id` is the Feature's own id, or a property or header `id`, or that of the
    CloudEvent, or else topic, partition and offset of the message (`positions/3/41`). It is text;
    if the schema has an `id` that is an integer, it is one, and a message without is bad.

    No message is left out, and none fails the query: one that cannot be decoded, has no value, or
    has a value that does not fit the schema is a row with `__fault` (code, message, place), and
    `__message` has it as it came, its headers packed. `match` takes such a row for a bad event.

    A stream goes on for ever; with `batch` what the topic holds now is read. `starting` is
    "earliest", "latest", a moment, or the offset of each partition; a query that has a checkpoint
    goes on where it was. `crs` states the coordinate system; without it geometries are in longitude
    and latitude, except for the format "wkb", which states none. `place` and `time` name columns to
    add, for topic, partition and offset as text and for the timestamp of the message. A place that
    is named "__place" and kept by `match` names events in the ids of messages that go out.

    `drop_doubles="10 minutes"` drops a CloudEvent whose source and id were read within so long
    before; in a batch, whenever. It brings rows together by their names, so that messages no
    longer come in the order of their partition.

    `options` are those of Spark's connector, such as `maxOffsetsPerTrigger`, and of Kafka's clients
    with `kafka.` before them (`**{"kafka.security.protocol": "SASL_SSL"}`); no error shows a value.

    Raises `InvalidInput` for a URI, schema or option that cannot be used, and `MissingPackage`
    where the session has no connector for Kafka.

    >>> contrada.spark.read_kafka(spark, "kafka://localhost:9092", schema="wind double")
    Traceback (most recent call last):
    contrada.errors.InvalidInput: 'kafka://localhost:9092' names no topic: kafka://host:port/topic
    """
    from pyspark.sql import functions

    check_flags(batch=batch)
    topic = read_kafka_uri(uri)
    if format not in FORMATS:
        raise InvalidInput(f"format {brief(format)} is unknown; there are {', '.join(FORMATS)}")
    declared = read_schema(schema)
    attributes = [field for field in declared if field.name != ID]
    added = [name for name in (None if place == SOURCE_PLACE else place, time) if name is not None]
    refuse_names([*(field.name for field in attributes), *added])
    _check_doubles(drop_doubles, format)
    system = _read_crs(crs, format)
    reading = source_options(topic, starting, batch, options)
    messages = load_kafka(spark.read if batch else spark.readStream, reading)
    task = DecodeTask(
        Handshake.here(),
        topic.topic,
        format,
        tuple(to_arrow(attributes)),
        declares_whole_ids(declared),
        place,
        time,
        drop_doubles is not None,
    )
    columns = [*SOURCE_COLUMNS, *(["timestamp"] if time else [])]
    # A list that is null would cost far more on the way to Python (`kafka_headers`).
    filled = messages.withColumn("headers", functions.expr(_NO_HEADERS))
    chosen = filled.select(*columns)
    rows = chosen.mapInArrow(task, row_schema(declared, task, system))
    if drop_doubles is not None:
        return state_crs(_drop_doubles(rows, drop_doubles), {GEOMETRY: system})
    events = state_crs(rows, {GEOMETRY: system})
    note_events(events, EventOrigin(chosen, partial(DecodedColumns, task)))
    return events


def _read_crs(crs: str | None, format: str) -> str | None:
    if crs is not None:
        return spell_given_crs(crs, "crs")
    return None if format == "wkb" else CRS84


def _check_doubles(delay: str | None, format: str) -> None:
    if delay is None:
        return
    if not isinstance(delay, str):
        raise InvalidInput(f"drop_doubles is a span such as '10 minutes', not {brief(delay)}")
    if format in ("geojson", "wkb"):
        raise InvalidInput(
            f"drop_doubles needs CloudEvents, whose id names the message; format is {format!r}"
        )


def _drop_doubles(rows: "DataFrame", delay: str) -> "DataFrame":
    """Drop rows of a name that was read before.

    How long ago that was is told by the clock of the batches: by the timestamps of messages, which
    are whatever producers say, Spark would drop rows as too late.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions

    if not rows.isStreaming:
        return rows.dropDuplicates([CLOUD_NAME]).drop(CLOUD_NAME)
    try:
        timed = rows.withColumn(_READ_AT, functions.current_timestamp())
        told = timed.withWatermark(_READ_AT, delay).dropDuplicatesWithinWatermark([CLOUD_NAME])
        return told.drop(CLOUD_NAME, _READ_AT)
    except PySparkException as fault:
        raise InvalidInput(
            f"drop_doubles is a span such as '10 minutes', not {brief(delay)}: {fault}"
        ) from None
