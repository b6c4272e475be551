"""CQL2 text or JSON to an expression; everything that is wrong with it is reported here.

Text is parsed by `cql2`; its tree and the JSON of a user are then read by one and the same
walker, which gives them our meaning and refuses what could never be evaluated.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import cql2

from contrada.errors import InvalidInput
from contrada.language.build import build
from contrada.language.groups import FIRST, TextRun
from contrada.language.literals import is_literal_node, read_end, read_literal
from contrada.language.operators import FUNCTIONS, SIGNATURES
from contrada.language.places import Place
from contrada.language.tokens import EMPTY_ARRAY, Atom, check_length, mask
from contrada.limits import PREDICATE_ATOMS_MAX, PREDICATE_DEPTH_MAX
from contrada.model.attribute_names import find_name_fault
from contrada.model.expression import Attribute, Expression, Literal
from contrada.showing import brief

_POSITION = re.compile(r"-->\s*(\d+):(\d+)")


def read(source: str | Mapping[str, Any] | bool) -> Expression:
    """Read a predicate from CQL2 text, CQL2 JSON text, or the JSON already decoded."""
    if isinstance(source, str) and not source.lstrip().startswith("{"):
        return read_text(source)
    return read_json(source)


def read_text(text: str) -> Expression:
    """Read a predicate from CQL2 text."""
    if not text.strip():
        raise InvalidInput("the predicate is empty")
    masked = mask(text)
    trees: list[Any] = []
    for run in masked.runs:
        try:
            tree = cql2.parse_text(run.text).to_json()
        except Exception as error:
            raise InvalidInput(_syntax_error(run, text, str(error))) from None
        trees.append(_unmask(tree, masked.atoms, trees))
    if masked.chained_at is not None:
        raise InvalidInput(
            f"a comparison cannot be chained {_near(text, masked.chained_at)}; "
            "for a < b < c write a < b AND b < c, or put the inner comparison in parentheses"
        )
    return read_predicate(Place(trees[-1], "$", text))


def read_json(source: str | Mapping[str, Any] | bool) -> Expression:
    """Read a predicate from CQL2 JSON, as text or decoded."""
    if isinstance(source, str):
        check_length(source)
        try:
            source = json.loads(source, parse_constant=float, parse_int=_read_integer)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"not JSON: {error.msg} at character {error.pos}") from None
        except RecursionError:
            raise InvalidInput(
                f"nested more than {PREDICATE_DEPTH_MAX} levels deep (PREDICATE_DEPTH_MAX) at $"
            ) from None
    if not isinstance(source, Mapping | bool):
        raise InvalidInput(f"a predicate must be CQL2 text or a JSON object, not {brief(source)}")
    _check_size(source)
    return read_predicate(Place(source, "$"))


def _check_size(source: Mapping[str, Any] | bool) -> None:
    """Refuse a tree of too many values; it may be deep."""
    pending: list[Any] = [source]
    values = 0
    while pending:
        node = pending.pop()
        values += 1
        if isinstance(node, Mapping) and "coordinates" not in node:
            pending += node.values()
        elif isinstance(node, list):
            pending += node
        if values + len(pending) > 4 * PREDICATE_ATOMS_MAX:  # an atom is an object and a list, too
            what = f"{PREDICATE_ATOMS_MAX:,} names, numbers, strings and geometries"
            raise InvalidInput(f"more than {what} (PREDICATE_ATOMS_MAX) at $")


def read_predicate(place: Place) -> Expression:
    """Read the root of a tree, which must be a test."""
    return build("and", (read_node(place, 0),), (place,), place)


def read_node(place: Place, depth: int) -> Expression:
    """Read one node of the tree, of a text or of JSON."""
    if depth > PREDICATE_DEPTH_MAX:
        place.refuse(f"nested more than {PREDICATE_DEPTH_MAX} levels deep (PREDICATE_DEPTH_MAX)")
    node = place.node
    if isinstance(node, Mapping) and "op" in node:
        return _read_operation(place, depth)
    if isinstance(node, Mapping) and "property" in node:
        return Attribute(_read_attribute(place.step("property")))
    if isinstance(node, Mapping) and "interval" in node:
        ends = place.step("interval")
        if not isinstance(ends.node, list) or len(ends.node) != 2:
            ends.refuse("an interval must have two ends")
        sides = tuple(ends.step(i) for i in range(2))
        return build("interval", tuple(_read_end(side, depth) for side in sides), sides, place)
    if isinstance(node, list):
        elements = tuple(place.step(i) for i in range(len(node)))
        return build("array", tuple(read_node(e, depth + 1) for e in elements), elements, place)
    if is_literal_node(node):
        return read_literal(place)
    return place.refuse(f"{brief(node)} is not a CQL2 expression")


def _read_operation(place: Place, depth: int) -> Expression:
    raw = place.node.get("args", [])
    name = _read_name(place.step("op"))
    if not isinstance(raw, list):
        place.refuse(f"the args of {name} must be a list")
    key = name.lower()
    if key not in SIGNATURES and key not in {"and", "or"}:
        known = [n for n in SIGNATURES if n[:2] == key[:2] and n[1:2] == "_"] or FUNCTIONS
        place.step("op").refuse(f'unknown function "{name}"; known: {", ".join(known)};')
    arguments = place.step("args") if "args" in place.node else Place([], place.path, place.text)
    sides = tuple(arguments.step(i) for i in range(len(raw)))
    expressions = tuple(read_node(side, depth + 1) for side in sides)
    return build(key, expressions, sides, place)


def _read_end(place: Place, depth: int) -> Expression:
    is_text = isinstance(place.node, str) or (
        isinstance(place.node, Atom) and place.node.kind == "string"
    )
    return Literal(read_end(place)) if is_text else read_node(place, depth + 1)


def _read_name(place: Place) -> str:
    name = place.node.text if isinstance(place.node, Atom) else place.node
    if not isinstance(name, str) or not name:
        place.refuse(f"{brief(name)} is not a name")
    return str(name)


def _read_attribute(place: Place) -> str:
    name = _read_name(place)
    fault = find_name_fault(name)
    if fault is not None:
        place.refuse(fault)
    return name


def _read_integer(digits: str) -> int | float:
    """Read a JSON integer; one beyond all doubles, like NaN, is a float that is refused later."""
    number = float(digits)
    return int(digits) if math.isfinite(number) else number


def _unmask(tree: Any, atoms: tuple[Atom, ...], groups: list[Any]) -> Any:
    """Put atoms and the trees of other runs back into a tree of stand-ins, in place."""
    root = [tree]
    pending: list[Any] = [root]
    while pending:
        node = pending.pop()
        for key, raw in list(enumerate(node) if isinstance(node, list) else node.items()):
            value = _without_zero(raw)
            if _is_group(value, "g"):
                node[key] = groups[int(value["property"][1:]) - FIRST]
                continue
            if value == _EMPTY or (value == [_EMPTY] and key != "args"):  # the latter of IN
                node[key] = []
                continue
            if isinstance(value, list) and len(value) == 1 and _is_group(value[0], "h"):
                group = groups[int(value[0]["property"][1:]) - FIRST]
                node[key] = group if isinstance(group, list) else [group]
                continue
            node[key] = _unmask_name(value, atoms) if key in _NAMES else _unmask_one(value, atoms)
            if isinstance(node[key], list | dict):
                pending.append(node[key])
    return root[0]


_NAMES = frozenset({"op", "property"})
_EMPTY = {"property": EMPTY_ARRAY}


def _is_group(node: Any, letter: str) -> bool:
    return isinstance(node, dict) and str(node.get("property", ""))[:1] == letter


def _without_zero(node: Any) -> Any:
    """Return x for `0 + x`, where the 0 stands for no number of the text."""
    if not isinstance(node, dict) or node.get("op") != "+":
        return node
    first, second = node["args"]
    is_zero = first == 0 and not isinstance(first, bool)  # FALSE equals 0 in Python
    return second if is_zero else node


def _unmask_name(stand_in: str, atoms: tuple[Atom, ...]) -> Atom | str:
    is_ours = stand_in[0] in "pf" and stand_in[1:].isdigit()
    return atoms[int(stand_in[1:]) - FIRST] if is_ours else stand_in


def _unmask_one(node: Any, atoms: tuple[Atom, ...]) -> Any:
    if isinstance(node, bool) or node is None:
        return node
    if isinstance(node, int | float):
        return _unmask_number(int(node), atoms)
    if isinstance(node, str):
        return atoms[int(node) - FIRST]
    if isinstance(node, dict) and node.get("type") == "Point":
        return atoms[int(node["coordinates"][0]) - FIRST]
    return node


def _unmask_number(number: int, atoms: tuple[Atom, ...]) -> Any:
    if abs(number) < FIRST:
        return number  # the -1 that `cql2` writes for a unary minus
    atom = atoms[abs(number) - FIRST]
    return Atom(atom.kind, atom.text, atom.position, is_negative=number < 0)


def _syntax_error(run: TextRun, original: str, message: str) -> str:
    found = _POSITION.search(message)
    if found is None:
        return f"cannot read the predicate: {message.splitlines()[0]}"
    line, column = (int(group) for group in found.groups())
    lines = run.text.split("\n")
    position = run.origin(sum(len(text) + 1 for text in lines[: line - 1]) + column - 1)
    if not original[position:].strip():
        return f"the predicate ends too early, at character {position}"
    word = re.match(r"[^\W\d]\w*", original[position:])
    what = f'unknown operator "{word.group()}"' if word else "syntax error"
    return f"{what} {_near(original, position)}"


def _near(text: str, position: int) -> str:
    return f'at character {position}, near "{text[position : position + 24]}"'
