"""JSON objects as rows: Features and plain objects, to columns of one type each.

A Feature's geometry is the column `geometry`, and its id, if it has one, the column `id`, whatever
its properties have under those names.
The objects are gone through twice, once for the types and once for the rows, so that a value in
the last row cannot surprise; at no time is more than one batch held.
"""

import contextlib
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.files.geojson_wkb import encode_geojson, is_geometry
from contrada.files.json_kinds import (
    ColumnCount,
    ColumnKind,
    JsonSource,
    is_sparse,
    refuse_surrogates,
)
from contrada.files.rows import Rows, keep_columns, with_faults
from contrada.limits import TABLE_CELLS_MAX
from contrada.model.event import GEOMETRY, is_feature
from contrada.model.geometry import BAD_CELL, Fault
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

    source: JsonSource
    kinds: dict[str, ColumnKind] = field(default_factory=dict)
    has_features: bool = False
    has_feature_ids: bool = False
    count: int = 0
    total: ColumnCount = field(init=False)

    def __post_init__(self) -> None:
        self.total = ColumnCount(self.source)

    def see(self, row: JsonRow) -> None:
        """Take in one row."""
        for column, value in row.columns.items():
            if column not in self.kinds:
                refuse_surrogates(self.source, column, self.count)
                self.total.add(column, self.count)
                self.kinds[column] = ColumnKind(self.source, column, total=self.total)
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
            geometry = ColumnKind(self.source, GEOMETRY)
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
    source = JsonSource(name, open_lines)
    survey = Survey(source)
    for value, _ in open_records():
        survey.see(_to_row(value, survey.count, source))
    kinds = survey.columns()
    schema = schema_of(kinds)
    kinds = {column: kinds[column] for column in keep_columns(schema, columns, name)}
    for kind in kinds.values():
        kind.check()
    crs = find_crs(survey)

    def select(kinds: dict[str, ColumnKind]) -> Rows:
        schema = schema_of(kinds)
        shapes = _find_shapes(kinds)
        impure = {column for column, kind in kinds.items() if any(kind.misfits())}
        width = sum(kind.width for kind in kinds.values())
        rows_max = min(batch_rows, BATCH_CELLS // width or 1)

        def deliver(read: Collection[str]) -> Iterator[pa.RecordBatch]:
            _refuse_sparse(survey, kinds, width)
            start = 0
            for rows in _gather(open_records(), shapes, source, rows_max):
                yield _to_batch(rows, schema, kinds, impure, start, read)
                start += len(rows)

        def narrow(columns: Sequence[str], attributes: Set[str]) -> Rows:
            return select({column: kinds[column].narrowed(attributes) for column in columns})

        def identify(column: str) -> Rows:
            own = {column: kinds[column].as_ids()} if column in kinds else {}
            return select(kinds | own)

        return Rows(
            name,
            schema,
            find_geometries(kinds),
            crs,
            survey.count,
            rows_max,
            lambda: deliver(()),
            narrow,
            open_lines,
            _judge=deliver,
            _identify=identify,
        )

    return select(kinds)


def schema_of(kinds: dict[str, ColumnKind]) -> pa.Schema:
    """Return the Arrow type of each column."""
    return pa.schema([pa.field(column, kind.arrow_type()) for column, kind in kinds.items()])


def find_geometries(kinds: dict[str, ColumnKind]) -> tuple[str, ...]:
    """Find the columns of geometries, the primary one first, which may be WKT."""
    shapes = _find_shapes(kinds)
    is_wkt = GEOMETRY in kinds and kinds[GEOMETRY].name == "string"
    geometries = [GEOMETRY, *shapes] if is_wkt else shapes
    return tuple(sorted(geometries, key=lambda column: column != GEOMETRY))


def _find_shapes(kinds: dict[str, ColumnKind]) -> list[str]:
    return [column for column, kind in kinds.items() if kind.name == GEOMETRY]


def _refuse_sparse(survey: Survey, kinds: dict[str, ColumnKind], width: int) -> None:
    """Refuse to read columns that would be nearly all null, and far more than the file holds."""
    cells = survey.count * width
    values = sum(kind.value_count for kind in kinds.values())
    if is_sparse(cells, values, TABLE_CELLS_MAX):
        raise InvalidInput(
            f"{survey.source}: the table would be too sparse: {width:,} columns (nested ones "
            f"included) make {cells:,} cells for {values:,} values; the limit is "
            f"{TABLE_CELLS_MAX:,} (TABLE_CELLS_MAX)"
        )


def _to_row(value: Any, row: int, source: JsonSource) -> JsonRow:
    try:
        return to_json_row(value, "")
    except InvalidInput as error:
        raise _wrong(source, row, error.message.strip()) from None


def to_json_row(value: Any, place: str) -> JsonRow:
    """Make a row of a JSON value: of a Feature, a bare geometry or any other object."""
    if not isinstance(value, dict):
        raise InvalidInput(f"{place} is not a JSON object: {brief_text(value)}")
    if is_geometry(value) and value.keys() <= BARE_GEOMETRY:
        return JsonRow({"geometry": value}, is_feature=True)
    if value.get("type") == "FeatureCollection" and "features" in value:
        raise InvalidInput(f"{place} is an entire FeatureCollection; name the file .geojson")
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


def _wrong(source: JsonSource, row: int, what: str) -> InvalidInput:
    return InvalidInput(f"{source}: {source.place(row)} {what}")


def _gather(
    records: Iterator[Record], shapes: list[str], source: JsonSource, batch_rows: int
) -> Iterator[list[JsonRow]]:
    """Gather rows in lists, each limited in rows and in text.

    Geometries become WKB at once: as lists of lists of numbers they would take far more room.
    """
    held: list[JsonRow] = []
    characters = 0
    for row, (value, length) in enumerate(records):
        held.append(_to_row(value, row, source))
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
    read: Collection[str],
) -> pa.RecordBatch:
    """Make a batch; a bad cell is null, and a fault of its row if its column is read."""
    arrays, faults = [], dict[int, Fault]()
    for column in schema:
        values = [row.columns.get(column.name) for row in rows]
        cells = _Cells(kinds[column.name], column.type, start, column.name not in impure)
        arrays.append(cells.as_array(values))
        if column.name in read:
            faults = cells.bad | faults
        elif cells.bad:
            row, fault = next(iter(cells.bad.items()))
            what = f"{kinds[column.name].source}: row {start + row}, {fault}"
            warnings.warn(f"{what}; {len(cells.bad)} such values are read as null", stacklevel=2)
    return with_faults(pa.RecordBatch.from_arrays(arrays, schema=schema), faults)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of a column from the row `start` on, and by place what is wrong with some."""

    kind: ColumnKind
    target: pa.DataType
    start: int
    is_pure: bool
    bad: dict[int, Fault] = field(default_factory=dict)

    def as_array(self, values: list[Any]) -> pa.Array:
        """Make a column; Arrow leaves it to us to turn integers into floats where some are."""
        if self.is_pure or self.kind.name == GEOMETRY:
            with contextlib.suppress(ValueError, TypeError, OverflowError):
                return pa.array(values, self.target)
        return pa.array([self._fit(value, at) for at, value in enumerate(values)], self.target)

    def _fit(self, value: Any, at: int) -> Any:
        try:
            fitted = self.kind.fit(value, is_pure=self.is_pure)
            pa.array([fitted], self.target)
        except UnicodeEncodeError:
            return self._set_aside(at, "a text has half a surrogate pair")
        except (ValueError, TypeError, OverflowError, RecursionError) as fault:
            source = self.kind.source
            place = f'{source}: column "{self.kind.column}" in {source.place(self.start + at)}'
            raise InvalidInput(f"{place} cannot be read: {fault}") from fault
        if fitted is None and value is not None and self.kind.is_id:
            return self._set_aside(at, f"the id {brief_text(value)} does not fit in 64 bits")
        return fitted

    def _set_aside(self, at: int, reason: str) -> None:
        self.bad[at] = Fault(BAD_CELL, reason, f"column {self.kind.column!r}")
