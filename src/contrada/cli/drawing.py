"""A map of a run, from what was matched; of many events an even sample is kept."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from shapely.geometry.base import BaseGeometry

from contrada.cli.report import Report
from contrada.errors import InvalidInput
from contrada.matching.columns import GeometryColumn
from contrada.model.expression import DistanceWithin, Expression, Literal, Spatial, children
from contrada.model.geometry import as_array
from contrada.model.subscription import Id, Subscription
from contrada.pictures import Layer, draw_map
from contrada.pictures.plate import require_matplotlib

EVENTS_MAX = 20_000
_PAIRS_MAX = 200_000


def check_map_path(path: str) -> None:
    """Refuse a map that cannot be drawn or put there, before anything runs."""
    if Path(path).suffix.lower() not in {".html", ".png"}:
        raise InvalidInput(f"{path}: a map is written as .html or .png")
    folder = Path(path).parent
    if not folder.is_dir():
        raise InvalidInput(f"{path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"{path}: the folder {folder} cannot be written to")
    if Path(path).is_dir():
        raise InvalidInput(f"{path}: is a folder")
    if Path(path).suffix.lower() == ".png":
        require_matplotlib()


class MapSketch:
    """Collects the events and pairs of a map while a run goes on, in bounded memory."""

    def __init__(self, events_count: int | None) -> None:
        """Keep every n-th event, so that at most `EVENTS_MAX` of `events_count` are kept."""
        self._step = max(1, -(-(events_count or 0) // EVENTS_MAX))
        self._rows: dict[Any, int] = {}
        self._geometries: list[BaseGeometry | None] = []
        self._pairs: list[tuple[int, Id]] = []

    def add_events(self, ids: pa.Array, first_row: int, column: GeometryColumn) -> None:
        """Take the events of a batch that fall into the sample."""
        for row in range(-first_row % self._step, len(ids), self._step):
            if len(self._geometries) < 2 * EVENTS_MAX:
                self._rows.setdefault(ids[row].as_py(), len(self._geometries))
                self._geometries.append(column.one(row))

    def add_pairs(self, events: pa.Array, subscriptions: pa.Array) -> None:
        """Take the pairs whose event is in the sample, as long as there is room.

        The events must have been added before. Only what is taken becomes Python objects.
        """
        room = _PAIRS_MAX - len(self._pairs)
        if room <= 0 or not self._rows:
            return
        number = pc.index_in(events, pa.array(list(self._rows), events.type))
        taken = pc.indices_nonzero(number.is_valid())[:room]
        rows = np.fromiter(self._rows.values(), np.int64)[number.take(taken)]
        self._pairs += zip(rows.tolist(), subscriptions.take(taken).to_pylist(), strict=True)

    def draw(
        self,
        path: str,
        title: str,
        subscriptions: Sequence[Subscription],
        matched: Collection[Id],
        report: Report,
    ) -> None:
        """Draw the map."""
        number = {s.id: i for i, s in enumerate(subscriptions)}
        pairs = np.array([(row, number[id_]) for row, id_ in self._pairs], np.int64).reshape(-1, 2)
        events_matched = np.zeros(len(self._geometries), bool)
        events_matched[pairs[:, 0]] = True
        labels = {row: str(id_) for id_, row in self._rows.items()}
        sampled = f" (1 in {self._step})" if self._step > 1 else ""
        layers = [
            Layer(
                "subscriptions",
                as_array([find_shape(s.predicate.expression) for s in subscriptions]),
                [str(s.id) for s in subscriptions],
                np.array([s.id in matched for s in subscriptions], bool),
                "subscription",
            ),
            Layer(
                f"events{sampled}",
                as_array(self._geometries),
                [labels.get(row, "") for row in range(len(self._geometries))],
                events_matched,
                "event",
            ),
        ]
        summary: dict[str, str | int] = {
            name: getattr(report, name.replace(" ", "_"))
            for name in ("subscriptions", "events", "matches", "events matched")
        }
        draw_map(path, layers, title=title, summary=summary, pairs=pairs)


def find_shape(expression: Expression) -> BaseGeometry | None:
    """Find the first geometry of a predicate: what a person would draw for it."""
    if isinstance(expression, Spatial | DistanceWithin):
        right = expression.right
        if isinstance(right, Literal) and isinstance(right.value, BaseGeometry):
            return right.value
    for child in children(expression):
        found = find_shape(child)
        if found is not None:
            return found
    return None
