"""Lists and maps on their way to Python: for a null travels an empty one, and a mark.

Spark asks for the size of a batch after every row, and Arrow's Java then goes again through all
rows since the last list or map that is not null: a batch of n nulls takes the square of n.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from contrada.spark.crs_metadata import column_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

NULL_LISTS = "__nulls"  # the column of marks, a bit for each list or map of the row
_MARKED_MAX = 63


def fill_lists(frame: "DataFrame") -> "DataFrame":
    """Return rows with empty lists and maps in place of nulls, and a column that says where.

    A frame without such columns stays as it is. What structs have inside of them is left alone.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType, MapType

    lists = (ArrayType, MapType)
    fields = [f for f in frame.schema if isinstance(f.dataType, lists) and not _is_own(f.name)]
    kinds = [(field.name, field.dataType) for field in fields]
    if not kinds:
        return frame
    marks = functions.lit(0).cast("long")
    filled: dict[str, Column] = {}
    for bit, (name, kind) in enumerate(kinds[:_MARKED_MAX]):
        column = column_of(name)
        marks += functions.when(column.isNull(), 1 << bit).otherwise(0)
        filled[name] = functions.coalesce(column, _make_empty(kind)).alias(name)
    others = [filled.get(name, column_of(name)) for name in frame.columns]
    return frame.select(*others, marks.alias(NULL_LISTS))


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
    columns, bit = list(batch.columns), 0
    for at, (field, column) in enumerate(zip(batch.schema, batch.columns, strict=True)):
        if bit < _MARKED_MAX and _is_list(field.type) and not _is_own(field.name):
            is_null = (marks >> bit) & 1 == 1
            columns[at] = column.take(pa.array(np.arange(len(column)), mask=is_null))
            bit += 1
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_list(kind: pa.DataType) -> bool:
    return any(is_one(kind) for is_one in (pa.types.is_list, pa.types.is_map))
