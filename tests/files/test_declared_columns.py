"""JSON values in columns of declared types: what does not fit is null, and said."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import shapely

from contrada.errors import InvalidInput
from contrada.files.declared_columns import DeclaredColumn, make_fit

MOMENT = pa.timestamp("us", "UTC")
NESTED = pa.struct([("speed", pa.float64()), ("tags", pa.list_(pa.string()))])


def read(
    kind: pa.DataType, *values: Any, nullable: bool = True
) -> tuple[list[Any], dict[int, str]]:
    array, faults = DeclaredColumn(pa.field("wind", kind, nullable)).read(values)
    assert array.type == kind
    assert {fault.place for fault in faults.values()} <= {"column 'wind'"}
    assert {fault.code for fault in faults.values()} <= {"bad_cell"}
    return array.to_pylist(), {row: fault.message for row, fault in faults.items()}


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (pa.bool_(), True, True),
        (pa.int8(), -128, -128),
        (pa.int64(), 2**63 - 1, 2**63 - 1),
        (pa.float64(), 12, 12.0),
        (pa.float64(), 2**70, float(2**70)),
        (pa.float32(), 0.5, 0.5),
        (pa.decimal128(5, 2), 1.25, Decimal("1.25")),
        (pa.decimal128(5, 2), 7, Decimal("7.00")),
        (pa.string(), "é", "é"),
        (MOMENT, "2026-11-18T09:00:00.25+01:00", datetime(2026, 11, 18, 8, 0, 0, 250_000, UTC)),
        (pa.timestamp("us"), "2026-11-18", datetime(2026, 11, 18)),  # noqa: DTZ001
        (pa.date32(), "2026-11-18", date(2026, 11, 18)),
        (pa.list_(pa.int64()), [1, None], [1, None]),
        (NESTED, {"speed": 3, "other": "x"}, {"speed": 3.0, "tags": None}),
        (pa.map_(pa.string(), pa.float64()), {"a": 1}, [("a", 1.0)]),
    ],
)
def test_a_value_that_fits_is_kept(kind: pa.DataType, value: Any, kept: Any) -> None:
    assert read(kind, None, value) == ([None, kept], {})


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (pa.bool_(), 1, "1 is not true or false"),
        (pa.int64(), True, "True is not an integer"),
        (pa.int64(), 12.0, "12.0 is not an integer"),
        (pa.int64(), "12", "'12' is not an integer"),
        (pa.int8(), 128, "128 does not fit in 8 bits"),
        (pa.int64(), 2**63, "9223372036854775808 does not fit in 64 bits"),
        (pa.float64(), "12", "'12' is not a number"),
        (pa.float64(), True, "True is not a number"),
        (pa.float64(), 2**53 + 1, "9007199254740993 is a number that double does not keep"),
        (pa.float64(), 1 << 5000, "an integer of 5,001 bits is a number that double does not keep"),
        (pa.float32(), 1e300, "1e+300 is a number that float does not keep"),
        (pa.decimal128(5, 2), 1.255, "1.255 is a number that decimal128(5, 2) does not keep"),
        (pa.decimal128(5, 2), float("inf"), "inf is not a decimal number"),
        (pa.string(), 12, "12 is not a text"),
        (pa.string(), "\ud800", "'\\ud800' has half a surrogate pair"),
        (MOMENT, "yesterday", "'yesterday' is not an ISO 8601 date or timestamp"),
        (MOMENT, 1_700_000_000, "1700000000 is not an ISO 8601 date or timestamp"),
        (pa.date32(), "2026-11-18T09:00:00Z", "'2026-11-18T09:00:00Z' is not an ISO 8601 date"),
        (pa.date32(), "2026-13-01", "'2026-13-01' is not an ISO 8601 date"),
        (pa.list_(pa.int64()), [1, "x"], "in 'item': 'x' is not an integer"),
        (pa.list_(pa.int64()), "x", "'x' is not a list"),
        (NESTED, {"tags": [7]}, "in 'tags': in 'item': 7 is not a text"),
        (NESTED, [], "[] is not an object"),
        (pa.map_(pa.string(), pa.float64()), {"a": "x"}, "in 'value': 'x' is not a number"),
    ],
)
def test_a_value_that_does_not_fit_is_null_and_said(
    kind: pa.DataType, value: Any, message: str
) -> None:
    assert read(kind, None, value, None) == ([None, None, None], {1: message})


def test_those_beside_a_misfit_are_kept() -> None:
    assert read(pa.float64(), 1, "x", 2.5) == ([1.0, None, 2.5], {1: "'x' is not a number"})


def test_what_must_be_there_is_missed() -> None:
    assert read(pa.int64(), 1, None, nullable=False) == ([1, None], {1: "it is missing"})
    inner = pa.struct([pa.field("speed", pa.int64(), nullable=False)])
    assert read(inner, {}, {"speed": 1})[1] == {0: "in 'speed': it is missing"}


def test_bytes_are_geometries() -> None:
    point = {"type": "Point", "coordinates": [1, 2]}
    open_ring = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1]]]}
    column = DeclaredColumn(pa.field("area", pa.binary()))
    array, faults = column.read([point, "POINT(3 4)", None, 7, open_ring])
    assert shapely.from_wkb(array[:2].to_pylist()).tolist() == [
        shapely.Point(1, 2),
        shapely.Point(3, 4),
    ]
    assert array[2:].to_pylist() == [None] * 3
    assert faults[3].message == "cannot read the GeoJSON geometry: it is not an object (value 7)"
    assert faults[4].message.startswith("cannot read the geometry: ")
    assert {fault.place for fault in faults.values()} == {"column 'area'"}
    array, faults = DeclaredColumn(pa.field("areas", pa.list_(pa.binary()))).read([[point], [7]])
    assert array.is_valid().to_pylist() == [True, False]
    assert "it is not an object" in faults[1].message


@pytest.mark.parametrize("kind", [pa.duration("us"), pa.map_(pa.int64(), pa.string()), pa.null()])
def test_a_type_that_json_has_no_values_of_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInput, match="JSON has no values of type"):
        make_fit(kind)
