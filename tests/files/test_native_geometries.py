"""Native GeoArrow geometries that are empty at some level, hold nulls, or whose offsets lie.

What once ended the process is read in a child.
"""

import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada import Matcher
from contrada.errors import InvalidInput
from contrada.files import read_rows
from contrada.files.geoarrow import LISTS, NATIVE_TYPES
from contrada.files.geojson_wkb import write_wkb

SEPARATED = pa.struct([("x", pa.float64()), ("y", pa.float64())])
INTERLEAVED = pa.list_(pa.field("xy", pa.float64()), 2)
SQUARE = [[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0], [0.0, 0.0]]
NESTED = [encoding for encoding in NATIVE_TYPES if encoding != "point"]
READ_ALL = """
import sys
from contrada import Matcher
matcher = Matcher()
matcher.add("w", "S_INTERSECTS(geometry, BBOX(0,0,10,10))")
for path in sys.argv[1:]:
    print(path, file=sys.stderr)
    matcher.match_many(path, quarantine=True)
    Matcher().add_many(path, quarantine=True)
"""


def nestings(depth: int) -> list[Any]:
    """All lists of up to two members in each other, `depth` deep, around a square or nothing."""
    if depth == 1:
        return [[], SQUARE]
    inside = nestings(depth - 1)
    return [[], *([one] for one in inside), *(list(two) for two in product(inside, inside))]


def spell(nested: Any, position: pa.DataType) -> Any:
    """Spell positions as a type of Arrow has them."""
    if nested and isinstance(nested[0], float):
        return {"x": nested[0], "y": nested[1]} if position == SEPARATED else nested
    return [spell(member, position) for member in nested]


def native_array(values: list[Any], encoding: str, position: pa.DataType) -> pa.Array:
    kind = position
    for _ in range(LISTS.get(encoding, 3)):
        kind = pa.list_(kind)
    return pa.array([None if one is None else spell(one, position) for one in values], kind)


def native_table(column: pa.Array, encoding: str) -> pa.Table:
    geometry = {"encoding": encoding, "geometry_types": []}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": geometry}}
    return pa.table({"geometry": column}).replace_schema_metadata({"geo": json.dumps(geo)})


def wkb_of(table: pa.Table) -> list[bytes | None]:
    return [
        value for batch in read_rows(table).batches() for value in batch["geometry"].to_pylist()
    ]


@pytest.mark.parametrize("position", [SEPARATED, INTERLEAVED], ids=["separated", "interleaved"])
@pytest.mark.parametrize("encoding", NESTED)
def test_whatever_is_empty_is_written_as_geojson_of_the_same_coordinates_is(
    encoding: str, position: pa.DataType
) -> None:
    values = [None, *nestings(LISTS.get(encoding, 3)), None]
    kind = NATIVE_TYPES[encoding]
    expected = [
        None if one is None else write_wkb({"type": kind, "coordinates": one}) for one in values
    ]
    table = native_table(native_array(values, encoding, position), encoding)
    assert wkb_of(table) == expected
    assert wkb_of(table.slice(3, 2)) == expected[3:5]


def test_geometries_that_are_empty_within_do_not_end_the_process(tmp_path: Path) -> None:
    paths = []
    for encoding in NESTED:
        values = nestings(LISTS.get(encoding, 3))
        for number, rows in enumerate([values, [[]], [None, []], values[::-1], [None]]):
            path = tmp_path / f"{encoding}_{number}.parquet"
            column = native_array(rows, encoding, SEPARATED)
            pq.write_table(native_table(column, encoding), path)
            paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", READ_ALL, *paths],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]


def test_an_empty_part_of_a_multipolygon_takes_nothing_from_the_others() -> None:
    column = native_array([[[SQUARE], []], [[]]], "multipolygon", SEPARATED)
    matcher = Matcher()
    matcher.add("w", "S_INTERSECTS(geometry, BBOX(0,0,10,10))")
    assert matcher.match_many(native_table(column, "multipolygon")).to_pylist() == [
        {"event": 0, "subscription": "w"}
    ]


@pytest.mark.parametrize("position", [SEPARATED, INTERLEAVED], ids=["separated", "interleaved"])
def test_a_geometry_with_a_null_inside_is_a_bad_row(position: pa.DataType) -> None:
    line = spell(SQUARE, position)
    kind = pa.list_(pa.list_(position))
    column = pa.array([[line], [line, None], [[line[0], None, line[1]]], [line]], kind)
    bad: list[tuple[int, str]] = []
    matcher = Matcher()
    matcher.add("w", "S_INTERSECTS(geometry, BBOX(0,0,10,10))")
    answer = matcher.match_many(
        native_table(column, "multilinestring"),
        quarantine=True,
        on_bad=lambda row, _, reason: bad.append((row, reason)),
    )
    assert answer["event"].to_pylist() == [0, 3]
    assert [row for row, _ in bad] == [1, 2]
    assert all("a part or a position of the geometry is null" in reason for _, reason in bad)


def test_a_z_is_kept_at_every_level() -> None:
    xyz = pa.struct([("x", pa.float64()), ("y", pa.float64()), ("z", pa.float64())])
    ring = [{"x": x, "y": y, "z": 1.0} for x, y in SQUARE]
    for encoding, nested in (
        ("linestring", ring),
        ("multipoint", ring),
        ("polygon", [ring]),
        ("multilinestring", [ring]),
        ("multipolygon", [[ring]]),
    ):
        kind = xyz
        for _ in range(LISTS.get(encoding, 3)):
            kind = pa.list_(kind)
        (wkb,) = wkb_of(native_table(pa.array([nested], kind), encoding))
        shape = shapely.from_wkb(wkb)
        assert shape is not None
        assert shape.geom_type == NATIVE_TYPES[encoding]
        assert shapely.get_coordinates(shape, include_z=True).tolist() == [
            [*pair, 1.0] for pair in SQUARE
        ]


@pytest.mark.parametrize(
    "offsets", [[0, 3, 1, 5], [0, 2, 4, 6], [-1, 2, 4, 5], [0, 2**31 - 1, 4, 5]]
)
@pytest.mark.parametrize("level", [0, 1])
def test_offsets_that_lie_are_refused(offsets: list[int], level: int) -> None:
    held = np.array([0, 1, 2, 5], np.int32)
    buffers = [None, pa.py_buffer(held)]
    leaves = native_array([SQUARE], "linestring", SEPARATED).values
    if level:
        inner = pa.Array.from_buffers(pa.list_(SEPARATED), 3, buffers, children=[leaves])
        column = pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), inner)
    else:
        rings = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4, 5], pa.int32()), leaves)
        column = pa.Array.from_buffers(pa.list_(rings.type), 3, buffers, children=[rings])
    table = native_table(column, "polygon")
    held[:] = offsets
    with pytest.raises(InvalidInput, match="list"):
        wkb_of(table)
