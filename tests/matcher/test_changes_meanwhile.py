"""Threads match, pickle and save while another changes the set: each sees it at some moment."""

import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import shapely

from contrada import Matcher
from contrada.matching import merges, segment_rows
from contrada.model.subscription import Id

CHANGES, RESIDENT = 400, 40
EVENT = {"geometry": shapely.Point(1, 1), "n": 5}
TABLE = pa.table({"geometry": shapely.to_wkb([shapely.Point(1, 1)]), "n": [5]})


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(segment_rows, "LARGE_MIN", 30)
    monkeypatch.setattr(merges, "RECENT_MAX", 12)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


class Changes:
    """A matcher that changes, and what it should answer after each change."""

    def __init__(self, engine: str) -> None:
        self.matcher = Matcher(engine)
        self.chance = random.Random(7)
        self.model: dict[Id, bool] = {}
        shapes = [shapely.box(i % 3, 0, 5 + i % 3, 5) for i in range(RESIDENT)]
        self.matcher.add_many(pa.table({"geometry": shapely.to_wkb(shapes)}))
        self.model = {i: i % 3 <= 1 for i in range(RESIDENT)}
        self.answers = [self.answer()]

    def answer(self) -> list[Id]:
        return sorted(id_ for id_, holds in self.model.items() if holds)

    def run(self) -> None:
        for number in range(CHANGES):
            self.announce(self.change(number))

    def announce(self, change: Callable[[], object]) -> None:
        """List the answer before it is given, so that no reader is ahead of the list."""
        self.answers.append(self.answer())
        change()
        self.done += 1

    done = 0

    def change(self, number: int) -> Callable[[], object]:
        ids = sorted(self.model, key=str)
        if self.chance.random() < 0.4 and len(ids) > RESIDENT // 2:
            id_ = self.chance.choice(ids)
            del self.model[id_]
            return lambda: self.matcher.remove(id_)
        if self.chance.random() < 0.2:
            table = self.make_table([*range(2_000 + number, 2_025 + number), *ids[:3]])
            return lambda: self.matcher.add_many(table, replace=True)
        id_ = self.chance.choice([1_000 + number, *ids[:3]])
        shape, where = self.make_wish(id_)
        return lambda: self.matcher.add(id_, geometry=shape, where=where, replace=True)

    def make_wish(self, id_: Id) -> tuple[shapely.Polygon, str]:
        x, least = self.chance.choice([(0, 4), (0, 6), (2, 4)])
        self.model[id_] = (x, least) == (0, 4)
        return shapely.box(x, 0, 9, 9), f"n > {least}"

    def make_table(self, ids: list[Id]) -> pa.Table:
        chosen = sorted({*self.chance.sample(ids, self.chance.choice([2, 12, 20]))}, key=str)
        shapes, texts = zip(*(self.make_wish(id_) for id_ in chosen), strict=True)
        return pa.table({"id": chosen, "geometry": shapely.to_wkb(shapes), "where": texts})


@pytest.mark.parametrize("engine", ["strtree", "crtree"])
def test_each_answer_holds_at_some_moment_between_question_and_answer(
    engine: str, tmp_path: Path
) -> None:
    changes = Changes(engine)
    wrong: list[object] = []
    asked = [0, 0, 0, 0]

    def ask(number: int, match: Callable[[], list[Id]]) -> None:
        while changes.done < CHANGES and not wrong:
            first = changes.done
            found = match()
            possible = changes.answers[first : changes.done + 2]
            asked[number] += 1
            if found not in possible:
                wrong.append((first, found, possible))

    def match_table() -> list[Id]:
        found: list[Id] = changes.matcher.match_many(TABLE, threads=1)["subscription"].to_pylist()
        return found

    def match_pickled() -> list[Id]:
        again: Matcher = pickle.loads(pickle.dumps(changes.matcher))
        return again.match(EVENT)

    def match_saved() -> list[Id]:
        changes.matcher.save(tmp_path / "set.contrada")
        return Matcher.open(tmp_path / "set.contrada").match(EVENT)

    asking = (lambda: changes.matcher.match(EVENT), match_table, match_pickled, match_saved)
    threads = [threading.Thread(target=ask, args=each) for each in enumerate(asking)]
    for thread in threads:
        thread.start()
    try:
        changes.run()
    finally:
        changes.done = CHANGES
        for thread in threads:
            thread.join()
    assert not wrong
    assert min(asked[:2]) > 10
    assert min(asked) > 0
    assert changes.matcher.match(EVENT) == changes.answer()
    assert list(changes.matcher) == sorted(changes.model)
