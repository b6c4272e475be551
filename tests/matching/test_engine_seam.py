"""An engine is one package and one line: nobody else names it or reaches into it."""

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada
from contrada.arrays import Positions
from contrada.matching.columns import EventBatch
from contrada.matching.engine import Engine, EngineKind, Index
from contrada.matching.engines import ENGINES
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import Event

SOURCE = Path(contrada.__file__).parent
MATCHING = SOURCE / "matching"
SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"

# What is made of one engine by its nature, and says so.
AT_HOME = {
    "matching/engines.py": "the table",
    "reproduce": "the papers' experiments measure their own structures",
    "spark/evaluators.py": "the evaluator `area` is the AHS model",
    "spark/area_tasks.py": "the evaluator `area` is the AHS model",
    "cli/reproduce.py": "papers are called by the names of what they describe",
}


NAMED = re.compile(rf"""[`"']({"|".join(ENGINES)})[`"']""")


def names_in(path: Path) -> Iterator[str]:
    """The engines that a module names as a value or in a text, or imports something of."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from NAMED.findall(node.value)
            if node.value in ENGINES:
                yield node.value
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[:2] == ["contrada", "matching"] and len(parts) > 2 and parts[2] in ENGINES:
                yield parts[2]


def is_at_home(path: Path, engine: str) -> bool:
    inside = path.relative_to(SOURCE).as_posix()
    homes = (*AT_HOME, f"matching/{engine}")
    return any(inside == home or inside.startswith(f"{home}/") for home in homes)


def test_nobody_else_names_an_engine() -> None:
    strangers = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in SOURCE.rglob("*.py")
        for name in names_in(path)
        if not is_at_home(path, name)
    }
    assert strangers == set()


@pytest.mark.parametrize("home", AT_HOME)
def test_who_may_name_an_engine_does(home: str) -> None:
    path = SOURCE / home
    files = path.rglob("*.py") if path.is_dir() else [path]
    assert any(True for file in files for _ in names_in(file))


class AsksNothing:
    """An index that finds every subscription, without a look at the event."""

    def __init__(self, subscriptions: SubscriptionColumns) -> None:
        self._count = len(subscriptions)

    def find(self, event: Event, groups: Positions) -> Positions:
        return np.flatnonzero(groups >= 0)

    def match_batch(self, batch: EventBatch) -> tuple[Positions, Positions]:
        rows, positions = np.indices((batch.length, self._count)).reshape(2, -1)
        return rows, positions

    def prepare(self, like: Sequence[Index]) -> None:
        pass

    def without(self, positions: Collection[int]) -> Index:
        raise NotImplementedError

    def breadth(self) -> int:
        return self._count

    def stats(self) -> dict[str, int]:
        return {}


@pytest.mark.parametrize("engine", ["asks nothing", "ahs"])
def test_nothing_is_prepared_for_an_engine_that_does_not_ask_for_it(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make() -> Engine:
        return Engine(AsksNothing, lambda filter_: [""] * len(filter_.constraints), None)

    def refuse(*_: object) -> None:
        raise AssertionError("an engine that did not ask got a prepared geometry")

    monkeypatch.setitem(dict_of_engines(), "asks nothing", EngineKind("asks nothing", "", make))
    matcher = contrada.Matcher(engine)
    matcher.add("a", geometry=SQUARE, relation="intersects")
    monkeypatch.setattr(shapely, "prepare", refuse)
    assert matcher.match({"geometry": SQUARE}) == ["a"]
    assert matcher.match({"geometry": shapely.from_wkt(SQUARE)}) == ["a"]
    assert matcher.match_many(pa.table({"geometry": [SQUARE, SQUARE]})).num_rows == 2
    assert matcher.match_many([{"geometry": SQUARE}]).num_rows == 1


def dict_of_engines() -> dict[str, EngineKind]:
    assert isinstance(ENGINES, dict)
    return ENGINES


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_is_a_package_that_makes_it(engine: str) -> None:
    assert (MATCHING / engine / "engine.py").is_file()
    assert ENGINES[engine].name == engine
