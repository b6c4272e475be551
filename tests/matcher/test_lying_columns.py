"""Snapshots of format 2 whose checksum is right and whose columns lie.

Each is refused by name, or what opens can be used: every answer is what its subscriptions say. That
its filters are those of its predicates is believed, as it was when they were added; so is that
geometries are valid. The last seed on stderr is the one that fails.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from contrada import InvalidInput, Matcher
from contrada.files.text_columns import text_columns
from damaging import overwrite
from damaging_sections import place_of
from lying_columns import check_answers, open_and_use, split_texts, write_good

if TYPE_CHECKING:
    from collections.abc import Callable

    from lying_columns import Column, Columns

SEEDS = 200
SEEDS_OF_SOAK = 20_000
RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from lying_columns import use_lying_columns
print(*use_lying_columns(Path(sys.argv[2]), range(int(sys.argv[3]), int(sys.argv[4]))))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.contrada"


def run(folder: Path, first: int, count: int) -> tuple[int, int]:
    """Use lying columns in a child process, so that a crash is seen."""
    tests = str(Path(__file__).parents[1])
    arguments = [tests, str(folder), str(first), str(first + count)]
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", RUN, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    refused, used = map(int, done.stdout.split())
    return refused, used


def test_columns_that_lie_are_refused_or_used(tmp_path: Path) -> None:
    refused, used = run(tmp_path, 0, SEEDS)
    assert refused > SEEDS / 2
    assert used > SEEDS / 8


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_many_lies_neither_end_the_process_nor_give_another_error(tmp_path: Path) -> None:
    run(tmp_path, random.SystemRandom().randrange(10**9), SEEDS_OF_SOAK)


def test_the_columns_of_a_good_file_are_used(path: Path) -> None:
    for ids in (str, int):
        assert open_and_use(path, *write_good(path, ids)) is None


def test_columns_of_unknown_names_are_skipped(path: Path) -> None:
    columns, settings = write_good(path)
    more = {
        "strtree.order": np.arange(5),
        "filters.later": np.zeros((2, 2)),
        "geometry": np.ones(3),
    }
    assert open_and_use(path, columns | more, settings) is None


# One lie at a time


def put(place: int, value: Any) -> Callable[[Column], Column]:
    """Change one value of a column, or a row."""

    def change(column: Column) -> Column:
        changed = column.copy()
        changed[place] = value
        return changed

    return change


def as_type(kind: str) -> Callable[[Column], Column]:
    return lambda column: column.astype(kind)


def cut(column: Column) -> Column:
    return column[:-1]


def grow(column: Column) -> Column:
    return np.concatenate([column, column[-1:]])


NAN, INFINITY = float("nan"), float("inf")
LIES: dict[str, list[tuple[Callable[[Column], Column], str]]] = {
    "ids": [
        (as_type("int32"), "is int32 of shape (13,), not int64 in one dimension"),
        (lambda column: column[:, None], "is int64 of shape (13, 1), not int64 in one dimension"),
        (put(1, 0), "has an id twice"),
        (grow, "has an id twice"),
        (cut, "has 13 rows, and there are 12 ids"),
    ],
    "subscribers.codes": [
        (put(0, -2), "has a number that is not from -1 to "),
        (put(0, 6), "has a number that is not from -1 to "),
        (cut, "has 12 rows, and there are 13 ids"),
        (lambda column: column[:3], "has fewer rows than there are subscribers"),
    ],
    "subscribers.integers": [(as_type("float64"), "is float64"), (cut, "has a number")],
    "subscribers.texts.starts": [
        (put(1, 5), "is damaged"),
        (put(0, 1), "from 1"),
        (put(-1, 2**62), "to 46116860"),
    ],
    "subscribers.texts.bytes": [(put(0, 255), "is damaged: Invalid UTF8"), (cut, "to 3")],
    "predicates.which": [
        (put(0, -1), "has a number that is not from 0 to 12"),
        (put(0, 13), "has a number that is not from 0 to 12"),
        (as_type("int64"), "is int64"),
        (cut, "has 12 rows, and there are 13 ids"),
    ],
    "predicates.operands": [
        (put(0, -1), "has a number without an operand"),
        (put(0, 9), "has a number without an operand"),
        (put(0, 2**63 - 1), "has a number without an operand"),
        (grow, "has 32 rows, not 31"),
    ],
    "constraints.which": [(put(0, 28), "has a number that is not from 0 to 27")],
    "constraints.operands": [(put(0, -(2**63)), "has a number without an operand"), (cut, "30")],
    "constraints.is_negated": [
        (cut, "has 29 rows, not 30"),
        (as_type("uint8"), "is uint8"),
        (put(1, True), "negated, is not a constraint"),
        (np.invert, "is not a constraint"),
    ],
    "filters.owners": [
        (put(0, 2), "decreases"),
        (put(0, -1), "has a number that is not from 0 to 12"),
        (put(-1, 13), "has a number that is not from 0 to 12"),
        (cut, "does not divide the constraints"),
    ],
    "filters.starts": [
        (put(0, 1), "does not divide the constraints"),
        (put(1, 4), "does not divide the constraints"),
        (put(-1, 2**62), "does not divide the constraints"),
        (put(2, -(2**63)), "does not divide the constraints"),
        (lambda column: column[:0], "does not divide the constraints"),
    ],
    "filters.constraints": [(put(0, 30), "not from 0 to 29"), (put(0, -1), "not from 0 to 29")],
    "numbers.bits": [
        (put(1, np.float64(NAN).view(np.int64)), "has a number that is not finite"),
        (put(1, np.float64(INFINITY).view(np.int64)), "has a number that is not finite"),
        (cut, "has 9 rows, not 8"),
    ],
    "numbers.is_whole": [(cut, "has 8 rows, not 9")],
    "moments.ns": [(as_type("float64"), "is float64"), (cut, "without an operand")],
    "intervals.ns": [
        (lambda column: column.reshape(-1), "not int64 in two dimensions"),
        (lambda column: column[:, :1], "has 1 numbers in a row, not 2"),
        (lambda column: column[:, ::-1], "has an interval that ends before it begins"),
        (cut, "without an operand"),
    ],
    "texts.starts": [(put(1, 8), "is damaged"), (cut, "to ")],
    "texts.bytes": [(put(0, 0xC3), "is damaged: Invalid UTF8")],
    "geometries.kinds": [
        (put(0, 9), "kinds"),
        (put(0, 2), "kinds"),
        (put(0, 7), "GEOMETRYCOLLECTION"),
    ],
    "geometries.parts": [(put(1, 7), "parts"), (put(-1, 2**62), "parts")],
    "geometries.rings": [(put(1, -1), "rings"), (put(1, 0), "rings")],
    "geometries.vertices": [
        (put(1, 3), "vertices"),
        (put(-1, 34), "vertices"),
        (cut, "ends with 11, not with 10"),
    ],
    "geometries.coordinates": [
        (put(0, NAN), "coordinates"),
        (put(0, INFINITY), "coordinates"),
        (put(0, (7.0, 7.0)), "not closed"),
        (as_type("float32"), "coordinates"),
        (lambda column: column[:, :1], "coordinates"),
    ],
    "geometries.collections": [(put(0, 0), "collections"), (put(0, 4), "collections")],
    "geometries.wkb_starts": [(put(1, 251), "wkb_starts"), (put(1, 178), "wkb")],
    "geometries.wkb": [(put(0, 0), "wkb"), (put(1, 99), "wkb"), (cut, "wkb")],
}
TEXTS = ("ids", "predicates.skeletons", "constraints.skeletons")
LIES |= {
    f"{name}.{part}": lies
    for name in TEXTS
    for part, lies in {
        "starts": [
            (put(1, 2**40), "is damaged"),
            (put(1, -1), "is damaged"),
            (put(0, 1), "from 1"),
            (put(-1, 2**62), "to 46116860"),
            (as_type("int32"), "is of int32"),
            (put(2, 0), "is damaged"),
        ],
        "bytes": [
            (put(0, 255), "is damaged: Invalid UTF8"),
            (cut, "to "),
            (as_type("int64"), "is of int64"),
        ],
    }.items()
}
ONE_BY_ONE = [
    pytest.param(name, change, reason, id=f"{name}-{number}")
    for name, lies in LIES.items()
    for number, (change, reason) in enumerate(lies)
]


@pytest.mark.parametrize(("name", "change", "reason"), ONE_BY_ONE)
def test_a_lie_is_refused_by_name(
    path: Path, name: str, change: Callable[[Column], Column], reason: str
) -> None:
    columns, settings = write_good(path, str if name.startswith("ids.") else int)
    columns[name] = change(columns[name])
    assert reason in str(open_and_use(path, columns, settings))


def test_every_column_has_lies_of_its_own(path: Path) -> None:
    assert {name for ids in (str, int) for name in write_good(path, ids)[0]} == LIES.keys()


def test_a_column_that_is_not_there_is_refused_by_name(path: Path) -> None:
    columns, settings = write_good(path)
    for name in columns:
        others = {other: column for other, column in columns.items() if other != name}
        assert name.split(".")[-1] in str(open_and_use(path, others, settings))


def change_text(columns: Columns, name: str, place: int, text: str) -> None:
    texts = split_texts(columns[f"{name}.starts"], columns[f"{name}.bytes"])
    texts[place] = text
    columns.update(text_columns(name, pa.array(texts, pa.large_string())))


N_IS_1 = '{"op":"=","args":[{"property":"n"},1]}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read at 1: "),
        ("n > 1", "cannot be read at 1: "),
        ("5", "cannot be read at 1: "),
        ('{"op":"quux","args":[{"property":"n"},1]}', "cannot be read at 1: "),
        ('{"op":"not","args":[' * 3_000, "cannot be read at 1: "),
        ('{"op":"=","args":[{"property":"n"}]}', "cannot be read at 1: "),
        (f'{{"op":"not","args":[{N_IS_1}]}}', "at 1, is not a constraint"),
        (f'{{"op":"or","args":[{{"property":"p"}},{N_IS_1}]}}', "at 1, is not a constraint"),
        ('{"op":"and","args":[true]}', "rows, not"),
        ('{"op":"=","args":[1,1]}', "rows, not"),
        ('{"op":"between","args":[{"property":"n"},1,2]}', "rows, not"),
        ('{"op":"+","args":[{"property":"n"},1]}', "cannot be read at 1: "),
    ],
)
def test_a_skeleton_that_is_not_a_constraint_is_refused(path: Path, text: str, reason: str) -> None:
    columns, settings = write_good(path)
    change_text(columns, "constraints.skeletons", 1, text)
    assert reason in str(open_and_use(path, columns, settings))


def test_ids_in_another_order_are_put_in_order(path: Path) -> None:
    for ids in (str, int):
        columns, settings = write_good(path, ids)
        expected = Matcher.open(path)
        if ids is int:
            columns["ids"] = columns["ids"][::-1]
        else:
            texts = split_texts(columns["ids.starts"], columns["ids.bytes"])[::-1]
            columns.update(text_columns("ids", pa.array(texts, pa.large_string())))
        assert open_and_use(path, columns, settings) is None
        assert list(Matcher.open(path)) == list(expected)


def test_an_id_that_is_repeated_or_null_is_refused(path: Path) -> None:
    columns, settings = write_good(path)
    is_there = np.ones(13, bool)
    is_there[2] = False
    reason = open_and_use(path, columns | {"ids.is_there": is_there}, settings)
    assert "column 'ids' has a null" in str(reason)
    change_text(columns, "ids", 2, "0")
    assert "column 'ids' has an id twice" in str(open_and_use(path, columns, settings))


def test_a_subscriber_that_is_listed_twice_is_told_once(path: Path) -> None:
    columns, settings = write_good(path)
    change_text(columns, "subscribers.texts", 1, "u")
    columns["subscribers.integers"][1] = 7
    assert open_and_use(path, columns, settings) is None


# Damage


def test_damage_without_new_checksums_is_always_refused(path: Path) -> None:
    write_good(path)
    content = path.read_bytes()
    place, chance = place_of(content), random.Random(4)
    places = [*range(64), *range(place, len(content))]
    places += [chance.randrange(len(content)) for _ in range(1_000)]
    for at in places:
        damaged = bytearray(content)
        damaged[at] ^= 1 << chance.randrange(8)
        overwrite(path, damaged)
        with pytest.raises(InvalidInput, match=r"x\.contrada: is "):
            Matcher.open(path)
    overwrite(path, content)
    check_answers(Matcher.open(path))
