"""A map of a run: pairs are taken while it goes on, the events are read again at its end."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.cli.drawn_events import DrawnEvents, EventReader
from contrada.cli.drawn_subscriptions import layer_of
from contrada.cli.pair_counts import PairCounts
from contrada.errors import InvalidInput, Unavailable
from contrada.matcher.match_run import MatchedBatch
from contrada.model.event import GEOMETRY
from contrada.model.subscription import Subscription
from contrada.pictures import Layer, draw_map
from contrada.pictures.partners import PAIRS_MAX, fairest
from contrada.pictures.plate import require_matplotlib

_MENDED_MAX = 100_000


def is_page(path: str | None) -> bool:
    """Whether a map is a page, on which the pointer shows attributes."""
    return path is not None and Path(path).suffix.lower() == ".html"


def check_map_path(path: str) -> None:
    """Refuse a map that cannot be drawn or put there, before anything runs."""
    if Path(path).suffix.lower() not in {".html", ".png"}:
        raise InvalidInput(f"{path}: a map is written as .html or .png")
    folder = Path(path).parent
    if not folder.is_dir():
        raise InvalidInput(f"{path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise Unavailable(f"{path}: the folder {folder} cannot be written to")
    if Path(path).is_dir():
        raise InvalidInput(f"{path}: is a folder")
    if Path(path).suffix.lower() == ".png":
        require_matplotlib()


class MapSketch:
    """The pairs of a run as a map needs them: all are counted, and kept as far as a page shows.

    Events go by their row, subscriptions by their rank in the order of ids.
    """

    def __init__(self, counts: PairCounts, kept: Mapping[str, Sequence[str]]) -> None:
        """Draw what is counted elsewhere; `kept` has texts of the subscriptions by rank."""
        self._counts, self._kept = counts, kept
        self._pairs = np.zeros((0, 2), np.int64)
        self._mended: dict[int, BaseGeometry | None] = {}

    def add_batch(self, matched: MatchedBatch, geometry: str) -> None:
        """Take the pairs of a batch, and the geometries that were mended: to mend is slow."""
        first_row = matched.events.first_row
        self.add_pairs(first_row + matched.rows, matched.ranks)
        for name in {GEOMETRY, geometry}:
            column = matched.events.batch.geometry(name)
            if len(self._mended) < _MENDED_MAX:
                self._mended |= {first_row + row: column.one(row) for row in column.mended}

    def add_pairs(self, rows: NDArray[np.int64], ranks: NDArray[np.int64]) -> None:
        """Take pairs; of too many, some of every event and subscription are kept."""
        self._pairs = np.concatenate([self._pairs, np.column_stack([rows, ranks])])
        if len(self._pairs) > 2 * PAIRS_MAX:
            self._thin_out()

    def _thin_out(self) -> None:
        self._pairs = self._pairs[fairest(self._pairs[:, 0], self._pairs[:, 1], PAIRS_MAX)]

    def draw(
        self,
        path: str,
        title: str,
        subscriptions: Sequence[Subscription],
        reader: EventReader,
        summary: Mapping[str, int],
    ) -> None:
        """Draw the map; `summary` has the number of all `events`."""
        with_attributes = is_page(path)
        events = reader.read(
            self._counts, summary["events"], self._mended, with_attributes=with_attributes
        )
        layers = [
            layer_of(subscriptions, self._counts.subscriptions, self._kept),
            Layer(
                "events",
                events.geometries,
                events.labels,
                events.partner_counts > 0,
                "event",
                total=summary["events"],
                matched_total=self._counts.events_matched,
                partner_counts=events.partner_counts,
                attributes=events.attributes,
            ),
        ]
        draw_map(path, layers, title=title, summary=summary, pairs=self._drawn_pairs(events))

    def _drawn_pairs(self, events: DrawnEvents) -> NDArray[np.int64]:
        """Number the events of the pairs by their places among those drawn; leave out the rest."""
        places = np.searchsorted(events.rows, self._pairs[:, 0])
        is_drawn = np.append(events.rows, -1)[places] == self._pairs[:, 0]
        return np.column_stack([places[is_drawn], self._pairs[is_drawn, 1]])
