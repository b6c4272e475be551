"""A run of the overlay as one file: a page that plays it, or a plate of its moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.errors import InvalidInput

if TYPE_CHECKING:
    from contrada.simulation.recording import Story

DRAWN_SUFFIXES = (".html", ".png")


def render_story(story: Story, suffix: str) -> bytes:
    """Draw a run as a page that works offline (.html), or as an image (.png)."""
    if suffix == ".html":
        from contrada.pictures.overlay_page import render_page

        return render_page(story)
    if suffix == ".png":
        from contrada.pictures.overlay_plate import render_plate

        return render_plate(story)
    raise InvalidInput(f"{suffix}: a run is drawn as {' or '.join(DRAWN_SUFFIXES)}")
