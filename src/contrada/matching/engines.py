"""The engines by name, and the options of each."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput, NotBuilt
from contrada.matching.crtree import SPLITS
from contrada.matching.discrete import DiscreteEvaluator
from contrada.matching.engine import FindFaults, Index, MakeIndex, find_no_faults
from contrada.matching.forwarding import ForwardingIndex
from contrada.matching.grid import LEVEL, LONGITUDE_LATITUDE, Grid
from contrada.matching.indexes.by_cells import AreaIndex, CellReader, is_by_area
from contrada.matching.indexes.by_tree import ExactEvaluator, RelationEvaluator, SpaceIndex
from contrada.matching.scan import ScanIndex
from contrada.matching.serving import (
    Describe,
    describe_anchored,
    describe_celled,
    describe_counted,
    describe_scanned,
)
from contrada.matching.strtree import StrtreeIndex
from contrada.model.expression import Literal, Spatial
from contrada.model.subscription import Subscription
from contrada.showing import brief

DEFAULT_ENGINE = "strtree"
ENGINE_LINES: Mapping[str, str] = {
    "strtree": "exact and fast: trees of boxes, then Shapely's prepared geometries",
    "crtree": "exact: the CR-tree paper's forwarding table and indexes",
    "ahs": "approximate: the AHS paper's quadtree cells",
    "scan": "exact and slow: every subscription is asked about every event",
}
_PLANNED = ("cells",)
_EVALUATORS: Mapping[str, Callable[..., RelationEvaluator]] = {
    "exact": ExactEvaluator,
    "discrete": DiscreteEvaluator,
}
_NOT_GIVEN: Any = object()  # None is a value that an option may be given, and refused


@dataclass(frozen=True, slots=True)
class Engine:
    """How to index subscriptions, and which of them, and which events, the engine must refuse.

    `is_simplified` says whether predicates may be simplified first: that reasons about relations
    exactly, and where they are approximate it would change answers. `describe` says what serves
    each constraint of a filter.
    """

    make_index: MakeIndex
    check: Callable[[Subscription], None] = lambda _: None
    find_event_faults: FindFaults = find_no_faults
    is_simplified: bool = True
    describe: Describe = describe_scanned


def make_engine(name: str, options: Mapping[str, Any]) -> Engine:
    """Make the engine of a name with its own options."""
    if isinstance(name, str) and name in _PLANNED:
        raise NotBuilt(f"engine {name!r} is not built yet; there are {', '.join(ENGINES)}")
    _check_choice("engine", name, ENGINES)
    known = list(signature(ENGINES[name]).parameters)
    for option in options:
        if option not in known:
            offered = ", ".join(known) or "none"
            raise InvalidInput(f"engine {name!r} has no option {option!r}; it has: {offered}")
    return ENGINES[name](**options)


def _check_choice(option: str, value: Any, choices: Collection[str]) -> None:
    """Refuse what is none of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInput(f"unknown {option} {brief(value)}; there are {', '.join(choices)}")


def _strtree() -> Engine:
    return Engine(StrtreeIndex, describe=describe_anchored)


def _scan() -> Engine:
    return Engine(ScanIndex)


def _crtree(
    evaluator: str = "exact",
    split: str = "quadratic",
    density: Any = _NOT_GIVEN,
    universe: Any = _NOT_GIVEN,
    halo: Any = _NOT_GIVEN,
) -> Engine:
    """Siena's forwarding table with a CR-tree; `evaluator` is "exact" or "discrete"."""
    _check_choice("evaluator", evaluator, _EVALUATORS)
    _check_choice("split", split, SPLITS)
    own = {"density": density, "universe": universe, "halo": halo}
    given = {name: value for name, value in own.items() if value is not _NOT_GIVEN}
    if evaluator != "discrete":
        for name, value in given.items():
            raise InvalidInput(f"{name} ({brief(value)}) goes with evaluator='discrete'")
    chosen: RelationEvaluator = _EVALUATORS[evaluator](**given)

    def make_index(subscriptions: Sequence[Subscription]) -> Index:
        return ForwardingIndex(subscriptions, SpaceIndex(chosen, split))

    def check(subscription: Subscription) -> None:
        for test, geometry in _spatial_tests(subscription):
            chosen.check(test.relation, geometry)

    return Engine(
        make_index,
        check,
        chosen.find_faults,
        is_simplified=evaluator == "exact",
        describe=describe_counted,
    )


def _ahs(
    level: int = LEVEL, universe: tuple[float, float, float, float] = LONGITUDE_LATITUDE
) -> Engine:
    """The AHS model: cells of a quadtree over the universe, and area matrices; approximate."""
    grid = Grid(level, universe)
    reader = CellReader(grid)

    def make_index(subscriptions: Sequence[Subscription]) -> Index:
        return ForwardingIndex(subscriptions, AreaIndex(reader))

    def check(subscription: Subscription) -> None:
        for test, geometry in _spatial_tests(subscription):
            if is_by_area(test):
                grid.check(geometry)

    return Engine(
        make_index, check, grid.find_faults, is_simplified=False, describe=describe_celled
    )


def _spatial_tests(subscription: Subscription) -> Iterator[tuple[Spatial, BaseGeometry]]:
    """List the relations to geometries that a subscription has."""
    for filter_ in subscription.predicate.filters:
        for constraint in filter_.constraints:
            match constraint.test:
                case Spatial(_, _, Literal(BaseGeometry() as geometry)) as test:
                    yield test, geometry


ENGINES: Mapping[str, Callable[..., Engine]] = {
    "strtree": _strtree,
    "crtree": _crtree,
    "ahs": _ahs,
    "scan": _scan,
}
