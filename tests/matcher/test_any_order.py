"""Whatever is done to a matcher, in any order: it holds and answers what a plain dictionary does.

Hypothesis tells stories of subscriptions that come one by one, as tables and from snapshots, are
replaced, removed, saved and opened again, and of additions that are refused. Beside the matcher
lives a dictionary of what was wished for; what that should answer is read from its texts afresh,
and evaluated event by event, without any column or index.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import threading
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import shapely
from hypothesis import settings as limits
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from contrada import Matcher
from contrada.errors import InvalidInput, UnknownSubscription
from contrada.language import read, to_json, truth
from contrada.matching import merges, segment_rows
from contrada.model.event import read_event
from contrada.model.expression import And, Attribute, Expression, Literal, Spatial
from contrada.model.relation import find_relation
from contrada.model.subscription import Id, Predicate
from subscription_rows import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
SHAPES = {
    "square": SQUARE,
    "inner": "POLYGON((1 1, 2 1, 2 2, 1 2, 1 1))",
    "ring": "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 1 3, 3 3, 3 1, 1 1))",
    "parts": "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
    "line": "LINESTRING(0 0, 3 3, 5 3)",
    "point": "POINT(1 1)",
    "mixture": "GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0, 5 5))",
}
BOW_TIE = "POLYGON((0 0, 4 4, 4 0, 0 4, 0 0))"
PATIENCE_S = 60
NUMBERS = ("3", "7", "7.0", "-2", "1e1", str(2**53 + 1))
STRINGS = ("a", "ab", "it''s", "a%", "É")

# Events


def event(**attributes: Any) -> dict[str, Any]:
    return {"wind": None, "name": None, "geometry": None, "area": None, **attributes}


EVENTS = (
    event(wind=3.0, name="a", geometry="POINT(1 1)"),
    event(wind=7.0, name="ab", geometry="POLYGON((1 1, 3 1, 3 3, 1 1))", area=SQUARE),
    event(wind=-2.5, name="it's", geometry="LINESTRING(0 0, 5 5)", area="POINT(5.5 5.5)"),
    event(wind=1e16, area="POLYGON((1 1, 2 1, 2 2, 1 2, 1 1))"),
    event(),
)


def as_table(events: list[dict[str, Any]]) -> pa.Table:
    columns = {name: [each[name] for each in events] for name in event()}
    for name in ("geometry", "area"):
        columns[name] = [None if wkt is None else to_wkb(wkt) for wkt in columns[name]]
    types = {"wind": pa.float64(), "name": pa.string()}
    return pa.table(
        {name: pa.array(cells, types.get(name, pa.binary())) for name, cells in columns.items()}
    )


def to_wkb(wkt: str) -> bytes:
    return bytes(shapely.to_wkb(shapely.from_wkt(wkt)))


# Wishes


@dataclass(frozen=True)
class Wish:
    """What somebody wants: a whole predicate, or a geometry and what goes with it."""

    filter: str | None = None
    shape: str | None = None
    relation: str | None = None
    where: str | None = None
    attribute: str | None = None

    def arguments(self) -> dict[str, Any]:
        """What `Matcher.add` takes, with a geometry as WKT."""
        cells = {"filter": self.filter, "geometry": self.shape, "relation": self.relation}
        cells |= {"where": self.where, "attribute": self.attribute}
        return {name: cell for name, cell in cells.items() if cell is not None}


NUMBER_FORMS = (
    *("wind > {}", "wind <= {} AND name LIKE 'a%'", "NOT wind > {}", "wind BETWEEN -5 AND {}"),
    *("wind > {} OR S_INTERSECTS(area, " + SQUARE + ")", "wind + 1 > {}", "wind IN (3, {})"),
)
STRING_FORMS = ("name = '{}'", "name LIKE '{}'", "name <> '{}' AND wind > 2", "casei(name) = '{}'")
SHAPE_FORMS = ("S_INTERSECTS(geometry, {})", "S_WITHIN({}, area)", "NOT S_DISJOINT(area, {})")
WHERE = [
    *(form.format(number) for form, number in product(NUMBER_FORMS, NUMBERS)),
    *(form.format(string) for form, string in product(STRING_FORMS, STRINGS)),
    *(form.format(shape) for form, shape in product(SHAPE_FORMS, SHAPES.values())),
    *("TRUE", "FALSE", "name IS NULL", "wind > 3 AND wind > 5 AND wind < 4"),
    f"ehInside(area, {SQUARE}) AND wind > 0",
]
RELATIONS = (None, "intersects", "Within", "disjoint", "coveredBy", "T*F**F***")
AREA_RELATIONS = ("ehInside", "ehDisjoint")
ATTRIBUTES = (None, "area", "geometry")
ON_SHAPES = [
    Wish(None, shape, relation, None, attribute)
    for shape, relation, attribute in product(SHAPES.values(), RELATIONS, ATTRIBUTES)
] + [
    Wish(None, shape, relation, None, attribute)
    for shape, relation, attribute in product([SQUARE, SHAPES["ring"]], AREA_RELATIONS, ATTRIBUTES)
]
BAD_WISHES = [
    *(Wish(), Wish("wind >"), Wish(""), Wish("wind > 1e400"), Wish(f"S_WITHIN(area, {BOW_TIE})")),
    *(Wish(None, BOW_TIE), Wish(None, "POINT EMPTY"), Wish(None, SQUARE, "near")),
    *(Wish(None, SQUARE, None, "wind LIEK 3"), Wish(None, SQUARE, None, None, "")),
    *(Wish("wind > 3", SQUARE), Wish(None, "POINT(1 1)", "ehInside")),
]

good_wishes = st.one_of(
    st.builds(Wish, st.sampled_from(WHERE)),
    st.sampled_from(ON_SHAPES),
    st.builds(
        lambda wish, where: Wish(None, wish.shape, wish.relation, where, wish.attribute),
        st.sampled_from(ON_SHAPES),
        st.sampled_from(WHERE),
    ),
)


@cache
def read_wish(wish: Wish) -> Expression:
    """The tree of a wish, read and put together without any matcher."""
    if wish.filter is not None:
        return read(wish.filter)
    test = Spatial(
        find_relation(wish.relation or "intersects"),
        Attribute(wish.attribute or "geometry"),
        Literal(shapely.from_wkt(wish.shape)),
    )
    return test if wish.where is None else And((test, read(wish.where)))


def is_true(wish: Wish, asked: Mapping[str, Any]) -> bool:
    return truth(read_wish(wish), read_event(asked)) is True


@cache
def find_fixed(wish: Wish) -> frozenset[int]:
    """The numbers of the fixed events that a wish is true of."""
    return frozenset(number for number, asked in enumerate(EVENTS) if is_true(wish, asked))


@cache
def make_predicate(wish: Wish, engine: str) -> Predicate:
    """What a matcher that was asked nothing else makes of a wish."""
    matcher = Matcher(engine)
    matcher.add(0, **wish.arguments())
    return matcher.get(0).predicate


# Rows


@dataclass(frozen=True)
class WishRow:
    """A row of a table to be."""

    id: Id | None
    wish: Wish
    subscriber: Id | None = None


@dataclass(frozen=True)
class Look:
    """How a table spells its rows."""

    spelling: str = "wkb"
    way: str = "plain"
    kind: pa.DataType = field(default_factory=pa.string)
    has_ids: bool = True

    def table(self, rows: list[WishRow]) -> pa.Table:
        columns = {
            name: self.texts([getattr(row.wish, name) for row in rows])
            for name in ("filter", "relation", "where", "attribute")
        }
        shapes = [row.wish.shape for row in rows]
        columns["geometry"] = self.geometries(shapes)
        columns["subscriber"] = column_of_ids([row.subscriber for row in rows])
        if self.has_ids:
            columns["id"] = column_of_ids([row.id for row in rows])
        return pa.table(columns)

    def texts(self, cells: list[str | None]) -> pa.Array:
        if all(cell is None for cell in cells) and self.way == "dictionary":
            return pa.nulls(len(cells))
        return encode(cells, self.kind, self.way)

    def geometries(self, shapes: list[str | None]) -> pa.Array:
        if self.spelling == "wkt":
            return encode(shapes, self.kind, self.way)
        wkb = pa.array([None if wkt is None else to_wkb(wkt) for wkt in shapes], pa.binary())
        return wkb.dictionary_encode() if self.spelling == "dictionary" else wkb


def column_of_ids(ids: list[Id | None]) -> pa.Array:
    is_text = any(isinstance(id_, str) for id_ in ids)
    return pa.array(ids, pa.string() if is_text else pa.int64())


looks = st.builds(
    Look,
    st.sampled_from(["wkb", "wkt", "dictionary"]),
    st.sampled_from(["plain", "dictionary", "loose dictionary", "slice"]),
    st.sampled_from([pa.string(), pa.large_string()]),
)
numbers = st.integers(0, 19)
whole_subscribers: st.SearchStrategy[Id | None] = st.sampled_from([None, 1, 2, -7])
text_subscribers: st.SearchStrategy[Id | None] = st.sampled_from([None, "ops", "1", "é"])
subscribers = st.one_of(whole_subscribers, text_subscribers)


@st.composite
def wish_lists(draw: st.DrawFn) -> list[tuple[int, Wish, Id | None]]:
    """Numbers with wishes, of which many are of one form, and subscribers of one kind."""
    count = draw(st.integers(1, 12))
    who = draw(st.sampled_from([whole_subscribers, text_subscribers]))
    pool = draw(st.lists(good_wishes, min_size=1, max_size=6))
    wishes = st.one_of(st.sampled_from(pool), good_wishes)
    return [(draw(numbers), draw(wishes), draw(who)) for _ in range(count)]


Heard = list[tuple[int, Id | None, str]]
FEW = Look().table([WishRow(number, Wish("wind > 2")) for number in range(12)])


@cache
def load_kernels(engine: str) -> None:
    """Load what children of a fork would otherwise load one by one."""
    matcher = Matcher(engine)
    matcher.add_many(FEW)
    matcher.match(EVENTS[0])


class Story(RuleBasedStateMachine):
    """A matcher beside a dictionary of wishes and subscribers."""

    engine: str

    @initialize(is_text=st.booleans())
    def begin(self, is_text: bool) -> None:
        load_kernels(self.engine)
        self.folder = TemporaryDirectory()
        self.matcher = Matcher(self.engine)
        self.model: dict[Id, tuple[Wish, Id | None]] = {}
        self.is_text = is_text
        self.left_out = 0
        self.is_checked = False
        self.running: list[tuple[Iterator[pa.RecordBatch], list[tuple[int, Id]]]] = []

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.finish_what_runs()
            self.folder.cleanup()

    def id_of(self, number: int) -> Id:
        return f"{'é' * (number % 2)}{number}" if self.is_text else number * 3 - 5

    def other_id(self, number: int) -> Id:
        return number if self.is_text else f"{number}"

    def take(self, id_: Id, wish: Wish, subscriber: Id | None) -> None:
        self.model[id_] = wish, subscriber
        self.is_checked = False

    # One by one

    @rule(number=numbers, wish=good_wishes, who=subscribers, replace=st.booleans())
    def add(self, number: int, wish: Wish, who: Id | None, replace: bool) -> None:
        self.add_one(self.id_of(number), wish, wish.arguments(), who, replace)

    @rule(number=numbers, text=st.sampled_from(WHERE), who=subscribers)
    def replace_by_json(self, number: int, text: str, who: Id | None) -> None:
        tree = to_json(read(text))
        for filter_ in (json.dumps(tree) if isinstance(tree, dict) else tree, tree):
            arguments = {"filter": filter_}
            self.add_one(self.id_of(number), Wish(text), arguments, who, replace=True)

    def add_one(
        self, id_: Id, wish: Wish, arguments: dict[str, Any], who: Id | None, replace: bool
    ) -> None:
        if id_ in self.model and not replace:
            with pytest.raises(InvalidInput, match="already taken"):
                self.matcher.add(id_, **arguments, subscriber=who)
            return
        self.matcher.add(id_, **arguments, subscriber=who, replace=replace)
        self.take(id_, wish, who)

    @rule(number=numbers, wish=st.sampled_from(BAD_WISHES), replace=st.booleans())
    def add_what_is_bad(self, number: int, wish: Wish, replace: bool) -> None:
        with pytest.raises(InvalidInput):
            self.matcher.add(self.id_of(number), **wish.arguments(), replace=replace)

    @precondition(lambda self: self.model)
    @rule(number=numbers, look=looks)
    def add_an_id_of_the_other_kind(self, number: int, look: Look) -> None:
        id_ = self.other_id(number)
        with pytest.raises(InvalidInput, match="all strings or all integers"):
            self.matcher.add(id_, "wind > 3", replace=True)
        table = look.table([WishRow(id_, Wish("wind > 3"))])
        with pytest.raises(InvalidInput, match="all strings or all integers"):
            self.matcher.add_many(table, replace=True, quarantine=True)

    @rule(number=numbers)
    def remove(self, number: int) -> None:
        id_ = self.id_of(number)
        if id_ in self.model:
            self.matcher.remove(id_)
            del self.model[id_]
            self.is_checked = False
        else:
            self.refuse_unknown(id_)

    @precondition(lambda self: len(self.model) > 2)
    @rule(number=numbers)
    def remove_all_but_a_few(self, number: int) -> None:
        ids = sorted(self.model)
        kept = {ids[number % len(ids)], ids[number // 2 % len(ids)]}
        for id_ in self.model.keys() - kept:
            self.matcher.remove(id_)
            del self.model[id_]
        self.is_checked = False

    @precondition(lambda self: not self.model)
    @rule()
    def change_the_kind_of_ids(self) -> None:
        self.is_text = not self.is_text

    @rule(number=numbers)
    def refuse_unknown_ids(self, number: int) -> None:
        self.refuse_unknown(self.other_id(number))
        self.refuse_unknown("nobody")

    def refuse_unknown(self, id_: Id) -> None:
        assert id_ not in self.matcher
        asks: list[Callable[[], object]] = [
            lambda: self.matcher.remove(id_),
            lambda: self.matcher.get(id_),
            lambda: self.matcher.why(id_, EVENTS[0]),
        ]
        for ask in asks:
            with pytest.raises(UnknownSubscription):
                ask()

    # Tables

    @rule(wishes=wish_lists(), look=looks)
    def add_new_rows(self, wishes: list[tuple[int, Wish, Id | None]], look: Look) -> None:
        by_id = {self.id_of(number): (wish, who) for number, wish, who in wishes}
        rows = [WishRow(i, *rest) for i, rest in by_id.items() if i not in self.model]
        if rows:
            self.add_rows(rows, look, replace=False, quarantine=False)

    @rule(wishes=wish_lists(), look=looks, quarantine=st.booleans())
    def replace_rows(
        self, wishes: list[tuple[int, Wish, Id | None]], look: Look, quarantine: bool
    ) -> None:
        rows = [WishRow(self.id_of(number), wish, who) for number, wish, who in wishes]
        self.add_rows(rows, look, replace=True, quarantine=quarantine)

    @precondition(lambda self: not self.is_text)
    @rule(wishes=wish_lists(), spelling=st.sampled_from(["wkb", "wkt"]), quarantine=st.booleans())
    def add_numbered_rows(
        self, wishes: list[tuple[int, Wish, Id | None]], spelling: str, quarantine: bool
    ) -> None:
        rows = [WishRow(row, wish, who) for row, (_, wish, who) in enumerate(wishes)]
        self.add_rows(rows, Look(spelling, has_ids=False), replace=False, quarantine=quarantine)

    @rule(
        wishes=wish_lists(),
        bad=st.lists(
            st.tuples(st.integers(0, 12), st.one_of(st.none(), st.sampled_from(BAD_WISHES))),
            max_size=3,
        ),
        look=looks,
        replace=st.booleans(),
        quarantine=st.booleans(),
    )
    def add_rows_of_which_some_are_bad(
        self,
        wishes: list[tuple[int, Wish, Id | None]],
        bad: list[tuple[int, Wish | None]],
        look: Look,
        replace: bool,
        quarantine: bool,
    ) -> None:
        rows = [WishRow(self.id_of(number), wish, who) for number, wish, who in wishes]
        for place, wish in bad:
            id_ = None if wish is None else self.id_of(place)
            rows.insert(place, WishRow(id_, wish or Wish("wind > 3")))
        self.add_rows(rows, look, replace=replace, quarantine=quarantine)

    @rule(wishes=wish_lists(), gone=st.sets(numbers), look=looks, as_file=st.booleans())
    def let_some_take_the_place_of_others(
        self, wishes: list[tuple[int, Wish, Id | None]], gone: set[int], look: Look, as_file: bool
    ) -> None:
        by_id = {self.id_of(number): (wish, who) for number, wish, who in wishes}
        discarded = [self.id_of(number) for number in gone]
        known = self.model.keys() - set(discarded)
        rows = [WishRow(id_, *rest) for id_, rest in by_id.items() if id_ not in known]
        source: object = look.table(rows)
        if as_file:
            source = Path(self.folder.name) / "others.contrada"
            others = Matcher(self.engine)
            others.add_many(look.table(rows))
            others.save(source)
        assert self.matcher.add_many(source, discard=discarded) == len(rows)
        for id_ in discarded:
            self.model.pop(id_, None)
        for row in rows:
            assert row.id is not None
            self.take(row.id, row.wish, row.subscriber)
        self.is_checked = False

    def add_rows(self, rows: list[WishRow], look: Look, *, replace: bool, quarantine: bool) -> None:
        good, bad = self.judge(rows, replace=replace)
        heard: Heard = []

        def add() -> int:
            return self.matcher.add_many(
                look.table(rows),
                replace=replace,
                quarantine=quarantine,
                on_bad=lambda *one: heard.append(one),
            )

        if bad and not quarantine:
            with pytest.raises(InvalidInput, match=rf"\brow {bad[0]}\b"):
                add()
            assert heard == []
            return
        assert add() == len(good)
        assert sorted((row, id_) for row, id_, _ in heard) == [(n, rows[n].id) for n in bad]
        self.left_out += len(bad)
        for row in good:
            assert row.id is not None
            self.take(row.id, row.wish, row.subscriber)

    def judge(self, rows: list[WishRow], *, replace: bool) -> tuple[list[WishRow], list[int]]:
        """The rows that can be added, and the numbers of the others."""
        taken = set() if replace else set(self.model)
        good, bad = [], []
        for number, row in enumerate(rows):
            if row.id is None or row.wish in BAD_WISHES or row.id in taken:
                bad.append(number)
                continue
            good.append(row)
            if not replace:
                taken.add(row.id)
        return good, bad

    # Files

    def save(self) -> Path:
        path = Path(self.folder.name) / "story.contrada"
        self.matcher.save(path)
        return path

    @rule()
    def save_and_open(self) -> None:
        self.matcher = Matcher.open(self.save())
        self.left_out = 0
        self.is_checked = False

    @rule(is_copied=st.booleans())
    def go_on_with_a_pickle_or_a_copy(self, is_copied: bool) -> None:
        if is_copied:
            self.matcher = copy.copy(self.matcher)
        else:
            self.matcher = pickle.loads(pickle.dumps(self.matcher))
        self.left_out = 0
        self.is_checked = False

    @rule()
    def a_child_of_a_fork_answers_and_changes(self) -> None:
        child = os.fork()
        if not child:
            try:
                os._exit(0 if self.are_right_in_a_child() else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def are_right_in_a_child(self) -> bool:
        """Whether a matcher that was inherited answers, can be emptied, and takes new rows."""
        found = [self.matcher.match(asked) for asked in EVENTS]
        are_right = found == [self.answer(number) for number in range(len(EVENTS))]
        for id_ in self.model:
            self.matcher.remove(id_)
        are_right &= self.matcher.match(EVENTS[0]) == []
        self.matcher.add_many(FEW)
        return are_right and self.matcher.match(EVENTS[0]) == FEW["id"].to_pylist()

    @rule()
    def let_merges_end(self) -> None:
        """Else a story goes on beside them, however far they are."""
        for thread in threading.enumerate():
            if thread.name == "contrada-merge":
                thread.join(PATIENCE_S)
                assert not thread.is_alive()

    @rule()
    def read_a_snapshot_into_a_fresh_matcher(self) -> None:
        path = self.save()
        self.matcher = Matcher(self.engine)
        assert self.matcher.add_many(path) == len(self.model)
        self.left_out = 0
        self.is_checked = False

    @rule()
    def read_a_snapshot_of_its_own(self) -> None:
        path = self.save()
        assert self.matcher.add_many(path, replace=True) == len(self.model)
        self.is_checked = False

    @rule()
    def the_same_subscriptions_are_saved_as_the_same_bytes(self) -> None:
        twin = Matcher(self.engine)
        for id_, (wish, who) in self.model.items():
            twin.add(id_, **wish.arguments(), subscriber=who)
        path = Path(self.folder.name) / "twin.contrada"
        twin.save(path)
        assert path.read_bytes() == self.save().read_bytes()

    # Questions

    def answer(self, number: int) -> list[Id]:
        """The ids that should match a fixed event."""
        return sorted(id_ for id_, (wish, _) in self.model.items() if number in find_fixed(wish))

    def pairs(self) -> list[tuple[int, Id]]:
        return [(number, id_) for number in range(len(EVENTS)) for id_ in self.answer(number)]

    @rule(
        wind=st.sampled_from([None, 3, 3.5, 7, 2**53 + 1]),
        name=st.sampled_from([None, "a", "ab", "É"]),
        geometry=st.sampled_from([None, *SHAPES.values(), "POINT(0 2)"]),
        area=st.sampled_from([None, *SHAPES.values()]),
    )
    def match_any_event(self, **attributes: Any) -> None:
        asked = event(**attributes)
        wanted = [id_ for id_, (wish, _) in self.model.items() if is_true(wish, asked)]
        assert self.matcher.match(asked) == sorted(wanted)

    @rule(threads=st.integers(1, 2), as_list=st.booleans())
    def match_many(self, threads: int, as_list: bool) -> None:
        events = list(EVENTS) if as_list else as_table(list(EVENTS))
        found = self.matcher.match_many(events, threads=threads)
        assert pairs_of(found.to_batches()) == self.pairs()

    @rule()
    def a_scan_of_what_is_saved_finds_the_same(self) -> None:
        scan = Matcher("scan")
        scan.add_many(self.save())
        found = scan.match_many(as_table(list(EVENTS)))
        assert pairs_of(found.to_batches()) == self.pairs()

    @rule()
    def begin_to_match_many(self) -> None:
        events = as_table(list(EVENTS))
        self.running.append((self.matcher.match_many(events, batches=True), self.pairs()))

    @rule()
    def finish_what_runs(self) -> None:
        """What was asked before is answered as of then, whatever has changed since."""
        for batches, wanted in self.running:
            assert pairs_of(batches) == wanted
        self.running.clear()

    @rule(number=st.integers(0, len(EVENTS) - 1))
    def name_subscribers(self, number: int) -> None:
        wanted = {self.model[id_][1] for id_ in self.answer(number)} - {None}
        order = sorted(wanted, key=lambda who: (isinstance(who, str), who))
        assert self.matcher.subscribers(EVENTS[number]) == order

    @rule(number=st.integers(0, len(EVENTS) - 1))
    def explain(self, number: int) -> None:
        found = self.matcher.match(EVENTS[number])
        for id_ in self.model:
            assert bool(self.matcher.why(id_, EVENTS[number])) == (id_ in found)

    @rule()
    def count(self) -> None:
        stats = self.matcher.stats()
        assert stats["subscriptions"] == len(self.model)
        assert stats["engine"] == self.engine
        assert stats["subscriptions_left_out"] == self.left_out

    # What holds always

    @invariant()
    def it_is_what_the_dictionary_is(self) -> None:
        assert len(self.matcher) == len(self.model)
        assert list(self.matcher) == sorted(self.model)
        for number, asked in enumerate(EVENTS):
            assert self.matcher.match(asked) == self.answer(number)

    @invariant()
    def every_subscription_reads_as_its_wish(self) -> None:
        if self.is_checked:
            return
        self.is_checked = True
        for id_, (wish, who) in self.model.items():
            assert id_ in self.matcher
            found = self.matcher.get(id_)
            assert (found.id, found.subscriber) == (id_, who)
            assert found.predicate == make_predicate(wish, self.engine)


def pairs_of(batches: Any) -> list[tuple[int, Id]]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [(row["event"], row["subscription"]) for row in rows]


class StrtreeStory(Story):
    engine = "strtree"


class CrtreeStory(Story):
    engine = "crtree"


stories = pytest.mark.parametrize("story", [StrtreeStory, CrtreeStory])


@stories
def test_a_matcher_is_what_a_dictionary_is_in_any_order_of_calls(story: type[Story]) -> None:
    run_state_machine_as_test(story, settings=limits(max_examples=10, stateful_step_count=25))


@stories
def test_it_is_where_few_subscriptions_count_as_many(
    story: type[Story], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then what is added last has no columns, and merges run in the background."""
    monkeypatch.setattr(segment_rows, "LARGE_MIN", 4)
    monkeypatch.setattr(merges, "RECENT_MAX", 6)
    run_state_machine_as_test(story, settings=limits(max_examples=10, stateful_step_count=25))


@pytest.mark.soak
@pytest.mark.parametrize("large_min", [4, segment_rows.LARGE_MIN])
@stories
def test_a_matcher_is_what_a_dictionary_is_in_many_more_stories(
    story: type[Story], large_min: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_rows, "LARGE_MIN", large_min)
    monkeypatch.setattr(merges, "RECENT_MAX", min(merges.RECENT_MAX, large_min + 2))
    run_state_machine_as_test(story, settings=limits(stateful_step_count=50))
