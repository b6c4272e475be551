"""How many requests a second each caller sends: a bucket of tokens each. Time is an argument."""

from collections import OrderedDict

_CALLERS_MAX = 10_000  # that are remembered; whoever was longest not heard of is forgotten
_BURST_S = 2.0  # a full bucket lasts that long


class RequestRates:
    """The buckets of all callers, each full at first."""

    def __init__(self) -> None:
        """Start without any caller."""
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, per_s_max: float, now_s: float) -> float:
        """Take a token; return 0, or where there is none the seconds until there will be."""
        left, before_s = self._buckets.pop(caller, (per_s_max * _BURST_S, now_s))
        left = min(per_s_max * _BURST_S, left + max(0.0, now_s - before_s) * per_s_max)
        is_allowed = left >= 1
        self._buckets[caller] = (left - 1 if is_allowed else left, now_s)
        if len(self._buckets) > _CALLERS_MAX:
            self._buckets.popitem(last=False)
        return 0.0 if is_allowed else (1 - left) / per_s_max
