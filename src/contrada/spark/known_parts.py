"""Parts of a published version: which of their rows the next one has, and what it writes anew."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.arrays import Mask
from contrada.files.sections import write_sections
from contrada.matcher.column_files import load_columns
from contrada.matching.lookup import PrefixLists, join_prefix_lists
from contrada.matching.subscription_columns import SubscriptionColumns, join_subscriptions
from contrada.spark.joined_parts import find_prefixes, prefix_columns, write_joined
from contrada.spark.row_digests import ROW_DIGESTS, KnownRows, RowDigests, digest_rows
from contrada.spark.staging import GONE, StagedPart, fetch, fetch_gone, put

_GROWTH = 4  # a part is merged with those after it once it is not this much larger


@dataclass(frozen=True, slots=True)
class KnownPart:
    """Subscriptions with their digests, and which rows are left.

    `prefixes` are those of the lookup table that each touches, in a part of a partition.
    """

    columns: SubscriptionColumns
    digests: RowDigests
    is_alive: Mask
    prefixes: PrefixLists | None = None

    def living(self) -> "KnownPart":
        """Return the rows that are left, as a part of their own."""
        if self.is_alive.all():
            return self
        at = np.flatnonzero(self.is_alive)
        return KnownPart(
            self.columns.take(at),
            self.digests[at],
            np.ones(len(at), bool),
            None if self.prefixes is None else self.prefixes.take(at),
        )


HeldPart = tuple[StagedPart | None, KnownPart]  # a part as it is at the URI, or one to be written


def open_known(uri: str, part: StagedPart) -> KnownPart:
    """Open a published part."""
    file = fetch(uri, part)
    columns = load_columns(file)
    is_alive = np.ones(len(columns), bool)
    is_alive[fetch_gone(uri, part)] = False
    return KnownPart(columns, file.columns[ROW_DIGESTS], is_alive, find_prefixes(file))


def join_digests(parts: Sequence[KnownPart]) -> RowDigests:
    """Return the digests of the living rows of some parts."""
    living = [part.digests[part.is_alive] for part in parts]
    return np.concatenate([np.zeros((0, 2), np.uint64), *living])


def join_known(parts: Sequence[KnownPart]) -> KnownPart:
    """Make one part of what is left of several."""
    living = [part.living() for part in parts]
    prefixes = [part.prefixes for part in living if part.prefixes is not None]
    columns = join_subscriptions([part.columns for part in living])
    return KnownPart(
        columns,
        np.concatenate([part.digests for part in living]),
        np.ones(len(columns), bool),
        join_prefix_lists(prefixes) if prefixes else None,
    )


def write_held(uri: str, held: Sequence[HeldPart]) -> tuple[StagedPart, ...]:
    """Write what is not there yet of a version's parts, some of which are merged before."""
    return tuple(_write(uri, old, part) for old, part in _merge(held) if part.is_alive.any())


def _merge(held: Sequence[HeldPart]) -> list[HeldPart]:
    """Merge parts as they pile up, so that there are few, and most of each is left."""
    merged: list[HeldPart] = []
    for old, part in held:
        is_worn = 2 * np.count_nonzero(part.is_alive) < len(part.is_alive)
        merged.append((None, part.living()) if is_worn else (old, part))
    merged = [(old, part) for old, part in merged if len(part.is_alive)]
    first = last = len(merged) - 1
    size = sum(len(part.is_alive) for _, part in merged[last:])
    while first > 0 and len(merged[first - 1][1].is_alive) < _GROWTH * size:
        first -= 1
        size += len(merged[first][1].is_alive)
    if first < last:
        merged[first:] = [(None, join_known([part for _, part in merged[first:]]))]
    return merged


def _write(uri: str, old: StagedPart | None, part: KnownPart) -> StagedPart:
    if old is None:
        beside = {ROW_DIGESTS: part.digests}
        if part.prefixes is not None:
            beside |= prefix_columns(part.prefixes)
        return write_joined(uri, part.columns, beside)
    living = int(np.count_nonzero(part.is_alive))
    if living == old.count:
        return old
    return replace(old, count=living, gone=_write_gone(uri, part.is_alive))


def _write_gone(uri: str, is_alive: Mask) -> str:
    """Write which rows of a part are gone; return the name of that file."""
    with tempfile.TemporaryDirectory(prefix="contrada-part-") as folder:
        path = Path(folder) / "gone"
        write_sections(path, {}, {GONE: np.flatnonzero(~is_alive)})
        return put(uri, path, 0).digest


class SeenRows:
    """Which rows of a published version a task has seen again, and the digests of the others."""

    def __init__(self, uri: str, parts: Sequence[StagedPart]) -> None:
        """Open the parts of the version."""
        opened = [open_known(uri, part) for part in parts]
        digests = np.concatenate([np.zeros((0, 2), np.uint64), *(p.digests for p in opened)])
        is_alive = np.concatenate([np.zeros(0, bool), *(part.is_alive for part in opened)])
        self._known = KnownRows(digests, is_alive)
        self._is_seen = np.zeros(self._known.length, bool)
        self._ids: list[pa.Array] = []
        self._digests: list[RowDigests] = []
        self.count = 0

    def leave_out(self, batch: pa.RecordBatch, id_column: str, repair: bool) -> pa.RecordBatch:
        """Return the rows of a batch that the version does not have; note the others as seen."""
        digests = digest_rows(batch, repair)
        places = self._known.find(digests)
        is_new = places < 0
        again = places[~is_new]
        is_first = np.zeros(len(again), bool)
        is_first[np.unique(again, return_index=True)[1]] = True
        is_first &= ~self._is_seen[again]
        is_new[np.flatnonzero(~is_new)[~is_first]] = True  # the same row twice: judged as such
        self._is_seen[again] = True
        self.count += int(is_first.sum())
        new = batch.filter(pa.array(is_new))
        self._ids.append(new.column(id_column).cast(_text_or_number(new.column(id_column).type)))
        self._digests.append(digests[is_new])
        return new

    def digests_of(self, ids: pa.Array) -> RowDigests:
        """Return the digests of the rows that have these ids; then none is kept any more."""
        found = pc.index_in(ids.cast(self._ids[0].type), value_set=pa.concat_arrays(self._ids))
        digests: RowDigests = np.concatenate(self._digests)[found.to_numpy()]
        self._ids, self._digests = [], []
        return digests

    def as_bits(self) -> bytes:
        """Return which rows were seen, as bits in the order of their positions."""
        return np.packbits(self._is_seen).tobytes()


def _text_or_number(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(kind) else pa.large_string()
