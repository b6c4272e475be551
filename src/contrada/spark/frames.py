"""DataFrames of events and subscriptions: which columns count, and which types they need.

All of this is known from the schema, so that nothing runs before it is known to be right.
"""

import logging
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.errors import InvalidInput, Remedy
from contrada.matching.subscribing import SUBSCRIPTION_COLUMNS, find_miscased
from contrada.model.event import paths_of
from contrada.model.row_columns import NEEDED_COLUMNS, can_subscribe
from contrada.spark.crs_metadata import column_of, state_crs, stated_crs

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

FILE = "__file"  # the column of files, and perhaps lines, of bad events; it never leaves `match`
SOURCE_FAULT = "__fault"  # a column of events: what their source found wrong with them, if anything
SOURCE_MESSAGE = "__message"  # and the message that such an event came as
SOURCE_PLACE = "__place"  # and its topic, partition and offset, if asked for
OF_SOURCES = (SOURCE_FAULT, SOURCE_MESSAGE, FILE)  # what sources say of events, in columns of ours
FAULT_TYPE = pa.struct([(name, pa.string()) for name in ("code", "message", "place")])
MOMENT = "__moment"  # the column of the moment at which a batch of a stream began
DEFAULT_ID = "id"


def identify(events: "DataFrame", event_id: str) -> "DataFrame":
    """Return events with a column of ids: the named one, or for Parquet the file and the row."""
    from pyspark.sql import functions

    if event_id in events.columns or event_id != DEFAULT_ID:
        check_id(events, event_id, "events", Remedy.SPARK_EVENT_ID)
        return events
    place = functions.concat_ws("#", "_metadata.file_path", "_metadata.row_index")
    identified = _try_column(events, event_id, place)
    if identified is None:
        raise InvalidInput(
            f"events have no column {event_id!r} for the id, and are not read from "
            f"Parquet, whose files and rows have a number; they have {', '.join(events.columns)}",
            remedies=[Remedy.SPARK_EVENT_ID],
        )
    return identified


def with_file(events: "DataFrame") -> "DataFrame":
    """Add the file that each row comes from, where it comes straight from one."""
    from pyspark.sql import functions

    file = functions.nullif(functions.input_file_name(), functions.lit(""))
    named = _try_column(events, FILE, file)
    return events if named is None else named


def with_moment(events: "DataFrame") -> "DataFrame":
    """Add the moment at which the batch of each row began, which stays if it is run again.

    It is a text of microseconds since 1970. Spark would write a timestamp into the Java that it
    generates for a batch, and compile that anew for every batch, unless a function stands around it
    for which Spark generates no Java; where Spark does not have that one, the number is cast.
    """
    from pyspark.sql import functions

    microseconds = functions.unix_micros(functions.current_timestamp())
    names = functions.lit("java.lang.String"), functions.lit("valueOf")
    called = _try_column(events, MOMENT, functions.reflect(*names, microseconds))
    if called is not None:
        return called
    return events.withColumn(MOMENT, microseconds.cast("string"))


def _try_column(frame: "DataFrame", name: str, column: "Column") -> "DataFrame | None":
    """Add a column; None where the source of the rows does not have it."""
    from pyspark.errors import AnalysisException

    try:
        with _quiet("DataFrameQueryContextLogger"):
            wider = frame.withColumn(name, column)
            wider.schema  # noqa: B018  the columns are looked up only now
    except AnalysisException:
        return None
    return wider


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silence a PySpark logger that prints the errors that PySpark raises."""
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger(name)  # whose class PySpark relies on
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def check_id(frame: "DataFrame", name: str, whose: str, remedy: Remedy) -> None:
    """Refuse a column of ids that is not there or of another type."""
    if name not in frame.columns:
        raise InvalidInput(
            f"{whose} have no column {name!r} for the id; they have {', '.join(frame.columns)}",
            remedies=[remedy],
        )
    try:
        has_whole_ids(frame, name, whose)
    except InvalidInput as error:
        raise error.with_remedies(remedy) from None


def subscription_columns(
    subscriptions: "DataFrame", subscription_id: str, strict: bool
) -> list[str]:
    """List the columns of subscriptions that mean something here; warn of those that nearly do."""
    names = subscriptions.columns
    if not can_subscribe(names):
        raise InvalidInput(
            f"subscriptions need a column {NEEDED_COLUMNS}; they have {', '.join(names)}"
        )
    miscased = find_miscased(names)
    if miscased is not None and strict:
        raise InvalidInput(f"subscriptions: {miscased}")
    if miscased is not None:
        warnings.warn(f"subscriptions: {miscased}", stacklevel=7)
    wanted = [subscription_id, *(c for c in SUBSCRIPTION_COLUMNS if c in names)]
    return list(dict.fromkeys(wanted))


def with_wkb(frame: "DataFrame", names: Sequence[str], whose: str) -> "DataFrame":
    """Select columns for Python: Spark's own geometries become WKB and state their system.

    A column of a type that Spark cannot send to Python, or take back, is refused.
    """
    systems = {}
    for name in names:
        kind = frame.schema[name].dataType
        if not can_travel(kind):
            raise InvalidInput(
                f"{whose}, column {name!r}: Spark cannot pass {kind.simpleString()} to Python; "
                "cast it to another type, or leave it out"
            )
        if _is_native(kind):
            systems[name] = stated_crs(frame, name)
    columns = [_as_wkb(column_of(name), frame.schema[name].dataType) for name in names]
    plain = frame.select(*(c.alias(n) for c, n in zip(columns, names, strict=True)))
    return state_crs(plain, systems) if systems else plain


def can_travel(kind: "DataType") -> bool:
    """Whether Spark writes a type for a Python worker and reads it back."""
    from pyspark.sql import types

    match kind:
        case types.StructType():
            inner = [field.dataType for field in kind]
            return len(set(kind.names)) == len(inner) and all(map(can_travel, inner))
        case types.ArrayType():
            is_void = isinstance(kind.elementType, types.NullType)
            return kind.containsNull if is_void else can_travel(kind.elementType)
        case types.MapType():
            return can_travel(types.ArrayType(kind.keyType, False)) and can_travel(
                types.ArrayType(kind.valueType, kind.valueContainsNull)
            )
        case types.YearMonthIntervalType() | types.CalendarIntervalType():
            return False
        case types.CharType() | types.VarcharType():  # strings, unless Spark is told to keep them
            return False
    return True


def _is_native(kind: "DataType") -> bool:
    return kind.typeName().startswith(("geometry", "geography"))


def _as_wkb(column: "Column", kind: "DataType") -> "Column":
    """Turn a column of Spark's geometries into WKB, and those that a struct holds."""
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    if _is_native(kind):
        return functions.call_function("st_asbinary", column)
    if not isinstance(kind, StructType) or not any(_holds_native(f.dataType) for f in kind):
        return column
    fields = [_as_wkb(column.getField(f.name), f.dataType).alias(f.name) for f in kind]
    return functions.when(column.isNotNull(), functions.struct(*fields))


def _holds_native(kind: "DataType") -> bool:
    from pyspark.sql.types import StructType

    if isinstance(kind, StructType):
        return any(_holds_native(field.dataType) for field in kind)
    return _is_native(kind)


def referenced_columns(events: "DataFrame", attributes: Collection[str], strict: bool) -> list[str]:
    """Choose the columns that a constraint reads; warn where the events lack one."""
    found, missing = [], []
    for name in sorted(attributes):
        found += [path for path in paths_of(name) if path in events.columns]
        if not has_path(events.schema, name):
            missing.append(name)
    if missing:
        message = (
            f"constraints read {', '.join(map(repr, missing))}, which no event has; "
            f"events have {', '.join(events.columns)}"
        )
        if strict:
            raise InvalidInput(message)
        warnings.warn(message, stacklevel=6)
    return found


def arrow_schema(events: "DataFrame") -> pa.Schema:
    """Return the columns with a type that tells what kind of values each holds, and no more."""
    return pa.schema([(field.name, _arrow_type(field.dataType)) for field in events.schema])


def _arrow_type(kind: "DataType") -> pa.DataType:
    from pyspark.sql import types

    match kind:
        case types.NumericType():
            return pa.float64()
        case types.StringType():
            return pa.string()
        case types.BooleanType():
            return pa.bool_()
        case types.DateType() | types.TimestampType() | types.TimestampNTZType():
            return pa.timestamp("us")
    return pa.binary()


def warn_of_mismatches(mismatches: Sequence[str], strict: bool) -> None:
    """Warn of columns that hold other values than they are compared with, or refuse them."""
    if mismatches and strict:
        raise InvalidInput("; ".join(mismatches))
    for mismatch in mismatches:
        warnings.warn(mismatch, stacklevel=6)


def has_path(struct: "StructType", name: str) -> bool:
    """Whether rows may have an attribute, as a column or inside of one."""
    from pyspark.sql.types import MapType, StructType

    if name in struct.names:
        return True
    for path in paths_of(name)[:-1]:
        inner = struct[path].dataType if path in struct.names else None
        if isinstance(inner, MapType):  # whose keys the schema does not tell
            return True
        if isinstance(inner, StructType) and has_path(inner, name[len(path) + 1 :]):
            return True
    return False


def has_whole_ids(frame: "DataFrame", name: str, whose: str) -> bool:
    """Whether ids are integers; anything but integers and strings is refused."""
    from pyspark.sql import types

    kind = frame.schema[name].dataType
    if isinstance(kind, types.ByteType | types.ShortType | types.IntegerType | types.LongType):
        return True
    if isinstance(kind, types.StringType):
        return False
    raise InvalidInput(
        f"{whose}, column {name!r}: an id must be a string or a 64-bit integer, "
        f"not {kind.simpleString()}"
    )


def has_whole_subscribers(subscriptions: "DataFrame") -> bool:
    """Whether subscribers are integers; the same types are allowed as for ids."""
    from pyspark.sql.types import NullType

    if "subscriber" not in subscriptions.columns:
        return False
    if isinstance(subscriptions.schema["subscriber"].dataType, NullType):
        return False
    return has_whole_ids(subscriptions, "subscriber", "subscriptions")


def id_type(events: "DataFrame", event_id: str) -> "DataType":
    """Return the type of the answer's column `event`."""
    from pyspark.sql import types

    is_whole = has_whole_ids(events, event_id, "events")
    return types.LongType() if is_whole else types.StringType()
