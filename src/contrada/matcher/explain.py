"""Explanations for people: how a predicate is understood, and why it did or did not match."""

from dataclasses import dataclass
from typing import Any

import shapely

from contrada.language import constraint_text, evaluate, to_json, to_text, truth
from contrada.language.evaluate import geometry_of
from contrada.matching.checks import describe
from contrada.matching.simplify import simplify
from contrada.matching.strtree import describe_anchor, find_anchor
from contrada.model.event import Event
from contrada.model.expression import Attribute, DistanceWithin, Spatial
from contrada.model.subscription import Constraint, Id, Predicate, Subscription

_TRUTH = {True: "true", False: "false", None: "unknown"}


@dataclass(frozen=True, slots=True)
class ExplainedConstraint:
    """A constraint as CQL2 text, and what finds or checks it."""

    text: str
    served_by: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A predicate as it is understood.

    `filters` is the disjunctive normal form: the predicate holds where all constraints of one
    filter do. `removed` lists what the simplifier took out, and why.
    """

    text: str
    json: Any
    filters: tuple[tuple[ExplainedConstraint, ...], ...]
    removed: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Give the explanation as values that JSON can hold."""
        filters = [
            [{"constraint": c.text, "served_by": c.served_by} for c in constraints]
            for constraints in self.filters
        ]
        return {
            "text": self.text,
            "json": self.json,
            "filters": filters,
            "removed": list(self.removed),
        }

    def __str__(self) -> str:
        lines = [self.text, ""]
        if not self.filters:
            lines.append("never satisfied")
        for number, constraints in enumerate(self.filters, 1):
            lines.append(f"filter {number} of {len(self.filters)}")
            lines += [f"  {c.text:<60}  {c.served_by}" for c in constraints] or ["  always"]
        lines.append("")
        if not self.removed:
            lines.append("removed by the simplifier: nothing")
        lines += [f"removed by the simplifier: {removal}" for removal in self.removed]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ConstraintTruth:
    """A constraint on one event: its truth, what the event has, and, for space, the matrix."""

    text: str
    value: bool | None
    event_values: dict[str, Any]
    matrix: str | None = None


@dataclass(frozen=True, slots=True)
class Why:
    """Why a subscription did or did not match an event."""

    id: Id
    value: bool | None
    filters: tuple[tuple[ConstraintTruth, ...], ...]

    @property
    def matched(self) -> bool:
        """Tell whether the subscription matches."""
        return self.value is True

    def __str__(self) -> str:
        verdict = "matches" if self.matched else f"does not match ({_TRUTH[self.value]})"
        lines = [f"{self.id!r} {verdict}"]
        for number, constraints in enumerate(self.filters, 1):
            lines.append(f"filter {number} of {len(self.filters)}")
            for c in constraints:
                values = ", ".join(f"{k} = {v!s:.60}" for k, v in c.event_values.items())
                matrix = f"  DE-9IM {c.matrix}" if c.matrix else ""
                lines.append(f"  {_TRUTH[c.value]:<8}{c.text}{matrix}  [{values}]")
        return "\n".join(lines)


def explain_predicate(predicate: Predicate) -> Explanation:
    """Explain a predicate that is in normal form, and what simplifying it takes out."""
    filters = []
    simplified, removals = simplify(predicate)
    for filter_ in simplified.filters:
        anchor = find_anchor(filter_)
        rows = []
        for constraint in filter_.constraints:
            tree = describe_anchor(constraint) if constraint is anchor else None
            rows.append(
                ExplainedConstraint(constraint_text(constraint), tree or describe(constraint))
            )
        filters.append(tuple(rows))
    expression = predicate.expression
    removed = tuple(map(str, removals))
    return Explanation(to_text(expression), to_json(expression), tuple(filters), removed)


def explain_why(subscription: Subscription, event: Event) -> Why:
    """Evaluate every constraint of a subscription on an event."""
    predicate = subscription.predicate
    filters = tuple(
        tuple(_explain_truth(constraint, event) for constraint in filter_.constraints)
        for filter_ in predicate.filters
    )
    return Why(subscription.id, truth(predicate.expression, event), filters)


def _explain_truth(constraint: Constraint, event: Event) -> ConstraintTruth:
    value = truth(constraint.test, event)
    if constraint.is_negated and value is not None:
        value = not value
    matrix = None
    if isinstance(constraint.test, Spatial | DistanceWithin):
        sides = [geometry_of(side, event) for side in (constraint.test.left, constraint.test.right)]
        if sides[0] is not None and sides[1] is not None:
            matrix = str(shapely.relate(sides[0], sides[1]))
    values = {name: evaluate(Attribute(name), event) for name in constraint.attributes()}
    return ConstraintTruth(constraint_text(constraint), value, values, matrix)
