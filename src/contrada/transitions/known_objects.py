"""All objects of a step in one column: those of the state and those that the batch brings."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.kernels.track_walk import NO_MOMENT
from contrada.transitions.id_order import find_places, ids_like, merge_ids, sort_order
from contrada.transitions.track_state import ObjectColumns


class Known(NamedTuple):
    """Objects of a step; where those of the state have gone, and where those of each row are."""

    objects: ObjectColumns
    places_before: Positions
    places: Positions


def know_objects(objects: ObjectColumns, of_rows: pa.Array) -> Known:
    """Find the objects of rows among those of a state; new ones come in with nothing known."""
    encoded = ids_like(of_rows, objects.ids, "objects").dictionary_encode()
    order = sort_order(encoded.dictionary)
    distinct = encoded.dictionary.take(pa.array(order))
    found = find_places(objects.ids, distinct)
    new = distinct.filter(pa.array(found < 0))
    ids, places_before, new_places = merge_ids(objects.ids, new)
    places = np.empty(len(distinct), np.int64)
    places[order[found < 0]] = new_places
    places[order[found >= 0]] = places_before[found[found >= 0]]
    of_each = places[encoded.indices.to_numpy()] if len(distinct) else np.zeros(0, np.int64)
    if len(new):
        objects = _spread(objects, ids, places_before)
    return Known(objects, places_before, of_each)


def _spread(objects: ObjectColumns, ids: pa.Array, places: Positions) -> ObjectColumns:
    """Return the columns with room for new objects between the known ones."""
    count, source = len(ids), np.full(len(ids), -1)
    source[places] = np.arange(len(places))
    last_us, horizon_us = np.full(count, NO_MOMENT), np.full(count, NO_MOMENT)
    x, y, flags = np.full(count, np.nan), np.full(count, np.nan), np.zeros(count, np.uint8)
    columns = (last_us, horizon_us, x, y, flags)
    of_known = (objects.last_us, objects.horizon_us, objects.x, objects.y, objects.flags)
    for column, values in zip(columns, of_known, strict=True):
        column[places] = values
    last_ids = objects.last_ids.take(pa.array(source, mask=source < 0))
    return ObjectColumns(ids, last_us, last_ids, horizon_us, x, y, flags)
