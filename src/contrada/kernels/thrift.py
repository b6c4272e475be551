"""The structs of Thrift's compact protocol, walked once from the first byte to the last.

Bytes in, a table of numbers out. What the structs mean is the caller's: a rule for each field of a
kind of struct says which type it must have, and of which kind the structs in it are.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from contrada.kernels.boxtree import Ints
from contrada.kernels.compiling import kernel

ThriftBytes: TypeAlias = NDArray[np.uint8] | bytes

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
FIELDS = 32  # a kind of struct has rules for its fields 1 to 31
DAMAGED, IS_FULL = -1, -2
ABSENT = -1  # stands for negative and gigantic numbers, too
_DEPTH_MAX = 32
_FIELD_MAX = 32_767
_KIND, _ROW, _FIELD, _LEFT, _MEMBER = range(5)  # of a struct or list that is walked


@kernel
def read_varint(data: ThriftBytes, at: int, end: int) -> tuple[int, int]:
    """Read a number of up to ten bytes; return it and the place after it, which is -1 if there is
    none. A number of more than 63 bits is returned as -1."""
    number = 0
    shift = 0
    while at < end and shift < 70:
        byte = data[at] & 255
        at += 1
        if shift < 63:
            number |= (byte & 127) << shift
        else:
            number = -1
        if byte < 128:
            return number, at
        shift += 7
    return -1, -1


@kernel
def read_list_head(data: ThriftBytes, at: int, end: int) -> tuple[int, int, int]:
    """Read the head of a list; return its length, the type of its members, and the place after it,
    which is -1 if there is none or the list is longer than what follows."""
    if at >= end:
        return 0, 0, -1
    head = data[at] & 255
    at += 1
    count = head >> 4
    if count == 15:
        count, at = read_varint(data, at, end)
    if count < 0 or count > end - at:
        return 0, 0, -1
    return count, head & 15, at


@kernel
def read_field_head(data: ThriftBytes, at: int, end: int, last: int) -> tuple[int, int, int]:
    """Read the head of a field after the field `last`; return its type, 0 at the end of the struct,
    its number, and the place after the head, which is -1 if there is none."""
    if at >= end:
        return 0, 0, -1
    head = data[at] & 255
    at += 1
    field = last + (head >> 4)
    if 0 < head < 16:
        number, at = read_varint(data, at, end)
        field = (number >> 1) ^ -(number & 1)
    if field > _FIELD_MAX or field < -_FIELD_MAX:
        at = -1
    return head & 15, field, at


@kernel
def read_scalar(
    data: ThriftBytes, at: int, end: int, type_: int, is_member: bool
) -> tuple[int, int]:
    """Read a value with nothing in it; return the number that it is, or -1, and the place after it,
    which is -1 if there is none. What a field says of a boolean is in its head."""
    if I16 <= type_ <= I64:
        number, at = read_varint(data, at, end)
        return max((number >> 1) ^ -(number & 1), ABSENT), at
    size = 0
    if type_ == BINARY:
        size, at = read_varint(data, at, end)
    elif type_ == DOUBLE:
        size = 8
    elif type_ == BYTE or is_member:
        size = 1
    is_known = TRUE <= type_ <= BINARY
    return ABSENT, (at + size if is_known and at >= 0 and 0 <= size <= end - at else -1)


@kernel
def walk_structs(data: ThriftBytes, types: ThriftBytes, kinds: ThriftBytes, found: Ints) -> int:
    """Walk the struct at the beginning of some bytes, of kind 1, and all that is in it.

    For the field `f` of a struct of kind `k`, `types[k * FIELDS + f]` is the type that it must
    have, or 0 where it does not matter, and `kinds[k * FIELDS + f]` the kind of the structs in it,
    or 0. Each struct of a kind is a row of `found`: its kind, and for each field that matters the
    number that it is, or how many members it has. Returns the number of rows, `DAMAGED`, or
    `IS_FULL` where there are more.
    """
    end, at, depth, rows = len(data), 0, 0, 1
    frames = np.zeros((_DEPTH_MAX, 5), np.int64)
    frame = frames[0]
    frame[_KIND], frame[_LEFT] = 1, -1  # a struct does not say how many fields are left
    found[0, :] = ABSENT
    found[0, 0] = 1
    while at >= 0:
        kind, type_, column, is_member = frame[_KIND], 0, 0, frame[_LEFT] > 0
        if is_member:
            frame[_LEFT] -= 1
            type_ = frame[_MEMBER]
        elif frame[_LEFT] < 0:
            type_, field, at = read_field_head(data, at, end, frame[_FIELD])
            frame[_FIELD] = field
            rule = kind * FIELDS + field if kind > 0 and 0 < field < FIELDS else 0
            kind, column = kinds[rule], (field if types[rule] else 0)
            if type_ and column and type_ != types[rule]:
                return DAMAGED
        if type_ == 0:  # the end of a struct or a list
            if is_member or at < 0:
                return DAMAGED
            if depth == 0:
                return rows
            depth -= 1
            frame = frames[depth]
            continue
        if type_ not in (LIST, SET, STRUCT):
            number, at = read_scalar(data, at, end, type_, is_member)
            if column:
                found[frame[_ROW], column] = number
            continue
        left, member, row = -1, 0, 0
        if type_ != STRUCT:
            left, member, at = read_list_head(data, at, end)
            if column:
                found[frame[_ROW], column] = left
        elif kind:
            if rows == len(found):
                return IS_FULL
            row = rows
            found[row, :] = ABSENT
            found[row, 0] = kind
            rows += 1
        depth += 1
        if depth == _DEPTH_MAX or (left > 0 and kind > 0 and member != STRUCT):
            return DAMAGED
        frame = frames[depth]
        frame[_KIND], frame[_ROW], frame[_FIELD] = kind, row, 0
        frame[_LEFT], frame[_MEMBER] = left, member
    return DAMAGED
