"""The colours of a run of the overlay, on the page and on the plate, in light and in dark."""

from __future__ import annotations

from dataclasses import dataclass

from contrada.pictures import palette


@dataclass(frozen=True, slots=True)
class OverlayPalette:
    """One theme, as CSS spells colours; the plate needs `#rrggbb` of those that it draws with.

    `levels` are by level, from 1 on: from faint to strong, none of them near the red of faults.
    """

    ground: str
    paper: str
    ink: str
    quiet: str
    line: str
    press: str
    focus: str
    shade: str
    leaf: str
    levels: tuple[str, ...]
    fault: str
    root: str
    received: str
    visited: str


OVERLAY_LIGHT = OverlayPalette(
    ground=palette.LIGHT.ground,
    paper="#ffffff",
    ink=palette.LIGHT.ink,
    quiet=palette.LIGHT.quiet,
    line=palette.LIGHT.graticule,
    press="#eef2f5",
    focus="#1b74b8",
    shade="rgb(29 42 54 / 14%)",
    leaf=palette.LIGHT.muted,
    levels=("#7fb5dd", "#2f7fc1", "#174a86", "#5d3a9b", "#2b1a4f"),
    fault="#d21f3c",
    root="#b07a12",
    received="#14804a",
    visited="#e0912f",
)

OVERLAY_DARK = OverlayPalette(
    ground=palette.DARK.ground,
    paper="#182029",
    ink=palette.DARK.ink,
    quiet=palette.DARK.quiet,
    line="#2b3743",
    press="#222d38",
    focus="#58aef0",
    shade="rgb(0 0 0 / 45%)",
    leaf=palette.DARK.muted,
    levels=("#3f6f96", "#58aef0", "#b3dcff", "#c3a6f5", "#efe6ff"),
    fault="#ff5a72",
    root="#f0bf4c",
    received="#4fd08c",
    visited="#ffb35c",
)
