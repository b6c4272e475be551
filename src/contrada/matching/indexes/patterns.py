"""Texts by pattern: `LIKE 'a%'`, `'%a'`, `'%a%'` and patterns without a wildcard.

Prefixes and suffixes are looked up by length; all substrings are found in one pass over the text
by an automaton (Aho and Corasick 1975). Patterns of any other shape are left to evaluation.
"""

import re
from collections import deque
from collections.abc import Iterable

import numpy as np

from contrada.language import evaluate
from contrada.matching.indexes.operands import as_ids, is_operand
from contrada.matching.table import Ids
from contrada.model.event import Event
from contrada.model.expression import Expression, Like, Literal
from contrada.model.subscription import Constraint

_SHAPES = ("exact", "prefix", "suffix", "inside")


def read_shape(pattern: str) -> tuple[str, str] | None:
    """Tell the shape of a pattern and its text; None where a wildcard stands elsewhere."""
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    starts_open = pieces[:1] == ["%"]
    ends_open = len(pieces) > starts_open and pieces[-1:] == ["%"]
    middle = pieces[starts_open : len(pieces) - ends_open]
    if any(piece in {"%", "_"} for piece in middle):
        return None
    text = "".join(piece[-1] for piece in middle)
    if starts_open and ends_open:
        return "inside", text
    if not middle and starts_open:
        return "inside", ""
    return ("suffix" if starts_open else "prefix" if ends_open else "exact"), text


class PatternIndex:
    """Patterns by operand and shape, negated ones apart."""

    def __init__(self) -> None:
        """Start empty."""
        self._operands: dict[Expression, _Patterns] = {}

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take `LIKE` with a literal pattern of a known shape."""
        test = constraint.test
        if not (isinstance(test, Like) and isinstance(test.pattern, Literal)):
            return False
        shape = read_shape(test.pattern.value) if isinstance(test.pattern.value, str) else None
        if shape is None or not is_operand(test.value):
            return False
        patterns = self._operands.setdefault(test.value, _Patterns())
        patterns.add(*shape, number, constraint.is_negated)
        return True

    def freeze(self) -> None:
        """Build the automata."""
        for patterns in self._operands.values():
            patterns.freeze()

    def satisfied(self, event: Event) -> list[Ids]:
        """Find the patterns that each text fits, and the negated ones that it does not."""
        found = []
        for operand, patterns in self._operands.items():
            text = evaluate(operand, event)
            if isinstance(text, str):
                found += patterns.find(text)
        return found


class _Patterns:
    """The patterns of one operand."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, list[int]]] = {shape: {} for shape in _SHAPES}
        self._negated: list[int] = []
        self._lengths: dict[str, list[int]] = {}
        self._substrings = _Automaton({})
        self._negated_ids: Ids = np.zeros(0, np.int64)
        self._is_negated: dict[int, bool] = {}

    def add(self, shape: str, text: str, number: int, is_negated: bool) -> None:
        self._numbers[shape].setdefault(text, []).append(number)
        self._is_negated[number] = is_negated
        if is_negated:
            self._negated.append(number)

    def freeze(self) -> None:
        for shape in ("prefix", "suffix"):
            self._lengths[shape] = sorted({len(text) for text in self._numbers[shape]})
        self._substrings = _Automaton(self._numbers["inside"])
        self._negated_ids = as_ids(self._negated)

    def find(self, text: str) -> list[Ids]:
        fitting = set(self._numbers["exact"].get(text, ()))
        for length in self._lengths["prefix"]:
            fitting.update(self._numbers["prefix"].get(text[:length], ()))
        for length in self._lengths["suffix"]:
            ending = text[len(text) - length :] if length <= len(text) else None
            fitting.update(self._numbers["suffix"].get(ending, ()) if ending is not None else ())
        fitting |= self._substrings.find(text)
        plain = [number for number in fitting if not self._is_negated[number]]
        excluded = [number for number in fitting if self._is_negated[number]]
        found = [as_ids(plain)] if plain else []
        if self._negated:
            found.append(np.setdiff1d(self._negated_ids, as_ids(excluded)))
        return found


class _Automaton:
    """Finds all of many words in a text in one pass."""

    def __init__(self, words: dict[str, list[int]]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._fail = [0]
        self._out: list[set[int]] = [set(words.get("", ()))]
        for word, numbers in words.items():
            self._insert(word, numbers)
        self._link()

    def _insert(self, word: str, numbers: Iterable[int]) -> None:
        state = 0
        for letter in word:
            if letter not in self._next[state]:
                self._next[state][letter] = len(self._next)
                self._next.append({})
                self._fail.append(0)
                self._out.append(set())
            state = self._next[state][letter]
        self._out[state].update(numbers)

    def _link(self) -> None:
        pending = deque(self._next[0].values())
        while pending:
            state = pending.popleft()
            for letter, follower in self._next[state].items():
                pending.append(follower)
                back = self._fail[state]
                while back and letter not in self._next[back]:
                    back = self._fail[back]
                self._fail[follower] = self._next[back].get(letter, 0)
                self._out[follower] |= self._out[self._fail[follower]]

    def find(self, text: str) -> set[int]:
        found: set[int] = set(self._out[0])
        state = 0
        for letter in text:
            while state and letter not in self._next[state]:
                state = self._fail[state]
            state = self._next[state].get(letter, 0)
            if self._out[state]:
                found |= self._out[state]
        return found
