"""The footers of Parquet files, good ones and damaged ones.

PyArrow ends the process on some, so whatever is damaged is read in a child.
"""

import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contrada.errors import InvalidInput
from contrada.files import read_rows
from contrada.files.parquet_footer import CODECS, read_footer
from contrada.kernels import thrift
from damaging import table

FLIPS = 80  # of each kind of file
FLIPS_OF_SOAK = 5_000
ROWS = 12
WRITINGS: dict[str, dict[str, Any]] = {
    "snappy": {"compression": "snappy", "row_group_size": 2},
    "zstd": {"compression": "zstd", "write_statistics": False, "use_dictionary": False},
    "pages_2": {"data_page_version": "2.0", "compression": "gzip", "store_schema": False},
    "indexed": {"write_page_index": True, "write_page_checksum": True, "version": "1.0"},
}
RUN = """
import sys
from pathlib import Path
sys.path += sys.argv[1:3]
from test_parquet_footers import read_flipped
for path in sys.argv[5:]:
    read_flipped(Path(path), int(sys.argv[3]), int(sys.argv[4]))
"""


def long_table() -> pa.Table:
    """Rows enough for several values in each page, with a column of every kind."""
    return pa.concat_tables([table()] * 4)


def footer_place(content: bytes) -> tuple[int, int]:
    end = len(content) - 8
    return end - int.from_bytes(content[end : end + 4], "little"), end


def read_flipped(path: Path, seed: int, count: int) -> None:
    """Flip some bits of the footer of a file, once for each seed, and read it in every way.

    Whatever is not refused has all rows.
    """
    content = path.read_bytes()
    start, end = footer_place(content)
    flipped = path.with_name("flipped.parquet")
    ways: list[Callable[[], int]] = [
        lambda: sum(batch.num_rows for batch in read_rows(flipped).batches()),
        lambda: sum(batch.num_rows for batch in read_rows(flipped, columns=["id"]).batches()),
    ]
    for number in range(seed, seed + count):
        print(path.name, number, file=sys.stderr)
        chance = random.Random(number)
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 1, 1, 2))):
            damaged[chance.randrange(start, end)] ^= 1 << chance.randrange(8)
        flipped.write_bytes(damaged)
        for way in ways:
            try:
                rows, reason = way(), flipped.name
            except InvalidInput as fault:
                rows, reason = ROWS, str(fault)
            assert rows == ROWS
            assert flipped.name in reason


def run_flips(names: Iterable[str], folder: Path, seed: int, count: int) -> None:
    paths = [folder / f"{name}.parquet" for name in names]
    for path in paths:
        pq.write_table(long_table(), path, **WRITINGS[path.stem])
    tests = Path(__file__).parents[1]
    given = [tests, tests / "files", seed, count, *paths]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", "-c", RUN, *map(str, given)],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]


def test_flipped_bits_of_a_footer_end_in_our_errors(tmp_path: Path) -> None:
    run_flips(WRITINGS, tmp_path, 1, FLIPS)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", WRITINGS)
def test_many_flipped_bits_of_a_footer_end_in_our_errors(name: str, tmp_path: Path) -> None:
    run_flips([name], tmp_path, random.SystemRandom().randrange(10**9), FLIPS_OF_SOAK)


@pytest.mark.parametrize("name", WRITINGS)
def test_a_footer_says_what_pyarrow_reads_in_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(long_table(), path, **WRITINGS[name])
    facts, footer = pq.ParquetFile(path).metadata, read_footer(path, "x")
    assert footer.rows == facts.num_rows
    for group in range(facts.num_row_groups):
        assert footer.group_rows[group] == facts.row_group(group).num_rows
        for number in range(facts.num_columns):
            ours, theirs = footer.chunk(group, number), facts.row_group(group).column(number)
            assert CODECS[ours.codec] == theirs.compression.lower()
            assert ours.values == theirs.num_values
            assert ours.stored_bytes == theirs.total_compressed_size
            assert ours.data_at == theirs.data_page_offset
            assert ours.dictionary_at == (theirs.dictionary_page_offset or -1)


def test_kernels_walk_as_python_does(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(long_table(), path)
    content = path.read_bytes()
    start, end = footer_place(content)
    chance, rules = random.Random(5), chance_rules(random.Random(6))
    for _ in range(300):
        data = bytearray(content[start:end])
        for _ in range(chance.randrange(3)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        size = chance.choice((4, 1_000))
        by_kernel, by_python = np.zeros((size, 18), np.int64), np.zeros((size, 18), np.int64)
        parts = [np.frombuffer(bytes(part), np.uint8) for part in (data, *rules)]
        assert thrift.walk_structs(
            parts[0], parts[1], parts[2], by_kernel
        ) == thrift.walk_structs.interpreted(bytes(data), *rules, by_python)
        assert np.array_equal(by_kernel, by_python)


def chance_rules(chance: random.Random) -> tuple[bytes, bytes]:
    """Rules by which every struct within three others is a row."""
    types, kinds = bytearray(8 * thrift.FIELDS), bytearray(8 * thrift.FIELDS)
    for kind in range(1, 5):
        for field in range(1, 18):
            kinds[kind * thrift.FIELDS + field] = kind + 1 if chance.random() < 0.9 else 0
    for field, type_ in ((2, thrift.LIST), (3, thrift.I64), (4, thrift.LIST)):
        types[thrift.FIELDS + field] = type_
    return bytes(types), bytes(kinds)


class Short(int):
    """A number that Thrift has in 32 bits."""


Value: TypeAlias = Any  # a number, bytes, a struct by the numbers of its fields, or a list
Fields: TypeAlias = dict[int, Value]


def spell_varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + spell_varint(rest) if rest else bytes([low])


def spell_struct(fields: Fields) -> bytes:
    """Spell a struct of Thrift's compact protocol, each field with its number written out."""
    spelt = b""
    for field, value in fields.items():
        type_, inside = spell_value(value)
        spelt += bytes([type_]) + spell_varint(field << 1) + inside
    return spelt + b"\0"


def spell_value(value: Value) -> tuple[int, bytes]:
    if isinstance(value, int):
        type_ = thrift.I32 if isinstance(value, Short) else thrift.I64
        return type_, spell_varint(value << 1)
    if isinstance(value, bytes):
        return thrift.BINARY, spell_varint(len(value)) + value
    if isinstance(value, dict):
        return thrift.STRUCT, spell_struct(value)
    spelt = [spell_value(member) for member in value]
    head = bytes([0xF0 | (spelt[0][0] if spelt else thrift.STRUCT)])
    return thrift.LIST, head + spell_varint(len(spelt)) + b"".join(part for _, part in spelt)


def write_footer(
    path: Path,
    column: Fields | None = None,
    element: Fields | None = None,
    columns: int = 1,
    rows: int = 3,
    depth: int = 1,
) -> None:
    """Write a file of one row group and nothing but a footer, in which some fields are others."""
    number = {1: Short(2), 3: Short(0), 4: b"a", **(element or {})}
    groups: list[Value] = [{3: Short(0), 4: b"b", 5: Short(1)} for _ in range(depth - 1)]
    about = {1: Short(2), 2: [Short(0)], 3: [b"a"], 4: Short(1), 5: 3, 6: 24, 7: 24, 9: 4}
    chunk: Value = {2: 4, 3: {**about, **(column or {})}}
    footer = spell_struct(
        {
            1: Short(2),
            2: [{4: b"schema", 5: Short(1)}, *groups, number],
            3: rows,
            4: [{1: [chunk] * columns, 2: 24, 3: 3}],
        }
    )
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"column": {4: Short(22)}}, "column 0 of row group 0 states an unknown codec: 22"),
        ({"column": {1: Short(6)}}, "states another type than the schema: 6"),
        ({"column": {5: 0}}, "another number of values than the group has rows: 0"),
        ({"column": {5: 4}}, "another number of values than the group has rows: 4"),
        ({"column": {5: 0}, "element": {3: Short(2)}}, "fewer values than the group has rows: 0"),
        ({"column": {16: {2: [1, 2]}}}, "column 0 has a histogram of 2 levels, not 1"),
        ({"column": {16: {3: [1, 2, 3]}}}, "column 0 has a histogram of 3 levels, not 1"),
        ({"column": {9: b"4"}}, "not made of the structs that it should be made of"),
        ({"element": {1: Short(9)}}, "element 1 of its schema has the type 9"),
        ({"element": {3: Short(3)}}, "element 1 of its schema has the repetition 3"),
        ({"element": {5: Short(2)}}, "its schema is cut off"),
        ({"columns": 2}, "row group 0 has 2 columns, the schema 1"),
        ({"columns": 0}, "row group 0 has 0 columns, the schema 1"),
        ({"rows": 4}, "its row groups do not have the 4 rows that it states"),
        ({"depth": 100}, r"nested too deeply; the limit is 99 levels \(PARQUET_DEPTH_MAX\)"),
        ({"depth": 100_000}, "PARQUET_DEPTH_MAX"),
    ],
)
def test_a_footer_that_does_not_fit_together_is_refused(
    said: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.parquet"
    write_footer(path, **said)
    with pytest.raises(InvalidInput, match=rf"x\.parquet: .*{reason}"):
        read_rows(path)


def test_a_footer_as_deep_as_may_be_is_read_by_pyarrow(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_footer(path, depth=99)
    assert read_rows(path).count == 3


def test_pages_with_fewer_rows_than_the_footer_states_lose_none_silently(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"n": list(range(100))}), path, use_dictionary=False, compression=None)
    content = path.read_bytes()
    fewer = content.replace(spell_varint(200), spell_varint(180))  # 100 and 90, in zigzag
    assert len(fewer) == len(content) != fewer.count(spell_varint(180)) > 0
    start = footer_place(content)[0]
    path.write_bytes(fewer[:start] + content[start:])
    with pytest.raises(InvalidInput, match=r"x\.parquet: "):
        sum(batch.num_rows for batch in read_rows(path).batches())
