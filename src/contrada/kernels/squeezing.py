"""Where values stand in JSON text, in passes over its bytes: for those who keep a value as it came.

The text has been parsed before and is right: nothing is checked again. `squeeze` comes first, and
the others take what it wrote.
"""

import numpy as np
from numpy.typing import NDArray

from contrada.kernels.boxtree import Ints
from contrada.kernels.compiling import kernel
from contrada.kernels.delimiting import Bytes

NOT_PLAIN = -1

_QUOTE, _ESCAPE, _SPACE, _COMMA, _COLON = 34, 92, 32, 44, 58
_OPENING = (91, 123)
_CLOSING = (93, 125)
_DIGITS_MAX = 300  # in a row: more could be a number beyond all doubles


@kernel
def squeeze(text: Bytes, squeezed: Bytes) -> int:
    """Write a text without the white space between its values; return how many bytes that takes."""
    size, at, is_inside = 0, 0, False
    while at < len(text):
        byte = text[at]
        if is_inside and byte == _ESCAPE:
            squeezed[size] = byte
            size, at = size + 1, at + 1
            byte = text[at]
        elif byte == _QUOTE:
            is_inside = not is_inside
        if is_inside or byte > _SPACE:
            squeezed[size] = byte
            size += 1
        at += 1
    return size


@kernel
def end_of_text(text: Bytes, at: int) -> int:
    """Return the byte after the closing quote of the text whose opening quote is at a byte."""
    at += 1
    while text[at] != _QUOTE:
        at += 2 if text[at] == _ESCAPE else 1
    return at + 1


@kernel
def end_of_value(text: Bytes, at: int) -> int:
    """Return the byte after the value that begins at a byte."""
    depth = 0
    while at < len(text):
        byte = text[at]
        if byte == _QUOTE:
            at = end_of_text(text, at)
            continue
        if byte in _OPENING:
            depth += 1
        elif byte in _CLOSING:
            depth -= 1
        if depth < 0 or (depth == 0 and byte == _COMMA):
            return at
        at += 1
    return at


@kernel
def find_elements(text: Bytes, at: int, starts: Ints, ends: Ints) -> int:
    """Find the elements of the array that opens at a byte, and return how many they are.

    Those for which there is no place in `starts` are counted only.
    """
    count = 0
    at += 1
    while text[at] not in _CLOSING:
        end = end_of_value(text, at)
        if count < len(starts):
            starts[count], ends[count] = at, end
        count += 1
        at = end + 1 if text[end] == _COMMA else end
    return count


@kernel
def find_members(text: Bytes, name: Bytes, starts: Ints, ends: Ints) -> None:
    """Put in place of where objects are where their members of one name have their values.

    -1 stands for none, for several, and for an object that spells a name with an escape.
    """
    for i in range(len(starts)):
        at, last = starts[i] + 1, ends[i] - 1
        found = 0
        while at < last:
            end = end_of_text(text, at)
            is_same = end - at == len(name) + 2
            for j in range(at + 1, end - 1):
                if text[j] == _ESCAPE:
                    found = 2
                is_same = is_same and text[j] == name[j - at - 1]
            after = end_of_value(text, end + 1)
            if is_same:
                found += 1
                starts[i], ends[i] = end + 1, after
            at = after + 1
        if found != 1:
            starts[i] = ends[i] = -1


@kernel
def count_members(text: Bytes, starts: Ints, ends: Ints, depth_max: int, counts: Ints) -> None:
    """Count the members of all objects in each value; NOT_PLAIN if someone must look at it.

    So it is where it is nested too deep, has a number that may not be finite, or half a surrogate
    pair.
    """
    for i in range(len(starts)):
        count = depth = digits = 0
        at = starts[i]
        while at < ends[i] and count >= 0:
            byte = text[at]
            is_digit = 48 <= byte <= 57
            digits = digits + 1 if is_digit else 0
            if byte == _QUOTE:
                end = end_of_text(text, at)
                if _has_surrogate(text, at, end):
                    count = NOT_PLAIN
                at = end
                continue
            if byte in _OPENING:
                depth += 1
            elif byte in _CLOSING:
                depth -= 1
            elif byte == _COLON:
                count += 1
            if depth > depth_max or digits > _DIGITS_MAX or _may_be_infinite(text, at):
                count = NOT_PLAIN
            at += 1
        counts[i] = count


@kernel
def _may_be_infinite(text: Bytes, at: int) -> bool:
    """Whether a byte outside of texts is of NaN or Infinity, or begins an exponent above zero."""
    byte = text[at]
    if byte in (73, 78):  # I, N
        return True
    is_exponent = byte in (69, 101) and 46 <= text[at - 1] <= 57
    return is_exponent and text[at + 1] != 45


@kernel
def _has_surrogate(text: Bytes, at: int, end: int) -> bool:
    """Whether a text spells a character from D800 on with an escape."""
    while at < end:
        if text[at] == _ESCAPE:
            at += 1
            if text[at] == 117 and text[at + 1] in (68, 100):  # u, D, d
                return True
        at += 1
    return False


def as_bytes(text: bytes) -> NDArray[np.uint8]:
    """Return the bytes of a text as an array."""
    return np.frombuffer(text, np.uint8)
