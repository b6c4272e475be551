"""The shapes of one layer, stroked into the map's rectangle with matplotlib.

Coordinates are grid units, with y already stretched; sizes in pixels are those of the image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.path import Path

from contrada.pictures.outlines import AREA_PATH, LINE_PATH, POINT_PATH, starts_of
from contrada.pictures.palette import LIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from contrada.pictures.outlines import Outlines
    from contrada.pictures.picture import DrawnLayer, Picture

PX_TO_POINTS = 72 / 200

# What is smaller than this is drawn as a dot, or a match in a small place would not be seen.
SPECK_PX = 3.2

# A matched area smaller than this is filled well, or its colour would not be seen.
SMALL_PX, SMALL_FACE = 28, 0.6

# Everything that matched is drawn after everything that did not; labels come last.
MATCHED_ZORDER = 1_000


@dataclass(frozen=True, slots=True)
class Pen:
    """How shapes are drawn: colour, opacities of faces, edges and dots, and the drawing order.

    `speck` is the radius of what is too small to be seen, in sizes of a speck.
    """

    color: str
    face_alpha: float
    edge_alpha: float
    dot_alpha: float
    weight: float
    speck: float
    edge_min_px: float
    zorder: float


def stroke_layers(axes: Axes, picture: Picture, units_per_px: float) -> None:
    """Draw all layers: what did not match under what did, then by kind, large under small."""
    stretch = picture.frame.stretch

    def place_in_order(drawn: DrawnLayer) -> tuple[int, float, bool]:
        outlines = drawn.outlines
        kind = (AREA_PATH, LINE_PATH, POINT_PATH).index(outlines.chief_kind())
        return kind, -outlines.typical_size(stretch), drawn.layer.role == "event"

    full = [drawn for drawn in picture.layers if len(drawn.outlines)]
    for rank, drawn in enumerate(sorted(full, key=place_in_order)):
        _stroke_layer(axes, drawn, stretch, units_per_px, rank)


def _stroke_layer(
    axes: Axes, drawn: DrawnLayer, stretch: float, units_per_px: float, rank: int
) -> None:
    outlines = drawn.outlines
    paths = _Paths.of(outlines, stretch)
    boxes = outlines.boxes(stretch)
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    sides = (boxes[:, 2:] - boxes[:, :2]).max(axis=1)
    is_speck = (sides < SPECK_PX * units_per_px) & paths.have_extent(len(outlines))
    edge_px = float(np.clip(outlines.typical_size(stretch) / units_per_px / 14, 0.35, 1.6))
    for pen, chosen in zip(_pens(drawn, rank), (~drawn.matched, drawn.matched), strict=True):
        dot_px = float(np.clip(110 / np.sqrt(chosen.sum() + 1), 1.5, 4.5))
        is_small = (sides < SMALL_PX * units_per_px) & drawn.matched
        for some, shade in ((~is_small, pen), (is_small, replace(pen, face_alpha=SMALL_FACE))):
            _add_areas(axes, paths, chosen & ~is_speck & some, shade, max(edge_px, pen.edge_min_px))
        _add_lines(axes, paths, chosen & ~is_speck, pen)
        _add_dots(axes, paths.points_of(chosen & ~is_speck), pen, dot_px * pen.weight)
        _add_dots(axes, centres[chosen & is_speck], pen, SPECK_PX * pen.speck)


def _pens(drawn: DrawnLayer, rank: int) -> tuple[Pen, Pen]:
    """Return the pen for what did not match and the one for what did."""
    accent = LIGHT.accent(drawn.layer.role, drawn.position)
    if drawn.layer.role == "event":
        return (
            Pen(LIGHT.muted, 0.03, 0.3, 0.3, 0.8, 0.3, 0.0, zorder=1 + rank),
            Pen(accent, 0.16, 0.95, 0.8, 1.0, 0.65, 0.9, zorder=MATCHED_ZORDER + rank),
        )
    return (
        Pen(LIGHT.muted, 0.1, 0.4, 0.3, 0.8, 0.3, 0.0, zorder=1 + rank),
        Pen(accent, 0.42, 1.0, 0.95, 1.25, 0.65, 0.9, zorder=MATCHED_ZORDER + rank),
    )


@dataclass(frozen=True, slots=True)
class _Paths:
    """Outlines with what drawing asks of them: where paths begin and whose they are."""

    places: NDArray[np.float64]
    firsts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    kinds: NDArray[np.str_]
    owners: NDArray[np.int64]

    @classmethod
    def of(cls, outlines: Outlines, stretch: float) -> _Paths:
        return cls(
            places=outlines.coordinates * np.array([1.0, stretch]),
            firsts=starts_of(outlines.path_lengths),
            lengths=outlines.path_lengths,
            kinds=outlines.path_kinds,
            owners=np.repeat(np.arange(len(outlines)), outlines.shape_lengths),
        )

    def have_extent(self, shape_count: int) -> NDArray[np.bool_]:
        """Which shapes have a line or an area."""
        return np.bincount(self.owners[self.kinds != POINT_PATH], minlength=shape_count) > 0

    def points_of(self, shapes: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the points among the chosen shapes' paths."""
        chosen: NDArray[np.bool_] = shapes[self.owners] & (self.kinds == POINT_PATH)
        return self.places[self.firsts[chosen]]

    def of_kind(
        self, shapes: NDArray[np.bool_], kind: str
    ) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield the chosen shapes' paths of one kind, each after its owner."""
        for path in np.flatnonzero(shapes[self.owners] & (self.kinds == kind)).tolist():
            first = self.firsts[path]
            yield int(self.owners[path]), self.places[first : first + self.lengths[path]]


def _add_areas(
    axes: Axes, paths: _Paths, shapes: NDArray[np.bool_], pen: Pen, edge_px: float
) -> None:
    rings: dict[int, list[Path]] = {}
    for owner, places in paths.of_kind(shapes, AREA_PATH):
        rings.setdefault(owner, []).append(_ring(places))
    collection = PathCollection(
        [Path.make_compound_path(*parts) for parts in rings.values()],
        facecolors=[(pen.color, pen.face_alpha)],
        edgecolors=[(pen.color, pen.edge_alpha)],
        linewidths=[edge_px * PX_TO_POINTS * pen.weight],
        zorder=pen.zorder,
    )
    axes.add_collection(collection, autolim=False)


def _ring(places: NDArray[np.float64]) -> Path:
    codes = np.full(len(places) + 1, Path.LINETO, dtype=Path.code_type)
    codes[0], codes[-1] = Path.MOVETO, Path.CLOSEPOLY
    return Path(np.concatenate([places, places[:1]]), codes)


def _add_lines(axes: Axes, paths: _Paths, shapes: NDArray[np.bool_], pen: Pen) -> None:
    """Draw lines; the more there are, the thinner and fainter, or they would be one blot."""
    lines = [places for _, places in paths.of_kind(shapes, LINE_PATH)]
    crowd = np.sqrt(len(lines) + 1)
    collection = LineCollection(
        lines,
        colors=[(pen.color, pen.edge_alpha * float(np.clip(14 / crowd, 0.35, 1)))],
        linewidths=[float(np.clip(45 / crowd, 0.7, 2.4)) * PX_TO_POINTS * pen.weight],
        zorder=pen.zorder + 0.2,
    )
    axes.add_collection(collection, autolim=False)


def _add_dots(axes: Axes, places: NDArray[np.float64], pen: Pen, radius_px: float) -> None:
    axes.scatter(
        places[:, 0],
        places[:, 1],
        s=(2 * radius_px * PX_TO_POINTS) ** 2,
        marker="o",
        facecolors=[(pen.color, pen.dot_alpha)],
        edgecolors="none",
        linewidths=0,
        zorder=pen.zorder + 0.4,
    )
