"""Snapshots of format 2: every subscription comes back, and the same ones give the same bytes.

`add_many` takes such a file as it takes the rows of one of format 1.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import InvalidInput, Matcher
from contrada.cli import main
from contrada.errors import BadRows
from contrada.files.sections import open_sections
from contrada.language import to_json
from contrada.language.operators import SIGNATURES
from contrada.model.relation import RELATIONS
from language.test_random_predicates import PREDICATES
from snapshots import FORMATS, save_as, write_settings
from strategies import geometries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
FILTERS_MAX = 100_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fences.contrada"


@pytest.fixture(scope="module")
def shared_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for all examples of a test, which do not overlap."""
    return tmp_path_factory.mktemp("columns") / "random.contrada"


def check_same(ours: Matcher, theirs: Matcher) -> None:
    """Check that matchers have the same subscriptions: ids, subscribers, trees and filters."""
    assert list(theirs) == list(ours)
    assert [type(id_) for id_ in theirs] == [type(id_) for id_ in ours]
    for id_ in ours:
        assert theirs.get(id_) == ours.get(id_)
        assert repr(theirs.get(id_).predicate) == repr(ours.get(id_).predicate)
        assert type(theirs.get(id_).subscriber) is type(ours.get(id_).subscriber)


def reopen(matcher: Matcher, path: Path) -> Matcher:
    matcher.save(path)
    again = Matcher.open(path)
    check_same(matcher, again)
    return again


# Predicates


def operator_texts() -> Iterator[str]:
    """A predicate for each operator of the language, and each kind of literal."""
    yield from (f"n {op} 5" for op in ("=", "<>", "<", "<=", ">", ">="))
    yield from (f"n {op} 2 > m" for op in ("+", "-", "*", "/", "%", "div", "^"))
    yield "CASEI(s) = 'é' AND ACCENTI(s) LIKE 'a%'"
    yield "n BETWEEN 1 AND 2.5 OR n NOT BETWEEN m AND 7"
    yield "s IN ('a', 'b') OR n NOT IN (1, 2.0, -0.0) OR n IN (m, 3)"
    yield "s IS NULL AND NOT n IS NULL"
    yield f"n > {2**63 - 1} AND n < {2**70} AND n <> {-(2**63)} AND n <> {-(2**63) - 1}"
    yield "n = 5e-324 OR n = 1.7976931348623157e308 OR n = 0.1"
    yield "p AND q = TRUE AND (n > 1) = r AND (n > 1) = (2 > 1) AND n = NULL"
    moment, day = "TIMESTAMP('2020-01-01T00:00:00.123456789Z')", "DATE('2021-07-01')"
    for name in SIGNATURES.values():
        if name.takes == ("time", "time"):
            yield f"{name.name}(t, {moment}) OR {name.name}(INTERVAL(t, '..'), INTERVAL({day}, u))"
        elif name.takes == ("array", "array"):
            yield f"{name.name}(tags, ('a', 1, -0.0)) OR {name.name}(tags, (n, 2, s))"
        elif name.takes == ("geometry", "geometry"):
            yield f"{name.name}(g, {SQUARE}) OR {name.name}({SQUARE}, h) OR {name.name}(g, h)"
    yield "relate(g, POINT(1 -0.0), 'T*F**F***') OR dwithin(g, LINESTRING(0 0, 1 1), 5.5)"
    yield "dwithin(g, POINT(1 2), n * 2) AND dwithin(g, h, 5)"
    yield "S_TOUCHES(g, GEOMETRYCOLLECTION(POINT(9 9), LINESTRING(0 0, 1 1)))"
    yield "S_CROSSES(g, MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5))))"
    yield "S_EQUALS(g, MULTIPOINT((0 0), (1 1))) OR S_EQUALS(g, MULTILINESTRING((0 0, 1 1)))"
    yield "TRUE"
    yield "FALSE"
    yield "NULL"


def operators_in(tree: Any) -> set[str]:
    if isinstance(tree, list):
        return set().union(*map(operators_in, tree))
    if not isinstance(tree, dict):
        return set()
    return operators_in(list(tree.values())) | ({tree["op"].lower()} if "op" in tree else set())


@pytest.mark.parametrize("simplify", [True, False])
def test_every_operator_comes_back(path: Path, simplify: bool) -> None:
    matcher = Matcher(simplify=simplify)
    for number, text in enumerate(operator_texts()):
        matcher.add(number, text)
    again = reopen(matcher, path)
    found = [to_json(again.get(number).predicate.expression) for number in again]
    assert operators_in(found) == {*SIGNATURES, "and", "or"}


def wrapped(tree: Any) -> Any:
    return {"op": "and", "args": [tree]}


@settings(max_examples=150)
@given(st.lists(PREDICATES, min_size=1, max_size=4), st.booleans())
def test_random_predicates_come_back_to_the_tree(
    shared_path: Path, trees: list[Any], simplify: bool
) -> None:
    matcher = Matcher(simplify=simplify, filters_max=FILTERS_MAX)
    for number, tree in enumerate(trees):
        matcher.add(number, wrapped(tree))
    reopen(matcher, shared_path)


@pytest.mark.soak
@given(st.lists(PREDICATES, min_size=1, max_size=6), st.booleans())
def test_very_many_random_predicates_come_back_to_the_tree(
    shared_path: Path, trees: list[Any], simplify: bool
) -> None:
    matcher = Matcher(simplify=simplify, filters_max=FILTERS_MAX)
    for number, tree in enumerate(trees):
        matcher.add(number, wrapped(tree))
    reopen(matcher, shared_path)


def test_a_distance_after_a_hundred_other_operands_comes_back(path: Path) -> None:
    matcher = Matcher()
    numbers = ", ".join(map(str, range(100)))
    matcher.add("a", f"n IN ({numbers}) AND dwithin(geometry, POINT(1 2), 5)")
    reopen(matcher, path)


def test_each_predicate_keeps_its_own_zero_however_it_was_added(path: Path) -> None:
    def alone(number: int) -> str:
        single = Matcher()
        single.add(number, texts[number])
        return repr(single.get(number).predicate)

    texts = [
        text.format(zero)
        for text in (
            "n > {}",
            "A_EQUALS(tags, ({}, 1))",
            "n IN ({}, m)",
            "S_EQUALS(g, POINT({} 1))",
        )
        for zero in ("-0.0", "0.0", "0")
    ]
    one_by_one, at_once = Matcher(), Matcher()
    for number, text in enumerate(texts):
        one_by_one.add(number, text)
    trees = [json.dumps(to_json(one_by_one.get(n).predicate.expression)) for n in one_by_one]
    at_once.add_many(pa.table({"filter": trees}))
    contents = set()
    for matcher in (one_by_one, at_once):
        again = reopen(matcher, path)
        assert [repr(again.get(n).predicate) for n in again] == [
            alone(n) for n in range(len(texts))
        ]
        contents.add(path.read_bytes())
    assert len(contents) == 1


# Ids and subscribers

whole_ids = st.integers(-(2**63), 2**63 - 1) | st.sampled_from((-(2**63), -1, 0, 2**63 - 1))
names = st.none() | whole_ids | st.text(max_size=4)


@given(st.dictionaries(whole_ids, names, max_size=6) | st.dictionaries(st.text(), names))
def test_ids_and_subscribers_of_all_kinds_come_back(
    shared_path: Path, subscribers: dict[Any, Any]
) -> None:
    matcher = Matcher()
    for id_, subscriber in subscribers.items():
        matcher.add(id_, "TRUE", subscriber=subscriber)
    again = reopen(matcher, shared_path)
    assert again.match({}) == sorted(subscribers)
    assert again.subscribers({}) == matcher.subscribers({})
    assert all(id_ in again for id_ in subscribers)


def test_an_empty_matcher_comes_back(path: Path) -> None:
    again = reopen(Matcher(), path)
    assert (len(again), again.match({"n": 1}), list(again)) == (0, [], [])
    assert Matcher().add_many(path) == 0


def test_texts_of_any_script_come_back(path: Path) -> None:
    matcher = Matcher()
    for word in ("größe", "日本", "\U0001f600", "a\0b", "\u202ex", "it's", '"', ""):
        name = (word or "none").replace('"', '""')
        matcher.add(word, f"\"{name}\" = '{word.replace(chr(39), chr(39) * 2)}'", subscriber=word)
    again = reopen(matcher, path)
    assert again.match({"日本": "日本", "größe": "klein"}) == ["日本"]


# The same bytes

Arguments = dict[str, Any]  # of `add`, and the cells of a row


@st.composite
def some_arguments(draw: st.DrawFn) -> Arguments:
    """A filter, or a geometry with what goes with it; small, so that several share operands."""
    subscriber = draw(st.sampled_from((None, None, "u", "v", 7, -(2**63))))
    filters = st.sampled_from(
        (
            *("n > 1", "n > 1.0", "n > 2 AND n > 1", "n > -0.0", "n > 0.0", "s = 'a' OR n > 1"),
            *("NOT (s LIKE 'a%' AND n = 1)", "TRUE", "FALSE", "A_CONTAINS(tags, (0.0, 1))"),
            "A_CONTAINS(tags, (-0.0, 1))",
            f"S_WITHIN(geometry, {SQUARE}) AND n > 1",
            f"S_WITHIN(geometry, {SQUARE}) AND (n > 1 OR S_INTERSECTS(geometry, {SQUARE}))",
        )
    )
    if draw(st.booleans()):
        return {"filter": draw(filters | random_filters), "subscriber": subscriber}
    return {
        "geometry": draw(st.sampled_from((shapely.from_wkt(SQUARE), shapely.Point(-0.0, 1))))
        if draw(st.booleans())
        else draw(geometries()),
        "relation": draw(st.sampled_from([name for name in RELATIONS if name[:2] != "eh"])),
        "attribute": draw(st.sampled_from(("geometry", "area"))),
        "where": draw(st.none() | filters),
        "subscriber": subscriber,
    }


random_filters = PREDICATES.map(lambda tree: json.dumps(wrapped(tree)))


def add_by_table(matcher: Matcher, rows: list[tuple[int, Arguments]], replace: bool) -> None:
    """Add subscriptions by tables; one has subscribers of one kind."""
    for kind in (str, int):
        chosen = [
            (id_, given)
            for id_, given in rows
            if isinstance(given["subscriber"], kind) or (kind is str and not given["subscriber"])
        ]
        columns = [{"id": id_, **as_cells(given)} for id_, given in chosen]
        if columns:
            names = dict.fromkeys(name for row in columns for name in row)
            table = pa.table({name: [row.get(name) for row in columns] for name in names})
            matcher.add_many(table, replace=replace)


def as_cells(given: Arguments) -> Arguments:
    return {
        name: shapely.to_wkb(value) if name == "geometry" else value
        for name, value in given.items()
        if value is not None
    }


def build(wanted: list[tuple[int, Arguments]], chance: random.Random, path: Path) -> Matcher:
    """Make a matcher of the wanted subscriptions in some way, over others that do not stay."""
    matcher = Matcher(filters_max=FILTERS_MAX)
    others = [given for _, given in wanted]
    first = [
        *((id_, chance.choice(others)) for id_, _ in wanted if chance.random() < 0.4),
        *((id_, chance.choice(others)) for id_ in range(100, 100 + chance.randrange(6))),
    ]
    last = wanted.copy()
    for stage in (first, last):
        chance.shuffle(stage)
        while stage:
            size = chance.randrange(1, len(stage) + 1)
            part, stage[:size] = stage[:size], []
            if chance.random() < 0.5:
                add_by_table(matcher, part, replace=True)
            else:
                for id_, given in part:
                    matcher.add(id_, **given, replace=True)
            if chance.random() < 0.3:
                matcher.save(path)
                matcher = Matcher.open(path)
    for id_ in [id_ for id_ in matcher if isinstance(id_, int) and id_ >= 100]:
        matcher.remove(id_)
    return matcher


def compare_histories(path: Path, given: list[Arguments], chance: random.Random) -> None:
    wanted = list(enumerate(given))
    matcher = Matcher(filters_max=FILTERS_MAX)
    for id_, arguments in wanted:
        matcher.add(id_, **arguments)
    matcher.save(path)
    expected = path.read_bytes()
    another = build(wanted, chance, path)
    another.save(path)
    check_same(matcher, another)
    assert path.read_bytes() == expected


several = st.lists(some_arguments(), min_size=1, max_size=6)
chances = st.randoms(use_true_random=False)


@settings(max_examples=100)
@given(several, chances)
def test_the_same_subscriptions_give_the_same_bytes_whatever_came_before(
    shared_path: Path, given: list[Arguments], chance: random.Random
) -> None:
    compare_histories(shared_path, given, chance)


@pytest.mark.soak
@given(several, chances)
def test_very_many_histories_give_the_same_bytes(
    shared_path: Path, given: list[Arguments], chance: random.Random
) -> None:
    compare_histories(shared_path, given, chance)


def test_many_segments_give_the_same_bytes_as_one(path: Path) -> None:
    rng = np.random.default_rng(3)
    shapes = shapely.buffer(shapely.points(rng.uniform(-9, 9, (300, 2))), 1, quad_segs=2)
    wheres = [f"n > {n % 7}" for n in range(300)]
    table = pa.table({"geometry": shapely.to_wkb(shapes), "where": wheres})
    whole, parts = Matcher(), Matcher()
    whole.add_many(table)
    for first in (0, 200, 260, 290, 297):
        rows = table.slice(first, {0: 200, 200: 60, 260: 30, 290: 7, 297: 3}[first])
        numbered = rows.append_column("id", pa.array(range(first, first + rows.num_rows)))
        parts.add_many(numbered)
    assert parts.stats()["segments"] > whole.stats()["segments"] == 1
    whole.save(path)
    expected = path.read_bytes()
    parts.save(path)
    assert path.read_bytes() == expected


# Used where it lies


def test_columns_are_not_copied_from_the_file(path: Path) -> None:
    matcher = Matcher()
    matcher.add_many(pa.table({"filter": [f"n > {n}" for n in range(1000)]}))
    matcher.save(path)
    opened = Matcher.open(path)
    (segment,) = opened._subscriptions._segments
    for array in (segment.rows.columns.pools.bits, segment.rows.columns.expressions.operands):
        assert not array.flags.owndata
        assert not array.flags.writeable


def test_a_file_that_is_replaced_or_removed_does_not_disturb_who_has_it_open(path: Path) -> None:
    matcher = Matcher()
    matcher.add("a", geometry=SQUARE, where="name = 'x'", subscriber="u")
    matcher.save(path)
    opened, other = Matcher.open(path), Matcher()
    assert other.add_many(path) == 1
    replaced = Matcher()
    replaced.add_many(pa.table({"filter": [f"n > {n}" for n in range(500)]}))
    replaced.save(path)
    event = {"geometry": "POINT(1 1)", "name": "x", "n": 7}
    for one in (opened, other):
        check_same(matcher, one)
        assert (one.match(event), one.subscribers(event)) == (["a"], ["u"])
    path.unlink()
    check_same(matcher, opened)
    opened.add("b", "n > 1")
    opened.save(path)
    assert Matcher.open(path).match(event) == ["a", "b"]


def test_an_opened_matcher_is_changed_and_saved_like_any_other(path: Path) -> None:
    matcher = Matcher("crtree")
    for number in range(40):
        matcher.add(number, f"n > {number} AND kind = 'k{number % 3}'", subscriber=number % 5)
    again = reopen(matcher, path)
    for one in (matcher, again):
        one.remove(7)
        one.add(3, geometry=SQUARE, replace=True)
        one.add_many(pa.table({"id": [50, 51], "filter": ["n > 1", "n > 2"]}))
    check_same(matcher, again)
    event = {"n": 30, "kind": "k1", "geometry": "POINT(1 1)"}
    assert again.match(event) == matcher.match(event)
    reopen(again, path)


# Into another matcher

MAKERS: dict[str, Arguments] = {
    "strtree": {"engine": "strtree"},
    "strtree as written": {"engine": "strtree", "simplify": False},
    "crtree": {"engine": "crtree", "split": "constraint"},
    "crtree as written": {"engine": "crtree", "simplify": False},
    "discrete": {
        "engine": "crtree",
        "evaluator": "discrete",
        "density": 3.0,
        "universe": (0.0, 0.0, 12.0, 12.0),
    },
    "scan": {"engine": "scan"},
    "ahs": {"engine": "ahs", "level": 5, "universe": (0.0, 0.0, 12.0, 12.0)},
    "ahs, coarse": {"engine": "ahs", "level": 3, "universe": (0.0, 0.0, 12.0, 12.0)},
}


def make_rows() -> pa.Table:
    """Rows with areas of one part, as all engines take them; some say a thing twice."""
    rng = np.random.default_rng(8)
    shapes = shapely.buffer(shapely.points(rng.uniform(2, 10, (40, 2))), 1.5, quad_segs=3)
    again: Any = shapely.buffer(shapes, 0.3, quad_segs=2)
    relations = ["intersects", "within", "covers", "overlaps"] * 10
    wheres: list[str | None] = [None, "n > 2", "n > 2 AND n > 1", "s = 'a' OR n < 3"] * 10
    for row in range(4, 40, 5):
        wheres[row] = f"S_INTERSECTS(geometry, {again[row].wkt}) AND n < 9"
    return pa.table(
        {
            "id": [f"z{row}" for row in range(40)],
            "geometry": shapely.to_wkb(shapes),
            "relation": relations,
            "where": wheres,
            "subscriber": [None, "u", "v", "w"] * 10,
        }
    )


def make_events() -> pa.Table:
    rng = np.random.default_rng(9)
    shapes: Any = shapely.points(rng.uniform(2, 10, (60, 2)))
    shapes[::2] = shapely.buffer(shapes[::2], 1.2, quad_segs=2)
    return pa.table(
        {
            "geometry": shapely.to_wkb(shapes),
            "n": [i % 7 for i in range(60)],
            "s": ["a", "b", None] * 20,
        }
    )


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("taker", MAKERS)
def test_a_file_of_any_engine_answers_as_if_its_rows_were_added(
    path: Path, maker: str, taker: str
) -> None:
    made, taken, direct = (Matcher(**MAKERS[name]) for name in (maker, taker, taker))
    made.add_many(make_rows())
    made.save(path)
    assert taken.add_many(path) == direct.add_many(make_rows()) == 40
    events = make_events()
    answer = direct.match_many(events)
    assert answer.num_rows > 50
    assert taken.match_many(events).equals(answer)
    for event in events.slice(0, 10).to_pylist():
        assert taken.match(event) == direct.match(event)
        assert taken.subscribers(event) == direct.subscribers(event)
    if not MAKERS[taker].get("simplify", True) or taker.startswith(("ahs", "discrete")):
        assert [taken.get(id_) for id_ in taken] == [direct.get(id_) for id_ in direct]


def write_both(folder: Path, matcher: Matcher) -> list[Path]:
    """Save a matcher in each format."""
    paths = [folder / f"format-{format_}.contrada" for format_ in FORMATS]
    for format_, path in zip(FORMATS, paths, strict=True):
        save_as(format_, matcher, path)
    return paths


def three() -> Matcher:
    matcher = Matcher()
    matcher.add("a", "n > 1", subscriber="u")
    matcher.add("b", geometry=SQUARE, where="n > 1", subscriber="v")
    matcher.add("c", "n > 2", subscriber="w")
    return matcher


def test_what_is_taken_is_refused_as_of_rows_and_nothing_is_added(tmp_path: Path) -> None:
    messages = []
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        matcher.add("b", "TRUE")
        matcher.add("x", "TRUE")
        with pytest.raises(InvalidInput, match="row 1, id 'b': the id 'b' is already taken") as one:
            matcher.add_many(path)
        matcher.add("a", "TRUE")
        with pytest.raises(BadRows, match="2 of 3 subscriptions cannot be used") as two:
            matcher.add_many(path)
        messages.append([str(e.value).replace(path.name, "") for e in (one, two)])
        assert list(matcher) == ["a", "b", "x"]
        assert all(matcher.get(id_).text == "TRUE" for id_ in matcher)
    assert messages[0] == messages[1]


def test_with_replace_those_of_the_file_take_the_place_of_others(tmp_path: Path) -> None:
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        for id_ in ("b", "x"):
            matcher.add(id_, "TRUE")
        assert matcher.add_many(path, replace=True) == 3
        assert matcher.add_many(path, replace=True) == 3
        assert list(matcher) == ["a", "b", "c", "x"]
        assert matcher.match({"n": 2}) == ["a", "x"]


def test_quarantine_and_on_bad_work_as_for_rows(tmp_path: Path) -> None:
    told: list[list[Any]] = []
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        matcher.add("b", "TRUE")
        assert matcher.add_many(path, quarantine=True) == 2
        assert (list(matcher), matcher.stats()["subscriptions_left_out"]) == (["a", "b", "c"], 1)
        bad: list[Any] = []
        other = Matcher()
        other.add("c", "TRUE")
        other.add_many(path, quarantine=True, on_bad=lambda *row, bad=bad: bad.append(row))
        assert Matcher().add_many(path, on_bad=lambda *row, bad=bad: bad.append(row)) == 3
        told.append(bad)
    assert told[0] == told[1] == [(2, "c", "the id 'c' is already taken")]


def test_another_column_of_ids_is_taken_as_of_rows(tmp_path: Path) -> None:
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        assert matcher.add_many(path, id="subscriber") == 3
        assert list(matcher) == ["u", "v", "w"]
        assert matcher.get("v").text == three().get("b").text
        with pytest.raises(InvalidInput, match=rf'{path.name}.*"?nothing"?'):
            matcher.add_many(path, id="nothing")


def test_repair_finds_nothing_to_mend_and_adds_all(tmp_path: Path) -> None:
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        assert matcher.add_many(path, repair=True) == 3
        assert matcher.stats()["subscriptions_mended"] == 0
        check_same(three(), matcher)


def test_what_an_engine_does_not_take_is_refused_as_of_rows(tmp_path: Path) -> None:
    matcher = three()
    matcher.add("d", geometry=shapely.box(0, 0, 9, 9).difference(shapely.box(1, 1, 2, 2)))
    messages = []
    for path in write_both(tmp_path, matcher):
        discrete = Matcher(**MAKERS["discrete"])
        with pytest.raises(InvalidInput, match=r"row 3, id 'd': .*without holes") as caught:
            discrete.add_many(path)
        assert len(discrete) == 0
        assert discrete.add_many(path, quarantine=True) == 3
        messages.append(str(caught.value).replace(path.name, ""))
    assert messages[0] == messages[1]


def test_more_filters_than_the_matcher_allows_are_refused_as_of_rows(tmp_path: Path) -> None:
    matcher = three()
    matcher.add("d", "n = 1 OR m = 2 OR s = 'x'")
    messages = []
    for path in write_both(tmp_path, matcher):
        strict = Matcher(filters_max=2)
        with pytest.raises(InvalidInput, match=r"row 3, id 'd', .*more than 2 filters") as caught:
            strict.add_many(path)
        assert len(strict) == 0
        messages.append(str(caught.value).replace(path.name, ""))
    assert messages[0] == messages[1]


def test_ids_of_another_kind_are_refused(tmp_path: Path) -> None:
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        matcher.add(1, "TRUE")
        with pytest.raises(InvalidInput, match=rf"{path.name}: .*all strings or all integers"):
            matcher.add_many(path)
        assert list(matcher) == [1]


def test_another_coordinate_system_is_refused(tmp_path: Path) -> None:
    projected = Matcher(crs="EPSG:2154")
    projected.add("a", geometry=SQUARE)
    for path in write_both(tmp_path, projected):
        matcher = Matcher(crs="EPSG:4326")
        with pytest.raises(InvalidInput, match=rf"{path.name} is in EPSG:2154, the matcher in"):
            matcher.add_many(path)
        fresh = Matcher()
        fresh.add_many(path)
        assert fresh.crs == "EPSG:2154"


def test_a_coordinate_system_that_is_none_is_refused(path: Path) -> None:
    three().save(path)
    write_settings(path, {**open_sections(path).settings, "crs": "nowhere"})
    matcher = Matcher()
    with pytest.raises(InvalidInput, match=r'fences\.contrada: unknown coordinate system "nowher'):
        matcher.add_many(path)
    assert (len(matcher), matcher.crs) == (0, None)


def test_subscriptions_of_an_engine_that_is_not_known_here_are_added_all_the_same(
    path: Path,
) -> None:
    three().save(path)
    write_settings(path, {**open_sections(path).settings, "engine": "quux", "options": {"a": 1}})
    matcher = Matcher()
    assert matcher.add_many(path) == 3
    check_same(three(), matcher)


def test_capitals_in_the_suffix_make_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "FENCES.CONTRADA"
    three().save(path)
    assert Matcher().add_many(path) == 3


def test_columns_are_no_events(path: Path) -> None:
    three().save(path)
    with pytest.raises(InvalidInput, match=r"fences\.contrada: .*it holds columns, not rows"):
        three().match_many(path)


# On the command line


def test_the_command_matches_and_keeps_what_a_file_of_either_format_holds(tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("id,wkt,n\n7,POINT(1 1),2\n8,POINT(9 9),5\n")
    outputs = []
    for path in write_both(tmp_path, three()):
        out = tmp_path / "pairs.jsonl"
        kept = [f"subscription.{name}" for name in ("subscriber", "relation", "where")]
        options = [option for name in kept for option in ("--keep", name)]
        assert main(["match", str(path), str(events), "-o", str(out), *options]) == 0
        outputs.append(out.read_text())
    assert outputs[0] == outputs[1]
    rows = [json.loads(line) for line in outputs[0].splitlines()]
    assert [(row["event"], row["subscription"]) for row in rows] == [
        *((7, "a"), (7, "b"), (8, "a"), (8, "c")),
    ]
    assert rows[1]["subscription.subscriber"] == "v"
    assert rows[1]["subscription.relation"] == "intersects"
