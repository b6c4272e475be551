"""Everything one map shows, made ready once for whichever kind of file it goes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contrada.errors import InvalidInput
from contrada.pictures.detail import fit_detail
from contrada.pictures.layers import select_rows
from contrada.pictures.opening import choose_opening
from contrada.pictures.outlines import frame_around, paths_of, trace_outlines
from contrada.pictures.partners import link_partners

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from contrada.pictures.detail import Tolerances
    from contrada.pictures.layers import Layer
    from contrada.pictures.outlines import Frame, Outlines
    from contrada.pictures.partners import Partners


@dataclass(frozen=True, slots=True)
class DrawnLayer:
    """A layer with the rows that are drawn of it and their outlines, in the same order.

    `position` counts the layers of the same role before it; it chooses the colour.
    """

    layer: Layer
    position: int
    rows: NDArray[np.intp]
    outlines: Outlines

    @property
    def matched(self) -> NDArray[np.bool_]:
        """Which of the drawn shapes matched."""
        return self.layer.matched[self.rows]

    @property
    def total(self) -> int:
        """How many shapes there are, drawn or not."""
        return len(self.layer) if self.layer.total is None else self.layer.total

    @property
    def matched_total(self) -> int:
        """How many shapes matched, drawn or not."""
        known = self.layer.matched_total
        return int(self.layer.matched.sum()) if known is None else known

    @property
    def matched_sample(self) -> str:
        """How many of what matched are drawn, in words; empty if all are."""
        return _say_drawn(int(self.matched.sum()), self.matched_total)

    @property
    def unmatched_sample(self) -> str:
        """How many of what did not match are drawn, in words; empty if all are."""
        return _say_drawn(int((~self.matched).sum()), self.total - self.matched_total)


def _say_drawn(drawn: int, total: int) -> str:
    return "" if drawn >= total else f"{drawn:,} drawn"


@dataclass(frozen=True, slots=True)
class Picture:
    """A map as data: what is written on it, its frame, its layers, and who matches whom.

    `tolerances` are those of all outlines; `matched_outside` counts the matched shapes that lie
    outside the view with which the map opens.
    """

    title: str
    summary: Mapping[str, str]
    frame: Frame
    layers: Sequence[DrawnLayer]
    partners: Partners | None
    tolerances: Tolerances
    matched_outside: int


@dataclass(frozen=True, slots=True)
class Detail:
    """How fine outlines are to be, in grid units, and how many vertices they may have in all."""

    finest_units: float
    vertices_max: int


def compose(
    layers: Sequence[Layer],
    *,
    title: str,
    summary: Mapping[str, str | int],
    pairs: NDArray[np.int64] | None,
    unmatched_max: int,
    detail: Detail,
) -> Picture:
    """Choose what to draw, frame it, and bring it onto the frame's grid."""
    if unmatched_max < 0:
        raise InvalidInput(f"unmatched_max is {unmatched_max}; it must be at least 0")
    rows = [select_rows(layer, unmatched_max) for layer in layers]
    columns = [layer.geometries[kept] for layer, kept in zip(layers, rows, strict=True)]
    flags = [layer.matched[kept] for layer, kept in zip(layers, rows, strict=True)]
    opening = choose_opening([layer.role for layer in layers], columns, flags)
    frame = frame_around(columns, opening.boxes)
    paths, tolerances = fit_detail(
        [paths_of(column) for column in columns],
        flags,
        frame.unit,
        finest=detail.finest_units,
        vertices_max=detail.vertices_max,
    )
    outlines = [trace_outlines(column, frame) for column in paths]
    return Picture(
        title=title,
        summary={key: _written(value) for key, value in summary.items()},
        frame=frame,
        layers=[
            DrawnLayer(layer, _position(layers, number), rows[number], outlines[number])
            for number, layer in enumerate(layers)
        ],
        partners=None if pairs is None else link_partners(pairs, layers, rows),
        tolerances=tolerances,
        matched_outside=opening.matched_outside,
    )


def _written(value: str | int) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _position(layers: Sequence[Layer], number: int) -> int:
    return sum(layer.role == layers[number].role for layer in layers[:number])
