"""A zoo of named geometries, and of named pairs with the matrix derived by hand.

Geometries are WKT by name; a pair names two of them. Most live around `square`, which spans 0 to 4,
and `disk`, which is also square and spans 0 to 8. Every matrix was found with pencil and paper from
the definitions in oracle.py, not by a program; the transposed pairs follow by themselves.
`BASE_RELATIONS` adds Egenhofer's name for pairs of regions.
"""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """The names of two geometries, and their DE-9IM matrix."""

    a: str
    b: str
    matrix: str


POINTS = {
    "origin": "POINT(0 0)",
    "centre": "POINT(2 2)",
    "centre with a height": "POINT Z(2 2 7)",
    "middle of the lower edge": "POINT(2 0)",
    "middle of the right edge": "POINT(4 2)",
    "outpost": "POINT(9 9)",
    "origin twice": "MULTIPOINT((0 0),(0 0))",
    "origin and outpost": "MULTIPOINT((0 0),(9 9))",
    "centre and outpost": "MULTIPOINT((2 2),(9 9))",
    "origin and centre": "MULTIPOINT((0 0),(2 2))",
    "no point": "POINT EMPTY",
}

LINES = {
    "diagonal": "LINESTRING(0 0,4 4)",
    "diagonal backwards": "LINESTRING(4 4,0 0)",
    "stuttering diagonal": "LINESTRING(0 0,0 0,2 2,2 2,4 4,4 4)",
    "diagonal in two parts": "MULTILINESTRING((0 0,2 2),(2 2,4 4))",
    "lower half of the diagonal": "LINESTRING(0 0,2 2)",
    "inner diagonal": "LINESTRING(1 1,3 3)",
    "shifted diagonal": "LINESTRING(2 2,6 6)",
    "diagonal prolonged": "LINESTRING(4 4,9 9)",
    "other diagonal": "LINESTRING(0 4,4 0)",
    "mast on the diagonal": "LINESTRING(2 2,2 9)",
    "three lines from the centre": "MULTILINESTRING((0 0,2 2),(2 2,4 4),(2 2,2 9))",
    "line of length zero": "LINESTRING(2 2,2 2)",
    "closed line": "LINESTRING(0 0,4 0,4 4,0 4,0 0)",
    "linear ring": "LINEARRING(4 4,0 4,0 0,4 0,4 4)",
    "figure of eight": "LINESTRING(0 0,4 4,4 0,0 4,0 0)",
    "line through the square": "LINESTRING(-1 2,5 2)",
    "line on the lower edge": "LINESTRING(1 0,3 0)",
    "line that leaves along the lower edge": "LINESTRING(2 0,9 0)",
    "line that touches a corner": "LINESTRING(-1 1,1 -1)",
    "seam": "LINESTRING(2 1,2 3)",
    "line on a swallowed edge": "LINESTRING(4 3,4 5)",
    "horizontal stroke": "LINESTRING(-2 0,2 0)",
    "tee": "MULTILINESTRING((-2 0,2 0),(0 0,0 5))",
    "short rise": "LINESTRING(-1 -1,1 1)",
    "gentle rise": "LINESTRING(0 0,4 2)",
    "gentle cross": "MULTILINESTRING((0 0,4 2),(0 2,4 0))",
    "first half of a rise": "LINESTRING(1 0,2 1)",
    "rise and a line that crosses it": "MULTILINESTRING((1 0,3 2),(3 0,1 1))",
    "line from hole to hole": "LINESTRING(2 4,6 4)",
}

AREAS = {
    "square": "POLYGON((0 0,4 0,4 4,0 4,0 0))",
    "square told otherwise": "POLYGON((4 4,4 0,2 0,2 0,0 0,0 4,4 4))",
    "small square": "POLYGON((1 1,3 1,3 3,1 3,1 1))",
    "square at the left edge": "POLYGON((0 1,2 1,2 3,0 3,0 1))",
    "triangle that touches the left edge": "POLYGON((0 2,2 1,2 3,0 2))",
    "square on the right": "POLYGON((4 0,8 0,8 4,4 4,4 0))",
    "square at the corner": "POLYGON((4 4,8 4,8 8,4 8,4 4))",
    "square shifted right": "POLYGON((2 0,6 0,6 4,2 4,2 0))",
    "distant square": "POLYGON((20 20,24 20,24 24,20 24,20 20))",
    "disk": "POLYGON((0 0,8 0,8 8,0 8,0 0))",
    "annulus": "POLYGON((0 0,8 0,8 8,0 8,0 0),(2 2,6 2,6 6,2 6,2 2))",
    "plug": "POLYGON((2 2,6 2,6 6,2 6,2 2))",
    "lid": "POLYGON((1 1,7 1,7 7,1 7,1 1))",
    "notched": "POLYGON((0 0,8 0,8 8,5 8,5 2,3 2,3 8,0 8,0 0))",
    "square that leans on the notch": "POLYGON((5 4,7 4,7 6,5 6,5 4))",
    "disk whose hole touches the shell": "POLYGON((0 0,8 0,8 8,0 8,0 0),(0 4,4 2,4 6,0 4))",
    "disk whose holes touch": "POLYGON((0 0,8 0,8 8,0 8,0 0),(1 2,4 4,1 6,1 2),(7 2,7 6,4 4,7 2))",
    "two corners": "MULTIPOLYGON(((0 0,1 0,1 1,0 1,0 0)),((3 3,4 3,4 4,3 4,3 3)))",
    "the other two corners": "MULTIPOLYGON(((3 0,4 0,4 1,3 1,3 0)),((0 3,1 3,1 4,0 4,0 3)))",
    "two parts that touch": "MULTIPOLYGON(((0 0,2 0,2 2,0 2,0 0)),((2 2,4 2,4 4,2 4,2 2)))",
    "block and wedge": "MULTIPOLYGON(((0 -5,5 -5,5 5,0 5,0 -5)),((0 0,-5 5,-5 -5,0 0)))",
    "block with a wedge cut out": "POLYGON((0 -5,9 -5,9 5,0 5,0 -5),(0 0,5 3,5 -3,0 0))",
    "two parts that touch twice": "MULTIPOLYGON(((0 2,-6 6,-6 -6,0 -2,-2 0,0 2)),"
    "((0 2,2 0,0 -2,6 -6,6 6,0 2)))",
    "diamond through both touches": "POLYGON((0 2,-4 0,0 -2,4 0,0 2))",
    "no area": "POLYGON EMPTY",
}

COLLECTIONS = {
    "two halves": "GEOMETRYCOLLECTION(POLYGON((0 0,2 0,2 4,0 4,0 0)),"
    "POLYGON((2 0,4 0,4 4,2 4,2 0)))",
    "three quarters": "GEOMETRYCOLLECTION(POLYGON((0 0,2 0,2 2,0 2,0 0)),"
    "POLYGON((2 0,4 0,4 2,2 2,2 0)),POLYGON((0 2,2 2,2 4,0 4,0 2)))",
    "four quarters": "GEOMETRYCOLLECTION(POLYGON((0 0,2 0,2 2,0 2,0 0)),"
    "POLYGON((2 0,4 0,4 2,2 2,2 0)),POLYGON((0 2,2 2,2 4,0 4,0 2)),POLYGON((2 2,4 2,4 4,2 4,2 2)))",
    "annulus and plug": f"GEOMETRYCOLLECTION({AREAS['annulus']},{AREAS['plug']})",
    "square and plug": f"GEOMETRYCOLLECTION({AREAS['square']},{AREAS['plug']})",
    "square and what it covers": "GEOMETRYCOLLECTION(POINT(0 0),LINESTRING(1 1,4 4),"
    f"{AREAS['square']})",
    "square and a stick": f"GEOMETRYCOLLECTION({AREAS['square']},LINESTRING(2 2,8 2))",
    "diagonal in a collection": "GEOMETRYCOLLECTION(LINESTRING(0 0,2 2),LINESTRING(2 2,4 4))",
    "three lines in a collection": "GEOMETRYCOLLECTION(LINESTRING(0 0,2 2),"
    "MULTILINESTRING((2 2,4 4),(2 2,2 9)))",
    "diagonal twice": "GEOMETRYCOLLECTION(LINESTRING(0 0,4 4),LINESTRING(0 0,4 4))",
    "diagonal and its start": "GEOMETRYCOLLECTION(POINT(0 0),LINESTRING(0 0,4 4))",
    "square among empty members": "GEOMETRYCOLLECTION(POINT EMPTY,LINESTRING EMPTY,POLYGON EMPTY,"
    f"GEOMETRYCOLLECTION EMPTY,{AREAS['square']},MULTIPOLYGON EMPTY)",
    "nested centre": "GEOMETRYCOLLECTION(GEOMETRYCOLLECTION(POLYGON EMPTY,POINT(2 2)),"
    "MULTIPOINT EMPTY)",
    "nothing": "GEOMETRYCOLLECTION EMPTY",
}

EXTREMES = {
    "sliver": "POLYGON((0 0,1 1,0.5 0.5000000000000001,0 0))",
    "base of the sliver": "LINESTRING(0 0,1 1)",
    "side of the sliver": "LINESTRING(0 0,0.5 0.5000000000000001)",
    "point on the base of the sliver": "POINT(0.3 0.3)",
    "point one unit above the base": "POINT(0.3 0.30000000000000004)",
    "point two units above the base": "POINT(0.3 0.3000000000000001)",
    "huge square": "POLYGON((1000000000000000 1000000000000000,1000000000000004 1000000000000000,"
    "1000000000000004 1000000000000004,1000000000000000 1000000000000004,"
    "1000000000000000 1000000000000000))",
    "point on the huge square": "POINT(1000000000000004 1000000000000002)",
    "point a unit inside the huge square": "POINT(1000000000000003.875 1000000000000002)",
    "point a unit outside the huge square": "POINT(1000000000000004.125 1000000000000002)",
    "huge diagonal": "LINESTRING(-1e15 -1e15,1e15 1e15)",
    "other huge diagonal": "LINESTRING(-1e15 1e15,1e15 -1e15)",
    "giant square": "POLYGON((0 0,1e15 0,1e15 1e15,0 1e15,0 0))",
    "tiny square": "POLYGON((0 0,1e-12 0,1e-12 1e-12,0 1e-12,0 0))",
    "tiny diagonal": "LINESTRING(0 0,1e-12 1e-12)",
    "smallest point": "POINT(5e-324 5e-324)",
}

GEOMETRIES = POINTS | LINES | AREAS | COLLECTIONS | EXTREMES

POINT_PAIRS = {
    "a point equals itself": Pair("origin", "origin", "0FFFFFFF2"),
    "a point equals itself twice": Pair("origin twice", "origin", "0FFFFFFF2"),
    "points that overlap": Pair("origin and outpost", "origin and centre", "0F0FFF0F2"),
    "a line of length zero is a point": Pair("line of length zero", "centre", "0FFFFFFF2"),
    "a point at the start of a line": Pair("origin", "diagonal", "F0FFFF102"),
    "a point within a line": Pair("centre", "diagonal", "0FFFFF102"),
    "a point off a line": Pair("outpost", "diagonal", "FF0FFF102"),
    "a closed line has no end": Pair("origin", "closed line", "0FFFFF1F2"),
    "a line that crosses itself": Pair("centre", "figure of eight", "0FFFFF1F2"),
    "two line ends meet": Pair("centre", "diagonal in two parts", "0FFFFF102"),
    "three line ends meet": Pair("centre", "three lines from the centre", "F0FFFF102"),
    "a point in an area": Pair("centre", "square", "0FFFFF212"),
    "z is ignored": Pair("centre with a height", "centre", "0FFFFFFF2"),
    "a line of length zero in an area": Pair("line of length zero", "square", "0FFFFF212"),
    "a point on the edge": Pair("middle of the lower edge", "square", "F0FFFF212"),
    "a point off an area": Pair("outpost", "square", "FF0FFF212"),
    "one point on the edge, one off": Pair("origin and outpost", "square", "F00FFF212"),
    "one point in, one off": Pair("centre and outpost", "square", "0F0FFF212"),
    "one point on the edge, one in": Pair("origin and centre", "square", "00FFFF212"),
    "a point where two parts touch": Pair("centre", "two parts that touch", "F0FFFF212"),
    "no point and a line": Pair("no point", "diagonal", "FFFFFF102"),
}

LINE_PAIRS = {
    "lines that cross": Pair("diagonal", "other diagonal", "0F1FF0102"),
    "an end within a line": Pair("mast on the diagonal", "diagonal", "FF10F0102"),
    "end to end": Pair("diagonal prolonged", "diagonal", "FF1F00102"),
    "collinear overlap": Pair("shifted diagonal", "diagonal", "1010F0102"),
    "collinear within": Pair("inner diagonal", "diagonal", "1FF0FF102"),
    "collinear within, one end shared": Pair("lower half of the diagonal", "diagonal", "1FF00F102"),
    "direction is nothing": Pair("diagonal backwards", "diagonal", "1FFF0FFF2"),
    "repeated vertices are nothing": Pair("stuttering diagonal", "diagonal", "1FFF0FFF2"),
    "an even number of ends is interior": Pair("diagonal in two parts", "diagonal", "1FFF0FFF2"),
    "an odd number of ends is boundary": Pair(
        "three lines from the centre", "diagonal", "1F1000FF2"
    ),
    "a ring is a closed line": Pair("linear ring", "closed line", "1FFFFFFF2"),
    "an odd line end on the crossing": Pair("tee", "short rise", "FF10F0102"),
    "crossed and covered at once": Pair("gentle rise", "gentle cross", "1FFF0F102"),
    "crossed and covered in part": Pair(
        "first half of a rise", "rise and a line that crosses it", "1FF00F102"
    ),
    "a line on the border": Pair("closed line", "square", "F1FFFF2F2"),
    "a line that crosses itself in an area": Pair("figure of eight", "square", "11FFFF212"),
    "a line from corner to corner": Pair("diagonal", "square", "1FFF0F212"),
    "a line through an area": Pair("line through the square", "square", "101FF0212"),
    "a line on an edge": Pair("line on the lower edge", "square", "F1FF0F212"),
    "a line that leaves along an edge": Pair(
        "line that leaves along the lower edge", "square", "F11F00212"
    ),
    "a line at a corner": Pair("line that touches a corner", "square", "F01FF0212"),
    "a line through the point where two parts touch": Pair(
        "horizontal stroke", "block and wedge", "10F0FF212"
    ),
    "a line into a hole that touches the shell": Pair(
        "horizontal stroke", "block with a wedge cut out", "F01FF0212"
    ),
    "a line from hole to hole": Pair(
        "line from hole to hole", "disk whose holes touch", "F01FF0212"
    ),
}

AREA_PAIRS = {
    "areas apart": Pair("square", "distant square", "FF2FF1212"),
    "areas with one edge": Pair("square", "square on the right", "FF2F11212"),
    "areas with one corner": Pair("square", "square at the corner", "FF2F01212"),
    "areas that overlap": Pair("square", "plug", "212101212"),
    "areas that overlap along edges": Pair("square", "square shifted right", "212111212"),
    "the start and direction of a ring are nothing": Pair(
        "square told otherwise", "square", "2FFF1FFF2"
    ),
    "an area inside": Pair("small square", "square", "2FF1FF212"),
    "an area inside, along an edge": Pair("square at the left edge", "square", "2FF11F212"),
    "an area inside, at one point of an edge": Pair(
        "triangle that touches the left edge", "square", "2FF10F212"
    ),
    "an annulus and its plug": Pair("annulus", "plug", "FF2F112F2"),
    "a disk and the annulus in it": Pair("disk", "annulus", "212F1FFF2"),
    "a lid on the hole of an annulus": Pair("lid", "annulus", "2121FF212"),
    "a square in the arms of a notch": Pair(
        "square that leans on the notch", "notched", "2FF11F212"
    ),
    "opposite corners of one box": Pair("two corners", "the other two corners", "FF2FF1212"),
    "parts that touch in a square": Pair("two parts that touch", "square", "2FF11F212"),
    "a hole that touches the shell": Pair("disk whose hole touches the shell", "disk", "2FF11F2F2"),
    "an area boundary through two parts that touch twice": Pair(
        "diamond through both touches", "two parts that touch twice", "21210F212"
    ),
    "no area and an area": Pair("no area", "square", "FFFFFF212"),
}

COLLECTION_PAIRS = {
    "two halves make a square": Pair("two halves", "square", "2FFF1FFF2"),
    "four quarters make a square": Pair("four quarters", "square", "2FFF1FFF2"),
    "annulus and plug make a disk": Pair("annulus and plug", "disk", "2FFF1FFF2"),
    "a shared border is interior": Pair("seam", "two halves", "1FF0FF212"),
    "a point on a shared border": Pair("centre", "two halves", "0FFFFF212"),
    "the end of a shared border": Pair("middle of the lower edge", "two halves", "F0FFFF212"),
    "a corner with area all around": Pair("centre", "four quarters", "0FFFFF212"),
    "a corner with area on three sides": Pair("centre", "three quarters", "F0FFFF212"),
    "an edge within another member": Pair(
        "line on a swallowed edge", "square and plug", "1FF0FF212"
    ),
    "what an area covers is subsumed": Pair("square and what it covers", "square", "2FFF1FFF2"),
    "a line that leaves an area": Pair("square and a stick", "square", "2F1F10FF2"),
    "the area's boundary goes before the line's interior": Pair(
        "middle of the right edge", "square and a stick", "F0FFFF212"
    ),
    "the mod-2 rule across members": Pair("diagonal in a collection", "diagonal", "1FFF0FFF2"),
    "three ends across members": Pair("centre", "three lines in a collection", "F0FFFF102"),
    "a line twice has no boundary": Pair("origin", "diagonal twice", "0FFFFF1F2"),
    "a point on a line end is subsumed": Pair("diagonal and its start", "diagonal", "1FFF0FFF2"),
    "empty members are dropped": Pair("square among empty members", "square", "2FFF1FFF2"),
    "collections nest": Pair("nested centre", "centre", "0FFFFFFF2"),
    "nothing and a square": Pair("nothing", "square", "FFFFFF212"),
    "nothing and nothing": Pair("nothing", "nothing", "FFFFFFFF2"),
}

EXTREME_PAIRS = {
    "the base of a sliver": Pair("base of the sliver", "sliver", "F1FF0F212"),
    "the side of a sliver": Pair("side of the sliver", "sliver", "F1FF0F212"),
    "lines that are almost collinear": Pair(
        "side of the sliver", "base of the sliver", "FF1F00102"
    ),
    "a point on the base of a sliver": Pair(
        "point on the base of the sliver", "sliver", "F0FFFF212"
    ),
    "a point in a sliver": Pair("point one unit above the base", "sliver", "0FFFFF212"),
    "a point above a sliver": Pair("point two units above the base", "sliver", "FF0FFF212"),
    "on the border at 1e15": Pair("point on the huge square", "huge square", "F0FFFF212"),
    "in by a unit at 1e15": Pair("point a unit inside the huge square", "huge square", "0FFFFF212"),
    "out by a unit at 1e15": Pair(
        "point a unit outside the huge square", "huge square", "FF0FFF212"
    ),
    "huge lines that cross": Pair("huge diagonal", "other huge diagonal", "0F1FF0102"),
    "a tiny line in a tiny area": Pair("tiny diagonal", "tiny square", "1FFF0F212"),
    "a tiny area in a giant one": Pair("tiny square", "giant square", "2FF11F212"),
    "the smallest point in a tiny area": Pair("smallest point", "tiny square", "0FFFFF212"),
}

PAIRS = POINT_PAIRS | LINE_PAIRS | AREA_PAIRS | COLLECTION_PAIRS | EXTREME_PAIRS

BASE_RELATIONS = {
    "areas apart": "disjoint",
    "areas with one edge": "meets",
    "areas with one corner": "meets",
    "areas that overlap": "overlaps",
    "areas that overlap along edges": "overlaps",
    "the start and direction of a ring are nothing": "equals",
    "an area inside": "inside",
    "an area inside, along an edge": "coveredBy",
    "an area inside, at one point of an edge": "coveredBy",
    "an annulus and its plug": "meets",
    "a disk and the annulus in it": "covers",
    "a lid on the hole of an annulus": "overlaps",
    "a square in the arms of a notch": "coveredBy",
    "opposite corners of one box": "disjoint",
    "parts that touch in a square": "coveredBy",
    "a hole that touches the shell": "coveredBy",
    "an area boundary through two parts that touch twice": "overlaps",
    "two halves make a square": "equals",
    "annulus and plug make a disk": "equals",
    "a tiny area in a giant one": "coveredBy",
}
