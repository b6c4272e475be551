"""What a predicate of CQL2 means, written from the standard and docs/language.md alone.

A second opinion is worth something only while it is independent: nothing of `contrada` is imported
here, and whoever changes this module must not look at `src/contrada/language` for the answer. A
predicate is a tree of CQL2 JSON; an event is a plain mapping. Truth is True, False or None.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fuzz import moments, numbers, shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from shapely.geometry.base import BaseGeometry

Node: TypeAlias = Any
Event: TypeAlias = "Mapping[str, Any]"
Truth: TypeAlias = bool | None

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
ARITHMETIC = ("+", "-", "*", "/", "%", "div", "^")
ARRAY = ("a_equals", "a_contains", "a_containedBy", "a_overlaps")
CONNECTIVES = ("and", "or", "not")
TESTS = frozenset(
    {*COMPARISONS, *CONNECTIVES, "like", "between", "in", "isNull", "relate", "dwithin"}
    | {*ARRAY, *shapes.OGC, *shapes.EGENHOFER, *moments.RELATIONS}
)


def truth(node: Node, event: Event) -> Truth:
    """The truth of a predicate for an event."""
    if isinstance(node, bool):
        return node
    if not isinstance(node, dict) or node.get("op") not in TESTS:
        value = value_of(node, event)
        return bool(value) if isinstance(value, bool | np.bool_) else None
    name, arguments = node["op"], node["args"]
    match name:
        case "and":
            return conjunction(truth(each, event) for each in arguments)
        case "or":
            return disjunction(truth(each, event) for each in arguments)
        case "not":
            return negation(truth(arguments[0], event))
        case "isNull":
            return is_null(arguments[0], event)
        case "between":
            middle, low, high = (value_of(each, event) for each in arguments)
            return conjunction((compare(">=", middle, low), compare("<=", middle, high)))
        case "in":
            wanted = value_of(arguments[0], event)
            listed = [value_of(each, event) for each in arguments[1]]
            return disjunction(compare("=", wanted, value) for value in listed)
        case "like":
            text, pattern = (value_of(each, event) for each in arguments)
            if not isinstance(text, str) or not isinstance(pattern, str):
                return None
            return like(pattern).fullmatch(text) is not None
    if name in COMPARISONS:
        return compare(name, value_of(arguments[0], event), value_of(arguments[1], event))
    if name in moments.RELATIONS:
        return relate_spans(name, *(moments.as_span(value_of(each, event)) for each in arguments))
    if name in ARRAY:
        return relate_arrays(name, *(value_of(each, event) for each in arguments))
    return relate_shapes(node, event)


# Three values


def conjunction(values: Iterable[Truth]) -> Truth:
    """False if one is, else unknown if one is."""
    found = list(values)
    return False if False in found else (None if None in found else True)


def disjunction(values: Iterable[Truth]) -> Truth:
    """True if one is, else unknown if one is."""
    found = list(values)
    return True if True in found else (None if None in found else False)


def negation(value: Truth) -> Truth:
    """The opposite, where it is known."""
    return None if value is None else not value


# Values


def value_of(node: Node, event: Event) -> Any:
    """The value of an expression: None where it is absent, null or has none."""
    if isinstance(node, list):
        return [value_of(each, event) for each in node]
    if not isinstance(node, dict):
        return node
    if "property" in node:
        return attribute(node["property"], event)
    if "date" in node or "timestamp" in node:
        moment = moments.read_text(node.get("date") or node["timestamp"])
        assert moment is not None, f"impossible moment: {node}"
        return moment
    if "interval" in node:
        ends = (moments.OPEN if end == "" else end for end in node["interval"])
        return moments.span_between(*(value_of(end, event) for end in ends))
    if node.get("op") in ARITHMETIC:
        return numbers.calculate(node["op"], *(value_of(each, event) for each in node["args"]))
    if node.get("op") in ("casei", "accenti"):
        return fold(node["op"], value_of(node["args"][0], event))
    if "op" in node:
        return truth(node, event)
    return shapes.read_shape(node)


def is_null(node: Node, event: Event) -> bool:
    """Whether a value is absent or null; a computed one is where something in it is."""
    if isinstance(node, dict) and node.get("op") in (*ARITHMETIC, "casei", "accenti"):
        return any(is_null(each, event) for each in node["args"])
    return value_of(node, event) is None


def attribute(name: str, event: Event) -> Any:
    """The attribute of that very name if it has a value, else that of the first path with one."""
    value = without_nat(event.get(name))
    dots = [place for place, letter in enumerate(name) if letter == "."]
    for dot in dots:
        outer = event.get(name[:dot])
        if value is None and isinstance(outer, dict):
            value = attribute(name[dot + 1 :], outer)
    return value


def without_nat(value: Any) -> Any:
    """Null for NaT, also in arrays; any other value as it is."""
    if isinstance(value, list):
        return [without_nat(each) for each in value]
    is_moment = isinstance(value, np.datetime64 | np.timedelta64)
    return None if is_moment and np.isnat(value) else value


def fold(name: str, value: Any) -> str | None:
    """A text without its case, or without its accents."""
    if not isinstance(value, str):
        return None
    if name == "casei":
        return value.casefold()
    apart = unicodedata.normalize("NFD", value)
    kept = "".join(each for each in apart if not unicodedata.category(each).startswith("M"))
    return unicodedata.normalize("NFC", kept)


@lru_cache(maxsize=10_000)
def like(pattern: str) -> re.Pattern[str]:
    """A pattern of LIKE as one of Python's."""
    parts, at = [], 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\" and at + 1 < len(pattern):
            at += 1
            parts.append(re.escape(pattern[at]))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
        at += 1
    return re.compile("".join(parts), re.DOTALL)


# Comparison


def compare(operator: str, a: Any, b: Any) -> Truth:
    """A comparison of two values, unknown unless both are of one kind that is ordered."""
    if isinstance(a, bool | np.bool_) and isinstance(b, bool | np.bool_):
        return None if operator not in ("=", "<>") else bool(a == b) is (operator == "=")
    if numbers.is_number(a) and numbers.is_number(b):
        return ordered(operator, numbers.exact(a), numbers.exact(b))
    if isinstance(a, str) and isinstance(b, str):
        return ordered(operator, [ord(each) for each in a], [ord(each) for each in b])
    if moments.own_moment(a) or moments.own_moment(b):
        first, second = moments.as_moment(a), moments.as_moment(b)
        return None if first is None or second is None else ordered(operator, first, second)
    return None


def ordered(operator: str, a: Any, b: Any) -> bool:
    """What an operator says of two values in a total order."""
    is_less, is_equal = bool(a < b), bool(a == b)
    return {
        "=": is_equal,
        "<>": not is_equal,
        "<": is_less,
        "<=": is_less or is_equal,
        ">": not is_less and not is_equal,
        ">=": not is_less,
    }[operator]


# Arrays, time and space


def relate_arrays(name: str, a: Any, b: Any) -> Truth:
    """Two arrays as sets."""
    if not is_array(a) or not is_array(b):
        return None
    match name:
        case "a_contains":
            return holds_all(a, b)
        case "a_containedBy":
            return holds_all(b, a)
        case "a_equals":
            return conjunction((holds_all(a, b), holds_all(b, a)))
    return disjunction(same(x, y) for x in a for y in b)


def is_array(value: Any) -> bool:
    """Whether a value is a list and not one of our own tuples."""
    return isinstance(value, list | tuple) and not isinstance(value, moments.Moment | moments.Span)


def holds_all(holder: list[Any], held: list[Any]) -> Truth:
    """Whether every element of the second is in the first."""
    return conjunction(disjunction(same(x, y) for x in holder) for y in held)


def same(a: Any, b: Any) -> Truth:
    """Whether two elements are equal: unknown for null and NaN, false for different types."""
    if any(each is None or (isinstance(each, float) and each != each) for each in (a, b)):
        return None
    if is_array(a) and is_array(b):
        return relate_arrays("a_equals", a, b)
    return compare("=", a, b) or False


def relate_spans(name: str, a: moments.Span | None, b: moments.Span | None) -> Truth:
    """Two spans of time."""
    return None if a is None or b is None else moments.RELATIONS[name](*a, *b)


def relate_shapes(node: Node, event: Event) -> Truth:
    """Two geometries."""
    a, b = shapes_of(node, event)
    if a is None or b is None:
        return None
    match node["op"]:
        case "relate":
            return shapes.pattern_fits(node["args"][2].upper(), a, b)
        case "dwithin":
            metres = value_of(node["args"][2], event)
            if not numbers.is_number(metres) or not 0 <= metres < inf:
                return None
            return shapes.is_near(a, b, float(metres))
    return shapes.relation_holds(node["op"], a, b)


def shapes_of(node: Node, event: Event) -> tuple[BaseGeometry | None, BaseGeometry | None]:
    """Both geometries of a spatial test."""
    first, second = (shapes.read_shape(value_of(each, event)) for each in node["args"][:2])
    return first, second


def is_refused(trees: Iterable[Node], event: Event) -> bool:
    """Whether an event is a bad row: a test reads `geometry`, and its text is no geometry.

    Blank text is as good as null, and text in any other attribute is just unknown.
    """
    value = event.get("geometry")
    is_text = isinstance(value, str) and bool(value.strip())
    return is_text and shapes.decode(value) is None and any(map(reads_geometry, trees))


def reads_geometry(node: Node) -> bool:
    """Whether a test in a tree asks for `geometry` as a geometry."""
    if isinstance(node, list):
        return any(map(reads_geometry, node))
    if not isinstance(node, dict) or "op" not in node:
        return False
    is_spatial = node["op"] in {*shapes.OGC, *shapes.EGENHOFER, "relate", "dwithin"}
    return (is_spatial and {"property": "geometry"} in node["args"]) or reads_geometry(node["args"])


def spatial_tests(node: Node) -> Iterator[Node]:
    """All spatial tests in a tree."""
    if isinstance(node, list):
        for each in node:
            yield from spatial_tests(each)
    elif isinstance(node, dict) and "op" in node:
        if node["op"] in {*shapes.OGC, *shapes.EGENHOFER, "relate"}:
            yield node
        else:
            yield from spatial_tests(node["args"])


def geos_is_to_blame(node: Node, event: Event) -> bool:
    """Whether a spatial test of the tree is on a pair that GEOS itself misjudges."""
    for test in spatial_tests(node):
        a, b = shapes_of(test, event)
        if a is not None and b is not None and shapes.geos_errs(a.wkb, b.wkb):
            return True
    return False
