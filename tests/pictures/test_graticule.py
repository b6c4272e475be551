"""Steps, places and labels of a graticule."""

import pytest

from contrada.pictures.graticule import PARTS_MAX, choose_step, line_places, write_place


@pytest.mark.parametrize("is_lonlat", [False, True])
@pytest.mark.parametrize("span", [1e-12, 0.037, 1, 9, 13.9, 14, 20.8, 140, 141, 360, 720, 6.5e6])
def test_a_step_is_round_and_gives_a_handful_of_lines(span: float, is_lonlat: bool) -> None:
    step = choose_step(span, is_lonlat=is_lonlat)
    assert 2 <= span / step <= PARTS_MAX
    assert f"{step:e}"[:3] in {"1.0", "2.0", "5.0", "1.5", "3.0", "4.5", "9.0"}


def test_large_steps_of_degrees_divide_the_circle() -> None:
    assert choose_step(382, is_lonlat=True) == 30
    assert choose_step(382, is_lonlat=False) == 50


def test_lines_run_through_the_multiples_of_the_step_ends_included() -> None:
    assert line_places(-1, 1.2, 0.5) == [-1, -0.5, 0, 0.5, 1]
    assert line_places(0.1, 0.2, 0.5) == []


@pytest.mark.parametrize(
    ("place", "step", "is_lonlat", "text"),
    [
        (-2.5, 0.5, True, "−2.5°"),
        (48, 1, True, "48°"),
        (0.30000000000000004, 0.1, False, "0.3"),
        (-1e-17, 0.1, False, "0.0"),
        (6500000, 200000, False, "6,500,000"),
        (1.25e12, 1e11, False, "1.25e+12"),
        (1e-11, 1e-11, False, "1e−11"),
    ],
)
def test_a_place_has_the_decimals_that_its_step_needs(
    place: float, step: float, is_lonlat: bool, text: str
) -> None:
    assert write_place(place, step, is_lonlat=is_lonlat) == text
