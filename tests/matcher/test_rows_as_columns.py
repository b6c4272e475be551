"""Rows of a table are packed form by form: each means what it means alone, and to `add`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import Matcher
from contrada.errors import InvalidInput
from contrada.files import read_rows
from contrada.language import to_json
from contrada.matching.plain_rows import pack_plain
from contrada.matching.row_forms import make_marks
from contrada.model.expression_parts import OperandType
from contrada.model.subscription import Id, Predicate
from subscription_rows import (
    ATTRIBUTES,
    BYTES_TYPES,
    FORMS,
    GEOMETRIES,
    GOOD_ATTRIBUTES,
    GOOD_FORMS,
    GOOD_GEOMETRIES,
    GOOD_RELATIONS,
    RELATIONS,
    TEXT_TYPES,
    USUAL_WAYS,
    WAYS,
    Row,
    encode,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contrada.files import Rows

Outcome = dict[Id, tuple[Predicate, str, Id | None]]
NAMES = ("filter", "relation", "where", "attribute")
WHOLE_TYPES = (pa.int64(), pa.int32(), pa.uint16(), pa.uint64())
MAKERS: list[Callable[[], Matcher]] = [
    Matcher,
    partial(Matcher, simplify=False),
    partial(Matcher, "crtree"),
    partial(Matcher, "crtree", evaluator="discrete"),
    partial(Matcher, "ahs", universe=(0, 0, 16, 16), level=6),
]
makers = st.sampled_from(MAKERS)


@dataclass(frozen=True)
class Given:
    """Rows, and the table that they stand in; with ids of their own, or numbered."""

    rows: list[Row]
    table: pa.Table
    batch_rows: int

    def source(self) -> Rows:
        """What `add_many` takes: the table, so many rows at a time."""
        return read_rows(self.table, batch_rows=self.batch_rows)


def outcome(matcher: Matcher) -> Outcome:
    """What a matcher holds, to the sign of zeros."""
    found = {id_: matcher.get(id_) for id_ in matcher}
    return {
        id_: (one.predicate, json.dumps(to_json(one.predicate.expression)), one.subscriber)
        for id_, one in found.items()
    }


# Rows and tables


class Cells:
    """Pools of cells for one table: some tables have none that is bad, or no odd column."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.is_wkb = draw(st.booleans())
        self.ways = WAYS if draw(st.integers(0, 3)) == 0 else USUAL_WAYS
        is_good = draw(st.booleans())
        forms = st.sampled_from(GOOD_FORMS if is_good else FORMS)
        self.forms = draw(st.lists(forms, min_size=1, max_size=3))
        self.geometries = (GOOD_GEOMETRIES if is_good else GEOMETRIES)[self.is_wkb]
        self.relations = GOOD_RELATIONS if is_good else RELATIONS
        self.attributes = GOOD_ATTRIBUTES if is_good else ATTRIBUTES
        self._draw = draw

    def one(self, pool: Sequence[Any], *, nulls: int = 4) -> Any:
        """A cell, or every so often null."""
        return None if self.odds(nulls) else self._draw(st.sampled_from(pool))

    def text(self) -> str:
        return self._draw(texts(self.forms))

    def odds(self, of: int) -> bool:
        """Whether the one case of so many is there."""
        return self._draw(st.integers(0, of - 1)) == of - 1

    def row(self) -> Row:
        """A row but for its id and subscriber; most have either a geometry or a filter."""
        beside = Row(
            None,
            geometry=self.one(self.geometries, nulls=9),
            relation=self.one(self.relations, nulls=2),
            attribute=self.one(self.attributes, nulls=2),
            where=None if self.odds(3) else self.text(),
        )
        if not self.odds(3):
            return beside
        filter_ = self.text()
        return beside._replace(filter=filter_) if self.odds(9) else Row(None, filter_)

    def column(self, values: Sequence[Any], types: Sequence[pa.DataType]) -> pa.Array:
        """A column of any type that holds the values."""
        if all(value is None for value in values) and self._draw(st.booleans()):
            return pa.nulls(len(values))
        kind, way = self._draw(st.sampled_from(types)), self._draw(st.sampled_from(self.ways))
        return encode(values, kind, way)

    def ids(self, count: int, *, nulls: int, most: int) -> tuple[list[Any], pa.Array | None]:
        """Ids of one type, of which some may repeat; or none at all."""
        draw = self._draw
        numbers = [None if self.odds(nulls) else draw(st.integers(0, most)) for _ in range(count)]
        match draw(st.sampled_from(["none", "whole", "text"])):
            case "none":
                return [None] * count, None
            case "text":
                names = [n if n is None else f"{'é' * (n % 3)}{n}" for n in numbers]
                return names, self.column(names, TEXT_TYPES)
        shift = 2**63 - most // 2 if self.odds(9) else 0
        wholes = [n if n is None else n + shift for n in numbers]
        return wholes, self.column(wholes, [pa.uint64()] if shift else WHOLE_TYPES)


@st.composite
def given_tables(draw: st.DrawFn) -> Given:
    """Tables with columns of all types."""
    cells = Cells(draw)
    rows = [cells.row() for _ in range(draw(st.integers(2, 16)))]
    columns = {n: cells.column([getattr(row, n) for row in rows], TEXT_TYPES) for n in NAMES}
    shapes = [row.geometry for row in rows]
    columns["geometry"] = cells.column(shapes, BYTES_TYPES if cells.is_wkb else TEXT_TYPES)
    for name in NAMES:
        if columns[name].null_count == len(rows) and cells.odds(2):
            del columns[name]
    ids, columns["id"] = cells.ids(len(rows), nulls=20, most=60)
    subscribers, columns["subscriber"] = cells.ids(len(rows), nulls=4, most=4)
    if columns["id"] is None:
        ids = list(range(len(rows)))
    named = zip(rows, ids, subscribers, strict=True)
    return Given(
        [row._replace(id=id_, subscriber=who) for row, id_, who in named],
        draw_table(draw, {n: column for n, column in columns.items() if column is not None}),
        draw(st.sampled_from([5, 65_536])),
    )


def draw_table(draw: st.DrawFn, columns: Mapping[str, pa.Array]) -> pa.Table:
    """A table, perhaps of two pieces, the columns in any order."""
    names = draw(st.permutations(sorted(columns)))
    table = pa.table({name: columns[name] for name in names})
    if draw(st.booleans()):
        return table
    cut = draw(st.integers(0, table.num_rows))
    return pa.concat_tables([table[:cut], table[cut:]])


# What rows say one by one


@dataclass(frozen=True)
class Judged:
    """What `add` makes of rows one by one, those that it refuses, and what `repair` leaves out."""

    outcome: Outcome
    refused: list[int]
    left_out: list[int]


def add_one_by_one(rows: list[Row], matcher: Matcher, *, repair: bool) -> Judged:
    judged = Judged({}, [], [])
    for number, row in enumerate(rows):
        if has_lost_its_geometry(row, repair=repair):
            judged.left_out.append(number)
        elif states_defaults_beside_a_filter(row) or not is_added(matcher, row, repair=repair):
            judged.refused.append(number)
    judged.outcome.update(outcome(matcher))
    return judged


def is_added(matcher: Matcher, row: Row, *, repair: bool) -> bool:
    try:
        matcher.add(row.id, **row.arguments(), repair=repair)  # type: ignore[arg-type]
    except InvalidInput:
        return False
    return True


def states_defaults_beside_a_filter(row: Row) -> bool:
    """Whether a cell says what `add` takes for an argument that was not given."""
    return row.filter is not None and (row.relation == "intersects" or row.attribute == "geometry")


def has_lost_its_geometry(row: Row, *, repair: bool) -> bool:
    """Whether `repair` leaves a row out: it has nothing, or nothing fit, where a geometry goes."""
    if not repair or row.filter is not None:
        return False
    bare = Row(0, geometry=row.geometry)
    if not is_added(Matcher(), bare, repair=True):
        return True
    is_area_wanted = row.relation is not None and row.relation.lower().startswith("eh")
    related = bare._replace(relation=row.relation)
    is_invalid = not is_added(Matcher(), bare, repair=False)
    return is_area_wanted and is_invalid and not is_added(Matcher(), related, repair=True)


# Tables beside `add`


def check_table(given_: Given, make: Callable[[], Matcher], *, repair: bool) -> None:
    """A table adds what its rows would one by one; or it is refused with the first bad row."""
    judged = add_one_by_one(given_.rows, make(), repair=repair)
    check_left_out(given_, make(), judged, repair=repair)
    matcher = make()
    if not judged.refused:
        assert matcher.add_many(given_.source(), repair=repair) == len(judged.outcome)
        assert outcome(matcher) == judged.outcome
        return
    first, *others = judged.refused
    with pytest.raises(InvalidInput, match=rf"\brow {first}\b") as caught:
        matcher.add_many(given_.source(), repair=repair)
    if others:
        count = f"{len(judged.refused)} of {len(given_.rows)} subscriptions cannot be used"
        assert count in str(caught.value)
    assert len(matcher) == 0


def check_left_out(given_: Given, matcher: Matcher, judged: Judged, *, repair: bool) -> None:
    heard: list[tuple[int, Id | None, str]] = []
    count = matcher.add_many(
        given_.source(), repair=repair, quarantine=True, on_bad=lambda *bad: heard.append(bad)
    )
    bad = [(row, id_) for row, id_, reason in heard if not reason.startswith("mended: ")]
    expected = sorted([*judged.refused, *judged.left_out])
    assert sorted(bad) == [(row, given_.rows[row].id) for row in expected]
    assert outcome(matcher) == judged.outcome
    assert count == len(matcher) == len(given_.rows) - len(expected)
    assert matcher.stats()["subscriptions_left_out"] == len(expected)


@settings(max_examples=60)
@given(given_tables(), makers, st.booleans())
def test_a_table_says_what_its_rows_say_one_by_one(
    given_: Given, make: Callable[[], Matcher], repair: bool
) -> None:
    check_table(given_, make, repair=repair)


@pytest.mark.soak
@given(given_tables(), makers, st.booleans())
def test_very_many_tables_say_what_their_rows_say_one_by_one(
    given_: Given, make: Callable[[], Matcher], repair: bool
) -> None:
    check_table(given_, make, repair=repair)


# Many rows of a form beside one


@st.composite
def rows_of_one_form(draw: st.DrawFn) -> list[Row]:
    """Rows that differ in their literals only, or not even in these."""
    form = [draw(st.sampled_from(GOOD_FORMS))]
    words = texts(form) if draw(st.booleans()) else st.just(draw(texts(form)))
    count = draw(st.integers(8, 11))
    if draw(st.integers(0, 2)) == 0:
        return [Row(id_, filter=draw(words)) for id_ in range(count)]
    relation, attribute = draw(st.sampled_from(RELATIONS)), draw(st.sampled_from(ATTRIBUTES))
    shapes = st.sampled_from(GEOMETRIES[True])
    if draw(st.booleans()):
        shapes = st.just(draw(shapes))
    where = words if draw(st.integers(0, 4)) else st.none()
    return [Row(id_, None, draw(shapes), relation, draw(where), attribute) for id_ in range(count)]


def as_table(rows: Sequence[Row]) -> pa.Table:
    types = {"id": pa.int64(), "geometry": pa.binary(), "subscriber": pa.int64()}
    return pa.table(
        {
            name: pa.array([getattr(row, name) for row in rows], types.get(name, pa.string()))
            for name in Row._fields
        }
    )


Reasons = dict[Id | None, str]


def add_all(rows: Sequence[Row], matcher: Matcher, *, repair: bool) -> tuple[Outcome, Reasons]:
    """What a matcher holds of rows with ids of their own, and what it says of those it mends."""
    said: Reasons = {}
    matcher.add_many(
        as_table(rows),
        repair=repair,
        quarantine=True,
        on_bad=lambda _, id_, reason: said.update({id_: reason}),
    )
    return outcome(matcher), said


def check_form(rows: Sequence[Row], make: Callable[[], Matcher], *, repair: bool = False) -> None:
    """Rows in one table are the same subscriptions as each in a table of its own.

    What is wrong with one is said in the same words, to the character.
    """
    together = add_all(rows, make(), repair=repair)
    alone: Outcome = {}
    reasons: Reasons = {}
    for row in rows:
        held, said = add_all([row], make(), repair=repair)
        alone |= held
        reasons |= said
    assert together == (alone, reasons)


@settings(max_examples=60)
@given(rows_of_one_form(), makers, st.booleans())
def test_a_row_among_many_of_its_form_says_what_it_says_alone(
    rows: list[Row], make: Callable[[], Matcher], repair: bool
) -> None:
    check_form(rows, make, repair=repair)


@pytest.mark.soak
@given(rows_of_one_form(), makers, st.booleans())
def test_a_row_among_others_of_very_many_forms_says_what_it_says_alone(
    rows: list[Row], make: Callable[[], Matcher], repair: bool
) -> None:
    check_form(rows, make, repair=repair)


# Rows that must not be packed as they are


def square(side: int) -> shapely.Polygon:
    return shapely.box(0, 0, side, side)


PITFALLS = {
    "bounds that meet or exclude each other": [
        Row(n, f"wind >= 3 AND wind <= {n} AND gust > {n}") for n in range(1, 6)
    ],
    "a range of one number, or of none": [Row(n, f"wind BETWEEN 3 AND {n}") for n in range(1, 6)],
    "conditions that the geometry implies, or that it excludes": [
        Row(n, None, square(n).wkb, "within", f"S_WITHIN(geometry, {square(m).wkt})")
        for n, m in enumerate([3, 9, 1, 7, 5, 2], 1)
    ],
    "conditions on the attribute of the geometry that are one text": [
        Row(n, None, square(n).wkb, "disjoint", f"NOT S_INTERSECTS(geometry, {square(3).wkt})")
        for n in range(1, 11)
    ],
    "a filter with something beside it": [
        *(Row(n, "wind > 3", relation="within") for n in range(3)),
        *(Row(n, "wind > 3", attribute="area") for n in range(3, 6)),
        *(Row(n, "wind > 3", where="wind > 3") for n in range(6, 9)),
        *(Row(n, "wind > 3", square(n).wkb) for n in range(9, 12)),
    ],
    "nothing at all": [Row(n) for n in range(9)],
    "lines and areas for a relation of areas": [
        Row(n, None, shape.wkb, "ehInside", "wind > 3")
        for n, shape in enumerate([square(2), shapely.LineString([(0, 0), (1, 1)])] * 5)
    ],
    "conditions that never hold": [Row(n, None, square(1).wkb, where="FALSE") for n in range(9)],
    "conditions that always hold": [Row(n, None, square(1).wkb, where="TRUE") for n in range(9)],
    "integers that are equal as doubles": [
        Row(n, f"wind > {number}")
        for n, number in enumerate(["3", "3.0", str(2**53), str(2**53 + 1), f"{2**53}.0", "-0.0"])
    ],
}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("pitfall", PITFALLS)
def test_rows_with_a_pitfall_say_what_they_say_one_by_one(
    pitfall: str, make: Callable[[], Matcher]
) -> None:
    rows = PITFALLS[pitfall]
    check_table(Given(rows, as_table(rows), 65_536), make, repair=False)


# What was once wrong


@pytest.mark.parametrize(
    "where",
    [
        f"NOT S_INTERSECTS(area, {{mark}}){rest}"
        for rest in ("", " AND wind > 3", " OR name = 'a'", " AND S_WITHIN(area, POINT(7 7))")
    ],
)
def test_a_geometry_that_is_equal_to_a_mark_of_a_form_stays_where_it_is(where: str) -> None:
    mark = make_marks([OperandType.GEOMETRY])[0]
    assert isinstance(mark, shapely.Polygon)
    corners = ", ".join(f"{x!r} {y!r}" for x, y in mark.exterior.coords)
    spelt = f"POLYGON(({corners}))"
    assert shapely.from_wkt(spelt) == mark
    text = where.format(mark=spelt)
    rows = [Row(n, geometry=shapely.to_wkb(shapely.Point(n, 1)), where=text) for n in range(10)]
    check_form(rows, Matcher)


def test_an_id_beyond_64_bits_in_a_dictionary_is_a_bad_row_and_not_a_bad_table() -> None:
    ids = pa.array([7, 2**63, 8], pa.uint64()).dictionary_encode()
    matcher, heard = Matcher(), []
    table = pa.table({"id": ids, "filter": ["wind > 3"] * 3})
    assert matcher.add_many(table, quarantine=True, on_bad=lambda *bad: heard.append(bad)) == 2
    assert list(matcher) == [7, 8]
    assert [(row, id_) for row, id_, _ in heard] == [(1, 2**63)]


def test_the_constraints_of_equal_texts_are_packed_once() -> None:
    filters = ["x IN (1, 2, 3)", "x IN (4, 5, 6)", "y LIKE 'a%' OR y = z"]
    columns = {"filter": pa.array(filters * 20).dictionary_encode()}
    ids = pa.array(range(60))
    is_plain, parts = pack_plain(columns, None, ids, (), Matcher()._reader)
    assert is_plain.all()
    assert sum(len(packed.table.constraints) for packed, _ in parts) == 4
    matcher = Matcher()
    matcher.add_many(pa.table({"id": ids, **columns}))
    assert [matcher.get(i).text for i in range(3)] == [matcher.get(i).text for i in range(57, 60)]
    assert matcher.match({"x": 5}) == list(range(1, 60, 3))
