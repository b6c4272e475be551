"""`contrada.spark.read_kafka`: topics of Kafka as DataFrames of events, streaming or not.

Spark's own connector reads the messages. What they hold is judged in Python, by the readers of
files, since Spark's `from_json` makes nulls of what it cannot read.
"""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.files.crs import CRS84, spell_given_crs
from contrada.files.declared_columns import make_fit
from contrada.model.event import GEOMETRY
from contrada.showing import brief
from contrada.spark.crs_metadata import state_crs
from contrada.spark.kafka_decoding import FAULT, MESSAGE, NAME, SOURCE_COLUMNS, DecodeTask
from contrada.spark.kafka_jars import load_kafka
from contrada.spark.kafka_options import Starting, source_options
from contrada.spark.kafka_reading import FORMATS, ID
from contrada.spark.kafka_uris import read_kafka_uri
from contrada.spark.versions import Versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

FAULT_METADATA = {"contrada.fault": True}

_READ_AT = "__read_at"
_FAULT_DDL = "code string, message string, place string"
_MESSAGE_DDL = (
    "key binary, value binary, headers binary, topic string, partition int, offset bigint"
)
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
    and latitude, but that those of the format "wkb" state none. `place` and `time` name columns
    to add, for topic, partition and offset as text and for the timestamp of the message.

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

    topic = read_kafka_uri(uri)
    if format not in FORMATS:
        raise InvalidInput(f"format {brief(format)} is unknown; there are {', '.join(FORMATS)}")
    declared = _read_schema(schema)
    attributes = [field for field in declared if field.name != ID]
    added = [name for name in (place, time) if name is not None]
    _refuse_names([*declared.names, *added])
    _check_doubles(drop_doubles, format)
    system = _read_crs(crs, format)
    reading = source_options(topic, starting, batch, options)
    messages = load_kafka(spark.read if batch else spark.readStream, reading)
    task = DecodeTask(
        Versions.here(),
        topic.topic,
        format,
        tuple(_to_arrow(attributes)),
        _has_whole_ids(declared),
        place,
        time,
        drop_doubles is not None,
    )
    columns = [*SOURCE_COLUMNS, *(["timestamp"] if time else [])]
    # A list that is null would cost far more on the way to Python (`kafka_headers`).
    filled = messages.withColumn("headers", functions.expr(_NO_HEADERS))
    rows = filled.select(*columns).mapInArrow(task, _row_schema(declared, task))
    if drop_doubles is not None:
        rows = _drop_doubles(rows, drop_doubles)
    return state_crs(rows, {GEOMETRY: system})


def _read_schema(schema: "str | StructType") -> "StructType":
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    if isinstance(schema, StructType):
        return schema
    if not isinstance(schema, str):
        raise InvalidInput(f"schema is DDL or a StructType, not {brief(schema)}")
    if not schema.strip():
        return StructType([])
    try:
        read = StructType.fromDDL(schema)
    except PySparkException as fault:
        raise InvalidInput(f"schema {brief(schema)} is not DDL: {fault}") from None
    if not isinstance(read, StructType):
        raise InvalidInput(f"schema {brief(schema)} names no attributes: wind double, name string")
    return read


def _refuse_names(names: list[str]) -> None:
    """Refuse names that mean something else here, or that Spark could not tell apart."""
    seen = {GEOMETRY}
    for name in names:
        if name.startswith("__"):
            raise InvalidInput(f"{name!r} cannot be an attribute: '__' begins names of our own")
        if name.lower() == GEOMETRY:
            raise InvalidInput(f"{name!r} cannot be in the schema: it is there in any case, as WKB")
        if name.lower() in seen:
            raise InvalidInput(f"two columns are named {name!r}, as far as Spark can tell")
        seen.add(name.lower())


def _to_arrow(fields: "list[StructField]") -> list[pa.Field]:
    """Return the attributes as Arrow has them; refuse a type that no JSON value has."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    found = []
    for field in fields:
        try:
            kind = to_arrow_type(field.dataType)
            make_fit(kind)
        except (PySparkException, InvalidInput):
            shown = field.dataType.simpleString()
            raise InvalidInput(
                f"schema, column {field.name!r}: no message has values of type {shown}"
            ) from None
        found.append(pa.field(field.name, kind, field.nullable))
    return found


def _has_whole_ids(declared: "StructType") -> bool:
    from pyspark.sql import types

    kind = declared[ID].dataType if ID in declared.names else types.StringType()
    if isinstance(kind, types.StringType):
        return False
    if isinstance(kind, types.LongType | types.IntegerType | types.ShortType | types.ByteType):
        return True
    raise InvalidInput(
        f"schema, column {ID!r}: an id is a string or a bigint, not {kind.simpleString()}"
    )


def _row_schema(declared: "StructType", task: DecodeTask) -> "StructType":
    """Describe to Spark what the task yields; any column may be null, since any row may be bad."""
    from pyspark.sql import types

    field, text = types.StructField, types.StringType()
    fields = [field(ID, types.LongType() if task.has_whole_ids else text)]
    fields += [
        field(item.name, item.dataType, metadata=item.metadata)
        for item in types.StructType([i for i in declared if i.name != ID]).toNullable()
    ]
    fields.append(field(GEOMETRY, types.BinaryType()))
    if task.place is not None:
        fields.append(field(task.place, text))
    if task.time is not None:
        fields.append(field(task.time, types.TimestampType()))
    fields.append(field(FAULT, types.StructType.fromDDL(_FAULT_DDL), metadata=FAULT_METADATA))
    fields.append(field(MESSAGE, types.StructType.fromDDL(_MESSAGE_DDL)))
    if task.names_events:
        fields.append(field(NAME, text))
    return types.StructType(fields)


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
        return rows.dropDuplicates([NAME]).drop(NAME)
    try:
        timed = rows.withColumn(_READ_AT, functions.current_timestamp())
        told = timed.withWatermark(_READ_AT, delay).dropDuplicatesWithinWatermark([NAME])
        return told.drop(NAME, _READ_AT)
    except PySparkException as fault:
        raise InvalidInput(
            f"drop_doubles is a span such as '10 minutes', not {brief(delay)}: {fault}"
        ) from None
