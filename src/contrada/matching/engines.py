"""The engines by name, and the options of each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput, NotBuilt
from contrada.matching.crtree import SPLITS
from contrada.matching.discrete import DENSITY, LONGITUDE_LATITUDE, DiscreteEvaluator
from contrada.matching.engine import Index, MakeIndex
from contrada.matching.forwarding import ForwardingIndex
from contrada.matching.indexes.space import Evaluator, ExactEvaluator
from contrada.matching.scan import ScanIndex
from contrada.matching.strtree import StrtreeIndex
from contrada.model.expression import Literal, Spatial
from contrada.model.subscription import Subscription

DEFAULT_ENGINE = "strtree"
_PLANNED = ("cells", "ahs")


@dataclass(frozen=True, slots=True)
class Engine:
    """How to index subscriptions, and which of them the engine must refuse."""

    make_index: MakeIndex
    check: Callable[[Subscription], None] = lambda _: None


def make_engine(name: str, options: Mapping[str, Any]) -> Engine:
    """Make the engine of a name with its own options."""
    if name in _PLANNED:
        raise NotBuilt(f"engine {name!r} is not built yet; there are {', '.join(ENGINES)}")
    if name not in ENGINES:
        raise InvalidInput(f"unknown engine {name!r}; there are {', '.join(ENGINES)}")
    known = list(signature(ENGINES[name]).parameters)
    for option in options:
        if option not in known:
            offered = ", ".join(known) or "none"
            raise InvalidInput(f"engine {name!r} has no option {option!r}; it has: {offered}")
    return ENGINES[name](**options)


def _strtree() -> Engine:
    return Engine(StrtreeIndex)


def _scan() -> Engine:
    return Engine(ScanIndex)


def _crtree(
    evaluator: str = "exact",
    split: str = "quadratic",
    density: float = DENSITY,
    universe: tuple[float, float, float, float] = LONGITUDE_LATITUDE,
    halo: bool = True,
) -> Engine:
    """Siena's forwarding table with a CR-tree; `evaluator` is "exact" or "discrete"."""
    if evaluator not in {"exact", "discrete"}:
        raise InvalidInput(f"unknown evaluator {evaluator!r}; there are exact, discrete")
    if split not in SPLITS:
        raise InvalidInput(f"unknown split {split!r}; there are {', '.join(SPLITS)}")
    chosen: Evaluator = (
        ExactEvaluator() if evaluator == "exact" else DiscreteEvaluator(density, universe, halo)
    )

    def make_index(subscriptions: Sequence[Subscription]) -> Index:
        return ForwardingIndex(subscriptions, chosen, split)

    return Engine(make_index, lambda subscription: _check_shapes(subscription, chosen))


def _check_shapes(subscription: Subscription, evaluator: Evaluator) -> None:
    for filter_ in subscription.predicate.filters:
        for constraint in filter_.constraints:
            test = constraint.test
            if not (isinstance(test, Spatial) and isinstance(test.right, Literal)):
                continue
            if isinstance(test.right.value, BaseGeometry):
                evaluator.check(test.relation, test.right.value)


ENGINES: Mapping[str, Callable[..., Engine]] = {
    "strtree": _strtree,
    "crtree": _crtree,
    "scan": _scan,
}
