"""The task that adds up the counts of one micro-batch; an aggregate of Spark's would keep state.

In a batch job Spark adds up, since it can spill.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.spark.task_errors import noting_errors


@dataclass(frozen=True, slots=True)
class SumTask:
    """The function for `mapInArrow`: one row for each event, whose copies all come to one task.

    `key` is the column that numbers events; it does not go on. `n` is added up; of every other
    column the first value that is not null counts.
    """

    key: str

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the sums of all rows of a task."""
        table = pa.Table.from_batches(filled) if (filled := list(batches)) else None
        if table is None or not table.num_rows:
            return
        keys, numbers = np.unique(table[self.key].to_numpy(), return_inverse=True)
        columns = {}
        for name in table.column_names:
            if name == "n":
                columns[name] = _add_up(table[name], numbers, len(keys))
            elif name != self.key:
                columns[name] = _take_first(table[name], numbers, len(keys))
        yield from pa.table(columns).combine_chunks().to_batches()


def _add_up(counts: pa.ChunkedArray, numbers: Positions, length: int) -> pa.Array:
    """Add up what is known of each number; null where nothing is."""
    is_known = counts.is_valid().to_numpy()
    known = counts.fill_null(0).to_numpy()
    sums = np.bincount(numbers, weights=known, minlength=length).astype(np.int64)
    return pa.array(sums, mask=np.bincount(numbers, weights=is_known, minlength=length) == 0)


def _take_first(column: pa.ChunkedArray, numbers: Positions, length: int) -> pa.ChunkedArray:
    rows = np.flatnonzero(column.is_valid().to_numpy())
    found, first = np.unique(numbers[rows], return_index=True)
    places = np.full(length, -1, np.int64)
    places[found] = rows[first]
    return column.take(pa.array(places, mask=places < 0))
