"""Pairs on which Shapely 2.2 (GEOS 3.14.1) is wrong, few and small, by cause.

The tests hold that the oracle gives the recorded truth and that Shapely still errs as recorded, so
that a version which mends it is noticed. A random pair counts as known if its *symptom* is recorded
here: the same functions wrong, and the same entries of the matrix turned into the same.

How often it happens: of 20,000 random pairs for each two kinds, so many have a wrong matrix by
`relate`, and, after the stroke, so many a wrong answer by a predicate that is called by its name.
`python tests/search_differences.py --pairs 20000 --seed 1` counts it again in some ten minutes.

    first, second      point      line      area    sliver   collection
    point                  0   553 / 0         0         0      212 / 1
    line             544 / 0   220 / 2    71 / 0   283 / 0    266 / 109
    area                   0  107 / 11   69 / 69    61 / 1    778 / 559
    sliver                 0   265 / 0    42 / 4   347 / 1    460 / 341
    collection       188 / 8  256 / 96 514 / 379 408 / 289    235 / 104

What this says of the functions:

- `intersects` was never wrong, in whatever way it was asked. It may only raise, by the last cause.
- Between points, lines and areas, 82 of 180,000 pairs have a wrong named predicate: 80 where a ring
  touches another ring of its own geometry within an edge, 2 where a line crosses what is shared.
  The former come right if the edge gets a vertex at the touching position.
- `relate` besides loses the boundary of lines outside (BE, EB). No named predicate minds.
- `relate` errs on the same pairs prepared or not. So do named predicates, but for `contains` and
  `covers` by a rectangle, which are right if it is prepared. What is wrong by name is wrong by
  relate_pattern, too; the converse is not so: on slivers and collections a name may be right where
  its pattern is wrong.
- `contains(area, line)` may be wrong where `within(line, area)` is right.
- On collections no named predicate but `intersects` is to be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """A pair on which Shapely is wrong: the true matrix, Shapely's, and what else is wrong.

    `wrong` names predicates that are wrong in all four ways to ask (see search_differences), but
    for those ways that `right` names. `relate` may be "raises".
    """

    a: str
    b: str
    truth: str
    relate: str
    wrong: tuple[str, ...] = ()
    right: tuple[str, ...] = ()


DIFFERENCES_BY_CAUSE: dict[str, tuple[Difference, ...]] = {
    "the first line end outside the other geometry is interior by the mod-2 rule": (
        Difference(
            "POINT(0 2)",
            "MULTILINESTRING((0 1,0 2),(0 1,0 0))",
            "F0FFFF102",
            "F0FFFF1F2",
        ),
        Difference(
            "MULTILINESTRING((0 1,0 2),(0 1,0 0))",
            "POINT(0 2)",
            "FF10F0FF2",
            "FF10FFFF2",
        ),
        Difference(
            "LINESTRING(3 0,3 1)",
            "MULTILINESTRING((0 0,1 1,0 0),(2 0,2 1))",
            "FF1FF0102",
            "FF1FF01F2",
        ),
        Difference(
            "MULTILINESTRING((1 1,1 0,1 1),(1 2,1 3))",
            "MULTILINESTRING((0 0,0 3,0 0),(0 1,0 2))",
            "FF1FF0102",
            "FF1FFF1F2",
        ),
    ),
    "a ring touches another ring of its geometry within an edge": (
        Difference(
            "POLYGON((0 0,4 0,4 4,0 4,0 0))",
            "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 3,2 3,1 4,1 3))",
            "212F1FFF2",
            "21211F2F2",
            ("contains", "covers", "overlaps"),
            right=("prepared contains", "prepared covers"),
        ),
        Difference(
            "POLYGON((2 3,0 4,0 0,2 3))",
            "POLYGON((2 3,0 4,0 0,2 3),(1 3,1 2,0 1,1 3))",
            "212F1FFF2",
            "21211F2F2",
            ("contains", "covers", "overlaps"),
        ),
        Difference(
            "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 3,2 3,1 4,1 3))",
            "POLYGON((0 0,4 0,4 4,0 4,0 0))",
            "2FF11F2F2",
            "21211F2F2",
            ("within", "covered_by", "overlaps"),
        ),
        Difference(
            "POLYGON((0 3,2 3,0 4,0 3))",
            "MULTIPOLYGON(((0 0,0 1,1 3,0 0)),((0 3,2 3,0 4,0 3)))",
            "2FFF1F212",
            "2F2F11212",
            ("within", "covered_by", "overlaps"),
        ),
        Difference(
            "MULTIPOLYGON(((1 1,2 0,2 1,1 1)),((0 0,1 0,1 2,0 0)))",
            "POLYGON((0 0,1 0,1 2,0 0))",
            "2F2F11FF2",
            "2F2F11212",
            ("contains", "covers", "overlaps"),
        ),
        Difference(
            "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 3,2 3,1 4,1 3))",
            "LINESTRING(4 4,0 4)",
            "FF2101FF2",
            "1F2101FF2",
            ("touches", "contains"),
        ),
        Difference(
            "MULTIPOLYGON(((3 0,4 0,3 2,3 0)),((0 0,3 1,0 1,0 0)))",
            "LINESTRING(3 2,3 0)",
            "FF2101FF2",
            "FF21011F2",
            ("covers",),
        ),
        Difference(
            "POLYGON((4 0,4 3,0 0,4 0),(2 1,4 1,3 2,2 1))",
            "POLYGON((4 0,4 2,5 1,4 0))",
            "FF2F11212",
            "212F11212",
            ("touches", "overlaps"),
        ),
        Difference(
            "POLYGON((3 4,0 4,2 5,3 4))",
            "POLYGON((4 0,3 4,0 4,4 0),(2 3,3 2,2 4,2 3))",
            "FF2F11212",
            "2F2111212",
            ("touches", "overlaps"),
        ),
    ),
    "a line crosses what another line of its geometry shares with the other geometry": (
        Difference(
            "LINESTRING(1 0,2 1)",
            "MULTILINESTRING((1 0,3 2),(3 0,1 1))",
            "1FF00F102",
            "1F100F102",
            ("within", "covered_by", "overlaps"),
        ),
        Difference(
            "MULTILINESTRING((0 2,2 0),(0 1,1 3))",
            "LINESTRING(0 2,1 1)",
            "101F00FF2",
            "101F001F2",
            ("contains", "covers", "overlaps"),
        ),
        Difference(
            "POLYGON((0 2,1 0,0 1,0 2))",
            "MULTILINESTRING((0 1,0 2,1 0,0 1),(1 1,0 0))",
            "1F21FF102",
            "1F21F1102",
        ),
    ),
    "a crossing is rounded onto a vertex": (
        Difference(
            "POLYGON((0 2,0 0,3 2,0 2))",
            "POLYGON((2 2,3 0,2.9 0.2000000000000017,2 2))",
            "212101212",
            "2121012F2",
        ),
        Difference(
            "POLYGON((2 3,3 1,2.9 1.2000000000000026,2 3))",
            "POLYGON((0 1,1 1,3 4,0 1))",
            "212101212",
            "21210F212",
        ),
        Difference(
            "POLYGON((0 1,0 2,3 1,0 1))",
            "POLYGON((2 0,3 4,2.4 1.600000000000001,2 0))",
            "212101212",
            "2F2101212",
        ),
        Difference(
            "POLYGON((3 0,2 4,2.6 1.600000000000001,3 0))",
            "POLYGON((0 3,3 3,0 1,0 3))",
            "212101212",
            "212F01212",
        ),
        Difference(
            "POLYGON((3 3,2 4,2.6 3.400000000000001,3 3))",
            "POLYGON((4 4,0 0,0.7999999999999998 0.8000000000000007,4 4))",
            "212101212",
            "2FF10F212",
            ("within", "covered_by", "overlaps"),
        ),
        Difference(
            "POLYGON((2.2 0.4000000000000008,3.2 0.4000000000000008,0 4,2.2 0.4000000000000008))",
            "POLYGON((2 0,3 2,2.2 0.4000000000000008,2 0))",
            "212101212",
            "2FF10F212",
            ("within", "covered_by", "overlaps"),
            right=("within", "prepared within", "covered_by", "prepared covered_by"),
        ),
        Difference(
            "LINESTRING(0 0,3.8 1.600000000000001)",
            "POLYGON((4 1,3 4,3.8 1.600000000000001,4 1))",
            "101F00212",
            "1F1F00212",
        ),
    ),
    "a collection holds points or lines beside a polygon": (
        Difference(
            "GEOMETRYCOLLECTION(POLYGON((0 0,1 0,0 1,0 0)),POINT(0 2))",
            "POLYGON((0 0,1 0,0 1,0 0))",
            "2F0F1FFF2",
            "2F0F1F212",
            ("contains", "covers", "overlaps"),
        ),
        Difference(
            "POLYGON((0 0,1 0,0 1,0 0))",
            "GEOMETRYCOLLECTION(POLYGON((0 0,1 0,0 1,0 0)),POINT(0 2))",
            "2FFF1F0F2",
            "2F2F110F2",
            ("within", "covered_by", "overlaps"),
        ),
        Difference(
            "GEOMETRYCOLLECTION(LINESTRING(1 2,0 3),POLYGON((0 0,1 0,0 4,0 0)))",
            "POLYGON((0 0,1 0,0 4,0 0))",
            "2F1F10FF2",
            "201F10FF2",
        ),
        Difference(
            "POLYGON((0 1,1 0,0 2,0 1))",
            "GEOMETRYCOLLECTION(LINESTRING(1 1,0 0),POLYGON((0 1,1 0,0 2,0 1)))",
            "2FFF1F102",
            "2FF01F102",
        ),
        Difference(
            "LINESTRING(0 3,1 0)",
            "GEOMETRYCOLLECTION(LINESTRING(0 2,1 2),POLYGON((0 3,1 0,0 0,0 3)))",
            "F1FF0F212",
            "01FF0F212",
            ("touches", "within"),
        ),
        Difference(
            "GEOMETRYCOLLECTION(POLYGON((1 0,0 2,0 0,1 0)),LINESTRING(0 1,1 2))",
            "LINESTRING(1 0,0 2)",
            "FF2101FF2",
            "0F2101FF2",
            ("touches", "contains"),
        ),
        Difference(
            "GEOMETRYCOLLECTION(LINESTRING(0 2,1 2),POLYGON((1 0,0 3,0 1,1 0)),POINT(0 0))",
            "POLYGON((1 0,0 3,0 1,1 0))",
            "2F1F10FF2",
            "201F10212",
            ("contains", "covers", "overlaps"),
        ),
        Difference(
            "POLYGON((0 1,1 0,0 2,0 1))",
            "GEOMETRYCOLLECTION(LINESTRING(0 0,1 1),POLYGON((0 1,1 0,0 2,0 1)),POINT(0 3))",
            "2FFF1F102",
            "2F2011102",
            ("within", "covered_by", "overlaps"),
        ),
    ),
    "a collection holds points beside a line": (
        Difference(
            "LINESTRING(0 0,1 0)",
            "GEOMETRYCOLLECTION(LINESTRING(0 1,0 2),MULTIPOINT((1 0),(0 0)))",
            "FF10FF102",
            "FFF0FF102",
            ("covered_by",),
        ),
        Difference(
            "GEOMETRYCOLLECTION(MULTIPOINT((0 1),(0 0)),LINESTRING(0 2,0 3))",
            "LINESTRING(0 1,0 0)",
            "F01FF01F2",
            "F01FF0FF2",
            ("covers",),
        ),
        Difference(
            "GEOMETRYCOLLECTION(POINT(1 0),LINESTRING(2 1,0 0))",
            "LINESTRING(1 0,2 0,1 0)",
            "0F1FF01F2",
            "0F1FF0FF2",
            ("contains", "covers"),
        ),
        Difference(
            "LINESTRING(1 1,0 0,1 1)",
            "GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(1 0,2 0))",
            "0F1FFF102",
            "0FFFFF102",
            ("within", "covered_by"),
            right=("within", "prepared within", "covered_by", "prepared covered_by"),
        ),
    ),
    "polygons of a collection overlap or touch": (
        Difference(
            "POLYGON((0 0,0 2,1 0,0 0))",
            "GEOMETRYCOLLECTION(POLYGON((0 2,0 1,1 1,0 2)),POLYGON((0 0,0 2,1 0,0 0)))",
            "2FF11F212",
            "212111212",
            ("within", "covered_by", "overlaps"),
        ),
        Difference(
            "POLYGON((1 0,1 1,0 3,0 0,1 0))",
            "GEOMETRYCOLLECTION(POLYGON((0 2,0 1,1 1,0 2)),POLYGON((1 0,1 1,0 3,0 0,1 0)))",
            "2FFF1FFF2",
            "212F11FF2",
            ("within", "covered_by", "equals"),
        ),
        Difference(
            "GEOMETRYCOLLECTION(POLYGON((2 0,0 3,0 0,2 0)),"
            "POLYGON((2 0,1 3,0 3,0 0,2 0),(1 1,0 1,1 2,1 1)))",
            "POLYGON((2 0,1 3,0 3,0 0,2 0))",
            "2FF11F2F2",
            "2FFF1FFF2",
            ("contains", "covers", "equals"),
        ),
        Difference(
            "POINT(1 1)",
            "GEOMETRYCOLLECTION(POLYGON((2 1,0 4,0 0,2 1),(1 1,0 3,1 2,1 1)),"
            "POLYGON((0 2,0 1,2 1,0 2)))",
            "0FFFFF212",
            "F0FFFF212",
            ("touches", "within"),
        ),
    ),
    "a polygon with a repeated vertex touches another polygon of its collection": (
        Difference(
            "GEOMETRYCOLLECTION(POLYGON((0 1,0 1,1 0,0 0,0 1)),POLYGON((0 1,0 2,1 1,0 1)))",
            "POINT(0 1)",
            "FF20F1FF2",
            "raises",
            (
                "intersects",
                "touches",
                "within",
                "contains",
                "covers",
                "covered_by",
                "equals",
                "crosses",
            ),
            right=(
                "within",
                "prepared within",
                "covered_by",
                "prepared covered_by",
                "equals",
                "prepared equals",
            ),
        ),
    ),
}

# The process dies of this one (an invalid memory access), whichever function is asked.
CRASH = (
    "GEOMETRYCOLLECTION(POLYGON((0 0,2 0,2 2,0 0)),POLYGON((0 0,2 0,2 2,0 0)),POLYGON EMPTY)",
    "POINT(1 1)",
    "FF20F1FF2",
)
