"""One seed's predicates and events, the library's answers beside the evaluator's.

A seed makes some predicates, each of them added as JSON and, where CQL2 has a text for it, as text;
and some events, given one by one and as a table. Where GEOS itself misjudges a pair of geometries
(see known_differences) a difference is not counted against an engine, but it is counted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from contrada import ContradaError, InvalidInput, Matcher
from exact_engines import EXACT_ENGINES
from fuzz import events, texts
from fuzz.meaning import Truth, geos_is_to_blame, is_refused, truth
from fuzz.predicates import Maker
from fuzz.reducing import reduce
from fuzz.shapes import Undecided

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

Node = Any
Row = dict[str, Any]

PREDICATES = 12
EVENTS = 24
DIFFERENCES_MAX = 10  # described for one run: each takes a while to be made small
Setting: TypeAlias = tuple[str, bool, str]
SETTINGS: tuple[tuple[str, bool], ...] = tuple(
    (engine, simplify)
    for engine in EXACT_ENGINES
    for simplify in (True, False)
    if simplify or engine != "scan"
)


@dataclass
class Tally:
    """What has been compared, and how much of it GEOS alone got wrong."""

    pairs: int = 0
    refused: int = 0
    undecided: int = 0
    geos: int = 0
    differences: list[str] = field(default_factory=list)


@dataclass
class Case:
    """The predicates of one seed, by number, and their texts."""

    random: Random
    maker: Maker
    trees: list[Node]
    texts: dict[int, str]


@dataclass(frozen=True)
class Answer:
    """One wrong answer, and all that was asked."""

    setting: Setting
    form: str
    tree: Node
    row: Row
    text: str | None
    wanted: object


def make_case(seed: int) -> Case:
    """The predicates of a seed."""
    random = Random(seed)
    maker = Maker(random)
    trees = [maker.predicate() for _ in range(PREDICATES)]
    written = {
        number: texts.write(tree, random)
        for number, tree in enumerate(trees)
        if texts.can_be_written(tree)
    }
    return Case(random, maker, trees, written)


def make_matcher(case: Case, engine: str, simplify: bool) -> Matcher:
    """A matcher with every predicate twice, as JSON and as text."""
    matcher = Matcher(engine) if engine == "scan" else Matcher(engine, simplify=simplify)
    for number, tree in enumerate(case.trees):
        matcher.add(f"{number} json", json.dumps(as_filter(tree)))
        if number in case.texts:
            matcher.add(f"{number} text", case.texts[number])
    return matcher


def as_filter(tree: Node) -> Node:
    """A tree that is an object, as CQL2 JSON must be."""
    return tree if isinstance(tree, dict) and "op" in tree else {"op": "and", "args": [tree, True]}


def compare_singles(seed: int, tally: Tally) -> None:
    """Events one by one."""
    case = make_case(seed)
    matchers = {setting: make_matcher(case, *setting) for setting in SETTINGS}
    for _ in range(EVENTS):
        row = events.event(case.random, case.maker.shapes)
        event = events.wrapped(row, case.random)
        seen = {**row, "geometry": row.get("geometry")} if event is not row else row
        if is_refused(case.trees, seen):
            tally.refused += 1
            wrong = [setting for setting, each in matchers.items() if not refuses(each, event)]
            tally.differences += [f"{setting}: not refused: {event!r}" for setting in wrong]
            continue
        wanted = list(decide(case.trees, seen, tally))
        for setting, matcher in matchers.items():
            found = {str(each) for each in matcher.match(event)}
            judge(case, (*setting, "match"), wanted, found, seen, tally)


def refuses(matcher: Matcher, event: Any) -> bool:
    """Whether a matcher refuses an event."""
    try:
        matcher.match(event)
    except InvalidInput:
        return True
    return False


def compare_tables(seed: int, tally: Tally) -> None:
    """Events as a table."""
    case = make_case(seed)
    table = events.table(case.random, case.maker.shapes, EVENTS)
    rows = table.to_pylist()
    refused = [number for number, row in enumerate(rows) if is_refused(case.trees, row)]
    tally.refused += len(refused)
    wanted: list[list[Truth | Undecided]] = [
        [False] * len(case.trees) if number in refused else list(decide(case.trees, row, tally))
        for number, row in enumerate(rows)
    ]
    for setting in SETTINGS:
        matcher = make_matcher(case, *setting)
        bad: list[int] = []
        found = pairs(match_table(matcher, table, bad))
        if bad != refused:
            tally.differences.append(f"{setting}: {bad} are bad, not {refused} of {rows!r}")
        for number, row in enumerate(rows):
            answer = {subscription for event, subscription in found if event == number}
            judge(case, (*setting, "match_many"), wanted[number], answer, row, tally)


def match_table(matcher: Matcher, table: pa.Table, bad: list[int], threads: int = 1) -> pa.Table:
    """Match a table; the numbers of its bad rows go into a list."""
    return matcher.match_many(
        table, threads=threads, quarantine=True, on_bad=lambda row, *_: bad.append(row)
    )


def pairs(answer: pa.Table) -> set[tuple[int, str]]:
    """The rows of an answer."""
    return {(row["event"], row["subscription"]) for row in answer.to_pylist()}


def decide(trees: list[Node], row: Row, tally: Tally) -> Iterator[Truth | Undecided]:
    """What the evaluator says of each predicate."""
    for tree in trees:
        tally.pairs += 1
        try:
            yield truth(tree, row)
        except Undecided as undecided:
            tally.undecided += 1
            yield undecided


def judge(
    case: Case,
    setting: Setting,
    wanted: list[Truth | Undecided],
    found: set[str],
    row: Row,
    tally: Tally,
) -> None:
    """Compare an answer, and write down what is wrong with it as small as it can be shown."""
    for number, tree in enumerate(case.trees):
        if isinstance(wanted[number], Undecided):
            continue
        expected = wanted[number] is True
        forms = ["json", "text"] if number in case.texts else ["json"]
        wrong = [form for form in forms if (f"{number} {form}" in found) is not expected]
        if not wrong:
            continue
        if geos_is_to_blame(tree, row):
            tally.geos += 1
        elif len(tally.differences) < DIFFERENCES_MAX:
            answer = Answer(setting, wrong[0], tree, row, case.texts.get(number), wanted[number])
            tally.differences.append(describe(answer))


def describe(answer: Answer) -> str:
    """A difference in words, with the smallest predicate and event that still show it."""
    small, event = reduce(answer.tree, answer.row, lambda *case: differs(answer, *case))
    written = texts.write(small, Random(0)) if texts.can_be_written(small) else json.dumps(small)
    how = " ".join(map(str, (*answer.setting, answer.form)))
    return (
        f"{how}: the evaluator says {answer.wanted} of {answer.text or json.dumps(answer.tree)}\n"
        f"  smallest predicate: {written}\n  smallest event:     {event!r}"
    )


def differs(answer: Answer, tree: Node, row: Row) -> bool:
    """Whether one predicate on one event shows a difference, that GEOS is not to blame for."""
    if answer.form == "text" and not texts.can_be_written(tree):
        return False
    as_text = answer.form == "text"
    filter_ = texts.write(tree, Random(0)) if as_text else json.dumps(as_filter(tree))
    try:
        expected = truth(tree, row) is True
        matcher = Matcher(answer.setting[0], simplify=answer.setting[1])
        matcher.add("s", filter_)
        return bool(matcher.match(row)) is not expected and not geos_is_to_blame(tree, row)
    except (Undecided, ContradaError, AssertionError):
        return False
