"""Columns of a kind that subscriptions do not compare them with: such a test is always unknown."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from contrada.language import to_text
from contrada.language.expecting import Kinds, ValueKind, expected_kinds
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import find_beginnings
from contrada.model.expression import Expression
from contrada.model.expression_parts import OperandType, list_operand_types
from contrada.showing import cut

_EXAMPLE_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A column, what it holds, what it is compared with instead, by how many, and one example."""

    column: str
    held: ValueKind
    expected: Kinds
    subscriptions: int
    example: str

    def __str__(self) -> str:
        are = "subscription compares" if self.subscriptions == 1 else "subscriptions compare"
        others = " or ".join(kind.value for kind in ValueKind if kind in self.expected)
        return (
            f"column {self.column!r} holds {self.held.value}, and {self.subscriptions:,} {are} it "
            f"with {others}, which is never true: {self.example}"
        )


def list_expectations(skeletons: Iterable[Expression]) -> frozenset[tuple[str, Kinds]]:
    """List which kinds of values skeletons expect of attributes, each once.

    A text among their operands may turn out to be a moment, which would expect more kinds.
    """
    return frozenset(
        (name, kinds) for skeleton in skeletons for name, kinds, _ in expected_kinds(skeleton)
    )


def find_unmet(
    expectations: Collection[tuple[str, Kinds]], schema: pa.Schema
) -> dict[str, ValueKind]:
    """Find the columns that hold another kind of values than some test expects, and which."""
    columns = frozenset(schema.names)
    held = {name: _kind_of_column(schema, columns, name) for name, _ in expectations}
    return {
        name: kind
        for name, kinds in expectations
        if (kind := held[name]) is not None and kind not in kinds
    }


def describe_unmet(
    unmet: Mapping[str, ValueKind], parts: Iterable[SubscriptionColumns]
) -> list[Mismatch]:
    """Describe the other kinds that subscriptions compare columns with, and how many do."""
    counts: Counter[str] = Counter()
    expected: dict[str, Kinds] = {}
    examples: dict[str, Expression] = {}
    for expression, count in chain.from_iterable(map(_list_suspects, parts)):
        found = set()
        for name, kinds, test in expected_kinds(expression):
            if name in unmet and unmet[name] not in kinds:
                found.add(name)
                expected[name] = kinds | expected.get(name, kinds)
                examples.setdefault(name, test)
        counts.update(dict.fromkeys(found, count))
    return [
        Mismatch(name, unmet[name], expected[name], counts[name], _show(examples[name]))
        for name in sorted(counts)
    ]


def find_mismatches(part: SubscriptionColumns, schema: pa.Schema) -> list[Mismatch]:
    """Find the columns of events that some of these subscriptions never compare with their like."""
    unmet = find_unmet(list_expectations(part.expressions.skeletons), schema)
    return describe_unmet(unmet, [part]) if unmet else []


def join_mismatches(found: Iterable[Mismatch]) -> list[Mismatch]:
    """Bring together what several parts of a set have found, by column."""
    joined: dict[str, Mismatch] = {}
    for one in found:
        known = joined.setdefault(one.column, one)
        if known is not one:
            count = known.subscriptions + one.subscriptions
            expected = known.expected | one.expected
            joined[one.column] = replace(known, expected=expected, subscriptions=count)
    return [joined[column] for column in sorted(joined)]


def _list_suspects(part: SubscriptionColumns) -> Iterator[tuple[Expression, int]]:
    """List an expression for each skeleton, and how many have it; all, where texts may matter."""
    expressions, pools = part.expressions, part.pools
    for number, skeleton in enumerate(expressions.skeletons):
        positions = expressions.numbers_of(number).tolist()
        if OperandType.TEXT in list_operand_types(skeleton):
            yield from ((expressions.one(position, pools), 1) for position in positions)
        elif positions:
            yield expressions.one(positions[0], pools), len(positions)


def _show(test: Expression) -> str:
    return cut(to_text(test), _EXAMPLE_LENGTH)


def _kind_of_column(schema: pa.Schema, columns: Set[str], name: str) -> ValueKind | None:
    """Return what a column holds; None for any other kind, or where a path might hold it, too."""
    index = schema.get_field_index(name)
    if index < 0 or find_beginnings(columns, name):
        return None
    kind, types = schema.field(index).type, pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return ValueKind.NUMBER
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return ValueKind.TEXT
    if types.is_boolean(kind):
        return ValueKind.TRUTH
    return ValueKind.MOMENT if types.is_date(kind) or types.is_timestamp(kind) else None
