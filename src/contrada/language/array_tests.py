"""Arrays compared as sets, in three-valued logic.

Whether a null or NaN equals another element is unknown, for each of them by itself: nobody asks
which value would suit several at once. Elements of different types are not equal, arrays within
arrays are compared as sets in turn, and what cannot be compared at all (an object, bytes) is equal
to nothing.

Every array becomes a set of keys and of the numbers of the arrays in it, and equal ones get the
same number, so that most questions are those of sets. Only where unknown elements lie in arrays
within arrays, or moments meet texts that may be moments, is each compared with each; after
`ARRAY_PAIRS_MAX` such comparisons, or of `ARRAY_ELEMENTS_MAX` elements, the answer is unknown. So
is it for arrays nested deeper than `ARRAY_DEPTH_MAX`.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrada.language.values import (
    every,
    is_long_decimal,
    is_moment,
    is_number,
    is_unknown,
    some,
)
from contrada.limits import ARRAY_DEPTH_MAX, ARRAY_ELEMENTS_MAX, ARRAY_PAIRS_MAX
from contrada.model.event import as_python
from contrada.model.instant import read_instant
from contrada.model.number_keys import number_key

ElementKey = tuple[str, Hashable]  # the kind of a value, and what tells it from others of the kind
Number = int  # of an array: equal arrays that are fully known have the same


_TIMES_EACH = 2  # that an element is compared: the cost is in proportion to the size
_TEXTS_TO_MOMENTS = 8  # times as dear, since a text must be read first

_UNKNOWN: ElementKey = ("unknown", None)
_OTHER: ElementKey = ("other", None)


class _TooMuch(Exception):
    """Arrays are nested too deep, or too many are to be compared with each other."""


def is_array(value: Any) -> bool:
    """Whether a value is an array."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def compare_arrays(name: str, a: Any, b: Any) -> bool | None:
    """Answer one of the four `A_…` tests; None where it is unknown."""
    if not (is_array(a) and is_array(b)):
        return None
    arrays = _Arrays()
    try:
        first, second = arrays.read(a), arrays.read(b)
        if name == "a_contains":
            return arrays.holds_all(first, second)
        if name == "a_containedBy":
            return arrays.holds_all(second, first)
        return arrays.are_equal(first, second) if name == "a_equals" else arrays.meet(first, second)
    except _TooMuch:
        return None


@dataclass(frozen=True, slots=True)
class _Set:
    """The elements of an array: keys of values, numbers of arrays, and what has no key.

    An unknown element may be equal to any, another kind of value is equal to none, not even to
    itself. The last three members speak of the arrays within it, too.
    """

    keys: frozenset[ElementKey]
    arrays: frozenset[Number]
    has_unknown: bool
    has_others: bool
    is_vague: bool
    has_moments: bool
    has_texts: bool

    def is_empty(self) -> bool:
        return not (self.keys or self.arrays or self.has_unknown or self.has_others)

    def size(self) -> int:
        return len(self.keys) + len(self.arrays)

    def missing(self, other: "_Set") -> frozenset[ElementKey]:
        """List the keys of another set that are not here; a text may spell a moment."""
        missing = other.keys - self.keys
        if missing and other.has_texts and self.has_moments:
            missing = frozenset(key for key in missing if _as_moment(key) not in self.keys)
        if missing and other.has_moments and self.has_texts:
            missing -= frozenset(map(_as_moment, self.keys))
        return missing


def _key(value: Any) -> ElementKey:
    if is_unknown(value):
        return _UNKNOWN
    if isinstance(value, bool):
        return "boolean", value
    if is_number(value):
        return _UNKNOWN if is_long_decimal(value) else ("number", number_key(value))
    if isinstance(value, str):
        return "text", value
    moment = read_instant(value) if is_moment(value) else None
    return _OTHER if moment is None else ("time", moment.ns)


def _as_moment(key: ElementKey) -> ElementKey:
    """Return the key of the moment that a text denotes; any other key as it is."""
    moment = read_instant(key[1]) if key[0] == "text" else None
    return key if moment is None else ("time", moment.ns)


def _are_mixed(one: _Set, other: _Set) -> bool:
    """Whether a text of one may be a moment of the other."""
    return (one.has_moments and other.has_texts) or (one.has_texts and other.has_moments)


class _Arrays:
    """The arrays of one comparison."""

    def __init__(self) -> None:
        self._sets: list[_Set] = []
        self._numbers: dict[_Set, Number] = {}
        self._read: dict[int, tuple[Number, Any]] = {}  # with the object, which keeps its address
        self._equal: dict[tuple[Number, Number], bool | None] = {}
        self._compared = 0
        self._elements = 0  # that were read, and that were compared
        self._elements_compared = 0

    def read(self, array: Any, depth: int = 0) -> Number:
        """Number an array and all arrays in it; one that stands in many places is read once."""
        if id(array) in self._read:
            return self._read[id(array)][0]
        if depth > ARRAY_DEPTH_MAX:
            raise _TooMuch
        elements = [as_python(element) for element in array]
        self._elements += len(elements)
        inner = [element for element in elements if is_array(element)]
        arrays = frozenset(self.read(element, depth + 1) for element in inner)
        keys = frozenset(_key(element) for element in elements if not is_array(element))
        set_ = self._make_set(keys, arrays)
        number = self._numbers.setdefault(set_, len(self._sets))
        if number == len(self._sets):
            self._sets.append(set_)
        self._read[id(array)] = number, array
        return number

    def _make_set(self, keys: frozenset[ElementKey], arrays: frozenset[Number]) -> _Set:
        inner = [self._sets[number] for number in arrays]
        kinds = {kind for kind, _ in keys}
        return _Set(
            keys - {_UNKNOWN, _OTHER},
            arrays,
            _UNKNOWN in keys,
            _OTHER in keys,
            _UNKNOWN in keys or _OTHER in keys or any(set_.is_vague for set_ in inner),
            "time" in kinds or any(set_.has_moments for set_ in inner),
            "text" in kinds or any(set_.has_texts for set_ in inner),
        )

    def are_equal(self, a: Number, b: Number) -> bool | None:
        """Whether two arrays have the same elements."""
        first, second = self._sets[a], self._sets[b]
        if not (first.is_vague or second.is_vague or _are_mixed(first, second)):
            return a == b
        if (a, b) not in self._equal:
            self._equal[a, b] = every((self.holds_all(a, b), self.holds_all(b, a)))
        return self._equal[a, b]

    def holds_all(self, a: Number, b: Number) -> bool | None:
        """Whether the first array has all elements of the second."""
        first, second = self._sets[a], self._sets[b]
        otherwise = None if first.has_unknown else False
        parts: list[bool | None] = [True]
        if second.has_others or first.missing(second):
            parts.append(otherwise)
        if second.has_unknown:
            parts.append(False if first.is_empty() else None)
        parts += (some((otherwise, *self._equals(first.arrays, n))) for n in second.arrays)
        return every(parts)

    def meet(self, a: Number, b: Number) -> bool | None:
        """Whether two arrays have an element in common."""
        first, second = self._sets[a], self._sets[b]
        if len(first.missing(second)) < len(second.keys):
            return True
        is_open = (first.has_unknown and not second.is_empty()) or (
            second.has_unknown and not first.is_empty()
        )
        found = (some(self._equals(first.arrays, number)) for number in second.arrays)
        return some((None if is_open else False, *found))

    def _equals(self, numbers: frozenset[Number], other: Number) -> Iterable[bool | None]:
        """Compare arrays with one; the very same and fully known is found without a comparison."""
        if other in numbers and not self._sets[other].is_vague:
            yield True
            return
        for number in numbers:
            self._compared += 1
            self._elements_compared += self._count_elements(number, other)
            elements_max = max(ARRAY_ELEMENTS_MAX, _TIMES_EACH * self._elements)
            if self._compared > ARRAY_PAIRS_MAX or self._elements_compared > elements_max:
                raise _TooMuch
            yield self.are_equal(number, other)

    def _count_elements(self, a: Number, b: Number) -> int:
        """Count the elements that are looked at to compare two arrays, as dear as they are."""
        first, second = self._sets[a], self._sets[b]
        size = first.size() + second.size()
        return size * _TEXTS_TO_MOMENTS if _are_mixed(first, second) else size
