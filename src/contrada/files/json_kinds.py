"""Which Arrow type a JSON column has, seen over all of its values.

JSON has one kind of number; we keep integers of 64 bits exact. A column must be of one kind: a
number turned into text, or text into a number, would match what it should not.
"""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.files.geojson_wkb import is_geometry


@dataclass(slots=True)
class Kind:
    """What a column of a source has held so far: nothing but null, or values of one kind.

    `row` is the first row with a value. `members` are the kinds inside a mapping, or under the
    key "" the kind inside a list; only a column, not what is inside one, can be a geometry.
    """

    source: str
    column: str
    is_inside: bool = False
    name: str = "null"
    row: int = -1
    integer_min: int = 0
    integer_max: int = 0
    has_fraction: bool = False
    inexact: tuple[int, int] | None = None
    members: "dict[str, Kind]" = field(default_factory=dict)

    def see(self, value: Any, row: int) -> None:
        """Take in the value of a row; refuse one of another kind than those before."""
        if value is None:
            return
        name = _name_kind(value, self.is_inside)
        if self.name == "null":
            self.name, self.row = name, row
        elif self.name != name:
            raise InvalidInput(
                f'{self.source}: column "{self.column}" holds a {self.name} in row {self.row} '
                f"but a {name} in row {row}; give it one kind"
            )
        if name == "number":
            self._see_number(value, row)
        elif name == "list":
            for member in value:
                self._member("").see(member, row)
        elif name == "mapping":
            for key, member in value.items():
                self._member(key).see(member, row)

    def arrow_type(self) -> pa.DataType:
        """The type that holds every value seen, exactly."""
        match self.name:
            case "number":
                return self._number_type()
            case "list":
                return pa.list_(self._member("").arrow_type())
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

    def _member(self, key: str) -> "Kind":
        if key not in self.members:
            column = f"{self.column}.{key}" if self.name == "mapping" else f"{self.column}[]"
            self.members[key] = Kind(self.source, column, is_inside=True)
        return self.members[key]

    def _see_number(self, value: Any, row: int) -> None:
        if isinstance(value, float) or not -(2**63) <= value < 2**64:
            self.has_fraction = True
            return
        self.integer_min = min(self.integer_min, value)
        self.integer_max = max(self.integer_max, value)
        if self.inexact is None and int(float(value)) != value:
            self.inexact = value, row

    def _number_type(self) -> pa.DataType:
        """Integers of 64 bits if all are, otherwise floats, unless those would change a value."""
        if not self.has_fraction and self.integer_max < 2**63:
            return pa.int64()
        if not self.has_fraction and self.integer_min >= 0:
            return pa.uint64()
        if self.inexact is not None:
            value, row = self.inexact
            raise InvalidInput(
                f'{self.source}: column "{self.column}" holds {value} in row {row}, '
                "which no float keeps, among numbers that need one; write the column as text"
            )
        return pa.float64()


def _name_kind(value: object, is_inside: bool) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "list"
    return "geometry" if not is_inside and is_geometry(value) else "mapping"
