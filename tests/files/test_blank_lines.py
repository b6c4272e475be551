"""Blank lines: passed over many at a time, and counted."""

import gzip
import io
from pathlib import Path

import pytest

from contrada import InvalidInput
from contrada.files import read_rows
from contrada.files.blank_lines import BLANK_LINES, EMPTY_LINES, skip_blank_lines
from contrada.files.json_lines import split_texts
from contrada.files.sheet import _HeaderLines

MANY = 300_000


class CountingReader(io.BufferedReader):
    """A file that knows how many of its lines were read one by one."""

    lines = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        self.lines += 1
        return super().readline(size)


def reader(text: bytes) -> CountingReader:
    return CountingReader(io.BytesIO(text))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\r\n"])
def test_empty_lines_are_passed_over_and_counted(end: bytes) -> None:
    file = reader(end * 10_000 + b"x\n\n")
    lines, length = 0, 0
    while (found := skip_blank_lines(file, EMPTY_LINES)) != (0, 0):
        lines, length = lines + found[0], length + found[1]
        if file.peek(1).startswith(b"\r"):  # a line that was cut
            length += len(file.readline())
            lines += 1
    assert (lines, length) == (end.count(b"\n") * 10_000, len(end) * 10_000)
    assert file.read() == b"x\n\n"


def test_a_line_of_spaces_is_blank_only_where_it_counts_as_such() -> None:
    assert skip_blank_lines(reader(b"\n \t\n \r\n x"), EMPTY_LINES) == (1, 1)
    assert skip_blank_lines(reader(b"\n \t\n \r\n x"), BLANK_LINES) == (3, 7)
    assert skip_blank_lines(reader(b"")) == (0, 0)


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \t\n"])
def test_many_blank_lines_of_json_are_not_read_one_by_one(blank: bytes) -> None:
    file = reader(blank * MANY + b'{"a": 1}\n' + blank * MANY + b'{"a": 2}\n' + blank * MANY)
    texts = list(split_texts(file, "x.jsonl"))
    assert texts == [(MANY + 1, b'{"a": 1}'), (2 * MANY + 2, b'{"a": 2}')]
    assert file.lines < MANY / 100


@pytest.mark.parametrize("blank", [b"\n", b"\r\n"])
def test_many_blank_lines_before_a_header_are_not_read_one_by_one(blank: bytes) -> None:
    file = reader(b"\xef\xbb\xbf" + blank * MANY + b"a,b\n1,2\n")
    lines = _HeaderLines(file, "x.csv")
    assert next(line for line in lines if line.strip()) == "a,b\n"
    assert (lines.number, lines.length) == (MANY + 1, len(blank) * MANY + 4)
    assert file.lines < MANY / 100


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("header", [b"a,b\n", b'"a\n\n\n",b\r\n', b"a,b\r\n"])
@pytest.mark.parametrize("more", [b"", b"9\n", b"\n\n7,8,9\n"])
def test_rows_begin_after_blank_lines_and_a_header(
    mark: bytes, header: bytes, more: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(mark + b"\n" * 5_000_000 + header + b"1,2\n\n3,4\n" + more))
    rows = read_rows(path)
    assert rows.schema.names[1] == "b"
    cells = [row["b"] for batch, _ in rows.judged() for row in batch.to_pylist()]
    assert cells == [2, 4] + [None] * bool(more)
    line = 5_000_001 + header.count(b"\n")
    assert [rows.line_finder()(row) for row in range(2)] == [line, line + 2]
    if more:
        with pytest.raises(InvalidInput, match=r"line 50000\d+ \(row 2\): the row has"):
            list(rows.batches())


def test_a_file_of_which_all_rows_are_ragged_has_only_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("\n\na,b\n1\n1,2,3\n")
    assert [len(faults) for _, faults in read_rows(path).judged()] == [2]
