"""What the code of the overlay says of itself: which message makes a peer send which others.

The sources are read, not run. What happens to a peer is a *cause*: it receives a message, or
whoever drives it calls `tick`, `publish` or `leave`. All functions that a cause may lead to are
followed, whatever their conditions are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import contrada.overlay
from contrada.overlay import peer
from contrada.overlay.messages import Message

SOURCE = Path(contrada.overlay.__file__).parent
MESSAGES = [kind.__name__ for kind in get_args(Message)]
CALLS = ["tick", "publish", "leave"]
CAUSES = [*CALLS, *MESSAGES]

# What conditions in the code rule out, though the functions are there.
NEVER = {("tick", "Offer"): "a root that seeks a place offers none to itself"}

Function = tuple[str, str]  # module and name
Known = dict[str, str]  # the message that a name stands for


@dataclass(frozen=True, slots=True)
class Body:
    """A function: what it calls, what it sends, and all its statements as text."""

    calls: frozenset[Function]
    sends: frozenset[str]
    statements: tuple[str, ...]


def read_bodies() -> dict[Function, Body]:
    """Read every function of the overlay; methods have their own names, without their class."""
    trees = {path.stem: ast.parse(path.read_text()) for path in sorted(SOURCE.glob("*.py"))}
    found = {
        (module, node.name): node
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    answers = {
        function: node.returns.id
        for function, node in found.items()
        if isinstance(node.returns, ast.Name) and node.returns.id in MESSAGES
    }
    return {
        function: Body(
            frozenset(_calls(node, function[0], trees[function[0]], set(found))),
            frozenset(_sends(node, function[0], answers)),
            tuple(ast.unparse(n) for n in ast.walk(node) if isinstance(n, ast.stmt | ast.Call)),
        )
        for function, node in found.items()
    }


def _calls(
    node: ast.FunctionDef, module: str, tree: ast.Module, known: set[Function]
) -> Iterator[Function]:
    """The functions that one mentions: its neighbours, imported ones, and methods of any class."""
    origins = {
        alias.name: statement.module.rpartition(".")[2]
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names
    }
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield from {(origins.get(part.id, module), part.id)} & known
        elif isinstance(part, ast.Attribute):
            owner = part.value.id if isinstance(part.value, ast.Name) else ""
            yield from {(owner, part.attr)} & known or {f for f in known if f[1] == part.attr}


def _sends(node: ast.FunctionDef, module: str, answers: dict[Function, str]) -> Iterator[str]:
    """The messages that a function itself hands to `out.send`."""
    names: Known = {name.lower(): name for name in MESSAGES}
    for argument in node.args.args:
        if isinstance(argument.annotation, ast.Name) and argument.annotation.id in MESSAGES:
            names[argument.arg] = argument.annotation.id
    for target, value in _assignments(node):
        if kind := _kind(value, module, names, answers):
            names[ast.unparse(target)] = kind
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and ast.unparse(part.func) == "out.send":
            kind = _kind(part.args[1], module, names, answers)
            assert kind, f"{module}.{node.name}: what is sent by {ast.unparse(part)}?"
            yield kind


def _assignments(node: ast.FunctionDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    for part in ast.walk(node):
        match part:
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)):
                yield from zip(targets, values, strict=True)
            case ast.Assign([target], value):
                yield target, value


def _kind(value: ast.expr, module: str, names: Known, answers: dict[Function, str]) -> str | None:
    match value:
        case ast.Call(ast.Name("replace"), [first, *_]):
            return _kind(first, module, names, answers)
        case ast.Call(ast.Name(name)):
            return name if name in MESSAGES else answers.get((module, name))
        case ast.Name(name) | ast.Attribute(_, name):
            return names.get(name)
    return None


def roots() -> dict[str, Function]:
    """Where the code of each cause begins."""
    handlers = {kind.__name__: handler for kind, handler in peer._HANDLERS.items()}
    taken = {name: (f.__module__.rpartition(".")[2], f.__name__) for name, f in handlers.items()}
    called = {name: ("peer", name) for name in CALLS}
    return called | taken | {"Event": ("peer", "_take_event")}


def reached(bodies: dict[Function, Body], start: Function) -> set[Function]:
    """All functions that one may lead to, itself among them."""
    found, pending = {start}, [start]
    while pending:
        new = bodies[pending.pop()].calls - found
        found |= new
        pending += new
    return found


def find_arrows() -> dict[str, set[str]]:
    """The messages that a peer may send for each cause."""
    bodies = read_bodies()
    arrows = {
        (cause, kind)
        for cause, start in roots().items()
        for function in reached(bodies, start)
        for kind in bodies[function].sends
    }
    assert arrows >= NEVER.keys()
    return {cause: {kind for c, kind in arrows - NEVER.keys() if c == cause} for cause in CAUSES}


def find_causes(pattern: str) -> set[str]:
    """The causes that may lead to a statement or a call that a pattern fits as a whole."""
    bodies = read_bodies()
    fitting = {
        function
        for function, body in bodies.items()
        if any(re.fullmatch(pattern, statement) for statement in body.statements)
    }
    assert fitting, pattern
    return {cause for cause, start in roots().items() if reached(bodies, start) & fitting}
