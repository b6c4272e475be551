"""A dotted name means the same in every row, engine and place, whatever columns there are."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import InvalidInput, Matcher
from contrada.limits import NAME_LENGTH_MAX, NAME_PARTS_MAX
from contrada.matcher.inside import freeze
from contrada.matcher.match_run import match_received
from contrada.model.event import paths_of
from contrada.spark.worker import EventColumns
from exact_engines import EXACT_ENGINES, every_engine

pytestmark = pytest.mark.filterwarnings("ignore:.*which is never true")  # of other types

NAMES = ("a.b.c", "a.b", "a.b.c.d", "a.c")
PREDICATES = [
    template.replace("{}", f'"{name}"')
    for name in NAMES
    for template in (
        "{} = 5",
        "{} > 2",
        "{} <> 'x'",
        "{} IS NULL",
        "{} = 5 OR {} = 'x'",
        "S_INTERSECTS({}, POINT(1 1))",
        "NOT S_INTERSECTS({}, POINT(2 2))",
        "S_INTERSECTS({}, POLYGON((0 0,4 0,4 4,0 0))) AND {} IS NOT NULL",
    )
]

# A type is a function from a value that Python has to one that Arrow takes, and Arrow's type.
LEAVES = {
    pa.int64(): st.sampled_from([None, 3, 5]),
    pa.int8(): st.sampled_from([None, 5]),
    pa.float64(): st.sampled_from([None, 5.0, 1.5]),
    pa.string(): st.sampled_from([None, "x", "POINT(1 1)", "POINT(2 1)"]),
    pa.binary(): st.sampled_from([None, bytes.fromhex("0101000000" + "000000000000f03f" * 2)]),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from([None, "x", "y"]),
    pa.list_(pa.int64()): st.sampled_from([None, [5]]),
    pa.null(): st.none(),
}
INNER = ("b", "c", "d", "b.c", "c.d", "b.c.d")


def types(depth: int) -> st.SearchStrategy[pa.DataType]:
    leaf = st.sampled_from(list(LEAVES))
    if depth == 0:
        return leaf
    fields = st.dictionaries(st.sampled_from(INNER), types(depth - 1), min_size=1, max_size=3)
    flat = [kind for kind in LEAVES if not pa.types.is_null(kind)]
    return st.one_of(
        leaf,
        fields.map(lambda found: pa.struct(list(found.items()))),
        st.sampled_from(flat).map(lambda kind: pa.map_(pa.string(), kind)),
        fields.map(lambda found: pa.map_(pa.string(), pa.struct(list(found.items())))),
    )


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, as `match` takes them."""
    if pa.types.is_struct(kind):
        fields = {field.name: values(field.type) for field in kind}
        return st.none() | st.fixed_dictionaries(fields)
    if pa.types.is_map(kind):
        return st.none() | st.dictionaries(
            st.sampled_from(INNER), values(kind.item_type), max_size=3
        )
    return LEAVES[kind]


def as_arrow(value: Any, kind: pa.DataType) -> Any:
    """Give a value as Arrow takes it: a map is a list of pairs."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return [(key, as_arrow(inner, kind.item_type)) for key, inner in value.items()]
    if pa.types.is_struct(kind):
        return {field.name: as_arrow(value[field.name], field.type) for field in kind}
    return value


def without_nulls(value: Any) -> Any:
    """Give mappings without the keys whose value is null: absent and null are the same."""
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, list[dict[str, Any]]]:
    """A table, and its rows as mappings."""
    names = ["a", "a.b", "a.b.c", "a.b.c.d", "a.c"]
    columns = draw(st.dictionaries(st.sampled_from(names), types(2), min_size=1, max_size=4))
    rows = draw(
        st.lists(
            st.fixed_dictionaries({name: values(kind) for name, kind in columns.items()}),
            min_size=1,
            max_size=4,
        )
    )
    arrays = {
        name: pa.array([as_arrow(row[name], kind) for row in rows], kind)
        for name, kind in columns.items()
    }
    return pa.table(arrays), rows


def make(engine: str) -> Matcher:
    matcher = Matcher(engine, simplify=False)
    for number, predicate in enumerate(PREDICATES):
        matcher.add(number, predicate)
    return matcher


MATCHERS = {engine: make(engine) for engine in EXACT_ENGINES}


def on_spark(table: pa.Table) -> list[tuple[int, int]]:
    """Match as a worker does: it gets only the columns that constraints name."""
    read = {path for name in NAMES for path in paths_of(name)}
    chosen = table.select([name for name in table.schema.names if name in read])
    subscriptions = freeze(MATCHERS["strtree"])
    columns = EventColumns(
        tuple(chosen.schema.names), None, tuple(subscriptions.geometry_attributes), False
    )
    events = columns.receive(chosen.combine_chunks().to_batches()[0])
    found = match_received(events, subscriptions)
    return list(zip(found.rows.tolist(), found.ranks.tolist(), strict=True))


@settings(max_examples=60)
@given(tables())
def test_tables_lists_and_workers_agree_with_the_scan_of_single_events(
    given_: tuple[pa.Table, list[dict[str, Any]]],
) -> None:
    table, rows = given_
    expected = [
        (row, id_) for row, event in enumerate(rows) for id_ in MATCHERS["scan"].match(event)
    ]
    slimmer = [without_nulls(event) for event in rows]
    for events in (table, table.slice(0), rows, slimmer):
        for matcher in MATCHERS.values():
            found = matcher.match_many(events, threads=1).to_pylist()
            assert [(pair["event"], pair["subscription"]) for pair in found] == expected
    assert on_spark(table) == expected


@every_engine
def test_each_row_takes_the_first_path_that_has_a_value(engine: str) -> None:
    rows = [
        {"a": {"b": {"c": 5}}, "a.b": {"c": 1}, "a.b.c": None},
        {"a": {"b": {"c": None}}, "a.b": {"c": 5}, "a.b.c": None},
        {"a": None, "a.b": {"c": 5}, "a.b.c": None},
        {"a": {"b": {"c": 5}}, "a.b": {"c": 5}, "a.b.c": 1},
        {"a": {"b": {"c": 1}}, "a.b": {"c": 1}, "a.b.c": 5},
        {"a": {"b": {"c": 1}}, "a.b": {"c": 5}, "a.b.c": None},
    ]
    matcher = Matcher(engine)
    matcher.add("five", '"a.b.c" = 5')
    for events in (rows, pa.Table.from_pylist(rows), pa.Table.from_pylist(rows).slice(0, 6)):
        assert matcher.match_many(events)["event"].to_pylist() == [0, 1, 2, 4]


def test_a_path_may_have_as_many_parts_as_a_name_may_have() -> None:
    matcher = Matcher()
    matcher.add("found", f'"{".".join(["a"] * NAME_PARTS_MAX)}" = 5')
    event: Any = 5
    for _ in range(NAME_PARTS_MAX):
        event = {"a": event}
    assert matcher.match(event) == ["found"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a" * (NAME_LENGTH_MAX + 1), r"1,001 characters.*NAME_LENGTH_MAX"),
        ("a." * NAME_PARTS_MAX + "a", r"101 parts between dots.*NAME_PARTS_MAX\): a\.a\."),
    ],
)
def test_a_longer_name_is_refused(name: str, words: str) -> None:
    for arguments in (
        {"filter": f'"{name}" = 5'},
        {"filter": {"op": "=", "args": [{"property": name}, 5]}},
        {"geometry": "POINT(1 1)", "attribute": name},
    ):
        with pytest.raises(InvalidInput, match=words):
            Matcher().add("long", **arguments)
