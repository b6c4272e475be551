"""The evaluator `discrete`: what it takes, what it refuses, and that nothing slips past it."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from shapely import MultiPolygon, Point, Polygon, box

from contrada import InvalidInput, Matcher
from contrada.showing import brief

NAN, INF = float("nan"), float("inf")
SQUARE = box(0, 0, 4, 4)
HOLED = Polygon(box(1, 1, 3, 3).exterior, [box(1.5, 1.5, 2, 2).exterior])
TWO_PARTS = MultiPolygon([box(0, 0, 1, 1), box(2, 2, 3, 3)])
FAR = Polygon(box(70, 70, 80, 80).exterior, [box(72, 72, 74, 74).exterior])
LONG = box(0, 0, 1e6, 1e6)  # some 15 million points
UNDECIDED = [
    pytest.param(HOLED, "one part without holes, not a Polygon with 1 hole", id="hole"),
    pytest.param(TWO_PARTS, "one part without holes, not a MultiPolygon of 2 parts", id="parts"),
    pytest.param(FAR, "one part without holes", id="hole-far-from-everything"),
    pytest.param(LONG, "14,814,820 points .* 1,000,000 .*universe.*density", id="long"),
]


def make(**options: Any) -> Matcher:
    return Matcher("crtree", evaluator="discrete", **options)


def watching(relation: str = "overlaps") -> Matcher:
    matcher = make()
    matcher.add("square", geometry=SQUARE, relation=relation, subscriber="u")
    return matcher


# Options


@pytest.mark.parametrize(
    "density",
    [
        *(-1.0, 1e300, INF, -INF, NAN, 5e-324, 0.5, "2000", None, True, [2_000], 10**400),
        *(np.timedelta64(5, "s"), np.datetime64("2020-01-01"), np.float16(0.5)),
    ],
)
def test_a_density_that_makes_no_sense_is_refused_with_its_value(density: Any) -> None:
    with pytest.raises(InvalidInput, match="density must be 0 or a number from 1 to") as refusal:
        make(density=density)
    assert f"not {brief(density)}" in str(refusal.value)


@pytest.mark.parametrize("density", [0, 1, 12.5, np.float64(7), np.int64(2_000), 1e9])
def test_a_density_that_makes_sense_is_taken(density: Any) -> None:
    matcher = make(density=density)
    matcher.add("small", geometry=box(0, 0, 0.01, 0.01), relation="ehContains")
    assert matcher.match({"geometry": box(-0.01, -0.01, 0.05, 0.05)}) == ["small"]


@pytest.mark.parametrize(
    "universe", [(0, 0, 1), (0, 0, 1, 1, 1), "0011", ("0", "0", "1", "1"), None, 7, (0, 0, 1, True)]
)
def test_a_universe_that_is_not_four_numbers_is_refused_with_its_value(universe: Any) -> None:
    message = "universe must be west, south, east, north, not "
    for engine in ("crtree", "ahs"):
        options: dict[str, Any] = {"evaluator": "discrete"} if engine == "crtree" else {}
        with pytest.raises(InvalidInput, match=message) as refusal:
            Matcher(engine, universe=universe, **options)
        assert repr(universe) in str(refusal.value)


@pytest.mark.parametrize(
    ("universe", "message"),
    [
        ((1, 1, 0, 0), r"\(1.0, 1.0, 0.0, 0.0\) must be .*west < east and south < north"),
        ((0, 0, 1, 0), "west < east and south < north"),
        ((0, 0, NAN, 1), "west < east and south < north"),
        ((-INF, 0, 1, 1), "between 1e-100 and 1e.100 wide and high"),
        ((0, 0, 1, INF), "between 1e-100 and 1e.100 wide and high"),
        ((-1e308, -1e308, 1e308, 1e308), "between 1e-100 and 1e.100 wide and high"),
        ((0, 0, 1e-320, 1), "between 1e-100 and 1e.100 wide and high"),
        ((0, 0, 10**400, 1), "must be west, south, east, north"),
    ],
)
def test_a_universe_that_is_no_box_is_refused_with_its_value(universe: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"universe.*{message}"):
        make(universe=universe)
    with pytest.raises(InvalidInput, match=f"universe.*{message}"):
        Matcher("ahs", universe=universe)


def test_a_universe_may_be_a_list_or_an_array() -> None:
    for universe in ([0, 0, 10, 10], np.array([0, 0, 10, 10])):
        matcher = make(universe=universe)
        matcher.add("square", geometry=SQUARE)
        assert matcher.match({"geometry": box(1, 1, 9, 9)}) == ["square"]


@pytest.mark.parametrize(
    ("option", "value"), [("density", 100), ("universe", (0, 0, 1, 1)), ("halo", True)]
)
def test_what_belongs_to_the_discrete_evaluator_is_refused_without_it(
    option: str, value: Any
) -> None:
    for options in ({option: value}, {option: value, "evaluator": "exact"}):
        words = f"{option} .*is only allowed with evaluator='discrete'"
        with pytest.raises(InvalidInput, match=words):
            Matcher("crtree", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluator": ["exact"]}, r"unknown evaluator \['exact'\]; choose one of exact, discrete"),
        ({"evaluator": None}, "unknown evaluator None"),
        ({"split": {}}, r"unknown split \{\}; choose one of quadratic, constraint"),
        ({"split": 1}, "unknown split 1"),
        ({"halo": "no", "evaluator": "discrete"}, "halo must be True or False, not 'no'"),
        ({"halo": None, "evaluator": "discrete"}, "halo must be True or False, not None"),
        ({"simplify": "no"}, "simplify must be True or False, not 'no'"),
        ({"simplify": None}, "simplify must be True or False, not None"),
        ({"filters_max": True}, "filters_max must be a number >= 1, not True"),
        ({"filters_max": "9"}, "filters_max must be a number >= 1, not '9'"),
        ({"filters_max": 0}, "filters_max must be a number >= 1, not 0"),
    ],
)
def test_an_option_of_a_wrong_type_is_refused_with_its_value(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        Matcher("crtree", **options)


@pytest.mark.parametrize("engine", [[], None, {}, 3, b"crtree"])
def test_an_engine_is_named_by_a_text(engine: Any) -> None:
    with pytest.raises(InvalidInput, match=r"unknown engine .*; choose one of strtree"):
        Matcher(engine)


# Subscriptions


@pytest.mark.parametrize(("geometry", "message"), UNDECIDED)
def test_a_subscription_that_cannot_be_decided_is_refused_and_says_so_once(
    geometry: Polygon, message: str
) -> None:
    matcher = make()
    with pytest.raises(InvalidInput, match=f"^subscription 'h': .*{message}") as refusal:
        matcher.add("h", geometry=geometry)
    assert str(refusal.value).count("subscription 'h'") == 1
    table = pa.table({"id": ["a", "h"], "geometry": [SQUARE.wkb, geometry.wkb]})
    with pytest.raises(InvalidInput, match=f"^table, row 1, id 'h': .*{message}"):
        matcher.add_many(table)
    assert len(matcher) == 0


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")  # GEOS's
def test_nothing_is_so_large_that_it_is_not_refused() -> None:
    for matcher in (make(), make(density=0)):
        with pytest.raises(InvalidInput, match=r"points|long"):
            matcher.add("h", geometry=box(-1e308, -1e308, 1e308, 1e308))
        with pytest.raises(InvalidInput, match=r"points|long"):
            matcher.add("h", geometry=box(0, 0, 1e160, 1e160))


def test_a_region_outside_the_universe_is_one_like_any_other() -> None:
    matcher = make(universe=(0, 0, 1, 1), density=100)
    matcher.add("square", geometry=SQUARE, relation="ehOverlap")
    assert matcher.match({"geometry": box(2, 2, 9, 9)}) == ["square"]


def test_a_multipolygon_of_one_part_is_that_part() -> None:
    alone = MultiPolygon([SQUARE])
    matcher = make()
    matcher.add("multi", geometry=alone, relation="overlaps")
    matcher.add("plain", geometry=SQUARE, relation="overlaps")
    matcher.add("filter", f"NOT ehDisjoint(geometry, {alone.wkt})")
    event = box(2, 2, 6, 6)
    assert matcher.match({"geometry": event}) == ["filter", "multi", "plain"]
    assert matcher.match({"geometry": MultiPolygon([event])}) == ["filter", "multi", "plain"]
    with pytest.raises(InvalidInput, match="MultiPolygon with 1 hole"):
        matcher.add("h", geometry=MultiPolygon([HOLED]))


# Events


def ways_of_matching(matcher: Matcher) -> list[tuple[str, Callable[[dict[str, Any]], Any]]]:
    return [
        ("the event, attribute", matcher.match),
        ("the event, attribute", matcher.subscribers),
        ("the event, attribute", lambda event: matcher.why("square", event)),
        ("row 1, attribute", lambda event: matcher.match_many([{}, event])),
        (
            "table, row 1, column",
            lambda event: matcher.match_many(as_table([SQUARE, *event.values()])),
        ),
    ]


def as_table(shapes: list[Any]) -> pa.Table:
    return pa.table({"geometry": [shapely.to_wkb(shape) for shape in shapes]})


@pytest.mark.parametrize("relation", ["overlaps", "disjoint", "within"])
@pytest.mark.parametrize(("geometry", "message"), UNDECIDED)
def test_an_event_that_cannot_be_decided_is_refused_with_its_place_in_every_way_of_matching(
    geometry: Polygon, message: str, relation: str
) -> None:
    for place, run in ways_of_matching(watching(relation)):
        with pytest.raises(InvalidInput, match=f"^{place} 'geometry': .*{message}"):
            run({"geometry": geometry})


@pytest.mark.parametrize("form", ["table", "list"])
@pytest.mark.parametrize("repair", [True, False])
@pytest.mark.parametrize(("geometry", "message"), UNDECIDED)
def test_an_event_that_cannot_be_decided_is_left_out_and_reported_like_any_other_bad_row(
    geometry: Polygon, message: str, repair: bool, form: str
) -> None:
    matcher, heard = watching(), []
    shapes = [box(2, 2, 6, 6), geometry, Point(1, 1), box(3, 3, 7, 7)]
    events: Any = as_table(shapes) if form == "table" else [{"geometry": s} for s in shapes]
    found = matcher.match_many(
        events, repair=repair, quarantine=not repair, on_bad=lambda *bad: heard.append(bad)
    )
    assert found["event"].to_pylist() == [0, 3]
    ((row, id_, reason),) = heard
    assert (row, id_) == (1, 1)
    assert re.search(message, reason)
    assert not reason.startswith("mended")
    stats = matcher.stats()
    assert (stats["events"], stats["events_mended"], stats["events_left_out"]) == (4, 0, 1)


BOW_TIE = Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])


@pytest.mark.parametrize("events", [as_table([BOW_TIE]), [{"geometry": BOW_TIE}]])
def test_an_event_that_falls_apart_when_it_is_mended_is_left_out(events: Any) -> None:
    matcher, heard = watching(), []
    matcher.match_many(events, repair=True, on_bad=lambda *bad: heard.append(bad))
    assert "MultiPolygon of 2 parts" in heard[0][2]
    assert matcher.stats()["events_left_out"] == 1


def test_an_attribute_that_no_subscription_relates_may_hold_any_region() -> None:
    matcher = watching()
    event = {"geometry": box(2, 2, 6, 6), "other": HOLED}
    assert matcher.match(event) == ["square"]
    table = pa.table({name: [shape.wkb] for name, shape in event.items()})
    assert matcher.match_many(table).num_rows == 1
    assert make().match({"geometry": HOLED}) == []


def test_an_exact_evaluator_takes_events_of_any_shape() -> None:
    matcher = Matcher("crtree")
    matcher.add("square", geometry=SQUARE)
    for geometry in (HOLED, TWO_PARTS, LONG):
        assert matcher.match({"geometry": geometry}) == ["square"]


def test_no_warning_escapes_from_the_judgement() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match="points"):
            make().add("h", geometry=box(0, 0, 1e149, 1e149))
