"""What is asked for: the options of a stream of positions, and those of each subscription."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from contrada.arrays import Floats, Integers, Mask, RowBits
from contrada.errors import InvalidInput
from contrada.showing import brief

CROSS_KIND, DWELL_KIND = 8, 16
KINDS = {"enter": 1, "inside": 2, "exit": 4, "cross": CROSS_KIND, "dwell": DWELL_KIND}  # bits
ALL_KINDS = sum(KINDS.values())
NO_DWELL = -1


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What holds for all positions of a stream.

    A position is applied once the clock is `lateness_us` past it. An object of which nothing was
    applied for `silence_us` leaves all that it visits; None: never. Where coordinates are longitude
    and latitude, or nobody says what they are, nothing crosses from one side of the world to the
    other: `is_geographic`.
    """

    lateness_us: int = 0
    silence_us: int | None = None
    is_geographic: bool = True

    def __post_init__(self) -> None:
        assert self.lateness_us >= 0
        assert self.silence_us is None or self.silence_us > 0


@dataclass(frozen=True, slots=True)
class FollowedSubscriptions:
    """One version of the subscriptions, as columns by rank: the place of an id among all, sorted.

    `ids` are int64 or large strings, sorted (integers by value, texts by code point), each once.
    `subscribers` may be null. `is_fence`: crossings and hysteresis exist. `hysteresis_m` is read by
    whoever matches, not here. `cooldown_us` is 0 and `dwell_us` NO_DWELL where there is none.
    `kinds` are the bits of the transitions that are computed. `version` names the set in rows.
    """

    ids: pa.Array
    subscribers: pa.Array
    is_fence: Mask
    hysteresis_m: Floats
    cooldown_us: Integers
    dwell_us: Integers
    kinds: RowBits
    version: str | None = None

    @classmethod
    def alike(
        cls,
        ids: pa.Array,
        subscribers: pa.Array,
        is_fence: Mask,
        *,
        hysteresis_m: ArrayLike = 0.0,
        cooldown_us: ArrayLike = 0,
        dwell_us: ArrayLike = NO_DWELL,
        kinds: ArrayLike = ALL_KINDS,
        version: str | None = None,
    ) -> Self:
        """Return a version in which an option that is one number holds for all subscriptions."""
        count = len(ids)
        return cls(
            ids if pa.types.is_int64(ids.type) else ids.cast(pa.large_string()),
            subscribers,
            is_fence,
            np.broadcast_to(np.asarray(hysteresis_m, np.float64), count),
            np.broadcast_to(np.asarray(cooldown_us, np.int64), count),
            np.broadcast_to(np.asarray(dwell_us, np.int64), count),
            np.broadcast_to(np.asarray(kinds, np.uint8), count),
            version,
        )

    def __len__(self) -> int:
        return len(self.ids)


def read_metres(hysteresis: Any) -> float:
    """Read how far an object may stray from a fence without having left it."""
    is_number = isinstance(hysteresis, int | float) and not isinstance(hysteresis, bool)
    if not is_number or not 0 <= hysteresis <= sys.float_info.max:
        raise InvalidInput(
            f"hysteresis must be a number of metres, 0 or more, not {brief(hysteresis)}"
        )
    return float(hysteresis)


def read_kinds(kinds: Iterable[str] | None) -> int:
    """Read names of transitions as bits; None means all.

    `late` is accepted and means nothing more: rows of late positions always come.
    """
    if kinds is None:
        return ALL_KINDS
    if not isinstance(kinds, Iterable):
        raise InvalidInput(f"kinds must be names of transitions, not {brief(kinds)}")
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    unknown = [name for name in names if not isinstance(name, str) or name not in {*KINDS, "late"}]
    if unknown:
        known = ", ".join([*KINDS, "late"])
        raise InvalidInput(f"unknown kind of transition {brief(unknown[0])}; there are {known}")
    return sum({KINDS[name] for name in names if name != "late"})
