"""All ids of a set in order, though they lie in several columns: few beside many cost little."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from contrada.arrays import Mask, Positions
from contrada.deferred import compute as pc
from contrada.matching.id_columns import IdColumn, make_id_array
from contrada.threads import once

_SLICES_MAX = 5_000
_MANY_MIN = 1_000  # ids beside the longest column


class RankedIds:
    """The ids of several columns, each once, and the rank of every position.

    The order of the longest column is known, or found once for whoever holds it; the ids of the
    others are placed among its.
    """

    def __init__(self, columns: Sequence[IdColumn]) -> None:
        """Take columns of one kind of ids; an id may be in several."""
        self._columns = columns
        lengths = [len(column) for column in columns]
        self._longest = int(np.argmax(lengths)) if lengths else -1

    def ranks(self, column: int, positions: Positions) -> Positions:
        """Return the ranks of some positions of one column."""
        if column != self._longest:
            return self._ranks_of_others[column][positions]
        own = self._columns[column].ranks[positions]
        if len(self._columns) == 1:
            return own
        return own + np.searchsorted(self._new_places, own, "right")

    @property
    def count(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    @once
    def as_column(self) -> IdColumn:
        """All ids in one column."""
        return self._columns[0] if self.count == 1 else IdColumn(self.ids)

    def places(self, column: int, positions: Positions) -> Positions:
        """Return where some positions of one column are in that of all ids."""
        return positions if self.count == 1 else self.ranks(column, positions)

    def prepare(self) -> None:
        """Rank now what are many, so that nobody who asks has to."""
        lengths = sorted(len(column) for column in self._columns)
        if sum(lengths[:-1]) >= _MANY_MIN:
            self.as_column.prepare()
            assert self._ranks_of_others

    def are_of(self, columns: Sequence[IdColumn]) -> bool:
        """Whether these are the ids of the very same columns."""
        same = (mine is other for mine, other in zip(self._columns, columns, strict=False))
        return len(self._columns) == len(columns) and all(same)

    @once
    def ids(self) -> pa.Array:
        """All ids in order, each once."""
        if not self._columns:
            return make_id_array([])
        known = self._columns[self._longest].in_order
        new, places = self._others.filter(pa.array(self._is_new)), self._new_places
        if not len(new):
            return known
        if pa.types.is_int64(known.type):
            return pa.array(np.insert(known.to_numpy(), places, new.to_numpy()))
        if len(new) > _SLICES_MAX:
            order = np.insert(np.arange(len(known)), places, len(known) + np.arange(len(new)))
            return pa.concat_arrays([known, new]).take(pa.array(order))
        pieces, first = [], 0
        for number, place in enumerate(places.tolist()):
            pieces += [known.slice(first, place - first), new.slice(number, 1)]
            first = place
        return pa.concat_arrays([*pieces, known.slice(first)])

    @once
    def _encoded(self) -> tuple[pa.Array, Positions]:
        """The ids of the other columns, in order and each once, and the code of each position."""
        others = [c.array for i, c in enumerate(self._columns) if i != self._longest]
        if not others:
            return self._columns[self._longest].array[:0], np.zeros(0, np.int64)
        encoded = pa.concat_arrays(others).dictionary_encode()
        order = np.asarray(pc.array_sort_indices(encoded.dictionary), np.int64)
        codes = np.empty(len(order), np.int64)
        codes[order] = np.arange(len(order))
        return encoded.dictionary.take(pa.array(order)), codes[encoded.indices.to_numpy()]

    @property
    def _others(self) -> pa.Array:
        return self._encoded[0]

    @once
    def _places(self) -> Positions:
        """How many ids of the longest column come before each of the others."""
        return self._columns[self._longest].count_before(self._others)

    @once
    def _is_new(self) -> Mask:
        """Which of the others are not in the longest column, too."""
        known = self._columns[self._longest].in_order
        is_new = np.ones(len(self._others), bool)
        at = np.flatnonzero(self._places < len(known))
        same = pc.equal(known.take(pa.array(self._places[at])), self._others.take(pa.array(at)))
        is_new[at] = ~same.to_numpy(zero_copy_only=False)
        return is_new

    @once
    def _new_places(self) -> Positions:
        return self._places[self._is_new]

    @once
    def _ranks_of_others(self) -> dict[int, Positions]:
        """The ranks of all positions of the other columns."""
        earlier: Positions = np.cumsum(self._is_new) - self._is_new
        ranks = (self._places + earlier)[self._encoded[1]]
        found, first = {}, 0
        for number, column in enumerate(self._columns):
            if number != self._longest:
                found[number] = ranks[first : first + len(column)]
                first += len(column)
        return found


class VersionIds:
    """The ids of segments, ranked once for all versions that share them, and of a few more."""

    def __init__(self, segments: RankedIds, recent: IdColumn) -> None:
        """Take what is ranked, and a column of the same kind."""
        self._segments = segments
        self._both = RankedIds([segments.as_column, recent])

    def ranks(self, column: int, positions: Positions) -> Positions:
        """Return the ranks of some positions of one segment, or of what comes after the last."""
        if column == self._segments.count:
            return self._both.ranks(1, positions)
        return self._both.ranks(0, self._segments.places(column, positions))

    @property
    def ids(self) -> pa.Array:
        """All ids in order, each once."""
        return self._both.ids
