"""Columns of values of several types, which Arrow has no type for.

Whoever reads one row by row has the very values that JSON had: integers of any size, truth values
beside numbers, objects that share no names. A null is Arrow's own.
"""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

WHOLE_MAX = 2**53  # up to here every integer is a double, too

_VALUE, _IS_WHOLE = "value", "is_whole"
_NUMBERS = pa.struct([(_VALUE, pa.float64()), (_IS_WHOLE, pa.bool_())])
_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class MixedValue(pa.ExtensionScalar):  # type: ignore[misc]
    """A value of a column of any values."""

    def as_py(self, **_: Any) -> Any:
        """Return the value that the text has."""
        return None if self.value is None else json.loads(self.value.as_py())


class MixedType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column of any values, each a JSON text."""

    def __init__(self) -> None:
        """Store texts, however many bytes they are."""
        super().__init__(pa.large_string(), "contrada.mixed")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, _: pa.DataType, __: bytes) -> "MixedType":
        return cls()

    def __arrow_ext_scalar_class__(self) -> type[MixedValue]:
        return MixedValue


class MixedNumber(pa.ExtensionScalar):  # type: ignore[misc]
    """A number of a column of integers and doubles."""

    def as_py(self, **_: Any) -> int | float | None:
        """Return the number: an integer if it was one."""
        if self.value is None:
            return None
        stored = self.value.as_py()
        number: float = stored[_VALUE]
        return int(number) if stored[_IS_WHOLE] else number


class MixedNumbersType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column of integers and doubles, all of which are doubles without loss.

    Compared as doubles they are the same. Which were integers counts in arithmetic.
    """

    def __init__(self) -> None:
        """Store each as a double."""
        super().__init__(_NUMBERS, "contrada.mixed_numbers")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, _: pa.DataType, __: bytes) -> "MixedNumbersType":
        return cls()

    def __arrow_ext_scalar_class__(self) -> type[MixedNumber]:
        return MixedNumber


def write_mixed(values: Sequence[Any]) -> pa.Array:
    """Make a column of any values that JSON has."""
    texts = [None if value is None else _dump(value) for value in values]
    return pa.ExtensionArray.from_storage(MixedType(), pa.array(texts, pa.large_string()))


def write_mixed_numbers(values: Sequence[int | float | None]) -> pa.Array | None:
    """Make a column of integers and doubles; None if an integer is none of the doubles."""
    wholes = [value for value in values if type(value) is int]
    if wholes and (max(wholes) > WHOLE_MAX or min(wholes) < -WHOLE_MAX):
        return None
    numbers = pa.array(values, pa.float64())
    are_whole = pa.array([type(value) is int for value in values], pa.bool_())
    return _wrap(numbers, are_whole)


def widen_numbers(array: pa.Array) -> pa.Array | None:
    """Make such a column of one of integers or of doubles; None of any other, or if it loses."""
    if isinstance(array.type, MixedNumbersType):
        return array
    is_whole = pa.types.is_int64(array.type)
    if not (is_whole or pa.types.is_float64(array.type)):
        return None
    if is_whole:
        return write_mixed_numbers(array.to_pylist())
    return _wrap(array, pa.repeat(pa.scalar(False), len(array)))


def read_doubles(array: pa.Array) -> pa.Array:
    """Return the doubles of such a column."""
    return array.storage.field(0)


def _wrap(numbers: pa.Array, are_whole: pa.Array) -> pa.Array:
    storage = pa.StructArray.from_arrays(
        [numbers, are_whole], fields=list(_NUMBERS), mask=numbers.is_null()
    )
    return pa.ExtensionArray.from_storage(MixedNumbersType(), storage)
