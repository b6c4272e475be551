"""The fences of one version of a set, ready to be asked which positions are near and which ways
meet them.

Neither has an answer for every pair: a position that satisfies a predicate needs not be near to
it, and the way to such a position is of no interest. So all that matters happens at edges, whatever
engine finds the matches; the edges leave few candidates, and on those that the caller still wants
GEOS and the rest of the predicate decide.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import shapely

from contrada.arrays import Floats, Geometries, Mask, Positions
from contrada.language.distance import is_within
from contrada.language.spatial import related
from contrada.matching.checks import Checks
from contrada.matching.columns import EventBatch, GeometryColumn
from contrada.matching.edge_index import EdgeIndex
from contrada.matching.fences import FenceColumns, FenceKind, find_fences, reads_geometry
from contrada.matching.grouping import expand, group_by
from contrada.matching.meeting_trees import meet
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import GEOMETRY
from contrada.model.packed_checks import IS_AREA
from contrada.model.packed_geometries import PackedGeometries
from contrada.model.relation import pattern_relation
from contrada.threads import once

_ENTERS = pattern_relation("T********")
_TOUCHED_M = 0.01  # within which a distance of 0 is looked at closely

Choose = Callable[[Positions, Positions], Mask]  # of pairs of row and rank, those to decide


class PairArrays(NamedTuple):
    """Pairs of a row and the rank of a subscription, sorted by both, each once."""

    rows: Positions
    ranks: Positions


class FenceSets:
    """The fences among subscriptions, by the rank of their ids.

    What is asked first is built then, and kept: a set that nobody asks costs nothing.
    """

    def __init__(self, columns: SubscriptionColumns) -> None:
        """Take subscriptions."""
        self._fences = find_fences(columns)
        self._pool = columns.pools.geometries
        self._count = len(columns)
        self._ranks = columns.ids.ranks[self._fences.positions]
        self._rest = _Rest(columns, self._fences)
        self._shapes_made = np.full(len(self._pool), None, object)

    @once
    def is_fence(self) -> Mask:
        """Which subscriptions are fences, by rank."""
        is_fence = np.zeros(self._count, bool)
        is_fence[self._ranks] = True
        return is_fence

    def near(self, hysteresis_m: Floats) -> "NearFences":
        """Return what lies around the fences, given by rank how far that reaches; 0: nothing."""
        return NearFences(self, hysteresis_m)

    def find_met(self, batch: EventBatch, ways: Floats, choose: Choose) -> PairArrays:
        """Find the pairs of a row and a fence that the way to the row's place meets.

        `ways` has x and y of both ends for each row, or NaN where there is none. The row satisfies
        the rest of the predicate, and the pair is among those that `choose` picks; of those whose
        row lies inside the fence some may be missing.
        """
        ways = np.where((ways[:, :2] == ways[:, 2:]).all(axis=1)[:, None], np.nan, ways)
        passed = self._met.edges.find_passed(ways)
        rows, fences, of = self._met.spread(passed.rows, passed.geometries)
        at = np.flatnonzero(choose(rows, self._ranks[fences]))
        at = at[self._rest.holds(batch, rows[at], fences[at])]
        rows, fences = rows[at], fences[at]
        holds = passed.is_sure[of[at]] & self._is_met_by_crossing[fences]
        asked = np.flatnonzero(~holds)
        holds[asked] = self._are_met(ways[rows[asked]], fences[asked])
        return self.ranked(rows[holds], fences[holds])

    @once
    def _is_met_by_crossing(self) -> Mask:
        """Which fences are met by what crosses an edge: who enters must come to an interior."""
        is_area = IS_AREA[self._pool.kinds[self._fences.geometries]]
        return np.asarray(is_area | (self._fences.kinds == FenceKind.TOUCHED))

    def _are_met(self, ways: Floats, fences: Positions) -> Mask:
        """Decide for pairs of way and fence whether they meet."""
        lines, kinds = _make_lines(ways), self._fences.kinds[fences]
        holds = np.zeros(len(fences), bool)
        at = np.flatnonzero(kinds == FenceKind.TOUCHED)
        holds[at], _ = meet(lines.shapes[at], self.shapes(fences[at]), fences[at])
        at = np.flatnonzero(kinds == FenceKind.ENTERED)
        holds[at] = related(_ENTERS, lines.shapes[at], self.shapes(fences[at]))[0]
        at = np.flatnonzero(kinds == FenceKind.NEARED)
        holds[at] = self.are_within(lines, at, fences[at], self._fences.radii_m[fences[at]])
        return holds

    def ranked(self, rows: Positions, fences: Positions) -> PairArrays:
        """Return pairs of row and fence as pairs of row and rank, in order."""
        ranks = self._ranks[fences]
        order = np.lexsort((ranks, rows))
        return PairArrays(rows[order], ranks[order])

    @once
    def _met(self) -> "_SharedEdges":
        is_far = self._fences.kinds == FenceKind.NEARED
        radii_m = np.where(is_far, np.maximum(self._fences.radii_m, _TOUCHED_M), 0)
        fences = np.arange(len(is_far))
        return _SharedEdges(self._pool, fences, self._fences.geometries, radii_m)

    def shapes(self, fences: Positions) -> Geometries:
        """Return the geometries of fences; each is made once.

        They are not prepared: GEOS lets no two threads ask a prepared geometry about lines.
        """
        numbers = self._fences.geometries[fences]
        missing = np.unique(numbers[shapely.is_missing(self._shapes_made[numbers])])
        if missing.size:
            self._shapes_made[missing] = self._pool.shapes(missing)
        return self._shapes_made[numbers]

    def are_within(
        self, column: GeometryColumn, rows: Positions, fences: Positions, radii_m: Floats
    ) -> Mask:
        """Decide for pairs of row and fence whether they lie within a distance of each other."""
        pairs = zip(column.take(rows), self.shapes(fences), radii_m.tolist(), strict=True)
        return np.array([is_within(*pair) is True for pair in pairs], bool)


class NearFences:
    """What lies around fences, within `hysteresis` metres of each."""

    def __init__(self, sets: FenceSets, hysteresis_m: Floats) -> None:
        """Take fences, and by rank how far it reaches from each."""
        self._sets = sets
        own = hysteresis_m[sets._ranks]
        self._radii_m = sets._fences.radii_m + own
        fences = np.flatnonzero(own > 0)
        geometries = sets._fences.geometries[fences]
        self._index = _SharedEdges(sets._pool, fences, geometries, self._radii_m[fences])

    def find(self, batch: EventBatch, choose: Choose) -> PairArrays:
        """Find the pairs of a row and a fence that lie within its `hysteresis` of each other.

        To that a fence that asks for a distance adds its own. The row satisfies the rest of the
        predicate, and the pair is among those that `choose` picks; of those that lie inside the
        fence, which are no question of nearness, some may be missing.
        """
        column, index = batch.geometry(GEOMETRY), self._index
        points = index.edges.find_near_points(column.x, column.y)
        boxes = column.boxes().copy()
        boxes[column.is_point] = np.nan
        rows, geometries = index.edges.find_near(boxes)
        is_sure = np.concatenate([points.is_sure, np.zeros(len(rows), bool)])
        rows = np.concatenate([points.rows, rows])
        rows, fences, of = index.spread(rows, np.concatenate([points.geometries, geometries]))
        at = np.flatnonzero(choose(rows, self._sets._ranks[fences]))
        at = at[self._sets._rest.holds(batch, rows[at], fences[at])]
        rows, fences, is_sure = rows[at], fences[at], is_sure[of[at]]
        asked = np.flatnonzero(~is_sure)
        radii_m = self._radii_m[fences[asked]]
        is_sure[asked] = self._sets.are_within(column, rows[asked], fences[asked], radii_m)
        return self._sets.ranked(rows[is_sure], fences[is_sure])


class _SharedEdges:
    """Edges of fences, of which those with one geometry and one distance share theirs."""

    def __init__(
        self, pool: PackedGeometries, fences: Positions, geometries: Positions, radii_m: Floats
    ) -> None:
        both = np.stack([geometries.astype(np.float64), radii_m], axis=1)
        distinct, numbers = np.unique(both, axis=0, return_inverse=True)
        self.edges = EdgeIndex(pool.take(distinct[:, 0].astype(np.int64)), distinct[:, 1])
        order, self._starts = group_by(numbers.reshape(-1).astype(np.int64), len(distinct))
        self._fences = fences[order]

    def spread(
        self, rows: Positions, geometries: Positions
    ) -> tuple[Positions, Positions, Positions]:
        """Return for pairs of row and geometry those of row and fence, and the pair of each."""
        which, places = expand(self._starts, geometries)
        return rows[which], self._fences[places], which


class _Rest:
    """What the predicates of fences ask besides where the event is."""

    def __init__(self, columns: SubscriptionColumns, fences: FenceColumns) -> None:
        self._table, self._positions = columns.table, fences.positions
        self._count = len(columns)

    @once
    def _is_rest(self) -> Mask:
        """Which constraints of the table do not read the geometry."""
        constraints = self._table.constraints
        is_rest = np.ones(len(constraints), bool)
        for head in constraints.heads():
            is_rest[head.numbers] = not reads_geometry(head.constraint.test)
        return is_rest

    @once
    def _is_asked(self) -> Mask:
        """Which fences ask anything else: none of their filters is about the place alone."""
        starts = self._table.starts
        others = np.concatenate([[0], np.cumsum(self._is_rest[self._table.members])])
        is_bare = others[starts[1:]] == others[starts[:-1]]
        has_bare = np.zeros(self._count, bool)
        has_bare[self._table.owner[is_bare]] = True
        return ~has_bare[self._positions]

    @once
    def _checks(self) -> Checks:
        return Checks(self._table.constraints, self._is_rest)

    @once
    def _filter_starts(self) -> Positions:
        owners = np.arange(self._count + 1)
        return np.searchsorted(self._table.owner, owners).astype(np.int64)

    def holds(self, batch: EventBatch, rows: Positions, fences: Positions) -> Mask:
        """Decide for pairs of row and fence whether the row satisfies the rest."""
        satisfied = ~self._is_asked[fences]
        asked = np.flatnonzero(~satisfied)
        if asked.size:
            positions = self._positions[fences[asked]]
            satisfied[asked] = self._satisfy(batch, rows[asked], positions)
        return satisfied

    def _satisfy(self, batch: EventBatch, rows: Positions, positions: Positions) -> Mask:
        pairs, filters = expand(self._filter_starts, positions)
        which, places = expand(self._table.starts, filters)
        members = self._table.members[places]
        asked = np.flatnonzero(self._is_rest[members])
        holds = self._checks.holds(batch, rows[pairs[which[asked]]], members[asked])
        is_failed = np.zeros(len(filters), bool)
        is_failed[which[asked[~holds]]] = True
        satisfied = np.zeros(len(rows), bool)
        satisfied[pairs[~is_failed]] = True
        return satisfied


def _make_lines(ways: Floats) -> GeometryColumn:
    """Make a line of each way."""
    shapes = np.empty(len(ways), object)
    shapes[:] = shapely.linestrings(ways.reshape(-1, 2, 2))
    x, y = np.full((2, len(ways)), np.nan)
    return GeometryColumn(x, y, np.zeros(len(ways), bool), shapes)
