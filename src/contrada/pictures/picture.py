"""Everything one map shows, made ready once for whichever kind of file it goes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contrada.errors import InvalidInput
from contrada.pictures.layers import select_rows
from contrada.pictures.outlines import frame_around, trace_outlines
from contrada.pictures.partners import link_partners

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

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
    def matched_total(self) -> int:
        """How many shapes of the layer matched, drawn or not."""
        return int(self.layer.matched.sum())

    @property
    def sample(self) -> str:
        """Say how much of the layer is drawn; empty if all of it is."""
        if len(self.rows) == len(self.layer):
            return ""
        return f"showing {len(self.rows):,} of {len(self.layer):,}"


@dataclass(frozen=True, slots=True)
class Picture:
    """A map as data: what is written on it, its frame, its layers, and who matches whom."""

    title: str
    summary: Mapping[str, str]
    frame: Frame
    layers: Sequence[DrawnLayer]
    partners: Partners | None


def compose(
    layers: Sequence[Layer],
    *,
    title: str,
    summary: Mapping[str, str | int],
    pairs: NDArray[np.int64] | None,
    shapes_max: int,
    tolerance_units: float,
) -> Picture:
    """Choose what to draw, frame it, and bring it onto the frame's grid."""
    if shapes_max < 1:
        raise InvalidInput(f"shapes_max is {shapes_max}; it must be at least 1")
    rows = [select_rows(layer, shapes_max) for layer in layers]
    columns = [layer.geometries[kept] for layer, kept in zip(layers, rows, strict=True)]
    frame = frame_around(columns)
    outlines = [trace_outlines(column, frame, tolerance_units) for column in columns]
    return Picture(
        title=title,
        summary={key: _written(value) for key, value in summary.items()},
        frame=frame,
        layers=[
            DrawnLayer(layer, _position(layers, number), rows[number], outlines[number])
            for number, layer in enumerate(layers)
        ],
        partners=None if pairs is None else link_partners(pairs, layers, rows),
    )


def _written(value: str | int) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _position(layers: Sequence[Layer], number: int) -> int:
    return sum(layer.role == layers[number].role for layer in layers[:number])
