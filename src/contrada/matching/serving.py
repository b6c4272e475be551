"""What finds or checks each constraint of a filter, in words, by engine.

For explanations only: it must say what the engines do, and none of them asks it.
"""

from collections.abc import Callable, Mapping

from contrada.matching.checks import describe
from contrada.matching.forwarding import is_selective
from contrada.matching.indexes import INDEXES
from contrada.matching.indexes.by_cells import is_by_area
from contrada.matching.indexes.by_tree import ExactEvaluator, SpaceIndex
from contrada.matching.indexes.difference import DifferenceIndex
from contrada.matching.indexes.equality import EqualityIndex
from contrada.matching.indexes.patterns import PatternIndex
from contrada.matching.indexes.presence import PresenceIndex
from contrada.matching.indexes.ranges import RangeIndex
from contrada.matching.strtree import describe_anchor, find_anchor
from contrada.matching.value_anchors import describe_value_anchor, find_value_anchor
from contrada.model.subscription import Constraint, Filter

Describe = Callable[[Filter], list[str]]

_WORDS: Mapping[type, str] = {
    EqualityIndex: "values of {} by hash",
    DifferenceIndex: "differences from {} by hash",
    RangeIndex: "sorted bounds of {}",
    PatternIndex: "text patterns of {}",
    PresenceIndex: "presence of {}",
}
_EVALUATED = "evaluated on every event"


def describe_scanned(filter_: Filter) -> list[str]:
    """Say what `scan` does."""
    return [_EVALUATED] * len(filter_.constraints)


def describe_anchored(filter_: Filter) -> list[str]:
    """Say what `strtree` does: one constraint is found, the others are checked."""
    anchor = find_anchor(filter_)
    if anchor is not None:
        found = describe_anchor(anchor)
    else:
        anchor = find_value_anchor(filter_)
        found = None if anchor is None else describe_value_anchor(anchor)
    return [
        (found if constraint is anchor else None) or describe(constraint)
        for constraint in filter_.constraints
    ]


def describe_counted(filter_: Filter) -> list[str]:
    """Say what `crtree` does: it counts the selective constraints, or without any all it can."""
    return _describe_counted(filter_, _name_tree)


def describe_celled(filter_: Filter) -> list[str]:
    """Say what `ahs` does: it counts like `crtree`, with cells in place of most trees."""
    return _describe_counted(filter_, _name_cells)


def _describe_counted(filter_: Filter, name_space: Callable[[Constraint], str | None]) -> list[str]:
    constraints = filter_.constraints
    has_selective = any(map(is_selective, constraints))
    found = [
        (name_space(constraint) or _name_index(constraint))
        if is_selective(constraint) or not has_selective
        else None
        for constraint in constraints
    ]
    rest = "evaluated where the others hold" if any(found) else _EVALUATED
    return [words or rest for words in found]


def _name_tree(constraint: Constraint) -> str | None:
    is_taken = SpaceIndex(ExactEvaluator()).take(0, constraint)
    return f"CR-tree of {constraint.attributes()[0]}" if is_taken else None


def _name_cells(constraint: Constraint) -> str | None:
    if is_by_area(constraint.test):
        return f"cells of {constraint.attributes()[0]}"
    return _name_tree(constraint)


def _name_index(constraint: Constraint) -> str | None:
    for make in INDEXES:
        index = make()
        if index.take(0, constraint):
            words = _WORDS.get(type(index), "index of {}")
            return words.format(constraint.attributes()[0])
    return None
