"""Features as the columns that the matcher reads: a geometry, an id, and each property by name.

What a column means is what the same Features mean one by one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from contrada.arrays import Geometries
from contrada.matching.arrow_values import as_values
from contrada.matching.mixed_columns import write_mixed
from contrada.model.event import GEOMETRY

_ID = "id"


def make_rows(attributes: Sequence[Mapping[str, Any]], geometries: Geometries) -> pa.RecordBatch:
    """Make the columns of Features of their attributes, and of the geometries read of them."""
    names = dict.fromkeys(name for row in attributes for name in row if name != GEOMETRY)
    columns = {GEOMETRY: _write_wkb(geometries)}
    columns |= {name: _make_column([row.get(name) for row in attributes]) for name in names}
    return pa.RecordBatch.from_pydict(columns)


def join_rows(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Put the rows of several batches one after another; what a batch lacks is null."""
    batches = [batch for batch in batches if batch.num_rows] or batches[:1]
    if len(batches) == 1:
        return batches[0]
    names = dict.fromkeys(name for batch in batches for name in batch.schema.names)
    return pa.RecordBatch.from_pydict({name: _join(name, batches) for name in names})


def _join(name: str, batches: Iterable[pa.RecordBatch]) -> pa.Array:
    found = [
        batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows)
        for batch in batches
    ]
    types = {part.type for part in found if part.null_count < len(part)}
    if len(types) > 1:
        return write_mixed([value for part in found for value in as_values(part)])
    kind = next(iter(types), pa.null())
    whole = [part if part.type == kind else pa.nulls(len(part), kind) for part in found]
    return pa.concat_arrays(whole)


def _make_column(values: list[Any]) -> pa.Array:
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {str}:
        return pa.array(values, pa.string())
    return write_mixed(values)


def _write_wkb(geometries: Geometries) -> pa.Array:
    """Write geometries as WKB; an empty one stays what it is, since it is not null."""
    values = np.asarray(shapely.to_wkb(geometries, output_dimension=2, byte_order=1), object)
    return pa.array(values, pa.binary())
