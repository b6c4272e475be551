"""How `crtree` is made, and its options."""

from collections.abc import Callable, Mapping
from typing import Any

from contrada.errors import InvalidInput
from contrada.matching.crtree.discrete import DiscreteEvaluator
from contrada.matching.engine import Engine, EngineKind, Index, check_choice
from contrada.matching.forwarding import ForwardingIndex, describe_counted, effort_of
from contrada.matching.indexes.by_tree import ExactEvaluator, RelationEvaluator, SpaceIndex
from contrada.matching.indexes.cr_tree import SPLIT_WEIGHTS
from contrada.matching.spatial_tests import list_spatial_tests
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.subscription import Filter, Subscription
from contrada.showing import brief

_EVALUATORS: Mapping[str, Callable[..., RelationEvaluator]] = {
    "exact": ExactEvaluator,
    "discrete": DiscreteEvaluator,
}
_NOT_GIVEN: Any = object()  # None is a value that an option may be given, and refused


def _make(
    evaluator: str = "exact",
    split: str = "quadratic",
    density: Any = _NOT_GIVEN,
    universe: Any = _NOT_GIVEN,
    halo: Any = _NOT_GIVEN,
) -> Engine:
    """Choose who decides relations, and how nodes of trees are split."""
    check_choice("evaluator", evaluator, _EVALUATORS)
    check_choice("split", split, SPLIT_WEIGHTS)
    own = {"density": density, "universe": universe, "halo": halo}
    given = {name: value for name, value in own.items() if value is not _NOT_GIVEN}
    if evaluator != "discrete":
        for name, value in given.items():
            raise InvalidInput(f"{name} ({brief(value)}) is only allowed with evaluator='discrete'")
    chosen: RelationEvaluator = _EVALUATORS[evaluator](**given)

    def make_index(subscriptions: SubscriptionColumns) -> Index:
        return ForwardingIndex(subscriptions, SpaceIndex(chosen, split))

    def check(subscription: Subscription) -> None:
        for test, geometry in list_spatial_tests(subscription):
            chosen.check(test.relation, geometry)

    return Engine(
        make_index,
        _describe,
        effort_of if evaluator == "exact" else None,
        check,
        chosen.find_faults,
    )


def _describe(filter_: Filter) -> list[str]:
    return describe_counted(filter_, SpaceIndex(ExactEvaluator()))


CRTREE = EngineKind("crtree", "exact: the CR-tree paper's forwarding table and indexes", _make)
