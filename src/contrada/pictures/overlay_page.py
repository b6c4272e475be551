"""A run of the overlay as one self-contained page that plays it: the template with data inside.

The template draws; this module only writes down what is drawn, and how frames differ.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from contrada.pictures.overlay_palette import OVERLAY_DARK, OVERLAY_LIGHT, OverlayPalette
from contrada.pictures.overlay_scenes import describe, describe_faults, thin

if TYPE_CHECKING:
    from contrada.overlay.boxes import Box
    from contrada.overlay.messages import PeerId
    from contrada.simulation.checker import PeerView
    from contrada.simulation.publishing import Published
    from contrada.simulation.recording import RoundFrame, Story

PAGE_BYTES_MAX = 4_500_000
FRAMES_MIN, FRAMES_MAX = 8, 240
UNITS = 2_000  # places are whole numbers of so many to the side of the universe


def render_page(story: Story) -> bytes:
    """Write a run as an HTML document in UTF-8; of a long one not every round is shown."""
    template = files("contrada.pictures").joinpath("overlay.html").read_text(encoding="utf-8")
    frames = story.frames
    while len(frames) > FRAMES_MAX:
        frames = thin(frames)
    data = _write(story, frames)
    while len(data) > PAGE_BYTES_MAX and len(frames) > FRAMES_MIN:
        frames = thin(frames)
        data = _write(story, frames)
    title, note = (html.escape(words) for words in describe(story))
    light, dark = _write_colours(OVERLAY_LIGHT), _write_colours(OVERLAY_DARK)
    blanks = {"title": title, "note": note, "data": data, "light": light, "dark": dark}
    page = re.sub(r"\{\{(\w+)\}\}", lambda blank: blanks[blank[1]], template)
    return page.encode()


def _write(story: Story, frames: list[RoundFrame]) -> str:
    shown = {
        "units": UNITS,
        "filters": {id_: _place(box) for id_, box in story.filters.items()},
        "frames": _describe_frames(frames),
        "faults": describe_faults(story),
        "events": [_describe_event(event) for event in story.events],
    }
    return json.dumps(shown, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _write_colours(palette: OverlayPalette) -> str:
    """Write a theme as custom properties of CSS; levels are `--level-1` and so on."""
    colours = asdict(palette)
    levels = colours.pop("levels")
    colours |= {f"level-{level}": colour for level, colour in enumerate(levels, start=1)}
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def _place(box: Box) -> list[int]:
    """Bring a box onto the grid of the page; garbage may lie far outside."""
    return [round(min(max(side, -1.0), 2.0) * UNITS) for side in box]


def _describe_frames(frames: list[RoundFrame]) -> list[dict[str, Any]]:
    """Write the first frame whole, and of every other one what is new in it."""
    described = []
    rows: dict[PeerId, list[int]] = {}
    seen: dict[PeerId, PeerView] = {}
    for frame in frames:
        changed = []
        for id_, peer in frame.peers.items():
            is_at_fault = id_ in frame.at_fault
            old = rows.get(id_)
            if old is None or seen[id_] is not peer or old[2] != is_at_fault:
                row = _describe_peer(peer, is_at_fault)
                if row != old:
                    changed.append(row)
                    rows[id_] = row
                seen[id_] = peer
        gone = [id_ for id_ in rows if id_ not in frame.peers]
        for id_ in gone:
            del rows[id_]
        described.append(
            {
                "round": frame.round,
                "stage": frame.stage,
                "faults": frame.faults,
                "roots": frame.roots,
                "changed": changed,
                "gone": gone,
            }
        )
    return described


def _describe_peer(peer: PeerView, is_at_fault: bool) -> list[int]:
    """Write a peer as one list: id, parent, whether at fault, and the boxes above its leaf."""
    boxes = [side for node in peer.levels[1:] for side in _place(node.box)]
    return [peer.id, peer.levels[-1].parent, int(is_at_fault), *boxes]


def _describe_event(event: Published) -> dict[str, Any]:
    return {
        "point": _place(event.point),
        "publisher": event.publisher,
        "received": sorted(set(event.received)),
        "visited": sorted(event.visited),
    }
