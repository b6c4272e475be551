"""Matchers of all exact engines that live through the same changes and must always answer alike.

A seed tells a story: subscriptions come one by one, by table, go, are replaced, and now and then
every matcher is saved and opened again. In between all are asked the same: one event, whom to
forward to, and tables on one thread and on two.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import shapely

from contrada import Matcher
from fuzz import events
from fuzz.comparing import SETTINGS, as_filter, match_table, pairs, refuses
from fuzz.meaning import geos_is_to_blame, is_refused, truth
from fuzz.predicates import Maker
from fuzz.shapes import Undecided

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Node = Any
Row = dict[str, Any]

RELATIONS = "intersects disjoint touches within contains overlaps equals covers coveredBy".split()
WIDTH = 60  # of the square in which areas of subscriptions and events lie scattered


class Story:
    """The subscriptions that all matchers should have, and the matchers."""

    def __init__(self, seed: int, folder: Path, steps: int) -> None:
        self.random = Random(seed)
        self.maker = Maker(self.random)
        self.folder = folder
        self.steps = steps
        self.trees: dict[str, Node] = {}
        self.matchers = {
            (engine, simplify): Matcher(engine, simplify=simplify) for engine, simplify in SETTINGS
        }
        self.asked = 0

    def tell(self) -> list[str]:
        """Run through the story; what the engines do not agree on, in words."""
        self.add_table(60)
        found: list[str] = []
        for number in range(self.steps):
            self.random.choice(self.changes())()
            if number % 4 == 3:
                found += self.ask_one()
            if number % 15 == 14:
                found += self.ask_table()
            if found:
                break
        return found

    def changes(self) -> list[Callable[[], None]]:
        """What may happen, as often as it should."""
        changes: list[Callable[[], None]] = [self.add, self.add, self.replace, self.remove]
        return [*changes * 4, self.remove_some, lambda: self.add_table(15), self.reopen]

    # Changes

    def tree(self) -> Node:
        """A predicate of any kind, or an area somewhere with a condition."""
        if self.random.random() < 0.4:
            return self.maker.predicate()
        relation = {
            "op": f"s_{self.random.choice(RELATIONS[:7])}",
            "args": [{"property": "g"}, self.area()],
        }
        return {"op": "and", "args": [relation, self.maker.comparison()]}

    def area(self) -> Node:
        """A rectangle somewhere, so that indexes have something to leave out."""
        west, south = self.random.randrange(WIDTH), self.random.randrange(WIDTH)
        east, north = (start + self.random.randint(1, 6) for start in (west, south))
        return {"bbox": [west, south, east, north]}

    def new_id(self) -> str:
        return f"{self.random.randrange(10**6)}"

    def known_id(self) -> str | None:
        return self.random.choice(sorted(self.trees)) if self.trees else None

    def put(self, name: str, *, replace: bool) -> None:
        tree = self.tree()
        subscriber = self.random.choice((None, "a", "b", "c"))
        self.trees[name] = tree
        for matcher in self.matchers.values():
            matcher.add(name, json.dumps(as_filter(tree)), subscriber=subscriber, replace=replace)

    def add(self) -> None:
        name = self.new_id()
        if name not in self.trees:
            self.put(name, replace=False)

    def replace(self) -> None:
        self.put(self.known_id() or self.new_id(), replace=True)

    def remove(self) -> None:
        name = self.known_id()
        if name is None:
            return
        del self.trees[name]
        for matcher in self.matchers.values():
            matcher.remove(name)

    def remove_some(self) -> None:
        for _ in range(len(self.trees) // 3):
            self.remove()

    def add_table(self, rows: int) -> None:
        """Subscriptions as rows, some by their predicate, some by geometry, relation and where."""
        table = [self.row() for _ in range(rows)]
        columns = {name: [row.get(name) for row in table] for name in COLUMNS}
        given = pa.table({name: pa.array(columns[name], kind) for name, kind in COLUMNS.items()})
        for matcher in self.matchers.values():
            matcher.add_many(given, replace=True)

    def row(self) -> Row:
        name = self.new_id()
        if self.random.random() < 0.3:
            self.trees[name] = self.tree()
            return {"id": name, "filter": json.dumps(as_filter(self.trees[name]))}
        area, relation = self.area(), self.random.choice(RELATIONS)
        where = self.maker.comparison() if self.random.random() < 0.5 else None
        operator = relation if relation.startswith("cover") else f"s_{relation}"
        tree: Node = {"op": operator, "args": [{"property": "g"}, area]}
        self.trees[name] = {"op": "and", "args": [tree, where]} if where else tree
        return {
            "id": name,
            "geometry": shapely.to_wkb(shapely.box(*area["bbox"])),
            "relation": relation,
            "attribute": "g",
            "where": json.dumps(where) if where else None,
            "subscriber": self.random.choice((None, "a", "b")),
        }

    def reopen(self) -> None:
        """Save every matcher and go on with what the file gives back."""
        for (engine, simplify), matcher in self.matchers.items():
            path = self.folder / f"{engine}-{simplify}.contrada"
            matcher.save(path)
            self.matchers[engine, simplify] = Matcher.open(path)

    # Questions

    def event(self) -> Row:
        """An event of any kind, often with a rectangle or a point in the scattered square."""
        row = events.event(self.random, self.maker.shapes)
        if self.random.random() < 0.7:
            west, south, east, north = self.area()["bbox"]
            is_point = self.random.random() < 0.4
            row["g"] = (
                shapely.Point(west, south) if is_point else shapely.box(west, south, east, north)
            )
        return row

    def ask_one(self) -> list[str]:
        """One event: the ids, and whom to forward to."""
        row = self.event()
        self.asked += 1
        if is_refused(self.trees.values(), row):
            return [
                f"{setting}: not refused: {row!r}"
                for setting, matcher in self.matchers.items()
                if not refuses(matcher, row)
            ]
        answers = {setting: matcher.match(row) for setting, matcher in self.matchers.items()}
        forwarded = {
            setting: matcher.subscribers(row) for setting, matcher in self.matchers.items()
        }
        wrong = [
            difference
            for setting, answer in answers.items()
            for name in sorted(set(map(str, answer)) ^ set(map(str, answers["scan", True])))
            if (difference := self.describe(setting, name, row))
        ]
        is_excused = any(answer != answers["scan", True] for answer in answers.values())
        if not wrong and not is_excused and len({tuple(each) for each in forwarded.values()}) > 1:
            wrong.append(f"subscribers differ: {forwarded} for {row!r}")
        return wrong

    def ask_table(self) -> list[str]:
        """A table, on one thread and on two, and in the order that is promised."""
        table = events.table(self.random, self.maker.shapes, 40)
        rows = table.to_pylist()
        expected = pairs(match_table(self.matchers["scan", True], table, []))
        trees = self.trees.values()
        refused = [number for number, row in enumerate(rows) if is_refused(trees, row)]
        wrong = []
        for setting, matcher in self.matchers.items():
            for threads in (1, 2):
                bad: list[int] = []
                answer = match_table(matcher, table, bad, threads)
                if bad != refused:
                    wrong.append(f"{setting}: {bad} are bad, not {refused} of {rows!r}")
                order = [(each["event"], each["subscription"]) for each in answer.to_pylist()]
                if order != sorted(order) or len(set(order)) != len(order):
                    wrong.append(f"{setting}: not in order, or doubled")
                for event, name in sorted(pairs(answer) ^ expected):
                    wrong.append(self.describe((*setting, threads), name, rows[event]))
            self.asked += len(rows)
        return [each for each in wrong if each]

    def describe(self, setting: tuple[object, ...], name: str, row: Row) -> str:
        """What differs from `scan`, and who is right; nothing where GEOS itself is wrong."""
        if name not in self.trees:
            return f"{setting}: {name} is not there any more, or was never added"
        tree = self.trees[name]
        if geos_is_to_blame(tree, row):
            return ""
        try:
            wanted: object = truth(tree, row)
        except Undecided:
            wanted = "undecided"
        return f"{setting} and scan differ on {json.dumps(tree)} for {row!r}; evaluator: {wanted}"


COLUMNS = {
    "id": pa.string(),
    "filter": pa.string(),
    "geometry": pa.binary(),
    "relation": pa.string(),
    "attribute": pa.string(),
    "where": pa.string(),
    "subscriber": pa.string(),
}
