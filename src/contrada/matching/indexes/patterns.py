"""Texts by pattern: `LIKE 'a%'`, `'%a'`, `'%a%'` and patterns without a wildcard.

Prefixes and suffixes are looked up by length; all substrings are found in one pass over the text.
Patterns of any other shape are left to evaluation.
"""

import re

import numpy as np

from contrada.arrays import Positions
from contrada.matching.indexes.automaton import Automaton
from contrada.matching.indexes.operands import Operands, add_number, as_ids, is_operand
from contrada.model.event import Event
from contrada.model.expression import Expression, Like, Literal
from contrada.model.subscription import Constraint

_SHAPES = ("exact", "prefix", "suffix", "inside")


def read_shape(pattern: str) -> tuple[str, str] | None:
    """Read the shape of a pattern and its text; None where a wildcard stands elsewhere."""
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

    words = "text patterns of {}"

    def __init__(self) -> None:
        """Start empty."""
        self._rows: dict[Expression, PatternTable] = {}
        self._operands = Operands[PatternTable]({})

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take `LIKE` with a literal pattern of a known shape."""
        test = constraint.test
        if not (isinstance(test, Like) and isinstance(test.pattern, Literal)):
            return False
        shape = read_shape(test.pattern.value) if isinstance(test.pattern.value, str) else None
        if shape is None or not is_operand(test.value):
            return False
        patterns = self._rows.setdefault(test.value, PatternTable())
        patterns.add(*shape, number, constraint.is_negated)
        return True

    def freeze(self) -> None:
        """Build the automata."""
        for patterns in self._rows.values():
            patterns.freeze()
        self._operands = Operands(self._rows)

    def satisfied(self, event: Event) -> list[Positions]:
        """Find the patterns that each text fits, and the negated ones that it does not."""
        return [
            ids
            for text, patterns in self._operands.read(event)
            if isinstance(text, str)
            for ids in patterns.find(text)
        ]


class PatternTable:
    """The patterns of one operand."""

    def __init__(self) -> None:
        """Start empty."""
        self._numbers: dict[str, dict[str, list[int]]] = {shape: {} for shape in _SHAPES}
        self._negated: list[int] = []
        self._lengths: dict[str, list[int]] = {}
        self._substrings = Automaton({})
        self._negated_ids: Positions = np.zeros(0, np.int64)
        self._is_negated: dict[int, bool] = {}

    def add(self, shape: str, text: str, number: int, is_negated: bool) -> None:
        """Take a pattern in, by its shape and its text."""
        add_number(self._numbers[shape], text, number)
        self._is_negated[number] = is_negated
        if is_negated:
            self._negated.append(number)

    def freeze(self) -> None:
        """Build the automaton: no pattern will be taken after this."""
        for shape in ("prefix", "suffix"):
            self._lengths[shape] = sorted({len(text) for text in self._numbers[shape]})
        self._substrings = Automaton(self._numbers["inside"])
        self._negated_ids = as_ids(self._negated)

    def find(self, text: str) -> list[Positions]:
        """Find the patterns that a text fits, and the negated ones that it does not."""
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
            found.append(np.setdiff1d(self._negated_ids, as_ids(excluded), assume_unique=True))
        return found
