"""Rows of subscriptions in all their variety: their cells, and the columns that cells come in.

Cells are drawn from small pools, so that rows share texts, geometries and forms as real ones do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import shapely
from hypothesis import strategies as st

from contrada.model.geometry import is_blank

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contrada.model.subscription import Id

Geometry = bytes | str | None


class Row(NamedTuple):
    """One subscription; the names are those of the columns."""

    id: Id | None
    filter: str | None = None
    geometry: Geometry = None
    relation: str | None = None
    where: str | None = None
    attribute: str | None = None
    subscriber: Id | None = None

    def arguments(self) -> dict[str, Any]:
        """What `Matcher.add` takes for the row: a null, or blank text for a geometry, is absent."""
        cells = {name: cell for name, cell in self._asdict().items() if cell is not None}
        if is_blank(self.geometry):
            del cells["geometry"]
        cells.pop("id", None)
        return cells


# Texts

NUMBERS = [
    *("0", "0.0", "3", "3.0", "007", ".5", "1e2", "5.", "1E-3", "7", "12", "99"),
    *(str(2**53 + 1), str(2**63 - 1), str(2**63), "9" * 40, "1e400"),
]
STRINGS = [
    *("''", "'a'", "'ab'", "'it''s'", "'%'", "'a%'", "'_'", "'%b'", "'a\\%'", "'\\'", "'É'"),
    *("'POINT(1 2)'", "'12'", "'2020-01-01'", "'\x00mark 0\x00'"),
]
AREAS = [
    *("POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", "POLYGON((1 1, 2 1, 2 2, 1 2, 1 1))"),
    *("POLYGON((0 0,9 0,9 9,0 9,0 0),(1 1,1 2,2 2,1 1))", "POLYGON Z ((0 0 1,4 0 1,4 4 1,0 0 1))"),
    *("POLYGON((-0 0, 4 0, 4 4, 0 4, -0 0))", "POLYGON((4 0, 4 4, 0 4, 0 0, 4 0))"),
    "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
    "GEOMETRYCOLLECTION(POLYGON((0 0, 4 0, 4 4, 0 0)), POINT EMPTY)",
]
OTHER_SHAPES = [
    *("POINT(1 1)", "POINT Z (1 1 3)", "POINT(-0 0)", "LINESTRING(0 0, 4 4)", "POINT(200 100)"),
    *("MULTIPOINT((1 1), EMPTY)", "MULTILINESTRING((0 0, 1 1), (2 2, 3 3))"),
    *("GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0, 5 5))", "LINEARRING(0 0, 1 0, 1 1, 0 0)"),
]
BAD_SHAPES = [
    *("POLYGON((0 0, 4 4, 4 0, 0 4, 0 0))", "POLYGON((0 0, 2 2, 4 4, 0 0))", "POINT(nan 1)"),
    *("POINT EMPTY", "POLYGON EMPTY", "GEOMETRYCOLLECTION(POINT EMPTY)", "LINESTRING(1 1, 1 1)"),
]
NOT_SHAPES = ["CIRCULARSTRING(0 0, 1 1, 2 0)", "POINT(1)", "POINT(1 1"]
DAYS = ["'2020-01-01'", "'2020-01-02T03:04:05.000000006Z'", "'1970-01-01'", "'1600-01-01'", "'x'"]
SHAPES = [*AREAS, *AREAS, *OTHER_SHAPES, *BAD_SHAPES, *NOT_SHAPES]
SPELT = {"n": NUMBERS, "t": STRINGS, "g": SHAPES, "d": DAYS}
PLAIN_FORMS = [
    *("wind > {n}", "wind >= -{n}", "wind = {n}", "wind <> {n}", "{n} < wind", "name = {t}"),
    *("name LIKE {t}", "name > {t} AND wind > {n}", "name LIKE {t} AND name = {t}"),
    *("wind > {n} AND wind < {n}", "wind BETWEEN {n} AND {n}", "wind > {n} AND wind > {n}"),
    *("name BETWEEN {t} AND {t}", "wind = {n} AND gust = {n} AND name = {t}"),
    *("S_INTERSECTS(area, {g})", "S_WITHIN(geometry, {g}) AND wind > {n}", "ehInside(area, {g})"),
    *("S_CONTAINS({g}, area)", "S_INTERSECTS(area, {g}) AND S_INTERSECTS(geometry, {g})"),
    *("dwithin(area, {g}, {n})", '"q ""name""" = {t} AND a.b > {n}'),
    *("(wind > {n} OR name LIKE {t}) AND S_INTERSECTS(area, {g})", "wind NOT IN ({n}, {t}, {n})"),
    *("NOT (wind > {n} OR name = {t}) AND gust IS NOT NULL", "T_AFTER(time, TIMESTAMP({d}))"),
    *("time > DATE({d}) AND time <= TIMESTAMP({d})", "NOT time = DATE({d}) OR wind IN ({n}, {n})"),
]
OTHER_FORMS = [
    *("NOT wind > {n}", "wind > {n} OR name = {t}", "wind IN ({n}, {n})", "name IS NULL"),
    *("casei(name) = casei({t})", "wind + {n} > {n}", "T_BEFORE(time, DATE('2020-01-0{n}'))"),
    *("A_CONTAINS(tags, ({t}, {n}))", "open = TRUE AND wind > {n}", "open", "TRUE", "FALSE"),
    *("NOT S_INTERSECTS(area, {g})", "NOT (S_WITHIN(geometry, {g}) AND wind > {n})"),
    *("relate(area, {g}, 'T********')", "S_INTERSECTS(area, BBOX(0, 0, {n}, 4))", "{n} < {n}"),
    '{{"op":">","args":[{{"property":"wind"}},{n}]}}',
    '{{"op":"s_within","args":[{{"property":"area"}},{{"bbox":[0,0,{n},4]}}]}}',
]
BAD_FORMS = ["wind > ", "", " ", "wind LIEK {t}", "wind = {g}", "S_WITHIN(area, {n})", "{{}}", "7"]
GOOD_FORMS = [*PLAIN_FORMS, *PLAIN_FORMS, *OTHER_FORMS]
FORMS = [*GOOD_FORMS, *BAD_FORMS]


class Spelling:
    """Literals for a form, each drawn when the form asks for it."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def fill(self, form: str) -> str:
        """Write a form with literals."""
        for kind, spellings in SPELT.items():
            while (mark := f"{{{kind}}}") in form:
                form = form.replace(mark, self._draw(st.sampled_from(spellings)), 1)
        return form.replace("{{", "{").replace("}}", "}")


@st.composite
def texts(draw: st.DrawFn, forms: Sequence[str] = FORMS) -> str:
    """Predicates of some forms."""
    return Spelling(draw).fill(draw(st.sampled_from(forms)))


# Geometries


def encode_shapes(spellings: Iterable[str]) -> list[bytes]:
    """WKB of geometries in WKT, in either order of bytes, and with an SRID."""
    shapes = shapely.from_wkt(list(spellings))
    return [
        *shapely.to_wkb(shapes, byte_order=1).tolist(),
        *shapely.to_wkb(shapes[::3], byte_order=0).tolist(),
        *shapely.to_wkb(shapely.set_srid(shapes[1::3], 4326), include_srid=True).tolist(),
    ]


GOOD_WKB = encode_shapes([*AREAS, *OTHER_SHAPES])
BAD_WKB = [*encode_shapes(BAD_SHAPES), GOOD_WKB[0][:-3], b"", b"POINT(1 1)", b"\x01\x07"]
GOOD_WKT = [*AREAS, *OTHER_SHAPES, GOOD_WKB[0].hex(), '{"type": "Point", "coordinates": [1, 1]}']
BAD_WKT = [*BAD_SHAPES, *NOT_SHAPES, "", "  ", "N/A", "{}", '{"type": "Point"}']
GEOMETRIES: dict[bool, list[Geometry]] = {True: [*GOOD_WKB, *BAD_WKB], False: [*GOOD_WKT, *BAD_WKT]}
GOOD_GEOMETRIES: dict[bool, list[Geometry]] = {True: [*GOOD_WKB], False: [*GOOD_WKT]}

# Names

GOOD_RELATIONS = [
    *(None, "intersects", "within", "Within", "disjoint", "coveredBy", "ehInside", "EHMEET"),
    *("T*F**F***", "t********"),
]
RELATIONS = [*GOOD_RELATIONS, "near", "", "relate", "T*F"]
GOOD_ATTRIBUTES = [None, "geometry", "area", "wind", "a.b", 'q "name"', " "]
ATTRIBUTES = [*GOOD_ATTRIBUTES, "", "x" * 5000]

# Columns

USUAL_WAYS = ("plain", "dictionary", "loose dictionary", "slice")
WAYS = (*USUAL_WAYS, "dictionary with null")
TEXT_TYPES = (pa.string(), pa.large_string())
BYTES_TYPES = (pa.binary(), pa.large_binary())


def encode(values: Sequence[Any], kind: pa.DataType, way: str) -> pa.Array:
    """Write a column in one of the ways that Arrow has for the same values."""
    plain = pa.array(values, kind)
    match way:
        case "dictionary":
            return plain.dictionary_encode()
        case "loose dictionary":  # a value comes as often as rows have it, and the first once more
            known = [value for value in values if value is not None]
            stored = pa.array([*known[:1], *reversed(known)], kind)
            places = iter(range(len(known), 0, -1))
            indices = [None if value is None else next(places) for value in values]
            return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int16()), stored)
        case "dictionary with null":
            stored = pa.concat_arrays([pa.nulls(1, kind), plain])
            indices = [0 if value is None else row for row, value in enumerate(values, 1)]
            return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), stored)
        case "slice":
            return pa.concat_arrays([plain[-1:], plain, plain[:1]])[1 : len(plain) + 1]
    return plain
