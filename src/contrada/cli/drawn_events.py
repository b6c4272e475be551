"""The events of a map, read once more after a run: all that matched, a sample of the others."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.cli.pair_counts import PairCounts
from contrada.files import Rows
from contrada.files.time_texts import python_values
from contrada.matching.columns import read_geometries
from contrada.model.geometry import as_array
from contrada.showing import brief_text

MATCHED_MAX = 500_000  # a page with more is too large for a browser
UNMATCHED_MAX = 20_000
COLUMNS_SHOWN_MAX = 12
_TEXTS_MAX = 1_500_000


@dataclass(frozen=True, slots=True)
class DrawnEvents:
    """Some rows of events, in their order, with what a map shows of each."""

    rows: NDArray[np.int64]
    partner_counts: NDArray[np.int64]
    geometries: NDArray[np.object_]
    labels: list[str]
    attributes: dict[str, list[str]]


class EventReader:
    """Reads the events that a map draws, with their ids and some columns."""

    def __init__(
        self,
        rows: Rows,
        id_column: str | None,
        geometry: str,
        *,
        first: Collection[str],
        repair: bool,
    ) -> None:
        """Take columns of `first` before others, where there are too many to show."""
        self._rows, self._id_column, self._geometry = rows, id_column, geometry
        self._repair = repair
        names = [name for name in rows.schema.names if name not in self._not_shown()]
        names.sort(key=lambda name: name not in first)
        self._shown = names[:COLUMNS_SHOWN_MAX]

    def _not_shown(self) -> set[str | None]:
        binary = {f.name for f in self._rows.schema if pa.types.is_binary(f.type)}
        return {self._id_column, self._geometry, *self._rows.geometry_columns, *binary}

    def read(
        self,
        counts: PairCounts,
        events_count: int,
        mended: Mapping[int, BaseGeometry | None],
        *,
        with_attributes: bool,
    ) -> DrawnEvents:
        """Read all events that matched, up to `MATCHED_MAX`, and an even sample of the others.

        `mended` has geometries by row that are taken instead of those in the file.
        """
        matched_count = counts.events_matched
        drawn_max = min(matched_count, MATCHED_MAX) + UNMATCHED_MAX
        shown = self._shown[: _TEXTS_MAX // drawn_max] if with_attributes else []
        needed = {self._id_column, self._geometry, *shown}
        rows = self._rows.narrowed([name for name in self._rows.schema.names if name in needed])
        matched = Sampler(matched_count, MATCHED_MAX)
        others = Sampler(events_count - matched_count, UNMATCHED_MAX)
        pieces = []
        first_row = 0
        for batch, _ in rows.judged():
            partners = counts.of_events(first_row, batch.num_rows)
            chosen = [
                matched.take(np.flatnonzero(partners)),
                others.take(np.flatnonzero(partners == 0)),
            ]
            places = np.sort(np.concatenate(chosen))
            taken = batch.take(pa.array(places))
            piece = self._read_piece(taken, first_row + places, partners[places], mended, shown)
            pieces.append(piece)
            first_row += batch.num_rows
        return _joined(pieces, shown, has_ids=self._id_column is not None)

    def _read_piece(
        self,
        taken: pa.RecordBatch,
        rows: NDArray[np.int64],
        partner_counts: NDArray[np.int64],
        mended: Mapping[int, BaseGeometry | None],
        shown: list[str],
    ) -> DrawnEvents:
        labels = [str(row) for row in rows.tolist()]
        if self._id_column is not None:
            labels = list(map(as_text, python_values(taken.column(self._id_column))))
        return DrawnEvents(
            rows,
            partner_counts,
            self._read_shapes(taken, rows, mended),
            labels,
            {name: list(map(as_text, python_values(taken.column(name)))) for name in shown},
        )

    def _read_shapes(
        self,
        taken: pa.RecordBatch,
        rows: NDArray[np.int64],
        mended: Mapping[int, BaseGeometry | None],
    ) -> NDArray[np.object_]:
        if self._geometry not in taken.schema.names:
            return np.full(len(rows), None, object)
        column = taken.column(self._geometry)
        shapes = read_geometries(column).take(np.arange(len(rows)))
        known = np.isin(rows, list(mended))
        shapes[known] = as_array([mended[row] for row in rows[known].tolist()])
        if self._repair:
            left = np.flatnonzero(shapely.is_missing(shapes) & ~known)
            again = read_geometries(column.take(pa.array(left)), repair=True)
            shapes[left] = again.take(np.arange(len(left)))
        return shapes


class Sampler:
    """Takes at most `count_max` of `count` items in even steps, as they come."""

    def __init__(self, count: int, count_max: int) -> None:
        """Make room for so many."""
        self._count, self._count_max = max(count, 1), count_max
        self._seen = 0

    def take(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Choose among the next items."""
        self._seen += len(items)
        if self._count <= self._count_max:
            return items
        steps = np.arange(self._seen - len(items) - 1, self._seen) * self._count_max // self._count
        return np.asarray(items[np.diff(steps) > 0])


def as_text(value: Any) -> str:
    """Write a value for people, on one short line; nothing for a null."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, datetime):
        text = value.isoformat(" ", "milliseconds" if value.microsecond else "seconds")
        return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
    return brief_text(value, 80)


def tell_apart(rows: NDArray[np.int64], labels: list[str]) -> dict[str, list[str]]:
    """Return the rows as an attribute to show, where labels do not tell one from another."""
    if len(set(labels)) == len(labels):
        return {}
    return {"row": [str(row) for row in rows.tolist()]}


def _joined(pieces: list[DrawnEvents], shown: list[str], *, has_ids: bool) -> DrawnEvents:
    rows = np.concatenate([np.zeros(0, np.int64), *(piece.rows for piece in pieces)])
    labels = [label for piece in pieces for label in piece.labels]
    attributes = {name: [t for piece in pieces for t in piece.attributes[name]] for name in shown}
    if has_ids:
        attributes = tell_apart(rows, labels) | attributes
    return DrawnEvents(
        rows,
        np.concatenate([np.zeros(0, np.int64), *(piece.partner_counts for piece in pieces)]),
        np.concatenate([np.empty(0, object), *(piece.geometries for piece in pieces)]),
        labels,
        attributes,
    )
