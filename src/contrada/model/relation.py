"""Relations of two geometries, all in one form: sets of DE-9IM patterns.

The event is the subject of every relation: *event* relation *subscription geometry*.
Two families have clashing names. The OGC ones (`within`, `overlaps`, …) hold for points, lines and
areas; the Egenhofer ones (`ehInside`, `ehOverlap`, …) speak of regions only and are told apart by
four facts (interiors meet, boundaries meet, either one leaves the other), so that they also hold
for regions with holes and of several parts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import lru_cache

from contrada.errors import InvalidInput
from contrada.notebook import block, code, matrix, paragraph, strong
from contrada.showing import brief


class _InNotebook:
    """What a notebook shows of a relation; before Python 3.12 an enum cannot have it itself."""

    def _repr_html_(self) -> str:
        """Show the pattern of the relation's matrix, for a notebook."""
        name = EGENHOFER_NAMES[Relation(str(self))]
        (pattern,) = RELATIONS[name].patterns[2, 2]
        said = f"{strong(str(self))}, as {code(f'{name}(…)')} in CQL2: the DE-9IM matrix fits"
        return block(paragraph(said), matrix(pattern))


class Relation(_InNotebook, StrEnum):
    """The Egenhofer relation of two regions: exactly one holds for each pair."""

    DISJOINT = "disjoint"
    MEETS = "meets"
    OVERLAPS = "overlaps"
    EQUALS = "equals"
    INSIDE = "inside"
    COVERED_BY = "coveredBy"
    CONTAINS = "contains"
    COVERS = "covers"


class Family(Enum):
    """Where a relation's name comes from, and so what it takes."""

    OGC = "ogc"
    EGENHOFER = "egenhofer"
    PATTERN = "pattern"


Dimensions = tuple[int, int]
Patterns = Mapping[Dimensions, tuple[str, ...]]

_PAIRS: tuple[Dimensions, ...] = tuple((a, b) for a in range(3) for b in range(3))
_PATTERN = re.compile(r"[TF*012]{9}")
_TRANSPOSED = (0, 3, 6, 1, 4, 7, 2, 5, 8)


@dataclass(frozen=True, slots=True)
class SpatialRelation:
    """A named relation, and its DE-9IM patterns by the dimensions of event and subscription.

    `patterns` has a row for each pair of dimensions (0 point, 1 line, 2 area); the relation holds
    where the matrix fits one of them. A pair without a pattern never satisfies it.
    """

    name: str
    family: Family
    patterns: Patterns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpatialRelation) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def transposed(self) -> "SpatialRelation":
        """Give the relation of b to a that holds just where this one holds of a to b."""
        if self.family is Family.PATTERN:
            return pattern_relation(transpose(self.name))
        return RELATIONS[_CONVERSE.get(self.name, self.name)]

    def holds_when_apart(self) -> bool:
        """Tell whether two geometries without a common point may satisfy it."""
        return _holds_when_apart(self)

    def admits(self, matrix: str, dimensions: Dimensions) -> bool:
        """Tell whether a DE-9IM matrix of two such geometries satisfies it."""
        return any(fits(matrix, pattern) for pattern in self.patterns[dimensions])


def fits(matrix: str, pattern: str) -> bool:
    """Tell whether a DE-9IM matrix fits a pattern of `T F * 0 1 2`."""
    return all(
        want in ("*", have) or (want == "T" and have != "F")
        for have, want in zip(matrix, pattern, strict=True)
    )


def transpose(pattern: str) -> str:
    """Swap subject and object of a DE-9IM matrix or pattern."""
    return "".join(pattern[i] for i in _TRANSPOSED)


def egenhofer(matrix: str) -> Relation:
    """Decide the Egenhofer relation of two regions from the four facts of their matrix."""
    interiors, leaves, boundaries, is_left = (matrix[i] != "F" for i in (0, 2, 4, 6))
    if not interiors:
        return Relation.MEETS if boundaries else Relation.DISJOINT
    if not leaves and not is_left:
        return Relation.EQUALS
    if not leaves:
        return Relation.COVERED_BY if boundaries else Relation.INSIDE
    if not is_left:
        return Relation.COVERS if boundaries else Relation.CONTAINS
    return Relation.OVERLAPS


@lru_cache(maxsize=1024)
def _holds_when_apart(relation: SpatialRelation) -> bool:
    return any(
        all(pattern[i] in "F*" for i in (0, 1, 3, 4))
        for patterns in relation.patterns.values()
        for pattern in patterns
    )


def pattern_relation(pattern: str) -> SpatialRelation:
    """Make a relation of one DE-9IM pattern, whatever the dimensions."""
    pattern = pattern.upper()
    if not _PATTERN.fullmatch(pattern):
        raise InvalidInput(
            f"{brief(pattern)} is not a DE-9IM pattern: write nine characters of T, F, *, 0, 1, 2"
        )
    return SpatialRelation(pattern, Family.PATTERN, _always(pattern))


def find_relation(name: "str | Relation") -> SpatialRelation:
    """Find a relation by name: a member of `Relation`, an OGC or `eh…` name, or a pattern."""
    if isinstance(name, Relation):
        return RELATIONS[EGENHOFER_NAMES[name]]
    if not isinstance(name, str):
        raise InvalidInput(f"unknown relation {brief(name)}; known: {', '.join(RELATIONS)}")
    found = _BY_LOWER_NAME.get(name.lower())
    if found is not None:
        return found
    if _PATTERN.fullmatch(name.upper()):
        return pattern_relation(name)
    raise InvalidInput(
        f"unknown relation {brief(name)}; known: {', '.join(RELATIONS)}, or a DE-9IM pattern"
    )


def _always(*patterns: str) -> Patterns:
    return dict.fromkeys(_PAIRS, patterns)


def _ogc(name: str, patterns: Patterns) -> SpatialRelation:
    return SpatialRelation(name, Family.OGC, patterns)


def _eh(name: str, pattern: str) -> SpatialRelation:
    return SpatialRelation(
        name, Family.EGENHOFER, {pair: (pattern,) if pair == (2, 2) else () for pair in _PAIRS}
    )


def _crosses() -> Patterns:
    lower, upper = ("T*T******",), ("T*****T**",)
    patterns: dict[Dimensions, tuple[str, ...]] = {
        (a, b): lower if a < b else upper if a > b else () for a, b in _PAIRS
    }
    patterns[1, 1] = ("0********",)
    return patterns


def _overlaps() -> Patterns:
    patterns: dict[Dimensions, tuple[str, ...]] = dict.fromkeys(_PAIRS, ())
    patterns[0, 0] = patterns[2, 2] = ("T*T***T**",)
    patterns[1, 1] = ("1*T***T**",)
    return patterns


def _touches() -> Patterns:
    patterns = dict(_always("FT*******", "F**T*****", "F***T****"))
    patterns[0, 0] = ()
    return patterns


RELATIONS: Mapping[str, SpatialRelation] = {
    relation.name: relation
    for relation in (
        _ogc("intersects", _always("T********", "*T*******", "***T*****", "****T****")),
        _ogc("disjoint", _always("FF*FF****")),
        _ogc("touches", _touches()),
        _ogc("crosses", _crosses()),
        _ogc("within", _always("T*F**F***")),
        _ogc("contains", _always("T*****FF*")),
        _ogc("overlaps", _overlaps()),
        _ogc("equals", _always("T*F**FFF*")),
        _ogc("covers", _always("T*****FF*", "*T****FF*", "***T**FF*", "****T*FF*")),
        _ogc("coveredBy", _always("T*F**F***", "*TF**F***", "**FT*F***", "**F*TF***")),
        _eh("ehDisjoint", "F***F****"),
        _eh("ehMeet", "F***T****"),
        _eh("ehOverlap", "T*T***T**"),
        _eh("ehEquals", "T*F***F**"),
        _eh("ehInside", "T*F*F*T**"),
        _eh("ehCoveredBy", "T*F*T*T**"),
        _eh("ehContains", "T*T*F*F**"),
        _eh("ehCovers", "T*T*T*F**"),
    )
}

EGENHOFER_NAMES: Mapping[Relation, str] = {
    Relation.DISJOINT: "ehDisjoint",
    Relation.MEETS: "ehMeet",
    Relation.OVERLAPS: "ehOverlap",
    Relation.EQUALS: "ehEquals",
    Relation.INSIDE: "ehInside",
    Relation.COVERED_BY: "ehCoveredBy",
    Relation.CONTAINS: "ehContains",
    Relation.COVERS: "ehCovers",
}

_CONVERSE = {
    a: b
    for pair in (
        ("within", "contains"),
        ("covers", "coveredBy"),
        ("ehInside", "ehContains"),
        ("ehCovers", "ehCoveredBy"),
    )
    for a, b in (pair, pair[::-1])
}
_BY_LOWER_NAME = {name.lower(): relation for name, relation in RELATIONS.items()}
