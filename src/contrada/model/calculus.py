"""What a relation to one region says about the relation to another.

Regions compose by the RCC-8 table (Randell, Cui and Cohn 1992). Events may also be points and
lines, so there is a second, coarser rule that holds for all geometries: a point in a given part
(interior, boundary, exterior) of region R2 can lie only in certain parts of region R1, once the
relation of R2 to R1 is known; applied to the nine entries of a DE-9IM matrix it bounds the
matrices that remain possible. Both rules are sound and neither is complete.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import product

from contrada.model.relation import Family, Relation, SpatialRelation

_ORDER = (
    Relation.DISJOINT,
    Relation.MEETS,
    Relation.OVERLAPS,
    Relation.COVERED_BY,
    Relation.INSIDE,
    Relation.COVERS,
    Relation.CONTAINS,
    Relation.EQUALS,
)
_LETTERS = dict(zip("DMOcivCE", _ORDER, strict=True))
# Rows: a to b; columns: b to c; both in the order D M O coveredBy inside covers contains equals.
_TABLE = """
DMOcivCE DMOci    DMOci    DMOci    DMOci    D        D        D
DMOvC    DMOcvE   DMOci    MOci     Oci      DM       D        M
DMOvC    DMOvC    DMOcivCE Oci      Oci      DMOvC    DMOvC    O
D        DM       DMOci    ci       i        DMOcvE   DMOvC    c
D        D        DMOci    i        i        DMOci    DMOcivCE i
DMOvC    MOvC     OvC      OcvE     Oci      vC       C        v
DMOvC    OvC      OvC      OvC      OcivCE   C        C        C
D        M        O        c        i        v        C        E
"""
_COMPOSED = {
    (a, b): frozenset(_LETTERS[letter] for letter in cell)
    for a, row in zip(_ORDER, _TABLE.split("\n")[1:], strict=False)
    for b, cell in zip(_ORDER, row.split(), strict=True)
}


def compose(first: Iterable[Relation], second: Relation) -> frozenset[Relation]:
    """Return the possible relations of a to c, given those of a to b and that of b to c."""
    return frozenset[Relation]().union(*(_COMPOSED[relation, second] for relation in first))


# Which parts of R1 (I, B, E) a point of a part of R2 may lie in, by the relation of R2 to R1.
_PARTS = {
    Relation.DISJOINT: ("E", "E", "IBE"),
    Relation.MEETS: ("E", "BE", "IBE"),
    Relation.OVERLAPS: ("IBE", "IBE", "IBE"),
    Relation.COVERED_BY: ("I", "IB", "IBE"),
    Relation.INSIDE: ("I", "I", "IBE"),
    Relation.COVERS: ("IBE", "BE", "E"),
    Relation.CONTAINS: ("IBE", "E", "E"),
    Relation.EQUALS: ("I", "B", "E"),
}

Matrix = int  # nine bits, in the order of the DE-9IM characters
Matrices = frozenset[Matrix]
POINT, LINE, AREA = 0, 1, 2
MIXED = 3  # a collection of areas and others: of dimension 2, and yet no region
DIMENSION_KINDS = (POINT, LINE, AREA, MIXED)
_RELATIONS_MAX = 1024  # what is remembered: the named relations and many patterns


@cache
def possible_after(matrix: Matrix, relation: Relation) -> Matrices:
    """List the matrices to R1 that are possible for one to R2, by the relation of R2 to R1."""
    rows = [_rows_after((matrix >> 3 * row) & 7, relation) for row in range(3)]
    return frozenset(a | b << 3 | c << 6 for a, b, c in product(*rows))


def _rows_after(hit: int, relation: Relation) -> list[int]:
    """List which parts of R1 a point set may meet that meets just the parts `hit` of R2."""
    reach = [sum(1 << "IBE".index(letter) for letter in letters) for letters in _PARTS[relation]]
    needed = [reach[part] for part in range(3) if hit >> part & 1]
    most = 0
    for parts in needed:
        most |= parts
    return [row for row in range(8) if row & ~most == 0 and all(row & parts for parts in needed)]


@lru_cache(maxsize=_RELATIONS_MAX)
def matrices_of(relation: SpatialRelation, is_negated: bool, kind: int) -> Matrices:
    """List the matrices of an event of a kind and a region that satisfy a constraint."""
    if relation.family is Family.EGENHOFER and kind != AREA:
        return frozenset()  # unknown, whether negated or not
    return frozenset(
        matrix
        for matrix in conceivable(kind)
        if relation.admits(_as_text(matrix), (min(kind, AREA), AREA)) != is_negated
    )


@cache
def conceivable(kind: int) -> Matrices:
    """List the matrices that an event of a kind can have with a region at all."""
    return frozenset(matrix for matrix in range(512) if _is_conceivable(matrix, kind))


def _is_conceivable(matrix: Matrix, kind: int) -> bool:
    interior, boundary, exterior = (matrix >> 3 * row & 7 for row in range(3))
    if not interior or not exterior & 4:
        return False
    if kind == POINT:
        return boundary == 0 and exterior == 7
    if kind == LINE:
        return bool(exterior & 1)
    return bool(boundary)


def _as_text(matrix: Matrix) -> str:
    return "".join("T" if matrix >> place & 1 else "F" for place in range(9))


@lru_cache(maxsize=_RELATIONS_MAX)
def base_relations(relation: SpatialRelation, is_negated: bool) -> frozenset[Relation]:
    """List the relations of regions that satisfy a constraint."""
    facts: dict[Relation, str] = {
        Relation.DISJOINT: "FFTFFTTTT",
        Relation.MEETS: "FFTFTTTTT",
        Relation.OVERLAPS: "TTTTTTTTT",
        Relation.COVERED_BY: "TFFTTFTTT",
        Relation.INSIDE: "TFFTFFTTT",
        Relation.COVERS: "TTTFTTFFT",
        Relation.CONTAINS: "TTTFFTFFT",
        Relation.EQUALS: "TFFFTFFFT",
    }
    return frozenset(
        base
        for base, matrix in facts.items()
        if relation.admits(matrix, (AREA, AREA)) != is_negated
    )


def is_decided_by_base(relation: SpatialRelation) -> bool:
    """Whether the base relation of two regions always decides a constraint."""
    return relation.family is not Family.PATTERN
