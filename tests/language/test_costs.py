"""What a predicate or a value costs is bounded by its size.

Each of these took minutes once, or all memory. None is timed: one that explodes again runs into
the time limit of all tests.
"""

import re
import unicodedata
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from contrada import InvalidInput, Matcher
from contrada.language import make_predicate, read, to_json, to_text, truth
from contrada.language.array_tests import compare_arrays
from contrada.language.distance import (
    _bounds,
    _chords_of,
    _distances,
    _gaps_m,
    _places_in_space,
    is_within,
)
from contrada.language.values import every, is_unknown, some, strip_accents
from contrada.limits import (
    ARRAY_DEPTH_MAX,
    LIKE_PATTERN_LENGTH_MAX,
    PREDICATE_ATOMS_MAX,
    PREDICATE_LENGTH_MAX,
)
from contrada.model.event import Event


def truth_of(text: str, **attributes: Any) -> bool | None:
    return truth(read(text), Event(attributes))


def refusal(source: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        make_predicate(read(source))
    return str(caught.value)


# Arrays


def nest(depth: int, leaf: Any = 1) -> Any:
    array = [leaf, 2]
    for _ in range(depth):
        array = [array, [3, 4]]
    return array


@pytest.mark.parametrize("leaf", [1, None, "2021-01-01"])
def test_arrays_nested_deep_are_compared(leaf: Any) -> None:
    depth = ARRAY_DEPTH_MAX - 1
    same, other = nest(depth, leaf), nest(depth, 7)
    expected = None if leaf is None else True
    assert truth_of("A_EQUALS(a, b)", a=same, b=nest(depth, leaf)) is expected
    assert truth_of("A_EQUALS(a, b)", a=same, b=other) is (None if leaf is None else False)


def test_arrays_nested_too_deep_are_unknown() -> None:
    for depth in (ARRAY_DEPTH_MAX + 1, 100_000):
        assert truth_of("A_EQUALS(a, b)", a=nest(depth), b=nest(depth)) is None
        assert truth_of("NOT A_OVERLAPS(a, b)", a=nest(depth), b=[1]) is None


def test_what_cannot_be_compared_is_not_even_in_its_own_array() -> None:
    for array in ([{}, 1], [[b"x"], 1], [object()]):
        assert truth_of("A_CONTAINS(a, a)", a=array) is False
        assert truth_of("A_EQUALS(a, a)", a=array) is False
    assert truth_of("A_CONTAINS(a, a)", a=[{}, None]) is None


def test_an_array_that_stands_in_many_places_is_read_once_and_one_in_itself_is_unknown() -> None:
    shared: list[Any] = [1]
    for _ in range(90):
        shared = [shared, shared]
    assert truth_of("A_EQUALS(a, b)", a=shared, b=shared) is True
    shared[0] = shared
    assert truth_of("A_EQUALS(a, b)", a=shared, b=shared) is None


def test_arrays_nested_deep_in_a_predicate_are_read() -> None:
    text = "(1, 2)"
    for _ in range(60):
        text = f"({text}, (3, 4))"
    assert truth_of(f"A_EQUALS({text}, {text})") is True
    assert truth_of(f"A_CONTAINS({text}, a)", a=[[4, 3]]) is True


def test_long_lists_are_compared() -> None:
    numbers = list(range(20_000))
    assert truth_of("A_EQUALS(a, b)", a=numbers, b=numbers[::-1]) is True
    assert truth_of("A_OVERLAPS(a, b)", a=numbers, b=[-n for n in numbers[1:]]) is False
    pairs = [[n, -n] for n in numbers]
    assert truth_of("A_EQUALS(a, b)", a=pairs, b=[[-n, n] for n in numbers]) is True
    times = [np.datetime64("2021-01-01") + n for n in range(5_000)]
    assert truth_of("A_EQUALS(a, b)", a=times, b=[str(time) for time in times]) is True


def test_many_arrays_with_nulls_are_compared_with_each_other_up_to_a_limit() -> None:
    vague = [[n, None] for n in range(2_000)]
    assert truth_of("A_EQUALS(a, b)", a=vague[:100], b=vague[:100]) is None
    assert truth_of("A_EQUALS(a, b)", a=vague, b=[*vague, [-1]]) is None


def holds(array: Any, element: Any) -> bool | None:
    return some(equal(element, other) for other in array)


def equal(a: Any, b: Any) -> bool | None:
    """The slow and obvious twin: elements are compared one by one."""
    if is_unknown(a) or is_unknown(b):
        return None
    if isinstance(a, list) and isinstance(b, list):
        return every([*(holds(a, x) for x in b), *(holds(b, x) for x in a)])
    if isinstance(a, list) or isinstance(b, list):
        return False
    return truth_of("a = b", a=a, b=b) is True


ELEMENTS = st.recursive(
    st.sampled_from([0, 1.0, True, "1", "2021-01-01", np.datetime64("2021-01-01"), None, b"x"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=12,
)
ARRAYS = st.lists(ELEMENTS, max_size=4)


@given(ARRAYS, ARRAYS)
def test_arrays_are_compared_as_if_element_by_element(a: list[Any], b: list[Any]) -> None:
    contains = every(holds(a, element) for element in b)
    contained = every(holds(b, element) for element in a)
    assert compare_arrays("a_contains", a, b) is contains
    assert compare_arrays("a_containedBy", a, b) is contained
    assert compare_arrays("a_equals", a, b) is every((contains, contained))
    assert compare_arrays("a_overlaps", a, b) is some(holds(a, element) for element in b)


# Texts of predicates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 60 + "a = 1", "unmatched ( at character 59"),
        ("(" * 60 + "a = 1" + ")" * 61, "unmatched ) at character 125"),
        ("(" * 60 + "a = = 1" + ")" * 60, 'syntax error at character 64, near "= 1)))'),
        ("(" * 60 + "a LIEK 1" + ")" * 60, 'unknown operator "LIEK" at character 62'),
        ("A_EQUALS(a, " + "((1), " * 60 + "= 2" + ")" * 61, "syntax error at character 372"),
    ],
)
def test_an_error_deep_in_parentheses_is_found(text: str, message: str) -> None:
    assert refusal(text).startswith(message)


def test_parentheses_mean_the_same_however_many_there_are() -> None:
    deep = "(" * 60 + "a = 1" + ")" * 60
    assert read(deep) == read("a = 1")
    assert read(f"NOT{deep}AND(((b IN (((1)), 2))))") == read("NOT a = 1 AND b IN (1, 2)")
    assert read("-(((a))) + ((((2)))) > (((CASEI(((b))))))") == read("-(a) + 2 > CASEI(b)")
    assert read("a BETWEEN (((1))) AND (((2)))") == read("a BETWEEN 1 AND 2")
    assert read("S_WITHIN(g, (((POINT(1 2)))))") == read("S_WITHIN(g, POINT(1 2))")


def test_a_long_text_is_read_and_a_longer_one_refused() -> None:
    letters = "x" * 5_000_000
    assert truth_of(f"a = '{letters}'", a=letters) is True
    quotes = "''" * 1_000_000
    assert truth_of(f"a = '{quotes}'", a="'" * 1_000_000) is True
    assert truth_of(f"a = {' ' * 1_000_000} 1", a=1) is True
    for source in (" " * PREDICATE_LENGTH_MAX + "a", "{" + " " * PREDICATE_LENGTH_MAX):
        assert refusal(source) == (
            "a predicate may have at most 67,108,864 characters (PREDICATE_LENGTH_MAX), "
            "not 67,108,865"
        )


def test_a_predicate_of_too_many_atoms_is_refused() -> None:
    numbers = ", ".join(["1"] * PREDICATE_ATOMS_MAX)
    what = "more than 100,000 names, numbers, strings and geometries (PREDICATE_ATOMS_MAX)"
    assert refusal(f"a IN ({numbers})") == f"{what} at character {3 * PREDICATE_ATOMS_MAX + 3}"
    tree = {"op": "in", "args": [{"property": "a"}, [1] * 4 * PREDICATE_ATOMS_MAX]}
    assert refusal(tree) == f"{what} at $"


@pytest.mark.parametrize("sign", [",", ")", "a "])
def test_a_text_of_nothing_but_signs_is_refused(sign: str) -> None:
    assert re.search("PREDICATE_(TOKENS|ATOMS)_MAX|syntax error", refusal(sign * 1_100_000))


def test_what_is_refused_may_be_deep_and_long() -> None:
    deep: Any = 1
    for _ in range(50_000):
        deep = {"x": deep}
    assert "is not a CQL2 expression at $" in refusal(
        {"op": "=", "args": [{"property": "a"}, deep]}
    )
    assert len(refusal(f"t = DATE('{'9' * 1_000_000}')")) < 300
    huge = {"op": "dwithin", "args": [{"property": "g"}, {"property": "h"}, -(10**300)]}
    assert "the distance must be a number of metres >= 0" in refusal(huge)


# Normal form


def choice(count: int) -> str:
    either = " OR ".join(f"a = {i}" for i in range(count))
    return f"({either}) AND {' AND '.join(f'b <> {i}' for i in range(count))}"


def test_an_or_with_many_ands_is_brought_into_normal_form_or_refused() -> None:
    assert len(make_predicate(read(choice(200))).filters) == 200
    matcher = Matcher()
    matcher.add("some", choice(200))
    assert matcher.match({"a": 7, "b": -1}) == ["some"]
    assert matcher.match({"a": 7, "b": 199}) == []
    assert refusal(choice(1_000)) == (
        "the predicate has more than 65,536 constraints in disjunctive normal form "
        "(CONSTRAINTS_MAX); split it into several subscriptions"
    )


def test_filters_that_join_to_few_by_many_steps_are_refused() -> None:
    pairs = [f"(p{i} OR q{i})" for i in range(6)]
    few = " AND ".join([*pairs, *pairs, *pairs[:1] * 200])
    assert len(make_predicate(read(few)).filters) == 3**6
    many = " AND ".join([*pairs, *pairs, *pairs[:1] * 2_000])
    assert "2,000,000 steps to its disjunctive normal form (NORMAL_FORM_STEPS_MAX)" in refusal(many)


def test_thousands_of_ands_are_added() -> None:
    matcher = Matcher()
    matcher.add("different", " AND ".join(f"a{i} = {i}" for i in range(4_000)))
    matcher.add("one attribute", " AND ".join(f"a <> {i}" for i in range(4_000)))
    assert matcher.match({"a": -1}) == ["one attribute"]
    assert matcher.match({f"a{i}": i for i in range(4_000)}) == ["different"]


def test_thousands_of_regions_in_one_filter_are_added() -> None:
    boxes = (f"S_INTERSECTS(g, BBOX({i}, 0, {i + 2_000}, 9))" for i in range(1_500))
    matcher = Matcher()
    matcher.add("all", " AND ".join(boxes))
    assert matcher.match({"g": "POINT(1800 5)"}) == ["all"]
    assert matcher.match({"g": "POINT(1 5)"}) == []


# Texts and distances


def test_a_text_of_nothing_but_accents_is_stripped() -> None:
    marks = "\u0301\u0327" * 100_000  # two classes, always in the wrong order
    assert strip_accents(f"a{marks}e") == "ae"
    signs = "\U0001d165\U00016ff0" * 50_000  # no accents, and yet combining
    assert strip_accents(f"\u00e9{signs}") == f"e{''.join(sorted(signs))}"


@given(
    st.text(st.sampled_from("aé\u0301\u0327\u0344\U0001d15e\U0001d165\U00016ff0ể한ﬁ"), max_size=8)
)
def test_accents_are_those_of_the_decomposed_text(text: str) -> None:
    letters = (c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    assert strip_accents(text) == unicodedata.normalize("NFC", "".join(letters))


def test_a_pattern_that_is_too_long_is_refused_and_in_an_event_unknown() -> None:
    pattern = "_" * (LIKE_PATTERN_LENGTH_MAX + 1)
    assert refusal(f"a LIKE '{pattern}'") == (
        "a pattern may have at most 1,000 characters (LIKE_PATTERN_LENGTH_MAX), not 1,001, "
        f'at character 7, near "\'{"_" * 23}"'
    )
    assert truth_of("a LIKE b", a=pattern, b=pattern) is None
    assert truth_of("a LIKE b", a=pattern[1:], b=pattern[1:]) is True


@pytest.mark.parametrize("latitude", [0, 60, 89.9999, -60, -85, -89.9])
@pytest.mark.parametrize("short_m", [1, 0.01])
def test_an_edge_round_a_place_just_too_far_away_is_soon_decided(
    latitude: float, short_m: float
) -> None:
    radius_m = Geod(ellps="WGS84").inv(0, latitude, 0, 90)[2]
    pole, circle = shapely.Point(0, 90), shapely.LineString([(-180, latitude), (180, latitude)])
    is_hard = latitude == -89.9 and short_m == 0.01  # nearly at the antipodes, where all is near
    assert is_within(pole, circle, radius_m - short_m) is (None if is_hard else False)
    assert is_within(pole, circle, radius_m + short_m) is True


def test_what_is_not_decided_in_time_is_unknown_and_so_is_its_negation() -> None:
    radius_m = Geod(ellps="WGS84").inv(0, -89.9, 0, 90)[2] - 0.01
    matcher = Matcher()
    matcher.add("near", f"dwithin(geometry, LINESTRING(-180 -89.9, 180 -89.9), {radius_m!r})")
    matcher.add("far", f"NOT dwithin(geometry, LINESTRING(-180 -89.9, 180 -89.9), {radius_m!r})")
    pole = {"geometry": "POINT(0 90)"}
    assert matcher.match(pole) == []
    assert "not decided: DISTANCE_PIECES_MAX" in str(matcher.why("far", pole))
    elsewhere = {"geometry": "POINT(200 90)"}
    assert "not decided" not in str(matcher.why("far", elsewhere))


@pytest.mark.parametrize("kind", ["anywhere", "antipodes", "poles", "near"])
def test_no_two_points_of_two_pieces_are_nearer_than_their_bound(kind: str) -> None:
    random = np.random.default_rng(5)
    count = 300
    p = np.stack([random.uniform(-180, 180, count), random.uniform(-89, 89, count)], axis=1)
    q = np.stack([random.uniform(-180, 180, count), random.uniform(-89, 89, count)], axis=1)
    if kind == "antipodes":
        q = np.stack([p[:, 0] % 360 - 180, -p[:, 1]], axis=1) + random.normal(0, 3, (count, 2))
    if kind == "poles":
        p[:, 1] = 90 - 10 ** random.uniform(-5, 1, count)
    if kind == "near":
        q = p + random.normal(0, 2, (count, 2))
    pieces = []
    for middle in (p, q):
        step = 10 ** random.uniform(-4, 1, (count, 1)) * random.normal(0, 1, (count, 2))
        ends = np.hstack([middle - step, middle + step])
        ends[:, 0::2], ends[:, 1::2] = ends[:, 0::2].clip(-180, 180), ends[:, 1::2].clip(-90, 90)
        pieces.append(ends)
    left, right = pieces
    right[::3, 2:] = right[::3, :2]
    _, least = _bounds(left, right)
    gaps = _gaps_m(left, right)
    for a in np.linspace(0, 1, 9):
        for b in np.linspace(0, 1, 9):
            one = left[:, :2] * (1 - a) + left[:, 2:] * a
            other = right[:, :2] * (1 - b) + right[:, 2:] * b
            distances = _distances(one, other)
            assert (distances >= least - 1e-3).all()
            chords = np.linalg.norm(_places_in_space(one) - _places_in_space(other), axis=1)
            assert (chords >= gaps - 1e-3).all()
            bounds = np.array([_chords_of(distance) for distance in distances])
            assert (bounds[:, 0] <= chords + 1e-3).all()
            assert (bounds[:, 1] >= chords - 1e-3).all()


def test_many_points_at_nearly_the_distance_of_many_edges_are_decided_or_given_up_soon() -> None:
    turns = np.linspace(0, 360, 3_000, endpoint=False)
    xy = Geod(ellps="WGS84").fwd(0 * turns, 0 * turns, turns, 0 * turns + 11_000)
    ring = shapely.LineString(np.stack(xy[:2], axis=1))
    spread = np.stack([np.cos(turns), np.sin(turns)], axis=1) * 1e-9
    centre = shapely.MultiPoint(spread)
    few = shapely.MultiPoint(spread[:100])
    assert is_within(ring, few, 10_999) is False
    assert is_within(ring, centre, 10_999) is None
    assert is_within(ring, centre, 11_001) is True
    assert is_within(ring, shapely.MultiPoint([*spread, (0.5, 0)]), 10_999) is None
    assert is_within(ring, shapely.MultiPoint([*spread, (0.05, 0)]), 10_999) is True


def test_lists_within_lists_are_read_and_errors_in_them_found() -> None:
    deep = "n IN (" * 40 + "1" + ")" * 40
    assert refusal("n IN (" * 40 + "t_before(u ,)" + ")" * 40).startswith("syntax error at char")
    assert read(deep) == read("n IN (" * 39 + "(n IN (1))" + ")" * 39)
    assert read("(((n IN (1, 2, (3)))))") == read("n IN (1, 2, 3)")
    assert read("(((n IN (1))))") == read("n IN (1)")


def test_arrays_of_one_array_are_written() -> None:
    lone: Any = [1]
    for _ in range(80):
        lone = [lone]
    tree = {"op": "a_equals", "args": [{"property": "a"}, lone]}
    assert len(to_text(read(tree))) < 10_000
    assert to_json(read(tree)) == tree
