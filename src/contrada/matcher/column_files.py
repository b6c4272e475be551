"""Subscriptions as the columns of a file, and back: format 2 of snapshots.

The columns are used where they lie. What a file states is checked before it is used, as far as it
could lead anywhere: offsets, numbers and counts, and that constraints are those of a normal form.
What was judged when it was added is not judged again: that geometries are valid, and that filters
mean what their predicates do. Skeletons are CQL2 JSON with operands of no meaning, which count as
stand-ins. Columns of other names are skipped.
"""

import json
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.arrays import Integers, Mask, Positions
from contrada.errors import InvalidInput
from contrada.files.sections import Sections, write_sections
from contrada.files.text_columns import text_array, text_columns
from contrada.language import is_constraint, read_json, to_json
from contrada.matcher.older_columns import OlderSkeleton, take_moments_out
from contrada.matching.canonical_order import in_canonical_order
from contrada.matching.constraint_columns import ConstraintColumns
from contrada.matching.expression_columns import ExpressionColumns
from contrada.matching.grouping import starts_of
from contrada.matching.id_columns import IdColumn, SubscriberColumns, are_repeated
from contrada.matching.operand_pools import OperandPools, PoolWriter
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.matching.table import FilterTable
from contrada.model.expression import Expression
from contrada.model.expression_parts import divide, make_example
from contrada.model.packed_geometries import PackedGeometries
from contrada.showing import brief

_GEOMETRIES = "geometries."
_MOMENTS, _INTERVALS = "moments.ns", "intervals.ns"


def save_columns(
    path: str | os.PathLike[str],
    columns: SubscriptionColumns,
    settings: Mapping[str, Any],
    beside: Mapping[str, NDArray[Any]] = MappingProxyType({}),
) -> None:
    """Write subscriptions to a snapshot, in the order of their ids, whole or not at all.

    Columns `beside` them are skipped by whoever loads the subscriptions.
    """
    write_sections(path, settings, {**list_columns(in_canonical_order(columns)), **beside})


def list_columns(columns: SubscriptionColumns) -> dict[str, NDArray[Any]]:
    """Return all columns by name."""
    pools, table, constraints = columns.pools, columns.table, columns.table.constraints
    ids = columns.ids.array
    own = {"ids": ids.to_numpy()} if columns.ids.is_whole else text_columns("ids", ids)
    return {
        **own,
        "subscribers.codes": columns.subscribers.codes,
        "subscribers.integers": columns.subscribers.wholes,
        **text_columns("subscribers.texts", columns.subscribers.texts),
        **_list_expressions("predicates", columns.expressions, columns.ids),
        **_list_expressions("constraints", constraints.tests),
        "constraints.is_negated": constraints.is_negated,
        "filters.owners": table.owner,
        "filters.starts": table.starts,
        "filters.constraints": table.members,
        "numbers.bits": pools.bits,
        "numbers.is_whole": pools.is_whole,
        **text_columns("texts", pools.texts),
        **{_GEOMETRIES + name: column for name, column in pools.geometries.columns().items()},
        **_list_times(pools),
    }


def _list_times(pools: OperandPools) -> dict[str, NDArray[Any]]:
    """Return the columns of moments, if there are any: who has none writes what readers know."""
    if not (len(pools.moments) or len(pools.intervals)):
        return {}
    return {_MOMENTS: pools.moments, _INTERVALS: pools.intervals}


def _list_expressions(
    name: str, expressions: ExpressionColumns, ids: IdColumn | None = None
) -> dict[str, NDArray[Any]]:
    """Return the columns of expressions; of predicates, `ids` are those of their subscriptions."""
    skeletons = []
    for number, skeleton in enumerate(expressions.skeletons):
        try:
            skeletons.append(write_skeleton(skeleton))
        except InvalidInput as error:
            if ids is None:
                raise
            first = ids.one(int(expressions.numbers_of(number)[0]))
            raise InvalidInput(f"subscription {first!r} cannot be saved: {error.message}") from None
    return {
        **text_columns(f"{name}.skeletons", pa.array(skeletons, pa.large_string())),
        f"{name}.which": expressions.which,
        f"{name}.operands": expressions.operands,
    }


def write_skeleton(skeleton: Expression) -> str:
    """Write a skeleton as CQL2 JSON; refuse what would not be read as it is, so not be opened."""
    tree = to_json(make_example(skeleton))
    if not isinstance(tree, dict):
        tree = {"op": "and", "args": [tree]}  # TRUE, FALSE and NULL are not objects
    text = json.dumps(tree, separators=(",", ":"))
    if read_skeleton(text) != skeleton:
        raise InvalidInput(f"{brief(text, 200)} does not read back as the same predicate")
    return text


def read_skeleton(text: str) -> Expression:
    """Read a skeleton from CQL2 JSON."""
    return divide(read_json(text))[0]


def load_columns(file: Sections) -> SubscriptionColumns:
    """Return the subscriptions of a snapshot; refuse columns that do not fit each other."""
    reader = _ColumnReader(file)
    predicates, tests = map(reader.read_expressions, ("predicates", "constraints"))
    pools = reader.read_pools()
    reader.check_operands("predicates", predicates, pools)
    reader.check_operands("constraints", tests, pools)
    columns = SubscriptionColumns(
        reader.read_ids(), reader.read_subscribers(), predicates, reader.read_table(tests, pools)
    )
    reader.check_lengths(columns)
    return columns


class _ColumnReader:
    """The columns of a file, each checked as it is read."""

    def __init__(self, file: Sections) -> None:
        self._file = file
        self._is_older = {_MOMENTS, _INTERVALS}.isdisjoint(file.columns)  # or has no moments
        self._older_moments = PoolWriter()

    def _refuse(self, name: str, what: str) -> InvalidInput:
        return InvalidInput(f"{self._file.name}: column {name!r} {what}")

    def _column(self, name: str, dtype: type, dimensions: int = 1) -> NDArray[Any]:
        """Return a column that must be there, of a type and of one dimension or two."""
        column = self._file.columns.get(name)
        if column is None:
            raise InvalidInput(
                f"{self._file.name}: is not a snapshot of a matcher: it has no column {name!r}"
            )
        if column.dtype != dtype or column.ndim != dimensions:
            found = f"is {column.dtype} of shape {column.shape}"
            wanted = "one dimension" if dimensions == 1 else "two dimensions"
            raise self._refuse(name, f"{found}, not {np.dtype(dtype)} in {wanted}")
        return column

    def _numbers(self, name: str, low: int, high: int, dtype: type = np.int64) -> NDArray[Any]:
        """Return a column of numbers from `low` to below `high`."""
        column = self._column(name, dtype)
        if column.size and not (column.min() >= low and column.max() < high):
            raise self._refuse(name, f"has a number that is not from {low} to {high - 1}")
        return column

    def _texts(self, name: str) -> pa.LargeStringArray:
        texts = text_array(self._file, name)
        if texts.null_count:
            raise self._refuse(name, "has a null")
        return texts

    def read_ids(self) -> IdColumn:
        is_whole = "ids" in self._file.columns
        ids = IdColumn(pa.array(self._column("ids", np.int64)) if is_whole else self._texts("ids"))
        if are_repeated(ids.array).any():
            raise self._refuse("ids", "has an id twice")
        return ids

    def read_subscribers(self) -> SubscriberColumns:
        wholes, texts = (
            self._column("subscribers.integers", np.int64),
            self._texts("subscribers.texts"),
        )
        codes = self._numbers("subscribers.codes", -1, len(wholes) + len(texts))
        if len(wholes) + len(texts) > len(codes):
            raise self._refuse("subscribers.codes", "has fewer rows than there are subscribers")
        return SubscriberColumns(codes, wholes, texts)

    def read_pools(self) -> OperandPools:
        bits, is_whole = (
            self._column("numbers.bits", np.int64),
            self._column("numbers.is_whole", bool),
        )
        if len(bits) != len(is_whole):
            raise self._refuse("numbers.is_whole", f"has {len(is_whole)} rows, not {len(bits)}")
        if not np.isfinite(bits.view(np.float64)[~is_whole]).all():
            raise self._refuse("numbers.bits", "has a number that is not finite")
        packed = {
            name.removeprefix(_GEOMETRIES): column
            for name, column in self._file.columns.items()
            if name.startswith(_GEOMETRIES)
        }
        geometries = PackedGeometries.from_columns(packed, f"{self._file.name}, geometries")
        texts, times = self._texts("texts"), self._read_times()
        return OperandPools(bits, is_whole, texts, geometries, *times)

    def _read_times(self) -> tuple[Integers, Integers]:
        if self._is_older:
            older = self._older_moments.finish()
            return older.moments, older.intervals
        moments, intervals = self._column(_MOMENTS, np.int64), self._column(_INTERVALS, np.int64, 2)
        if intervals.shape[1] != 2:
            raise self._refuse(_INTERVALS, f"has {intervals.shape[1]} numbers in a row, not 2")
        if not (intervals[:, 0] <= intervals[:, 1]).all():
            raise self._refuse(_INTERVALS, "has an interval that ends before it begins")
        return moments, intervals

    def read_expressions(self, name: str) -> ExpressionColumns:
        read = self._read_skeletons(f"{name}.skeletons")
        which = self._numbers(f"{name}.which", 0, len(read), np.int32)
        skeletons = tuple(older.skeleton for older in read)
        widths = [older.width if self._is_older else len(older.operands) for older in read]
        operands = self._column(f"{name}.operands", np.int64)
        starts = starts_of(np.array(widths, np.int64)[which])
        if starts[-1] != len(operands):
            raise self._refuse(f"{name}.operands", f"has {len(operands)} rows, not {starts[-1]}")
        if self._is_older and any(older.width < len(older.operands) for older in read):
            return take_moments_out(read, which, operands, self._older_moments)
        return ExpressionColumns(skeletons, which, starts, operands)

    def check_operands(
        self, name: str, expressions: ExpressionColumns, pools: OperandPools
    ) -> None:
        """Refuse numbers of operands that do not exist."""
        operands, types = expressions.operands, expressions.types()
        sizes = np.array(pools.sizes(), np.int64)
        if operands.size and not ((operands >= 0) & (operands < sizes[types])).all():
            raise self._refuse(f"{name}.operands", "has a number without an operand")

    def _read_skeletons(self, name: str) -> list[OlderSkeleton]:
        skeletons = []
        for number, text in enumerate(self._texts(name).to_pylist()):
            try:
                skeletons.append(OlderSkeleton.of(read_json(text)))
            except InvalidInput as error:
                raise self._refuse(name, f"cannot be read at {number}: {error}") from None
        return skeletons

    def read_table(self, tests: ExpressionColumns, pools: OperandPools) -> FilterTable:
        is_negated = self._column("constraints.is_negated", bool)
        owners = self._column("filters.owners", np.int64)
        starts = self._column("filters.starts", np.int64)
        members = self._numbers("filters.constraints", 0, len(tests))
        if len(is_negated) != len(tests):
            what = f"has {len(is_negated)} rows, not {len(tests)}"
            raise self._refuse("constraints.is_negated", what)
        self._check_constraints(tests, is_negated)
        if not _never_decreases(owners):
            raise self._refuse("filters.owners", "decreases")
        fits = len(starts) == len(owners) + 1 and starts[0] == 0 and starts[-1] == len(members)
        if not fits or not _never_decreases(starts):
            raise self._refuse("filters.starts", "does not divide the constraints among filters")
        return FilterTable(ConstraintColumns(tests, is_negated, pools), owners, starts, members)

    def _check_constraints(self, tests: ExpressionColumns, is_negated: Mask) -> None:
        """Refuse tests that no normal form has."""
        for code in np.unique(2 * tests.which.astype(np.int64) + is_negated).tolist():
            number, negated = divmod(code, 2)
            if not is_constraint(tests.skeletons[number], is_negated=bool(negated)):
                what = "negated, is not a constraint" if negated else "is not a constraint"
                raise self._refuse("constraints.skeletons", f"at {number}, {what}")

    def check_lengths(self, columns: SubscriptionColumns) -> None:
        """Refuse columns of different lengths, and filters of nobody."""
        count = len(columns.ids)
        lengths = {
            "subscribers.codes": len(columns.subscribers.codes),
            "predicates.which": len(columns.expressions),
        }
        for name, length in lengths.items():
            if length != count:
                raise self._refuse(name, f"has {length} rows, and there are {count} ids")
        self._numbers("filters.owners", 0, count)


def _never_decreases(numbers: Positions) -> bool:
    return bool((numbers[1:] >= numbers[:-1]).all())
