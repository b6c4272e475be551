"""Objects that wander among boxes: positions for Spark, and the same for the oracle.

Places lie on a grid, and so do the sides of boxes; times are few, so that many are equal. Rows come
out of order, repeated, late, without geometry, and bad.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import shapely

from contrada.language.distance import is_within
from transitions_oracle import Fix, Oracle, Row, Watch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

BEGIN = dt.datetime(2026, 3, 1, 8, tzinfo=dt.UTC)
EVENTS = "id long, object_id string, time timestamp, geometry binary, speed int"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("object_id", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("geometry", pa.binary()),
        ("speed", pa.int32()),
    ]
)
S = 1_000_000
Box = tuple[float, float, float, float]
FIRST: dict[str, Box] = {"gate": (0, 0, 1, 2), "hall": (1, 1, 3, 3), "way": (1.25, 0, 1.5, 4)}
SECOND: dict[str, Box] = {"gate": (0, 0, 2, 1), "yard": (2, 0, 4, 1), "way": (1.25, 0, 1.5, 4)}
OPTIONS: Mapping[str, Any] = {
    "lateness": "15 s",
    "silence": "1 min",
    "cooldown": "5 s",
    "dwell": "20 s",
    "hysteresis": 30_000,
}


@dataclass(frozen=True)
class Position:
    """A row of events; `fault` is the code of what is wrong with it, if anything is."""

    id: int | None
    object: str | None
    seconds: int | None
    place: tuple[float, float] | None
    speed: int
    fault: str | None = None

    @property
    def time_us(self) -> int:
        assert self.seconds is not None
        return to_us(BEGIN) + self.seconds * S

    def as_row(self) -> dict[str, Any]:
        time = None if self.seconds is None else BEGIN + dt.timedelta(seconds=self.seconds)
        wkb = None if self.place is None else shapely.to_wkb(shapely.Point(self.place))
        if self.fault == "undecodable":
            wkb = b"nowhere"
        return {
            "id": self.id,
            "object_id": self.object,
            "time": time,
            "geometry": wkb,
            "speed": self.speed,
        }

    def as_fix(self) -> Fix:
        wkb = (self.as_row()["geometry"] or b"") + bytes([self.speed])  # both tell doubles apart
        has_place = self.place is not None
        return Fix(self.object, self.time_us, self.id, self.place, wkb, has_place, self)


def to_us(moment: dt.datetime) -> int:
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def make_batches(seed: int, count: int, objects: str = "abcde") -> list[list[Position]]:
    """Make batches of positions; times go on from one to the next, and some go back."""
    rng = random.Random(seed)
    batches: list[list[Position]] = []
    for number in range(count):
        rows = [_wander(rng, 100 * number + i, 25 * number, objects) for i in range(16)]
        again = rng.sample([row for batch in [*batches[-1:], rows] for row in batch], 3)
        rows += [again[0], replace(again[1], place=(0.5, 0.5)), replace(again[2], speed=9)]
        rng.shuffle(rows)
        batches.append(rows)
    return batches


def _wander(rng: random.Random, id_: int, now: int, objects: str) -> Position:
    seconds = now + 5 * rng.randint(-4, 5) if rng.random() < 0.9 else now - 5 * rng.randint(0, 30)
    place = (rng.randint(-2, 20) / 4, rng.randint(0, 12) / 4) if rng.random() < 0.95 else None
    return Position(id_, rng.choice(objects), seconds, place, rng.randint(0, 9))


BAD = [
    Position(901, None, 5, (0.5, 0.5), 0, "null_object"),
    Position(902, "a", None, (0.5, 0.5), 0, "bad_time"),
    Position(903, "a", 6, (0.5, 0.5), 0, "undecodable"),
]
AHEAD = Position(904, "a", 10**9, (0.5, 0.5), 0, "time_ahead")  # in 2057


def subscriptions(spark: SparkSession, boxes: Mapping[str, Box]) -> DataFrame:
    """The boxes as fences, and one subscription that is none."""
    rows: list[tuple[str, str | None, str | None, str]] = [
        (id_, shapely.box(*box).wkt, None, f"guard of {id_}") for id_, box in sorted(boxes.items())
    ]
    rows.append(("fast", None, "speed > 7", "police"))
    return spark.createDataFrame(
        rows, "id string, geometry string, filter string, subscriber string"
    )


def watches(boxes: Mapping[str, Box], options: Mapping[str, Any] = OPTIONS) -> dict[str, Watch]:
    """The same for the oracle."""
    found = {id_: _watch(id_, shapely.box(*box), options) for id_, box in boxes.items()}
    found["fast"] = replace(Watch("police", lambda fix: fix.event.speed > 7), **_timing(options))
    return found


def _watch(id_: str, box: Any, options: Mapping[str, Any]) -> Watch:
    metres = options.get("hysteresis", 0)

    def near(fix: Fix) -> bool:
        is_near = fix.point is not None and is_within(shapely.Point(fix.point), box, metres)
        return metres > 0 and is_near is True

    return Watch(
        f"guard of {id_}",
        lambda fix: fix.point is not None and box.intersects(shapely.Point(fix.point)),
        is_fence=True,
        near=near,
        meets=lambda a, b: box.intersects(_line(a, b)),
        **_timing(options),
    )


def _line(a: Fix, b: Fix) -> shapely.LineString:
    assert a.point is not None and b.point is not None
    return shapely.LineString([a.point, b.point])


def _timing(options: Mapping[str, Any]) -> dict[str, Any]:
    dwell = options.get("dwell")
    return {
        "cooldown": seconds_of(options.get("cooldown", "0 s")) * S,
        "dwell": None if dwell is None else seconds_of(dwell) * S,
    }


def seconds_of(text: str) -> int:
    number, unit = text.split()
    return int(number) * {"s": 1, "min": 60}[unit]


def make_oracle(options: Mapping[str, Any] = OPTIONS) -> Oracle:
    silence = options.get("silence")
    return Oracle(
        seconds_of(options.get("lateness", "0 s")) * S,
        None if silence is None else seconds_of(silence) * S,
    )


def good(rows: Iterable[Position]) -> list[Fix]:
    return [row.as_fix() for row in rows if row.fault is None]


def as_table(rows: Iterable[Position]) -> pa.Table:
    return pa.Table.from_pylist([row.as_row() for row in rows], SCHEMA)


def read_rows(table: pa.Table) -> list[Row]:
    """Read rows of an answer as the oracle writes them."""
    names = Row._fields
    rows = table.select(names).to_pylist()
    return [Row(**{**row, "time": to_us(row["time"])}) for row in rows]


def by_object(rows: Iterable[Row]) -> dict[Any, list[Row]]:
    """Divide rows by object, in their order, which counts within an object alone."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row.object, []).append(row)
    return found
