"""A batch of positions as columns."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from contrada.arrays import Floats, Integers, Mask

OrderKeys = Callable[[pa.Table], pa.Array]
MakeRows = Callable[[], pa.Table]


@dataclass(frozen=True, slots=True)
class PositionColumns:
    """Positions that came in together, in any order; bad rows are left out before.

    `objects` and `ids` (of events) are int64 or strings, without nulls. `time_us` is microseconds
    since 1970 in UTC, in the years 1 to 9999. `x` and `y` are NaN where the geometry is not a
    point. `has_geometry` is false where it is null or empty: such a row is counted and moves the
    clock. `rows` returns the events as whoever matches needs them, and is asked where some must
    wait or are doubles; those that wait are kept in the state, and nothing here looks into them.
    `order_keys` returns for some of such rows, of this batch or of an earlier one, what decides
    which of two with one object, time and id stays: a column of binary, the WKB first, then
    whatever else tells two events apart. It is asked for such rows only.
    """

    objects: pa.Array
    time_us: Integers
    ids: pa.Array
    x: Floats
    y: Floats
    has_geometry: Mask
    rows: MakeRows
    order_keys: OrderKeys

    def __len__(self) -> int:
        return len(self.objects)
