"""The values that predicates and events are made of, few enough to meet, and near the edges."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from math import inf, nan
from random import Random
from typing import Any

import numpy as np
import shapely
from shapely.geometry import GeometryCollection, LineString, MultiPoint, Point

from strategies import LATTICE_KINDS, build

NUMBERS: tuple[Any, ...] = (
    *(0, 1, 2, 3, -1, -2, 0.5, 2.0, -0.0, 2.5, 1e300, 5e-324),
    *(2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 2.0**53, 0.1),
)
MORE_NUMBERS = (inf, -inf, nan, Decimal("0.1"), Decimal(2), Decimal("-2.50"), np.int64(2**53 + 1))
NUMPY_NUMBERS = (np.float32(0.5), np.uint8(2), np.float64(nan))
TEXTS = (
    *("", "a", "A", "ab", "b", "É", "é", "e\u0301", "E", "ß", "SS", "ss", "İ", "i", "aa"),
    *("a%", "a_b", "a\\b", "\\", "%", "_", "it's", "10", "2", "true", "NULL", "\n", "z\U0001f600"),
    *("2020-01-01", "2020-01-02T12:00:00Z", "soon", "Ünïcödé", "UNICODE", "x y", "ǅ", "ﬁ"),
)
PATTERNS = ("%", "_", "a%", "%b", "%a%", "a_", "a\\%", "\\_%", "__", "%\\\\%", "É%", "", "a", "%%b")
TIME_TEXTS = (
    *("2020-01-01", "2020-01-02", "2020-01-01T00:00:00Z", "2020-01-01T02:00:00+02:00"),
    *("2020-01-01T23:59:59.999999999Z", "2020-01-02T12:00:00Z", "2019-12-31T19:00:00-05:00"),
    *("2020-01-02T12:00:00.5Z", "2021-06-01", "1969-12-31T23:59:59.5Z", "0001-01-01", "9999-12-31"),
)
LOOSE_TIME_TEXTS = (
    "2020-01-02T12:00:00",
    "2020-01-02 12:00:00,5",
    "2020",
    "soon",
    "",
    "2020-02-30",
)
MOMENTS: tuple[Any, ...] = (
    dt.date(2020, 1, 1),
    dt.datetime(2020, 1, 2, 12),  # noqa: DTZ001  (without a zone it is UTC)
    dt.datetime(2020, 1, 2, 12, tzinfo=dt.UTC),
    dt.datetime(2020, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    dt.datetime(2020, 1, 2, 12, 0, 0, 500_000, tzinfo=dt.UTC),
    np.datetime64("2020-01-01"),
    np.datetime64("2020-01-01T23:59:59.999999999"),
    np.datetime64("NaT"),
)
PATTERNS_OF_SPACE = (
    *("T********", "FF*FF****", "T*F**F***", "F***1****", "*********", "0********"),
    *("T*T***T**", "1********", "**F**F***", "****T****", "2FFF1FFF2"),
)
DISTANCES = (0, 1, 1e5, 2e5, 111_000, 157_000.5, 1e7, 3e7, 1e300)
PLACES = ((0, 0), (1, 1), (2, 0), (180, 0), (-180, 0), (179.5, 10), (-179.5, 10), (0, 90), (45, 90))


def lattice_shape(random: Random) -> shapely.geometry.base.BaseGeometry:
    """A shape on the lattice, of any kind; seldom one with an empty member or with a height."""
    shape = build(random.randint, random.choice(LATTICE_KINDS))
    match random.randrange(20):
        case 0:
            return GeometryCollection([shape, Point()])
        case 1:
            return shapely.force_3d(shape, 7.0)
        case 2:
            return GeometryCollection([GeometryCollection([shape]), LineString()])
    return shape


def place(random: Random) -> shapely.geometry.base.BaseGeometry:
    """One point or some, in longitude and latitude."""
    positions = [random.choice(PLACES) for _ in range(random.choice((1, 1, 2, 3)))]
    return Point(positions[0]) if len(positions) == 1 else MultiPoint(positions)


def geojson(shape: shapely.geometry.base.BaseGeometry) -> Any:
    """A shape as GeoJSON."""
    return json.loads(shapely.to_geojson(shape))


def encoded(shape: shapely.geometry.base.BaseGeometry, random: Random) -> Any:
    """A shape in one of the encodings that an event may bring."""
    match random.randrange(7):
        case 0:
            return shapely.to_wkt(shape, rounding_precision=17)
        case 1:
            return shapely.to_wkb(shape, byte_order=random.randint(0, 1))
        case 2:
            return shapely.to_wkb(shape, flavor="iso")
        case 3:
            return geojson(shape)
        case 4:
            return shapely.to_geojson(shape)
        case 5:
            return shapely.to_wkb(shape, hex=True)
    return shape
