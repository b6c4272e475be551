"""A small snapshot of format 2 whose columns lie, with checksums that vouch for them."""

import random
import sys
import warnings
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from contrada import Matcher
from contrada.errors import InvalidInput
from contrada.files.sections import open_sections, write_sections
from contrada.files.text_columns import text_columns
from contrada.language import is_satisfied, truth
from contrada.model.event import Event, read_event
from contrada.model.subscription import Predicate

Column = NDArray[Any]
Columns = dict[str, Column]

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
HOLED = "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 2 1, 2 2, 1 1))"
PAIR = "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((2 2, 5 2, 5 5, 2 2), (3 2.2, 4 2.2, 4 2.4, 3 2.2)))"
LOOSE = "GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1))"
AREAS = f"GEOMETRYCOLLECTION({SQUARE}, POLYGON((5 5, 6 5, 6 6, 5 5)))"
AFTER = "T_AFTER(t, TIMESTAMP('2020-01-01T00:00:00Z'))"
FILTERS: tuple[tuple[str, str | int | None], ...] = (
    (f"S_INTERSECTS(geometry, {SQUARE}) AND n > 3", "u"),
    (f"S_WITHIN(geometry, {HOLED}) OR S_DISJOINT(area, {PAIR})", 7),
    (f"ehInside(area, {HOLED}) OR ehMeet(area, {SQUARE}) OR ehOverlap(area, {AREAS})", None),
    (f"S_TOUCHES(geometry, {LOOSE}) OR relate(geometry, {SQUARE}, 'T*F**F***')", "v"),
    ("dwithin(geometry, POINT(1 2), 5e5) OR dwithin(geometry, LINESTRING(0 0, 1 1), 700)", 7),
    (
        "S_EQUALS(geometry, MULTIPOINT((0 0), (1 1))) OR S_CROSSES(g, MULTILINESTRING((0 0, 1 1)))",
        8,
    ),
    ("name LIKE 'a%' AND name <> 'b' AND NOT name IN ('c', 'd') OR CASEI(name) = 'é'", "u"),
    ("n BETWEEN -5 AND 7.5 AND n <> 3 OR n + 2 > m * 3 OR n IN (1, m, 2.5)", None),
    (f"A_CONTAINS(tags, ('a', 1)) OR {AFTER} OR T_DURING(t, INTERVAL('2019-01-01', '..'))", "u"),
    (f"NOT S_CONTAINS(area, {SQUARE}) AND NOT n = 4 AND name IS NULL", "w"),
    ("p AND NOT q", None),
    ("TRUE", 7),
    ("FALSE", None),
)
SHAPES = [
    shapely.from_wkt(text)
    for text in (SQUARE, HOLED, PAIR, LOOSE, AREAS, "POINT(1 1)", "LINESTRING(0 0, 5 5, 5 6)")
]
EVENTS: list[dict[str, Any]] = [
    {"geometry": shape, "area": area, "n": n, "m": 1, "name": name, "tags": ["a", 1], "p": True}
    for shape, area, n, name in zip(
        SHAPES, reversed(SHAPES), (1, 2.5, 4, -5, 2**62, None, 3), "abcdé%_", strict=True
    )
]
TABLE = pa.table(
    {
        "geometry": shapely.to_wkb(SHAPES),
        "area": shapely.to_wkb(SHAPES[::-1]),
        "n": [1, 2, 4, -5, 2**62, None, 3],
        "name": list("abcdé%_"),
        "t": ["2021-01-01"] * 7,
    }
)
ENGINES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("strtree", {}),
    ("crtree", {}),
    ("scan", {}),
    ("ahs", {"level": 5, "universe": [0.0, 0.0, 12.0, 12.0]}),
)
NUMBERS = (-(2**63), -(2**62), -2, -1, 0, 1, 2, 3, 100, 2**31 - 1, 2**31, 2**62, 2**63 - 1)
REALS = (float("nan"), float("inf"), -float("inf"), -0.0, 1e308, -1e308, 5e-324, 1e-300, 91.0)
DTYPES = ("bool", "uint8", "int32", "int64", "uint64", "float32", "float64")
TESTS = ("=", "<>", "<", ">=", "s_within", "s_disjoint", "ehInside", "ehCovers", "covers")


def write_good(path: Path, ids: Callable[[int], Any] = str) -> tuple[Columns, dict[str, Any]]:
    """Write a good file, and return its columns and settings."""
    matcher = Matcher(simplify=False)
    for number, (text, subscriber) in enumerate(FILTERS):
        matcher.add(ids(number), text, subscriber=subscriber)
    matcher.save(path)
    file = open_sections(path)
    return {name: column.copy() for name, column in file.columns.items()}, dict(file.settings)


def open_and_use(path: Path, columns: Columns, settings: Mapping[str, Any]) -> str | None:
    """Write and open a file: return why it is refused, which names it, or use what opens."""
    write_sections(path, settings, columns)
    try:
        matcher = Matcher.open(path)
    except InvalidInput as fault:
        reason = str(fault)
        assert str(path) in reason
        return reason
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_answers(matcher)
        use(matcher, path.with_name("again.contrada"))
    return None


def check_answers(matcher: Matcher) -> None:
    """Compare a matcher with what its subscriptions say, one by one."""
    shown = {id_: matcher.get(id_) for id_ in matcher}
    assert [one.id for one in shown.values()] == sorted(shown) == list(matcher)
    shapes = matcher._subscriptions.living().pools.geometries.shapes()
    is_sure = matcher.engine != "ahs" and shapely.is_valid(shapes).all()
    for given in EVENTS:
        event, found = read_event(given), matcher.match(given)
        if is_sure:
            assert found == [
                id_ for id_, one in shown.items() if holds(matcher.engine, one.predicate, event)
            ]
        told = matcher.subscribers(given)
        assert set(told) == {shown[id_].subscriber for id_ in found} - {None}
        assert len(told) == len(set(told))
    pairs = [tuple(row.values()) for row in matcher.match_many(TABLE, threads=1).to_pylist()]
    if is_sure:
        rows = enumerate(TABLE.to_pylist())
        assert pairs == [(row, id_) for row, event in rows for id_ in matcher.match(event)]


def holds(engine: str, predicate: Predicate, event: Event) -> bool:
    """Whether an event satisfies a predicate: `scan` reads the tree, the others its filters."""
    if engine == "scan":
        return truth(predicate.expression, event) is True
    return any(
        all(is_satisfied(constraint, event) for constraint in filter_.constraints)
        for filter_ in predicate.filters
    )


def use(matcher: Matcher, path: Path) -> None:
    """Write out a matcher, change and save it, and add it to another one."""
    ids = list(matcher)
    assert all(isinstance(matcher.get(id_).text, str) for id_ in ids)
    matcher.stats()
    if ids:
        matcher.remove(ids[0])
        matcher.add(ids[0], "n > 1", subscriber="x")
    matcher.save(path)
    assert list(Matcher.open(path)) == ids
    try:
        assert Matcher().add_many(path) == len(ids)
    except InvalidInput as fault:
        reason = str(fault)
        assert str(path) in reason


# Lies


def change_column(column: Column, chance: random.Random) -> Column | None:
    """Make another column of one; None takes it out."""
    count = len(column)
    match chance.randrange(18):
        case 0:
            return None
        case 1:
            with np.errstate(invalid="ignore"):
                return column.astype(chance.choice(DTYPES))
        case 2:
            return column.reshape(chance.choice(((-1, 1), (1, -1), (-1,))))
        case 3:
            return column[: chance.randrange(count + 1)]
        case 4:
            return np.concatenate([column, column[: chance.randrange(count + 1)]])
        case 5:
            return column[::-1]
        case 6:
            return column[np.array(chance.sample(range(count), count), np.int64)]
        case 7:
            return column[np.array([chance.randrange(count) for _ in range(count)], np.int64)]
        case 8:
            return np.zeros_like(column)
        case 9 | 10:
            return _flip_bits(column, chance)
        case _:
            return _change_some(column, chance)


def _flip_bits(column: Column, chance: random.Random) -> Column:
    """Turn a bit of a few bytes."""
    changed = np.ascontiguousarray(column).copy()
    content = changed.reshape(-1).view(np.uint8)
    for _ in range(chance.choice((1, 2, 8)) if content.size else 0):
        content[chance.randrange(content.size)] ^= 1 << chance.randrange(8)
    return changed


def _change_some(column: Column, chance: random.Random) -> Column:
    """Put other values for a few."""
    if not column.size:
        return column
    changed = column.copy()
    flat = changed.reshape(-1)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        place = chance.randrange(flat.size)
        if column.dtype == bool:
            flat[place] = not flat[place]
        elif column.dtype.kind == "f":
            flat[place] = chance.choice((*REALS, chance.uniform(-9, 9), flat[0]))
        else:
            near = int(flat[place]) + chance.choice((-1, 1))
            limits = np.iinfo(column.dtype)
            wanted = chance.choice((*NUMBERS, near, near, int(chance.choice(flat.tolist()))))
            flat[place] = min(max(wanted, limits.min), limits.max)
    return changed


def change_texts(columns: Columns, name: str, chance: random.Random) -> None:
    """Put other texts for those of a column, if it still has any."""
    starts, content = columns.get(f"{name}.starts"), columns.get(f"{name}.bytes")
    try:
        texts = split_texts(starts, content)
    except (TypeError, UnicodeError):
        return  # another lie was there before
    for _ in range(chance.choice((1, 1, 2)) if texts else 0):
        place = chance.randrange(len(texts))
        texts[place] = _change_text(texts[place], texts, chance)
    columns.update(text_columns(name, pa.array(texts, pa.large_string())))


def split_texts(starts: Column | None, content: Column | None) -> list[str]:
    """List the texts of a column."""
    if starts is None or content is None:
        return []
    whole = content.tobytes()
    return [whole[a:b].decode() for a, b in pairwise(starts.reshape(-1).tolist())]


def _change_text(text: str, others: list[str], chance: random.Random) -> str:
    match chance.randrange(8):
        case 0:
            return chance.choice(("", "x", "%" * 2_000, "(", "\0", "null", "{}", "[]", "5"))
        case 1:
            return '{"op":"not","args":[' * chance.choice((1, 50, 2_000)) + text
        case 2:
            return f'{{"op":"not","args":[{text}]}}'
        case 3:
            return f'{{"op":"{chance.choice(("and", "or"))}","args":[{text},{text}]}}'
        case 4:
            return f'{{"op":"=","args":[{text},{chance.choice(("true", "null", "5"))}]}}'
        case 5:
            for old in TESTS:
                if f'"op":"{old}"' in text:
                    return text.replace(f'"op":"{old}"', f'"op":"{chance.choice(TESTS)}"')
            return text.replace('"property":"n"', '"property":"name"')
        case 6:
            return chance.choice(others)
        case _:
            return text[: chance.randrange(len(text) + 1)]


TEXTS = ("constraints.skeletons", "predicates.skeletons", "subscribers.texts", "texts", "ids")


def tell_lies(columns: Columns, chance: random.Random) -> Columns:
    """Return the columns with a lie or a few."""
    lying = columns.copy()
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if chance.random() < 0.3:
            change_texts(lying, chance.choice(TEXTS), chance)
            continue
        name = chance.choice(sorted(lying))
        changed = change_column(lying.pop(name), chance)
        if changed is not None:
            lying[name] = changed
    return lying


def use_lying_columns(folder: Path, seeds: range) -> tuple[int, int]:
    """Let a file lie once for each seed, and use what opens; count what was refused, and used."""
    path = folder / "x.contrada"
    goods = [write_good(path, ids) for ids in (str, int)]
    refused = 0
    for seed in seeds:
        print("columns", seed, file=sys.stderr)
        columns, settings = goods[seed % 2]
        engine, options = ENGINES[seed // 2 % len(ENGINES)]
        settings = {**settings, "engine": engine, "options": options}
        lying = tell_lies(columns, random.Random(seed))
        refused += open_and_use(path, lying, settings) is not None
    return refused, len(seeds) - refused
