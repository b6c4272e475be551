"""Transitions of real tracks: `Tracker.follow` against matching alone, and against GeoPandas.

`adsb_paris_2021` (284,505 positions of 213 aircraft) through `fr_communes_paris_basin` (5,702
polygons that tile), relation `intersects`, from an Arrow table of WKB in memory:

- `match` is `Matcher.match_many` on the same positions, which says where each of them is;
- `follow` is `Tracker.follow` with all kinds: enters, insides, exits, crossings; by a new tracker
  each time over one matcher, both with a thread for each core;
- `by hand` is a careful script of a person with GeoPandas: `sjoin`, sort, `shift`; it gives enters
  and exits alone, and these are the same rows.

What is ready beforehand is ready for all: the index of the polygons, and what the first run builds.
Runs take turns in an order drawn anew each time (seed 1); medians of seven.

    python benchmarks/transitions.py [--data ../shared/data] [--repeats 7]

What is asked: `follow` at 0.4 times the speed of `match` or more, and twice that of `by hand`. The
table goes to `results/transitions.txt` beside this file. The exit code is 1 where a target is
missed.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely

import contrada
from contrada.reproduce.reporting import Column
from reporting import Report, count, ratio, seconds

FENCES, POSITIONS = "fr_communes_paris_basin", "adsb_paris_2021"
MATCH, FOLLOW, BY_HAND = "match", "follow", "by hand"

Rows = set[tuple[str, str, str, Any, int]]


def main() -> int:
    """Measure; print a table and what was reached, and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"skipped: no data layers at {options.data}")
        return 0
    report = Report("transitions", "geopandas", "pandas", "pyarrow")
    table = report.start_table(
        Column("positions", width_min=16, is_text=True),
        *map(count, ("matches", "rows", "enter", "exit", "cross")),
        *map(seconds, (MATCH, FOLLOW, BY_HAND)),
        *(ratio(f"{other}/{FOLLOW}") for other in (MATCH, BY_HAND)),
    )
    fences = pq.read_table(options.data / f"{FENCES}.parquet")
    positions = pq.read_table(options.data / f"{POSITIONS}.parquet")
    contenders = make_contenders(fences, positions)
    counts = check(contenders)
    times = measure(contenders, options.repeats)
    ratios = [times[other] / times[FOLLOW] for other in (MATCH, BY_HAND)]
    table.add(POSITIONS, *counts, *times.values(), *ratios)
    report.ask_ratio(f"{FOLLOW} to {MATCH}", ratios[0], least=0.4)
    report.ask_ratio(f"{FOLLOW} to {BY_HAND}", ratios[1], least=2)
    return report.finish()


def make_contenders(fences: pa.Table, positions: pa.Table) -> dict[str, Callable[[], Any]]:
    """Give what each contender does with the positions; all fences are ready."""
    matcher = contrada.Matcher()
    matcher.add_many(fences.rename_columns({"code": "id"}))
    frame = geopandas.GeoDataFrame(
        {"fence": fences["code"].to_numpy()}, geometry=shapely.from_wkb(fences["geometry"])
    )
    frame.sindex.query(shapely.Point(0, 0))
    return {
        MATCH: lambda: matcher.match_many(positions),
        FOLLOW: lambda: contrada.Tracker(matcher).follow(positions),
        BY_HAND: lambda: follow_by_hand(frame, positions),
    }


def follow_by_hand(fences: geopandas.GeoDataFrame, positions: pa.Table) -> pd.DataFrame:
    """Find enters and exits with GeoPandas, without a loop over objects or positions."""
    track = pd.DataFrame(
        {
            "object": positions["object_id"].to_pandas().astype("category").cat.codes,
            "time": positions["time"].to_numpy(),
        }
    )
    track["event"] = np.arange(len(track))
    track = track.sort_values(["object", "time", "event"], ignore_index=True)
    places = geopandas.GeoDataFrame(
        geometry=shapely.from_wkb(positions["geometry"].to_numpy())[track["event"]]
    )
    found = geopandas.sjoin(places, fences)  # the index is the place in the sorted track
    pairs = pd.DataFrame({"at": found.index, "fence": found["index_right"].to_numpy()})
    pairs["object"] = track["object"].to_numpy()[pairs["at"]]
    pairs = pairs.sort_values(["object", "fence", "at"], ignore_index=True)
    before, after = pairs.shift(1), pairs.shift(-1)
    keys = ["object", "fence"]
    is_on = (pairs[keys] == before[keys]).all(axis=1) & (pairs["at"] == before["at"] + 1)
    goes_on = (pairs[keys] == after[keys]).all(axis=1) & (pairs["at"] + 1 == after["at"])
    last = track.index[track["object"] != track["object"].shift(-1)]
    ends = ~goes_on & ~pairs["at"].isin(last)
    enters = pairs.loc[~is_on].assign(transition="enter")
    exits = pairs.loc[ends].assign(transition="exit", at=pairs.loc[ends, "at"] + 1)
    rows = pd.concat([enters, exits])
    rows["fence"] = fences["fence"].to_numpy()[rows["fence"]]
    rows["time"] = track["time"].to_numpy()[rows["at"]]
    rows["event"] = track["event"].to_numpy()[rows["at"]]
    rows["object"] = positions["object_id"].to_pandas().to_numpy()[rows["event"]]
    return rows.sort_values(["time", "object", "event", "fence"], ignore_index=True)


def check(contenders: dict[str, Callable[[], Any]]) -> list[int]:
    """Run each contender once, which warms it up; refuse other rows, and count some."""
    matches, rows, by_hand = (contenders[name]() for name in (MATCH, FOLLOW, BY_HAND))
    kinds = ("enter", "exit", "cross")
    of_kind = {kind: rows.filter(pc.equal(rows["transition"], kind)) for kind in kinds}
    mine = {
        (row["object"], row["subscription"], kind, row["time"].timestamp(), row["event"])
        for kind in ("enter", "exit")
        for row in of_kind[kind].to_pylist()
    }
    theirs = {
        (row.object, row.fence, row.transition, row.time.timestamp(), row.event)
        for row in by_hand.assign(time=by_hand["time"].dt.tz_localize("UTC")).itertuples()
    }
    assert mine == theirs, "the same rows"
    return [len(matches), len(rows), *(len(of_kind[kind]) for kind in kinds)]


def measure(contenders: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Give the median time of each contender."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    order = random.Random(1)
    for _ in range(repeats):
        for name in order.sample(list(contenders), len(contenders)):
            started = time.perf_counter()
            contenders[name]()
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(taken) for name, taken in times.items()}


if __name__ == "__main__":
    sys.exit(main())
