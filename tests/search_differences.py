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
from shapely.geometry import LineString, Polygon
from shapely.geometry.base import BaseMultipartGeometry

from known_differences import DIFFERENCES_BY_CAUSE, Difference
from oracle import matches, relate
from strategies import KINDS, LATTICE, Kind, Pair, Position, build_pair, place, seeded_pick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
NAMES = frozenset({*PREDICATES, *(f"prepared {predicate}" for predicate in PREDICATES)})
WAYS = ("{}", "{} pattern", "prepared {}", "prepared {} pattern")


def patterns_of(predicate: str, a: BaseGeometry, b: BaseGeometry) -> tuple[str, ...]:
    """The DE-9IM patterns of which one must fit, for geometries of these dimensions."""
    dimension_a, dimension_b = shapely.get_dimensions(a), shapely.get_dimensions(b)
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
    holds = {
        predicate: any(matches(matrix, pattern) for pattern in patterns_of(predicate, a, b))
        for predicate in PREDICATES
    }
    return {"relate": matrix, **holds}


def shapely_answers(a: BaseGeometry, b: BaseGeometry) -> dict[str, Answer]:
    """The same by Shapely, for the geometries as they are, prepared or not."""
    answers = {"relate": ask(shapely.relate, a, b)}
    for predicate in PREDICATES:
        answers[predicate] = ask(getattr(shapely, predicate), a, b)
        answers[f"{predicate} pattern"] = ask(relate_patterns, a, b, patterns_of(predicate, a, b))
    return answers


def relate_patterns(a: BaseGeometry, b: BaseGeometry, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns fits, by Shapely."""
    return any(shapely.relate_pattern(a, b, pattern) for pattern in patterns)


def ask(function: Callable[..., object], *arguments: object) -> Answer:
    """What a function of Shapely returns, or that it raises."""
    try:
        answer = function(*arguments)
    except shapely.GEOSException:
        return "raises"
    return answer if isinstance(answer, str) else bool(answer)


# Naming what is wrong


def symptom(a: BaseGeometry, b: BaseGeometry) -> Symptom:
    """The functions that are wrong, and the entries of the matrix with what they turn into."""
    wrong = wrong_answers(a, b)
    if not wrong:
        return frozenset()
    truth = relate(a, b)
    return name_symptom(truth, str(wrong.get("relate", truth)), wrong)


def name_symptom(truth: str, answer: str, wrong: Iterable[str]) -> Symptom:
    """The names of wrong functions, and "BE 0>F" where the matrix has F for 0; or "raises"."""
    if answer == "raises":
        return frozenset({*wrong, answer})
    changes = zip(ENTRIES, truth, answer, strict=True)
    return frozenset({*wrong, *(f"{e} {old}>{new}" for e, old, new in changes if old != new)})


def symptom_of(difference: Difference) -> Symptom:
    """The symptom that is recorded for a known difference."""
    ways = {way.format(predicate) for predicate in difference.wrong for way in WAYS}
    wrong = {"relate", "prepared relate", *ways} - set(difference.right)
    return name_symptom(difference.truth, difference.relate, wrong)


def known_symptoms() -> set[Symptom]:
    """The symptoms of all known differences."""
    return {symptom_of(known) for cases in DIFFERENCES_BY_CAUSE.values() for known in cases}


def describe(a: BaseGeometry, b: BaseGeometry) -> Difference:
    """A record of what is wrong with a pair."""
    wrong = wrong_answers(a, b)
    predicates = [p for p in PREDICATES if any(way.format(p) in wrong for way in WAYS)]
    ways = ["relate", "prepared relate", *(way.format(p) for p in predicates for way in WAYS)]
    right = tuple(way for way in ways if way not in wrong)
    answer = str(wrong.get("relate", relate(a, b)))
    return Difference(a.wkt, b.wkt, relate(a, b), answer, tuple(predicates), right)


# Making a pair as small as it can be


def minimise(pair: Pair) -> Pair:
    """A pair with the same symptom of which no part can go and no vertex move any lower."""
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
    if min(x for x, _ in occupied) >= 1:
        yield place(a, (-1, 0), 1), place(b, (-1, 0), 1)
    if min(y for _, y in occupied) >= 1:
        yield place(a, (0, -1), 1), place(b, (0, -1), 1)
    for old, new in product(sorted(occupied, reverse=True), LATTICE):
        if new < old and new not in occupied:
            yield move(a, old, new), move(b, old, new)


def move(geometry: BaseGeometry, old: Position, new: Position) -> BaseGeometry:
    """The geometry with each vertex at one position moved to another."""
    return shapely.transform(geometry, lambda xy: np.where((xy == old).all(1)[:, None], new, xy))


def reductions(geometry: BaseGeometry) -> Iterator[BaseGeometry]:
    """The geometry without one of its members, holes or vertices; some are not valid."""
    if isinstance(geometry, BaseMultipartGeometry):
        yield from reductions_of_members(type(geometry), list(geometry.geoms))
    elif isinstance(geometry, Polygon):
        shell, *holes = ([*ring.coords][:-1] for ring in (geometry.exterior, *geometry.interiors))
        yield from (Polygon(shell, others) for others in without_one(holes))
        yield from (Polygon(corners, holes) for corners in without_one(shell) if len(corners) > 2)
        for i, hole in enumerate(holes):
            for corners in without_one(hole) if len(hole) > 3 else ():
                yield Polygon(shell, [*holes[:i], corners, *holes[i + 1 :]])
    elif isinstance(geometry, LineString) and len(geometry.coords) > 2:
        yield from map(LineString, without_one([*geometry.coords]))


def reductions_of_members(
    join: Callable[[list[BaseGeometry]], BaseGeometry], members: list[BaseGeometry]
) -> Iterator[BaseGeometry]:
    """The only member by itself, all but one of them, or all with one of them reduced."""
    if len(members) == 1:
        yield members[0]
    yield from map(join, without_one(members))
    for i, member in enumerate(members):
        for smaller in reductions(member):
            yield join([*members[:i], smaller, *members[i + 1 :]])


def without_one(things: list[T]) -> Iterator[list[T]]:
    """The list without each of its elements in turn."""
    for i in range(len(things)):
        yield things[:i] + things[i + 1 :]


# Searching


@dataclass(slots=True)
class Tally:
    """How many pairs of two kinds were asked, and which pairs show which symptom."""

    pairs_asked: int
    pairs_by_symptom: dict[Symptom, list[Pair]] = field(default_factory=dict)


def search(kinds: tuple[Kind, Kind], pair_count: int, seed: int) -> Tally:
    """Ask about so many random pairs of these kinds."""
    pick = seeded_pick(seed)
    tally = Tally(pair_count)
    for _ in range(pair_count):
        pair = build_pair(pick, kinds)
        found = symptom(*pair)
        if found:
            tally.pairs_by_symptom.setdefault(found, []).append(pair)
    return tally


def report(kinds: tuple[Kind, Kind], tally: Tally) -> str:
    """How many pairs differ, how many of them by a named predicate, and by which functions."""
    differing = named = 0
    counts = Counter[str]()
    for found, pairs in tally.pairs_by_symptom.items():
        differing += len(pairs)
        named += len(pairs) if found & NAMES else 0
        counts.update({name: len(pairs) for name in found if ">" not in name})
    by_function = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    return (
        f"{'/'.join(kinds)}: {differing} of {tally.pairs_asked} differ, "
        f"{named} by a named predicate. {by_function}"
    )


def length(pair: Pair) -> int:
    """How much there is to read."""
    return sum(len(geometry.wkt) for geometry in pair)


def main() -> None:
    """Search all kinds, or those asked for, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=1000, help="pairs of each two kinds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--cases", action="store_true", help="show one small pair per new symptom")
    arguments = parser.parse_args()
    seen = known_symptoms()
    for kinds in product(dict.fromkeys(arguments.kinds), repeat=2):
        tally = search(kinds, arguments.pairs, arguments.seed)
        print(report(kinds, tally))
        for found in set(tally.pairs_by_symptom) - seen if arguments.cases else ():
            print("   ", describe(*minimise(min(tally.pairs_by_symptom[found], key=length))))
        seen |= set(tally.pairs_by_symptom)


if __name__ == "__main__":
    main()
