"""What a Python worker keeps open: sets of subscriptions, and what tasks derive from them.

There is one limit for all of it, on the memory that it takes in this process. Columns that are
mapped are the machine's, whoever looks at them; the objects of an engine are the worker's own.
"""

import gc
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from contrada.matcher.column_files import load_columns
from contrada.matching.segment_rows import Segment, SegmentRows
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscription_columns import (
    SubscriptionColumns,
    join_subscriptions,
    pack_subscriptions,
)
from contrada.spark.staging import StagedPart, StagedSet, fetch, fetch_gone
from contrada.spark.worker_cache import read_bytes_max

OPEN_BYTES_MAX = "CONTRADA_OPEN_BYTES_MAX"
OPEN_BYTES_MAX_DEFAULT = 4 * 2**30
_KEPT_MIN = 4  # as many as one task may use: two sets, and what is derived from each
# What an index of geometries was seen to take, all of them prepared.
_GEOMETRY_BYTES, _VERTEX_BYTES = 350, 80
_ROW_BYTES = 150  # of an index and of names, and of columns that no file has
_RANK_BYTES = 64  # of ids in order and their places, beside the parts of a version
_VERSIONS_MAX = 2  # of a published set: the current one, and the one before

Derived = TypeVar("Derived")


class OpenSets:
    """Values by key, each with the bytes that it takes; the longest unused go beyond the limit."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Any, int]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def get(
        self, key: Hashable, make: Callable[[], Derived], count_bytes: Callable[[Derived], int]
    ) -> Derived:
        """Return the value of a key, which is made where it is not kept."""
        if key in self._kept:
            self._kept[key] = self._kept.pop(key)  # the last to go
        else:
            value = make()
            self._kept[key] = (value, count_bytes(value))
            self._make_room()
        kept: Derived = self._kept[key][0]
        return kept

    def forget(self, key: Hashable) -> None:
        """Let the value of a key go."""
        self._kept.pop(key, None)

    def forget_derived(self, staged: StagedSet) -> None:
        """Let all go that was derived from a set."""
        for key in [key for key in self._kept if isinstance(key, tuple) and key[0] == staged]:
            del self._kept[key]

    def _make_room(self) -> None:
        bytes_max = read_bytes_max(OPEN_BYTES_MAX, OPEN_BYTES_MAX_DEFAULT)
        total = sum(size for _, size in self._kept.values())
        while total > bytes_max and len(self._kept) > _KEPT_MIN:
            total -= self._kept.pop(next(iter(self._kept)))[1]


_open_sets = OpenSets()


def open_set(staged: StagedSet) -> SubscriptionSet:
    """Open the subscriptions of a task, with their index; a worker does so once."""
    if staged.version is None:
        return _open_sets.get(("set", staged), lambda: _index(staged), _count_index_bytes)
    _recent_versions.enter(staged, _open_sets)
    rows = [_open_part(staged, part) for part in staged.parts]
    return _open_sets.get(("set", staged), lambda: _assemble(staged, rows), _count_rank_bytes)


def open_rows(staged: StagedSet) -> SubscriptionSet:
    """Open the subscriptions of a task, which asks them nothing that needs an index."""
    return _open_sets.get(("rows", staged), lambda: _open(staged), _count_row_bytes)


def derive(
    staged: StagedSet,
    key: Hashable,
    make: Callable[[], Derived],
    count_bytes: Callable[[Derived], int],
) -> Derived:
    """Return what tasks derive from a set; a worker makes it once and keeps it beside the set."""
    return _open_sets.get((staged, key), make, count_bytes)


def _open_part(staged: StagedSet, part: StagedPart) -> SegmentRows:
    """Open a part, with its index, for all versions that share it."""

    def make() -> SegmentRows:
        columns = load_columns(fetch(staged.uri, part))
        if staged.evaluator.grid is not None:  # whose filters are not simplified
            reader = staged.evaluator.reader()
            remade = (replace(s, predicate=reader.remake(s.predicate)) for s in columns)
            columns = pack_subscriptions(list(remade))
        rows = SegmentRows(columns, staged.evaluator.engine().make_index)
        rows.prepare()
        return rows

    key = _part_key(staged, part)
    return _open_sets.get(key, make, lambda rows: estimate_bytes(rows.columns))


def _part_key(staged: StagedSet, part: StagedPart) -> Hashable:
    return "part", staged.uri, part.digest, staged.evaluator


def _assemble(staged: StagedSet, rows: Sequence[SegmentRows]) -> SubscriptionSet:
    """Make a version of parts that are open, without the rows that it has no more."""
    segments = []
    for part, opened in zip(staged.parts, rows, strict=True):
        segment = Segment.of(opened)
        gone = fetch_gone(staged.uri, part)
        segments.append(segment.leave_out(gone) if gone.size else segment)
    subscriptions = SubscriptionSet(staged.evaluator.engine().make_index, segments)
    gc.unfreeze()
    gc.collect()  # what a version before it has left behind
    gc.freeze()
    return subscriptions


class _RecentVersions:
    """Which versions of each published set this worker has met: it keeps the last two."""

    def __init__(self) -> None:
        self._met: dict[str, dict[str, set[StagedSet]]] = {}

    def enter(self, staged: StagedSet, kept: OpenSets) -> None:
        """Note that a task meets a version; forget what only versions before the last have."""
        assert staged.version is not None
        met = self._met.setdefault(staged.uri, {})
        sets = met.pop(staged.version, set())
        met[staged.version] = sets | {staged}  # the last to go
        while len(met) > _VERSIONS_MAX:
            left = met.pop(next(iter(met)))
            used = {_part_key(s, part) for sets in met.values() for s in sets for part in s.parts}
            for old in left:
                kept.forget(("set", old))
                kept.forget_derived(old)
                for key in {_part_key(old, part) for part in old.parts} - used:
                    kept.forget(key)


_recent_versions = _RecentVersions()


def _count_rank_bytes(subscriptions: SubscriptionSet) -> int:
    return _RANK_BYTES * len(subscriptions)


def _open(staged: StagedSet) -> SubscriptionSet:
    parts = [load_columns(file) for file in staged.fetch()]
    columns = parts[0] if len(parts) == 1 else join_subscriptions(parts or [pack_subscriptions([])])
    return SubscriptionSet(staged.evaluator.engine().make_index).changed((), columns)


def _index(staged: StagedSet) -> SubscriptionSet:
    subscriptions = _open(staged)
    subscriptions.prepare()
    gc.freeze()  # else every collection walks over the objects of the index
    return subscriptions


def _count_row_bytes(subscriptions: SubscriptionSet) -> int:
    return _ROW_BYTES * len(subscriptions)


def _count_index_bytes(subscriptions: SubscriptionSet) -> int:
    return estimate_bytes(subscriptions.living())


def estimate_bytes(columns: SubscriptionColumns) -> int:
    """Estimate what subscriptions take with an index of objects, beside their mapped columns."""
    geometries = columns.pools.geometries
    vertices = len(geometries.coordinates)
    shapes = _GEOMETRY_BYTES * len(geometries) + _VERTEX_BYTES * vertices
    return _ROW_BYTES * len(columns) + shapes
