"""A small file of columns whose directory lies, with checksums that vouch for it."""

import json
import random
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib.array_utils import byte_bounds

from contrada.errors import InvalidInput
from contrada.files.sections import Sections, open_sections, write_sections
from contrada.files.text_columns import binary_array, binary_columns, text_array, text_columns
from damaging import damage, overwrite, seal

VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 7, 63, 64, 65, 128, 2**31, 2**40, 2**63, 2**64, 10**400, 1.5, 64.0),
    *(float("nan"), float("inf"), "", "a", "bool", "uint8", "int64", "object", "\ud800", [], {}),
    *([0], [1], [2, 3], [1, 1, 1], [-1], [2**62, 4], [2**62, 0], {"a": 1}),
]


def write_small(path: Path) -> bytes:
    """Write a file with a column of every kind."""
    columns = {
        "starts": np.array([0, 3, 5]),
        "boxes": np.arange(8.0).reshape(2, 4),
        "mask": np.array([True, False, True]),
        "nothing": np.zeros((0, 4), np.float32),
        **text_columns("text", pa.array(["a", None, "é"])),
        **binary_columns("wkb", pa.array([b"\x01", b"", b"\xff"])),
    }
    write_sections(path, {"engine": "strtree", "options": {"level": [1]}}, columns)
    return path.read_bytes()


def place_of(content: bytes) -> int:
    """Where the directory of a file begins."""
    place: int = struct.unpack_from("<Q", content, 8)[0]
    return place


def with_directory(content: bytes, directory: bytes, place: int | None = None) -> bytes:
    """The same columns with another directory, or another place of it, and right checksums."""
    before = content[: place_of(content)]
    stated = struct.pack("<Q", place_of(content) if place is None else place)
    return seal(before[:8] + stated + before[16:] + directory)


def change_one(value: Any, chance: random.Random) -> Any:
    """Put something else for one value at any depth of a JSON value, or take it out."""
    if isinstance(value, dict | list) and value and chance.random() < 0.85:
        changed = value.copy()
        key = (
            chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
        )
        match chance.randrange(12):
            case 0:
                del changed[key]
            case 1 if isinstance(changed, list):
                changed.insert(key, chance.choice(value))
            case 2 if isinstance(changed, list):
                chance.shuffle(changed)
            case _:
                changed[key] = change_one(value[key], chance)
        return changed
    return chance.choice(VALUES)


def use(sections: Sections) -> None:
    """Touch every byte of every column; none may lie outside the columns of the file."""
    for column in sections.columns.values():
        whole = column.base
        assert isinstance(whole, np.ndarray)
        assert len(whole) == sections.nbytes
        low, high = byte_bounds(column)
        assert column.size == 0 or low - whole.ctypes.data >= 64
        assert high <= whole.ctypes.data + len(whole)
        assert not column.flags.writeable
        assert len(column.tobytes()) == column.nbytes
        if column.dtype == np.bool_:
            assert np.count_nonzero(column) == len(column[column])
    for read, name in ((text_array, "text"), (binary_array, "wkb")):
        try:
            read(sections, name).to_pylist()
        except InvalidInput as fault:
            reason = str(fault)
            assert sections.name in reason


def open_and_use(path: Path, content: bytes, *, verify: bool = True) -> None:
    """Open a file with another content: it is refused by name, or can be used."""
    overwrite(path, content)
    try:
        sections = open_sections(path, verify=verify)
    except InvalidInput as fault:
        reason = str(fault)
        assert str(path) in reason
    else:
        use(sections)


def open_damaged_sections(folder: Path, seeds: range) -> None:
    """Damage a file once for each seed, somewhere or in its directory, and use what opens."""
    path = folder / "x.contrada"
    whole = write_small(path)
    place = place_of(whole)
    for seed in seeds:
        print("sections", seed, file=sys.stderr)
        chance = random.Random(seed)
        match seed % 4:
            case 0:
                content = damage(whole, chance)
                content = seal(content) if len(content) > 64 else content
            case 1:
                content = with_directory(whole, damage(whole[place:], chance))
            case 2:
                directory = json.loads(whole[place:])
                for _ in range(chance.choice((1, 1, 2, 4))):
                    directory = change_one(directory, chance)
                content = with_directory(whole, json.dumps(directory).encode())
            case _:
                content = whole[:64] + damage(whole[64:place], chance) + whole[place:]
                moved = place if chance.random() < 0.5 else len(content) - len(whole) + place
                content = seal(content[:8] + struct.pack("<Q", moved) + content[16:])
        open_and_use(path, content, verify=chance.random() < 0.5)
