"""Where the cells and rows of delimited text end: RFC 4180 to the letter, in one pass over bytes.

A quote opens a quoted cell only at the beginning of a cell; within one, two quotes are one, and
after the closing quote comes a delimiter or the end of the line. In a cell without quotes a quote
is text. Lines end with LF, CR or both. The text comes in blocks of any size, and what is known
between two of them is in one array, whose places are named below.
"""

import numpy as np
from numpy.typing import NDArray

from contrada.kernels.boxtree import Ints
from contrada.kernels.compiling import kernel

Bytes = NDArray[np.uint8]

# Places of the array
MODE, AFTER_CR, LINE_NUMBER, ROWS, CELLS, ROW_BYTES, ROW_LINE, QUOTE_LINE, SUSPECTS = range(9)
LINE_BYTES, LINE_DELIMITERS, FULL_LINES, ROW_LINES, LISTED, RAGGED, FAULT = range(9, 16)

START, UNQUOTED, QUOTED, CLOSING = range(4)  # of a cell
NO_FAULT, TEXT_AFTER_QUOTE, ROW_TOO_LONG, RAGGED_LINES = range(4)

_LF, _CR, _QUOTE = 10, 13, 34
_TEXT, _DELIMITER, _QUOTES, _LINE_END = range(4)  # kinds of bytes
LISTED_OF_A_ROW = 4  # numbers
NO_LIST = np.empty((0, LISTED_OF_A_ROW), np.int64)


def start_rows() -> Ints:
    """Return the state before the first block of a text."""
    state = np.zeros(FAULT + 1, np.int64)
    state[[LINE_NUMBER, ROW_LINE, CELLS]] = 1
    return state


def kinds_of_bytes(delimiter: str) -> Bytes:
    """Return the kind of each byte, where cells are delimited by this character."""
    kinds = np.full(256, _TEXT, np.uint8)
    kinds[ord(delimiter)] = _DELIMITER
    kinds[_QUOTE] = _QUOTES
    kinds[[_LF, _CR]] = _LINE_END
    return kinds


@kernel
def scan_rows(
    block: Bytes,
    at: int,
    kinds: Bytes,
    cells: int,
    bytes_max: int,
    state: Ints,
    listed: Ints,
) -> int:
    """Scan a block from the byte `at` on; return the byte after the last one that was read.

    That is the end of the block, or, with the reason in `state[FAULT]`, a byte that must not stand
    there, or the end of a row of more than `bytes_max` bytes. A row of another number of cells is
    ragged: it is counted, unless it goes over several lines of which any has enough delimiters to
    be a row of its own, where the scan stops. Any other row over several lines, most of which have
    enough, is a suspect, which is counted.
    Of each row that ends here, its first line, its number of cells, the byte after its end and, of
    a suspect, the line of its last quoted cell (0 of others) go into `listed`, from `state[LISTED]`
    on, as far as it has room.
    """
    mode = state[MODE]
    row_start, line_start = at - state[ROW_BYTES], at - state[LINE_BYTES]
    while at < len(block):
        kind = kinds[block[at]]
        at += 1
        if kind == _TEXT:
            if mode == CLOSING:
                state[FAULT] = TEXT_AFTER_QUOTE
                break
            if mode == START:
                mode = UNQUOTED
        elif kind == _DELIMITER:
            state[LINE_DELIMITERS] += 1
            if mode != QUOTED:
                state[CELLS] += 1
                mode = START
        elif kind == _QUOTES:
            if mode == START:
                state[QUOTE_LINE] = state[LINE_NUMBER]
            if mode != UNQUOTED:
                mode = CLOSING if mode == QUOTED else QUOTED
        else:
            if not is_second_half(block, at - 1, state[AFTER_CR]):
                state[LINE_NUMBER] += 1
                end_line(at - 1 - line_start, cells, state)
                if mode != QUOTED:
                    state[ROW_BYTES] = at - 1 - row_start
                    if end_row(at, cells, bytes_max, state, listed):
                        state[AFTER_CR] = block[at - 1] == _CR
                        return at
                    mode = START
            line_start = at
            if mode != QUOTED:
                row_start = at
    state[MODE] = mode
    end_block(block, at, row_start, line_start, bytes_max, state)
    return at


@kernel
def end_block(
    block: Bytes, at: int, row_start: int, line_start: int, bytes_max: int, state: Ints
) -> None:
    """Remember where in a row and a line a block ends; the row may be too long already."""
    state[ROW_BYTES], state[LINE_BYTES] = at - row_start, at - line_start
    state[AFTER_CR] = at > 0 and block[at - 1] == _CR
    if state[ROW_BYTES] > bytes_max and state[FAULT] == NO_FAULT:
        state[FAULT] = ROW_TOO_LONG


@kernel
def is_second_half(block: Bytes, at: int, after_cr: int) -> bool:
    """Whether a byte is the LF of CR LF, a line that has ended already."""
    if block[at] != _LF:
        return False
    return block[at - 1] == _CR if at else after_cr != 0


@kernel
def end_line(length: int, cells: int, state: Ints) -> None:
    """Note whether the line has enough delimiters; a blank one cannot be a row."""
    if length:
        state[ROW_LINES] += 1
        state[FULL_LINES] += state[LINE_DELIMITERS] >= cells - 1
    state[LINE_DELIMITERS] = 0


@kernel
def end_row(at: int, cells: int, bytes_max: int, state: Ints, listed: Ints) -> bool:
    """End a row before the byte `at`; return whether to stop. A blank line is not a row."""
    if state[ROW_BYTES] == 0:
        state[ROW_LINE] = state[LINE_NUMBER]
        return False
    state[ROWS] += 1
    has_lines = state[LINE_NUMBER] - state[ROW_LINE] > 1
    is_suspect = state[CELLS] == cells and has_lines and 2 * state[FULL_LINES] > state[ROW_LINES]
    state[SUSPECTS] += is_suspect
    if state[LISTED] < len(listed):
        listed[state[LISTED], 0] = state[ROW_LINE]
        listed[state[LISTED], 1] = state[CELLS]
        listed[state[LISTED], 2] = at
        listed[state[LISTED], 3] = state[QUOTE_LINE] if is_suspect else 0
        state[LISTED] += 1
    state[MODE] = START
    state[LINE_BYTES] = 0
    if state[ROW_BYTES] > bytes_max:
        state[FAULT] = ROW_TOO_LONG
    elif state[CELLS] != cells and has_lines and state[FULL_LINES] > 0:
        state[FAULT] = RAGGED_LINES
    elif state[CELLS] != cells:
        state[RAGGED] += 1
    if state[FAULT] != NO_FAULT:
        return True
    begin_row(state)
    return False


@kernel
def begin_row(state: Ints) -> None:
    """Forget the row before."""
    state[FAULT] = NO_FAULT
    state[CELLS] = 1
    state[ROW_BYTES] = 0
    state[ROW_LINE] = state[LINE_NUMBER]
    state[FULL_LINES] = state[ROW_LINES] = 0
