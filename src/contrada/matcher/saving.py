"""Subscriptions as rows of a snapshot, and back.

A row is one that `add_many` reads. A predicate that is a relation to a geometry, perhaps AND
something else, has the geometry as WKB; any other is CQL2 JSON, which holds every expression
exactly, unlike CQL2 text. What was judged when it was added is not judged again.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Geometries, Mask
from contrada.errors import InvalidInput
from contrada.files.arrow_types import storage_type
from contrada.files.sections import Sections, open_sections
from contrada.files.snapshot import ROWS_FORMAT, Snapshot, open_snapshot, write_snapshot
from contrada.files.snapshot_header import read_format
from contrada.language import read_json, to_json
from contrada.matcher.column_files import load_columns, save_columns
from contrada.matching.engines import make_engine
from contrada.matching.id_columns import (
    IdColumn,
    SubscriberColumns,
    make_id_array,
    make_subscribers,
)
from contrada.matching.subscribing import PredicateReader
from contrada.matching.subscription_columns import SubscriptionColumns, pack_subscriptions
from contrada.model.encodings import read_wkbs
from contrada.model.event import GEOMETRY
from contrada.model.expression import And, Attribute, Expression, Literal, Spatial
from contrada.model.geometry import as_array
from contrada.model.relation import find_relation
from contrada.model.row_columns import IDS_OF_BOTH_KINDS, ROW_COLUMNS, Holds
from contrada.model.subscription import Id, Predicate, Subscription
from contrada.showing import brief

_ROWS_MAX = 65_536
_BYTES_MAX = 16 * 2**20
_TEXTS_MAX = 10_000
_NAMES = [column.name for column in ROW_COLUMNS]
_LONG_NUMBER = re.compile(r"\d{309}")  # it may lie beyond all doubles


@dataclass(frozen=True, slots=True)
class MatcherSettings:
    """How a matcher was made: what `Matcher` takes besides the engine's own options."""

    engine: str
    options: dict[str, Any]
    simplify: bool
    crs: str | None
    filters_max: int

    @classmethod
    def of(cls, snapshot: "AnySnapshot") -> "MatcherSettings":
        """Take the settings from a snapshot."""
        names = [field.name for field in fields(cls)]
        lacking = [name for name in names if name not in snapshot.settings]
        if lacking:
            raise InvalidInput(
                f"{snapshot.name}: is not a snapshot of a matcher: settings are missing: "
                f"{', '.join(lacking)}"
            )
        found = {name: snapshot.settings[name] for name in names}
        for name, (kinds, text) in _SETTINGS.items():
            if type(found[name]) not in kinds:
                raise InvalidInput(
                    f"{snapshot.name}: the setting {name!r} is not {text}: {brief(found[name])}"
                )
        return cls(**found)

    def makes_filters_for(self, other: "MatcherSettings") -> bool:
        """Whether such a matcher makes the filters that another one would make."""
        return self.filters_max <= other.filters_max and self._effort() is other._effort()

    def _effort(self) -> object:
        """Return what decides how predicates are simplified; None where they are not."""
        try:
            engine = make_engine(self.engine, self.options)
        except (InvalidInput, TypeError):  # of another version, so nobody's
            return object()
        return engine.effort if self.simplify else None


_SETTINGS = {
    "engine": ((str,), "a text"),
    "options": ((dict,), "an object"),
    "simplify": ((bool,), "true or false"),
    "crs": ((str, type(None)), "a text or null"),
    "filters_max": ((int,), "an integer"),
}


AnySnapshot = Snapshot | Sections
_Row = dict[str, Any]  # what a subscription has in some of the columns


def save_subscriptions(
    path: str | os.PathLike[str], columns: SubscriptionColumns, settings: MatcherSettings
) -> None:
    """Write subscriptions to a snapshot, in the order of their ids, whole or not at all."""
    from contrada import __version__

    stated = {"contrada": __version__, "subscriptions": len(columns), **asdict(settings)}
    save_columns(path, columns, stated)


def open_any(path: str | os.PathLike[str]) -> AnySnapshot:
    """Open a snapshot of either format."""
    return open_snapshot(path) if read_format(path) == ROWS_FORMAT else open_sections(path)


def load_any(snapshot: AnySnapshot, reader: PredicateReader) -> SubscriptionColumns:
    """Return the subscriptions of a snapshot of either format."""
    if isinstance(snapshot, Sections):
        return load_columns(snapshot)
    return pack_subscriptions(load_subscriptions(snapshot, reader))


def save_rows(
    path: str | os.PathLike[str], subscriptions: Iterable[Subscription], settings: MatcherSettings
) -> None:
    """Write subscriptions as the rows of format 1, in the order of their ids."""
    from contrada import __version__

    ordered = sorted(subscriptions, key=lambda subscription: subscription.id)
    stated = {"contrada": __version__, "subscriptions": len(ordered), **asdict(settings)}
    ids = IdColumn(make_id_array([subscription.id for subscription in ordered]))
    subscribers = make_subscribers([subscription.subscriber for subscription in ordered])
    schema = make_schema(ids, subscribers, settings.crs)
    write_snapshot(path, schema, stated, make_batches(ordered, schema))


def load_subscriptions(snapshot: Snapshot, reader: PredicateReader) -> list[Subscription]:
    """Read the subscriptions of a snapshot."""
    if snapshot.schema.names != _NAMES:
        raise InvalidInput(
            f"{snapshot.name}: is not a snapshot of a matcher: it has the columns "
            f"{', '.join(snapshot.schema.names)}, not {', '.join(_NAMES)}"
        )
    for column, known in zip(snapshot.schema, ROW_COLUMNS, strict=True):
        if storage_type(column.type) not in known.types:
            raise InvalidInput(
                f"{snapshot.name}: is not a snapshot of a matcher: its column {column.name!r} is "
                f"of type {column.type}, not {' or '.join(map(str, known.types))}"
            )
    found: list[Subscription] = []
    for batch in snapshot.batches():
        found += _read_batch(batch, len(found), snapshot.name, reader)
    return found


# Rows out


def make_schema(ids: IdColumn, subscribers: SubscriberColumns, crs: str | None) -> pa.Schema:
    """Return the columns with their types; the geometry describes itself as GeoArrow."""
    are_whole = {"id": np.array([ids.is_whole]), "subscriber": _are_whole(subscribers)}
    extension = {
        "ARROW:extension:name": "geoarrow.wkb",
        "ARROW:extension:metadata": json.dumps({} if crs is None else {"crs": crs}),
    }
    fields = []
    for column in ROW_COLUMNS:
        if column.holds is Holds.ID:
            type_ = _choose_type(are_whole[column.name])
        else:
            (type_,) = column.types
        field = pa.field(column.name, type_)
        fields.append(field.with_metadata(extension) if column.holds is Holds.SHAPE else field)
    return pa.schema(fields)


def _are_whole(subscribers: SubscriberColumns) -> Mask:
    """Which of the subscribers that are not null are integers."""
    return np.asarray(subscribers.codes[subscribers.codes >= 0] < len(subscribers.wholes))


def _choose_type(are_whole: Mask) -> pa.DataType:
    """Return the type of a column of ids, of which some are integers, and some perhaps null."""
    if not are_whole.any():
        return pa.string()
    return pa.int64() if are_whole.all() else IDS_OF_BOTH_KINDS


def make_batches(
    subscriptions: Iterable[Subscription], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of bounded size."""
    texts = _Texts()
    rows: list[_Row] = []
    bytes_held = 0
    for subscription in subscriptions:
        row = _make_row(subscription, texts)
        rows.append(row)
        vertices = int(shapely.get_num_coordinates(row.get(GEOMETRY)))
        bytes_held += len(row.get("filter", "")) + 16 * vertices
        if len(rows) == _ROWS_MAX or bytes_held >= _BYTES_MAX:
            yield _make_batch(rows, schema)
            rows, bytes_held = [], 0
    if rows:
        yield _make_batch(rows, schema)


def _make_row(subscription: Subscription, texts: "_Texts") -> _Row:
    row: _Row = {"id": subscription.id, "subscriber": subscription.subscriber}
    test, rest = _split(subscription.predicate.expression)
    try:
        match test:
            case Spatial(relation, Attribute(name), Literal(BaseGeometry() as shape)):
                row |= {GEOMETRY: shape, "relation": relation.name, "attribute": name}
                return row if rest is None else row | {"where": texts.of(rest)}
        return row | {"filter": texts.write(subscription.predicate.expression)}
    except ValueError as fault:
        raise InvalidInput(f"subscription {subscription.id!r} cannot be saved: {fault}") from fault


def _split(expression: Expression) -> tuple[Expression, Expression | None]:
    """Take what goes with the first test of an AND off it; a row with `where` joins them again."""
    match expression:
        case And((first, second)):
            return first, second
        case And((first, *others)):
            return first, And(tuple(others))
    return expression, None


class _Texts:
    """Expressions as CQL2 JSON; one that many rows share is written once."""

    def __init__(self) -> None:
        self._written: dict[int, str] = {}

    def of(self, expression: Expression) -> str:
        """Write an expression that lives as long as this does."""
        text = self._written.get(id(expression))
        if text is None:
            if len(self._written) >= _TEXTS_MAX:
                self._written.clear()
            text = self._written[id(expression)] = self.write(expression)
        return text

    @staticmethod
    def write(expression: Expression) -> str:
        """Write an expression; a number that nobody could read is refused."""
        tree = to_json(expression)
        if not isinstance(tree, dict):
            tree = {"op": "and", "args": [tree]}  # TRUE, FALSE and NULL are no objects
        text = json.dumps(tree, separators=(",", ":"))
        if _LONG_NUMBER.search(text):
            read_json(text)
        return text


def _make_batch(rows: Sequence[_Row], schema: pa.Schema) -> pa.RecordBatch:
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in _NAMES}
    columns[GEOMETRY] = shapely.to_wkb(as_array(columns[GEOMETRY]), byte_order=1)
    arrays = [
        mix_ids(columns[c.name])
        if c.type == IDS_OF_BOTH_KINDS
        else pa.array(columns[c.name], c.type)
        for c in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def mix_ids(values: Sequence[Id | None]) -> pa.Array:
    """Put integers and texts into one column; null is a text that is not there."""
    is_text = np.array([not isinstance(value, int) for value in values])
    offsets = np.where(is_text, np.cumsum(is_text), np.cumsum(~is_text)) - 1
    members = [
        pa.array([v for v in values if isinstance(v, int)], pa.int64()),
        pa.array([v for v in values if not isinstance(v, int)], pa.string()),
    ]
    return pa.UnionArray.from_dense(
        pa.array(is_text, pa.int8()),
        pa.array(offsets, pa.int32()),
        members,
        [member.name for member in IDS_OF_BOTH_KINDS],
    )


# Rows in


def _read_batch(
    batch: pa.RecordBatch, first_row: int, name: str, reader: PredicateReader
) -> Iterator[Subscription]:
    columns = [
        _decode(batch.column(column), name)
        if column == GEOMETRY
        else batch.column(column).to_pylist()
        for column in _NAMES
    ]
    for number, cells in enumerate(zip(*columns, strict=True), first_row):
        row = dict(zip(_NAMES, cells, strict=True))
        try:
            if row["id"] is None:
                raise InvalidInput("the id is null")
            yield Subscription(row["id"], _read_predicate(row, reader), row["subscriber"])
        except InvalidInput as error:
            column = "relation" if row["filter"] is None else "filter"
            raise InvalidInput(f"{name}, row {number}, column {column!r}: {error}") from None


def _read_predicate(row: _Row, reader: PredicateReader) -> Predicate:
    if row["filter"] is not None:
        return reader.parse(row["filter"])
    geometry, relation, attribute = row[GEOMETRY], row["relation"], row["attribute"]
    if geometry is None or relation is None or attribute is None:
        raise InvalidInput("there is neither a filter nor a geometry, relation and attribute")
    return reader.combine(geometry, find_relation(relation), attribute, row["where"])


def _decode(array: pa.Array, name: str) -> Geometries:
    """Decode geometries, which were tidy and valid when they were saved."""
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    values = storage.to_numpy(zero_copy_only=False)
    try:
        return read_wkbs(values)
    except (shapely.errors.ShapelyError, ValueError, NotImplementedError) as fault:
        raise InvalidInput(f"{name}: a geometry cannot be read: {fault}") from fault
