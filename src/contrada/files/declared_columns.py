"""JSON values as columns of types that were declared beforehand, each value judged.

Where a file shows which types its columns have (`json_kinds`), messages come one by one, and
somebody has said before the first of them what they hold. A value of another kind is never turned
into one that fits: it is null, and a fault of its row. Null, or nothing, fits every column that
does not say otherwise; a type of bytes holds geometries, as WKB.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from contrada.deferred import compute as pc
from contrada.errors import InvalidInput
from contrada.files.arrow_types import is_binary, is_text
from contrada.files.geojson_wkb import encode_geojson
from contrada.files.json_kinds import fits_float
from contrada.matching.columns import find_points
from contrada.model.encodings import read_wkbs
from contrada.model.geometry import BAD_CELL, Fault, read_geometry
from contrada.model.instant import read_instant
from contrada.model.unicode import is_unicode
from contrada.showing import brief

Fit = Callable[[Any], Any]
_DATE_LENGTH = len("2026-11-18")


class ValueMisfit(ValueError):
    """A value is not of the declared type; the message says why."""


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column of a declared type, which may say that it has no nulls."""

    field: pa.Field

    def read(self, values: Sequence[Any]) -> tuple[pa.Array, dict[int, Fault]]:
        """Make a column of JSON values; with it, what is wrong with some, by row."""
        if is_binary(self.field.type):
            encoded = [None if v is None else encode_geojson(v, self.field.name) for v in values]
            array, faults = judge_wkb(pa.array(encoded, self.field.type), self.field.name)
        else:
            array = self._read_plain(values)
            faults = {}
            if array is None:
                array, faults = self._read_one_by_one(values)
        if not self.field.nullable:
            for row in np.flatnonzero(array.is_null()).tolist():
                faults.setdefault(row, self._fault("it is missing"))
        return array, faults

    def _read_plain(self, values: Sequence[Any]) -> pa.Array | None:
        """Make a column at once, where all values have just the type of Python that it takes."""
        if not _plain_kinds(self.field.type).issuperset(map(type, values)):
            return None
        try:
            return pa.array(values, self.field.type)
        except (pa.ArrowException, OverflowError, ValueError):
            return None

    def _read_one_by_one(self, values: Sequence[Any]) -> tuple[pa.Array, dict[int, Fault]]:
        fit = make_fit(self.field.type)
        fitted: list[Any] = []
        faults = {}
        for row, value in enumerate(values):
            try:
                fitted.append(None if value is None else fit(value))
            except ValueMisfit as fault:
                fitted.append(None)
                faults[row] = self._fault(str(fault))
        return pa.array(fitted, self.field.type), faults

    def _fault(self, message: str) -> Fault:
        return Fault(BAD_CELL, message, f"column {self.field.name!r}")


def judge_wkb(array: pa.Array, column: str) -> tuple[pa.Array, dict[int, Fault]]:
    """Find in WKB what cannot be read, and make it null; whether shapes are valid is not judged."""
    x, y = np.full((2, len(array)), np.nan)
    is_there = array.is_valid().to_numpy(zero_copy_only=False)
    others = np.flatnonzero(~find_points(array, x, y) & is_there)
    values = array.take(pa.array(others)).to_numpy(zero_copy_only=False)
    try:
        with np.errstate(invalid="ignore"):  # NaN is for others to judge
            read_wkbs(values)
    except (shapely.errors.ShapelyError, ValueError, NotImplementedError):
        pass
    else:
        return array, {}
    faults = {}
    for row, value in zip(others.tolist(), values, strict=True):
        read = read_geometry(value)
        if isinstance(read, Fault):
            faults[row] = Fault(read.code, read.message, f"column {column!r}")
    is_good = np.ones(len(array), bool)
    is_good[list(faults)] = False
    return pc.if_else(pa.array(is_good), array, None), faults


def make_fit(kind: pa.DataType) -> Fit:
    """Make a function that returns a JSON value, not null, as a type takes it.

    That raises `ValueMisfit` for a value that does not fit. Raises `InvalidInput` for a type that
    has no values in JSON.
    """
    if pa.types.is_boolean(kind):
        return _only(bool, "true or false")
    if pa.types.is_integer(kind):
        return lambda value: _fit_integer(value, kind)
    if pa.types.is_floating(kind):
        return lambda value: _fit_float(value, kind)
    if pa.types.is_decimal(kind):
        return lambda value: _fit_decimal(value, kind)
    if is_text(kind):
        return _fit_text
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return _fit_moment
    if pa.types.is_date(kind):
        return _fit_day
    if pa.types.is_struct(kind):
        return _fit_struct(kind)
    if pa.types.is_map(kind) and is_text(kind.key_type):
        fit_item = _fit_member(pa.field("value", kind.item_type, kind.item_field.nullable))
        return lambda value: [(_fit_text(k), fit_item(v)) for k, v in _object(value).items()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        fit_member = _fit_member(kind.value_field)
        return lambda value: [fit_member(member) for member in _list(value)]
    if is_binary(kind):
        return _fit_geometry
    raise InvalidInput(f"JSON has no values of type {kind}")


def _plain_kinds(kind: pa.DataType) -> frozenset[type]:
    """Return the types of Python that Arrow turns into a type just as they are."""
    if pa.types.is_boolean(kind):
        return frozenset({bool, type(None)})
    if pa.types.is_integer(kind):
        return frozenset({int, type(None)})
    if pa.types.is_float64(kind):
        return frozenset({int, float, type(None)})
    return frozenset({str, type(None)}) if is_text(kind) else frozenset()


def _only(kind: type, words: str) -> Fit:
    def fit(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueMisfit(f"{brief(value)} is not {words}")
        return value

    return fit


_fit_any_text = _only(str, "a text")
_list = _only(list, "a list")
_object = _only(dict, "an object")


def _fit_text(value: Any) -> Any:
    if not is_unicode(_fit_any_text(value)):
        raise ValueMisfit(f"{brief(value)} has half a surrogate pair")
    return value


def _fit_integer(value: Any, kind: pa.DataType) -> Any:
    if type(value) is not int:
        raise ValueMisfit(f"{brief(value)} is not an integer")
    half = 1 << (kind.bit_width - 1)
    if not -half <= value < half:
        raise ValueMisfit(f"{brief(value)} does not fit in {kind.bit_width} bits")
    return value


def _fit_float(value: Any, kind: pa.DataType) -> Any:
    if type(value) not in (int, float):
        raise ValueMisfit(f"{brief(value)} is not a number")
    is_kept = fits_float(value)
    if is_kept and pa.types.is_float32(kind) and math.isfinite(value):
        is_kept = abs(value) <= float(np.finfo(np.float32).max)
    if not is_kept:
        raise ValueMisfit(f"{brief(value)} is a number that {kind} does not keep")
    return float(value)


def _fit_decimal(value: Any, kind: pa.DataType) -> Any:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueMisfit(f"{brief(value)} is not a decimal number")
    exact = Decimal(repr(value))
    try:
        pa.scalar(exact, kind)
    except pa.ArrowInvalid:
        raise ValueMisfit(f"{brief(value)} is a number that {kind} does not keep") from None
    return exact


def _fit_moment(value: Any) -> int:
    """Return microseconds since 1970, without what is less than one."""
    instant = read_instant(value) if type(value) is str else None
    if instant is None:
        raise ValueMisfit(f"{brief(value)} is not an ISO 8601 date or timestamp")
    return instant.ns // 1_000


def _fit_day(value: Any) -> date:
    try:
        if type(value) is str and len(value) == _DATE_LENGTH:
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueMisfit(f"{brief(value)} is not an ISO 8601 date")


def _fit_struct(kind: pa.StructType) -> Fit:
    members = [(field.name, _fit_member(field)) for field in kind]

    def fit(value: Any) -> Any:
        _object(value)
        return {name: fit_member(value.get(name)) for name, fit_member in members}

    return fit


def _fit_member(field: pa.Field) -> Fit:
    """Make a function that names the member in which a value does not fit."""
    fit_value = make_fit(field.type)

    def fit(value: Any) -> Any:
        if value is None and field.nullable:
            return None
        try:
            if value is None:
                raise ValueMisfit("it is missing")
            return fit_value(value)
        except ValueMisfit as fault:
            raise ValueMisfit(f"in {field.name!r}: {fault}") from None

    return fit


def _fit_geometry(value: Any) -> bytes | None:
    encoded = encode_geojson(value)
    read = read_geometry(encoded)
    if isinstance(read, Fault):
        raise ValueMisfit(read.message)
    return encoded
