"""Plots begin at zero, name each series once, and show zero where the axis is logarithmic."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from contrada.errors import Unavailable
from contrada.pictures.plots import Panel, Scale, Series, draw_panels, make_figure

ONE = Series("one", [10, 20], [5.0, 6.0])
TWO = Series("two", [10, 20], [7.0, 0.0], colour=1, line="dashed")


def figure_of(*panels: Panel, scale: Scale = "linear") -> Figure:
    return make_figure(
        panels, title="a title", note="a note", x_label="N", y_label="ms", scale=scale
    )


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_linear_axes_begin_at_zero() -> None:
    axes = figure_of(Panel([ONE])).axes[0]
    assert axes.get_xlim()[0] == 0
    assert axes.get_ylim()[0] == 0


def test_a_series_of_several_panels_is_named_once() -> None:
    assert legend_of(figure_of(Panel([ONE, TWO]), Panel([ONE, TWO]))) == ["one", "two"]


def test_a_single_series_needs_no_legend() -> None:
    assert legend_of(figure_of(Panel([ONE]))) == []


def test_panels_share_the_axis_of_y() -> None:
    figure = figure_of(Panel([ONE]), Panel([Series("high", [1], [900.0])]))
    left, right = figure.axes
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylabel() == "ms"
    assert right.get_ylabel() == ""


def test_a_logarithmic_axis_can_show_zero() -> None:
    axes = figure_of(Panel([ONE, TWO]), scale="log with zero").axes[0]
    assert axes.get_yscale() == "symlog"
    assert axes.get_ylim() == (0, 10)


def test_an_axis_of_zeros_alone_can_be_drawn() -> None:
    axes = figure_of(Panel([Series("none", [0, 1], [0.0, 0.0])]), scale="log with zero").axes[0]
    assert axes.get_ylim()[0] == 0


def test_what_is_quoted_is_hollow_and_what_is_measured_filled() -> None:
    quoted = Series("paper", [10], [5.0], line="none", is_quoted=True)
    ours, paper = figure_of(Panel([ONE, quoted])).axes[0].lines
    assert paper.get_markerfacecolor() == "white"
    assert ours.get_markerfacecolor() == ours.get_color()


def test_names_stand_at_their_places() -> None:
    axes = figure_of(Panel([ONE], names={10.0: "scan", 20.0: "tree"}, links=[(10, 1, 5)])).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["scan", "tree"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_figure_is_saved_as_png(tmp_path: Path, count: int) -> None:
    draw_panels(tmp_path / "a.png", [Panel([ONE, TWO])] * count, title="t", y_label="ms")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_that_cannot_be_written_is_not_there_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(self: Path, *_: object) -> None:
        raise OSError(27, "File too large")

    monkeypatch.setattr(Path, "replace", is_full)
    with pytest.raises(Unavailable, match=r"plot\.png: cannot be written: File too large"):
        draw_panels(tmp_path / "plot.png", [Panel([])], title="", y_label="ms")
    assert not list(tmp_path.iterdir())


def test_a_figure_with_quoted_points_says_which_are_whose() -> None:
    quoted = Series("paper", [10], [5.0], line="none", is_quoted=True)
    bound = Series("bound", [10, 20], [9.0, 9.0], marker="", is_quoted=True)
    assert "Filled: ours; hollow: the paper's." in note_of(figure_of(Panel([ONE, quoted])))
    assert "hollow" not in note_of(figure_of(Panel([ONE, TWO])))
    assert "hollow" not in note_of(figure_of(Panel([ONE, bound])))


def note_of(figure: Figure) -> str:
    return " ".join(figure.texts[-1].get_text().split())


@pytest.mark.parametrize(
    ("scale", "far"), [("linear", 600.0), ("log", 60.0), ("log with zero", 0.0)]
)
def test_of_curves_that_coincide_the_earlier_shows_around_the_later(
    scale: Scale, far: float
) -> None:
    other = Series("other", [10, 20], [far, 900.0])
    same = Series("same", [10, 20], [5.001, 6.001])
    apart, under, above = figure_of(Panel([other, ONE, same]), scale=scale).axes[0].lines
    assert under.get_linewidth() > above.get_linewidth() == apart.get_linewidth()
    assert under.get_markersize() > above.get_markersize() == apart.get_markersize()


def test_curves_that_only_cross_in_a_point_keep_their_width() -> None:
    crossing = Series("crossing", [10, 20], [5.0, 900.0])
    under, above = figure_of(Panel([ONE, crossing])).axes[0].lines
    assert under.get_linewidth() == above.get_linewidth()
    assert under.get_markersize() == above.get_markersize()


def test_a_long_note_is_broken_into_lines_that_fit() -> None:
    figure = make_figure([Panel([ONE])], title="a title", note="word " * 100, y_label="ms")
    figure.canvas.draw()
    box = figure.texts[-1].get_window_extent()
    assert box.x1 < figure.bbox.x1
    assert box.height > 3 * 10
