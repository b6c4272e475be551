"""Snapshots of format 2: every subscription comes back, and the same ones give the same bytes."""

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

from contrada import Matcher
from contrada.language import to_json
from contrada.language.operators import SIGNATURES
from contrada.model.relation import RELATIONS
from language.test_random_predicates import PREDICATES
from snapshots import check_same
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
