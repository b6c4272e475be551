"""CQL2 text into a tree of CQL2 JSON: a parser of its own, after the grammar of the standard.

It knows the grammar and nothing of types; what it cannot read is a `NotCql2`. A parenthesis around
one value is just a parenthesis, except where a list or an array must stand.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import numpy as np
import shapely

from fuzz import shapes
from fuzz.meaning import ARRAY, COMPARISONS
from fuzz.moments import RELATIONS as TEMPORAL

Node = Any

TOKENS = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<text>'(?:[^']|'')*')
    |(?P<quoted>"[^"]+")
    |(?P<word>[^\W\d][\w.:]*|:[\w.:]*)
    |(?P<sign><>|<=|>=|[-+*/%^=<>(),])""",
    re.VERBOSE,
)
GEOMETRIES = frozenset(
    "POINT LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON GEOMETRYCOLLECTION".split()
)
STANDARD = {
    name.lower(): name
    for name in (*TEMPORAL, *ARRAY, *(each for each in shapes.OGC if each[:2] == "s_"))
} | {"casei": "casei", "accenti": "accenti"}
OURS = frozenset({*shapes.EGENHOFER, "covers", "coveredBy", "relate", "dwithin"})
RESERVED = frozenset("and or not like between in is null true false div".split())


class NotCql2(ValueError):
    """A text is outside the grammar."""


class Token(NamedTuple):
    """A piece of a text, and where it begins."""

    kind: str
    text: str
    place: int


def read(text: str) -> Node:
    """The tree of a text."""
    reader = Reader(text)
    node = reader.disjunction()
    if reader.token.kind != "end":
        raise NotCql2(f"{reader.token}")
    return node


def split(text: str) -> list[Token]:
    """The tokens of a text, and an end."""
    tokens, place = [], 0
    while place < len(text):
        found = TOKENS.match(text, place)
        if not found or found.lastgroup is None:
            raise NotCql2(f"character {place}")
        if found.lastgroup != "space":
            tokens.append(Token(found.lastgroup, found.group(), place))
        place = found.end()
    return [*tokens, Token("end", "", place)]


class Reader:
    """Descends through the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = split(text)
        self.at = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def sees(self, *wanted: str) -> str | None:
        """The sign or keyword that comes next, if it is one of these."""
        token = self.token
        found = token.text.lower() if token.kind == "word" else token.text
        return found if token.kind in ("word", "sign") and found in wanted else None

    def takes(self, *wanted: str) -> str | None:
        """The same, and goes past it."""
        found = self.sees(*wanted)
        self.at += found is not None
        return found

    def needs(self, *wanted: str) -> str:
        """The same, which must be there."""
        found = self.takes(*wanted)
        if found is None:
            raise NotCql2(f"{self.token} instead of {wanted}")
        return found

    # Predicates

    def disjunction(self) -> Node:
        return self.joined("or", self.conjunction)

    def conjunction(self) -> Node:
        return self.joined("and", self.negation)

    def joined(self, word: str, part: Any) -> Node:
        parts = [part()]
        while self.takes(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else {"op": word, "args": parts}

    def negation(self) -> Node:
        if self.takes("not"):
            return {"op": "not", "args": [self.test()]}
        return self.test()

    def test(self) -> Node:
        """A comparison, or a value by itself."""
        left = self.sum()
        if operator := self.takes(*COMPARISONS):
            return {"op": operator, "args": [left, self.sum()]}
        if self.takes("is"):
            is_not_null = bool(self.takes("not"))
            self.needs("null")
            return negated(is_not_null, {"op": "isNull", "args": [left]})
        is_negated = bool(self.takes("not"))
        match self.takes("like", "in", "between"):
            case "like":
                return negated(is_negated, {"op": "like", "args": [left, self.sum()]})
            case "in":
                return negated(is_negated, {"op": "in", "args": [left, self.listed()]})
            case "between":
                low = self.sum()
                self.needs("and")
                return negated(is_negated, {"op": "between", "args": [left, low, self.sum()]})
        if is_negated:
            raise NotCql2(f"NOT before {self.token}")
        return left

    # Values

    def sum(self) -> Node:
        return self.chained(("+", "-"), self.term)

    def term(self) -> Node:
        return self.chained(("*", "/", "%", "div"), self.power)

    def power(self) -> Node:
        base = self.factor()
        return {"op": "^", "args": [base, self.factor()]} if self.takes("^") else base

    def chained(self, signs: tuple[str, ...], part: Any) -> Node:
        node = part()
        while sign := self.takes(*signs):
            node = {"op": sign, "args": [node, part()]}
        return node

    def factor(self) -> Node:
        if self.takes("-"):
            inner = self.factor()
            is_number = isinstance(inner, int | float) and not isinstance(inner, bool)
            return -inner if is_number else {"op": "*", "args": [-1, inner]}
        if not self.takes("("):
            return self.atom()
        parts = [self.disjunction()]
        while self.takes(","):
            parts.append(self.disjunction())
        self.needs(")")
        return parts if len(parts) > 1 else parts[0]

    def listed(self) -> list[Node]:
        """Values in parentheses; further ones around an array change nothing."""
        self.needs("(")
        if self.takes(")"):
            return []
        values = [self.disjunction()]
        while self.takes(","):
            values.append(self.disjunction())
        self.needs(")")
        return values[0] if len(values) == 1 and isinstance(values[0], list) else values

    def atom(self) -> Node:
        """A literal, a name or a call."""
        kind, text, place = self.token
        self.at += 1
        match kind:
            case "number":
                return int(text) if text.isdigit() else float(text)
            case "text":
                return text[1:-1].replace("''", "'")
            case "quoted":
                return {"property": text[1:-1]}
            case "word":
                return self.word(text, place)
        raise NotCql2(f"character {place}")

    def word(self, text: str, place: int) -> Node:
        """What a word begins."""
        lower = text.lower()
        if lower in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[lower]
        if lower in RESERVED:
            raise NotCql2(f"character {place}")
        if text.upper() in GEOMETRIES and self.sees("(", "z"):
            return self.geometry(place)
        if not self.sees("("):
            return {"property": text}
        return self.call(text)

    def geometry(self, place: int) -> Node:
        """A literal of WKT, up to the parenthesis that closes it."""
        depth = 0
        while True:
            sign = self.token.text
            if self.token.kind == "end":
                raise NotCql2("unclosed geometry")
            depth += {"(": 1, ")": -1}.get(sign, 0)
            self.at += 1
            if depth == 0 and sign == ")":
                break
        end = self.tokens[self.at - 1].place + 1
        try:
            with np.errstate(over="ignore"):  # heights, too, may be beyond all doubles
                shape = shapely.from_wkt(self.text[place:end])
            return json.loads(shapely.to_geojson(shape))
        except shapely.GEOSException as error:
            raise NotCql2(str(error)) from error

    def call(self, name: str) -> Node:
        """A function, or one of the literals that look like one."""
        lower = name.lower()
        if lower in ("date", "timestamp"):
            moments = self.listed()
            if len(moments) != 1:
                raise NotCql2(f"{name} takes one argument")
            return {lower: moments[0]}
        if lower in ("interval", "bbox"):
            return {lower: self.listed()}
        operator = STANDARD.get(lower) or (name if name in OURS else None)
        if operator is None:
            raise NotCql2(f"unknown function {name}")
        return {"op": operator, "args": self.arguments(operator)}

    def arguments(self, operator: str) -> list[Node]:
        """The arguments of a function; where an array must stand, a parenthesis is one."""
        self.needs("(")
        read_one = self.array if operator in ARRAY else self.disjunction
        values = [read_one()]
        while self.takes(","):
            values.append(read_one())
        self.needs(")")
        return values

    def array(self) -> Node:
        """An array or what may be one; a bare value stands for the array of it alone."""
        if self.sees("("):
            return self.listed()
        node = self.atom()
        if isinstance(node, str | int | float):
            return [node]
        if node is None or (isinstance(node, dict) and "property" in node):
            return node
        raise NotCql2("neither an array nor a property")


def negated(is_negated: bool, node: Node) -> Node:
    """A test, or its negation."""
    return {"op": "not", "args": [node]} if is_negated else node
