"""Rows of delimited text, against a slow and obvious twin, and however the text is cut."""

import io
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from hypothesis import given
from hypothesis import strategies as st

from contrada.kernels.delimiting import (
    CELLS,
    FAULT,
    LINE_NUMBER,
    LISTED,
    LISTED_OF_A_ROW,
    MODE,
    NO_FAULT,
    NO_LIST,
    QUOTE_LINE,
    QUOTED,
    RAGGED,
    RAGGED_LINES,
    ROW_LINE,
    ROW_TOO_LONG,
    ROWS,
    SUSPECTS,
    TEXT_AFTER_QUOTE,
    kinds_of_bytes,
    scan_rows,
    start_rows,
)

TEXTS = st.lists(
    st.sampled_from(["a", ",", '"', "\n", "\r", "\r\n", '"a"', '"a\na"', "a,a\n", '"",', '""']),
    max_size=12,
).map("".join)
WHOLE = st.lists(
    st.lists(
        st.sampled_from(["", "a", 'a"', '""', '"a,a"', '"a\na"', '"a,\r\na"', '"a""a"', '"\r"']),
        min_size=2,
        max_size=2,
    ).map(",".join),
    max_size=6,
).map("\n".join)


@dataclass
class Told:
    """What a scan says of a whole text."""

    rows: int
    fault: int
    line: int
    is_open: bool
    suspects: int
    ragged: int


def scan(text: str, cells: int, cuts: tuple[int, ...] = ()) -> Told:
    """Scan a text, cut at some of its bytes."""
    state, kinds = start_rows(), kinds_of_bytes(",")
    listed = np.empty((len(text) + 1, LISTED_OF_A_ROW), np.int64)
    for piece in np.split(np.frombuffer(text.encode(), np.uint8), sorted(cuts)):
        if state[FAULT] == NO_FAULT:
            scan_rows(piece, 0, kinds, cells, 10**9, state, listed)
    assert np.count_nonzero(listed[: state[LISTED], 3]) == state[SUSPECTS]
    rows, fault, line, suspects, ragged = (
        int(state[place]) for place in (ROWS, FAULT, LINE_NUMBER, SUSPECTS, RAGGED)
    )
    return Told(rows, fault, line, bool(state[MODE] == QUOTED), suspects, ragged)


def tell(text: str, cells: int) -> Told:
    """The twin: line by line, and a row goes on as long as a quote is open."""
    rows = suspects = ragged = 0
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    row: list[str] = []
    for number, line in enumerate(lines[:-1], 1):
        row.append(line)
        fault, is_open, found = parse("\n".join(row))
        if fault:
            return Told(rows, TEXT_AFTER_QUOTE, number, False, suspects, ragged)
        if is_open:
            continue
        if row != [""]:
            rows += 1
            full = [part.count(",") >= cells - 1 for part in row if part]
            if found != cells and len(row) > 1 and any(full):
                return Told(rows, RAGGED_LINES, number + 1, False, suspects, ragged)
            ragged += found != cells
            suspects += found == cells and len(row) > 1 and 2 * sum(full) > len(full)
        row = []
    fault, is_open, _ = parse("\n".join([*row, lines[-1]]))
    last = TEXT_AFTER_QUOTE if fault else NO_FAULT
    return Told(rows, last, len(lines), is_open, suspects, ragged)


def parse(row: str) -> tuple[bool, bool, int]:
    """Whether there is text after a closing quote, whether a quote is open, how many cells."""
    cells = 1
    while row:
        if row.startswith('"'):
            _, quote, row = row[1:].partition('"')
            while quote and row.startswith('"'):
                _, quote, row = row[1:].partition('"')
            if not quote:
                return False, True, cells
            if row and not row.startswith(","):
                return True, False, cells
        else:
            row = row[row.find(",") :] if "," in row else ""
        cells += row.startswith(",")
        row = row[1:]
    return False, False, cells


@given(TEXTS | WHOLE, st.integers(1, 3), st.sets(st.integers(0, 12)))
def test_rows_are_those_of_the_twin_wherever_the_text_is_cut(
    text: str, cells: int, cuts: set[int]
) -> None:
    expected = tell(text, cells)
    assert scan(text, cells, tuple(cuts)) == expected


@given(WHOLE)
def test_the_reader_of_arrow_finds_as_many_rows(text: str) -> None:
    told = scan(f"{text}\n", 2)
    assert told.fault == NO_FAULT
    if told.rows:
        names = pa_csv.ReadOptions(column_names=["a", "b"])
        parse_options = pa_csv.ParseOptions(newlines_in_values=True)
        types = pa_csv.ConvertOptions(column_types={"a": pa.string(), "b": pa.string()})
        table = pa_csv.read_csv(io.BytesIO(text.encode()), names, parse_options, types)
        assert table.num_rows == told.rows


def test_rows_are_listed_with_their_first_line_their_cells_and_their_end() -> None:
    state, listed = start_rows(), np.empty((9, LISTED_OF_A_ROW), np.int64)
    block = np.frombuffer(b'a,b\n\n1\n2,"x\ny"\n3,4,5\n6,"x\n,y"\n', np.uint8)
    scan_rows(block, 0, kinds_of_bytes(","), 2, 99, state, listed)
    rows = [[1, 2, 4, 0], [3, 1, 7, 0], [4, 2, 15, 0], [6, 3, 21, 0], [7, 2, 30, 7]]
    assert listed[: state[LISTED]].tolist() == rows


def test_a_row_longer_than_allowed_ends_the_scan_with_its_line() -> None:
    for text, line in (("a,a\naaaa,aaaa\n", 2), ("a,a\naaaa,aaaaaaa", 2), ('a,a\n"a\na\na\na"', 2)):
        state = start_rows()
        block = np.frombuffer(text.encode(), np.uint8)
        scan_rows(block, 0, kinds_of_bytes(","), 2, 8, state, NO_LIST)
        assert state[FAULT] == ROW_TOO_LONG
        assert state[ROW_LINE] == line


def test_a_fault_names_the_line_and_the_line_of_the_quote() -> None:
    state = start_rows()
    block = np.frombuffer(b'a,a\na,"a\n\na" a\n', np.uint8)
    assert scan_rows(block, 0, kinds_of_bytes(","), 2, 99, state, NO_LIST) == 13
    assert state[FAULT] == TEXT_AFTER_QUOTE
    assert [state[ROW_LINE], state[QUOTE_LINE], state[LINE_NUMBER], state[CELLS]] == [2, 2, 4, 2]
