"""Subscriptions from what users give: one by one, or as rows of a table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Mask, Positions
from contrada.errors import InvalidInput, Remedy
from contrada.language import make_predicate, read
from contrada.limits import FILTERS_MAX
from contrada.matching.arrow_values import as_values
from contrada.matching.columns import read_geometries
from contrada.matching.engine import Effort
from contrada.matching.ids import read_id, read_id_column
from contrada.matching.plain_rows import (
    PlainPart,
    pack_plain,
    read_plain_ids,
    read_row_geometries,
)
from contrada.matching.simplify import simplify
from contrada.matching.subscription_columns import (
    SubscriptionColumns,
    join_subscriptions,
    pack_subscriptions,
)
from contrada.model.attribute_names import read_attribute
from contrada.model.event import GEOMETRY
from contrada.model.expression import And, Attribute, Expression, Literal, Spatial
from contrada.model.geometry import BAD_CELL, Fault, is_area, is_blank
from contrada.model.relation import Family, SpatialRelation, find_relation
from contrada.model.row_columns import BESIDE_GEOMETRY, DEFAULTS, ROW_COLUMNS
from contrada.model.subscription import Constraint, Filter, Id, Predicate, Subscription
from contrada.showing import brief
from contrada.threads import once

_PARSED_MAX = 10_000

OnBad = Callable[[int, Id | None, str], object]  # with the row, its id and the reason
HearBad = Callable[[int, Id | None, str, bool], object]  # and whether the row was mended
OnRefused = Callable[[int, Id | None, InvalidInput], object]

SUBSCRIPTION_COLUMNS = tuple(column.name for column in ROW_COLUMNS if column.name != "id")
_OPTIONAL = tuple(name for name in SUBSCRIPTION_COLUMNS if name != GEOMETRY)
NOTHING_TOLD: Mapping[int, Fault] = MappingProxyType({})  # about bad rows, by those who read them


def hear_with(on_bad: OnBad | None) -> HearBad | None:
    """Let a user's function hear of bad rows: what was mended is marked in the reason."""
    if on_bad is None:
        return None
    if not callable(on_bad):
        raise InvalidInput(f"on_bad must be a function, not {brief(on_bad)}")
    return lambda row, id_, reason, is_mended: on_bad(
        row, id_, f"mended: {reason}" if is_mended else reason
    )


class PredicateReader:
    """Makes predicates, and remembers those it has parsed: many rows share one `where`."""

    def __init__(self, filters_max: int = FILTERS_MAX, effort: Effort | None = None) -> None:
        """Refuse predicates of more than `filters_max` filters; simplify the others by effort."""
        is_number = isinstance(filters_max, int) and not isinstance(filters_max, bool)
        if not is_number or filters_max < 1:
            raise InvalidInput(f"filters_max must be a number >= 1, not {brief(filters_max)}")
        self._filters_max = filters_max
        self._effort = effort
        self._parsed: dict[str, Predicate] = {}

    def parse(self, source: str | Mapping[str, Any] | bool) -> Predicate:
        """Make a predicate of CQL2 text or JSON."""
        if not isinstance(source, str):
            return self._make(source)
        predicate = self._parsed.get(source)
        if predicate is None:
            if len(self._parsed) >= _PARSED_MAX:
                self._parsed.clear()
            predicate = self._parsed[source] = self._make(source)
        return predicate

    def _make(self, source: str | Mapping[str, Any] | bool) -> Predicate:
        return self._simplified(make_predicate(read(source), self._filters_max))

    def remake(self, predicate: Predicate) -> Predicate:
        """Make the filters of a predicate anew, as this reader does."""
        return self._simplified(make_predicate(predicate.expression, self._filters_max))

    def _simplified(self, predicate: Predicate) -> Predicate:
        return simplify(predicate, self._effort)[0] if self._effort else predicate

    def combine(
        self,
        geometry: BaseGeometry,
        relation: SpatialRelation,
        attribute: str,
        where: str | Mapping[str, Any] | None,
    ) -> Predicate:
        """Make the predicate of a geometry with a relation, and perhaps conditions besides."""
        if relation.family is Family.EGENHOFER and not is_area(geometry):
            raise InvalidInput(f"{relation.name} takes areas, not a {geometry.geom_type}")
        try:
            rest = None if where is None else self.parse(where)
        except InvalidInput as error:
            raise InvalidInput(f"where {brief(where)}: {error}") from None
        return self.join(geometry, relation, attribute, rest)

    def join(
        self,
        geometry: BaseGeometry,
        relation: SpatialRelation,
        attribute: str,
        rest: Predicate | None,
    ) -> Predicate:
        """Make the predicate of a geometry with a relation that fits it, AND another predicate."""
        test = Spatial(relation, Attribute(attribute), Literal(geometry))
        constraint = Constraint(test)
        if rest is None:
            return Predicate(test, (Filter((constraint,)),))
        filters = (dict.fromkeys((constraint, *f.constraints)) for f in rest.filters)
        joined = Predicate(
            And((test, *_list_terms(rest.expression))),
            tuple(Filter(tuple(terms)) for terms in filters),
        )
        is_related = attribute in rest.attributes()  # else nothing follows from the geometry
        return simplify(joined, self._effort)[0] if self._effort and is_related else joined


def _list_terms(expression: Expression) -> tuple[Expression, ...]:
    """List what must all be true for an expression to be true."""
    return expression.arguments if isinstance(expression, And) else (expression,)


class SubscriptionRows:
    """What was read of a table: the subscriptions, and how many rows were mended or left out."""

    def __init__(self) -> None:
        """Start empty."""
        self.mended = 0
        self.left_out = 0
        self._parts: list[PlainPart] = []

    def add(self, parts: list[PlainPart]) -> None:
        """Add subscriptions, each part with the numbers of the rows that they came from."""
        self._parts += parts

    @property
    def count(self) -> int:
        """How many subscriptions were read."""
        return sum(len(rows) for _, rows in self._parts)

    @once
    def _joined(self) -> PlainPart:
        if not self._parts:
            return pack_subscriptions([]), np.zeros(0, np.int64)
        rows = np.concatenate([rows for _, rows in self._parts])
        columns = join_subscriptions([columns for columns, _ in self._parts])
        order = np.argsort(rows, kind="stable")
        is_sorted = bool((np.diff(rows) > 0).all())
        return columns if is_sorted else columns.take(order), rows[order]

    @property
    def columns(self) -> SubscriptionColumns:
        """All subscriptions, in the order of their rows."""
        return self._joined[0]

    @property
    def rows(self) -> Positions:
        """The numbers of the rows from which the subscriptions came."""
        return self._joined[1]


def read_subscriptions(
    batch: pa.RecordBatch,
    first_row: int,
    name: str,
    *,
    reader: PredicateReader,
    geometry_columns: Sequence[str],
    id_column: str | None,
    repair: bool,
    on_bad: HearBad | None,
    on_refused: OnRefused,
    rows: SubscriptionRows,
    told: Mapping[int, Fault] = NOTHING_TOLD,
) -> None:
    """Read the rows of one batch into `rows`; `told` has those that their file knows to be bad.

    `on_refused` is called for each bad row, with an error that names the column, `on_bad` for those
    that `repair` has mended or leaves out.
    """
    columns = {field.name: batch.column(i) for i, field in enumerate(batch.schema)}
    numbers = np.arange(first_row, first_row + batch.num_rows)
    geometry_column = geometry_columns[0] if geometry_columns else GEOMETRY
    is_plain, parts = _pack_plain(columns, numbers, name, reader, geometry_column, id_column, told)
    rows.add([(packed, numbers[own]) for packed, own in parts])
    others = np.flatnonzero(~is_plain)
    if others.size:
        left = {key: column.take(pa.array(others)) for key, column in columns.items()}
        table = _RowReader(left, numbers[others], name, reader, geometry_column, id_column, repair)
        _read_one_by_one(table, others.tolist(), told, on_bad, on_refused, rows)


def _read_one_by_one(
    table: "_RowReader",
    others: list[int],
    told: Mapping[int, Fault],
    on_bad: HearBad | None,
    on_refused: OnRefused,
    rows: SubscriptionRows,
) -> None:
    """Read the rows of a table, which are `others` of their batch."""
    found: list[Subscription] = []
    found_rows: list[int] = []
    for place, (row, number) in enumerate(zip(others, table.numbers.tolist(), strict=True)):
        try:
            if row in told:
                raise told[row].as_error()
            reason, is_mended = table.judge(place)
            if reason is not None:
                rows.mended += is_mended
                rows.left_out += not is_mended
                if on_bad is not None:
                    on_bad(number, table.ids[place], reason, is_mended)
                if not is_mended:
                    continue
            found.append(table.read(place))
            found_rows.append(number)
        except InvalidInput as error:
            on_refused(number, table.ids[place], error)
    if found:
        rows.add([(pack_subscriptions(found), np.array(found_rows, np.int64))])


def _pack_plain(
    columns: Mapping[str, pa.Array],
    numbers: Positions,
    name: str,
    reader: PredicateReader,
    geometry_column: str,
    id_column: str | None,
    told: Mapping[int, Fault],
) -> tuple[Mask, list[PlainPart]]:
    """Pack the rows that are plain."""
    array = columns.get(geometry_column)
    ids = read_plain_ids(None if id_column is None else columns[id_column], numbers)
    if ids is None:
        return np.zeros(len(numbers), bool), []
    geometries = None
    if array is not None:
        geometries = read_row_geometries(array, f"{name}, column {geometry_column!r}")
        if geometries is None:
            return np.zeros(len(numbers), bool), []
    return pack_plain(columns, geometries, ids, told.keys(), reader)


class _RowReader:
    """Rows of subscriptions that are read one by one; a place is that of a row among them."""

    def __init__(
        self,
        columns: Mapping[str, pa.Array],
        numbers: Positions,
        name: str,
        reader: PredicateReader,
        geometry_column: str,
        id_column: str | None,
        repair: bool,
    ) -> None:
        self.numbers = numbers
        self._repair = repair
        self._reader = reader
        self._id_column = id_column
        length = len(numbers)
        self.ids: list[Any] = (
            numbers.tolist()
            if id_column is None
            else _read_ids(columns[id_column], f"{name}, column {id_column!r}")
        )
        self._optional = {
            key: as_values(columns[key], f"{name}, column {key!r}")
            if key in columns
            else [None] * length
            for key in _OPTIONAL
        }
        self._geometry_column = geometry_column
        array = columns.get(self._geometry_column)
        place = f"{name}, column {self._geometry_column!r}"
        self._column = (
            None if array is None else read_geometries(array, place, repair=repair, is_meant=True)
        )
        self._array = array
        self._is_known = None if self._column is None else self._column.is_known

    def judge(self, row: int) -> tuple[str | None, bool]:
        """Return what is wrong with a row's geometry that `repair` mended or must leave out."""
        column = self._column
        if not self._repair or column is None or self._optional["filter"][row] is not None:
            return None, False
        assert self._is_known is not None
        if row in column.mended and self._is_known[row]:
            shape = column.one(row)
            needs_area = self._relation(row).family is Family.EGENHOFER
            if needs_area and shape is not None and not is_area(shape):
                return f"{column.mended[row].message}; the repaired geometry has no area", False
            return column.mended[row].message, True
        if row in column.faults:
            return str(column.faults[row]), False
        if not self._is_known[row]:
            return self._missing(row), False
        return None, False

    def read(self, row: int) -> Subscription:
        """Read one row, or refuse it."""
        id_ = _read_id(self.ids[row], self._id_column or "id")
        return Subscription(id_, self._predicate(row), self._read_subscriber(row))

    def _predicate(self, row: int) -> Predicate:
        filter_ = self._optional["filter"][row]
        if filter_ is not None:
            if self._has_geometry(row):
                raise InvalidInput(
                    "the row has a geometry as well; "
                    "conditions beside a geometry go into the column 'where'",
                    place="column 'filter'",
                )
            for column in BESIDE_GEOMETRY:
                value = self._optional[column.name][row]
                if value is not None:
                    raise InvalidInput(
                        f"{brief(value)} needs a geometry, but this row has a filter",
                        place=f"column {column.name!r}",
                    )
            return self._parse("filter", filter_)
        geometry = self._geometry(row)
        relation = self._relation(row)
        attribute = self._attribute(row)
        where = self._optional["where"][row]
        if where is not None:
            self._parse("where", where)
        try:
            return self._reader.combine(geometry, relation, attribute, where)
        except InvalidInput as error:
            raise error.within("column 'relation'") from None

    def _parse(self, column: str, source: Any) -> Predicate:
        try:
            return self._reader.parse(source)
        except InvalidInput as error:
            what = f"{error} (value {brief(source, 120)})"
            raise InvalidInput(what, place=f"column {column!r}") from None

    def _geometry(self, row: int) -> BaseGeometry:
        column = self._column
        if column is None:
            raise InvalidInput(
                "it is missing, and the table has no geometries", place="column 'filter'"
            )
        if row in column.faults:
            assert self._array is not None
            fault, value = column.faults[row], self._value(row)
            placed = place_fault(fault, self._geometry_column, value)
            raise placed.as_error([Remedy.REPAIR] if fault.code == "invalid" else ())
        geometry = column.one(row)
        if geometry is None:
            raise InvalidInput(self._missing(row), place=f"column {self._geometry_column!r}")
        return geometry

    def _has_geometry(self, row: int) -> bool:
        """Whether something stands where the geometry should."""
        if self._array is None or not self._array[row].is_valid:
            return False
        value = self._value(row)  # a dictionary may hold a null
        return value is not None and not is_blank(value)

    def _value(self, row: int) -> Any:
        """What stands where the geometry should; a moment may be one that Python cannot hold."""
        assert self._array is not None
        return as_values(self._array.slice(row, 1), f"column {self._geometry_column!r}")[0]

    def _missing(self, row: int) -> str:
        assert self._array is not None
        if not self._has_geometry(row):
            return "the geometry is missing, and there is no filter"
        raw = self._value(row)
        is_empty = isinstance(raw, bytes) or (isinstance(raw, str) and is_empty_wkt(raw))
        return "the geometry is empty" if is_empty else f"not a geometry{shown(raw)}"

    def _relation(self, row: int) -> SpatialRelation:
        try:
            return find_relation(self._beside("relation", row))
        except InvalidInput as error:
            raise error.within("column 'relation'") from None

    def _attribute(self, row: int) -> str:
        return read_attribute(self._beside("attribute", row), "column 'attribute'")

    def _beside(self, name: str, row: int) -> Any:
        """Return what goes with the geometry of a row, or what an empty cell stands for."""
        value = self._optional[name][row]
        return DEFAULTS[name] if value is None else value

    def _read_subscriber(self, row: int) -> Id | None:
        value = self._optional["subscriber"][row]
        return None if value is None else read_id(value, "column 'subscriber'")


def _read_ids(column: pa.Array, place: str) -> list[Any]:
    """Return a column of ids as values; too large an integer is left for its row to refuse."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_uint64(column.type):
        return as_values(column, place)
    try:
        return as_values(read_id_column(column, place))
    except InvalidInput as error:
        raise error.with_remedies(Remedy.SUBSCRIPTION_ID) from None


def _read_id(value: Any, column: str) -> Id:
    try:
        return read_id(value, f"column {column!r}")
    except InvalidInput as error:
        raise error.with_remedies(Remedy.SUBSCRIPTION_ID) from None


def find_miscased(columns: Iterable[str]) -> str | None:
    """Describe the columns that would count in lower case; None where there are none."""
    names = list(columns)
    found = [name for name in names if name not in _OPTIONAL and name.lower() in _OPTIONAL]
    ignored = [name for name in found if name.lower() not in names]
    if not ignored:
        return None
    shown, spelt = (", ".join(map(repr, each)) for each in (ignored, map(str.lower, ignored)))
    if len(ignored) == 1:
        return f"the column {shown} is ignored; rename it to {spelt} to use it"
    return f"the columns {shown} are ignored; rename them to {spelt} to use them"


def place_fault(fault: Fault, column: str, value: Any) -> Fault:
    """The same fault with its column and value, unless its file has stated them."""
    if fault.code == BAD_CELL:
        return fault
    return Fault(fault.code, f"{fault.message}{shown(value)}", f"column {column!r}")


def is_empty_wkt(text: str) -> bool:
    """Whether a text is the WKT of an empty geometry."""
    return text.strip().upper().endswith("EMPTY")


def shown(value: Any) -> str:
    """Show a value at the end of a message, cut to a readable length."""
    if isinstance(value, bytes) and value[:1] not in (b"", b"\x00", b"\x01"):
        return f" (value {brief(value.decode(errors='replace'))})"
    if isinstance(value, bytes):
        cut = "…" if len(value) > 24 else ""
        return f" (value 0x{value[:24].hex()}{cut}, {len(value)} bytes)"
    return f" (value {brief(value)})"
