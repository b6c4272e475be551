"""`draw_map`: the one call of this room, from layers to a finished file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contrada.errors import InvalidInput
from contrada.machine import write_whole
from contrada.pictures.outlines import GRID_UNITS
from contrada.pictures.page import render_page
from contrada.pictures.picture import Detail, compose
from contrada.pictures.plate import render_plate, require_matplotlib

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from contrada.pictures.layers import Layer

# A page is zoomed into, an image is not: half a pixel is all that it can show.
_PAGE_DETAIL = Detail(finest_units=0.5, vertices_max=500_000)
_PLATE_DETAIL = Detail(finest_units=GRID_UNITS / 2_500, vertices_max=2_000_000)


def draw_map(
    path: str | Path,
    layers: Sequence[Layer],
    *,
    title: str,
    summary: Mapping[str, str | int] = {},
    pairs: NDArray[np.int64] | None = None,
    unmatched_max: int = 20_000,
) -> None:
    """Draw a match result to `path`: `.html` is a page to explore, offline; `.png` an image.

    It opens on what matched, or else on the subscriptions. What did not match is faint and lies
    under what did, large shapes under small ones. `pairs` has one row per match: the event's index
    over all event layers, one after the other, and that of the subscription; the page uses it to
    show what matches what. All that matched is drawn; of what did not, an even sample of at most
    `unmatched_max` in each layer, and the legend says so. Coordinates within the range of longitude
    and latitude are read as such. The file appears whole or not at all.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in (".html", ".png"):
        raise InvalidInput(f'cannot draw a map to "{target}": its name must end in .html or .png')
    if not target.parent.is_dir():
        raise InvalidInput(f'cannot draw a map to "{target}": there is no folder "{target.parent}"')
    if suffix == ".png":
        require_matplotlib()
    picture = compose(
        layers,
        title=title,
        summary=summary,
        pairs=pairs,
        unmatched_max=unmatched_max,
        detail=_PAGE_DETAIL if suffix == ".html" else _PLATE_DETAIL,
    )
    write_whole(target, render_page(picture) if suffix == ".html" else render_plate(picture))
