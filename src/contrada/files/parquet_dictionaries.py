"""Texts and bytes that a Parquet file holds in dictionaries, taken out in pieces of bounded size.

One value of a dictionary may stand in thousands of rows: a file of a few hundred bytes would take
gigabytes if Arrow wrote all of a batch out at once.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.deferred import compute as pc
from contrada.deferred import parquet as pq
from contrada.files.arrow_types import is_text
from contrada.files.rows import BATCH_BYTES


def find_packed(facts: "pq.FileMetaData", schema: pa.Schema, wanted: Sequence[str]) -> list[str]:
    """List those columns of texts or bytes that any row group has in a dictionary."""
    plain = {name for name in wanted if _is_flat(schema.field(name).type)}
    found = set()
    for group in map(facts.row_group, range(facts.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.has_dictionary_page:
                found.add(column.path_in_schema)
    return sorted(plain & found)


def _is_flat(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def unpack(batch: pa.RecordBatch, kinds: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch with the values of some dictionaries; of long ones few at once."""
    if not kinds:
        yield batch
        return
    sizes = np.sum([_row_bytes(batch.column(name)) for name in kinds], axis=0)
    piece_of = np.cumsum(sizes) // BATCH_BYTES
    starts = [0, *(np.flatnonzero(np.diff(piece_of)) + 1).tolist()]
    for start, end in zip(starts, [*starts[1:], batch.num_rows], strict=True):
        piece = batch.slice(start, end - start)
        for name, kind in kinds.items():
            values = piece.column(name).dictionary_decode().cast(kind)
            piece = piece.set_column(piece.schema.get_field_index(name), name, values)
        yield piece


def _row_bytes(array: pa.DictionaryArray) -> NDArray[np.int64]:
    lengths = np.append(np.asarray(pc.binary_length(array.dictionary), np.int64), 0)
    return np.asarray(lengths[np.asarray(array.indices.fill_null(len(lengths) - 1))], np.int64)
