"""Strange geometry values: WKB, WKT and GeoJSON, mutated or put together by a grammar of nonsense.

A seed makes one value. Counts lie, byte orders mix, codes of curves and surfaces stand where
polygons should, flags of EWKB and ISO meet, numbers are NaN, and everything nests as deep as it
can. Seeds below zero are the values that once ended the process.
"""

from __future__ import annotations

import json
import struct
from math import inf, nan
from random import Random
from typing import Any

import shapely

from fuzz import pools

CODES = (
    *range(19),
    1001,
    1002,
    1003,
    1006,
    1007,
    2001,
    2007,
    3001,
    3003,
    3007,
    1010,
    255,
    2**31 - 1,
)
FLAGS = (0, 0, 0, 0x80000000, 0x40000000, 0x20000000, 0xE0000000, 0x10000000)
COUNTS = (0, 1, 1, 1, 2, 2, 3, 4, 5, 255, 65_536, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
NUMBERS = (0.0, 1.0, 2.0, 4.0, -0.0, nan, inf, -inf, 1e308, -1e308, 5e-324, 180.0)
DEPTHS = (2, 5, 20, 100, 1_000, 10_000, 30_000)
NESTING_CODES = (4, 5, 6, 7, 9, 10, 11, 12, 15, 16, 1004, 1005, 1006, 1007, 2007, 3007, 3009)
KEYWORDS = (
    *("POINT", "LINESTRING", "LINEARRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING"),
    *("MULTIPOLYGON", "GEOMETRYCOLLECTION", "CIRCULARSTRING", "COMPOUNDCURVE", "CURVEPOLYGON"),
    *("MULTICURVE", "MULTISURFACE", "TRIANGLE", "TIN", "POLYHEDRALSURFACE", "CURVE", "SURFACE"),
)
WORDS = (
    *(
        "(",
        ")",
        ",",
        " ",
        "EMPTY",
        "Z",
        "M",
        "ZM",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "0x10",
        "1e",
        "-",
    ),
    *("SRID=4326;", "SRID=;", ";", "\x00", "é", "\ud800", "((", "))", "1", "2.5", "1 1", "1_0"),
)
TYPES: tuple[Any, ...] = (
    *("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon"),
    *(
        "GeometryCollection",
        "Feature",
        "FeatureCollection",
        "Curve",
        "point",
        "",
        None,
        5,
        [],
        "\ud800",
    ),
)
LEAVES: tuple[Any, ...] = (
    *NUMBERS,
    1,
    10**400,
    True,
    None,
    "1",
    "",
    [],
    {},
    "\ud800",
    "POINT(1 1)",
)


def make(seed: int) -> Any:
    """The value of a seed."""
    if seed < 0:
        return KILLERS[seed]
    random = Random(seed)
    return random.choice(MAKERS)(random)


# WKB


def spoilt_wkb(random: Random) -> Any:
    """Valid WKB with some bytes changed, cut off, put in or repeated."""
    value = bytearray(shapely.to_wkb(pools.lattice_shape(random), byte_order=random.randint(0, 1)))
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(value) + 1)
        match random.randrange(6):
            case 0:
                del value[at:]
            case 1:
                value[at:at] = random.randbytes(random.choice((1, 4, 8, 64)))
            case 2:
                value[at : at + 4] = struct.pack("<I", random.choice(COUNTS))
            case 3:
                value[at : at + 4] = struct.pack("<I", random.choice(CODES) | random.choice(FLAGS))
            case 4:
                value[at : at + 8] = struct.pack("<d", random.choice(NUMBERS))
            case _:
                value[at:at] = value[at : at + random.randint(1, 40)] * random.choice((1, 3, 200))
        value = value or bytearray(b"\x01")
    return as_bytes(bytes(value), random)


def strange_wkb(random: Random) -> Any:
    """Members that a header announces, or others, to no great depth."""
    return as_bytes(member(random, 0), random)


def member(random: Random, depth: int) -> bytes:
    """A header, a count and what may follow them."""
    order = random.choice("<<>")
    code = random.choice(CODES) | random.choice(FLAGS)
    head = struct.pack(order + "BI", random.choice((order == "<", order == "<", 2)), code)
    if code & 0x20000000:
        head += struct.pack(order + "I", 4326)
    count = random.choice(COUNTS)
    if random.random() < 0.2:
        return head + coordinates(random, order, 1)
    body = struct.pack(order + "I", count)
    for _ in range(min(count, 4)):
        match random.randrange(4):
            case 0 if depth < 5:
                body += member(random, depth + 1)
            case 1:
                body += struct.pack(order + "I", random.choice(COUNTS))
            case _:
                body += coordinates(random, order, random.randint(1, 5))
    return head + body


def coordinates(random: Random, order: str, count: int) -> bytes:
    numbers = [random.choice(NUMBERS) for _ in range(count * random.choice((2, 2, 3, 4)))]
    return struct.pack(f"{order}{len(numbers)}d", *numbers)


def deep_wkb(random: Random) -> Any:
    """Codes inside one another, thousands of times."""
    codes = [random.choice(NESTING_CODES) for _ in range(random.choice((1, 1, 2, 3)))]
    order = random.choice("<>")
    heads = [struct.pack(order + "BII", order == "<", code, 1) for code in codes]
    inner = random.choice((b"", struct.pack("<BIdd", 1, 1, 1.0, 1.0)))
    return as_bytes(b"".join(heads) * random.choice(DEPTHS) + inner, random)


def as_bytes(value: bytes, random: Random) -> Any:
    """Bytes as they are, or as another that holds them, or in hexadecimal."""
    return random.choice((value, value, value, bytearray(value), memoryview(value), value.hex()))


# WKT


def spoilt_wkt(random: Random) -> Any:
    """Valid WKT with words left out, put in, changed or repeated."""
    text = shapely.to_wkt(pools.lattice_shape(random))
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(text) + 1)
        match random.randrange(4):
            case 0:
                text = text[:at]
            case 1:
                text = text[:at] + random.choice((*WORDS, *KEYWORDS)) + text[at:]
            case 2:
                text = text[:at] + random.choice(WORDS) + text[at + 1 :]
            case _:
                text = (
                    text[:at]
                    + text[at : at + random.randint(1, 20)] * random.choice((2, 50))
                    + text[at:]
                )
    return text


def strange_wkt(random: Random) -> Any:
    """Words in a row."""
    return "".join(random.choice((*WORDS, *KEYWORDS)) for _ in range(random.randint(1, 30)))


def deep_wkt(random: Random) -> Any:
    """Keywords and parentheses inside one another, thousands of times."""
    words = [random.choice((*KEYWORDS, "")) for _ in range(random.choice((1, 1, 2, 3)))]
    opening = "".join(word + random.choice((" ", "", " Z ")) + "(" for word in words)
    depth = random.choice(DEPTHS)
    inner = random.choice(("", "1 1", "POINT(1 1)", "0 0,1 1,1 0,0 0"))
    closing = ")" * (depth * len(words)) if random.random() < 0.7 else ""
    return random.choice(("", "SRID=4326;")) + opening * depth + inner + closing


# GeoJSON


def spoilt_geojson(random: Random) -> Any:
    """A valid object with a member changed somewhere."""
    value = json.loads(shapely.to_geojson(pools.lattice_shape(random)))
    for _ in range(random.randint(1, 3)):
        holder, key = value, random.choice(list(value) or ["type"])
        while random.random() < 0.7 and isinstance(
            holder.get(key) if isinstance(holder, dict) else holder[key], list | dict
        ):
            inner = holder[key]
            if not inner:
                break
            holder, key = (
                inner,
                random.choice(list(inner) if isinstance(inner, dict) else range(len(inner))),
            )
        holder[key] = random.choice((*LEAVES, *TYPES, tangle(random, 3)))
    return json.dumps(value) if random.random() < 0.1 else value


def strange_geojson(random: Random) -> Any:
    """An object with the right names and anything in them."""
    key = random.choice(("coordinates", "coordinates", "geometries", "geometry", "\ud800"))
    return {
        "type": random.choice(TYPES),
        key: tangle(random, random.randint(1, 6)),
        "bbox": random.choice(LEAVES),
    }


def tangle(random: Random, depth: int) -> Any:
    """Lists in lists."""
    if depth == 0 or random.random() < 0.1:
        return random.choice(LEAVES)
    return [tangle(random, depth - 1) for _ in range(random.randint(0, 4))]


def deep_geojson(random: Random) -> Any:
    """Collections, or lists of coordinates, inside one another."""
    depth = random.choice(DEPTHS)
    kind = random.choice(TYPES[:7])
    value: Any = random.choice(([0, 0], [], {"type": "Point", "coordinates": [1, 1]}))
    if random.random() < 0.5:
        for _ in range(depth):
            value = {"type": "GeometryCollection", "geometries": [value]}
        return value
    for _ in range(depth):
        value = [value]
    return {"type": kind, "coordinates": value}


MAKERS = (
    *(spoilt_wkb, spoilt_wkb, strange_wkb, strange_wkb, spoilt_wkt, spoilt_wkt, strange_wkt),
    *(spoilt_geojson, spoilt_geojson, strange_geojson, deep_wkb, deep_wkt, deep_geojson),
)

SQUARE = [[4, 0], [4, 4], [0, 4], [0, 0], [4, 0]]
KILLERS: tuple[Any, ...] = (
    struct.pack("<BII", 1, 6, 1) * 30_000,
    "COMPOUNDCURVE(" * 50_000,
    "POLYGON((4 0,4 4,0 4,0 0,4 0), EMPTY)",
    {"type": "Polygon", "coordinates": [SQUARE, []]},
    {"type": "MultiPolygon", "coordinates": [[SQUARE, []]]},
)
