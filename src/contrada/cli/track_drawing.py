"""A map of transitions: the tracks of objects, and where they entered, left and crossed.

The positions are read once more. A crossing is the way on which it happened; an exit without an
event, of an object that fell silent, is where the object was last.
"""

import argparse
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from contrada.arrays import Floats, Geometries, Mask, Positions
from contrada.cli.drawn_events import as_text
from contrada.cli.drawn_subscriptions import layer_of
from contrada.cli.report import TrackReport
from contrada.cli.track_options import tracker_options
from contrada.deferred import compute as pc
from contrada.files import Rows
from contrada.files.crs import is_longitude_latitude
from contrada.files.time_texts import python_values
from contrada.matcher import Matcher
from contrada.matcher.inside import freeze
from contrada.matcher.match_run import count_threads
from contrada.matcher.position_intake import Intake, PositionNames, take_in_rows
from contrada.matching.segments import SubscriptionSet
from contrada.model.event import GEOMETRY
from contrada.pictures import Layer, draw_map
from contrada.pictures.layers import sample_evenly
from contrada.transitions.durations import read_duration

_SHOWN = {"enter": "enters", "exit": "exits", "cross": "crossings"}
_POINTS_MAX = 100_000  # of each kind; a page with many more is slow
_TRACKS_MAX = 20_000
_WITH_OR_WITHOUT = ("with transitions", "without any")


def draw_tracks(
    options: argparse.Namespace, matcher: Matcher, rows: Rows, found: pa.Table, report: TrackReport
) -> None:
    """Draw the map of a run, named after its files."""
    frozen = freeze(matcher)
    tracks = read_tracks(options, rows, frozen, matcher.crs)
    subscriptions = sorted(frozen, key=lambda subscription: subscription.id)
    shown = found.filter(pc.is_valid(found["subscription"]))
    ids = pa.array([s.id for s in subscriptions], found.schema.field("subscription").type)
    ranks = np.asarray(
        pc.fill_null(pc.index_in(shown["subscription"], value_set=ids), -1), np.int64
    )
    places = tracks.find_objects(shown["object"])
    visits = np.unique(np.column_stack([places, ranks]), axis=0)
    fences = layer_of(subscriptions, np.bincount(visits[:, 1], minlength=len(subscriptions)), {})
    layers = [
        replace(fences, words=_WITH_OR_WITHOUT),
        tracks.layer(np.bincount(visits[:, 0], minlength=len(tracks.objects))),
    ]
    pairs, first = [visits], len(tracks.objects)
    for kind, name in _SHOWN.items():
        at = np.flatnonzero(pc.equal(shown["transition"], kind).to_numpy())
        drawn = sample_evenly(at, _POINTS_MAX)
        layers.append(tracks.moments(shown.take(pa.array(drawn)), kind, name, len(at)))
        pairs.append(np.column_stack([first + np.arange(len(drawn)), ranks[drawn]]))
        first += len(drawn)
    title = f"{Path(options.events).stem} through {Path(options.subscriptions).stem}"
    names = ("subscriptions", "events", "objects", "transitions")
    summary = {name: getattr(report, name) for name in names}
    draw_map(options.map, layers, title=title, summary=summary, pairs=np.concatenate(pairs))


def read_tracks(
    options: argparse.Namespace, rows: Rows, subscriptions: SubscriptionSet, crs: str | None
) -> "DrawnTracks":
    """Read the positions of all objects, in the order in which they were applied."""
    given = tracker_options(options)
    names = PositionNames(
        given.get("object", "object_id"), given.get("time", "time"), given.get("event_id", "id")
    )
    intake = take_in_rows(
        rows,
        subscriptions,
        names,
        repair=options.repair,
        numbered=0,
        are_kept=False,
        threads=count_threads(None),
    )
    silence = given.get("silence")
    silence_us = None if silence is None else read_duration(silence, "--silence")
    system = rows.crs or crs
    return DrawnTracks(intake, silence_us, system is None or is_longitude_latitude(system))


@dataclass(frozen=True, slots=True)
class DrawnPositions:
    """Positions by object, and of one object by time: where each is, and of which object."""

    owner: Positions
    time_us: NDArray[np.int64]
    xy: Floats
    ids: pa.Array


class DrawnTracks:
    """The ways of objects through their positions."""

    def __init__(self, intake: Intake, silence_us: int | None, is_geographic: bool) -> None:
        """Sort positions; a way ends where silence came, or the other side of the world begins."""
        self._silence_us, self._is_geographic = silence_us, is_geographic
        self.objects, self._places = _sort_positions(intake)

    def find_objects(self, objects: pa.ChunkedArray) -> Positions:
        """Return the places of some objects."""
        known = pc.index_in(objects.cast(self.objects.type), value_set=self.objects)
        return np.asarray(pc.fill_null(known, -1), np.int64)

    def layer(self, partner_counts: NDArray[np.int64]) -> Layer:
        """Make the layer of tracks, given in how many subscriptions each object was seen."""
        chosen = sample_evenly(np.arange(len(self.objects)), _TRACKS_MAX)
        owner = self._places.owner
        starts = np.searchsorted(owner, np.arange(len(self.objects) + 1))
        lines = np.full(len(self.objects), None, object)
        lines[chosen] = self._lines()[chosen]
        times = pa.array(self._places.time_us, pa.timestamp("us", "UTC"))
        ends = {"from": starts[:-1], "until": starts[1:] - 1}
        return Layer(
            "tracks",
            lines,
            [str(name) for name in self.objects.to_pylist()],
            partner_counts > 0,
            "event",
            partner_counts=partner_counts,
            attributes={
                "positions": [f"{count:,}" for count in np.diff(starts).tolist()],
                **{
                    name: [as_text(time) for time in python_values(times.take(pa.array(at)))]
                    for name, at in ends.items()
                },
            },
            noun="track",
            words=_WITH_OR_WITHOUT,
        )

    def _breaks(self) -> Mask:
        """Which positions begin a way: no line leads to them."""
        places = self._places
        begins = np.ones(len(places.owner), bool)
        same = places.owner[1:] == places.owner[:-1]
        if self._silence_us is not None:
            same &= np.diff(places.time_us) < self._silence_us
        if self._is_geographic:
            same &= abs(np.diff(places.xy[:, 0])) <= 180
        begins[1:] = ~same
        return begins

    def _lines(self) -> Geometries:
        """Return the way of each object; a point where there is but one position."""
        places = self._places
        begins = self._breaks()
        number = np.cumsum(begins) - 1
        lengths = np.bincount(number, minlength=0)
        is_line = lengths[number] > 1
        parts = np.empty(len(lengths), object)
        used, index = np.unique(number[is_line], return_inverse=True)
        if len(used):
            parts[used] = shapely.linestrings(places.xy[is_line], indices=index)
        parts[number[~is_line]] = shapely.points(places.xy[~is_line])
        owner = places.owner[begins]
        lines = np.empty(len(self.objects), object)
        starts = np.searchsorted(owner, np.arange(len(lines) + 1))
        for object_, (start, end) in enumerate(pairwise(starts.tolist())):
            own = parts[start:end]
            lines[object_] = own[0] if len(own) == 1 else shapely.GeometryCollection(own.tolist())
        return lines

    def moments(self, rows: pa.Table, kind: str, name: str, total: int) -> Layer:
        """Make the layer of one kind of transition, from some of its rows."""
        at = self._find(rows)
        known = np.maximum(at, 0)
        xy = self._places.xy
        if kind == "cross":
            drawn: Any = shapely.linestrings(
                np.stack([xy[np.maximum(known - 1, 0)], xy[known]], axis=1)
            )
        else:
            drawn = shapely.points(xy[known])
        shapes = np.full(len(at), None, object)
        shapes[at >= 0] = drawn[at >= 0]
        texts = {
            column: [as_text(value) for value in python_values(rows[column])]
            for column in ("time", "subscription", "subscriber", "event", "cause")
        }
        return Layer(
            name,
            shapes,
            [str(object_) for object_ in rows["object"].to_pylist()],
            np.ones(len(at), bool),
            "event",
            total=total,
            matched_total=total,
            partner_counts=np.ones(len(at), np.int64),
            attributes={
                column: column_texts for column, column_texts in texts.items() if any(column_texts)
            },
            noun=kind,
            words=("in all", ""),
        )

    def _find(self, rows: pa.Table) -> Positions:
        """Return the position at which a row came about: its event, or the last one before."""
        places, objects = self._places, self.find_objects(rows["object"])
        time_us = rows["time"].cast(pa.int64()).to_numpy()
        events = rows["event"].to_pylist()
        first, end = (np.searchsorted(places.owner, objects + step) for step in (0, 1))
        found = np.full(len(events), -1, np.int64)
        for row, event in enumerate(events):
            own = places.time_us[first[row] : end[row]]
            stop = int(np.searchsorted(own, time_us[row], "right"))
            place = int(first[row]) + stop - 1
            while (
                event is not None
                and place > first[row]
                and self._differs(place, event, time_us[row])
            ):
                place -= 1
            found[row] = place if stop else -1
        return found

    def _differs(self, place: int, event: Any, time_us: int) -> bool:
        """Whether a position is not that of an event, though one before it may be."""
        is_then = self._places.time_us[place] == time_us
        return bool(is_then and self._places.ids[place].as_py() != event)


def _sort_positions(intake: Intake) -> tuple[pa.Array, DrawnPositions]:
    positions = intake.positions()
    if positions is None:
        none = pa.array([], pa.large_string())
        return none, DrawnPositions(
            np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 2)), none
        )
    x, y = positions.x.copy(), positions.y.copy()
    shapes = [
        p.received.batch.geometry(GEOMETRY).take(p.good) for p in intake.pieces if len(p.good)
    ]
    others = np.flatnonzero(np.isnan(x) & positions.has_geometry)
    if len(others):
        middles = shapely.centroid(np.concatenate(shapes)[others])
        x[others], y[others] = shapely.get_x(middles), shapely.get_y(middles)
    columns = pa.table(
        {"object": positions.objects, "time": positions.time_us, "id": positions.ids}
    )
    order = np.asarray(
        pc.sort_indices(columns, [(name, "ascending") for name in columns.schema.names])
    )
    order = order[positions.has_geometry[order]]
    encoded = positions.objects.take(pa.array(order)).dictionary_encode()
    return encoded.dictionary, DrawnPositions(
        encoded.indices.to_numpy().astype(np.int64),
        positions.time_us[order],
        np.column_stack([x, y])[order],
        positions.ids.take(pa.array(order)),
    )
