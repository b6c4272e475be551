"""Events by columns: a batch of rows whose geometries are decoded without an object per point."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Geometries, Mask, Positions
from contrada.deferred import compute as pc
from contrada.matching.arrow_values import as_values, find_column, used_values
from contrada.matching.grouping import expand
from contrada.matching.mixed_columns import MixedNumbersType, read_doubles
from contrada.model.encodings import read_wkbs
from contrada.model.event import Event
from contrada.model.geometry import (
    Fault,
    are_areas,
    as_array,
    decode,
    decode_meant,
    find_faults,
    tidy,
)
from contrada.model.mending import mend
from contrada.model.relation import Family, SpatialRelation
from contrada.threads import once

_POINT_BYTES = 21
_POINT_HEADER = np.frombuffer(b"\x01\x01\x00\x00\x00", np.uint8)


@dataclass(slots=True)
class GeometryColumn:
    """Geometries of a batch: points as coordinates, all others as Shapely's.

    `shapes` holds None where there is a point or nothing usable: a null, an empty geometry, a
    value that is no geometry, or one with a fault. Where many rows share a value, `leads` has for
    each row the first one with the same.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    is_point: Mask
    shapes: Geometries
    faults: dict[int, Fault] = field(default_factory=dict)
    mended: dict[int, Fault] = field(default_factory=dict)
    leads: Positions | None = None
    _boxes: NDArray[np.float64] | None = None

    @property
    def is_known(self) -> Mask:
        """Which rows have a geometry that relations can be asked of."""
        return self.is_point | ~shapely.is_missing(self.shapes)

    def take(self, rows: Positions) -> Geometries:
        """The geometries of some rows, points included."""
        taken = self.shapes[rows]
        points = np.flatnonzero(self.is_point[rows])
        if points.size:
            taken[points] = shapely.points(self.x[rows[points]], self.y[rows[points]])
        return taken

    def boxes(self) -> NDArray[np.float64]:
        """The box of each row: west, south, east, north; NaN where there is no geometry."""
        if self._boxes is None:
            boxes = shapely.bounds(self.shapes)
            at = self.is_point
            boxes[at] = np.stack([self.x[at], self.y[at]] * 2, axis=1)
            self._boxes = boxes
        return self._boxes

    def are_known(self, relation: SpatialRelation) -> Mask:
        """Which rows have a geometry that a relation can be asked of."""
        if relation.family is Family.EGENHOFER:
            return are_areas(self.shapes)
        return self.is_known

    def prepared(self, rows: Positions) -> Geometries:
        """The geometries of some rows, for an engine that asks GEOS about them: points as well.

        Others are prepared from then on. Decoding prepares none, since not every engine asks.
        """
        taken = self.take(rows)
        shapely.prepare(taken)
        return taken

    def one(self, row: int) -> BaseGeometry | None:
        """The geometry of one row."""
        if self.is_point[row]:
            return shapely.Point(self.x[row], self.y[row])
        shape: BaseGeometry | None = self.shapes[row]
        return shape

    def set_aside(self, find: Callable[[Geometries], Mapping[int, Fault]]) -> None:
        """Count as faulty the rows in whose geometries something is found, each looked at once."""
        if self.leads is None:
            faults = dict(find(self.shapes))
        else:
            firsts, codes = np.unique(self.leads, return_inverse=True)
            faults = _spread_faults(find(self.shapes[firsts]), codes)
        self.faults.update(faults)
        self.shapes[list(faults)] = None

    def find_pairs(
        self, find: Callable[["GeometryColumn"], tuple[Positions, Positions]]
    ) -> tuple[Positions, Positions]:
        """Find pairs of row and something else, asking of each distinct geometry once."""
        if self.leads is None:
            return find(self)
        firsts, codes = np.unique(self.leads, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(firsts) + 1))
        distinct = (self.x[firsts], self.y[firsts], self.is_point[firsts], self.shapes[firsts])
        rows, found = find(GeometryColumn(*distinct))
        which, places = expand(starts, rows)
        return order[places], found[which]

    def spread(self, codes: Positions) -> "GeometryColumn":
        """Return the rows that have each the geometry of a number; -1 stands for none."""
        leads = None
        if len(self.shapes) < len(codes):
            _, firsts, back = np.unique(codes, return_index=True, return_inverse=True)
            leads = firsts[back]
        return GeometryColumn(
            np.append(self.x, np.nan)[codes],
            np.append(self.y, np.nan)[codes],
            np.append(self.is_point, False)[codes],
            np.append(self.shapes, [None])[codes],
            _spread_faults(self.faults, codes),
            _spread_faults(self.mended, codes),
            leads,
        )

    @classmethod
    def of(cls, geometries: Geometries) -> "GeometryColumn":
        """Make a column of geometries that are already tidied and judged."""
        usable = ~(shapely.is_missing(geometries) | shapely.is_empty(geometries))
        is_point = usable & (shapely.get_type_id(geometries) == 0)
        x, y = np.full((2, len(geometries)), np.nan)
        x[is_point], y[is_point] = (
            shapely.get_x(geometries[is_point]),
            shapely.get_y(geometries[is_point]),
        )
        shapes = geometries.copy()
        shapes[~usable | is_point] = None
        return cls(x, y, is_point, shapes)


def read_geometries(
    array: pa.Array, place: str = "a column", *, repair: bool = False, is_meant: bool = False
) -> GeometryColumn:
    """Decode a column of WKB, WKT or GeoJSON; what is wrong with a row is said in `faults`.

    Where geometries are meant to be, text that is none is wrong; else it is just no geometry.
    """
    if pa.types.is_dictionary(array.type):
        codes, known = used_values(array)
        distinct = read_geometries(known, place, repair=repair, is_meant=is_meant)
        return distinct.spread(codes)
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        return _read_wkb(array, repair)
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    is_mixed = pa.types.is_union(array.type) or isinstance(array.type, pa.BaseExtensionType)
    if is_text or is_mixed or pa.types.is_struct(array.type):
        return read_geometry_values(as_values(array, place), repair=repair, is_meant=is_meant)
    return GeometryColumn.of(np.full(len(array), None, object))


def _spread_faults(faults: Mapping[int, Fault], codes: Positions) -> dict[int, Fault]:
    """Return the faults of the rows whose numbers have one."""
    if not faults:
        return {}
    rows = np.flatnonzero(np.isin(codes, list(faults))).tolist()
    return {row: faults[int(codes[row])] for row in rows}


def _read_wkb(array: pa.Array, repair: bool) -> GeometryColumn:
    n = len(array)
    x, y = np.full((2, n), np.nan)
    is_point = find_points(array, x, y)
    infinite = is_point & ~(np.isfinite(x) & np.isfinite(y))
    is_empty = infinite & np.isnan(x) & np.isnan(y)
    column = GeometryColumn(x, y, is_point & ~infinite, np.full(n, None, object))
    for row in np.flatnonzero(infinite & ~is_empty):
        message = f"non-finite coordinate ({x[row]}, {y[row]}) at vertex 0"
        column.faults[int(row)] = Fault("non_finite", message)
    others = np.flatnonzero(~is_point & array.is_valid().to_numpy(zero_copy_only=False))
    if others.size:
        bytes_ = array.take(pa.array(others)).to_numpy(zero_copy_only=False)
        _decode(column, others, bytes_, repair)
    return column


def keep_readable(array: pa.Array) -> pa.Array:
    """The same WKB, with nulls in place of what is not a geometry."""
    values = array.to_numpy(zero_copy_only=False)
    if _decode_at_once(values) is not None:
        return array
    is_readable = [isinstance(decode(value), BaseGeometry) for value in values]
    return pc.if_else(pa.array(is_readable, pa.bool_()), array, None)


def find_points(array: pa.Array, x: NDArray[np.float64], y: NDArray[np.float64]) -> Mask:
    """Find the rows that are little-endian points, and write down their coordinates."""
    if not len(array):
        return np.zeros(0, bool)
    wide = pa.types.is_large_binary(array.type)
    kind, end = np.int64 if wide else np.int32, array.offset + len(array) + 1
    offsets = np.frombuffer(array.buffers()[1], kind, end)[array.offset :].astype(np.int64)
    is_point = (np.diff(offsets) == _POINT_BYTES) & array.is_valid().to_numpy(zero_copy_only=False)
    if not is_point.any():
        return np.asarray(is_point, bool)
    data = np.frombuffer(array.buffers()[2], np.uint8)
    if is_point.all():
        raw = data[offsets[0] : offsets[-1]].reshape(-1, _POINT_BYTES)
    else:
        starts: Positions = offsets[:-1][is_point]
        raw = data[starts[:, None] + np.arange(_POINT_BYTES)]
    fits = (raw[:, :5] == _POINT_HEADER).all(axis=1)
    rows = np.flatnonzero(is_point)
    is_point[rows[~fits]] = False
    xy = np.ascontiguousarray(raw[fits, 5:]).view("<f8")
    x[rows[fits]], y[rows[fits]] = xy[:, 0], xy[:, 1]
    return np.asarray(is_point, bool)


def _decode(column: GeometryColumn, rows: Positions, values: Geometries, repair: bool) -> None:
    """Decode WKB that is no plain point, and judge it."""
    shapes = _decode_at_once(values)
    if shapes is None:
        shapes = np.full(len(values), None, object)
        for i, value in enumerate(values):
            _put(column, int(rows[i]), decode(value), shapes, i)
    _judge(column, rows, tidy(shapes), repair)


def _decode_at_once(values: Geometries) -> Geometries | None:
    """Decode all values; None where one of them is bad, and each must be looked at."""
    try:
        with np.errstate(invalid="ignore"):  # NaN is found and named when it is judged
            return read_wkbs(values)
    except (shapely.errors.ShapelyError, ValueError, NotImplementedError):
        return None


def read_geometry_values(
    values: list[Any], *, repair: bool = False, is_meant: bool = False
) -> GeometryColumn:
    """Read geometries from values of any kind."""
    read = decode_meant if is_meant else decode
    column = GeometryColumn.of(np.full(len(values), None, object))
    shapes = np.full(len(values), None, object)
    for row, value in enumerate(values):
        _put(column, row, read(value), shapes, row)
    _judge(column, np.arange(len(values)), tidy(shapes), repair)
    return column


def _put(
    column: GeometryColumn, row: int, read: BaseGeometry | Fault | None, shapes: Geometries, i: int
) -> None:
    if isinstance(read, Fault):
        column.faults[row] = read
    else:
        shapes[i] = read


def _judge(column: GeometryColumn, rows: Positions, shapes: Geometries, repair: bool) -> None:
    """Set faulty geometries aside, or mend them, and write the others into the column."""
    for i, fault in find_faults(shapes).items():
        row = int(rows[i])
        mended = mend(shapes[i]) if repair and fault.code == "invalid" else fault
        if isinstance(mended, Fault):
            column.faults[row] = mended
            shapes[i] = None
        else:
            column.mended[row] = fault
            shapes[i] = mended
    judged = GeometryColumn.of(shapes)
    column.x[rows], column.y[rows] = judged.x, judged.y
    column.is_point[rows] = judged.is_point
    column.shapes[rows] = judged.shapes


@dataclass(slots=True, frozen=True)
class Codes:
    """A column as numbers of its distinct values; -1 stands for null."""

    codes: NDArray[np.int64]
    values: list[Any]


class EventBatch:
    """Rows of events: columns by name, and the geometry columns already decoded."""

    def __init__(
        self, columns: Mapping[str, pa.Array], length: int, geometries: Mapping[str, GeometryColumn]
    ) -> None:
        """Wrap the columns of one batch."""
        self._columns = columns
        self.length = length
        self._geometries = geometries
        self._values: dict[str, list[Any]] = {}
        self._numbers: dict[str, tuple[NDArray[Any], Mask] | None] = {}
        self._codes: dict[str, Codes | None] = {}

    @once
    def unknown(self) -> GeometryColumn:
        """A column without any geometry."""
        return GeometryColumn.of(np.full(self.length, None, object))

    def geometry(self, name: str) -> GeometryColumn:
        """A geometry column; one that the events lack is unknown everywhere."""
        return self._geometries.get(name, self.unknown)

    def lack_geometry(self) -> Mask:
        """Which rows have none of the geometries that subscriptions read in these columns."""
        known = [column.is_known for column in self._geometries.values()]
        return ~np.logical_or.reduce(known) if known else np.zeros(self.length, bool)

    def drawn(self, name: str, *, repair: bool = False) -> GeometryColumn:
        """A geometry column to look at: decoded here where no subscription reads it."""
        column = self.column(name)
        if name in self._geometries or column is None:
            return self.geometry(name)
        return read_geometries(column, repair=repair)

    def judged(self, name: str) -> GeometryColumn | None:
        """Find a column of its own as it was decoded; None where no subscription reads it."""
        column = self.own_column(name)
        read = (g for n, g in self._geometries.items() if self.own_column(n) is column)
        return None if column is None else next(read, None)

    def own_column(self, name: str) -> pa.Array | None:
        """Find the column of just this name: a dot in it leads nowhere."""
        return self._columns.get(name)

    def column(self, name: str) -> pa.Array | None:
        """Find an attribute as one column; None where it is read row by row, or no row has it."""
        return find_column(self._columns, name)

    def raw(self, name: str) -> pa.Array:
        """A column as it came."""
        return self._columns[name]

    def values(self, name: str) -> list[Any] | None:
        """A whole column as Python values; None where there is no such column."""
        if name not in self._columns:
            return None
        if name not in self._values:
            self._values[name] = as_values(self._columns[name], f"column {name!r}")
        return self._values[name]

    def numbers(self, name: str) -> tuple[NDArray[Any], Mask] | None:
        """A column as int64 or float64, and which rows have a number; None if it has none."""
        if name not in self._numbers:
            self._numbers[name] = _as_numbers(self.column(name))
        return self._numbers[name]

    def codes(self, name: str) -> Codes | None:
        """A column by its distinct values; None where they cannot be told apart quickly."""
        if name not in self._codes:
            self._codes[name] = self._null if self.lacks(name) else _as_codes(self.column(name))
        return self._codes[name]

    def lacks(self, name: str) -> bool:
        """Whether no row can have an attribute: no column has its name or begins its path."""
        return not any(name == column or name.startswith(f"{column}.") for column in self._columns)

    @once
    def _null(self) -> "Codes":
        return Codes(np.full(self.length, -1, np.int64), [])

    def row(self, row: int) -> Event:
        """One row as an event."""
        geometries = {name: column.one(row) for name, column in self._geometries.items()}
        return Event(
            _RowAttributes(self, row), geometries=geometries, place=f"row {row}", is_settled=True
        )

    def names(self) -> Collection[str]:
        """List the names of the columns."""
        return self._columns.keys()


class OneEvent:
    """A single event, asked as if it were a batch of one row."""

    length = 1

    def __init__(self, event: Event) -> None:
        """Wrap an event."""
        self._event = event

    def geometry(self, name: str) -> GeometryColumn:
        """A geometry as a column."""
        return GeometryColumn.of(as_array([self._event.geometry(name)]))

    def numbers(self, name: str) -> tuple[NDArray[Any], Mask] | None:
        """A number as a column, null where a text or nothing is in its place.

        None where it is of another kind, or an integer beyond 64 bits.
        """
        value = self._event.value(name)
        if value is None or type(value) is str:
            return np.zeros(1), np.zeros(1, bool)
        is_whole = type(value) is int and -(2**63) <= value < 2**63
        if not is_whole and type(value) is not float:
            return None
        values = np.array([value], np.int64 if is_whole else np.float64)
        return values, ~np.isnan(values)

    def codes(self, name: str) -> Codes | None:
        """A value as the only one of a column."""
        value = self._event.value(name)
        return Codes(np.array([-1 if value is None else 0]), [value])

    def row(self, row: int) -> Event:  # noqa: ARG002
        """The event itself."""
        return self._event


class _RowAttributes(Mapping[str, Any]):
    """One row of a batch, as attributes."""

    __slots__ = ("_batch", "_row")

    def __init__(self, batch: EventBatch, row: int) -> None:
        self._batch = batch
        self._row = row

    def __getitem__(self, name: str) -> Any:
        values = self._batch.values(name)
        if values is None:
            raise KeyError(name)
        return values[self._row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._batch.names())

    def __len__(self) -> int:
        return len(self._batch.names())


def _as_numbers(array: pa.Array | None) -> tuple[NDArray[Any], Mask] | None:
    if array is None:
        return None
    if isinstance(array.type, MixedNumbersType):
        array = read_doubles(array)
    kind = array.type
    whole = pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
    if not (whole or pa.types.is_floating(kind)):
        return None
    is_valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)
    target = pa.int64() if whole else pa.float64()
    values = array.fill_null(0).cast(target).to_numpy(zero_copy_only=False)
    return values, is_valid if whole else is_valid & ~np.isnan(values)


def _as_codes(array: pa.Array | None) -> Codes | None:
    if array is None or pa.types.is_nested(array.type):
        return None
    try:
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    except pa.ArrowNotImplementedError:
        return None
    codes, known = used_values(encoded)
    return Codes(codes, as_values(known))
