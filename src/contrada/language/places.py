"""Where in a predicate something stands: a character of the text, or a path in the JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from contrada.errors import InvalidInput
from contrada.language.tokens import Atom

_NEAR = 24


@dataclass(frozen=True, slots=True)
class Place:
    """A node of the raw tree and its path; in a text, the first atom below the node tells where."""

    node: Any
    path: str
    text: str | None = None

    def step(self, key: str | int) -> "Place":
        """Go down to a member or an element."""
        step = f"[{key}]" if isinstance(key, int) else f".{key}"
        return Place(self.node[key], self.path + step, self.text)

    def describe(self) -> str:
        """Describe where this is, in the user's own terms."""
        if self.text is None:
            return f"at {self.path}"
        atom = _first_atom(self.node)
        if atom is None:
            return f'in "{self.text[:60]}"'
        near = self.text[atom.position : atom.position + _NEAR]
        return f'at character {atom.position}, near "{near}"'

    def refuse(self, what: str) -> NoReturn:
        """Raise the error that says what is wrong here."""
        raise InvalidInput(f"{what} {self.describe()}")


def _first_atom(node: Any) -> Atom | None:
    """Find the atom below a node that stands first in the text; the tree may be deep."""
    found: list[Atom] = []
    pending = [node]
    while pending:
        node = pending.pop()
        if isinstance(node, Atom):
            found.append(node)
        elif isinstance(node, Mapping | list):
            pending += node.values() if isinstance(node, Mapping) else node
    return min(found, key=lambda atom: atom.position, default=None)
