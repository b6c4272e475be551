"""Stacked bars, logarithmic sizes, and whose names a legend tells."""

import pytest

from contrada.pictures.plots import Bars, Panel, Series, make_figure


def _legend(*panels: Panel | Bars) -> list[str]:
    figure = make_figure(panels, title="a title", y_label="ms")
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_parts_of_a_bar_stand_on_each_other() -> None:
    bars = Bars(["equals", "touches"], {"index": [1.0, 2.0], "match": [3.0, 0.5]})
    (axes,) = make_figure([bars], title="a title", y_label="ms").axes
    tops = [patch.get_y() + patch.get_height() for patch in axes.patches]  # type: ignore[attr-defined]
    assert tops == pytest.approx([1.0, 2.0, 4.0, 2.5])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["equals", "touches"]
    assert _legend(bars, bars) == ["index", "match"]


def test_panels_without_a_name_in_common_have_their_titles_in_the_legend() -> None:
    left, right = (Panel([Series(name, [1, 2], [1, 2])], f"{name}s") for name in ("line", "area"))
    assert _legend(left, right) == ["lines:", "line", "areas:", "area"]


def test_names_stand_at_their_places_of_a_logarithmic_axis() -> None:
    panel = Panel(
        [Series("", [500, 5_000], [1, 2])], names={500: "500", 5_000: "5,000"}, is_x_log=True
    )
    (axes,) = make_figure([panel], title="a title", y_label="ms").axes
    assert axes.get_xscale() == "log"
    assert axes.get_xticks().tolist() == [500, 5_000]
    assert axes.get_xticks(minor=True).tolist() == []
