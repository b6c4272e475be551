"""The options of `contrada.spark.transitions`, read and judged before anything runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contrada.errors import InvalidInput
from contrada.matcher.finding import SubscriptionOptions
from contrada.showing import brief, listed
from contrada.transitions.durations import Duration, read_duration
from contrada.transitions.followed import (
    CROSS_KIND,
    DWELL_KIND,
    NO_DWELL,
    StreamOptions,
    read_kinds,
    read_metres,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHARDS_MAX = 65_536


@dataclass(frozen=True, slots=True)
class TransitionOptions:
    """How positions are followed; lengths of time are microseconds.

    `object` and `time` name columns. `kinds` are bits, `dwell_us` is NO_DWELL without one.
    """

    object: str
    time: str
    lateness_us: int
    silence_us: int | None
    ahead_us: int
    hysteresis_m: float
    cooldown_us: int
    dwell_us: int
    kinds: int
    shards: int

    @classmethod
    def read(
        cls,
        *,
        object: str,
        time: str,
        lateness: Duration,
        silence: Duration | None,
        ahead: Duration,
        hysteresis: float,
        cooldown: Duration,
        dwell: Duration | None,
        kinds: Iterable[str] | None,
        shards: int,
    ) -> "TransitionOptions":
        """Read options as people write them."""
        if isinstance(shards, bool) or not isinstance(shards, int) or not 0 < shards <= _SHARDS_MAX:
            raise InvalidInput(
                f"shards must be a number from 1 to {_SHARDS_MAX:,}, not {brief(shards)}"
            )
        return cls(
            object,
            time,
            read_duration(lateness, "lateness"),
            None if silence is None else read_duration(silence, "silence", may_be_zero=False),
            read_duration(ahead, "ahead"),
            read_metres(hysteresis),
            read_duration(cooldown, "cooldown"),
            NO_DWELL if dwell is None else read_duration(dwell, "dwell", may_be_zero=False),
            read_kinds(kinds),
            shards,
        )

    @property
    def asked(self) -> SubscriptionOptions:
        """What is asked of transitions, alike for all subscriptions."""
        dwell_us = None if self.dwell_us == NO_DWELL else self.dwell_us
        return SubscriptionOptions(self.hysteresis_m, self.cooldown_us, dwell_us, self.kinds)

    @property
    def asks_fences(self) -> bool:
        """Whether anything is computed that fences alone have."""
        return bool(self.kinds & CROSS_KIND) or self.hysteresis_m > 0

    @property
    def has_timers(self) -> bool:
        """Whether something happens by the clock alone."""
        return self.silence_us is not None or (
            self.dwell_us != NO_DWELL and bool(self.kinds & DWELL_KIND)
        )

    def stream_options(self, is_geographic: bool) -> StreamOptions:
        """Return what holds for all positions, in the words of the room."""
        return StreamOptions(self.lateness_us, self.silence_us, is_geographic)

    def check_columns(self, events: "DataFrame") -> None:
        """Refuse events without the columns of objects and times, or with others than can be so."""
        from pyspark.sql import types

        wanted = {"object": self.object, "time": self.time}
        for option, name in wanted.items():
            if name not in events.columns:
                raise InvalidInput(
                    f"events have no column {brief(name)} for the {option}; {option}=… names "
                    f"another one, and they have {listed(events.columns)}"
                )
        kind = events.schema[self.time].dataType
        moments = (types.TimestampType, types.TimestampNTZType, types.DateType, types.StringType)
        if not isinstance(kind, moments):
            raise InvalidInput(
                f"events, column {self.time!r}: a time must be a timestamp, a date or text in "
                f"ISO 8601, not {kind.simpleString()}"
            )
