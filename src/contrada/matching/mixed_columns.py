"""Columns of values of several types, which Arrow has no type for: each value as a JSON text.

Whoever reads one row by row has the very values that JSON had: integers of any size, truth values
beside numbers, objects that share no names. A null is Arrow's own.
"""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class MixedValue(pa.ExtensionScalar):  # type: ignore[misc]
    """One value of such a column."""

    def as_py(self, **_: Any) -> Any:
        """Return the value that the text has."""
        return None if self.value is None else json.loads(self.value.as_py())


class MixedType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column whose values are JSON texts."""

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


def write_mixed(values: Sequence[Any]) -> pa.Array:
    """Make a column of any values that JSON has."""
    texts = [None if value is None else _dump(value) for value in values]
    return pa.ExtensionArray.from_storage(MixedType(), pa.array(texts, pa.large_string()))
