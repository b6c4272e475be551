"""The cases of `subscriptions.py`: each is measured once, in a process that ends afterwards.

    python benchmarks/subscription_cases.py CASE FOLDER SEED DIVISOR

Prints its figures as JSON: seconds, bytes, or changes a second, by name. Sizes are divided by
DIVISOR; the FOLDER keeps the snapshot that the case `added` writes for `opened`, of one SEED.
"""

import argparse
import gc
import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.random import Generator

import contrada
from memory import read_peak, read_resident, settle

POLYGONS, VERTICES = 85_550, 36
SMALL_POLYGONS, SMALL_VERTICES = 1_000_000, 5
LARGE_VERTICES, LARGE_SHARED = 111_436, 1_000
ROUNDS, BATCH, BATCHES = 200, 100, 21
PROBED_S = 0.0005
CHURN_S, CHURN_HELD, PER_S = 5.0, 100, 1_000
REMOVED = 1_000
BOX = (-110.0, 32.0), (-90.0, 45.0)
RADIUS = 0.01
FAST = 200.0  # a speed beyond the bound of every range

Figures = dict[str, float]
Event = dict[str, Any]


class Stars:
    """Star-shaped polygons at random places, all different, with a bound for a range each."""

    def __init__(self, rng: Generator, count: int, vertices: int) -> None:
        """Draw vertices around middles, at growing angles that leave no gap of half a turn."""
        turns = (np.arange(vertices) + 0.9 * rng.random((count, vertices))) / vertices
        angles = 2 * np.pi * turns
        steps = min(0.5, 18 / vertices)  # between neighbours: about as high as they are apart
        radii = RADIUS * (1 - steps * rng.random((count, vertices)))
        self.middles = rng.uniform(*BOX, (count, 2))
        around = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=2)
        self.shapes: Any = shapely.polygons(self.middles[:, None] + around)
        self.bounds = rng.uniform(0, 100, count)

    def wkb(self) -> pa.Array:
        """Write the polygons as a column."""
        return pa.array(shapely.to_wkb(self.shapes), pa.binary())

    def ranges(self) -> list[str]:
        """Write the ranges as CQL2."""
        return [f"speed > {bound!r}" for bound in self.bounds.tolist()]

    def event(self, number: int) -> Event:
        """Make an event in the middle of one polygon, as fast as all ranges ask."""
        return {"geometry": shapely.Point(self.middles[number]), "speed": FAST}


class Setting:
    """What a case is given: a seed, sizes, a folder."""

    def __init__(self, folder: Path, seed: int, divisor: int) -> None:
        """Take it from the command line."""
        self.snapshot = folder / f"stars-{seed}.contrada"
        self.divisor = divisor
        self.rng = np.random.default_rng(seed)
        self.order = random.Random(seed)

    def stars(self) -> Stars:
        """Draw the polygons of most cases."""
        return Stars(self.rng, POLYGONS // self.divisor, VERTICES)

    def small_stars(self) -> Stars:
        """Draw the many polygons of few vertices."""
        return Stars(self.rng, SMALL_POLYGONS // self.divisor, SMALL_VERTICES)

    def race(self, ours: Callable[[], Any], peer: Callable[[], Any]) -> tuple[Figures, Any]:
        """Time ours and a peer's work, in an order drawn from the seed; give our answer, too."""
        contenders = {"seconds": ours, "peer": peer}
        answers = {name: timed(contenders[name]) for name in self.order.sample([*contenders], 2)}
        return {name: taken_s for name, (taken_s, _) in answers.items()}, answers["seconds"][1]


def timed(run: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[float, Any]:
    """Give the seconds that a call takes, and its answer."""
    started = time.perf_counter()
    answer = run(*arguments, **named)
    return time.perf_counter() - started, answer


def warm_up(engine: str = "strtree") -> None:
    """Import and compile what the cases use, with few subscriptions."""
    stars = Stars(np.random.default_rng(0), 1_000, SMALL_VERTICES)
    matcher = contrada.Matcher(engine)
    matcher.add_many(pa.table({"geometry": stars.wkb(), "where": stars.ranges()}))
    texts = [f"S_INTERSECTS(geometry, {shape.wkt}) AND speed > 1" for shape in stars.shapes[:9]]
    matcher.add_many(pa.table({"id": np.arange(1_000, 1_009), "filter": texts}))
    matcher.add(2_000, geometry=stars.shapes[0], where="speed > 1")
    assert 0 in matcher.match(stars.event(0))
    matcher.match_many(events_of(stars, 10))
    for id_ in range(600):  # most: engines that delete from trees only then do so
        matcher.remove(id_)
    assert 600 in matcher.match(stars.event(600))


def events_of(stars: Stars, count: int) -> pa.Table:
    """Make a table of events in the middle of the first polygons."""
    points = shapely.points(stars.middles[:count])
    return pa.table({"geometry": pa.array(shapely.to_wkb(points), pa.binary())})


def match_first(matcher: contrada.Matcher, stars: Stars) -> None:
    """Match one event, which builds the index, and look at the answer."""
    assert 0 in matcher.match(stars.event(0))


def measure_memory(setting: Setting) -> Figures:
    """Count the bytes of polygons with a range each, in columns and resident."""
    stars = setting.stars()
    table = pa.table({"geometry": stars.wkb(), "where": stars.ranges()})
    before = settle()
    matcher = add_all(table)
    match_first(matcher, stars)
    gc.collect()
    figures = {"columns": matcher.stats()["bytes"], "resident": read_resident() - before}
    matcher.match_many(events_of(stars, len(table)))
    gc.collect()
    figures["visited"] = read_resident() - before
    return {name: count / len(table) for name, count in figures.items()}


def measure_wkb(setting: Setting) -> Figures:
    """Add polygons as WKB."""
    return race_wkb(setting, pa.table({"geometry": setting.stars().wkb()}))[0]


def measure_where(setting: Setting) -> Figures:
    """Add polygons as WKB, each with a range."""
    stars = setting.stars()
    return race_wkb(setting, pa.table({"geometry": stars.wkb(), "where": stars.ranges()}))[0]


def race_wkb(setting: Setting, table: pa.Table) -> tuple[Figures, contrada.Matcher]:
    """Add a table; beside it Shapely decodes and judges its geometries."""
    return setting.race(
        lambda: add_all(table), lambda: judge(shapely.from_wkb(table["geometry"].to_numpy()))
    )


def measure_filter(setting: Setting) -> Figures:
    """Add polygons and ranges as CQL2; beside it Shapely decodes and judges the polygons."""
    stars = setting.stars()
    shapes = shapely.to_wkt(stars.shapes, rounding_precision=-1)
    pairs = zip(shapes.tolist(), stars.ranges(), strict=True)
    table = pa.table({"filter": [f"S_INTERSECTS(geometry, {wkt}) AND {r}" for wkt, r in pairs]})
    return setting.race(lambda: add_all(table), lambda: judge(shapely.from_wkt(shapes)))[0]


def add_all(table: pa.Table) -> contrada.Matcher:
    """Add a table to a new matcher."""
    matcher = contrada.Matcher()
    assert matcher.add_many(table) == len(table)
    return matcher


def judge(shapes: Any) -> None:
    """Ask Shapely whether geometries are valid."""
    assert shapely.is_valid(shapes).all()


def measure_added(setting: Setting) -> Figures:
    """Add very many polygons, match an event, and save all."""
    stars = setting.small_stars()
    figures, matcher = race_wkb(setting, pa.table({"geometry": stars.wkb()}))
    figures["match"], _ = timed(match_first, matcher, stars)
    figures["save"], _ = timed(matcher.save, setting.snapshot)
    return figures


def measure_opened(setting: Setting) -> Figures:
    """Open what was saved, and match an event."""
    stars = setting.small_stars()
    opening_s, matcher = timed(contrada.Matcher.open, setting.snapshot)
    assert len(matcher) == len(stars.shapes)
    return {"open": opening_s, "match": timed(match_first, matcher, stars)[0]}


def measure_single(setting: Setting) -> Figures:
    """Beside very many, add one and match an event; then add one and match a table."""
    stars = setting.small_stars()
    matcher = add_all(pa.table({"geometry": stars.wkb()}))
    fresh = Stars(setting.rng, ROUNDS + BATCHES, SMALL_VERTICES)
    events, first = events_of(stars, BATCH), len(stars.shapes)
    match_first(matcher, stars)
    matcher.match_many(events)
    both, matching, batches = [], [], []
    for number, shape in enumerate(fresh.shapes[:ROUNDS]):
        event = fresh.event(number)
        adding_s, _ = timed(matcher.add, first + number, geometry=shape)
        matching_s, found = timed(matcher.match, event)
        assert first + number in found
        both.append(adding_s + matching_s)
        matching.append(matching_s)
    for number, shape in enumerate(fresh.shapes[ROUNDS:], ROUNDS):
        matcher.add(first + number, geometry=shape)
        taken_s, pairs = timed(matcher.match_many, events)
        assert len(pairs) >= BATCH
        batches.append(taken_s)
    return {
        "both": float(np.quantile(both, 0.99)),
        "match": float(np.quantile(matching, 0.99)),
        "match_many": float(np.median(batches)),
    }


def measure_merged(setting: Setting) -> Figures:
    """Add a third to very many, which are merged; meanwhile another thread should seldom wait."""
    stars = setting.small_stars()
    polygons = pa.table({"geometry": stars.wkb()})
    texts = pa.table({"filter": [f"name = 'n{bound!r}'" for bound in stars.bounds.tolist()]})
    return {"polygons": watch_merge(polygons), "texts": watch_merge(texts)}


def watch_merge(table: pa.Table) -> float:
    """The longest time for which a thread does not run that wants to each half millisecond."""
    ids = pa.array(np.random.default_rng(0).permutation(len(table)))
    table, few = table.append_column("id", ids), len(table) // 4
    matcher = add_all(table[few:])
    matcher.add_many(table[:few])
    longest, last, merging = 0.0, time.perf_counter(), find_merge()
    assert merging is not None, "a quarter is enough to be merged"
    while merging.is_alive():
        time.sleep(PROBED_S)
        longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
    assert matcher.stats()["segments"] == 1
    return longest


def find_merge() -> threading.Thread | None:
    """Find the thread that merges."""
    named = (thread for thread in threading.enumerate() if thread.name == "contrada-merge")
    return next(named, None)


class Churn(threading.Thread):
    """Adds a subscription each millisecond and removes it a hundred later; late ones at once."""

    def __init__(self, matcher: contrada.Matcher, fresh: Stars, first: int) -> None:
        """Take the polygons to add, and the first of their ids."""
        super().__init__()
        self.changed_per_s = 0.0
        self._matcher, self._fresh, self._first = matcher, fresh, first

    def run(self) -> None:
        """Add and remove, until all are added or the time is over."""
        schedule = Schedule()
        rows = zip(self._fresh.shapes, self._fresh.ranges(), strict=True)
        for id_, (shape, where) in enumerate(rows, self._first):
            if not schedule.wait():
                break
            self._matcher.add(id_, geometry=shape, where=where)
            if id_ >= self._first + CHURN_HELD:
                self._matcher.remove(id_ - CHURN_HELD)
        self.changed_per_s = schedule.count / schedule.passed_s()


class Schedule:
    """So many turns a second; whoever is late takes the next ones at once."""

    def __init__(self) -> None:
        """Begin now."""
        self._started = time.perf_counter()
        self.count = 0

    def passed_s(self) -> float:
        """Give the seconds since the beginning."""
        return time.perf_counter() - self._started

    def wait(self) -> bool:
        """Wait for the next turn; tell whether there is one."""
        time.sleep(max(0.0, self.count / PER_S - self.passed_s()))
        self.count += 1
        return self.passed_s() < CHURN_S


def measure_churn(setting: Setting) -> Figures:
    """Match an event each millisecond, while another thread adds and removes."""
    stars = setting.stars()
    matcher = add_all(pa.table({"geometry": stars.wkb(), "where": stars.ranges()}))
    match_first(matcher, stars)
    fresh = Stars(setting.rng, int(CHURN_S * PER_S), VERTICES)
    churn, schedule, taken = Churn(matcher, fresh, len(stars.shapes)), Schedule(), []
    churn.start()
    while schedule.wait():
        number = schedule.count % len(stars.shapes)
        event = stars.event(number)
        taken_s, found = timed(matcher.match, event)
        assert number in found
        taken.append(taken_s)
    churn.join()
    return {"match": float(np.quantile(taken, 0.99)), "changes": churn.changed_per_s}


def measure_dictionary(setting: Setting) -> Figures:
    """Add many subscriptions to one large polygon, which an Arrow dictionary holds once."""
    star, wkb = large_star(setting)
    column = pa.DictionaryArray.from_arrays(pa.array([0] * LARGE_SHARED, pa.int32()), wkb)
    before = settle()
    seconds, matcher = timed(add_all, pa.table({"geometry": column}))
    peak = read_peak() - before
    assert len(matcher.match(star.event(0))) == LARGE_SHARED
    return {"seconds": seconds, "peak": peak}


def measure_plain(setting: Setting) -> Figures:
    """Add the same as WKB, the polygon once in each row; beside it Arrow hashes the column."""
    star, wkb = large_star(setting)
    column = repeat(wkb[0].as_py(), LARGE_SHARED)
    before = settle()
    figures, matcher = setting.race(
        lambda: add_all(pa.table({"geometry": column})), column.dictionary_encode
    )
    gc.collect()
    figures |= {"resident": read_resident() - before, "peak": read_peak() - before}
    assert len(matcher.match(star.event(0))) == LARGE_SHARED
    return figures


def repeat(value: bytes, count: int) -> pa.Array:
    """Make a column of one value, in no more memory than it takes."""
    offsets = np.arange(count + 1, dtype=np.int32) * len(value)
    content = np.tile(np.frombuffer(value, np.uint8), count)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def large_star(setting: Setting) -> tuple[Stars, pa.Array]:
    """Draw one polygon of very many vertices, and write it."""
    star = Stars(setting.rng, 1, LARGE_VERTICES // setting.divisor)
    return star, star.wkb()


def measure_removed(setting: Setting) -> Figures:
    """Remove subscriptions that were added last, from engine `crtree`."""
    stars = Stars(setting.rng, REMOVED, VERTICES)
    matcher = contrada.Matcher("crtree")
    matcher.add_many(pa.table({"geometry": stars.wkb(), "where": stars.ranges()}))
    match_first(matcher, stars)

    def remove() -> None:
        for id_ in range(REMOVED):
            matcher.remove(id_)

    taken_s, _ = timed(remove)
    assert not matcher.match(stars.event(0))
    return {"removals": REMOVED / taken_s}


CASES = {
    "memory": measure_memory,
    "wkb": measure_wkb,
    "where": measure_where,
    "filter": measure_filter,
    "added": measure_added,
    "opened": measure_opened,
    "single": measure_single,
    "merged": measure_merged,
    "churn": measure_churn,
    "dictionary": measure_dictionary,
    "plain": measure_plain,
    "removed": measure_removed,
}


def main() -> None:
    """Measure the case that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for argument in ("name", "folder", "seed", "divisor"):
        parser.add_argument(argument)
    given = parser.parse_args()
    name, folder, seed, divisor = given.name, given.folder, given.seed, given.divisor
    warm_up("crtree" if name == "removed" else "strtree")
    print(json.dumps(CASES[name](Setting(Path(folder), int(seed), int(divisor)))))


if __name__ == "__main__":
    main()
