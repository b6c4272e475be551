"""Ids as columns: integers, or texts in UTF-8, whose bytes have the order of their code points."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.arrays import Integers, Mask, Positions
from contrada.deferred import compute as pc
from contrada.model.subscription import Id
from contrada.threads import once

_FEW_MAX = 16  # texts: more are quicker to find all at once
_LOOKUP_COST = 50  # ids that are hashed in the time that one is looked up


def make_id_array(ids: Sequence[Id]) -> pa.Array:
    """Write ids of one kind as a column."""
    is_whole = bool(ids) and isinstance(ids[0], int)
    return pa.array(ids, pa.int64() if is_whole else pa.large_string())


class IdColumn:
    """The ids of a segment, each once, and how to find one."""

    def __init__(self, array: pa.Array) -> None:
        """Take int64 or large strings without nulls."""
        self.array = array
        self.is_whole = pa.types.is_int64(array.type)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the ids alone: their order is found anew."""
        return IdColumn, (self.array,)

    def __len__(self) -> int:
        return len(self.array)

    @once
    def order(self) -> Positions:
        """The positions in the order of ids."""
        if are_increasing(self.array):
            return np.arange(len(self.array))
        if self.is_whole:
            return np.argsort(self.array.to_numpy(), kind="stable").astype(np.int64)
        return np.asarray(pc.array_sort_indices(self.array), np.int64)

    @once
    def _sorted(self) -> Integers:
        assert self.is_whole
        return np.asarray(self.array.to_numpy()[self.order], np.int64)

    @once
    def ranks(self) -> Positions:
        """The place of each position in the order of ids."""
        ranks = np.empty(len(self.order), np.int64)
        ranks[self.order] = np.arange(len(ranks))
        return ranks

    @once
    def in_order(self) -> pa.Array:
        """The ids in order."""
        is_sorted = are_increasing(self.array)
        return self.array if is_sorted else self.array.take(pa.array(self.order))

    def prepare(self) -> None:
        """Find the order now, so that nobody who asks has to."""
        for name in ("ranks", "in_order", *(["_sorted"] if self.is_whole else [])):
            getattr(self, name)

    def one(self, position: int) -> Id:
        """Return one id."""
        id_: Id = self.array[position].as_py()
        return id_

    def find(self, id_: Id) -> int:
        """Return the position of an id; -1 where it is not here."""
        if isinstance(id_, str) == self.is_whole or not len(self.array):
            return -1
        if self.is_whole:
            assert isinstance(id_, int)
            if not -(2**63) <= id_ < 2**63:
                return -1
            place = int(np.searchsorted(self._sorted, id_))
            is_here = place < len(self.array) and self._sorted[place] == id_
        else:
            place = self._bisect(str(id_))
            is_here = place < len(self.array) and self.one(int(self.order[place])) == id_
        return int(self.order[place]) if is_here else -1

    def _bisect(self, text: str) -> int:
        wanted = text.encode(errors="surrogatepass")
        low, high = 0, len(self.array)
        while low < high:
            middle = (low + high) // 2
            if self.array[int(self.order[middle])].as_py().encode() < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def count_before(self, ids: pa.Array) -> Positions:
        """Count the ids here that come before each of some others of the same kind."""
        if self.is_whole:
            return np.asarray(np.searchsorted(self._sorted, ids.to_numpy()), np.int64)
        if len(ids) <= _FEW_MAX:
            return np.array([self._bisect(text) for text in ids.to_pylist()], np.int64)
        return self._bisect_all(ids)

    def _bisect_all(self, texts: pa.Array) -> Positions:
        """Bisect for many texts, all of them at each step, which takes less than to sort them."""
        low, high = np.zeros(len(texts), np.int64), np.full(len(texts), len(self.array))
        for _ in range(len(self.array).bit_length()):
            middle = (low + high) // 2
            is_open = low < high
            middles = self.array.take(pa.array(self.order[np.where(is_open, middle, 0)]))
            is_before = pc.less(middles, texts).to_numpy(zero_copy_only=False)
            low = np.where(is_open & is_before, middle + 1, low)
            high = np.where(is_open & ~is_before, middle, high)
        return low

    def find_many(self, ids: pa.Array) -> Positions:
        """Return the position of each of many ids of the same kind; -1 where one is not here."""
        if not len(ids) or ids.type != self.array.type:
            return np.full(len(ids), -1, np.int64)
        if _LOOKUP_COST * len(ids) > len(self.array):
            found = pc.index_in(ids, value_set=self.array)
            return np.asarray(found.fill_null(-1), np.int64)
        if not self.is_whole and len(ids) <= _FEW_MAX:
            return np.array([self.find(id_) for id_ in ids.to_pylist()], np.int64)
        positions = self.order[np.minimum(self.count_before(ids), len(self.order) - 1)]
        if self.is_whole:
            return np.where(self.array.to_numpy()[positions] == ids.to_numpy(), positions, -1)
        is_here = pc.equal(self.array.take(pa.array(positions)), ids)
        return np.where(is_here.to_numpy(zero_copy_only=False), positions, -1)

    def list(self, positions: Positions) -> list[Id]:
        """List the ids of some positions."""
        if self.is_whole:
            ids: list[Id] = self.array.to_numpy()[positions].tolist()
            return ids
        return [self.array[position].as_py() for position in positions.tolist()]


def are_increasing(ids: pa.Array) -> bool:
    """Whether each id comes after the one before it; those of snapshots and of rows mostly do."""
    if pa.types.is_int64(ids.type):
        numbers = ids.to_numpy()
        return bool((numbers[1:] > numbers[:-1]).all())
    return pc.all(pc.greater(ids[1:], ids[:-1])).as_py() is not False


def are_repeated(ids: pa.Array, *, from_end: bool = False) -> Mask:
    """Which ids are there before, or seen from the end after, too."""
    if are_increasing(ids):
        return np.zeros(len(ids), bool)
    codes = ids.dictionary_encode().indices.to_numpy()
    codes = codes[::-1] if from_end else codes
    is_repeated = np.ones(len(codes), bool)
    is_repeated[np.unique(codes, return_index=True)[1]] = False
    return is_repeated[::-1] if from_end else is_repeated


@dataclass(frozen=True, slots=True)
class SubscriberColumns:
    """Whom each subscription belongs to: a code, -1 for nobody; integers come before texts.

    There are no more codes than subscriptions, since every name is somebody's.
    """

    codes: Positions
    wholes: Integers
    texts: pa.LargeStringArray

    def one(self, position: int) -> Id | None:
        """Return the subscriber of one subscription."""
        code = int(self.codes[position])
        return None if code < 0 else self.name(code)

    def name(self, code: int) -> Id:
        """Return the subscriber of a code."""
        if code < len(self.wholes):
            return int(self.wholes[code])
        text: str = self.texts[code - len(self.wholes)].as_py()
        return text

    def names(self) -> list[Id]:
        """List the subscribers by code."""
        return [*self.wholes.tolist(), *self.texts.to_pylist()]

    def take(self, positions: Positions) -> "SubscriberColumns":
        """Return the subscribers of some subscriptions."""
        codes = self.codes[positions]
        used = np.unique(codes[codes >= 0])
        moved = np.full(len(self.wholes) + len(self.texts) + 1, -1, np.int64)  # the last: nobody
        moved[used] = np.arange(len(used))
        wholes, texts = used[used < len(self.wholes)], used[used >= len(self.wholes)]
        kept = self.texts.take(pa.array(texts - len(self.wholes)))
        return SubscriberColumns(moved[codes], self.wholes[wholes], kept)

    @property
    def nbytes(self) -> int:
        """Count the bytes of the columns."""
        return int(self.codes.nbytes + self.wholes.nbytes + self.texts.nbytes)


def make_subscribers(names: Sequence[Id | None]) -> SubscriberColumns:
    """Write subscribers, of both kinds perhaps, as columns."""
    distinct = dict.fromkeys(name for name in names if name is not None)
    wholes = [name for name in distinct if not isinstance(name, str)]
    texts = [name for name in distinct if isinstance(name, str)]
    codes = [-1, *range(len(distinct))]
    code_of = dict(zip([None, *wholes, *texts], codes, strict=True))
    return SubscriberColumns(
        np.array([code_of[name] for name in names], np.int64),
        np.array(wholes, np.int64),
        pa.array(texts, pa.large_string()),
    )


def join_subscribers(parts: Sequence[SubscriberColumns]) -> SubscriberColumns:
    """Put subscribers one after another, each name once."""
    wholes, whole_of = _unify(np.concatenate([part.wholes for part in parts]))
    texts = pa.concat_arrays([part.texts for part in parts]).dictionary_encode()
    text_of = texts.indices.to_numpy().astype(np.int64) + len(wholes)
    codes, whole_at, text_at = [], 0, 0
    for part in parts:
        moved = [
            whole_of[whole_at : whole_at + len(part.wholes)],
            text_of[text_at : text_at + len(part.texts)],
            np.array([-1]),
        ]
        codes.append(np.concatenate(moved)[part.codes])  # -1 finds the last
        whole_at += len(part.wholes)
        text_at += len(part.texts)
    return SubscriberColumns(np.concatenate(codes), wholes, texts.dictionary)


def _unify(values: Integers) -> tuple[Integers, Positions]:
    distinct, inverse = np.unique(values, return_inverse=True)
    return distinct, np.asarray(inverse, np.int64)
