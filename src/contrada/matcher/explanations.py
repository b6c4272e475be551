"""Explanations for people: how a predicate is understood, and why it did or did not match."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.language import constraint_text, evaluate, make_predicate, to_json, to_text, truth
from contrada.language.distance import can_be_within
from contrada.language.evaluate import geometry_of
from contrada.limits import FILTERS_MAX
from contrada.matching.engine import Engine, MakeIndex
from contrada.matching.engines import DEFAULT_ENGINE, make_engine
from contrada.matching.simplify import Removal, Rule, simplify
from contrada.matching.subscribing import PredicateReader
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.crossings import are_entangled
from contrada.model.event import Event
from contrada.model.expression import Attribute, DistanceWithin, Not, Spatial
from contrada.model.geometry import as_array
from contrada.model.subscription import Constraint, Filter, Id, Predicate, Subscription
from contrada.notebook import abridge, block, code, paragraph, strong, table, text
from contrada.notebook import matrix as matrix_html
from contrada.notebook import truth as truth_html
from contrada.showing import brief, brief_text

_TRUTH = {True: "true", False: "false", None: "unknown"}
_CONSTRAINTS_MAX = 500  # that are printed
Truth = bool | None
_Part = TypeVar("_Part")


_PAIR_LIMITS = ("PAIR_CONTACTS_MAX", "PAIR_BOXES_MAX", "PAIR_PARTS_MAX", "PAIR_MEMBERS_MAX")


@dataclass(frozen=True, slots=True)
class ExplainedConstraint:
    """A constraint as CQL2 text, and what finds or checks it."""

    text: str
    served_by: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A predicate as it is understood, and as an engine serves it.

    `filters` is the disjunctive normal form: the predicate holds where all constraints of one
    filter do. `removed` lists what the simplifier removed, and why.

    >>> found = contrada.explain("wind > 17 OR wind > 24")
    >>> found.text, len(found.filters)
    ('(wind > 17) OR (wind > 24)', 1)
    >>> found.removed
    ('wind > 24 (it implies another filter: wind > 17)',)
    """

    text: str
    json: Any
    engine: str
    filters: tuple[tuple[ExplainedConstraint, ...], ...]
    removed: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as values that JSON can hold.

        >>> contrada.explain("wind > 17").as_dict()["filters"]
        [[{'constraint': 'wind > 17', 'served_by': 'sorted values of wind'}]]
        """
        filters = [
            [{"constraint": c.text, "served_by": c.served_by} for c in constraints]
            for constraints in self.filters
        ]
        return {
            "text": self.text,
            "json": self.json,
            "engine": self.engine,
            "filters": filters,
            "removed": list(self.removed),
        }

    def __str__(self) -> str:
        lines = [abridge(self.text), ""]
        lines.append(f"with the engine {self.engine}:" if self.filters else "never satisfied")
        lines += _lines(self.filters, lambda c: f"{abridge(c.text):<60}  {c.served_by}")
        lines.append("")
        if not self.removed:
            lines.append("removed by the simplifier: nothing")
        lines += [f"removed by the simplifier: {abridge(removal)}" for removal in self.removed]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Explanation with {self.engine}, {_size(self.filters)}: {abridge(self.text, 120)}>"

    def _repr_html_(self) -> str:
        rows = _rows(self.filters, lambda c: [code(c.text), text(c.served_by)])
        header = ("filter", "constraint", f"with the engine {self.engine}")
        filters = table(header, rows) if self.filters else paragraph("never satisfied")
        removed = [paragraph(f"removed by the simplifier: {code(r)}") for r in self.removed]
        return block(code(self.text), filters, *removed)


@dataclass(frozen=True, slots=True)
class ConstraintTruth:
    """A constraint on one event: its truth, what the event has, and, for space, the matrix.

    `value` is the answer of the engine; `exact_value` and the matrix are exact. `undecided` names
    the limits beyond which a spatial constraint is unknown.
    """

    text: str
    value: Truth
    event_values: dict[str, Any]
    matrix: str | None
    exact_value: Truth
    undecided: str = ""

    def __str__(self) -> str:
        matrix = f"  DE-9IM {self.matrix}" if self.matrix else ""
        values = ", ".join(
            f"{name} = {brief_text(value, 60)}" for name, value in self.event_values.items()
        )
        truth = f"{_TRUTH[self.value]:<8}"
        return f"{truth}{abridge(self.text)}{matrix}{self._remark('  ')}  [{values}]"

    def _remark(self, space: str) -> str:
        """The remark that follows the value, after some space; empty where there is none."""
        if self.undecided:
            return f"{space}(not decided: {self.undecided})"
        is_exact = self.value is self.exact_value
        return "" if is_exact else f"{space}(exactly: {_TRUTH[self.exact_value]})"

    def cells(self) -> list[str]:
        """Write the cells of its row in a notebook's table: value, constraint, event, matrix."""
        values = [text(f"{n} = {brief_text(v, 60)}") for n, v in self.event_values.items()]
        return [
            truth_html(self.value) + text(self._remark(" ")),
            code(self.text),
            "<br>".join(values),
            matrix_html(self.matrix) if self.matrix else "",
        ]


@dataclass(frozen=True, slots=True)
class Why:
    """Why a subscription did or did not match an event.

    `filters` has all constraints that the subscription came with; `impossible` says which filters
    no event can satisfy. It is true if the subscription matches.

    >>> matcher = contrada.Matcher()
    >>> matcher.add("gale", "wind > 17 AND kind = 'storm'")
    >>> why = matcher.why("gale", {"wind": 20})
    >>> why.matched, why.value, [constraint.value for constraint in why.filters[0]]
    (False, None, [True, None])
    """

    id: Id
    value: Truth
    filters: tuple[tuple[ConstraintTruth, ...], ...]
    impossible: tuple[str, ...] = ()

    @property
    def matched(self) -> bool:
        """Whether the subscription matches."""
        return self.value is True

    def __str__(self) -> str:
        lines = [f"{self.id!r} {self._verdict()}"]
        lines += _lines(self.filters, str)
        lines += [f"can never match: {abridge(reason)}" for reason in self.impossible]
        return "\n".join(lines)

    def __bool__(self) -> bool:
        return self.matched

    def __repr__(self) -> str:
        return f"<Why {brief(self.id)} {self._verdict()}: {_size(self.filters)}>"

    def _verdict(self) -> str:
        return "matches" if self.matched else f"does not match ({_TRUTH[self.value]})"

    def _repr_html_(self) -> str:
        rows = _rows(self.filters, ConstraintTruth.cells)
        header = ("filter", "value", "constraint", "the event has", "DE-9IM")
        return block(
            paragraph(f"{strong(brief(self.id))} {self._verdict()}"),
            table(header, rows) if rows else "",
            *(paragraph(f"can never match: {code(reason)}") for reason in self.impossible),
        )


def _size(filters: Sequence[Sequence[object]]) -> str:
    """The size of a normal form, in words."""
    counts = {"filter": len(filters), "constraint": sum(map(len, filters))}
    return ", ".join(f"{n:,} {name}{'' if n == 1 else 's'}" for name, n in counts.items())


def _lines(filters: Sequence[Sequence[_Part]], write: Callable[[_Part], str]) -> list[str]:
    """Write a line for each filter and, under it, one for each constraint; of very many the first.

    All of them are in the object itself.
    """
    lines: list[str] = []
    left = _CONSTRAINTS_MAX
    for number, constraints in enumerate(filters, 1):
        if left <= 0:
            lines.append(f"and {len(filters) - number + 1:,} more filters")
            break
        lines.append(f"filter {number} of {len(filters)}")
        lines += [f"  {write(constraint)}" for constraint in constraints[:left]] or ["  always"]
        if len(constraints) > left:
            lines.append(f"  and {len(constraints) - left:,} more constraints")
        left -= max(1, len(constraints))
    return lines


def _rows(
    filters: Sequence[Sequence[_Part]], cells: Callable[[_Part], list[str]]
) -> list[list[str]]:
    """Write a row for each constraint of each filter, which is numbered at its first."""
    rows = []
    for number, constraints in enumerate(filters, 1):
        written = [cells(constraint) for constraint in constraints] or [["always"]]
        numbers = [f"{number} of {len(filters)}", *[""] * len(written)]
        rows += [[label, *row] for label, row in zip(numbers, written, strict=False)]
    return rows


def explain(
    predicate: str | Mapping[str, Any] | bool | Subscription,
    *,
    engine: str = DEFAULT_ENGINE,
    filters_max: int = FILTERS_MAX,
) -> Explanation:
    """Explain how a predicate is understood: its normal form, and what serves each constraint.

    The predicate is CQL2 text or JSON, or a subscription from `Matcher.get`, for which `engine`
    should be the matcher's. The answer has them as fields, with what the simplifier removed and
    why; print it for a readable report. No event is needed: `Matcher.why` explains a subscription
    on one event.

    Raises `InvalidInput` for a predicate that cannot be read, with the place of the fault, for one
    of more than `filters_max` filters, and for an unknown engine.

    >>> print(contrada.explain("wind > 17 OR wind > 24"))
    (wind > 17) OR (wind > 24)
    <BLANKLINE>
    with the engine strtree:
    filter 1 of 1
      wind > 17                                                     sorted values of wind
    <BLANKLINE>
    removed by the simplifier: wind > 24 (it implies another filter: wind > 17)
    """
    chosen = make_engine(engine, {})
    if isinstance(predicate, Subscription):
        return _explain_predicate(predicate.predicate, engine, chosen)
    reader = PredicateReader(filters_max, chosen.effort)
    return _explain_predicate(reader.parse(predicate), engine, chosen)


def _explain_predicate(predicate: Predicate, name: str, engine: Engine) -> Explanation:
    """Explain a predicate as it is indexed, and what the simplifier had taken out of it."""
    _, removals = _as_said(predicate, engine)
    filters = tuple(
        tuple(
            ExplainedConstraint(constraint_text(constraint), served_by)
            for constraint, served_by in zip(
                filter_.constraints, engine.describe(filter_), strict=True
            )
        )
        for filter_ in predicate.filters
    )
    expression = predicate.expression
    removed = tuple(map(str, removals))
    return Explanation(to_text(expression), to_json(expression), name, filters, removed)


def _as_said(predicate: Predicate, engine: Engine) -> tuple[Predicate, tuple[Removal, ...]]:
    """Return the normal form of what was said, and what the simplifier took out of it."""
    said = make_predicate(predicate.expression, sys.maxsize)
    if engine.effort is None or said.filters == predicate.filters:
        return said, ()
    return said, simplify(said, engine.effort)[1]


def explain_why(subscription: Subscription, event: Event, engine: Engine) -> Why:
    """Ask an engine about every constraint of a subscription and an event."""
    said, removals = _as_said(subscription.predicate, engine)
    distinct = dict.fromkeys(c for filter_ in said.filters for c in filter_.constraints)
    truths = {c: _explain_truth(c, event, engine.make_index) for c in distinct}
    filters = tuple(tuple(truths[c] for c in filter_.constraints) for filter_ in said.filters)
    impossible = tuple(str(removal) for removal in removals if removal.rule is Rule.CONFLICT)
    if not filters:
        impossible = (f"{to_text(said.expression)} is true for no event",)
    return Why(subscription.id, _join(said, filters, event), filters, impossible)


def _join(said: Predicate, filters: Sequence[Sequence[ConstraintTruth]], event: Event) -> Truth:
    """Join the truths of constraints; without any filter it is that of the predicate."""
    if not filters:
        return truth(said.expression, event)
    truths = [[constraint.value for constraint in filter_] for filter_ in filters]
    joined = [False if False in values else None if None in values else True for values in truths]
    return True if True in joined else None if None in joined else False


def _find_matrix(a: BaseGeometry, b: BaseGeometry) -> str | None:
    """The matrix of two geometries; None where they meet too often to decide."""
    is_entangled = are_entangled(as_array([a]), as_array([b]))[0]
    return None if is_entangled else str(shapely.relate(a, b))


def _name_limits(test: Spatial | DistanceWithin, matrix: str | None, event: Event) -> str:
    """Name the limits that may have left a test of two geometries unknown."""
    if isinstance(test, Spatial):
        if test.relation.meeting is not None:
            return "CONTACT_PAIRS_MAX, CONTACT_EDGES_MAX"
        return (
            "PAIR_CONTACTS_MAX, PAIR_BOXES_MAX, PAIR_PARTS_MAX, PAIR_MEMBERS_MAX"
            if matrix is None
            else ""
        )
    a, b = geometry_of(test.left, event), geometry_of(test.right, event)
    can_be_asked = can_be_within(a, b, evaluate(test.radius_m, event))
    return "DISTANCE_PIECES_MAX, CONTACT_PAIRS_MAX, CONTACT_EDGES_MAX" if can_be_asked else ""


def _explain_truth(constraint: Constraint, event: Event, make_index: MakeIndex) -> ConstraintTruth:
    test = Not(constraint.test) if constraint.is_negated else constraint.test
    exact_value = truth(test, event)
    lone = Subscription(0, Predicate(test, (Filter((constraint,)),)))
    index = make_index(pack_subscriptions([lone]))
    is_found = index.find(event, np.zeros(1, np.int64)).size > 0
    value = True if is_found else None if exact_value is None else False
    matrix, undecided = None, ""
    if isinstance(constraint.test, Spatial | DistanceWithin):
        sides = [geometry_of(side, event) for side in (constraint.test.left, constraint.test.right)]
        if sides[0] is not None and sides[1] is not None:
            matrix = _find_matrix(sides[0], sides[1])
            if exact_value is None:
                undecided = _name_limits(constraint.test, matrix, event)
    values = {name: evaluate(Attribute(name), event) for name in constraint.attributes()}
    written = constraint_text(constraint)
    return ConstraintTruth(written, value, values, matrix, exact_value, undecided)
