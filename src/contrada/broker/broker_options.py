"""What a broker is told when it is opened; plain values, each with a default."""

from dataclasses import dataclass

from contrada.limits import QUEUE_BYTES_MAX, QUEUE_EVENTS_MAX, SUBSCRIPTIONS_MAX

_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3_600.0, 86_400.0
_MIB, _GIB = 2**20, 2**30

READ_ONCE = ("repeats_age_s", "repeats_events_max", "snapshot_interval_s")  # when it is opened


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """How much a broker keeps, how much it lets wait, and when it stops storing.

    Retention drops what is older than `retention_age_s`, or the oldest where all that is kept
    exceeds `retention_bytes`. Repeats are known within `repeats_age_s` and `repeats_events_max`.
    At most `queue_events_max` events, of `queue_bytes_max` bytes, wait to be stored. With less
    than `space_bytes_min` on the disk only cursors and deletions are stored.
    """

    retention_age_s: float = 7 * _DAY_S
    retention_bytes: int = 16 * _GIB
    repeats_age_s: float = _HOUR_S
    repeats_events_max: int = 1_000_000
    queue_events_max: int = QUEUE_EVENTS_MAX
    queue_bytes_max: int = QUEUE_BYTES_MAX
    space_bytes_min: int = 64 * _MIB
    subscriptions_max: int = SUBSCRIPTIONS_MAX
    retention_interval_s: float = 10.0
    snapshot_interval_s: float = 5 * _MINUTE_S
    is_durable: bool = True
