"""Texts of CQL2 that differ in their literals only, found without parsing any of them.

The skeleton of a text is what is left without its numbers, strings and geometries, boxes among
them: names, operators and white space, and the kind of each literal. `tokens.py` puts a stand-in in
place of every literal, so that texts of one skeleton are one and the same text to the parser.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from contrada.language.lexemes import (
    CALL,
    NAME,
    NUMBER,
    PLAIN_BOX,
    PLAIN_SHAPE,
    QUOTED_NAME,
    RESERVED,
    STRING,
    WKT_DIMENSIONS,
    WKT_OPENING,
)
from contrada.language.operators import SIGNATURES

Spellings = tuple[str, ...]

_PARTS_MAX = 100  # of a text: runs, each with the literal behind it


class LiteralKind(Enum):
    """What a literal is, as its spelling shows."""

    NUMBER = "number"
    TEXT = "text"
    GEOMETRY = "geometry"
    MOMENT = "moment"  # a text in DATE(…) or TIMESTAMP(…)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The runs of text before, between and behind literals, and the kinds of the literals."""

    runs: tuple[str, ...]
    kinds: tuple[LiteralKind, ...]

    def is_plain(self) -> bool:
        """Whether it has nothing but names, literals, AND, OR, NOT, and tests that take them so.

        What is left out makes other values of literals (`casei('A')`, `2 + 3`, `- -5`).
        """
        marks = (*(_MARKS[kind] for kind in self.kinds), "")
        text = "".join(run + mark for run, mark in zip(self.runs, marks, strict=True))
        return _PLAIN.fullmatch(text) is not None

    def is_negative(self, literal: int) -> bool:
        """Whether a number of a plain skeleton has a sign."""
        return self.runs[literal].rstrip().endswith("-")


@dataclass(frozen=True, slots=True)
class SkeletonRows:
    """The texts of one skeleton, by row, and of each literal the spellings in all of them."""

    skeleton: Skeleton
    rows: Sequence[int]
    literals: Sequence[Spellings]


def group_by_skeleton(
    texts: Sequence[str], rows: Iterable[int], rows_min: int = 1
) -> Iterator[SkeletonRows]:
    """Bring the texts of some rows together, by skeletons that at least so many of them have.

    Left out are texts without literals or with very many, and those with a geometry that is empty,
    curved, in words or nested deeper than a multipolygon, or with a quote that is not closed.
    """
    groups: dict[tuple[Spellings, str], list[tuple[int, Spellings]]] = {}
    find, initial_of = _RUN_AND_LITERAL.findall, _INITIALS.get
    for row in rows:
        parts = find(texts[row])
        if len(parts) > _PARTS_MAX:
            continue
        runs, literals, others = zip(*parts, strict=True)
        if any(others):
            continue
        key = runs, "".join([initial_of(literal[:1], "n") for literal in literals])
        group = groups.get(key)
        if group is None:
            groups[key] = [(row, literals)]
        else:
            group.append((row, literals))
    for (runs, initials), group in groups.items():
        if initials and len(group) >= rows_min:
            yield _make_rows(runs, initials, group)


def _make_rows(
    runs: Spellings, initials: str, group: Iterable[tuple[int, Spellings]]
) -> SkeletonRows:
    """Make columns of rows; behind the last literal there are runs and literals of nothing."""
    count = len(initials)
    rows, spelt = zip(*group, strict=True)
    kinds = tuple(map(_find_kind, initials, runs))
    skeleton = Skeleton(runs[: count + 1], kinds)
    return SkeletonRows(skeleton, rows, tuple(zip(*spelt, strict=True))[:count])


def _find_kind(initial: str, run: str) -> LiteralKind:
    """Find the kind of a literal, by its spelling and the run before it."""
    kind = _KINDS[initial]
    is_moment = kind is LiteralKind.TEXT and _MOMENT.search(run) is not None
    return LiteralKind.MOMENT if is_moment else kind


def _nested(levels: int) -> str:
    """The coordinates of a geometry in parentheses, up to so many levels of them."""
    inside = r"[-+.,0-9eE \t\r\n]"
    pattern = rf"\({inside}*+\)"
    for _ in range(levels - 1):
        pattern = rf"\((?:{inside}++|{pattern})*+\)"
    return pattern


_RUN_AND_LITERAL = re.compile(
    rf"""
    ((?: [^\w'".]++ | (?!{WKT_OPENING}|{PLAIN_BOX}){NAME} | {QUOTED_NAME} | \.(?!\d) )*+)
    (?: ( {NUMBER} | {STRING} | {PLAIN_SHAPE}{WKT_DIMENSIONS}{_nested(4)} | {PLAIN_BOX} )
      | \Z
      | (.+) )  # what is not of these forms, and all behind it
    """,
    re.VERBOSE | re.DOTALL,
)

_KINDS = {kind.value[0]: kind for kind in LiteralKind}
_INITIALS = {"": "", "'": "t", **dict.fromkeys("blmpBLMP", "g")}  # of a kind, by that of a literal
_MOMENT = re.compile(r"(?<![\w.:\"])(?i:date|timestamp)\s*+\(\s*+\Z")
_MARKS = dict.fromkeys(LiteralKind, "'") | {LiteralKind.NUMBER: "0", LiteralKind.MOMENT: "@"}
_PAIRS = ("geometry", "geometry"), ("time", "time")  # what tests of two values take
_TESTS = [name for name, row in SIGNATURES.items() if row.takes in _PAIRS]
_BEHIND = r"(?![\w.:])"  # the end of a name
_SIGN = r"\s*+(?:-\s*+(?=0))?"
_PLAIN = re.compile(
    rf"""
    {_SIGN}
    (?: (?: [(,=<>] | (?i:and|or|not|between){_BEHIND} ) {_SIGN}
      | [)0'] | \s++ | (?i:like|in|is|null){_BEHIND}
      | (?i:{"|".join((*_TESTS, "dwithin"))}) (?={CALL})
      | (?i:date|timestamp) \s*+ \( \s*+ @ \s*+ \)
      | (?!(?i:{"|".join(sorted(RESERVED))}){_BEHIND}) (?>{NAME}|{QUOTED_NAME}) (?!{CALL})
    )*+
    """,
    re.VERBOSE,
)
