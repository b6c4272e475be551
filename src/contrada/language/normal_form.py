"""The disjunctive normal form: a predicate as an OR of filters.

De Morgan's laws hold in three-valued logic, so NOT is pushed down to the leaves; there it stays
as the constraint's negation, except where an operator has an exact opposite (`NOT a < b` and
`a >= b` are unknown for the same events, and so are `NOT S_DISJOINT(a, b)` and
`S_INTERSECTS(a, b)`). A test without any attribute is evaluated at once.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from contrada.errors import InvalidInput, Remedy
from contrada.language.build import compare, join_tests
from contrada.language.evaluate import evaluate, truth
from contrada.limits import CONSTRAINTS_MAX, FILTERS_MAX, NORMAL_FORM_STEPS_MAX
from contrada.model.event import Event
from contrada.model.expression import (
    And,
    ArrayTest,
    Attribute,
    Between,
    Comparison,
    Computed,
    DistanceWithin,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Spatial,
    Temporal,
    attributes,
)
from contrada.model.number_keys import number_key
from contrada.model.subscription import Constraint, Filter, Predicate

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_NO_EVENT = Event({})

Terms = int  # constraints as bits of their numbers
Filters = dict[Any, Terms]  # each under a key of its own


def make_predicate(expression: Expression, filters_max: int = FILTERS_MAX) -> Predicate:
    """Bring an expression into normal form; more than `filters_max` filters are refused."""
    folded = fold(expression)
    form = _NormalForm(filters_max)
    filters = tuple(form.write(terms) for terms in form.filters(folded, is_negated=False).values())
    return Predicate(folded, filters)


def is_constraint(test: Expression, *, is_negated: bool) -> bool:
    """Whether the normal form may have a test as a constraint; engines rely on that."""
    match test:
        case And() | Or() | Not() | Between() | Literal() | Computed():
            return False
        case Comparison() if is_negated:
            return False
        case Spatial(relation) if is_negated and relation.negated():
            return False
        case _:
            return _reads_attributes(test)


def fold(expression: Expression) -> Expression:
    """Evaluate everything that reads no attribute; reading what is left gives the same again."""
    if isinstance(expression, Literal):
        return expression
    if _reads_attributes(expression):
        expression = _fold_children(expression)  # of `(a > 1) = (2 + 3)` no attribute is left
        if isinstance(expression, Literal) or _reads_attributes(expression):
            return expression
    if isinstance(expression, Computed) and expression.operator in {"interval", "array"}:
        return expression
    return Literal(evaluate(expression, _NO_EVENT))


def _reads_attributes(expression: Expression) -> bool:
    return next(attributes(expression), None) is not None


def _fold_children(node: Expression) -> Expression:
    match node:
        case And(arguments):
            return join_tests(And, map(fold, arguments))
        case Or(arguments):
            return join_tests(Or, map(fold, arguments))
        case Not(argument):
            return Not(fold(argument))
        case Computed("array", arguments):
            return Computed("array", tuple(dict.fromkeys(map(fold, arguments))))
        case Computed(operator, arguments):
            return Computed(operator, tuple(map(fold, arguments)))
        case Comparison(operator, left, right):
            return compare(operator, fold(left), fold(right))
        case Between(value, low, high):
            return Between(fold(value), fold(low), fold(high))
        case In(value, choices):
            return In(fold(value), tuple(dict.fromkeys(map(fold, choices))))
        case Like(value, pattern):
            return Like(fold(value), fold(pattern))
        case DistanceWithin(left, right, radius_m):
            return DistanceWithin(left, right, fold(radius_m))
        case ArrayTest(operator, left, right):
            return ArrayTest(operator, fold(left), fold(right))
        case Attribute() | Literal() | IsNull() | Spatial() | Temporal():
            return node


class _NormalForm:
    """The filters of an expression, over constraints that are numbered as they come."""

    def __init__(self, filters_max: int) -> None:
        self._filters_max = filters_max
        self._steps = 0
        self._number_of: dict[Constraint, int] = {}
        self._constraints: list[Constraint] = []

    def write(self, terms: Terms) -> Filter:
        """Return a filter with its constraints in the order in which the expression has them."""
        numbers = (i for i, bit in enumerate(reversed(bin(terms)[2:])) if bit == "1")
        return Filter(tuple(self._constraints[i] for i in numbers))

    def filters(self, node: Expression, *, is_negated: bool) -> Filters:
        """List the filters of a node, each once."""
        match node:
            case Not(argument):
                return self.filters(argument, is_negated=not is_negated)
            case And(arguments) | Or(arguments):
                parts = [self.filters(argument, is_negated=is_negated) for argument in arguments]
                is_conjunction = isinstance(node, And) != is_negated
                return self._join(parts) if is_conjunction else self._collect(parts)
            case Between(value, low, high):
                both = And((Comparison(">=", value, low), Comparison("<=", value, high)))
                return self.filters(fold(both), is_negated=is_negated)
            case Literal():
                holds = truth(node, _NO_EVENT) is (not is_negated)
                return {0: 0} if holds else {}
            case Comparison(operator, left, right) if is_negated:
                return self._leaf(Constraint(Comparison(_OPPOSITE[operator], left, right)))
            case Spatial(relation, left, right) if is_negated and (opposite := relation.negated()):
                return self._leaf(Constraint(Spatial(opposite, left, right)))
            case _:
                return self._leaf(Constraint(node, is_negated))

    def _leaf(self, constraint: Constraint) -> Filters:
        number = self._number_of.setdefault(constraint, len(self._constraints))
        if number == len(self._constraints):
            self._constraints.append(constraint)
        return _by_key([1 << number])

    def _collect(self, parts: Iterable[Filters]) -> Filters:
        found: Filters = {}
        for part in parts:
            found |= part
            self._check(found)
        self._check_size(found)
        return found

    def _join(self, parts: Sequence[Filters]) -> Filters:
        common = 0  # what all filters have
        others: list[Filters] = []
        for part in parts:
            if len(part) == 1:
                common |= next(iter(part.values()))
            else:
                others.append(part)
        joined = _by_key([common])
        for part in sorted(others, key=bool):  # one without filters leaves none of any other
            self._steps += len(joined) * len(part)
            if self._steps > NORMAL_FORM_STEPS_MAX:
                what = f"{NORMAL_FORM_STEPS_MAX:,} steps to its disjunctive normal form"
                self._refuse(f"{what} (NORMAL_FORM_STEPS_MAX)")
            found: Filters = {}
            for terms in joined.values():
                found |= _by_key(terms | more for more in part.values())
                self._check(found)
            joined = found
        self._check_size(joined)
        return joined

    def _check(self, filters: Filters) -> None:
        if len(filters) > self._filters_max:
            what = f"{self._filters_max} filters in disjunctive normal form (FILTERS_MAX)"
            self._refuse(what, Remedy.FILTERS_MAX)

    def _check_size(self, filters: Filters) -> None:
        if sum(terms.bit_count() for terms in filters.values()) > CONSTRAINTS_MAX:
            what = f"{CONSTRAINTS_MAX:,} constraints in disjunctive normal form (CONSTRAINTS_MAX)"
            self._refuse(what)

    def _refuse(self, what: str, *remedies: Remedy) -> NoReturn:
        raise InvalidInput(
            f"the predicate has more than {what}; split it into several subscriptions",
            remedies=remedies,
        )


def _by_key(filters: Iterable[Terms]) -> Filters:
    """List filters, each once."""
    return {number_key(terms): terms for terms in filters}
