"""Which Arrow type a JSON column has, seen over all of its values.

A column is of the kind of most of its values. A value of another kind is read as null, since as
text or as a number it would match what it should not, and a warning names it. JSON has one
kind of number; we keep integers of 64 bits exact, so an integer that no float keeps is of another
kind among fractions.
"""

import json
import warnings
from collections.abc import Callable, Iterator, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.files.geojson_wkb import is_geometry
from contrada.files.rows import place_of
from contrada.limits import COLUMNS_MAX, JSON_DEPTH_MAX, LIST_CELLS_MAX
from contrada.model.event import GEOMETRY, paths_of
from contrada.model.row_columns import Holds, columns_that_hold
from contrada.model.unicode import is_unicode
from contrada.showing import brief_text

# Null in one of these would mean another id, or a subscription to more than was asked for.
STRICT = columns_that_hold(Holds.ID, Holds.PREDICATE, Holds.RELATION, Holds.NAME)
ID_COLUMNS = columns_that_hold(Holds.ID)
PREDICATE_COLUMNS = columns_that_hold(Holds.PREDICATE)
_SPARSE = 200  # so many times the cells of a table may outnumber the values that it is made of
FLOAT_EXACT_MAX = 2**53
NUMBER_TYPES = (pa.int64(), pa.uint64(), pa.float64())


@dataclass(frozen=True, slots=True)
class JsonSource:
    """The file whose rows are read, for messages: its name, and the lines at which rows begin."""

    name: str
    open_lines: Callable[[], Iterator[int]]

    def __str__(self) -> str:
        return self.name

    def place(self, row: int) -> str:
        """Describe where a row is; the file is read for it, as far as the row."""
        with suppress(InvalidInput, OSError):
            return place_of(row, next(islice(self.open_lines(), row, None), None))
        return place_of(row, None)


@dataclass(slots=True)
class Numbers:
    """What a column's numbers would lose as each type, in the order in which types are tried."""

    fractions: int = 0
    losses: list[int] = field(default_factory=lambda: [0] * len(NUMBER_TYPES))
    first_lost: dict[int, tuple[int | float, int]] = field(default_factory=dict)

    def see(self, value: int | float, row: int) -> None:
        """Take in the number of a row."""
        self.fractions += isinstance(value, float)
        for i, holds in enumerate(_HOLDS):
            if not holds(value):
                self.losses[i] += 1
                self.first_lost.setdefault(i, (value, row))

    @property
    def best(self) -> int:
        """Which of the types loses the fewest numbers."""
        return self.losses.index(min(self.losses))


@dataclass(slots=True)
class ColumnCount:
    """How many columns a source has, those inside others too."""

    source: JsonSource
    count: int = 0

    def add(self, column: str, row: int) -> None:
        """Take in one more column, which a row is the first to have."""
        self.count += 1
        if self.count > COLUMNS_MAX:
            raise InvalidInput(
                f"{self.source}: more than {COLUMNS_MAX:,} columns, nested ones included "
                f'(COLUMNS_MAX), at "{brief_text(column)}" in {self.source.place(row)}'
            )


@dataclass(frozen=True, slots=True)
class Misfit:
    """Values of a column that its type does not hold: which, and how many."""

    column: str
    what: str
    count: int
    is_bad_id: bool = False


@dataclass(slots=True)
class ColumnKind:
    """What a column of a source has held so far: nothing but null, or values of some kinds.

    `counts` are the values and `rows` the first row of each kind. `members` are the kinds inside
    mappings, `element` is the one inside lists; only a column, not what is inside one (`depth` is
    more than 0), can be a geometry.
    """

    source: JsonSource
    column: str
    depth: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=Numbers)
    members: "dict[str, ColumnKind]" = field(default_factory=dict)
    element: "ColumnKind | None" = None
    total: ColumnCount | None = None
    values: int = 0  # inside mappings
    holds_ids: bool = False  # whatever its name

    @property
    def name(self) -> str:
        """The kind of most values, of the first among equals; any geometry makes it `geometry`."""
        if self.column == GEOMETRY and GEOMETRY in self.counts:
            return GEOMETRY
        return max(self.counts, key=self.counts.__getitem__, default="null")

    def see(self, value: Any, row: int, name: str | None = None) -> None:
        """Take in the value of a row, as one of the kind `name` if it is given."""
        if value is None:
            return
        name = name or self._name_kind(value)
        self.counts[name] = self.counts.get(name, 0) + 1
        self.rows.setdefault(name, row)
        if name == "number":
            self.numbers.see(value, row)
        elif name == "list":
            self.element = self.element or self._inside("[]", row)
            for member in value:
                self.element.see(member, row)
        elif name == "mapping":
            for key, member in value.items():
                if key not in self.members:
                    refuse_surrogates(self.source, key, row)
                    self.members[key] = self._inside(f".{key}", row)
                self.members[key].see(member, row)
            self.values += len(value)
            self._refuse_sparse(row)

    def arrow_type(self) -> pa.DataType:
        """Return the type that holds every value of the column's kind."""
        match self.name:
            case "number":
                return NUMBER_TYPES[self._number_type()]
            case "list":
                return pa.list_(self.element.arrow_type() if self.element else pa.null())
            case "mapping":
                inside = self.members.items()
                return pa.struct([pa.field(key, kind.arrow_type()) for key, kind in inside])
            case "boolean":
                return pa.bool_()
            case "string":
                return pa.large_string()
            case "geometry":
                return pa.binary()
        return pa.null()

    def _number_type(self) -> int:
        """Which of the types its numbers take; ids are of 64 bits, and what is beyond is bad."""
        return 0 if self.is_id and not self.numbers.fractions else self.numbers.best

    @property
    def is_id(self) -> bool:
        """Whether the column holds ids, by its name or because somebody said so."""
        return self.holds_ids or (not self.depth and self.column in ID_COLUMNS)

    def as_ids(self) -> "ColumnKind":
        """Return the kind of the same column where it is known to hold ids."""
        return replace(self, holds_ids=True)

    def misfits(self, place: Callable[[int], str] = "row {}".format) -> Iterator["Misfit"]:
        """Find the values that the type does not hold, in the column and inside its values."""
        name = self.name
        others = {other: row for other, row in self.rows.items() if other != name}
        if others and not (self.column == GEOMETRY == name):
            shown = ", ".join(f"a {other} in {place(row)}" for other, row in others.items())
            count = sum(self.counts[other] for other in others)
            yield Misfit(self.column, f"a {name} in {place(self.rows[name])} but {shown}", count)
        number_type = self._number_type()
        if name == "number" and (lost := self.numbers.losses[number_type]):
            value, row = self.numbers.first_lost[number_type]
            shown = f"{brief_text(value)} in {place(row)}, which {self.arrow_type()} cannot hold"
            yield Misfit(self.column, shown, lost, is_bad_id=self.is_id)
        if name == "mapping":
            for kind in self.members.values():
                yield from kind.misfits()
        if name == "list" and self.element is not None:
            yield from self.element.misfits()

    def check(self) -> None:
        """Warn of values that the type does not hold, or refuse them where null would be wrong.

        An id that is too large makes only its row a bad one.
        """
        for misfit in self.misfits(self.source.place) if self.column in STRICT else self.misfits():
            if misfit.is_bad_id:
                continue
            what = f'{self.source}: column "{misfit.column}" holds {misfit.what}'
            if self.column in STRICT:
                raise InvalidInput(f"{what}; use one kind of value throughout")
            values = (
                "value of another kind is" if misfit.count == 1 else "values of another kind are"
            )
            warnings.warn(f"{what}; {misfit.count} {values} read as null", stacklevel=2)

    def narrowed(self, attributes: Set[str]) -> "ColumnKind":
        """Return the kind with only those members that some attribute names."""
        if self.name != "mapping" or self.column in attributes:
            return self
        begun = {path for name in attributes for path in paths_of(name)}
        members = {
            key: kind.narrowed(attributes)
            for key, kind in self.members.items()
            if kind.column in begun
        }
        return replace(self, members=members)

    @property
    def width(self) -> int:
        """How many columns of plain values it makes, at least one."""
        if self.name != "mapping":
            return 1
        return max(1, sum(kind.width for kind in self.members.values()))

    @property
    def value_count(self) -> int:
        """How many values it has held, those inside mappings included."""
        inside = self.members.values() if self.name == "mapping" else ()
        return sum(self.counts.values()) + sum(kind.value_count for kind in inside)

    def fit(self, value: Any, *, is_pure: bool) -> Any:
        """Return a value as the column's type takes it; None where it is of another kind.

        Where the column was found to be pure, such a value is new, and refused.
        """
        if value is None:
            return None
        name = self.name
        is_kept = self._name_kind(value) == name
        if is_kept and name == "number":
            is_kept = _HOLDS[self._number_type()](value)
        if not is_kept:
            if is_pure:
                raise ValueError(f"{brief_text(value)!r} is not a {name}: the file has changed")
            return None
        match name:
            case "number":
                return float(value) if self.arrow_type() == pa.float64() else value
            case "list" if self.element is not None:
                return [self.element.fit(member, is_pure=is_pure) for member in value]
            case "mapping":
                members = self.members.items()
                return {key: kind.fit(value.get(key), is_pure=is_pure) for key, kind in members}
            case "string" if not isinstance(value, str):
                return json.dumps(value, ensure_ascii=False)
        return value

    def _inside(self, step: str, row: int) -> "ColumnKind":
        if self.depth == JSON_DEPTH_MAX:
            column = f'column "{brief_text(self.column)}"'
            raise InvalidInput(
                f"{self.source}: {column} in {self.source.place(row)} is nested "
                f"deeper than {JSON_DEPTH_MAX} (JSON_DEPTH_MAX)"
            )
        column = f"{self.column}{step}"
        if self.total is not None:
            self.total.add(column, row)
        return ColumnKind(self.source, column, self.depth + 1, total=self.total)

    def _refuse_sparse(self, row: int) -> None:
        """Refuse a list of objects that would have far more cells as a table than values."""
        cells = self.counts["mapping"] * len(self.members)
        if self.column.endswith("[]") and is_sparse(cells, self.values, LIST_CELLS_MAX):
            name = brief_text(self.column[:-2])
            raise InvalidInput(
                f"{self.source}: in {self.source.place(row)}, "
                f'the objects in the list "{name}" have too many '
                f"different member names: as a table they would take more than "
                f"{LIST_CELLS_MAX:,} cells (LIST_CELLS_MAX) for {self.values:,} values"
            )

    def _name_kind(self, value: object) -> str:
        if isinstance(value, bool):
            return "boolean"
        if isinstance(value, (int, float)):
            return "number"
        if isinstance(value, str):
            return "string"
        if isinstance(value, list):
            return "list"
        if self.depth or not isinstance(value, dict):
            return "mapping"
        if self.column in PREDICATE_COLUMNS and "op" in value:
            return "string"  # CQL2 in JSON, whose arguments are of all kinds: it is kept as text
        return GEOMETRY if is_geometry(value) else "mapping"


def is_sparse(cells: int, values: int, cells_max: int) -> bool:
    """Whether a table has too many cells, and far more than values."""
    return cells > cells_max and cells > _SPARSE * values


def refuse_surrogates(source: JsonSource, name: str, row: int) -> None:
    """Refuse the name of a member that is not text: JSON can spell half a character, UTF-8 not."""
    if not is_unicode(name):
        place = f"{source}: {source.place(row)}"
        raise InvalidInput(f"{place} has half a surrogate pair in the name {name!r}")


def _fits_int64(value: int | float) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _fits_uint64(value: int | float) -> bool:
    return isinstance(value, int) and 0 <= value < 2**64


def fits_float(value: int | float) -> bool:
    """Whether a float keeps a number; one beyond 64 bits may be rounded."""
    if isinstance(value, float) or -FLOAT_EXACT_MAX <= value <= FLOAT_EXACT_MAX:
        return True
    try:
        rounded = float(value)
    except OverflowError:
        return False
    return not -(2**63) <= value < 2**64 or int(rounded) == value


_HOLDS = (_fits_int64, _fits_uint64, fits_float)  # as NUMBER_TYPES
