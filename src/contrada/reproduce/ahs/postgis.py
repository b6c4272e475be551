"""PostGIS, where `psql` reaches one: the same query as Figure 4's, in a temporary table.

Nothing is left in the database. Where it is, and who asks, `psql` takes from its own settings.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from statistics import median

from shapely import Point, Polygon

_ASKING_S, _WORKING_S = 10, 600
_REPEATS = 5
_OPTIONS = ("-w", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1")  # no password is asked for
_TIME = re.compile(r"^Time: ([0-9.]+) ms", re.MULTILINE)


def find_postgis() -> str | None:
    """Return the version of the PostGIS that `psql` reaches without a password, or None."""
    try:
        return _ask("select postgis_lib_version();", _ASKING_S).strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


def time_postgis(city: Polygon, point: Point, copies: Sequence[int]) -> list[float]:
    """Return the median µs of a query for each number of copies; none if the database fails."""
    try:
        answer = _ask("\n".join(_write_script(city, point, copies)), _WORKING_S)
    except (OSError, subprocess.SubprocessError):
        return []
    times = [float(ms) * 1e3 for ms in _TIME.findall(answer)]
    per_size = _REPEATS + 1
    rows = [times[i : i + per_size] for i in range(0, len(times), per_size)]
    return [median(row[1:]) for row in rows]


def _write_script(city: Polygon, point: Point, copies: Sequence[int]) -> Iterator[str]:
    yield "create temporary table fences (id serial, shape geometry);"
    yield "create index on fences using gist (shape);"
    before = 0
    for count in copies:
        yield "\\timing off"
        yield f"insert into fences (shape) select '{city.wkb_hex}'"
        yield f"from generate_series(1, {count - before});"
        yield "analyze fences;"
        yield "\\timing on"
        where = f"where ST_Within('{point.wkb_hex}'::geometry, shape);"
        yield from [f"select count(*) from fences {where}"] * (_REPEATS + 1)  # noqa: S608
        before = count


def _ask(script: str, timeout_s: float) -> str:
    """Run a script; what fails in it, or no `psql`, raises."""
    psql = shutil.which("psql")
    if psql is None:
        raise FileNotFoundError("psql")
    return subprocess.run(  # noqa: S603  (what runs is the psql of PATH)
        [psql, *_OPTIONS],
        input=script,
        env={**os.environ, "LC_ALL": "C", "PGCONNECT_TIMEOUT": "3"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=True,
    ).stdout
