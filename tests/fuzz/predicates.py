"""Random predicates, as trees of CQL2 JSON, that aim at the edges of the language."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import shapely

from fuzz import pools
from fuzz.meaning import ARITHMETIC, ARRAY, COMPARISONS
from fuzz.moments import RELATIONS as TEMPORAL
from fuzz.moments import position
from fuzz.shapes import EGENHOFER, OGC

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

Node = Any

ATTRIBUTES = {
    "number": ("n", "m", "x.y", "deep.er.n", "id"),
    "text": ("s", "odd name", "u.v"),
    "moment": ("t", "until"),
    "array": ("a", "b"),
    "truth": ("p", "q"),
    "shape": ("g", "h", "geometry"),
    "place": ("place",),
}
SCALARS = ("number", "text", "moment", "truth")


class Maker:
    """Makes predicates, from one generator of random numbers."""

    def __init__(self, random: Random) -> None:
        self.random = random
        shapes = [pools.lattice_shape(random) for _ in range(8)]
        self.shapes = [shape for shape in shapes if shapely.is_valid(shape)]
        self.areas = [shape for shape in self.shapes if shapely.get_type_id(shape) in (3, 6)]

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[self.random.randrange(len(choices))]

    def attribute(self, kind: str) -> Node:
        """A name of that kind, seldom of another."""
        if self.random.random() < 0.08:
            kind = self.pick(SCALARS)
        return {"property": self.pick(ATTRIBUTES[kind])}

    # Predicates

    def predicate(self, size: int = 6) -> Node:
        """A tree of at most about so many tests."""
        if size <= 1 or self.random.random() < 0.15:
            return self.test()
        match self.random.randrange(10):
            case 0 | 1:
                return {"op": "not", "args": [self.predicate(size - 1)]}
            case 2:
                sides = [self.predicate(size - 1), self.pick((True, False))]
                self.random.shuffle(sides)
                return {"op": self.pick(("=", "<>")), "args": sides}
            case _:
                count = self.random.randint(2, 3)
                parts = [self.predicate(size // count) for _ in range(count)]
                return {"op": self.pick(("and", "or")), "args": parts}

    def test(self) -> Node:
        """One test, of any kind."""
        kinds = (
            *(self.comparison, self.comparison, self.between, self.membership, self.likeness),
            *(self.nullness, self.relation, self.relation, self.nearness, self.timing, self.timing),
            *(self.arrays, self.truth, partial(self.attribute, "truth")),
        )
        return self.pick(kinds)()

    def truth(self) -> Node:
        return self.pick((True, False))

    def comparison(self) -> Node:
        kind = self.pick(SCALARS)
        other = self.pick(SCALARS) if self.random.random() < 0.15 else kind
        return {"op": self.pick(COMPARISONS), "args": [self.value(kind), self.value(other)]}

    def between(self) -> Node:
        kind = self.pick(SCALARS[:3])
        return {"op": "between", "args": [self.value(kind) for _ in range(3)]}

    def membership(self) -> Node:
        kind = self.pick(SCALARS)
        listed = [self.value(kind) for _ in range(self.random.randint(1, 4))]
        if self.random.random() < 0.2:
            listed.append(self.value(self.pick(SCALARS)))
        if self.random.random() < 0.05:
            listed = []
        return {"op": "in", "args": [self.value(kind), listed]}

    def likeness(self) -> Node:
        pattern: Node = self.pick(pools.PATTERNS)
        if self.random.random() < 0.3:
            pattern = {"op": self.pick(("casei", "accenti")), "args": [pattern]}
        return {"op": "like", "args": [self.value("text"), pattern]}

    def nullness(self) -> Node:
        kind = self.pick(tuple(ATTRIBUTES))
        operand = self.attribute(kind)
        if self.random.random() < 0.2:
            operand = self.pick((self.comparison, self.relation, self.sum))()
        return {"op": "isNull", "args": [operand]}

    def timing(self) -> Node:
        return {"op": self.pick(tuple(TEMPORAL)), "args": [self.span(), self.span()]}

    def arrays(self) -> Node:
        return {"op": self.pick(ARRAY), "args": [self.array(), self.array()]}

    # Space

    def relation(self) -> Node:
        draw = self.random.random()
        if draw < 0.25 and self.areas:
            return self.spatial(self.pick(tuple(EGENHOFER)), self.areas)
        if draw < 0.35:
            node = self.spatial("relate", self.shapes)
            return {**node, "args": [*node["args"], self.pick(pools.PATTERNS_OF_SPACE)]}
        return self.spatial(self.pick(tuple(OGC)), self.shapes)

    def spatial(self, operator: str, shapes: Sequence[Any]) -> Node:
        attribute = {"property": self.pick((*ATTRIBUTES["shape"], "p"))}
        other = pools.geojson(self.pick(shapes)) if shapes else {"bbox": [0, 0, 2, 3]}
        match self.random.randrange(12):
            case 0:
                other = {"bbox": [self.random.randint(0, 2), 0, self.random.randint(3, 4), 2]}
            case 1:
                other = {"bbox": [178, -3, -177, 3]}
            case 2:
                other = {"property": self.pick(ATTRIBUTES["shape"])}
        arguments = [attribute, other]
        if self.random.random() < 0.25:
            arguments.reverse()
        return {"op": operator, "args": arguments}

    def nearness(self) -> Node:
        centre = pools.geojson(pools.place(self.random))
        arguments = [{"property": "place"}, centre]
        if self.random.random() < 0.25:
            arguments.reverse()
        radius = self.pick(pools.DISTANCES) if self.random.random() < 0.9 else {"property": "n"}
        return {"op": "dwithin", "args": [*arguments, radius]}

    # Values

    def value(self, kind: str) -> Node:
        """A value of a kind: an attribute, a literal or computed."""
        if self.random.random() < 0.45:
            return self.attribute(kind)
        match kind:
            case "number":
                return self.sum() if self.random.random() < 0.2 else self.pick(pools.NUMBERS)
            case "text":
                if self.random.random() < 0.2:
                    return {"op": self.pick(("casei", "accenti")), "args": [self.value("text")]}
                return self.pick(pools.TEXTS)
            case "moment":
                return self.moment()
        return self.truth()

    def sum(self) -> Node:
        operator = self.pick(ARITHMETIC)
        if operator == "^":
            return {"op": "^", "args": [self.attribute("number"), self.pick((0, 1, 2, 3, -1, 0.5))]}
        if operator in ("div", "%"):
            return {
                "op": operator,
                "args": [self.value("number"), self.pick((1, 2, -3, 0.5, 0.1, 0))],
            }
        return {"op": operator, "args": [self.value("number"), self.value("number")]}

    def moment(self) -> Node:
        text = self.pick(pools.TIME_TEXTS)
        return {"timestamp" if "T" in text else "date": text}

    def span(self) -> Node:
        match self.random.randrange(6):
            case 0 | 1:
                return self.attribute("moment")
            case 2:
                return self.moment()
            case 3:
                ends = [self.pick(({"property": "t"}, {"property": "until"}, "..")) for _ in "ab"]
                return {"interval": ends}
        ends = sorted(
            (self.pick(pools.TIME_TEXTS) for _ in "ab"), key=lambda text: position(text) or 0
        )
        if self.random.random() < 0.3:
            ends[self.random.randrange(2)] = ".."
        return {"interval": ends}

    def array(self, depth: int = 0) -> Node:
        if depth == 0 and self.random.random() < 0.5:
            return self.attribute("array")
        return [self.element(depth) for _ in range(self.random.randint(0, 3))]

    def element(self, depth: int) -> Node:
        if depth < 2 and self.random.random() < 0.1:
            return self.array(depth + 1)
        if self.random.random() < 0.05:
            return None
        return self.value(self.pick(("number", "text", "text", "moment", "truth")))
