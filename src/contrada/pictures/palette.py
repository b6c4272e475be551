"""The colours of a map, in light and in dark.

Grey-blue for what did not match, one warm hue for matched subscriptions, one cool hue for events;
layers of one role differ in lightness. Warm against blue, and dark against light, stay apart for
every common kind of colour blindness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contrada.pictures.layers import Role


@dataclass(frozen=True, slots=True)
class Palette:
    """One theme. `subscriptions` and `events` are taken in turn by the layers of that role."""

    ground: str
    graticule: str
    ink: str
    quiet: str
    muted: str
    subscriptions: tuple[str, ...]
    events: tuple[str, ...]

    def accent(self, role: Role, position: int) -> str:
        """Return the colour of what matched in the layer at `position` among those of its role."""
        colours = self.events if role == "event" else self.subscriptions
        return colours[position % len(colours)]


LIGHT = Palette(
    ground="#f5f7f9",
    graticule="#dfe5ea",
    ink="#1d2a36",
    quiet="#5c6b79",
    muted="#93a5b5",
    subscriptions=("#d9541e", "#e3a01b", "#8f2f12"),
    events=("#1b74b8", "#0b3a66", "#4fb0d8", "#8a1f63"),
)

DARK = Palette(
    ground="#10161c",
    graticule="#222d37",
    ink="#e8eef3",
    quiet="#94a5b4",
    muted="#5b6f81",
    subscriptions=("#ff8b4d", "#ffc861", "#cf5a30"),
    events=("#58aef0", "#b3dcff", "#2d7fc4", "#ff86c8"),
)
