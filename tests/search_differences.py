"""Search random pairs for those where Shapely and the exact oracle differ.

    python tests/search_differences.py --pairs 20000 --seed 1

draws that many pairs of each two kinds and prints how many of them each function of Shapely gets
wrong; with --cases also, for each new symptom, the smallest pair that shows it. There are four ways
to ask Shapely for a predicate: `within` by its name, `within pattern` by relate_pattern, and both
once more with the first geometry prepared. There are two for the matrix: `relate`, plain and
prepared.

A collection with an empty member never comes here: GEOS may crash on it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, product
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import shapely
from known_differences import KNOWN_DIFFERENCES, Difference
from oracle import matches, relate
from shapely.geometry import LineString, Polygon
from shapely.geometry.base import BaseMultipartGeometry
from strategies import KINDS, LATTICE, Kind, Pair, Position, build_pair, place, seeded_pick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shapely.geometry.base import BaseGeometry

T = TypeVar("T")
Answer: TypeAlias = str | bool
Symptom: TypeAlias = frozenset[str]

ENTRIES = ("II", "IB", "IE", "BI", "BB", "BE", "EI", "EB", "EE")
PATTERNS = {
    "intersects": ("T********", "*T*******", "***T*****", "****T****"),
    "touches": ("FT*******", "F**T*****", "F***T****"),
    "within": ("T*F**F***",),
    "contains": ("T*****FF*",),
    "covers": ("T*****FF*", "*T****FF*", "***T**FF*", "****T*FF*"),
    "covered_by": ("T*F**F***", "*TF**F***", "**FT*F***", "**F*TF***"),
    "equals": ("T*F**FFF*",),
}
PREDICATES = (*PATTERNS, "crosses", "overlaps")
WAYS = ("", " pattern", "prepared ", "prepared  pattern")


def patterns_of(predicate: str, dimension_a: int, dimension_b: int) -> tuple[str, ...]:
    """The DE-9IM patterns of which one must fit, for geometries of these dimensions."""
    if predicate == "crosses":
        if dimension_a == dimension_b:
            return ("0********",) if dimension_a == 1 else ()
        return ("T*T******",) if dimension_a < dimension_b else ("T*****T**",)
    if predicate == "overlaps":
        if dimension_a != dimension_b:
            return ()
        return ("1*T***T**",) if dimension_a == 1 else ("T*T***T**",)
    return PATTERNS[predicate]


# Asking


def wrong_answers(a: BaseGeometry, b: BaseGeometry) -> dict[str, Answer]:
    """What Shapely answers where that is not true, by the name of the function and its way."""
    truth = true_answers(a, b)
    shapely.destroy_prepared(a)
    answers = shapely_answers(a, b)
    shapely.prepare(a)
    answers |= {f"prepared {name}": answer for name, answer in shapely_answers(a, b).items()}
    shapely.destroy_prepared(a)
    return {
        name: answer
        for name, answer in answers.items()
        if answer != truth[name.removeprefix("prepared ").removesuffix(" pattern")]
    }


def true_answers(a: BaseGeometry, b: BaseGeometry) -> dict[str, Answer]:
    """The matrix, and whether each predicate holds, by the oracle."""
    matrix = relate(a, b)
    answers: dict[str, Answer] = {"relate": matrix}
    for predicate in PREDICATES:
        patterns = patterns_of(predicate, shapely.get_dimensions(a), shapely.get_dimensions(b))
        answers[predicate] = any(matches(matrix, pattern) for pattern in patterns)
    return answers


def shapely_answers(a: BaseGeometry, b: BaseGeometry) -> dict[str, Answer]:
    """The same by Shapely, for the geometries as they are, prepared or not."""
    answers = {"relate": ask(lambda: str(shapely.relate(a, b)))}
    for predicate in PREDICATES:
        by_name = getattr(shapely, predicate)
        patterns = patterns_of(predicate, shapely.get_dimensions(a), shapely.get_dimensions(b))
        answers[predicate] = ask(lambda f=by_name: bool(f(a, b)))
        answers[f"{predicate} pattern"] = ask(
            lambda patterns=patterns: any(shapely.relate_pattern(a, b, p) for p in patterns)
        )
    return answers


def ask(question: Callable[[], Answer]) -> Answer:
    """The answer, or that there is none."""
    try:
        return question()
    except shapely.GEOSException:
        return "raises"


def symptom(a: BaseGeometry, b: BaseGeometry) -> Symptom:
    """What is wrong: the functions, and the entries of the matrix with what they turn into."""
    wrong = wrong_answers(a, b)
    truth = relate(a, b)
    answer = str(wrong.get("relate", truth))
    if answer == "raises":
        return frozenset({*wrong, answer})
    changes = zip(ENTRIES, truth, answer, strict=True)
    return frozenset({*wrong, *(f"{e} {old}>{new}" for e, old, new in changes if old != new)})


# Making a pair as small as it can be


def minimise(pair: Pair) -> Pair:
    """A pair of which no part can go, and no vertex move to a lesser position, with this symptom."""
    wanted = symptom(*pair)
    smaller: Pair | None = pair
    while smaller is not None:
        pair = smaller
        smaller = next((p for p in smaller_pairs(pair) if symptom(*p) == wanted), None)
    return pair


def smaller_pairs(pair: Pair) -> Iterator[Pair]:
    """Valid pairs that lack a part, a hole or a vertex, or have vertices at a lesser position."""
    a, b = pair
    candidates: Iterator[Pair] = chain(
        ((smaller, b) for smaller in reductions(a)),
        ((a, smaller) for smaller in reductions(b)),
        moves(a, b),
    )
    return (p for p in candidates if all(g.is_valid and not g.is_empty for g in p))


def moves(a: BaseGeometry, b: BaseGeometry) -> Iterator[Pair]:
    """The pair with all vertices at one position moved to a lesser one, or all moved together."""
    occupied = {(x, y) for x, y in shapely.get_coordinates([a, b]).tolist()}
    for step in ((-1, 0), (0, -1)):
        if min(x + step[0] for x, _ in occupied) >= 0 and min(y + step[1] for _, y in occupied) >= 0:
            yield place(a, step, 1), place(b, step, 1)
    for old, new in product(sorted(occupied, reverse=True), LATTICE):
        if new < old and new not in occupied:
            yield move(a, old, new), move(b, old, new)


def move(geometry: BaseGeometry, old: Position, new: Position) -> BaseGeometry:
    """The geometry with each vertex at one position moved to another."""
    return shapely.transform(geometry, lambda xy: np.where((xy == old).all(1)[:, None], new, xy))


def reductions(geometry: BaseGeometry) -> Iterator[BaseGeometry]:
    """The geometry without one of its members, holes or vertices; some are not valid."""
    if isinstance(geometry, BaseMultipartGeometry):
        members = list(geometry.geoms)
        if len(members) == 1:
            yield members[0]
        yield from map(type(geometry), without_one(members))
        for i, member in enumerate(members):
            for smaller in reductions(member):
                yield type(geometry)([*members[:i], smaller, *members[i + 1 :]])
    elif isinstance(geometry, Polygon):
        shell, *holes = [list(ring.coords)[:-1] for ring in (geometry.exterior, *geometry.interiors)]
        yield from (Polygon(shell, others) for others in without_one(holes))
        yield from (Polygon(smaller, holes) for smaller in without_one(shell) if len(smaller) > 2)
        for i, hole in enumerate(holes):
            for smaller in without_one(hole) if len(hole) > 3 else ():
                yield Polygon(shell, [*holes[:i], smaller, *holes[i + 1 :]])
    elif isinstance(geometry, LineString) and len(geometry.coords) > 2:
        yield from map(LineString, without_one(list(geometry.coords)))


def without_one(things: list[T]) -> Iterator[list[T]]:
    """The list without each of its elements in turn."""
    for i in range(len(things)):
        yield things[:i] + things[i + 1 :]


