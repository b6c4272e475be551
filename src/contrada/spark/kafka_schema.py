"""The schema of messages: which attributes are declared, and which columns come of them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.model.event import GEOMETRY
from contrada.showing import brief
from contrada.spark.frames import SOURCE_FAULT, SOURCE_MESSAGE
from contrada.spark.kafka_decoding import CLOUD_NAME, DecodeTask
from contrada.spark.kafka_reading import ID

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

FAULT_METADATA = {"contrada.fault": True}

_FAULT_DDL = "code string, message string, place string"
_MESSAGE_DDL = (
    "key binary, value binary, headers binary, topic string, partition int, offset bigint"
)


def read_schema(schema: "str | StructType") -> "StructType":
    """Read the attributes that a caller declares, as DDL or as they are."""
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


def refuse_names(names: list[str]) -> None:
    """Refuse names that mean something else here, or that Spark could not tell apart."""
    seen = {ID, GEOMETRY}
    for name in names:
        if name.startswith("__"):
            raise InvalidInput(f"{name!r} cannot be an attribute: '__' begins names of our own")
        if name.lower() == GEOMETRY:
            raise InvalidInput(f"{name!r} cannot be in the schema: it is there in any case, as WKB")
        if name.lower() in seen:
            raise InvalidInput(f"two columns are named {name!r}, as far as Spark can tell")
        seen.add(name.lower())


def to_arrow(fields: "Iterable[StructField]") -> list[pa.Field]:
    """Return the attributes as Arrow has them; refuse a type that no message has values of."""
    found = []
    for field in fields:
        kind = _arrow_type(field.dataType)
        if kind is None:
            shown = field.dataType.simpleString()
            raise InvalidInput(
                f"schema, column {field.name!r}: no message has values of type {shown}"
            )
        found.append(pa.field(field.name, kind, field.nullable))
    return found


def _arrow_type(kind: "DataType") -> pa.DataType | None:
    """Return the type that holds the values of one of Spark's; None where JSON has none of it."""
    from pyspark.sql import types

    match kind:
        case types.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case types.ArrayType():
            inner = _arrow_type(kind.elementType)
            return inner and pa.list_(pa.field("element", inner, kind.containsNull))
        case types.MapType(keyType=types.StringType()):
            inner = _arrow_type(kind.valueType)
            value = inner and pa.field("value", inner, kind.valueContainsNull)
            return value and pa.map_(pa.string(), value)
        case types.StructType():
            members = [(field, _arrow_type(field.dataType)) for field in kind]
            if any(inner is None for _, inner in members):
                return None
            return pa.struct([pa.field(f.name, inner, f.nullable) for f, inner in members])
        case types.StringType():
            return pa.string()
    plain: dict[DataType, pa.DataType] = {
        types.BooleanType(): pa.bool_(),
        types.ByteType(): pa.int8(),
        types.ShortType(): pa.int16(),
        types.IntegerType(): pa.int32(),
        types.LongType(): pa.int64(),
        types.FloatType(): pa.float32(),
        types.DoubleType(): pa.float64(),
        types.BinaryType(): pa.binary(),
        types.DateType(): pa.date32(),
        types.TimestampType(): pa.timestamp("us", "UTC"),
        types.TimestampNTZType(): pa.timestamp("us"),
    }
    return plain.get(kind)


def declares_whole_ids(declared: "StructType") -> bool:
    """Whether the schema says that ids are integers; they are text unless it does."""
    from pyspark.sql import types

    kind = declared[ID].dataType if ID in declared.names else types.StringType()
    if isinstance(kind, types.StringType):
        return False
    if isinstance(kind, types.LongType | types.IntegerType | types.ShortType | types.ByteType):
        return True
    raise InvalidInput(
        f"schema, column {ID!r}: an id is a string or a bigint, not {kind.simpleString()}"
    )


def row_schema(declared: "StructType", task: DecodeTask, crs: str | None) -> "StructType":
    """Describe to Spark what the task yields; any column may be null, since any row may be bad.

    Attributes that are geometries state the coordinate system, or that it is unknown.
    """
    from pyspark.sql import types

    field, text = types.StructField, types.StringType()
    fields = [field(ID, types.LongType() if task.has_whole_ids else text)]
    for item in types.StructType([i for i in declared if i.name != ID]).toNullable():
        is_geometry = isinstance(item.dataType, types.BinaryType)
        stated = {"crs": crs} if is_geometry else {}
        fields.append(field(item.name, item.dataType, metadata=stated | (item.metadata or {})))
    fields.append(field(GEOMETRY, types.BinaryType()))
    if task.place is not None:
        fields.append(field(task.place, text))
    if task.time is not None:
        fields.append(field(task.time, types.TimestampType()))
    fields.append(
        field(SOURCE_FAULT, types.StructType.fromDDL(_FAULT_DDL), metadata=FAULT_METADATA)
    )
    fields.append(field(SOURCE_MESSAGE, types.StructType.fromDDL(_MESSAGE_DDL)))
    if task.names_events:
        fields.append(field(CLOUD_NAME, text))
    return types.StructType(fields)
