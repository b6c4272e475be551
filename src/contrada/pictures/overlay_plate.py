"""A run of the overlay as an image: four moments of it, and its faults over the rounds.

Every font, colour and width is set here or in the palette, and nothing is set globally.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from contrada.pictures.overlay_palette import OVERLAY_LIGHT
from contrada.pictures.overlay_scenes import (
    choose_moments,
    describe,
    describe_faults,
    find_faults_frame,
)
from contrada.pictures.plate import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contrada.overlay.boxes import Box
    from contrada.overlay.messages import PeerId
    from contrada.simulation.recording import RoundFrame, Story

_WIDTH_IN, _HEIGHT_IN, _DPI = 16.0, 7.6, 100
_LEAVES_MAX = 300
_TICKS = (0, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)


def render_plate(story: Story) -> bytes:
    """Draw a run as a PNG."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH_IN, _HEIGHT_IN), dpi=_DPI, facecolor=OVERLAY_LIGHT.paper)
    figure.set_layout_engine("none")
    canvas = FigureCanvasAgg(figure)
    title, note = describe(story)
    figure.text(0.025, 0.945, title, fontsize=17, fontweight="bold", color=OVERLAY_LIGHT.ink)
    figure.text(0.025, 0.905, note, fontsize=11.5, color=OVERLAY_LIGHT.quiet)
    moments = choose_moments(story)
    for column, (caption, frame) in enumerate(moments):
        axes = figure.add_axes((0.025 + column * 0.2425, 0.36, 0.2225, 0.468))
        _draw_moment(axes, story, frame)
        axes.set_title(caption, fontsize=11.5, color=OVERLAY_LIGHT.ink, loc="left", pad=7)
    _add_key(figure, moments)
    _draw_rounds(figure.add_axes((0.055, 0.085, 0.92, 0.165)), story)
    file = io.BytesIO()
    canvas.print_png(file)  # type: ignore[no-untyped-call]
    return file.getvalue()


def _draw_moment(axes: Axes, story: Story, frame: RoundFrame) -> None:
    """Draw filters faint, boxes by level, links between peers, and who is at fault."""
    axes.set_facecolor(OVERLAY_LIGHT.ground)
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xticks=[], yticks=[], aspect="equal")
    for spine in axes.spines.values():
        spine.set(color=OVERLAY_LIGHT.line, linewidth=0.8)
    middles = {id_: _middle(story.filters[id_]) for id_ in frame.peers}
    if len(frame.peers) <= _LEAVES_MAX:
        leaves = [story.filters[id_] for id_ in frame.peers]
        face, edge = f"{OVERLAY_LIGHT.leaf}1c", f"{OVERLAY_LIGHT.leaf}66"
        _add_boxes(axes, leaves, facecolor=face, edgecolor=edge, linewidth=0.4)
    for level in range(1, 1 + max(len(peer.levels) - 1 for peer in frame.peers.values())):
        boxes = [
            peer.levels[level].box for peer in frame.peers.values() if len(peer.levels) > level
        ]
        colour = _colour(level)
        width = (0.5 + 0.45 * level) * _boldness(frame)
        shade = "90" if level == 1 else "d0"
        _add_boxes(axes, boxes, facecolor="none", edgecolor=f"{colour}{shade}", linewidth=width)
    _add_links(axes, frame, middles)
    _add_dots(axes, frame, middles)


def _boldness(frame: RoundFrame) -> float:
    """Return how wide lines are: many peers need thin ones."""
    return 1.0 if len(frame.peers) <= _LEAVES_MAX else 0.45


def _middle(box: Box) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _colour(level: int) -> str:
    return OVERLAY_LIGHT.levels[min(level, len(OVERLAY_LIGHT.levels)) - 1]


def _add_boxes(axes: Axes, boxes: list[Box], **style: Any) -> None:
    from matplotlib.collections import PolyCollection

    corners = [[(w, s), (e, s), (e, n), (w, n)] for w, s, e, n in boxes]
    axes.add_collection(PolyCollection(corners, **style), autolim=False)


def _add_links(axes: Axes, frame: RoundFrame, middles: dict[PeerId, tuple[float, float]]) -> None:
    from matplotlib.collections import LineCollection

    is_full = len(frame.peers) <= _LEAVES_MAX
    for is_at_fault in (False, True):
        lines, colours, widths = [], [], []
        for id_, peer in frame.peers.items():
            above, top = peer.levels[-1].parent, len(peer.levels) - 1
            is_shown = above != id_ and above in middles and (top > 0 or is_full or is_at_fault)
            if is_shown and (id_ in frame.at_fault) == is_at_fault:
                lines.append([middles[id_], middles[above]])
                colour = OVERLAY_LIGHT.fault if is_at_fault else _colour(top + 1)
                colours.append(f"{colour}{'d0' if top else '80'}")
                widths.append((0.5 + 0.4 * top) * _boldness(frame))
        links = LineCollection(lines, colors=colours, linewidths=widths)
        axes.add_collection(links, autolim=False)


def _add_dots(axes: Axes, frame: RoundFrame, middles: dict[PeerId, tuple[float, float]]) -> None:
    kinds = (
        ([id_ for id_ in frame.peers if id_ not in frame.at_fault], OVERLAY_LIGHT.ink, 5.0),
        (sorted(frame.at_fault & frame.peers.keys()), OVERLAY_LIGHT.fault, 16.0),
    )
    for ids, colour, area in kinds:
        if ids:
            x, y = zip(*(middles[id_] for id_ in ids), strict=True)
            axes.scatter(x, y, s=area * _boldness(frame) ** 2, c=colour, lw=0)
    roots = [middles[id_] for id_, peer in frame.peers.items() if peer.levels[-1].parent == id_]
    if roots:
        size = 70 if len(roots) <= 12 else 22
        x, y = zip(*roots, strict=True)
        axes.scatter(x, y, s=size, facecolors="none", edgecolors=OVERLAY_LIGHT.root, linewidths=1.3)


def _add_key(figure: Figure, moments: list[tuple[str, RoundFrame]]) -> None:
    """Explain what the colours mean, in one row below the moments."""
    from matplotlib.lines import Line2D

    height = max(len(peer.levels) - 1 for _, frame in moments for peer in frame.peers.values())
    keys: list[tuple[str, dict[str, Any]]] = [
        ("a peer", {"marker": "o", "color": OVERLAY_LIGHT.ink, "ls": "", "ms": 4}),
        ("at fault", {"marker": "o", "color": OVERLAY_LIGHT.fault, "ls": "", "ms": 6}),
        ("a root", {"marker": "o", "mfc": "none", "mec": OVERLAY_LIGHT.root, "ls": "", "ms": 9}),
    ]
    if any(len(frame.peers) <= _LEAVES_MAX for _, frame in moments):
        square = {
            "marker": "s",
            "mfc": f"{OVERLAY_LIGHT.leaf}1c",
            "mec": OVERLAY_LIGHT.leaf,
            "ls": "",
            "ms": 10,
        }
        keys.append(("a filter", square))
    keys += [
        (f"level {level}", {"color": _colour(level), "lw": 1 + 0.6 * level})
        for level in range(1, min(height, len(OVERLAY_LIGHT.levels)) + 1)
    ]
    handles = [Line2D([], [], label=name, **style) for name, style in keys]
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.018, 0.345),
        ncols=len(keys),
        frameon=False,
        fontsize=10.5,
        labelcolor=OVERLAY_LIGHT.quiet,
        handletextpad=0.5,
        columnspacing=1.8,
    )


def _draw_rounds(axes: Axes, story: Story) -> None:
    frames = story.frames
    most = max(max(frame.faults, frame.roots) for frame in frames)
    x = [frame.round for frame in frames]
    axes.fill_between(
        x, [frame.faults for frame in frames], color=OVERLAY_LIGHT.fault, alpha=0.16, lw=0
    )
    axes.plot(
        x, [frame.faults for frame in frames], color=OVERLAY_LIGHT.fault, lw=1.8, label="faults"
    )
    axes.plot(x, [frame.roots for frame in frames], color=OVERLAY_LIGHT.root, lw=1.4, label="roots")
    axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    ticks = [tick for tick in _TICKS if tick <= most] or [0]
    axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks][: len(ticks)])
    axes.set_yticks([], minor=True)
    axes.set_ylim(0, max(3, most * 1.6))
    axes.set_xlim(0, max(x))
    axes.tick_params(colors=OVERLAY_LIGHT.quiet, labelsize=9.5, length=3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=OVERLAY_LIGHT.line, lw=0.7)
    axes.set_axisbelow(True)
    axes.set_xlabel("rounds", fontsize=10.5, color=OVERLAY_LIGHT.quiet)
    _mark_faults(axes, story)
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.005, 1.02),
        ncols=2,
        frameon=False,
        fontsize=10.5,
        labelcolor=OVERLAY_LIGHT.quiet,
    )


def _mark_faults(axes: Axes, story: Story) -> None:
    fault = find_faults_frame(story.frames)
    if fault is None:
        return
    at, last = story.frames[fault].round, story.frames[-1].round
    axes.axvline(at, color=OVERLAY_LIGHT.ink, lw=1, ls=(0, (3, 2)))
    is_left = at > last * 0.6
    axes.annotate(
        describe_faults(story),
        (at, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if is_left else 5, 5),
        textcoords="offset points",
        ha="right" if is_left else "left",
        va="bottom",
        fontsize=10.5,
        color=OVERLAY_LIGHT.ink,
    )
