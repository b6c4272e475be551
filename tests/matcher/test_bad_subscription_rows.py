"""Bad rows of subscriptions: refused all at once, or left out one by one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shapely.geometry import Point, box

from contrada import Matcher
from contrada.errors import BadRows, InvalidInput

SQUARE = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
BOW_TIE = "POLYGON((0 0,4 4,4 0,0 4,0 0))"
ZONES = f"""id,note,wkt,relation
a,"over two
lines","{SQUARE}",
b,,"{BOW_TIE}",
c,,"{SQUARE}",near
,,"{SQUARE}",
a,,"{SQUARE}",
d,,POINT(1 1),ehInside
e,,"{SQUARE}",
"""
Heard = list[tuple[int, Any, str]]


def zones(folder: Path) -> Path:
    path = folder / "zones.csv"
    path.write_text(ZONES)
    return path


def hear(heard: Heard) -> Callable[[int, Any, str], object]:
    return lambda *bad: heard.append(bad)


def test_all_bad_rows_are_refused_at_once_with_line_and_id(tmp_path: Path) -> None:
    matcher = Matcher()
    with pytest.raises(BadRows) as caught:
        matcher.add_many(zones(tmp_path))
    error = caught.value
    assert error.message == f"{tmp_path}/zones.csv: 5 of 7 subscriptions cannot be used"
    places = [
        "line 4 (row 1), id 'b', column 'geometry': invalid Polygon: self-intersection at (2, 2)",
        "line 5 (row 2), id 'c', column 'relation': unknown relation 'near'",
        "line 6 (row 3), column 'id': the id is missing",
        "line 7 (row 4), id 'a': the id 'a' is already taken",
        "line 8 (row 5), id 'd', column 'relation': ehInside takes areas, not a Point",
    ]
    assert len(error.rows) == len(places)
    assert all(row.startswith(place) for row, place in zip(error.rows, places, strict=True))
    lines = str(error).splitlines()
    assert len(lines) == 7
    for words in ("repair=True", "id=…", "replace=True", "quarantine=True leaves bad subscr"):
        assert words in lines[-1]
    assert len(matcher) == 0
    assert matcher.stats()["subscriptions_left_out"] == 0


def test_of_many_bad_rows_the_first_twenty_are_shown_with_the_count() -> None:
    ids = [*range(50), 7]
    table = pa.table({"id": ids, "filter": ["n > 0"] * 10 + ["n >"] * 40 + ["n > 1"]})
    with pytest.raises(BadRows, match="table: 41 of 51 subscriptions cannot be used") as caught:
        Matcher().add_many(table)
    *shown, rest = caught.value.rows
    assert [row.split(",")[0] for row in shown] == [f"row {row}" for row in range(10, 30)]
    assert rest == "and 21 more"


def test_one_bad_row_is_one_line() -> None:
    table = pa.table({"id": [1, 2], "filter": ["n > 0", "n >"]})
    with pytest.raises(InvalidInput, match=r"^table, row 1, id 2, column 'filter': ") as caught:
        Matcher().add_many(table)
    assert "\n" not in str(caught.value)


def test_quarantine_leaves_every_bad_row_out_and_says_why(tmp_path: Path) -> None:
    matcher, heard = Matcher(), Heard()
    assert matcher.add_many(zones(tmp_path), quarantine=True, on_bad=hear(heard)) == 2
    assert list(matcher) == ["a", "e"]
    assert sorted((row, id_) for row, id_, _ in heard) == [
        (1, "b"),
        (2, "c"),
        (3, None),
        (4, "a"),
        (5, "d"),
    ]
    assert all("zones.csv" not in reason for _, _, reason in heard)
    assert matcher.stats()["subscriptions_left_out"] == 5
    assert matcher.match({"geometry": Point(1, 1)}) == ["a", "e"]


def test_quarantine_leaves_out_what_repair_does_not_mend() -> None:
    matcher, heard = Matcher(), Heard()
    table = pa.table(
        {"id": [1, 2, 3], "geometry": [SQUARE, BOW_TIE, SQUARE], "relation": [None, None, "near"]}
    )
    added = matcher.add_many(table, repair=True, quarantine=True, on_bad=hear(heard))
    assert added == len(matcher) == 2
    assert [reason.split(":")[0] for _, _, reason in heard] == ["mended", "column 'relation'"]
    stats = matcher.stats()
    assert (stats["subscriptions_mended"], stats["subscriptions_left_out"]) == (1, 1)


def test_quarantine_leaves_out_an_id_that_the_matcher_has_unless_it_replaces() -> None:
    matcher = Matcher()
    matcher.add("a", "n > 0")
    table = pa.table({"id": ["a", "b"], "filter": ["n > 5"] * 2})
    assert matcher.add_many(table, quarantine=True) == 1
    assert matcher.match({"n": 1}) == ["a"]
    assert matcher.add_many(table, quarantine=True, replace=True) == 2
    assert matcher.match({"n": 1}) == []


def test_an_id_too_large_is_a_bad_row() -> None:
    matcher = Matcher()
    table = pa.table({"id": pa.array([1, 2**63], pa.uint64()), "filter": ["n > 0"] * 2})
    assert matcher.add_many(table, quarantine=True) == 1
    assert list(matcher) == [1]


def test_ids_of_another_kind_are_refused_with_the_table() -> None:
    matcher = Matcher()
    matcher.add("a", "n > 0")
    with pytest.raises(InvalidInput, match=r"^table: .*1 follows 'a'; id=…"):
        matcher.add_many(pa.table({"id": [1], "filter": ["n > 0"]}), quarantine=True)


def test_a_subscription_that_the_engine_cannot_serve_is_a_bad_row() -> None:
    holed = box(0, 0, 9, 9) - box(1, 1, 2, 2)
    matcher = Matcher("crtree", evaluator="discrete")
    table = pa.table({"id": ["a", "h"], "geometry": [box(0, 0, 4, 4).wkb, holed.wkb]})
    heard = Heard()
    assert matcher.add_many(table, quarantine=True, on_bad=hear(heard)) == 1
    assert [(row, id_) for row, id_, _ in heard] == [(1, "h")]


def test_who_hears_of_a_bad_row_may_change_the_matcher() -> None:
    matcher = Matcher()
    table = pa.table({"id": ["a", "a"], "filter": ["n > 0"] * 2})
    matcher.add_many(table, quarantine=True, on_bad=lambda *_: matcher.add("b", "n > 0"))
    assert list(matcher) == ["a", "b"]


def test_a_bad_event_of_a_text_file_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text(f'id,note,wkt\n1,"a\nb",POINT(1 1)\n2,,"{BOW_TIE}"\n')
    matcher = Matcher()
    matcher.add("a", geometry=SQUARE)
    with pytest.raises(
        InvalidInput, match=r"events\.csv, line 4 \(row 1\), column 'geometry': .*; repair=True"
    ):
        matcher.match_many(path)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda m: m.match({"geometry": BOW_TIE}), "repair=True"),
        (lambda m: m.add("b", geometry=BOW_TIE), "repair=True"),
        (lambda m: m.add("a", "n > 0"), "replace=True"),
        (lambda m: m.match_many([{"geometry": BOW_TIE}]), "repair=True.*quarantine=True"),
        (lambda m: m.match_many([{"geometry": "POINT(1 x)"}]), "quarantine=True"),
        (lambda m: m.match_many(pa.table({"n": [1]}), id="code"), "id=…"),
        (lambda m: m.match_many(pa.table({"id": [1.5]})), "id=…"),
        (lambda m: m.add_many(pa.table({"filter": ["n > 0"]}), id="code"), "id=…"),
        (lambda m: m.add_many(pa.table({"id": [1.5], "filter": ["n > 0"]})), "id=…"),
    ],
)
def test_a_refusal_names_the_option_that_would_help(
    ask: Callable[[Matcher], object], words: str
) -> None:
    matcher = Matcher()
    matcher.add("a", geometry=SQUARE)
    with pytest.raises(InvalidInput, match=words):
        ask(matcher)


def test_ids_that_repeat_in_the_column_asked_for_are_better_left_out() -> None:
    table = pa.table({"ugc": ["x", "x"], "filter": ["n = 1", "n = 2"]})
    with pytest.raises(InvalidInput) as caught:
        Matcher().add_many(table, id="ugc")
    assert str(caught.value) == (
        "table, row 1, id 'x': the id 'x' is already taken; "
        "replace=True replaces the existing one; without id=… the rows are numbered"
    )
    assert Matcher().add_many(table) == 2


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["Where"], "table: the column 'Where' is ignored; rename it to 'where' to use it"),
        (
            ["WHERE", "Filter"],
            "table: the columns 'WHERE', 'Filter' are ignored; rename them to .* to use them",
        ),
    ],
)
def test_a_column_in_other_letters_than_it_should_be_is_warned_of(
    names: list[str], said: str
) -> None:
    table = pa.table({"id": ["a"], "geometry": ["POINT(1 1)"]} | {name: ["x"] for name in names})
    with pytest.warns(UserWarning, match=f"^{said}$") as heard:
        Matcher().add_many(table)
    assert [each.filename for each in heard] == [__file__]


def test_a_column_beside_the_one_in_small_letters_is_nobodys_mistake() -> None:
    columns = {"id": ["a"], "filter": ["n = 1"], "Filter": ["coffee"], "Geometry": ["x"]}
    assert Matcher().add_many(pa.table(columns)) == 1
