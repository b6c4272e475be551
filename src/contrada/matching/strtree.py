"""The engine `strtree`: the best that plain Shapely can do.

Each filter is found through one positive spatial constraint, its anchor: equal anchors are stored
once, in an STRtree (see `anchor_trees`). The other constraints of a filter are checked
on what the trees leave. Filters without an anchor (attributes only, `disjoint`, NOT) are checked
on every event.
"""

from collections.abc import Collection, Sequence
from math import inf

import numpy as np
from shapely.geometry.base import BaseGeometry

from contrada.language import is_satisfied
from contrada.language.distance import reach
from contrada.matching.anchor_trees import DISTANCE, AnchorTree, make_trees
from contrada.matching.checks import Checks
from contrada.matching.columns import EventBatch, GeometryColumn, Rows
from contrada.matching.engine import Index
from contrada.matching.table import FilterTable, Ids, expand, group_by, make_table
from contrada.model.event import Event
from contrada.model.expression import Attribute, DistanceWithin, Literal, Spatial
from contrada.model.geometry import as_array
from contrada.model.subscription import Constraint, Filter, Subscription


class StrtreeIndex:
    """Trees of anchors, a table of filters, and checks for all other constraints."""

    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        """Choose an anchor for each filter and build the trees."""
        self._table = make_table(subscriptions)
        self._sizes = self._table.sizes()
        self._has_one_each = len(self._table.owner) == len(np.unique(self._table.owner))
        anchors = _choose_anchors(self._table)
        self._anchor_of = anchors
        self._unanchored = np.flatnonzero(anchors < 0)
        self._filters, self._filter_starts = group_by(anchors, len(self._table.constraints))
        self._trees = make_trees(self._table.constraints, np.unique(anchors[anchors >= 0]))
        self._checks = Checks(self._table.constraints)

    def find(self, event: Event, groups: Ids) -> Ids:
        """Find the filters whose anchor holds, then check their other constraints."""
        known: dict[int, bool] = {}
        found: dict[int, int] = {}
        for tree in self._trees:
            geometry = event.geometry(tree.attribute)
            if geometry is None:
                continue
            _, hits = tree.find(GeometryColumn.of(as_array([geometry])))
            known.update(dict.fromkeys(hits.tolist(), True))
        candidates = [self._filters_of(anchor) for anchor in known]
        for filter_ in np.concatenate([self._unanchored, *candidates]).tolist():
            position = int(self._table.owner[filter_])
            group = int(groups[position])
            if group >= 0 and group not in found and self._is_satisfied(filter_, event, known):
                found[group] = position
        return np.array(list(found.values()), np.int64)

    def match_batch(self, batch: EventBatch) -> tuple[Rows, Ids]:
        """Match all rows at once, tree by tree and constraint by constraint."""
        found = [self._match_tree(tree, batch) for tree in self._trees]
        found += [self._match_unanchored(f, batch) for f in self._unanchored.tolist()]
        rows = np.concatenate([f[0] for f in found]) if found else np.zeros(0, np.int64)
        filters = np.concatenate([f[1] for f in found]) if found else np.zeros(0, np.int64)
        positions = self._table.owner[filters]
        if self._has_one_each:
            return rows, positions
        pairs = np.unique(np.stack([rows, positions], axis=1), axis=0)
        return pairs[:, 0], pairs[:, 1]

    def without(self, positions: Collection[int]) -> Index:  # noqa: ARG002
        """Stay as it is: whoever asks leaves removed positions out."""
        return self

    def breadth(self) -> int:
        """Count the filters without an anchor."""
        return len(self._unanchored)

    def stats(self) -> dict[str, int]:
        """Count filters, distinct constraints, trees, and filters that every event visits."""
        return {
            "filters": len(self._table.owner),
            "constraints": len(self._table.constraints),
            "trees": len(self._trees),
            "unanchored": len(self._unanchored),
        }

    def _filters_of(self, anchor: int) -> Ids:
        return self._filters[self._filter_starts[anchor] : self._filter_starts[anchor + 1]]

    def _is_satisfied(self, filter_: int, event: Event, known: dict[int, bool]) -> bool:
        for number in self._table.constraints_of(filter_).tolist():
            if number not in known:
                known[number] = is_satisfied(self._table.constraints[number], event)
            if not known[number]:
                return False
        return True

    def _match_tree(self, tree: AnchorTree, batch: EventBatch) -> tuple[Rows, Ids]:
        rows, anchors = tree.find(batch.geometry(tree.attribute))
        which, places = expand(self._filter_starts, anchors)
        filters = self._filters[places]
        return self._check_rest(batch, rows[which], filters)

    def _match_unanchored(self, filter_: int, batch: EventBatch) -> tuple[Rows, Ids]:
        rows = np.arange(batch.length, dtype=np.int64)
        return self._check_rest(batch, rows, np.full(batch.length, filter_, np.int64))

    def _check_rest(self, batch: EventBatch, rows: Rows, filters: Ids) -> tuple[Rows, Ids]:
        """Drop the pairs that fail a constraint other than the anchor, one constraint at a time."""
        step = 0
        pending = np.arange(len(rows), dtype=np.int64)
        alive = np.ones(len(rows), bool)
        while (pending := pending[(self._sizes[filters[pending]] > step) & alive[pending]]).size:
            chosen = filters[pending]
            constraints = self._table.members[self._table.starts[chosen] + step]
            to_check = np.flatnonzero(constraints != self._anchor_of[chosen])
            at = pending[to_check]
            alive[at] = self._checks.holds(batch, rows[at], constraints[to_check])
            step += 1
        return rows[alive], filters[alive]


def find_anchor(filter_: Filter) -> Constraint | None:
    """Choose the constraint through which a filter is found; None where no tree can find it."""
    sizes = [_box_size(constraint) for constraint in filter_.constraints]
    smallest = min(sizes, default=inf)
    return None if smallest == inf else filter_.constraints[sizes.index(smallest)]


def is_anchor(constraint: Constraint) -> bool:
    """Tell whether a tree can find a constraint."""
    return bool(np.isfinite(_box_size(constraint)))


def describe_anchor(constraint: Constraint) -> str | None:
    """Name the tree that can find a constraint; None where no tree can."""
    if not is_anchor(constraint):
        return None
    test = constraint.test
    assert isinstance(test, Spatial | DistanceWithin) and isinstance(test.left, Attribute)
    relation = test.relation.name if isinstance(test, Spatial) else DISTANCE
    return f"STRtree of {test.left.name}, {relation}"


def _choose_anchors(table: FilterTable) -> Ids:
    """Give each filter the anchor with the smallest box; -1 where it has none."""
    sizes = np.array([_box_size(constraint) for constraint in table.constraints] or [np.inf])
    anchors = np.full(len(table.owner), -1, np.int64)
    for filter_ in range(len(table.owner)):
        numbers = table.constraints_of(filter_)
        if numbers.size:
            best = numbers[np.argmin(sizes[numbers])]
            anchors[filter_] = best if np.isfinite(sizes[best]) else -1
    return anchors


def _box_size(constraint: Constraint) -> float:
    """Give the extent of a possible anchor; infinite where the constraint cannot be one."""
    if constraint.is_negated:
        return np.inf
    match constraint.test:
        case Spatial(relation, Attribute(), Literal(BaseGeometry() as geometry)):
            if relation.holds_when_apart():
                return np.inf
        case DistanceWithin(
            Attribute(), Literal(BaseGeometry() as geometry), Literal(int() | float() as radius_m)
        ):
            geometry = reach(geometry, radius_m)
        case _:
            return np.inf
    west, south, east, north = geometry.bounds
    return float(east - west + north - south)
