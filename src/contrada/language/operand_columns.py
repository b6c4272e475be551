"""Literals of many texts at once: each column has the values that `literals.py` reads one by one.

What that would refuse, or what a column cannot hold, is not an error here: every reader returns
beside the values which of them are sound, and the others are worth nothing.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.arrays import Floats, Geometries, Integers, Mask, Positions
from contrada.errors import InvalidInput
from contrada.model.encodings import read_wkts
from contrada.model.expression import Value
from contrada.model.expression_parts import OperandType, operand_type
from contrada.model.geometry import find_faults, tidy
from contrada.model.instant import Instant, parse_instant
from contrada.model.unicode import is_unicode

_WHOLE_MAX = 2**63 - 1
_DIGITS_MAX = 19  # of a whole number that fits


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """Numbers, exactly: `whole` where they are written without point or exponent, else `real`.

    `real` has every number, whole ones rounded to the nearest double; `whole` is 0 for the others.
    """

    whole: Integers
    real: Floats
    is_whole: Mask

    def __len__(self) -> int:
        return len(self.real)


OperandColumn: TypeAlias = "NumberColumn | NDArray[np.object_]"  # all but numbers are objects


def read_numbers(spellings: Sequence[str], *, is_negative: bool) -> tuple[NumberColumn, Mask]:
    """Read numbers, all with the same sign; whole ones beyond 64 bits are not sound."""
    count = len(spellings)
    real = np.fromiter(map(float, spellings), np.float64, count)
    is_whole = np.fromiter(map(str.isdigit, spellings), bool, count)
    is_short = np.fromiter(map(len, spellings), np.int64, count) <= _DIGITS_MAX
    places = np.flatnonzero(is_whole & is_short)
    whole = np.zeros(count, np.uint64)
    whole[places] = np.fromiter((int(spellings[i]) for i in places.tolist()), np.uint64)
    is_sound = np.isfinite(real) & (~is_whole | (is_short & (whole <= _WHOLE_MAX)))
    sign = -1 if is_negative else 1
    return NumberColumn(sign * whole.astype(np.int64), sign * real, is_whole), is_sound


def read_texts(spellings: Sequence[str]) -> tuple[NDArray[np.object_], Mask]:
    """Read texts in quotes; half a surrogate pair is not sound."""
    texts = np.empty(len(spellings), object)
    texts[:] = [spelt[1:-1].replace("''", "'") for spelt in spellings]
    return texts, np.fromiter(map(is_unicode, texts), bool, len(texts))


def read_shapes(spellings: Sequence[str]) -> tuple[Geometries, Mask]:
    """Read geometries in WKT, tidied, and boxes; empty ones and those with a fault are not sound.

    Nor is a box without an area, or one that crosses the 180° meridian.
    """
    texts = np.empty(len(spellings), object)
    texts[:] = spellings
    is_box = np.fromiter((spelt[0] in "bB" for spelt in spellings), bool, len(spellings))
    shapes = np.empty(len(spellings), object)
    with np.errstate(all="ignore"):
        shapes[~is_box] = tidy(read_wkts(texts[~is_box], on_invalid="ignore"))
    shapes[is_box] = _read_boxes(texts[is_box])
    is_sound = ~(shapely.is_missing(shapes) | shapely.is_empty(shapes))
    shapes[~is_sound] = None
    is_sound[list(find_faults(shapes))] = False
    return shapes, is_sound


def _read_boxes(texts: NDArray[np.object_]) -> Geometries:
    """Read `BBOX(west, south, east, north)`; None where it is not a plain rectangle."""
    inside = (text[text.index("(") + 1 : -1] for text in texts)
    edges = [_read_edge(spelt) for numbers in inside for spelt in numbers.split(",")]
    numbers = np.array(edges, np.float64).reshape(-1, 4)
    west, south, east, north = numbers.T
    is_plain = np.isfinite(numbers).all(axis=1) & (west < east) & (south < north)
    boxes = np.empty(len(texts), object)
    boxes[is_plain] = shapely.box(*numbers[is_plain].T)
    return boxes


def _read_edge(spelt: str) -> float:
    """Read a number; a whole one has no zero below 0."""
    number = float(spelt)
    return 0.0 if number == 0 and spelt.strip(" \t\r\n-").isdigit() else number


def read_moments(spellings: Sequence[str]) -> tuple[NDArray[np.object_], Mask]:
    """Read moments from texts in quotes; those beyond 64 bits of nanoseconds are not sound."""
    moments = np.full(len(spellings), Instant(0), object)
    is_sound = np.zeros(len(spellings), bool)
    for place, spelt in enumerate(spellings):
        with suppress(InvalidInput):
            moment = parse_instant(spelt[1:-1].replace("''", "'"))
            if operand_type(moment) is OperandType.MOMENT:
                moments[place], is_sound[place] = moment, True
    return moments, is_sound


def pick(column: OperandColumn, places: Positions | Mask) -> OperandColumn:
    """The operands at some places of a column."""
    if isinstance(column, NumberColumn):
        return NumberColumn(column.whole[places], column.real[places], column.is_whole[places])
    return column[places]


def join(columns: Sequence[OperandColumn]) -> OperandColumn:
    """One column of several of a kind."""
    numbers = [column for column in columns if isinstance(column, NumberColumn)]
    if not numbers:
        return np.concatenate([column for column in columns if isinstance(column, np.ndarray)])
    return NumberColumn(
        np.concatenate([column.whole for column in numbers]),
        np.concatenate([column.real for column in numbers]),
        np.concatenate([column.is_whole for column in numbers]),
    )


def value_at(column: OperandColumn, place: int) -> Value:
    """One operand as the value of a literal."""
    if not isinstance(column, NumberColumn):
        value: Value = column[place]
        return value
    return int(column.whole[place]) if column.is_whole[place] else float(column.real[place])
