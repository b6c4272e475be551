"""Columns on disk: what was written comes back where it lies, and anything else is refused."""

import gc
import hashlib
import json
import mmap
import os
import resource
import struct
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from contrada.errors import InvalidInput, Unavailable
from contrada.files.sections import Sections, open_sections, read_format, write_sections
from contrada.files.snapshot import open_snapshot, write_snapshot
from contrada.files.snapshot_header import HEADER_BYTES, read_digest
from damaging import overwrite

Columns = dict[str, NDArray[Any]]

DTYPES = ["bool", "uint8", "int32", "int64", "uint64", "float32", "float64"]
SETTINGS = {"engine": "strtree", "options": {"universe": [0.0, 1.0]}, "crs": None, "é": "ü"}
COLUMNS: Columns = {
    "starts": np.array([0, 3, 5, -(2**63)]),
    "boxes": np.arange(8.0).reshape(2, 4),
    "is_there": np.array([True, False, True]),
    "nothing": np.zeros(0, np.float32),
    "ünïcode 🦉": np.array([2**64 - 1], np.uint64),
}


def write(path: Path, columns: Columns = COLUMNS) -> bytes:
    write_sections(path, SETTINGS, columns)
    return path.read_bytes()


def are_same(sections: Sections, columns: Columns) -> bool:
    """Whether columns are the same to the bit, NaN and negative zero included."""
    found = sections.columns
    return found.keys() == columns.keys() and all(
        found[name].dtype == column.dtype
        and found[name].shape == column.shape
        and found[name].tobytes() == column.tobytes()
        for name, column in columns.items()
    )


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "fences.contrada"
    assert not list(tmp_path.glob(".*")), "no temporary file stays behind"


# What comes back


@pytest.mark.parametrize("verify", [True, False])
def test_columns_and_settings_come_back(path: Path, verify: bool) -> None:
    content = write(path)
    sections = open_sections(path, verify=verify)
    assert are_same(sections, COLUMNS)
    assert sections.settings == SETTINGS
    assert (sections.name, sections.nbytes) == (str(path), len(content))
    assert sections.digest == read_digest(path) == hashlib.sha256(content[64:]).hexdigest()


shapes = st.one_of(st.tuples(st.integers(0, 9)), st.tuples(st.integers(0, 9), st.integers(0, 9)))
columns_of_any_kind = st.dictionaries(
    st.text(max_size=9), st.sampled_from(DTYPES).flatmap(lambda d: arrays.arrays(d, shapes))
)


@given(
    columns=columns_of_any_kind,
    settings=st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()),
)
def test_columns_of_any_kind_come_back(
    tmp_path_factory: pytest.TempPathFactory, columns: Columns, settings: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("sections") / "x"
    write_sections(path, settings, columns)
    sections = open_sections(path)
    assert are_same(sections, columns)
    assert sections.settings == settings
    turned = {name: columns[name] for name in reversed(columns)}
    write_sections(path, dict(reversed(settings.items())), turned)
    assert open_sections(path).digest == sections.digest


def test_a_file_without_columns_comes_back(path: Path) -> None:
    write_sections(path, {}, {})
    sections = open_sections(path)
    assert (sections.settings, dict(sections.columns)) == ({}, {})


def test_columns_that_are_not_contiguous_or_little_endian_come_back(path: Path) -> None:
    table = np.arange(24.0).reshape(4, 6)
    columns = {
        "every other": table[::2, ::3],
        "in Fortran's order": np.asfortranarray(table),
        "backwards": np.arange(9)[::-1],
        "big-endian": np.arange(9, dtype=">i4"),
    }
    write_sections(path, {}, columns)
    sections = open_sections(path)
    for name, column in columns.items():
        assert sections.columns[name].tolist() == column.tolist()
        assert sections.columns[name].flags.c_contiguous
    assert sections.columns["big-endian"].dtype == np.int32


def test_settings_may_be_of_numpy(path: Path) -> None:
    write_sections(path, {"a": np.float64(0.1), "b": np.array([1, 2])}, {})
    assert open_sections(path).settings == {"a": 0.1, "b": [1, 2]}


# How it lies there


def test_the_layout_is_as_documented(path: Path) -> None:
    content = write(path)
    magic, place, number, length, digest, checksum = struct.unpack("<8sQIQ32sI", content[:64])
    assert (magic, number, length) == (b"CONTRADA", 2, len(content))
    assert digest == hashlib.sha256(content[64:]).digest()
    assert checksum == zlib.crc32(content[:60])
    directory = json.loads(content[place:])
    assert directory["settings"] == SETTINGS
    assert [entry["name"] for entry in directory["columns"]] == sorted(COLUMNS)
    gaps = bytearray(content[64:place])
    for entry in directory["columns"]:
        column = COLUMNS[entry["name"]]
        start, end = entry["offset"], entry["offset"] + column.nbytes
        assert (start % 64, entry["dtype"]) == (0, column.dtype.name)
        assert tuple(entry["shape"]) == column.shape
        assert content[start:end] == column.tobytes()
        gaps[start - 64 : end - 64] = bytes(column.nbytes)
    assert not any(gaps)
    assert place % 64 == 0


def test_the_same_columns_give_the_same_bytes_in_any_order(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    turned = {name: COLUMNS[name] for name in reversed(COLUMNS)}
    write_sections(other, dict(reversed(SETTINGS.items())), turned)
    assert other.read_bytes() == write(path)


def test_another_value_type_shape_name_or_setting_gives_another_digest(path: Path) -> None:
    digests = set()
    for column in (np.arange(4), np.arange(1, 5), np.arange(4).reshape(2, 2), np.arange(4.0)):
        for name in ("a", "b"):
            for settings in ({}, {"a": 1}):
                write_sections(path, settings, {name: column})
                digests.add(read_digest(path))
    assert len(digests) == 16


def test_columns_are_aligned_views_into_one_mapped_file(path: Path) -> None:
    write(path)
    columns = open_sections(path).columns
    bases = {id(column.base) for column in columns.values()}
    assert len(bases) == 1
    whole = columns["boxes"].base
    assert isinstance(whole, np.ndarray)
    assert whole.tobytes() == path.read_bytes()
    for column in columns.values():
        offset = column.ctypes.data - whole.ctypes.data
        assert offset % 64 == 0
        assert column.size == 0 or 64 <= offset <= len(whole) - column.nbytes


def test_columns_cannot_be_written_to(path: Path) -> None:
    write(path)
    sections = open_sections(path)
    for column in sections.columns.values():
        with pytest.raises(ValueError, match="read-only"):
            column[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            column.setflags(write=True)
    with pytest.raises(TypeError):
        sections.columns["new"] = np.zeros(1)  # type: ignore[index]


def test_a_view_keeps_the_file_mapped(path: Path) -> None:
    write(path)
    column = open_sections(path).columns["boxes"]
    path.unlink()
    gc.collect()
    assert column.tolist() == COLUMNS["boxes"].tolist()
    assert isinstance(column.base, np.ndarray)
    held = memoryview(column.base.base) if column.base.base is not None else None  # type: ignore[arg-type]
    assert held is not None
    assert isinstance(held.obj, mmap.mmap)
    with pytest.raises(BufferError):
        held.obj.close()


def test_an_open_file_stays_as_it_was_when_it_is_replaced(path: Path) -> None:
    write(path)
    sections = open_sections(path)
    write_sections(path, {}, {"boxes": np.zeros(100_000)})
    assert are_same(sections, COLUMNS)
    assert len(open_sections(path).columns["boxes"]) == 100_000


def test_readers_see_one_version_or_another_while_the_file_is_replaced(path: Path) -> None:
    versions: list[Columns] = [{"a": np.full(size, size)} for size in (10_000, 20_000, 5_000)]
    write_sections(path, {}, versions[0])

    def read(_: int) -> bool:
        sections = open_sections(path)
        return any(are_same(sections, version) for version in versions)

    with ThreadPoolExecutor(4) as threads:
        answers = threads.map(read, range(200))
        for number in range(30):
            write_sections(path, {}, versions[number % 3])
        assert all(answers)


def test_another_process_opens_the_same_file(path: Path) -> None:
    write(path)
    code = (
        "import sys; from contrada.files.sections import open_sections\n"
        "sections = open_sections(sys.argv[1], verify=False)\n"
        "print(sections.digest, sections.columns['boxes'].sum())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [read_digest(path), "28.0"]


# What is refused


def refusal(path: Path, *, verify: bool = True) -> str:
    """The message with which a file is refused; the file is always named."""
    with pytest.raises(InvalidInput) as caught:
        open_sections(path, verify=verify)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("verify", [True, False])
def test_a_flipped_bit_in_the_header_is_refused(path: Path, verify: bool) -> None:
    content = write(path)
    for position in range(HEADER_BYTES):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            overwrite(path, damaged)
            expected = "is damaged: the CRC-32 of its header is "
            if position < 8:
                expected = "is not a snapshot: it begins with "
            assert refusal(path, verify=verify).startswith(expected)


def test_a_flipped_bit_after_the_header_is_refused_with_both_checksums(path: Path) -> None:
    content = write(path)
    stated = hashlib.sha256(content[64:]).hexdigest()
    for position in range(HEADER_BYTES, len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        overwrite(path, damaged)
        found = hashlib.sha256(damaged[64:]).hexdigest()
        assert refusal(path) == f"is damaged: its SHA-256 is {found}, not {stated}"


@pytest.mark.parametrize("verify", [True, False])
def test_a_file_of_another_length_is_refused_with_both_lengths(path: Path, verify: bool) -> None:
    content = write(path)
    whole = len(content)
    for length in range(1, HEADER_BYTES):
        overwrite(path, content[:length])
        expected = f"is truncated: it has {length} bytes, but the header alone takes 64"
        assert refusal(path, verify=verify) == expected
    for length in range(HEADER_BYTES, whole):
        overwrite(path, content[:length])
        assert refusal(path, verify=verify) == f"is truncated: it has {length} bytes, not {whole}"
    overwrite(path, content + b"\0")
    expected = f"is too long: it has {whole + 1} bytes, not {whole}"
    assert refusal(path, verify=verify) == expected


def with_number(content: bytes, number: int) -> bytes:
    """The same file with another number of its format, and a header that is right."""
    fields = content[:16] + struct.pack("<I", number) + content[20:60]
    return fields + struct.pack("<I", zlib.crc32(fields)) + content[64:]


def test_a_newer_format_is_refused_with_both_numbers(path: Path) -> None:
    content = write(path)
    for number in (0, 3, 2**32 - 1):
        path.write_bytes(with_number(content, number))
        expected = f"is of format {number}; this version of Contrada reads formats 1 and 2"
        assert refusal(path) == expected
        assert read_format(path) == number


def test_a_number_that_does_not_go_with_the_first_bytes_is_refused(path: Path) -> None:
    path.write_bytes(with_number(write(path), 1))
    assert refusal(path).startswith("is not of format 1: it begins with b'CONTRADA")


def test_a_file_of_rows_is_refused_as_columns_and_the_other_way_round(path: Path) -> None:
    schema = pa.schema([("id", pa.int64())])
    write_snapshot(path, schema, SETTINGS, [pa.record_batch([[1]], schema=schema)])
    assert read_format(path) == 1
    assert refusal(path) == "is of format 1, not 2: it holds rows, not columns"
    write(path)
    assert read_format(path) == 2
    with pytest.raises(InvalidInput, match="is of format 2, not 1: it holds columns, not rows"):
        open_snapshot(path)


def test_what_is_no_snapshot_is_refused_with_its_first_bytes(path: Path) -> None:
    path.touch()
    expected = r"is not a snapshot: it begins with b'', not b'ARROW1\x00\x00CONTRADA' or"
    assert refusal(path) == f"{expected} b'CONTRADA'"
    assert read_format(path) is None
    pq.write_table(pa.table({"a": [1]}), path)
    assert refusal(path).startswith("is not a snapshot: it begins with b'PAR1")
    assert read_format(path) is None
    path.write_bytes(b"CONTRADE" + bytes(100))
    assert refusal(path).startswith("is not a snapshot: it begins with b'CONTRADE")


def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nothing") == "cannot be read: No such file or directory"
    assert refusal(tmp_path) == "cannot be read: Is a directory"
    for no_path in ("a\0b", 5):
        with pytest.raises(InvalidInput, match="is not a path"):
            open_sections(no_path)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_format(tmp_path / "nothing")


def test_a_machine_without_memory_for_the_map_is_to_blame(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    write(path)
    monkeypatch.setattr(mmap, "mmap", no_memory)
    with pytest.raises(Unavailable, match=r"fences\.contrada: cannot be read: Cannot allocate"):
        open_sections(path)


# What is not written


@pytest.mark.parametrize(
    ("column", "fault"),
    [
        (np.zeros(1, np.int16), "is of type 'int16', not bool, uint8"),
        (np.zeros(1, np.float16), "is of type 'float16'"),
        (np.zeros(1, np.complex128), "is of type 'complex128'"),
        (np.zeros(1, object), "is of type 'object'"),
        (np.array(["a"]), "is of type 'str32'"),
        (np.zeros(1, "M8[s]"), "is of type 'datetime64"),
        (np.zeros(1, [("a", int)]), "is of type 'void64'"),
        (np.array(5), r"has the shape \[\], not one or two"),
        (np.zeros((1, 1, 1)), r"has the shape \[1, 1, 1\], not one or two"),
    ],
)
def test_columns_of_another_type_or_shape_are_refused(
    path: Path, column: NDArray[Any], fault: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"x\.contrada: cannot be written: column 'a' {fault}"):
        write_sections(path.with_name("x.contrada"), {}, {"a": column})
    assert not path.exists()


def test_a_name_that_is_not_unicode_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cannot be written: the name .* not Unicode.*ud83d"):
        write_sections(path, {}, {"\ud83d\ude00": np.zeros(1)})


DEEP: Any = json.loads("[" * 64 + "]" * 64)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"a": object()}, "the settings .*object"),
        ({"a": 10**5_000}, "the settings .*digits"),
        ({"a": json.loads("[" * 900 + "]" * 900)}, "nested deeper than 64"),
        ({"a": DEEP}, "nested deeper than 64"),
        ({"a": "x" * 2**24}, r"bytes, more than 16,777,216 \(DIRECTORY_BYTES_MAX\)"),
        ([], "not a JSON object"),
    ],
)
def test_settings_that_could_not_be_opened_are_refused(
    path: Path, settings: Any, fault: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"fences\.contrada: .*{fault}"):
        write_sections(path, settings, {})
    assert not path.exists()


def test_settings_nested_as_deep_as_they_may_be_come_back(path: Path) -> None:
    write_sections(path, {"a": DEEP[0]}, {})
    assert open_sections(path).settings == {"a": DEEP[0]}


def test_settings_within_themselves_are_refused(path: Path) -> None:
    settings: dict[str, Any] = {}
    settings["a"] = settings
    with pytest.raises(InvalidInput, match=r"cannot be written: Circular reference"):
        write_sections(path, settings, {})


# Whole or not at all


@pytest.mark.parametrize("bytes_max", [0, 100, 5_000, 3_000_000])
def test_a_disk_that_is_full_leaves_the_old_file_and_nothing_else(
    path: Path, tmp_path: Path, bytes_max: int
) -> None:
    old = write(path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, before[1]))
    try:
        with pytest.raises(Unavailable, match=r"fences\.contrada: cannot be written: .*too large"):
            write_sections(path, SETTINGS, {"a": np.zeros(500_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_at_the_very_end_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = write(path)

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        with pytest.raises(Unavailable, match="No space left"):
            write_sections(path, {}, {})
    assert path.read_bytes() == old


def test_a_folder_that_cannot_be_written_to_is_blamed_on_the_machine(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", read_only)
        with pytest.raises(Unavailable, match=r"fences\.contrada: cannot be written: .*Read-only"):
            write_sections(path, {}, {})


def test_a_place_that_cannot_be_written_is_refused(path: Path, tmp_path: Path) -> None:
    path.touch()
    for place in (tmp_path / "nowhere" / "x", tmp_path, path / "below a file"):
        with pytest.raises(InvalidInput, match="cannot be written: ") as caught:
            write(place)
        assert str(caught.value).startswith(f"{place}: ")
    assert list(tmp_path.iterdir()) == [path]


def test_a_large_column_is_written_without_a_copy_of_it(path: Path) -> None:
    column = np.arange(4_000_000)
    tracemalloc.start()
    try:
        write_sections(path, {}, {"a": column, "b": column.reshape(-1, 4)})
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert are_same(open_sections(path), {"a": column, "b": column.reshape(-1, 4)})
