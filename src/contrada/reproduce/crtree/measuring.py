"""What an event costs in an index of constraints that are drawn at random."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Integers, Positions
from contrada.matching.crtree.discrete import DiscreteEvaluator
from contrada.matching.forwarding import ForwardingIndex, effort_of
from contrada.matching.indexes.by_tree import RelationEvaluator, ShapeSet, SpaceIndex
from contrada.matching.simplify import simplify
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.event import Event
from contrada.model.expression import And, Attribute, Expression, Literal, Or, Spatial
from contrada.model.relation import RELATIONS
from contrada.model.subscription import Constraint, Filter, Predicate, Subscription
from contrada.reproduce.scenarios import Regions

UNIVERSE = (0.0, 0.0, 1.0, 1.0)
_RUNS = 3
_TICK_S = time.get_clock_info("thread_time").resolution
_EGENHOFER = [name for name in RELATIONS if name.startswith("eh")]

Subjects = Sequence[Any] | Regions


@dataclass(frozen=True, slots=True)
class Cost:
    """What one event costs on average, and for how many relations Algorithm 1 was asked."""

    ms: float
    relations: float = 0.0


def mean_ms(run: Callable[[Any], object], events: Subjects) -> float:
    """Return the processor time for an event, without what else the machine does.

    What is run must have been compiled before.
    """
    started = time.thread_time()
    for event in events:
        run(event)
    elapsed_s = max(time.thread_time() - started, _TICK_S)  # never zero: ratios are made of it
    return elapsed_s / len(events) * 1e3


class CountingEvaluator(DiscreteEvaluator):
    """Algorithm 1 over the unit square, which counts the relations that it computes."""

    def __init__(self, density: float) -> None:
        """Choose the density."""
        super().__init__(density, UNIVERSE)
        self.relation_count = 0

    def bases(self, event: BaseGeometry, shapes: ShapeSet, items: Positions) -> Integers:
        """Find the relation of a region to each item."""
        self.relation_count += len(items)
        return super().bases(event, shapes, items)


class MeasuredIndex:
    """The forwarding table with the CR-tree over some subscriptions."""

    def __init__(self, subscriptions: Sequence[Subscription], evaluator: RelationEvaluator) -> None:
        """Build the index."""
        self._index = ForwardingIndex(pack_subscriptions(subscriptions), SpaceIndex(evaluator))
        self._counter = evaluator if isinstance(evaluator, CountingEvaluator) else None

    def cost(self, events: Subjects) -> Cost:
        """Measure what matching an event costs: the least of three runs over all events."""
        self._match(events[0])  # compiles, and fills caches
        count_before = self._count()
        ms = min(mean_ms(self._match, events) for _ in range(_RUNS))
        return Cost(ms, (self._count() - count_before) / len(events) / _RUNS)

    def _count(self) -> int:
        return 0 if self._counter is None else self._counter.relation_count

    def _match(self, event: Any) -> object:
        return self._index.find(Event({"g": event}), self._index.everything)


def index_alone(rng: Generator, regions: Regions, evaluator: RelationEvaluator) -> MeasuredIndex:
    """Index scenario 1: one constraint in a filter, one filter in a predicate."""
    subscriptions = []
    for number, region in enumerate(regions):
        constraint = _constraint(rng, region)
        predicate = Predicate(constraint.test, (Filter((constraint,)),))
        subscriptions.append(Subscription(number, predicate))
    return MeasuredIndex(subscriptions, evaluator)


@dataclass(frozen=True, slots=True)
class SimplifiedPair:
    """Scenario 2 as it is and simplified; `kept` is the share of constraints that stays."""

    plain: MeasuredIndex
    simplified: MeasuredIndex
    kept: float


def index_pair(
    rng: Generator,
    regions: Regions,
    predicate_count: int,
    density: float,
    step: Callable[[], object],
) -> SimplifiedPair:
    """Index scenario 2: a few predicates, each of many filters of two constraints."""
    plain = list(_predicates(rng, regions, predicate_count))
    simplified = []
    for predicate in plain:
        simplified.append(simplify(predicate, effort_of)[0])
        step()
    plain_index, simplified_index = (
        MeasuredIndex(
            [Subscription(i, p, i) for i, p in enumerate(chosen)], CountingEvaluator(density)
        )
        for chosen in (plain, simplified)
    )
    return SimplifiedPair(plain_index, simplified_index, _size(simplified) / _size(plain))


def _size(predicates: Sequence[Predicate]) -> int:
    return sum(len(filter_.constraints) for p in predicates for filter_ in p.filters)


def _predicates(rng: Generator, regions: Regions, count: int) -> Iterator[Predicate]:
    constraints = [_constraint(rng, region) for region in regions]
    filters = [Filter(tuple(constraints[i : i + 2])) for i in range(0, len(constraints) - 1, 2)]
    for part in range(min(count, len(filters))):
        mine = tuple(filters[part::count])
        tree: Expression = Or(tuple(And(tuple(c.test for c in f.constraints)) for f in mine))
        yield Predicate(tree, mine)


def _constraint(rng: Generator, region: Any) -> Constraint:
    name = _EGENHOFER[int(rng.integers(0, len(_EGENHOFER)))]
    return Constraint(Spatial(RELATIONS[name], Attribute("g"), Literal(region)))
