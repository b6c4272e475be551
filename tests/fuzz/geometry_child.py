"""The process that may die: gives strange geometries to the matcher, each noted before it is tried.

    python -m fuzz.geometry_child PROGRESS SEED COUNT [SECONDS]

`PROGRESS` always holds the seed that is being tried. Only errors of Contrada's own may come out.
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from contrada import ContradaError, Matcher
from fuzz.geometry_values import make

if TYPE_CHECKING:
    from collections.abc import Callable

AREA = "POLYGON((0 0,4 0,4 4,0 0))"
MEMORY_BYTES_MAX = 12 * 2**30  # of addresses, not of memory: compiled kernels take much of them
RELATIONS = ("intersects", "disjoint", "ehMeet")


def try_value(matchers: list[Matcher], value: Any) -> int:
    """Give a value to every door; how many of them took it."""
    calls: list[Callable[[], object]] = [
        partial(matcher.match, {"geometry": value}) for matcher in matchers
    ]
    calls.append(partial(Matcher().add, "t", geometry=value))
    for kind in (pa.binary(), pa.string()):
        column = as_column(value, kind)
        if column is not None:
            table = pa.table({"geometry": column})
            calls.append(partial(matchers[0].match_many, table, threads=1))
            calls.append(partial(matchers[0].match_many, table, threads=1, repair=True))
            calls.append(partial(Matcher().add_many, table, repair=True))
    return sum(attempt(call) for call in calls)


def attempt(call: Callable[[], object]) -> bool:
    """Whether a call succeeds; it may fail with an error of ours and with no other."""
    try:
        call()
    except ContradaError:
        return False
    return True


def as_column(value: Any, kind: pa.DataType) -> pa.Array | None:
    """The value between two good ones, if Arrow can hold it."""
    good = AREA if pa.types.is_string(kind) else None
    try:
        return pa.array([good, value, None], kind)
    except (pa.ArrowException, TypeError, UnicodeError, ValueError):
        return None


def main(progress: Path, first: int, count: int, seconds: float) -> None:
    """Try seeds in turn, until there are enough of them or time is up."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    matchers = [Matcher(engine) for engine in ("strtree", "crtree", "scan")]
    for matcher in matchers:
        for relation in RELATIONS:
            matcher.add(relation, geometry=AREA, relation=relation)
    end = time.monotonic() + seconds
    with progress.open("r+b", buffering=0) as note:
        for seed in range(first, first + count):
            note.seek(0)
            note.write(b"%20d" % seed)
            try_value(matchers, make(seed))
            if time.monotonic() > end:
                break


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("progress", type=Path, help="the file that says which seed is tried")
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("count", type=int, help="how many seeds")
    parser.add_argument("seconds", type=float, nargs="?", default=1e9, help="at most")
    main(**vars(parser.parse_args()))
