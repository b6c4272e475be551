"""Events mean the same as columns of a batch as they mean one by one, whatever they have."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import shapely

from contrada import Matcher
from contrada.broker.feature_columns import group_joinable, join_rows
from contrada.broker.incoming_events import read_body
from contrada.broker.standing_set import receive_events
from contrada.errors import ContradaError, InvalidInput
from contrada.matcher.inside import freeze
from contrada.matcher.match_run import match_received
from fuzz import pools, runs
from fuzz.comparing import as_filter
from fuzz.events import ARRAYS, NO_SHAPES
from fuzz.predicates import Maker

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

pytestmark = pytest.mark.filterwarnings("ignore:.*which is never true")  # of other types

PREDICATES, EVENTS = 40, 24


def json_values(values: Iterable[Any]) -> list[Any]:
    """Those that JSON can spell."""
    kept = []
    for value in values:
        try:
            kept.append(json.loads(json.dumps(value, allow_nan=False)))
        except (TypeError, ValueError):
            continue
    return kept


NUMBERS = json_values((*pools.NUMBERS, 2**70, -(2**80), 3, 4, 5.5))
TEXTS = json_values((*pools.TEXTS, *pools.TIME_TEXTS))
LISTS = json_values([*map(list, ARRAYS), [1, "a", [True]], [{"a": 1}, {"b": 2}], [2**70]])
OBJECTS: tuple[Any, ...] = (
    {"y": 1},
    {"y": 2.5},
    {"y": None},
    {},
    {"y": {"z": 1}},
    {"other": "x"},
    {"er": {"n": 2}},
)
ODD = (None, True, False, 0, 1, "2", [1], {"y": 3}, 2.0)


class Events:
    """Features of a batch: each attribute is of one type, or of a few, or of any."""

    def __init__(self, random: Random, shapes: list[Any]) -> None:
        self.random = random
        self.shapes = [shape for shape in shapes if shapely.is_valid(shape)]
        wholes = [number for number in NUMBERS if isinstance(number, int)]
        reals = [number for number in NUMBERS if isinstance(number, float)]
        small = [0, 1, 2.5, 2, -1, 0.5]
        numbers = (wholes, reals, NUMBERS, small, [1, 2, 3], ["a", "b"], [*ODD, *NUMBERS])
        choices = {
            ("n", "m", "x.y", "deep.er.n", "id"): numbers,
            ("s", "odd name", "u.v"): (TEXTS, [*TEXTS, *ODD]),
            ("t", "until"): (pools.TIME_TEXTS, [*TEXTS, ["2020-01-01", ".."], *ODD]),
            ("a", "b"): (LISTS, [["a"], ["b", "a"]], [*LISTS, *ODD]),
            ("p", "q"): ([True, False], ODD),
            ("x", "deep", "u"): (OBJECTS[:3], OBJECTS, ({"v": "a"}, {"v": "b"}), [*OBJECTS, *ODD]),
            ("deep.er",): (({"n": 1}, {"n": 2}), OBJECTS),
        }
        self.pools = {
            name: (random.choice(kinds), random.choice((0, 0.1, 0.9)))
            for names, kinds in choices.items()
            for name in names
        }

    def feature(self) -> dict[str, Any]:
        random = self.random
        properties = {
            name: random.choice(values)
            for name, (values, missing) in self.pools.items()
            if random.random() >= missing
        }
        for name in ("g", "h"):
            properties[name] = self.shape()
        properties["place"] = pools.geojson(pools.place(random))
        made = {"type": "Feature", "geometry": self.geometry(), "properties": properties}
        if random.random() < 0.5:
            made["id"] = random.choice((1, 2, "a", None))
        return made

    def geometry(self) -> Any:
        if self.random.random() < 0.1:
            return self.random.choice((None, {"type": "Point", "coordinates": []}))
        return pools.geojson(self.some_shape())

    def shape(self) -> Any:
        """What may stand in a property that subscriptions read as a geometry."""
        draw = self.random.random()
        if draw < 0.2:
            return self.random.choice((None, 5, True, [1], "POINT EMPTY", *NO_SHAPES))
        shape = self.some_shape()
        return shapely.to_wkt(shape, rounding_precision=17) if draw < 0.6 else pools.geojson(shape)

    def some_shape(self) -> Any:
        usual = shapely.Point(self.random.randint(0, 4), self.random.randint(0, 4))
        return self.random.choice([usual, usual, *self.shapes])


def make_matcher(random: Random, maker: Maker) -> Matcher:
    """A matcher of random predicates; those that are refused are left out."""
    matcher = Matcher()
    for number in range(PREDICATES):
        try:
            matcher.add(number, json.dumps(as_filter(maker.predicate(random.randint(1, 5)))))
        except ContradaError:
            continue
    return matcher


def match_rows(matcher: Matcher, rows: pa.RecordBatch) -> list[list[Any] | None]:
    """What each row matches; None for a bad one."""
    subscriptions = freeze(matcher)
    matched = match_received(receive_events(rows, subscriptions), subscriptions)
    found: list[list[Any] | None] = [[] for _ in range(rows.num_rows)]
    ids = subscriptions.ids.to_pylist()
    for row, rank in zip(matched.rows.tolist(), matched.ranks.tolist(), strict=True):
        each = found[row]
        assert each is not None
        each.append(ids[rank])
    for row in matched.events.bad:
        found[row] = None
    return found


def match_one(matcher: Matcher, feature: dict[str, Any]) -> list[Any] | None:
    """What one event matches; None for a bad one."""
    try:
        return list(matcher.match(feature))
    except InvalidInput:
        return None


def compare(seed: int) -> int:
    """Match a batch in all ways; return how many pairs there were."""
    random = Random(seed)
    maker = Maker(random)
    matcher = make_matcher(random, maker)
    source = Events(random, maker.shapes)
    features = [source.feature() for _ in range(EVENTS)]
    events = read_body(
        json.dumps({"type": "FeatureCollection", "features": features}).encode(), None, {}, None
    )
    assert not events.errors, events.errors
    assert [json.loads(text) for text in events.texts] == features
    expected = [match_one(matcher, feature) for feature in features]
    single = [read_body(json.dumps(each).encode(), None, {}, None).rows for each in features]
    cuts = sorted(random.sample(range(EVENTS), 3))
    parts = [
        read_body(json.dumps(features[start:end]).encode(), None, {}, None).rows
        for start, end in zip([0, *cuts], [*cuts, EVENTS], strict=True)
    ]
    order = list(range(EVENTS))
    random.shuffle(order)
    for form, rows, wanted in (
        ("a batch", events.rows, expected),
        ("single ones", join_rows(single), expected),
        ("parts", join_rows(parts), expected),
        ("shuffled", events.rows.take(np.array(order)), [expected[row] for row in order]),
        ("a slice", join_rows(parts)[5:], expected[5:]),
    ):
        found = match_rows(matcher, rows)
        for row, (left, right) in enumerate(zip(found, wanted, strict=True)):
            assert left == right, f"seed {seed}, {form}, row {row}: {left} is not {right}"
    return sum(len(each or ()) for each in expected)


def test_a_batch_matches_what_its_events_match() -> None:
    assert sum(map(compare, runs.few(6)))


@pytest.mark.soak
def test_many_batches_match_what_their_events_match(request: pytest.FixtureRequest) -> None:
    assert sum(map(compare, runs.many(request)))


def rows_of(*properties: dict[str, Any]) -> pa.RecordBatch:
    """The rows of events with some properties."""
    features = [{"type": "Feature", "geometry": None, "properties": each} for each in properties]
    return read_body(json.dumps(features).encode(), None, {}, None).rows


def test_ordinary_values_have_types_of_arrow() -> None:
    rows = rows_of({"a": 1, "b": 1.5, "c": "x", "d": True, "e": {"f": 1}}, {"a": None}, {})
    types = {field.name: str(field.type) for field in rows.schema}
    assert types == {
        "geometry": "binary",
        "a": "int64",
        "b": "double",
        "c": "string",
        "d": "bool",
        "e": "struct<f: int64>",
    }


def test_values_of_several_types_stay_what_they_are() -> None:
    values = [1, 2.0, None, True, "1", 2**70, [1, {"a": None}], {"x": 1}]
    assert rows_of(*({"a": value} for value in values)).column("a").to_pylist() == values
    numbers = [1, 2.5, None, -(2**53), 3.0]
    column = rows_of(*({"a": number} for number in numbers)).column("a")
    assert list(map(repr, column.to_pylist())) == list(map(repr, numbers))
    large = [2**53 + 1, 0.5]
    assert rows_of(*({"a": number} for number in large)).column("a").to_pylist() == large


def test_columns_of_several_types_are_joined_without_loss() -> None:
    values = [1, 2.5, "x", None, {"b": 1}, {"b": "y"}, [1], 2**53 + 1]
    joined = join_rows([rows_of({"a": value}, {"a": value}) for value in values])
    assert joined.column("a").to_pylist() == [value for value in values for _ in "ab"]
    numbers = join_rows(
        [rows_of({"a": 1}), rows_of({"b": 1}), rows_of({"a": 2.5}), rows_of({"a": 7})]
    )
    assert list(map(repr, numbers.column("a").to_pylist())) == ["1", "None", "2.5", "7"]
    assert numbers.column("b").to_pylist() == [None, 1, None, None]
    same = [rows_of({"a": 1}), rows_of({"a": 2})]
    assert join_rows(same).column("a").to_pylist() == [1, 2]
    assert join_rows(same[:1]) is same[0]
    assert join_rows([rows_of()]).num_rows == 0


def test_batches_that_share_few_names_are_not_joined() -> None:
    wide = [rows_of({f"n{i}.{j}": 1 for j in range(2_000)}) for i in range(40)]
    groups = list(group_joinable(wide))
    assert [batch for group in groups for batch in group] == wide
    assert all((len(group) ** 2) * 2_000 <= 1_100_000 for group in groups)
    assert len(groups) == len(wide), "to join so many columns takes longer than to match twice"
    some = [rows_of({f"n{(i + j) % 30}": 1 for j in range(20)}) for i in range(100)]
    assert len(list(group_joinable(some))) == 1
    same = [rows_of({f"n{j}": i for j in range(2_000)}) for i in range(40)]
    assert list(group_joinable(same)) == [same]
    alike = [rows_of({"a": i}) for i in range(100)]
    assert list(group_joinable(alike)) == [alike]
    assert list(group_joinable([])) == []
