"""Relations of two geometries, all in one form: sets of DE-9IM patterns.

The event is the subject of every relation: *event* relation *subscription geometry*.
Two families have clashing names. The OGC ones (`within`, `overlaps`, …) hold for points, lines and
areas; the Egenhofer ones (`ehInside`, `ehOverlap`, …) are about regions only and are distinguished
by four facts (interiors meet, boundaries meet, either one leaves the other), so that they also hold
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
        relation = find_relation(Relation(str(self)))
        (pattern,) = relation.patterns[2, 2]
        said = (
            f"{strong(str(self))}, as {code(f'{relation.name}(…)')} in CQL2: the DE-9IM matrix fits"
        )
        return block(paragraph(said), matrix(pattern))


class Relation(_InNotebook, StrEnum):
    """The Egenhofer relation of two regions: exactly one holds for each pair.

    Where a relation is expected, a member means the Egenhofer relation, while the same word as a
    plain string means the OGC one, which also holds for points and lines.

    >>> str(contrada.relate("POLYGON((0 0, 4 0, 4 4, 0 0))", "POLYGON((4 0, 9 0, 9 9, 4 0))"))
    'meets'
    >>> matcher = contrada.Matcher()
    >>> pond = "POLYGON((0 0, 9 0, 9 9, 0 0))"
    >>> matcher.add("pond", geometry=pond, relation=contrada.Relation.INSIDE)
    >>> matcher.get("pond").text
    'ehInside(geometry, POLYGON((0 0, 9 0, 9 9, 0 0)))'
    """

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


class AreaRule(Enum):
    """The rows of Table 2 of the AHS paper: how shared areas decide a relation."""

    APART = "apart"
    MEETING = "meeting"
    TOUCHING = "touching"
    COVERED = "covered"
    AROUND = "around"
    SAME = "same"
    OVERLAPPING = "overlapping"
    CROSSING = "crossing"


DimensionPair = tuple[int, int]
Patterns = Mapping[DimensionPair, tuple[str, ...]]

_PAIRS: tuple[DimensionPair, ...] = tuple((a, b) for a in range(3) for b in range(3))
_PATTERN = re.compile(r"[TF*012]{9}")
_TRANSPOSED = (0, 3, 6, 1, 4, 7, 2, 5, 8)
_RELATIONS_MAX = 1024  # whose properties are remembered: the named ones and many patterns
_APART = "FF*FF****"


@dataclass(frozen=True, slots=True)
class SpatialRelation:
    """A relation, and everything that is looked up by its name.

    `patterns` has a row for each pair of dimensions of event and subscription (0 point, 1 line,
    2 area); the relation holds where the matrix fits one of them. A pair without a pattern never
    satisfies it.
    """

    name: str
    family: Family
    patterns: Patterns
    operator: str
    """What CQL2 calls it."""
    converse: str
    """The relation of b to a that holds where this one holds of a to b."""
    predicate: str | None = None
    """Shapely's function that decides it, if there is one."""
    complement: str | None = None
    """The relation that holds where this one does not, if that has a name."""
    meeting: bool | None = None
    """Whether it holds just where the two have a point in common, or (False) have none."""
    area_rule: AreaRule | Relation | None = None
    """How shared areas decide it; for regions, as one of the relations that exclude each other."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpatialRelation) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def transposed(self) -> "SpatialRelation":
        """The relation of b to a that holds just where this one holds of a to b."""
        if self.family is Family.PATTERN:
            return pattern_relation(self.converse)
        return RELATIONS[self.converse]

    def negated(self) -> "SpatialRelation | None":
        """The relation that holds just where this one does not, if that has a name."""
        return None if self.complement is None else RELATIONS[self.complement]

    def holds_when_apart(self) -> bool:
        """Whether two geometries without a common point may satisfy it."""
        return _holds_when_apart(self)

    def keeps_inside(self) -> bool:
        """Whether no point of the event may lie outside the subscription's geometry."""
        return _leaves_empty(self, 2, 5)

    def keeps_around(self) -> bool:
        """Whether no point of the subscription's geometry may lie outside the event."""
        return _leaves_empty(self, 6, 7)

    def admits(self, matrix: str, dimensions: DimensionPair) -> bool:
        """Whether a DE-9IM matrix of two such geometries satisfies it."""
        return any(fits(matrix, pattern) for pattern in self.patterns[dimensions])


def fits(matrix: str, pattern: str) -> bool:
    """Whether a DE-9IM matrix fits a pattern of `T F * 0 1 2`."""
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


@lru_cache(_RELATIONS_MAX)
def _holds_when_apart(relation: SpatialRelation) -> bool:
    return any(
        all(pattern[i] in "F*" for i in (0, 1, 3, 4))
        for patterns in relation.patterns.values()
        for pattern in patterns
    )


@lru_cache(_RELATIONS_MAX)
def _leaves_empty(relation: SpatialRelation, interior: int, boundary: int) -> bool:
    """Whether its matrices always have F at two places; of two areas the interior's decides."""
    places = (interior,) if relation.family is Family.EGENHOFER else (interior, boundary)
    return all(
        pattern[place] == "F"
        for patterns in relation.patterns.values()
        for pattern in patterns
        for place in places
    )


def pattern_relation(pattern: str) -> SpatialRelation:
    """Make a relation of one DE-9IM pattern, whatever the dimensions."""
    pattern = pattern.upper()
    if not _PATTERN.fullmatch(pattern):
        raise InvalidInput(
            f"{brief(pattern)} is not a DE-9IM pattern: write nine characters of T, F, *, 0, 1, 2"
        )
    return SpatialRelation(
        pattern,
        Family.PATTERN,
        _always(pattern),
        operator="relate",
        converse=transpose(pattern),
        meeting=False if pattern == _APART else None,
    )


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


def _of_regions(pattern: str) -> Patterns:
    return {pair: (pattern,) if pair == (2, 2) else () for pair in _PAIRS}


def _crosses() -> Patterns:
    lower, upper = ("T*T******",), ("T*****T**",)
    patterns: dict[DimensionPair, tuple[str, ...]] = {
        (a, b): lower if a < b else upper if a > b else () for a, b in _PAIRS
    }
    patterns[1, 1] = ("0********",)
    return patterns


def _overlaps() -> Patterns:
    patterns: dict[DimensionPair, tuple[str, ...]] = dict.fromkeys(_PAIRS, ())
    patterns[0, 0] = patterns[2, 2] = ("T*T***T**",)
    patterns[1, 1] = ("1*T***T**",)
    return patterns


def _touches() -> Patterns:
    patterns = dict(_always("FT*******", "F**T*****", "F***T****"))
    patterns[0, 0] = ()
    return patterns


def _ogc(
    name: str,
    rule: AreaRule,
    patterns: Patterns,
    operator: str | None = None,
    predicate: str | None = None,
    converse: str | None = None,
    complement: str | None = None,
    meeting: bool | None = None,
) -> SpatialRelation:
    return SpatialRelation(
        name,
        Family.OGC,
        patterns,
        operator=operator or f"s_{name}",
        predicate=predicate or name,
        converse=converse or name,
        complement=complement,
        meeting=meeting,
        area_rule=rule,
    )


def _eh(
    name: str,
    base: Relation,
    pattern: str,
    converse: str | None = None,
    meeting: bool | None = None,
) -> SpatialRelation:
    return SpatialRelation(
        name,
        Family.EGENHOFER,
        _of_regions(pattern),
        operator=name,
        converse=converse or name,
        meeting=meeting,
        area_rule=base,
    )


_MEETING = _always("T********", "*T*******", "***T*****", "****T****")
_COVERS = _always("T*****FF*", "*T****FF*", "***T**FF*", "****T*FF*")
_COVERED_BY = _always("T*F**F***", "*TF**F***", "**FT*F***", "**F*TF***")
_ROWS = (
    _ogc("intersects", AreaRule.MEETING, _MEETING, complement="disjoint", meeting=True),
    _ogc("disjoint", AreaRule.APART, _always(_APART), complement="intersects", meeting=False),
    _ogc("touches", AreaRule.TOUCHING, _touches()),
    _ogc("crosses", AreaRule.CROSSING, _crosses()),
    _ogc("within", AreaRule.COVERED, _always("T*F**F***"), converse="contains"),
    _ogc("contains", AreaRule.AROUND, _always("T*****FF*"), converse="within"),
    _ogc("overlaps", AreaRule.OVERLAPPING, _overlaps()),
    _ogc("equals", AreaRule.SAME, _always("T*F**FFF*")),
    _ogc("covers", AreaRule.AROUND, _COVERS, operator="covers", converse="coveredBy"),
    _ogc(
        "coveredBy",
        AreaRule.COVERED,
        _COVERED_BY,
        operator="coveredBy",
        predicate="covered_by",
        converse="covers",
    ),
    _eh("ehDisjoint", Relation.DISJOINT, "F***F****", meeting=False),
    _eh("ehMeet", Relation.MEETS, "F***T****"),
    _eh("ehOverlap", Relation.OVERLAPS, "T*T***T**"),
    _eh("ehEquals", Relation.EQUALS, "T*F***F**"),
    _eh("ehInside", Relation.INSIDE, "T*F*F*T**", converse="ehContains"),
    _eh("ehCoveredBy", Relation.COVERED_BY, "T*F*T*T**", converse="ehCovers"),
    _eh("ehContains", Relation.CONTAINS, "T*T*F*F**", converse="ehInside"),
    _eh("ehCovers", Relation.COVERS, "T*T*T*F**", converse="ehCoveredBy"),
)
RELATIONS: Mapping[str, SpatialRelation] = {row.name: row for row in _ROWS}
BY_OPERATOR: Mapping[str, SpatialRelation] = {row.operator: row for row in _ROWS}
EGENHOFER_NAMES: Mapping[Relation, str] = {
    row.area_rule: row.name for row in _ROWS if isinstance(row.area_rule, Relation)
}
_BY_LOWER_NAME = {name.lower(): relation for name, relation in RELATIONS.items()}
