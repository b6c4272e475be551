"""Spoilt predicates are refused as invalid input or taken for what they say, and nothing else.

What is taken survives both encodings, and means what the evaluator's own parser reads in it, if
that takes it, too.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import shapely

import contrada
from contrada.language import read, to_json, to_text
from fuzz import events, parser, runs, texts
from fuzz.comparing import as_filter
from fuzz.meaning import geos_is_to_blame, truth
from fuzz.mutations import spoil_json, spoil_text
from fuzz.predicates import Maker
from fuzz.shapes import Undecided

if TYPE_CHECKING:
    from collections.abc import Iterable

SPOILT = 40  # of each seed, half of them texts


def run(seeds: Iterable[int], request: pytest.FixtureRequest) -> None:
    taken = refused = 0
    for seed in seeds:
        random = Random(seed)
        maker = Maker(random)
        for number in range(SPOILT):
            tree = maker.predicate(4)
            as_text = number % 2 == 0 and texts.can_be_written(tree)
            given = spoilt(tree, as_text, random)
            try:
                is_taken = judge(given, as_text, random, maker)
            except Exception as error:
                error.add_note(f"{given!r}\nReplay it: {runs.command(seed, request)}")
                raise
            taken, refused = taken + is_taken, refused + (not is_taken)
    print(f"{taken:,} taken, {refused:,} refused")
    assert taken
    assert refused


def spoilt(tree: Any, as_text: bool, random: Random) -> str:
    """A predicate with faults, as text or as JSON."""
    if as_text:
        return spoil_text(texts.write(tree, random), random)
    return spoil_json(as_filter(tree), random)


def judge(given: str, as_text: bool, random: Random, maker: Maker) -> bool:
    """Whether a predicate is taken; if so, it must be the same after each round trip."""
    matcher = contrada.Matcher("scan")
    try:
        matcher.add("s", given)
    except contrada.InvalidInput:
        return False
    expression = read(given)
    again = to_json(expression)
    assert read(json.dumps(as_filter(again))) == read(as_filter(again))
    if texts.can_be_written(again):
        assert read(to_text(expression)) == expression
    assert str(contrada.explain(given))
    if as_text:
        compare(given, matcher, random, maker)
    return True


def compare(given: str, matcher: contrada.Matcher, random: Random, maker: Maker) -> None:
    """The same answers as the evaluator gives to what its own parser reads."""
    try:
        tree = parser.read(given)
    except (parser.NotCql2, RecursionError):
        return
    for _ in range(3):
        row = events.event(random, maker.shapes)
        try:
            wanted = truth(tree, row)
            found = matcher.match(row)
        except (Undecided, shapely.GEOSException, contrada.InvalidInput):
            continue
        assert (found == ["s"]) is (wanted is True) or geos_is_to_blame(tree, row), (wanted, row)


def test_spoilt_predicates_are_refused_or_taken_at_their_word(
    request: pytest.FixtureRequest,
) -> None:
    run(runs.few(50), request)


@pytest.mark.soak
def test_many_spoilt_predicates_are_refused_or_taken_at_their_word(
    request: pytest.FixtureRequest,
) -> None:
    run(runs.many(request), request)
