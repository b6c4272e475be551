"""The smallest case that still fails, by leaving out one thing after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fuzz.meaning import CONNECTIVES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Node = Any
Row = dict[str, Any]


def reduce(node: Node, row: Row, fails: Callable[[Node, Row], bool]) -> tuple[Node, Row]:
    """A predicate and an event, no larger than need be for `fails` to stay true."""
    while True:
        for smaller in (*((each, row) for each in smaller_trees(node)), *smaller_rows(node, row)):
            if fails(*smaller):
                node, row = smaller
                break
        else:
            return node, row


def smaller_rows(node: Node, row: Row) -> Iterator[tuple[Node, Row]]:
    """The event without one of its attributes."""
    for name in row:
        yield node, {key: value for key, value in row.items() if key != name}


def smaller_trees(node: Node) -> Iterator[Node]:
    """The tree with a part in place of the whole, or without a part."""
    if isinstance(node, list):
        for at, each in enumerate(node):
            if len(node) > 1:
                yield node[:at] + node[at + 1 :]
            for smaller in smaller_trees(each):
                yield [*node[:at], smaller, *node[at + 1 :]]
        return
    if not isinstance(node, dict) or "args" not in node:
        return
    if node["op"] in CONNECTIVES:
        yield from node["args"]
        if len(node["args"]) > 2:
            for at in range(len(node["args"])):
                yield {**node, "args": node["args"][:at] + node["args"][at + 1 :]}
    for at, each in enumerate(node["args"]):
        if isinstance(each, dict) and "op" in each and node["op"] in ("=", "<>"):
            yield each
        for smaller in smaller_trees(each):
            yield {**node, "args": [*node["args"][:at], smaller, *node["args"][at + 1 :]]}
