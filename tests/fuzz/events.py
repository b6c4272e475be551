"""Random events: single ones of any shape, and tables whose columns have one type each."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import partial
from math import inf, nan
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import shapely

from fuzz import pools
from fuzz.shapes import decode

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

Row = dict[str, Any]

ABSENT = object()
MOMENT = dt.datetime(2020, 1, 2, 12, tzinfo=dt.UTC)
SPANS = (
    ["2020-01-01", "2020-01-02"],
    ["..", "2020-01-01T00:00:00Z"],
    ["2020-01-02", ".."],
    ["..", ".."],
    ["2020-01-02", "2020-01-01"],
    ["2020-01-01", None],
    ["2020-01-01"],
    [dt.date(2020, 1, 1), dt.date(2021, 6, 1)],
)
ARRAYS: tuple[Any, ...] = (
    *([], [0], [1, 2.0], [2, 1, 1], ["a", None], [True, "2020-01-01"], [nan], [None], [[1], [2]]),
    *(["a", "b"], ["É", "é"], [[1, 2], []], [2**53 + 1], [dt.date(2020, 1, 1)], (1, "1"), [{}, 1]),
)
FLAGS = (True, True, False, False, None, 1, 0)
WRONG = (None, 5, True, [1], 2.5)
NO_SHAPES = ("nonsense", "P0INT (1 1)", "N/A", "{}", "", " ")


def event(random: Random, shapes: list[Any]) -> Row:
    """The attributes of an event, each present, null, of a wrong type or absent."""
    row = {
        "n": number(random),
        "m": number(random),
        "s": text(random),
        "odd name": text(random),
        "t": moment(random),
        "until": moment(random),
        "a": random.choice(ARRAYS),
        "b": random.choice(ARRAYS),
        "p": random.choice(FLAGS),
        "q": random.choice(FLAGS),
        "g": shape(random, shapes),
        "h": shape(random, shapes),
        "geometry": shape(random, shapes),
        "place": pools.encoded(pools.place(random), random),
    }
    row |= random.choice(({}, {"x": {"y": number(random)}}, {"x": 5}, {"x": {"y": None}}))
    row |= random.choice(({}, {}, {"x.y": number(random)}))
    row |= random.choice(({}, {"u": {"v": text(random)}}, {"u.v": None}, {"u": [1]}, {"u": None}))
    row |= random.choice(({}, {"deep": {"er": {"n": number(random)}}}, {"deep": {"er": 5}}))
    row |= random.choice(({}, {"deep.er": {"n": number(random)}}))
    row |= random.choice(({}, {"id": random.randrange(4)}))
    return {name: value for name, value in row.items() if random.random() > 0.15}


def number(random: Random) -> Any:
    if random.random() < 0.15:
        return random.choice((None, "2", "", True, [2], MOMENT))
    if random.random() < 0.3:
        return random.choice((*pools.MORE_NUMBERS, *pools.NUMPY_NUMBERS))
    return random.choice(pools.NUMBERS)


def text(random: Random) -> Any:
    return (
        random.choice((None, 2, True, MOMENT))
        if random.random() < 0.1
        else random.choice(pools.TEXTS)
    )


def moment(random: Random) -> Any:
    draw = random.random()
    if draw < 0.1:
        return random.choice((None, 2020, True, *pools.LOOSE_TIME_TEXTS))
    if draw < 0.4:
        return random.choice(SPANS)
    return random.choice((*pools.TIME_TEXTS, *pools.MOMENTS))


def shape(random: Random, shapes: list[Any]) -> Any:
    draw = random.random()
    if draw < 0.1:
        return random.choice((*WRONG, shapely.Point(), "POLYGON EMPTY", *NO_SHAPES))
    found = random.choice(shapes) if shapes and draw < 0.5 else pools.lattice_shape(random)
    return pools.encoded(found, random)


def wrapped(row: Row, random: Random) -> Any:
    """The same event as a mapping, a Feature or a CloudEvent."""
    form = random.randrange(4)
    if form < 2:
        return row
    properties = {name: value for name, value in row.items() if name != "geometry"}
    feature = {"type": "Feature", "geometry": row.get("geometry"), "properties": properties}
    if "id" in properties and random.random() < 0.7:
        feature["id"] = properties.pop("id")
        properties |= random.choice(({}, {"id": 99}, {"id": None}, {"id": "a"}))
    if form == 2:
        return feature
    return {"specversion": "1.0", "id": "c", "source": "/fuzz", "type": "x", "data": feature}


def table(random: Random, shapes: list[Any], rows: int) -> pa.Table:
    """Events as columns, each of one type, with nulls."""
    columns = {
        name: column(random, *random.choice(choices), rows) for name, choices in COLUMNS.items()
    }
    for name in ("g", "h", "geometry"):
        found = [shape(random, shapes) for _ in range(rows)]
        columns[name] = column_of_shapes(random, found)
    places = [pools.place(random) for _ in range(rows)]
    columns["place"] = pa.array([shapely.to_wkb(each) for each in places], pa.binary())
    kept = {name: values for name, values in columns.items() if random.random() > 0.05}
    return pa.table({"id": pa.array(range(rows), pa.int64()), **kept})


def column(random: Random, kind: pa.DataType, values: tuple[Any, ...], rows: int) -> pa.Array:
    """So many of the values, and some nulls."""
    return pa.array([random.choice((None, *values, *values)) for _ in range(rows)], kind)


def column_of_shapes(random: Random, values: list[Any]) -> pa.Array:
    """Geometries as WKB or as texts; what is none becomes null, unless it is a text as well."""
    read = [decode(value) for value in values]
    if random.random() >= 0.3:
        return pa.array(shapely.to_wkb(read), pa.binary())
    write: Callable[[Any], Any] = random.choice(
        (partial(shapely.to_wkt, rounding_precision=17), shapely.to_geojson)
    )
    written = zip(values, write(read), strict=True)
    texts = [
        value if isinstance(value, str) and value in NO_SHAPES else shape
        for value, shape in written
    ]
    return pa.array(texts, pa.string())


INTEGERS = (0, 1, 2, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))
UTC_TIMES = (
    MOMENT,
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2019, 12, 31, 23, 59, 59, 999_999, dt.UTC),
)
LOCAL_TIMES = tuple(each.replace(tzinfo=None) for each in UTC_TIMES)
NUMBER_COLUMNS = (
    (pa.int64(), INTEGERS),
    (pa.int8(), (0, 1, 2, -1)),
    (pa.uint64(), (0, 1, 2, 2**53 + 1, 2**64 - 1)),
    (pa.float64(), (0.0, -0.0, 0.5, 2.0, 2.5, nan, inf, -inf, 2.0**53, 1e300, 0.1)),
    (pa.float32(), (0.0, 0.5, 2.0, nan)),
    (pa.decimal128(20, 2), (Decimal("0.10"), Decimal("2.00"), Decimal("-2.50"))),
    (pa.string(), ("2", "", "a")),
    (pa.bool_(), (True, False)),
)
TEXT_COLUMNS = (
    (pa.string(), pools.TEXTS),
    (pa.large_string(), pools.TEXTS),
    (pa.dictionary(pa.int8(), pa.string()), pools.TEXTS),
    (pa.int64(), (1, 2)),
)
MOMENT_COLUMNS = (
    (pa.timestamp("us", "UTC"), UTC_TIMES),
    (pa.timestamp("ms"), tuple(each.replace(microsecond=0) for each in LOCAL_TIMES)),
    (pa.timestamp("us", "Europe/Rome"), UTC_TIMES),
    (pa.date32(), (dt.date(2020, 1, 1), dt.date(2020, 1, 2))),
    (pa.string(), (*pools.TIME_TEXTS, *pools.LOOSE_TIME_TEXTS)),
    (pa.list_(pa.string()), tuple(each for each in SPANS if isinstance(each[0], str))),
    (pa.list_(pa.timestamp("us", "UTC")), (UTC_TIMES[1:], UTC_TIMES[:2])),
    (pa.int64(), (2020,)),
)
ARRAY_COLUMNS: tuple[tuple[pa.DataType, tuple[Any, ...]], ...] = (
    (pa.list_(pa.int64()), ([], [0], [1, 2], [2, 1, 1], [None], [2**53 + 1])),
    (pa.list_(pa.float64()), ([], [1.0, 2.0], [nan], [0.5])),
    (pa.list_(pa.string()), (["a", None], ["É", "é"], ["2020-01-01"], ["a", "b"])),
    (pa.list_(pa.list_(pa.int64())), ([[1], [2]], [[1, 2], []], [None])),
    (pa.string(), ("a",)),
)
FLAG_COLUMNS = ((pa.bool_(), (True, False)), (pa.int64(), (0, 1)))
COLUMNS: dict[str, tuple[tuple[pa.DataType, tuple[Any, ...]], ...]] = {
    "n": NUMBER_COLUMNS,
    "m": NUMBER_COLUMNS,
    "x": (
        (pa.struct([("y", pa.int64())]), ({"y": 2}, {"y": None}, {"y": 2**53 + 1})),
        (pa.int64(), (5,)),
    ),
    "deep": (
        (pa.struct([("er", pa.struct([("n", pa.float64())]))]), ({"er": {"n": 2.0}}, {"er": None})),
    ),
    "x.y": NUMBER_COLUMNS,
    "deep.er": ((pa.struct([("n", pa.int64())]), ({"n": 2}, {"n": None})),),
    "s": TEXT_COLUMNS,
    "odd name": TEXT_COLUMNS,
    "u.v": TEXT_COLUMNS,
    "t": MOMENT_COLUMNS,
    "until": MOMENT_COLUMNS,
    "a": ARRAY_COLUMNS,
    "b": ARRAY_COLUMNS,
    "p": FLAG_COLUMNS,
    "q": FLAG_COLUMNS,
}
