"""Lists and maps on their way to Python: for a null travels an empty one, and a mark.

Spark asks for the size of a batch after every row, and Arrow's Java then goes again through all
rows since the last list or map that is not null: a batch of n nulls takes the square of n. So do
those inside structs, all of which are null where the struct is. A struct with lists has a mark of
its own therefore, and travels with empty ones.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from contrada.arrays import Mask
from contrada.spark.crs_metadata import column_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

NULL_LISTS = "__nulls"  # the column of marks, a bit for each list, map and struct of the row
_MARKED_MAX = 63


def fill_lists(frame: "DataFrame") -> "DataFrame":
    """Return rows with empty lists and maps in place of nulls, and a column that says where.

    A frame without such columns stays as it is. What lists have inside of them is left alone.
    """
    from pyspark.sql import functions

    marks: list[Column] = []
    filled: dict[str, Column] = {}
    for field in frame.schema:
        count = 0 if _is_own(field.name) else _count_marks(field.dataType)
        if not count or len(marks) + count > _MARKED_MAX:
            continue
        filled[field.name] = _fill(column_of(field.name), field.dataType, marks)
    if not filled:
        return frame
    bits = (functions.when(is_null, 1 << bit).otherwise(0) for bit, is_null in enumerate(marks))
    columns = [
        filled[name].alias(name) if name in filled else column_of(name) for name in frame.columns
    ]
    return frame.select(*columns, sum(bits, functions.lit(0).cast("long")).alias(NULL_LISTS))


def _fill(column: "Column", kind: "DataType", marks: "list[Column]") -> "Column":
    """Return a column without nulls where lists are; what says where they were is added."""
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    if not _count_marks(kind):
        return column
    marks.append(column.isNull())
    if not isinstance(kind, StructType):
        return functions.coalesce(column, _make_empty(kind))
    inside = [_fill(column.getField(f.name), f.dataType, marks).alias(f.name) for f in kind]
    return functions.struct(*inside)


def _count_marks(kind: "DataType") -> int:
    """Count the lists, maps and structs with such in a type, however deep in structs."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType | MapType):
        return 1
    if not isinstance(kind, StructType):
        return 0
    if len({name.lower() for name in kind.names}) < len(kind.names):
        return 0  # Spark could not tell its fields apart
    inside = sum(_count_marks(field.dataType) for field in kind)
    return inside + 1 if inside else 0


def _is_own(name: str) -> bool:
    """Whether a name begins as those of our own columns, which are added on the way."""
    return name.startswith("__")


def _make_empty(kind: "DataType") -> "Column":
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType

    empty = functions.array() if isinstance(kind, ArrayType) else functions.create_map()
    return empty.cast(kind)


def restore_lists(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with nulls where its marks say so; without marks it stays as it is."""
    if NULL_LISTS not in batch.schema.names:
        return batch
    marks = batch.column(NULL_LISTS).to_numpy()
    if not marks.any():
        return batch
    columns, used = list(batch.columns), 0
    for at, (field, column) in enumerate(zip(batch.schema, batch.columns, strict=True)):
        count = 0 if _is_own(field.name) else _count_arrow_marks(field.type)
        if count and used + count <= _MARKED_MAX:
            bits = iter((marks >> bit) & 1 == 1 for bit in range(used, used + count))
            columns[at] = _restore(column, bits)
            used += count
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _restore(array: pa.Array, bits: Iterator[Mask]) -> pa.Array:
    """Return an array with the nulls that the next bits tell of."""
    kind = array.type
    if not _count_arrow_marks(kind):
        return array
    is_null = next(bits)
    if not pa.types.is_struct(kind):
        return array.take(pa.array(np.arange(len(array)), mask=is_null))
    inside = [_restore(array.field(at), bits) for at in range(kind.num_fields)]
    return pa.StructArray.from_arrays(inside, fields=list(kind), mask=pa.array(is_null))


def _count_arrow_marks(kind: pa.DataType) -> int:
    """Count what `_count_marks` does, in the type that comes to Python."""
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return 1
    if not pa.types.is_struct(kind):
        return 0
    names = [field.name for field in kind]
    if len({name.lower() for name in names}) < len(names):
        return 0
    inside = sum(_count_arrow_marks(field.type) for field in kind)
    return inside + 1 if inside else 0
