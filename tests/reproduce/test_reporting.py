"""Tables and comparisons line up, and say plainly what a paper does not state."""

import pytest

from contrada.reproduce.reporting import (
    Column,
    Table,
    compare,
    say_prose,
    say_terms,
    write_ms,
    write_percent,
    write_spread,
    write_times,
)
from notes import Notes


def test_numbers_stand_right_and_text_left_below_their_headers_and_groups() -> None:
    notes = Notes()
    columns = [
        Column("name", width_min=6, is_text=True),
        Column("N", format=",", width_min=6),
        Column("paper", "ms"),
        Column("ours", "ms", ".1f", width_min=5),
        Column("remark", is_text=True),
    ]
    table = Table(notes, columns)
    table.add("a", 12_345, None, 1.25, "good")
    table.add("bb", 1, "6.4?", 10.0, "bad")
    assert notes.lines == [
        "                          ms",
        "name         N  paper   ours  remark",
        "a       12,345      –    1.2  good",
        "bb           1   6.4?   10.0  bad",
    ]


def test_columns_make_room_for_the_name_of_their_group() -> None:
    notes = Notes()
    groups = ("ms per event", "relations per event")
    columns = [Column(name, group) for group in groups for name in ("plain", "simple")]
    Table(notes, columns)
    assert notes.lines == [
        " ms per event  relations per event",
        "plain  simple        plain  simple",
    ]


def test_a_table_without_groups_has_one_line_of_header() -> None:
    notes = Notes()
    Table(notes, [Column("N"), Column("ms")])
    assert notes.lines == ["N  ms"]


def test_claims_stand_beside_what_was_found() -> None:
    notes = Notes()
    compare(notes, "the text", [("faster", "about 6×", "0.5×"), ("ms", None, "in the table")])
    assert notes.lines == [
        "",
        "the text  paper     ours",
        "faster    about 6×  0.5×",
        "ms        –         in the table",
    ]


def test_prose_is_folded_and_words_are_explained_in_a_column() -> None:
    notes = Notes()
    say_prose(notes, "word " * 30)
    assert max(map(len, notes.lines)) <= 100
    say_terms(notes, {"D": "a density", "scan": "everything"})
    assert notes.lines[-2:] == ["D     a density", "scan  everything"]


@pytest.mark.parametrize(
    ("ms", "text"), [(4000, "4,000"), (99.96, "100.0"), (12.34, "12.3"), (0.256, "0.26")]
)
def test_a_time_has_digits_that_mean_something(ms: float, text: str) -> None:
    assert write_ms(ms) == text


def test_ratios_have_two_digits_and_no_exponent() -> None:
    assert [write_times(r) for r in (0.066, 1.0, 2.96, 17.2, 372.2, 6915)] == [
        "0.066×", "1×", "3×", "17×", "372×", "6,915×"
    ]  # fmt: skip
    assert write_spread([3, 0.5, 2]) == "0.5× to 3×"
    assert write_percent(0.0512, 1) == "5.1 %"
