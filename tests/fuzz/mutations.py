"""Predicates that somebody got wrong: CQL2 text and JSON with a few random faults in them."""

from __future__ import annotations

import copy
import json
import re
from random import Random
from typing import Any

Node = Any

PIECES = re.compile(r"\s+|\w+|'[^']*'|\"[^\"]*\"|.", re.DOTALL)
TOKENS = (
    *("(", ")", ",", "'", '"', "''", "NOT", "AND", "OR", "=", "<>", "<", "<=", "+", "-", "*", "/"),
    *(
        "^",
        "%",
        "div",
        "IN",
        "LIKE",
        "BETWEEN",
        "IS",
        "NULL",
        "TRUE",
        "..",
        ".",
        "1",
        "-1",
        "1e309",
    ),
    *(
        "1e-400",
        "9" * 40,
        "0x1",
        "1_0",
        "'a'",
        "DATE('2020-13-01')",
        "TIMESTAMP('soon')",
        "n",
        "x.y",
    ),
    *("INTERVAL('..','..')", "POINT(1 1)", "POINT EMPTY", "POINT(nan 1)", "POLYGON((0 0,1 1,0 0))"),
    *(
        "BBOX(0,0,1)",
        "BBOX(1,2,3,4,5,6)",
        "S_INTERSECTS",
        "casei(",
        "A_EQUALS(",
        "foo(",
        "[",
        "]",
        "{",
    ),
    *(
        "\x00",
        "\ud800",
        "\u2028",
        "\ufeff",
        "\u00a0",
        "😀",
        "\\",
        ";",
        "--",
        "/*",
        "#",
        "`",
        "$1",
        "?",
    ),
    *("CIRCULARSTRING(0 0,1 1,2 0)", "!=", "==", "&&", "||", "~", "İ", "ß", "ʼ", "１"),
)
ARRAY_DEPTHS = (1, 2, 30, 90, 120)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**70, 1e308, -0.0, "", "a", "\ud800", "..", [], {}, [[]], [None]),
    *(
        {"property": "n"},
        {"property": 5},
        {"property": ""},
        {"property": None},
        {"date": "2020-02-30"},
    ),
    *(
        {"timestamp": 5},
        {"interval": []},
        {"interval": ["..", ".."]},
        {"interval": ["a", "b", "c"]},
    ),
    *(
        {"op": "and"},
        {"op": "and", "args": []},
        {"args": []},
        {"op": 5, "args": [1]},
        {"op": "foo"},
    ),
    *({"op": "not", "args": [1, 2]}, {"bbox": [0, 0]}, {"bbox": ["a", 0, 0, 0]}, {"type": "Point"}),
    {"type": "Point", "coordinates": []},
    {"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]},
    {"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": ["a", None]}]},
    {"function": {"name": "casei", "args": ["A"]}},
    {"casei": "A"},
    {"op": "casei", "args": ["A"], "more": 1},
)
DEPTHS = (5, 50, 99, 100, 101, 150, 299, 301, 400, 3_000)
SPOILT_DEPTHS = (2, 4, 30, 90, 320)


def spoil_text(text: str, random: Random) -> str:
    """The text with one to three faults, or without any and buried deep in parentheses."""
    if random.random() < 0.02:
        return nested(text, random.choice(DEPTHS), random)
    for _ in range(random.randint(1, 3)):
        text = spoil_once(text, random)
    return nested(text, random.choice(SPOILT_DEPTHS), random) if random.random() < 0.05 else text


def nested(text: str, depth: int, random: Random) -> str:
    """The text inside so many parentheses or operators of one kind."""
    opening = random.choice(("(", "NOT ", "-", "casei(", "NOT (", "n + (", "n IN ("))
    return opening * depth + text + ")" * (depth * opening.count("("))


def spoil_once(text: str, random: Random) -> str:
    """The text with a token or a character left out, doubled, swapped, changed or put in."""
    pieces = PIECES.findall(text) or [""]
    at = random.randrange(len(pieces))
    match random.randrange(8):
        case 0:
            del pieces[at]
        case 1:
            pieces.insert(at, pieces[at])
        case 2:
            other = random.randrange(len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
        case 3:
            pieces[at] = random.choice(TOKENS)
        case 4:
            pieces.insert(at, random.choice(TOKENS))
        case 5:
            return text[: random.randrange(len(text) + 1)]
        case 6:
            place = random.randrange(len(text) + 1)
            return (
                text[:place]
                + chr(random.choice((random.randrange(128), random.randrange(0x3000))))
                + text[place + 1 :]
            )
        case _:
            pieces[at] = pieces[at].swapcase()
    return "".join(pieces)


def spoil_tree(tree: Node, random: Random) -> Node:
    """The tree with one to three faults."""
    tree = copy.deepcopy(tree)
    for _ in range(random.randint(1, 3)):
        places = list(all_places(tree))
        if not places:
            return random.choice(VALUES)
        holder, key = random.choice(places)
        match random.randrange(6):
            case 0 | 1:
                holder[key] = copy.deepcopy(random.choice(VALUES))
            case 2:
                del holder[key]
            case 3 if isinstance(holder, dict):
                holder[random.choice(("op", "args", "property", "type", "x", "\ud800"))] = (
                    holder.pop(key)
                )
            case 4:
                holder[key] = copy.deepcopy(random.choice(places)[0])
            case _:
                holder[key] = buried(holder[key], random)
                return tree
    return tree


def spoil_json(tree: Node, random: Random) -> str:
    """The tree with its faults as JSON, seldom buried deeper than Python could write it."""
    text = json.dumps(spoil_tree(tree, random))
    if random.random() < 0.02:
        depth = random.choice(DEPTHS)
        opening = random.choice(('{"op":"not","args":[', '{"op":"and","args":[true,', "[", '{"a":'))
        closing = {"[": "]", ":": "}"}.get(opening[-1], "]}")
        text = opening * depth + text + closing * depth
    return text


def buried(node: Node, random: Random) -> Node:
    """A node deep inside others of one kind."""
    kind = random.choice(("list", "not", "casei", "+"))
    depths = ARRAY_DEPTHS if kind == "list" else (1, 2, 30, 99, 120)
    for _ in range(random.choice(depths)):
        if kind == "list":
            node = [node]
        else:
            node = {"op": kind, "args": [node, 1] if kind == "+" else [node]}
    return node


def all_places(node: Node) -> Any:
    """Every container of a tree with each of its keys."""
    keys: Any = (
        node.keys()
        if isinstance(node, dict)
        else range(len(node))
        if isinstance(node, list)
        else ()
    )
    for key in keys:
        yield node, key
        yield from all_places(node[key])
