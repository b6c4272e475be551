"""Files of columns whose checksums are right and whose bytes lie: refused, or used without harm.

The last seed on stderr is the one that fails. The long run is in a child process, so that a crash
is seen.
"""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contrada.errors import InvalidInput
from contrada.files.sections import open_sections, write_sections
from contrada.limits import DIRECTORY_BYTES_MAX
from damaging import damage, overwrite, seal
from damaging_sections import (
    open_and_use,
    open_damaged_sections,
    place_of,
    with_directory,
    write_small,
)

SEEDS = 1_000
SEEDS_OF_SOAK = 200_000
RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from damaging_sections import open_damaged_sections
open_damaged_sections(Path(sys.argv[2]), range(int(sys.argv[3]), int(sys.argv[4])))
"""

Directory = dict[str, Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A good file with a column of two rows, "a", and one of truth values, "b"."""
    columns = {"a": np.arange(8).reshape(2, 4), "b": np.array([True, False])}
    write_sections(tmp_path / "x.contrada", {"c": 1}, columns)
    return tmp_path / "x.contrada"


def refusal(path: Path, content: bytes) -> str:
    """The message with which a content is refused, whether it is verified or not."""
    overwrite(path, content)
    messages = set()
    for verify in (True, False):
        with pytest.raises(InvalidInput) as caught:
            open_sections(path, verify=verify)
        messages.add(str(caught.value))
    (message,) = messages
    assert message.startswith(f"{path}: is not a valid snapshot: ")
    return message.removeprefix(f"{path}: is not a valid snapshot: ")


def set_in(*keys: Any) -> Callable[[Directory], None]:
    """A change of a directory: the last is the value to put at the place of the others."""
    *parents, last, value = keys

    def change(directory: Directory) -> None:
        target: Any = directory
        for key in parents:
            target = target[key]
        target[last] = value

    return change


SIZES = "not one or two sizes"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (set_in("columns", 0, "offset", 0), "column 'a' begins at byte 0, not at 64"),
        (set_in("columns", 0, "offset", 65), "column 'a' begins at byte 65, not at 64"),
        (set_in("columns", 0, "offset", -64), "column 'a' begins at byte -64, not at 64"),
        (set_in("columns", 0, "offset", 2**64), f"column 'a' begins at byte {2**64}, not at 64"),
        (set_in("columns", 0, "offset", None), "column 'a' begins at byte None, not at 64"),
        (set_in("columns", 1, "offset", 64), "column 'b' begins at byte 64, not at 128"),
        (set_in("columns", 1, "offset", 192), "column 'b' begins at byte 192, not at 128"),
        (set_in("columns", 0, "shape", [3, 4]), "column 'b' begins at byte 128, not at 192"),
        (set_in("columns", 1, "shape", [65]), "column 'b' ends at byte 193, but the directory"),
        (set_in("columns", 1, "shape", [2**40, 2**40]), "column 'b' ends at byte 12089258196"),
        (set_in("columns", 1, "shape", [0]), "its directory begins at byte 192, not at 128"),
        (set_in("columns", 1, "shape", []), f"column 'b' has the shape [], {SIZES}"),
        (set_in("columns", 1, "shape", [1, 1, 2]), f"column 'b' has the shape [1, 1, 2], {SIZES}"),
        (set_in("columns", 1, "shape", [-2]), f"column 'b' has the shape [-2], {SIZES}"),
        (set_in("columns", 1, "shape", [2.0]), f"column 'b' has the shape [2.0], {SIZES}"),
        (set_in("columns", 1, "shape", [True]), f"column 'b' has the shape [True], {SIZES}"),
        (set_in("columns", 1, "shape", [2**62, 0]), f"column 'b' has the shape [{2**62}, 0]"),
        (set_in("columns", 1, "shape", 2), f"column 'b' has the shape 2, {SIZES}"),
        (set_in("columns", 1, "dtype", "object"), "column 'b' is of type 'object', not bool, "),
        (set_in("columns", 1, "dtype", ">i8"), "column 'b' is of type '>i8', not bool, "),
        (set_in("columns", 1, "dtype", ["bool"]), "column 'b' is of type ['bool'], not bool, "),
        (set_in("columns", 1, "name", "a"), "column 'a' comes after 'a': names must ascend"),
        (set_in("columns", 0, "name", "c"), "column 'b' comes after 'c': names must ascend"),
        (set_in("columns", 1, "name", 5), "the name of a column is not Unicode text: 5"),
        (
            set_in("columns", 1, "name", "\ud800"),
            "the name of a column is not Unicode text: '\\ud8",
        ),
        (set_in("columns", 1, "more", 1), "a column does not have the fields dtype, name, offset"),
        (set_in("columns", 1, "b"), "a column does not have the fields dtype, name, offset, shape"),
        (set_in("columns", {}), "its columns are not a list: {}"),
        (set_in("columns", []), "its directory begins at byte 192, not at 64, where the columns"),
        (set_in("more", 1), 'its directory is not an object of "columns" and "settings"'),
        (set_in("settings", []), "its settings are not a JSON object: []"),
        (set_in("settings", None), "its settings are not a JSON object: None"),
    ],
)
def test_a_directory_that_lies_is_refused(
    path: Path, change: Callable[[Directory], None], fault: str
) -> None:
    content = path.read_bytes()
    directory = json.loads(content[place_of(content) :])
    change(directory)
    lying = with_directory(content, json.dumps(directory).encode())
    assert refusal(path, lying).startswith(fault)


@pytest.mark.parametrize(
    ("directory", "fault"),
    [
        (b"", "its directory is not JSON: Expecting value"),
        (b"{", "its directory is not JSON: Expecting property name"),
        (b"5", 'its directory is not an object of "columns" and "settings": 5'),
        (b'{"settings": {}}', 'its directory is not an object of "columns" and "settings"'),
        (b"\xff", "its directory is not JSON: 'ascii' codec"),
        ('{"settings": {}}'.encode("utf-16"), "its directory is not JSON: 'ascii' codec"),
        (b"[" * 100_000, "its directory is not JSON: maximum recursion depth"),
        (b"9" * 5_000, "its directory is not JSON: Exceeds the limit"),
        (b" " * (DIRECTORY_BYTES_MAX + 1), "its directory has 16,777,217 bytes, more than"),
        (
            b'{"columns": [], "settings": {"a": ' + b"[" * 64 + b"]" * 64 + b"}}",
            "its settings are nested deeper than 64 (JSON_DEPTH_MAX)",
        ),
    ],
    ids=range(10),
)
def test_a_directory_that_is_none_is_refused(path: Path, directory: bytes, fault: str) -> None:
    assert refusal(path, with_directory(path.read_bytes(), directory)).startswith(fault)


@pytest.mark.parametrize("place", [0, 1, 63, 64, 191, 193, 10_000, 2**62, 2**63, 2**64 - 1])
def test_another_place_of_the_directory_is_refused(path: Path, place: int) -> None:
    content = path.read_bytes()
    moved = with_directory(content, content[place_of(content) :], place)
    assert refusal(path, moved).startswith("its directory is not JSON: ")


def test_a_directory_behind_a_gap_is_refused(path: Path) -> None:
    content = path.read_bytes()
    place = place_of(content)
    moved = with_directory(content, bytes(64) + content[place:], place + 64)
    assert refusal(path, moved).startswith("its directory begins at byte 256, not at 192, where")


def test_a_byte_that_is_no_truth_value_is_refused(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[129] = 255
    expected = "column 'b' is of type 'bool' and holds the byte 255"
    assert refusal(path, seal(bytes(content))) == expected


def test_every_byte_of_a_directory_may_be_another(path: Path) -> None:
    content = write_small(path)
    place = place_of(content)
    others = [*b'0189-.eE"[]{}:, nabt\\', 0, 127, 128, 255]
    for position in range(place, len(content)):
        byte = content[position]
        for other in {*others, *(byte ^ (1 << bit) for bit in range(8))} - {byte}:
            changed = content[place:position] + bytes([other]) + content[position + 1 :]
            open_and_use(path, with_directory(content, changed), verify=position % 2 == 0)


def test_every_byte_of_the_first_sixteen_may_be_another(path: Path) -> None:
    content = path.read_bytes()
    for position in range(16):
        for other in range(256):
            changed = content[:position] + bytes([other]) + content[position + 1 :]
            open_and_use(path, seal(changed))


def test_damage_of_any_kind_is_refused_where_the_checksums_are_not_made_again(path: Path) -> None:
    numbers = np.random.default_rng(5)
    columns = {"a": numbers.random((5_000, 4)), "b": numbers.integers(0, 9, 9_000)}
    write_sections(path, {"c": "d"}, columns)
    content = path.read_bytes()
    for seed in range(1_000):
        damaged = damage(content, random.Random(seed))
        if damaged == content:
            continue
        overwrite(path, damaged)
        with pytest.raises(
            InvalidInput, match=r"x\.contrada: is (damaged|truncated|too long|not a)"
        ):
            open_sections(path)


def test_damaged_columns_and_directories_are_refused_or_used(tmp_path: Path) -> None:
    open_damaged_sections(tmp_path, range(SEEDS))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_much_damage_neither_ends_the_process_nor_gives_another_error(tmp_path: Path) -> None:
    start = random.SystemRandom().randrange(10**9)
    seeds = [str(start), str(start + SEEDS_OF_SOAK)]
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", RUN, tests, str(tmp_path), *seeds],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
