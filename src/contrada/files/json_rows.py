"""JSON objects as rows: Features and plain objects, to columns of one type each.

A Feature's geometry is the column `geometry`, and its id, if it has one, the column `id`, whatever
its properties have under those names.
The objects are gone through twice, once for the types and once for the rows, so that a value in
the last row cannot surprise; at no time is more than one batch held.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.files.geojson_wkb import encode_geojson, is_geometry
from contrada.files.json_kinds import (
    GEOMETRY,
    ColumnCount,
    ColumnKind,
    is_sparse,
    refuse_surrogates,
)
from contrada.files.rows import Rows, keep_columns
from contrada.limits import TABLE_CELLS_MAX
from contrada.model.event import is_feature
from contrada.showing import brief_text

BATCH_CHARACTERS = 32 * 2**20
BATCH_CELLS = 16 * 2**20
BARE_GEOMETRY = {"type", "coordinates", "geometries", "bbox", "crs"}

Record = tuple[Any, int]  # a JSON value, and how many characters it took


@dataclass(frozen=True, slots=True)
class JsonRow:
    """One row: its columns, and what it was before."""

    columns: dict[str, Any]
    is_feature: bool = False
    has_feature_id: bool = False


@dataclass(slots=True)
class Survey:
    """What a first reading found: the kind of every column, and the number of rows."""

    name: str
    kinds: dict[str, ColumnKind] = field(default_factory=dict)
    has_features: bool = False
    has_feature_ids: bool = False
    count: int = 0
    total: ColumnCount = field(init=False)

    def __post_init__(self) -> None:
        self.total = ColumnCount(self.name)

    def see(self, row: JsonRow) -> None:
        """Take in one row."""
        for column, value in row.columns.items():
            if column not in self.kinds:
                refuse_surrogates(self.name, column, self.count)
                self.total.add(column, self.count)
                self.kinds[column] = ColumnKind(self.name, column, total=self.total)
            is_meant = row.is_feature and column == GEOMETRY
            self.kinds[column].see(value, self.count, GEOMETRY if is_meant else None)
        self.has_features |= row.is_feature
        self.has_feature_ids |= row.has_feature_id
        self.count += 1

    def columns(self) -> dict[str, ColumnKind]:
        """Return the columns in order: a Feature's id first, the geometry last."""
        columns = dict(self.kinds)
        if self.has_feature_ids:
            columns = {"id": columns["id"]} | columns
        geometry = columns.pop(GEOMETRY, None)
        if geometry is None and (self.has_features or not columns):
            geometry = ColumnKind(self.name, GEOMETRY)
        if geometry is not None:
            if geometry.name == "null":
                geometry.counts[GEOMETRY] = 0
            columns[GEOMETRY] = geometry
        return columns


def read_json_rows(
    name: str,
    open_records: Callable[[], Iterator[Record]],
    open_lines: Callable[[], Iterator[int]],
    find_crs: Callable[[Survey], str | None],
    *,
    batch_rows: int,
    columns: Sequence[str] | None,
) -> Rows:
    """Read the rows of JSON objects that `open_records` yields from the start at every call.

    `open_lines` yields the line at which each of them begins.
    """
    survey = Survey(name)
    for value, _ in open_records():
        survey.see(to_json_row(value, f"{name}: row {survey.count}"))
    kinds = survey.columns()
    schema = _schema(kinds)
    kinds = {column: kinds[column] for column in keep_columns(schema, columns, name)}
    for kind in kinds.values():
        kind.check()
    crs = find_crs(survey)

    def select(kinds: dict[str, ColumnKind]) -> Rows:
        schema = _schema(kinds)
        shapes = [column for column, kind in kinds.items() if kind.name == GEOMETRY]
        impure = {column for column, kind in kinds.items() if any(kind.misfits())}
        is_wkt = GEOMETRY in kinds and kinds[GEOMETRY].name == "string"
        geometries = [GEOMETRY, *shapes] if is_wkt else shapes
        geometries.sort(key=lambda column: column != GEOMETRY)
        width = sum(kind.width for kind in kinds.values())
        rows_max = min(batch_rows, BATCH_CELLS // width or 1)

        def deliver() -> Iterator[pa.RecordBatch]:
            _refuse_sparse(survey, kinds, width)
            start = 0
            for rows in _gather(open_records(), shapes, name, rows_max):
                yield _to_batch(rows, schema, kinds, impure, start)
                start += len(rows)

        def narrow(columns: Sequence[str], attributes: Set[str]) -> Rows:
            return select({column: kinds[column].narrowed(attributes) for column in columns})

        return Rows(
            name,
            schema,
            tuple(geometries),
            crs,
            survey.count,
            rows_max,
            deliver,
            narrow,
            open_lines,
        )

    return select(kinds)


def _schema(kinds: dict[str, ColumnKind]) -> pa.Schema:
    return pa.schema([pa.field(column, kind.arrow_type()) for column, kind in kinds.items()])


def _refuse_sparse(survey: Survey, kinds: dict[str, ColumnKind], width: int) -> None:
    """Refuse to read columns that would be nearly all null, and far more than the file holds."""
    cells = survey.count * width
    values = sum(kind.value_count for kind in kinds.values())
    if is_sparse(cells, values, TABLE_CELLS_MAX):
        raise InvalidInput(
            f"{survey.name}: the {width:,} columns that are read, those inside others included, "
            f"have {cells:,} cells for {values:,} values in {survey.count:,} rows; at most "
            f"{TABLE_CELLS_MAX:,} may be nearly all empty (TABLE_CELLS_MAX)"
        )


def to_json_row(value: Any, place: str) -> JsonRow:
    """Make a row of a JSON value: of a Feature, a bare geometry or any other object."""
    if not isinstance(value, dict):
        raise InvalidInput(f"{place} is not a JSON object: {brief_text(value)}")
    if is_geometry(value) and value.keys() <= BARE_GEOMETRY:
        return JsonRow({"geometry": value}, is_feature=True)
    if value.get("type") == "FeatureCollection" and "features" in value:
        raise InvalidInput(f"{place} is a whole FeatureCollection; name it .geojson")
    if not is_feature(value):
        return JsonRow(value)
    properties = value.get("properties")
    if properties is not None and not isinstance(properties, dict):
        shown = brief_text(properties)
        raise InvalidInput(f"{place} has properties that are not an object: {shown}")
    columns = (properties or {}) | {GEOMETRY: value.get("geometry")}
    if value.get("id") is None:
        return JsonRow(columns, is_feature=True)
    return JsonRow(columns | {"id": value["id"]}, is_feature=True, has_feature_id=True)


def _gather(
    records: Iterator[Record], shapes: list[str], name: str, batch_rows: int
) -> Iterator[list[JsonRow]]:
    """Gather rows in lists, each limited in rows and in text.

    Geometries become WKB at once: as lists of lists of numbers they would take far more room.
    """
    held: list[JsonRow] = []
    characters = 0
    for row, (value, length) in enumerate(records):
        held.append(to_json_row(value, f"{name}: row {row}"))
        for column in shapes:
            geometry = held[-1].columns.get(column)
            if geometry is not None:
                is_meant = column == GEOMETRY or is_geometry(geometry)
                held[-1].columns[column] = encode_geojson(geometry, column) if is_meant else None
        characters += length
        if len(held) == batch_rows or characters >= BATCH_CHARACTERS:
            yield held
            held, characters = [], 0
    if held:
        yield held


def _to_batch(
    rows: list[JsonRow],
    schema: pa.Schema,
    kinds: dict[str, ColumnKind],
    impure: Set[str],
    start: int,
) -> pa.RecordBatch:
    arrays = []
    for column in schema:
        values = [row.columns.get(column.name) for row in rows]
        is_pure = column.name not in impure
        arrays.append(_to_array(values, column.type, kinds[column.name], start, is_pure=is_pure))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _to_array(
    values: list[Any], target: pa.DataType, kind: ColumnKind, start: int, *, is_pure: bool
) -> pa.Array:
    """Make a column; Arrow leaves it to us to turn integers into floats where there are some."""
    if is_pure or kind.name == GEOMETRY:
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return pa.array(values, target)
    fitted: list[Any] = []
    for row, value in enumerate(values, start):
        try:
            fitted.append(kind.fit(value, is_pure=is_pure))
            pa.array(fitted[-1:], target)
        except (ValueError, TypeError, OverflowError, RecursionError) as fault:
            place = f'{kind.source}: column "{kind.column}" in row {row}'
            raise InvalidInput(f"{place} cannot be read: {fault}") from fault
    return pa.array(fitted, target)
