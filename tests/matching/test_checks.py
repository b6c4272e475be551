"""Checks on whole columns against the evaluation of one constraint on one event at a time."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contrada.language import is_satisfied, make_predicate, read
from contrada.matching.arrow_values import find_column
from contrada.matching.checks import Checks, describe
from contrada.matching.columns import EventBatch, read_geometries
from contrada.matching.constraint_columns import pack_constraints
from contrada.model.event import Event
from contrada.model.expression import Attribute, Comparison, Literal
from contrada.model.subscription import Constraint
from strategies import geometries

Node = Any  # of CQL2 JSON

INFINITY = float("inf")
WHOLE = (0, 1, -1, 2, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63))
REAL = (0.0, -0.0, 0.5, 1.5, -0.5, 5e-324, 1.7976931348623157e308, 2.0**53, 2.0**63, -(2.0**63))
BOUNDS = (*WHOLE, *REAL, 2**63, 2**64, -(2**63) - 1, 2**63 - 0.5, 10**400, -(10**400), 1e300)
NEW_YEAR = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
MOMENTS = (NEW_YEAR, NEW_YEAR + dt.timedelta(microseconds=1), dt.datetime(1, 1, 1, tzinfo=dt.UTC))
TEXTS = ("", "a", "A", "aé", "2020-01-01", "2020-01-01T00:00:00Z", "1", "true")

KINDS: tuple[tuple[pa.DataType, tuple[Any, ...]], ...] = (
    (pa.int64(), WHOLE),
    (pa.int8(), (0, 1, -1, 127)),
    (pa.uint32(), (0, 1, 2**32 - 1)),
    (pa.uint64(), (0, 1, 2**53 + 1, 2**63, 2**64 - 1)),
    (pa.float64(), (*REAL, INFINITY, -INFINITY, float("nan"))),
    (pa.float32(), (0.5, -0.0, INFINITY, float("nan"), 16777216.0)),
    (pa.float16(), (0.5, 1.0, float("nan"))),
    (pa.decimal128(38, 1), (Decimal("0.5"), Decimal(2**63), Decimal("-1.0"))),
    (pa.decimal256(50, 2), (Decimal("0.50"), Decimal(2**53 + 1))),
    (pa.decimal32(5, 1), (Decimal("0.5"), Decimal("1.0"))),
    (pa.bool_(), (True, False)),
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.date32(), tuple(moment.date() for moment in MOMENTS)),
    (pa.date64(), (NEW_YEAR.date(),)),
    (pa.timestamp("us", "UTC"), MOMENTS),
    (pa.timestamp("s", "Europe/Rome"), (NEW_YEAR,)),
    (pa.timestamp("ms"), (NEW_YEAR.replace(tzinfo=None),)),
    (pa.timestamp("ns"), (NEW_YEAR.replace(tzinfo=None),)),
    (pa.list_(pa.int64()), ([], [1], [1, 2], [None])),
    (pa.list_(pa.string()), (["a"], ["a", "b"])),
    (pa.binary(), (b"", b"a")),
    (pa.time64("us"), (dt.time(1, 2),)),
    (pa.duration("s"), (dt.timedelta(1),)),
    (pa.null(), (None,)),
)


# Constraints


def named(name: str) -> Node:
    return {"property": name}


def call(name: str, *arguments: Node) -> Node:
    return {"op": name, "args": list(arguments)}


def simple_tests(name: str) -> st.SearchStrategy[Node]:
    """Tests of one attribute, with operands of all types."""
    x = named(name)
    compared = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))
    huge = st.sampled_from((call("*", 1e308, 10), call("*", -1e308, 10)))
    number = (
        st.sampled_from([bound for bound in BOUNDS if abs(bound) <= 1e308])
        | st.integers(-(2**70), 2**70)
        | st.floats(allow_nan=False, allow_infinity=False)
    )
    moment = st.sampled_from(({"timestamp": "2020-01-01T00:00:00Z"}, {"date": "2020-01-02"}))
    operand = st.one_of(number, number, huge, moment, st.sampled_from(TEXTS), st.booleans())
    array = st.sampled_from(([1], [1, 2], ["a"], []))
    return st.one_of(
        st.builds(call, compared, st.just(x), number | huge),
        st.builds(call, compared, operand, st.just(x)),
        st.builds(
            call, compared, st.builds(call, st.sampled_from("+-*/%"), st.just(x), number), number
        ),
        st.builds(call, st.just("between"), st.just(x), operand, operand),
        st.builds(call, st.just("in"), st.just(x), st.lists(operand, min_size=1, max_size=3)),
        st.builds(call, st.just("like"), st.just(x), st.sampled_from(("a%", "_", "%é"))),
        st.builds(call, st.sampled_from(("t_after", "t_equals")), st.just(x), moment),
        st.builds(call, st.sampled_from(("a_contains", "a_equals")), st.just(x), array),
        st.just(call("isNull", x)),
        st.just(call("=", call("casei", x), "a")),
        st.just(call("=", x, named("other"))),
        st.just(x),
    )


def constraints_of(node: Node) -> list[Constraint]:
    filters = make_predicate(read(node)).filters
    return [constraint for filter_ in filters for constraint in filter_.constraints]


@st.composite
def constraint_lists(draw: st.DrawFn, name: str) -> list[Constraint]:
    found: list[Constraint] = []
    for node in draw(st.lists(simple_tests(name), min_size=1, max_size=6)):
        found += constraints_of(call("not", node) if draw(st.booleans()) else node)
    return list(dict.fromkeys(found))


# Columns


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    """A column of some type with nulls, perhaps a slice of a longer one or dictionary-encoded."""
    kind, values = draw(st.sampled_from(KINDS))
    array = pa.array(
        draw(st.lists(st.none() | st.sampled_from(values), min_size=1, max_size=6)), kind
    )
    if draw(st.booleans()):
        array = pa.concat_arrays([array, array, array]).slice(len(array), len(array))
    can_encode = not (
        pa.types.is_nested(kind) or pa.types.is_null(kind) or kind == pa.decimal32(5, 1)
    )
    if can_encode and not pa.types.is_float16(kind) and draw(st.booleans()):
        array = array.dictionary_encode()
    return array


def holds(constraints: list[Constraint], columns: dict[str, pa.Array], length: int) -> Any:
    """Ask about every pair of row and constraint, in an order that is nobody's."""
    pairs = np.random.default_rng(5).permutation(length * len(constraints))
    rows, ids = np.divmod(pairs, len(constraints))
    found = Checks(pack_constraints(constraints)).holds(EventBatch(columns, length, {}), rows, ids)
    return found[np.argsort(pairs)].reshape(length, len(constraints)).tolist()


@settings(max_examples=400)
@given(columns(), constraint_lists("x"))
@example(
    pa.array([INFINITY, -INFINITY, 1.0]),
    constraints_of(call(">", named("x"), call("*", 1e308, 10))),
)
@example(pa.array([2**53, 2**53 + 1]), constraints_of(call("=", named("x"), 2.0**53)))
@example(pa.array([2.0**53]), constraints_of(call("<", named("x"), 2**53 + 1)))
def test_columns_are_checked_as_single_values_are(
    column: pa.Array, constraints: list[Constraint]
) -> None:
    if not constraints:
        return
    events = [Event({"x": value}) for value in column.to_pylist()]
    expected = [[is_satisfied(constraint, event) for constraint in constraints] for event in events]
    assert holds(constraints, {"x": column}, len(column)) == expected


@settings(max_examples=150)
@given(columns(), constraint_lists("a.b.x"), st.integers(0, 2))
def test_fields_of_structs_are_checked_as_paths_into_mappings(
    column: pa.Array, constraints: list[Constraint], null_at: int
) -> None:
    if not constraints:
        return
    inner = pa.StructArray.from_arrays([column], ["x"])
    is_null = pa.array([row == null_at for row in range(len(column))])
    outer = pa.StructArray.from_arrays([inner], ["b"], mask=is_null)
    events = [Event({"a": value}) for value in outer.to_pylist()]
    expected = [[is_satisfied(constraint, event) for constraint in constraints] for event in events]
    assert holds(constraints, {"a": outer}, len(column)) == expected


@settings(max_examples=50)
@given(constraint_lists("x"))
def test_a_column_that_is_not_there_is_null_everywhere(constraints: list[Constraint]) -> None:
    expected = [is_satisfied(constraint, Event({})) for constraint in constraints]
    if constraints:
        assert holds(constraints, {"y": pa.array([1, 2])}, 2) == [expected] * 2


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("bound", [*BOUNDS, INFINITY, -INFINITY], ids=lambda bound: str(bound)[:24])
def test_every_bound_is_exact_for_every_number(operator: str, bound: float) -> None:
    constraint = Constraint(Comparison(operator, Attribute("x"), Literal(bound)))
    for kind, values in ((pa.int64(), WHOLE), (pa.float64(), (*REAL, INFINITY, -INFINITY))):
        expected = [[is_satisfied(constraint, Event({"x": value}))] for value in values]
        assert holds([constraint], {"x": pa.array(values, kind)}, len(values)) == expected


# Space


SPATIAL = (
    "s_intersects s_disjoint s_touches s_crosses s_within s_contains s_overlaps s_equals covers "
    "coveredBy ehDisjoint ehMeet ehOverlap ehEquals ehInside ehCoveredBy ehContains ehCovers"
).split()


@st.composite
def spatial_constraints(draw: st.DrawFn) -> Constraint:
    name = draw(st.sampled_from((*SPATIAL, "relate", "dwithin")))
    shape = draw(geometries("area" if name.startswith("eh") else None))
    arguments = [named("x"), shapely.geometry.mapping(shape)]
    if name == "relate":
        arguments.append(draw(st.text("TF*012", min_size=9, max_size=9)))
    if name == "dwithin":
        arguments.append(draw(st.sampled_from((0, 120_000))))
    node = call(name, *arguments)
    return constraints_of(call("not", node) if draw(st.booleans()) else node)[0]


@settings(max_examples=150)
@given(
    st.lists(st.none() | geometries(), min_size=1, max_size=5),
    st.lists(spatial_constraints(), min_size=1, max_size=5),
)
def test_geometries_are_checked_as_single_ones_are(
    shapes: list[Any], constraints: list[Constraint]
) -> None:
    column = read_geometries(
        pa.array([s if s is None else shapely.to_wkb(s) for s in shapes], pa.binary())
    )
    batch = EventBatch({}, len(shapes), {"x": column})
    rows, ids = np.divmod(np.arange(len(shapes) * len(constraints)), len(constraints))
    found = Checks(pack_constraints(constraints)).holds(batch, rows, ids)
    events = [Event({"x": shape}) for shape in shapes]
    expected = [is_satisfied(constraint, event) for event in events for constraint in constraints]
    assert found.tolist() == expected


# How


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("x > 1", "range of x, vectorised"),
        ("x = 1e308", "range of x, vectorised"),
        ("x < 1e308 * 10", "distinct values of x"),
        ("x = TRUE", "distinct values of x"),
        ("x = NULL", "distinct values of x"),
        ("x + 1 > 2", "distinct values of x"),
        ("x > y", "evaluated event by event"),
        ("S_WITHIN(x, POINT(1 1))", "relation of x, on the candidates"),
        ("S_WITHIN(x, NULL)", "evaluated event by event"),
        ("S_WITHIN(x, x)", "evaluated event by event"),
    ],
)
def test_each_constraint_has_a_check_for_its_kind(text: str, how: str) -> None:
    (constraint,) = constraints_of(text)
    assert describe(constraint) == how


def test_a_value_check_evaluates_each_distinct_value_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    evaluate = is_satisfied

    def counted(constraint: Constraint, event: Event) -> bool:
        calls.append(event.value("x"))
        return evaluate(constraint, event)

    monkeypatch.setattr("contrada.matching.checks.is_satisfied", counted)
    constraints = constraints_of("x LIKE 'a%'") + constraints_of("x IS NULL")
    column = pa.array(["ab", None, "b", "ab"] * 500)
    found = holds(constraints, {"x": column}, len(column))
    assert found == [[True, False], [False, True], [False, False], [True, False]] * 500
    assert len(calls) == 6


def test_no_pairs_are_no_work() -> None:
    constraints = constraints_of("x > 1") + constraints_of("x = 'a'") + constraints_of("x > y")
    nothing = np.zeros(0, np.int64)
    assert (
        Checks(pack_constraints(constraints))
        .holds(EventBatch({}, 3, {}), nothing, nothing)
        .tolist()
        == []
    )


def test_a_path_is_found_as_it_stands_before_it_is_followed() -> None:
    columns = {"a.b": pa.array([1]), "a": pa.array([{"b": 2, "c.d": 3, "c": {"d": 4}}])}
    assert find_column(columns, "a.b") == pa.array([1])
    assert find_column(columns, "a.c.d") == pa.array([3])
    assert find_column(columns, "a.z") is None
    assert find_column(columns, "z.b") is None
