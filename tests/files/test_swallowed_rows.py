"""Quotes in CSV that nobody closed: no row is lost without a word, and no cell that is meant."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from contrada.errors import InvalidInput
from contrada.files import read_rows
from contrada.files.sheet_scan import SCAN_BYTES
from contrada.files.swallowed import split_line
from contrada.files.text_types import ColumnTypes
from contrada.limits import ROW_BYTES_MAX

MEASURED = """
import re, sys
from contrada.errors import InvalidInput
from contrada.files import read_rows
read_rows(sys.argv[2])
before = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
try:
    read_rows(sys.argv[1])
except InvalidInput as error:
    print(error)
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) - before)
"""


def save(folder: Path, text: str, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def table(count: int, **cells: str) -> str:
    """Rows of id, lon, lat and name; those given by number have another name."""
    others = {int(row.removeprefix("row")): cell for row, cell in cells.items()}
    rows = [f"{row},1,{row / 2},{others.get(row, 'n')}\n" for row in range(count)]
    return f"id,lon,lat,name\n{''.join(rows)}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (table(12, row3='"b', row8='"g'), r"line 10: text follows the closing quote .* 5"),
        (table(12, row3='"b', row8='g"'), r"line 5: a quoted cell runs on to line 10"),
        (table(12, row3='"b', row4='g"'), r"line 5: a quoted cell runs on to line 6"),
        (table(12, row3='"', row8='"'), r"line 5: a quoted cell runs on to line 10"),
        (table(12, row3='"b', row8='"g"'), r"line 10: text follows .*which opens in line 5"),
        (table(20_000, row1='"b'), r"line 3: a quote is not closed"),
        (table(20_000, row1='"b', row9999='g"'), r"line 3: a quoted cell runs on to line 10001"),
        (table(12, row3='"b"x'), r"line 5: text follows the closing quote of a cell: 'x"),
        ("n\n1\n2\n" + '"3\n4\n5"\n6\n', r"line 4: a quoted cell runs on to line 6"),
        ('id,"name\n1,a\n2,b"\n3,c\n', r"line 1: a quoted cell runs on to line 3"),
        ('id,lon,name\n1,2,x\n2,"3,b\n3,4",c\n', r"line 3: a quoted cell runs on to line 4"),
        ('"id","n"\n"1","a\n"2","b"\n', r"line 3: text follows the"),
        ('id,n\n1,"a\r\n2,b\r\n\r\n3,c"\r\n4,d\r\n', r"line 2: a quoted cell runs on to line 5"),
    ],
)
def test_a_quote_that_is_not_closed_is_refused_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_rows(save(tmp_path, text))


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("id,wkt", ["1", '"POLYGON ((0 0,\n1 0,\n1 1,\n0 0))"']),
        ("wkt,id", ['"POLYGON ((0 0,\n1 0,\n1 1,\n0 0))"', "1"]),
        ("id,wkt", ["1", '"POLYGON ((0 0\n,1 0\n,1 1\n,0 0))"']),
        ("note,id", ['"Dear all,\nyours, truly"', "x"]),
        ("id,note", ["1", '"12 Main Street\nSpringfield, IL"']),
        ("note,id", ['"12 Main Street,\nSpringfield"', "x"]),
        ("id,note", ['"x"', '"12 Main Street\nSpringfield, IL"']),
        ("note", ['"one\ntwo"']),
        ("id,a,b", ["1", '"one\n\n\ntwo"', '"a ""b"",\r\nc"']),
        ("id,lon,lat,name", ["1", "1", "1", '"so, it, goes, on\nand, on, and, on"']),
    ],
)
def test_a_cell_that_is_meant_to_span_lines_is_read(
    tmp_path: Path, header: str, cells: list[str]
) -> None:
    rows = read_rows(save(tmp_path, f"{header}\n" + f"{','.join(cells)}\n" * 3))
    assert rows.count == sum(batch.num_rows for batch in rows.batches()) == 3


def test_what_is_taken_for_rows_can_be_quoted_as_the_message_says(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="if the cell is intended, quote every cell of that row"):
        read_rows(save(tmp_path, 'id,note\na,b\nx,"Main Street\nSpringfield, IL"\n'))
    assert (
        read_rows(save(tmp_path, 'id,note\na,b\n"x","Main Street\nSpringfield, IL"\n')).count == 2
    )


def test_a_row_that_is_in_several_blocks_is_suspected_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.files.sheet_scan.SCAN_BYTES", 7)
    with pytest.raises(InvalidInput, match="line 5: a quoted cell runs on to line 10"):
        read_rows(save(tmp_path, table(12, row3='"b', row8='g"')))
    with pytest.raises(InvalidInput, match="line 12: a quoted cell runs on to line 13"):
        read_rows(save(tmp_path, table(12, row10='"b', row11='g"')[:-1]))
    assert read_rows(save(tmp_path, table(9, row3='"b\r\nc"'))).count == 9


def test_a_line_is_split_as_if_it_were_alone() -> None:
    assert split_line('a,"b,""c""",,"d,e"x', ",") == [
        ("a", False),
        ('b,"c"', True),
        ("", False),
        ('"d', False),
        ('e"x', False),
    ]


@pytest.mark.parametrize("start", [b"", b"a,b\n1,", b'a,b\n1,"', b"a,b\n1,2\n" + b"\n" * 9999])
@pytest.mark.parametrize("name", ["bomb.csv", "bomb.csv.gz", "bomb.tsv.gz"])
def test_a_row_of_a_giant_line_is_refused_in_bounded_memory(
    tmp_path: Path, start: bytes, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 100_000
    for module in ("sheet", "sheet_scan"):
        monkeypatch.setattr(f"contrada.files.{module}.ROW_BYTES_MAX", limit)
    start = start.replace(b",", b"\t") if "tsv" in name else start
    raw = start + b"0" * (limit + 9)
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    with pytest.raises(InvalidInput, match=r"bomb\..*line \d+.* 100,000 bytes \(ROW_BYTES_MAX\)"):
        read_rows(tmp_path / name)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_small_gzip_of_one_giant_line_takes_little_memory(tmp_path: Path) -> None:
    small, bomb = tmp_path / "small.csv", tmp_path / "bomb.csv.gz"
    small.write_text("a,b\n1,2\n")
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(b"a,b\n1,")
        for _ in range(5):
            file.write(b"0" * (ROW_BYTES_MAX // 4))
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, bomb, small], capture_output=True, text=True, check=True
    )
    said, growth_kb = done.stdout.splitlines()
    assert "line 2 is longer than 67,108,864 bytes (ROW_BYTES_MAX)" in said
    assert int(growth_kb) < 40_000


@pytest.mark.parametrize("cell", ["", "n/a", "1,2"])
def test_one_odd_row_among_those_swallowed_does_not_hide_the_others(
    tmp_path: Path, cell: str
) -> None:
    lines = [f"{n},POINT(3 {n}),{2 * n},name{n}" for n in range(1, 13)]
    lines[2] = '3,POINT(3 3),6,"oops'
    lines[4] = f"5,POINT(3 5),{cell},name5"
    lines[7] = '8,POINT(3 8),16,oops"'
    path = save(tmp_path, "id,wkt,n,name\n" + "\n".join(lines) + "\n")
    with pytest.raises(InvalidInput, match="line 4: a quoted cell runs on to line 9"):
        read_rows(path)


def test_two_lines_that_may_be_rows_are_warned_of(tmp_path: Path) -> None:
    lines = [f"{n},POINT(3 {n}),{2 * n},name{n}" for n in range(1, 13)]
    lines[2:4] = ['3,POINT(3 3),6,"oops', '4,POINT(3 4),n/a,oops"']
    path = save(tmp_path, "id,wkt,n,name\n" + "\n".join(lines) + "\n")
    with pytest.warns(
        UserWarning, match="line 4: .* to line 5, and the lines inside it may be rows"
    ):
        assert read_rows(path).count == 11


def test_a_row_of_quoted_cells_is_meant_whatever_its_lines_look_like(tmp_path: Path) -> None:
    text = "id,n,note\n" + "1,2,a\n" * 3 + '"4","5","a\n6,7,b\n8,9,c"\n'
    assert read_rows(save(tmp_path, text)).count == 4


def test_lines_that_read_as_rows_are_warned_of_where_the_first_is_no_row_by_itself(
    tmp_path: Path,
) -> None:
    text = 'n,c\n0,"d, e"\n1,"d, e""\n2,""\n3,q"\n4,"abc"\n'
    with pytest.warns(UserWarning, match="line 3: a quoted cell runs on to line 5, .* may be rows"):
        assert read_rows(save(tmp_path, text)).count == 3


def test_many_cells_that_may_be_rows_are_one_warning(tmp_path: Path) -> None:
    text = "id,n,name\n" + '1,2,"x\n,,y"\n' * 3_000
    with pytest.warns(UserWarning, match="line 2: .* to line 3, .* may be rows") as told:
        assert read_rows(save(tmp_path, text)).count == 3_000
    (warning,) = told
    assert str(warning.message).endswith("every cell of that row (2,999 more cells look like it)")


@pytest.mark.parametrize("cell", ["x\n,,\n", "x\n2020-02-30,,y\n7,a\n"])
def test_many_cells_over_several_lines_are_not_judged_one_by_one(
    tmp_path: Path, cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    look_alike = ColumnTypes.look_alike

    def count(self: ColumnTypes, cells: pa.Array) -> NDArray[np.bool_]:
        asked.append(len(cells))
        return look_alike(self, cells)

    monkeypatch.setattr(ColumnTypes, "look_alike", count)
    path = save(tmp_path, "a,t,c\n" + f'1,2020-01-01,"{cell}"\n' * 3_000)
    assert read_rows(path).count == 3_000
    assert len(asked) <= 3 * (path.stat().st_size // SCAN_BYTES + 2)
