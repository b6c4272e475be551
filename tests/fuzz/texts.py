"""A predicate as CQL2 text, in one of the many ways in which people write it.

Keywords in any case, names with or without quotes, odd spacing, parentheses that nobody needs,
`a NOT LIKE b` or `NOT a LIKE b`. `parser.read` gives the tree back.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import shapely

from fuzz.meaning import ARITHMETIC, ARRAY, COMPARISONS
from fuzz.moments import RELATIONS as TEMPORAL

Node = Any

RESERVED = frozenset("and or not like between in is null true false div".split())
PLAIN_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:.]*")
OR, AND, NOT, TEST = range(4)  # how strongly they bind
SUM, TERM, POWER, FACTOR = range(4)
BINDING = {"+": SUM, "-": SUM, "*": TERM, "/": TERM, "%": TERM, "div": TERM, "^": POWER}
NEGATED = ("like", "between", "in", "isNull")


def write(node: Node, random: Random) -> str:
    """A text of the predicate; `random` says which."""
    writer = Writer(random)
    writer.predicate(node, OR)
    return join(writer.tokens, random)


def can_be_written(node: Node) -> bool:
    """Whether CQL2 text has a form for it: it has none for some arrays that JSON has."""
    if isinstance(node, list):
        return bool(node) and all(can_be_written(each) for each in node)
    if not isinstance(node, dict) or "args" not in node:
        return True
    arguments = node["args"]
    if node["op"] == "in":
        first, listed = arguments
        arguments = [[]] if is_lone_array(listed) else [first, *listed]
    return all(can_be_written(each) and not is_ambiguous(each) for each in arguments)


def is_lone_array(nodes: list[Node]) -> bool:
    """Whether a list holds nothing but one array."""
    return len(nodes) == 1 and isinstance(nodes[0], list)


def is_ambiguous(node: Node) -> bool:
    """Whether parentheses around one element may be meant as parentheses or as an array."""
    if not isinstance(node, list):
        return False
    lone = node[0] if len(node) == 1 else 0
    inner = [each for each in node if isinstance(each, list)]
    return isinstance(lone, list) or any(len(each) < 2 or is_ambiguous(each) for each in inner)


def as_mapping(node: Node) -> dict[str, Any]:
    """A node that is an object, or nothing."""
    return node if isinstance(node, dict) else {}


def join(tokens: list[str], random: Random) -> str:
    """The tokens with some space between them, and with enough of it."""
    text = ""
    for token in tokens:
        if text and needs_space(text[-1], token[0]):
            text += random.choice((" ", " ", " ", "  ", "\t", "\n"))
        elif text and random.random() < 0.3:
            text += random.choice((" ", "\n "))
        text += token
    return text


def needs_space(before: str, after: str) -> bool:
    """Whether two characters would run together."""
    wordlike = [each.isalnum() or each in "_.:'\"" for each in (before, after)]
    return (
        all(wordlike)
        or (before in "+-" and after in "+-")
        or (before + after in ("<>", "<=", ">="))
    )


class Writer:
    """Collects the tokens of a text."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.tokens: list[str] = []

    def put(self, *tokens: str) -> None:
        self.tokens += tokens

    def word(self, word: str) -> None:
        """A keyword or operator, in some case."""
        self.put(self.random.choice((word.upper(), word.upper(), word.lower(), word.title())))

    def happens(self, share: float) -> bool:
        return self.random.random() < share

    # Predicates

    def predicate(self, node: Node, binding: int) -> None:
        """A predicate in a place where weaker operators than `binding` need parentheses."""
        own = self.binding(node)
        wrapped = own < binding or self.happens(0.05)
        if wrapped:
            self.put("(")
        self.bare_predicate(node)
        if wrapped:
            self.put(")")

    def binding(self, node: Node) -> int:
        operator = node.get("op") if isinstance(node, dict) else None
        return {"or": OR, "and": AND, "not": NOT}.get(str(operator), TEST)

    def bare_predicate(self, node: Node) -> None:
        operator = node.get("op") if isinstance(node, dict) else None
        match operator:
            case "and" | "or":
                own = AND if operator == "and" else OR
                for number, each in enumerate(node["args"]):
                    if number:
                        self.word(operator)
                    self.predicate(each, own + 1)
            case "not":
                inner = node["args"][0]
                if isinstance(inner, dict) and inner.get("op") in NEGATED and self.happens(0.5):
                    self.test(inner, is_negated=True)
                else:
                    self.word("not")
                    self.predicate(inner, TEST)
            case _:
                self.test(node)

    def test(self, node: Node, is_negated: bool = False) -> None:
        """A test, or what stands where one could stand."""
        operator = node.get("op") if isinstance(node, dict) else None
        if operator in COMPARISONS:
            self.scalar(node["args"][0])
            self.put(operator)
            self.scalar(node["args"][1])
        elif operator in NEGATED:
            self.infix(node, is_negated)
        else:
            self.scalar(node)

    def infix(self, node: Node, is_negated: bool) -> None:
        """`a [NOT] LIKE b` and its like."""
        operator, (first, *others) = node["op"], node["args"]
        self.scalar(first)
        if operator == "isNull":
            self.word("is")
            if is_negated:
                self.word("not")
            self.word("null")
            return
        if is_negated:
            self.word("not")
        self.word(operator)
        if operator == "in":
            self.listed(others[0])
            return
        self.scalar(others[0])
        if operator == "between":
            self.word("and")
            self.scalar(others[1])

    # Values

    def scalar(self, node: Node) -> None:
        """A value, or a test in parentheses."""
        operator = node.get("op") if isinstance(node, dict) else None
        if operator in ARITHMETIC:
            self.number(node, SUM)
        elif operator in (*COMPARISONS, *NEGATED, "and", "or", "not"):
            self.put("(")
            self.predicate(node, OR)
            self.put(")")
        else:
            self.atom(node)

    def number(self, node: Node, binding: int) -> None:
        """Arithmetic in a place where weaker operators need parentheses."""
        operator = node.get("op") if isinstance(node, dict) else None
        if operator not in ARITHMETIC:
            self.scalar(node)
            return
        own, (left, right) = BINDING[operator], node["args"]
        wrapped = own < binding or self.happens(0.1)
        if wrapped:
            self.put("(")
        self.number(left, FACTOR if own == POWER else own)
        self.word(operator)
        self.number(right, own + 1)
        if wrapped:
            self.put(")")

    def listed(self, nodes: list[Node]) -> None:
        """Values in parentheses."""
        self.put("(")
        for number, each in enumerate(nodes):
            if number:
                self.put(",")
            self.scalar(each)
        self.put(")")

    def atom(self, node: Node) -> None:
        """What needs no parentheses."""
        if isinstance(node, bool) or node is None:
            self.word({True: "true", False: "false", None: "null"}[node])
        elif isinstance(node, int | float):
            self.put(self.numeral(node))
        elif isinstance(node, str):
            self.put("'" + node.replace("'", "''") + "'")
        elif isinstance(node, list):
            self.listed(node)
        elif "property" in node:
            self.put(self.name(node["property"]))
        elif "interval" in node:
            self.word("interval")
            self.listed(node["interval"])
        elif "date" in node or "timestamp" in node:
            ((kind, moment),) = node.items()
            self.word(kind)
            self.put("(", f"'{moment}'", ")")
        elif "bbox" in node:
            self.word("bbox")
            self.listed(node["bbox"])
        elif "op" in node:
            self.call(node)
        else:
            self.put(shapely.to_wkt(shapely.from_geojson(json.dumps(node)), rounding_precision=17))

    def call(self, node: Node) -> None:
        """A function; those of the standard in any case."""
        operator = node["op"]
        is_standard = operator in {*TEMPORAL, *ARRAY, "casei", "accenti"} or operator[:2] == "s_"
        self.word(operator) if is_standard else self.put(operator)
        self.listed(node["args"])

    def numeral(self, number: float) -> str:
        """A number in one of its forms."""
        if isinstance(number, int):
            return str(number)
        text = repr(number)
        if text.endswith(".0") and self.happens(0.3):
            return text[:-1]
        return text.upper() if self.happens(0.3) else text

    def name(self, name: str) -> str:
        """A name, in quotes if it must be or happens to be."""
        is_plain = PLAIN_NAME.fullmatch(name) and name.lower() not in RESERVED
        return name if is_plain and self.happens(0.8) else f'"{name}"'
