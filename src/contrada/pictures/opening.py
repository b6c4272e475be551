"""Where a map opens: on what matched, else on the subscriptions, else on everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import shapely

from contrada.pictures.outlines import single_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contrada.pictures.layers import Role

# A few shapes beyond an empty stretch of a quarter of the view do not decide where it opens.
_GAP_MIN = 0.25
_STRAYS_MAX = 0.05


@dataclass(frozen=True, slots=True)
class Opening:
    """The boxes on which a map opens, and how many matched shapes lie partly outside of them."""

    boxes: NDArray[np.float64]
    matched_outside: int


def choose_opening(
    roles: Sequence[Role],
    columns: Sequence[NDArray[np.object_]],
    matched: Sequence[NDArray[np.bool_]],
) -> Opening:
    """Choose what a map of drawable shapes opens on; without events, that is everything."""
    found = [column[flags] for column, flags in zip(columns, matched, strict=True)]
    wanted = [c for c, role in zip(columns, roles, strict=True) if role == "subscription"]
    chosen = columns
    if "event" in roles:
        chosen = next((some for some in (found, wanted) if any(map(len, some))), columns)
    parts, owners = single_parts(np.concatenate([np.empty(0, object), *chosen]))
    boxes = shapely.bounds(parts).reshape(-1, 4)
    kept = _without_strays(boxes, owners)
    strays = len(np.unique(owners[~kept])) if chosen is found else 0
    return Opening(boxes[kept], strays)


def _without_strays(boxes: NDArray[np.float64], owners: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Mark the boxes that are left when few that lie far from all others are taken away."""
    weights = 1 / np.bincount(owners)[owners] if len(owners) else np.zeros(0)
    kept = np.ones(len(boxes), np.bool_)
    for axis in (0, 1, 0, 1):
        rows = np.flatnonzero(kept)
        if len(rows) < 2:
            break
        rows = rows[np.argsort(boxes[rows, axis], kind="stable")]
        reached = np.maximum.accumulate(boxes[rows, axis + 2])
        gaps = boxes[rows[1:], axis] - reached[:-1]
        at = int(np.argmax(gaps)) + 1
        if gaps[at - 1] <= _GAP_MIN * (reached[-1] - boxes[rows[0], axis]):
            continue
        sides = rows[:at], rows[at:]
        fewer = min(sides, key=lambda side: float(weights[side].sum()))
        if weights[fewer].sum() <= _STRAYS_MAX * weights.sum():
            kept[fewer] = False
    return kept
