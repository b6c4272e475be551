"""JSON objects as rows: Features and plain objects, to columns of one type each.

A Feature's geometry is the column `geometry`, whatever its properties have under that name.
The objects are gone through twice, once for the types and once for the rows, so that a value in
the last row cannot surprise; at no time is more than one batch held.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.files.geojson_wkb import encode_geojson, is_geometry
from contrada.files.json_kinds import Kind
from contrada.files.rows import Rows, keep_columns

BATCH_CHARACTERS = 32 * 2**20
BARE_GEOMETRY = {"type", "coordinates", "geometries", "bbox", "crs"}

Record = tuple[Any, int]  # a JSON value, and how many characters it took


@dataclass(frozen=True, slots=True)
class JsonRow:
    """One row: its columns, and the id that a Feature has outside its properties."""

    columns: dict[str, Any]
    feature_id: Any = None
    is_feature: bool = False


@dataclass(slots=True)
class Survey:
    """What a first reading found: the kind of every column, and the number of rows."""

    name: str
    kinds: dict[str, Kind] = field(default_factory=dict)
    feature_id: Kind = field(init=False)
    has_features: bool = False
    count: int = 0

    def __post_init__(self) -> None:
        self.feature_id = Kind(self.name, "id")

    def see(self, row: JsonRow) -> None:
        """Take in one row."""
        for column, value in row.columns.items():
            if column not in self.kinds:
                self.kinds[column] = Kind(self.name, column)
            self.kinds[column].see(value, self.count)
        if "id" not in self.kinds:
            self.feature_id.see(row.feature_id, self.count)
        self.has_features |= row.is_feature
        self.count += 1

    def columns(self) -> dict[str, Kind]:
        """The columns in order: a Feature's id first, the geometry last."""
        columns = dict(self.kinds)
        if "id" not in columns and self.feature_id.name != "null":
            columns = {"id": self.feature_id} | columns
        geometry = columns.pop("geometry", None)
        if geometry is None and (self.has_features or not columns):
            geometry = Kind(self.name, "geometry")
        if geometry is not None:
            if geometry.name == "null":
                geometry.name = "geometry"
            columns["geometry"] = geometry
        return columns


def read_json_rows(
    name: str,
    open_records: Callable[[], Iterator[Record]],
    find_crs: Callable[[Survey], str | None],
    *,
    batch_rows: int,
    columns: Sequence[str] | None,
) -> Rows:
    """Rows of JSON objects that `open_records` gives from the start at every call."""
    survey = Survey(name)
    for value, _ in open_records():
        survey.see(_to_row(value, survey.count, name))
    kinds = survey.columns()
    full = pa.schema([pa.field(column, kind.arrow_type()) for column, kind in kinds.items()])
    schema = pa.schema([full.field(column) for column in keep_columns(full, columns, name)])
    shapes = [column for column in schema.names if kinds[column].name == "geometry"]
    is_wkt = "geometry" in schema.names and kinds["geometry"].name == "string"
    geometries = ["geometry", *shapes] if is_wkt else shapes
    geometries.sort(key=lambda column: column != "geometry")
    id_outside = "id" not in survey.kinds

    def deliver() -> Iterator[pa.RecordBatch]:
        start = 0
        for rows in _gather(open_records(), shapes, name, batch_rows):
            yield _to_batch(rows, schema, kinds, start, id_outside=id_outside)
            start += len(rows)

    return Rows(
        name, schema, tuple(geometries), find_crs(survey), survey.count, batch_rows, deliver
    )


def _to_row(value: Any, row: int, name: str) -> JsonRow:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name}: row {row} is not a JSON object: {str(value)[:40]}")
    if is_geometry(value) and value.keys() <= BARE_GEOMETRY:
        return JsonRow({"geometry": value}, is_feature=True)
    if value.get("type") == "FeatureCollection" and "features" in value:
        raise InvalidInput(f"{name}: row {row} is a whole FeatureCollection; name it .geojson")
    if value.get("type") != "Feature":
        return JsonRow(value)
    properties = value.get("properties")
    geometry = value.get("geometry")
    if properties is not None and not isinstance(properties, dict):
        raise InvalidInput(f"{name}: row {row} has properties that are no object: {properties}")
    if geometry is not None and not is_geometry(geometry):
        shown = str(geometry)[:80]
        raise InvalidInput(f"{name}: row {row} has a geometry that is not GeoJSON's: {shown}")
    return JsonRow((properties or {}) | {"geometry": geometry}, value.get("id"), is_feature=True)


def _gather(
    records: Iterator[Record], shapes: list[str], name: str, batch_rows: int
) -> Iterator[list[JsonRow]]:
    """Rows in lists, each limited in rows and in text.

    Geometries become WKB at once: as lists of lists of numbers they would take far more room.
    """
    held: list[JsonRow] = []
    characters = 0
    for row, (value, length) in enumerate(records):
        held.append(_to_row(value, row, name))
        for column in shapes:
            geometry = held[-1].columns.get(column)
            if geometry is not None:
                held[-1].columns[column] = encode_geojson(geometry, row, name)
        characters += length
        if len(held) == batch_rows or characters >= BATCH_CHARACTERS:
            yield held
            held, characters = [], 0
    if held:
        yield held


def _to_batch(
    rows: list[JsonRow], schema: pa.Schema, kinds: dict[str, Kind], start: int, *, id_outside: bool
) -> pa.RecordBatch:
    arrays = []
    for column in schema:
        kind = kinds[column.name]
        if column.name == "id" and id_outside:
            values = [row.feature_id for row in rows]
        else:
            values = [row.columns.get(column.name) for row in rows]
        arrays.append(_to_array(values, column.type, kind, start))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _to_array(values: list[Any], target: pa.DataType, kind: Kind, start: int) -> pa.Array:
    try:
        return pa.array(values, target)
    except (ValueError, TypeError, OverflowError):
        fitted: list[Any] = []
        for row, value in enumerate(values, start):
            try:
                fitted.append(_fit(value, target))
                pa.array(fitted[-1:], target)
            except (ValueError, TypeError, OverflowError) as fault:
                place = f'{kind.source}: column "{kind.column}" in row {row}'
                raise InvalidInput(f"{place} cannot be read: {fault}") from fault
        return pa.array(fitted, target)


def _fit(value: Any, target: pa.DataType) -> Any:
    """The value with its integers as floats where the type has floats; Arrow leaves that to us."""
    if value is None:
        return None
    if pa.types.is_floating(target):
        return float(value)
    if pa.types.is_list(target):
        return [_fit(member, target.value_type) for member in value]
    if pa.types.is_struct(target):
        return {member.name: _fit(value.get(member.name), member.type) for member in target}
    return value
