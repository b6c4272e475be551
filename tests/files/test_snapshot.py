"""Snapshots on disk: what was written comes back, and anything else is refused by name."""

import hashlib
import os
import resource
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.errors import InvalidInput, Unavailable
from contrada.files import read_rows
from contrada.files.snapshot import ROWS_FORMAT, open_snapshot, write_snapshot
from contrada.files.snapshot_header import HEADER_BYTES, read_digest, read_format

SETTINGS = {"engine": "strtree", "options": {"universe": [0.0, 1.0]}, "crs": None}
SCHEMA = pa.schema([("id", pa.int64()), ("geometry", pa.binary()), ("filter", pa.string())])


def rows_of(*ids: int) -> pa.RecordBatch:
    shapes = [None if id_ % 3 == 0 else shapely.Point(id_, 0.1).wkb for id_ in ids]
    filters = [None if shape else "n > 1" for shape in shapes]
    return pa.record_batch([list(ids), shapes, filters], schema=SCHEMA)


def write(path: Path) -> bytes:
    write_snapshot(path, SCHEMA, SETTINGS, [rows_of(1, 2, 3), rows_of(4)])
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "fences.contrada"
    assert not list(tmp_path.glob(".*")), "no temporary file stays behind"


# What comes back


def test_rows_and_settings_come_back(path: Path) -> None:
    write(path)
    snapshot = open_snapshot(path)
    assert snapshot.settings == SETTINGS
    assert snapshot.count == 4
    assert list(snapshot.batches()) == [rows_of(1, 2, 3), rows_of(4)]
    assert list(snapshot.batches()) == [rows_of(1, 2, 3), rows_of(4)]


def test_a_snapshot_without_rows_comes_back(path: Path) -> None:
    write_snapshot(path, SCHEMA, {}, [])
    snapshot = open_snapshot(path)
    assert (snapshot.settings, snapshot.count, list(snapshot.batches())) == ({}, 0, [])


def test_settings_may_be_of_numpy_but_must_have_a_json(path: Path) -> None:
    write_snapshot(path, SCHEMA, {"a": np.float64(0.1), "b": np.array([1, 2])}, [])
    assert open_snapshot(path).settings == {"a": 0.1, "b": [1, 2]}
    with pytest.raises(InvalidInput, match=r"fences\.contrada: the settings .*object"):
        write_snapshot(path, SCHEMA, {"a": object()}, [])
    assert open_snapshot(path).settings["a"] == 0.1


def test_a_snapshot_is_an_arrow_file_for_everybody(path: Path) -> None:
    write(path)
    expected = pa.Table.from_batches([rows_of(1, 2, 3), rows_of(4)])
    assert pa.ipc.open_file(path).read_all().equals(expected)
    assert feather.read_table(path).equals(expected)
    assert pa.ipc.open_file(path).get_batch(1).equals(rows_of(4))


def test_rows_are_not_copied_from_the_mapped_file(path: Path) -> None:
    write(path)
    snapshot = open_snapshot(path)
    start, size = snapshot._content.address, snapshot._content.size
    for batch in snapshot.batches():
        buffers = [b for column in batch.columns for b in column.buffers() if b is not None]
        assert sum(buffer.size for buffer in buffers) > 40
        for buffer in (b for b in buffers if b.size):
            assert start + HEADER_BYTES <= buffer.address < start + size


def test_the_header_is_as_documented(path: Path) -> None:
    content = write(path)
    digest = hashlib.sha256(content[64:]).digest()
    fields = struct.pack("<16sIQ32s", b"ARROW1\0\0CONTRADA", ROWS_FORMAT, len(content), digest)
    assert content[:64] == fields + struct.pack("<I", zlib.crc32(fields))
    assert read_digest(path) == open_snapshot(path).digest == digest.hex()


def test_the_same_rows_give_the_same_bytes(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    turned = dict(reversed(SETTINGS.items()))
    write_snapshot(other, SCHEMA, turned, [rows_of(1, 2, 3), rows_of(4)])
    assert other.read_bytes() == write(path)


def test_other_rows_or_settings_give_another_digest(path: Path) -> None:
    write(path)
    digests = {read_digest(path)}
    write_snapshot(path, SCHEMA, SETTINGS, [rows_of(1, 2, 3), rows_of(5)])
    digests.add(read_digest(path))
    write_snapshot(path, SCHEMA, {**SETTINGS, "crs": "EPSG:4326"}, [rows_of(1, 2, 3), rows_of(4)])
    digests.add(read_digest(path))
    assert len(digests) == 3


def test_an_open_snapshot_stays_as_it_was_when_the_file_is_replaced(path: Path) -> None:
    write(path)
    snapshot = open_snapshot(path)
    write_snapshot(path, SCHEMA, {}, [rows_of(*range(10, 1000))])
    assert list(snapshot.batches()) == [rows_of(1, 2, 3), rows_of(4)]


def test_a_snapshot_is_a_source_of_rows(path: Path) -> None:
    write(path)
    rows = read_rows(path)
    assert (rows.count, rows.geometry_columns, rows.crs) == (4, ("geometry",), None)
    assert list(rows.batches()) == [rows_of(1, 2, 3, 4)]
    assert [b.schema.names for b in rows.narrowed(["filter"]).batches()] == [["filter"]]
    with pytest.raises(InvalidInput, match='no column "nothing"'):
        read_rows(path, columns=["nothing"])


# What is refused


def refusal(path: Path) -> str:
    """The message with which a file is refused; the file is always named."""
    with pytest.raises(InvalidInput) as caught:
        open_snapshot(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_a_flipped_bit_anywhere_is_refused(path: Path) -> None:
    content = write(path)
    for position in [*range(HEADER_BYTES), *range(HEADER_BYTES, len(content), 7)]:
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        message = refusal(path)
        if position < 16:
            assert message.startswith("is not a snapshot: it begins with ")
        else:
            what = "CRC-32 of its header" if position < HEADER_BYTES else "SHA-256"
            assert message.startswith("is damaged: ")
            assert what in message


def test_a_damaged_file_is_refused_with_both_checksums(path: Path) -> None:
    content = write(path)
    path.write_bytes(content[:-1] + b"2")
    found, stated = hashlib.sha256(content[64:-1] + b"2"), hashlib.sha256(content[64:])
    expected = f"is damaged: its SHA-256 is {found.hexdigest()}, not {stated.hexdigest()}"
    assert refusal(path) == expected


def test_a_file_that_is_cut_off_is_refused_with_both_lengths(path: Path) -> None:
    content = write(path)
    whole = len(content)
    for length in (1, 15, 16, 17, HEADER_BYTES - 1):
        path.write_bytes(content[:length])
        expected = f"is truncated: it has {length} bytes, but the header alone takes 64"
        assert refusal(path) == expected
    for length in (HEADER_BYTES, HEADER_BYTES + 1, whole // 2, whole - 10, whole - 1):
        path.write_bytes(content[:length])
        assert refusal(path) == f"is truncated: it has {length} bytes, not {whole}"
    path.write_bytes(content + b"\0")
    assert refusal(path) == f"is too long: it has {whole + 1} bytes, not {whole}"


def test_a_newer_format_is_refused_with_both_numbers(path: Path) -> None:
    content = write(path)
    path.write_bytes(with_number(content, 3))
    assert refusal(path) == "is of format 3; this version of Contrada reads formats 1 and 2"
    assert read_format(path) == 3
    with pytest.raises(InvalidInput, match="format 3"):
        read_digest(path)


def with_number(content: bytes, number: int) -> bytes:
    """The same file with another number of its format, and a header that is right."""
    fields = content[:16] + struct.pack("<I", number) + content[20:60]
    return fields + struct.pack("<I", zlib.crc32(fields)) + content[64:]


def test_a_number_that_does_not_go_with_the_first_bytes_is_refused(path: Path) -> None:
    path.write_bytes(with_number(write(path), 2))
    assert refusal(path) == r"is not of format 2: it begins with b'ARROW1\x00\x00CONTRADA'"


def test_the_format_is_read_from_the_first_bytes(path: Path) -> None:
    content = write(path)
    assert read_format(path) == ROWS_FORMAT
    path.write_bytes(content[:HEADER_BYTES])
    assert read_format(path) == ROWS_FORMAT
    for other in (b"", content[:8], content[: HEADER_BYTES - 1], b"PAR1" * 16, bytes(64)):
        path.write_bytes(other)
        assert read_format(path) is None
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        read_format(path.parent)


def test_what_is_no_snapshot_is_refused_with_its_first_bytes(path: Path) -> None:
    path.touch()
    assert refusal(path).startswith("is not a snapshot: it begins with b'', not b'ARROW1")
    pq.write_table(pa.Table.from_batches([rows_of(1)]), path)
    assert refusal(path).startswith("is not a snapshot: it begins with b'PAR1")
    feather.write_feather(pa.Table.from_batches([rows_of(1)]), str(path))
    assert refusal(path).startswith(r"is not a snapshot: it begins with b'ARROW1\x00\x00\xff")
    path.write_text('{"type": "FeatureCollection"}')
    assert refusal(path).startswith("is not a snapshot: it begins with b'{\"type")


def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nothing") == "cannot be read: No such file or directory"
    assert refusal(tmp_path) == "cannot be read: Is a directory"
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_digest(tmp_path / "nothing")


def with_a_right_header(rest: bytes) -> bytes:
    digest = hashlib.sha256(rest).digest()
    fields = struct.pack("<16sIQ32s", b"ARROW1\0\0CONTRADA", ROWS_FORMAT, 64 + len(rest), digest)
    return fields + struct.pack("<I", zlib.crc32(fields)) + rest


def test_a_right_checksum_over_nonsense_is_refused_all_the_same(path: Path) -> None:
    for rest in (b"", b"nonsense", bytes(1000), write(path)[64:-20], write(path)[200:]):
        path.write_bytes(with_a_right_header(rest))
        assert refusal(path).startswith("is not a valid snapshot: ")


# Whole or not at all


def test_a_failure_leaves_the_old_file_and_nothing_else(path: Path, tmp_path: Path) -> None:
    old = write(path)

    def failing() -> Iterator[pa.RecordBatch]:
        yield rows_of(*range(100))
        assert len(list(tmp_path.iterdir())) == 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_snapshot(path, SCHEMA, SETTINGS, failing())
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("bytes_max", [0, 100, 5_000, 100_000])
def test_a_disk_that_is_full_leaves_the_old_file_and_nothing_else(
    path: Path, tmp_path: Path, bytes_max: int
) -> None:
    old = write(path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, before[1]))
    try:
        with pytest.raises(Unavailable, match=r"fences\.contrada: cannot be written: .*too large"):
            write_snapshot(path, SCHEMA, SETTINGS, [rows_of(*range(20_000))] * 2)
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
            write_snapshot(path, SCHEMA, SETTINGS, [rows_of(9)])
    assert path.read_bytes() == old


def test_a_place_that_cannot_be_written_is_refused(path: Path, tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere" / "x", tmp_path, path / "below a file"):
        path.touch()
        with pytest.raises(InvalidInput, match="cannot be written: ") as caught:
            write(place)
        assert str(caught.value).startswith(f"{place}: ")
    assert list(tmp_path.iterdir()) == [path]
