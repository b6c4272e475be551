"""How `strtree` is made, and what it says of constraints."""

from math import isfinite

from contrada.matching.anchors import find_anchor, is_anchor
from contrada.matching.checks import describe
from contrada.matching.engine import Engine, EngineKind
from contrada.matching.strtree.anchor_trees import describe_anchor
from contrada.matching.strtree.index import StrtreeIndex
from contrada.matching.strtree.value_anchors import (
    describe_value_anchor,
    find_value_anchor,
    rank_value_anchor,
)
from contrada.model.subscription import Constraint, Filter


def _make() -> Engine:
    return Engine(StrtreeIndex, _describe, _effort)


def _describe(filter_: Filter) -> list[str]:
    """Describe how a filter is found: through one constraint, and the others are checked."""
    anchor = find_anchor(filter_)
    if anchor is not None:
        found = describe_anchor(anchor)
    else:
        anchor = find_value_anchor(filter_)
        found = "" if anchor is None else describe_value_anchor(anchor)
    return [
        found if constraint is anchor else describe(constraint)
        for constraint in filter_.constraints
    ]


def _effort(constraint: Constraint) -> int:
    """Rank a constraint: a tree finds it, its value does, or it is only checked."""
    if is_anchor(constraint):
        return 0
    return 1 if isfinite(rank_value_anchor(constraint)) else 2


STRTREE = EngineKind(
    "strtree", "exact and fast: trees of boxes, then Shapely's prepared geometries", _make
)
