"""How much a second each caller sends: a bucket of tokens each. Time is an argument."""

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
        left = self._fill(caller, per_s_max, now_s)
        is_allowed = left >= 1
        self._put(caller, left - 1 if is_allowed else left, now_s)
        return 0.0 if is_allowed else (1 - left) / per_s_max

    def borrow(self, caller: str, count: int, per_s_max: float, now_s: float) -> float:
        """Take tokens, also such as are still to come; return the seconds until they have."""
        left = self._fill(caller, per_s_max, now_s) - count
        self._put(caller, left, now_s)
        return max(0.0, -left) / per_s_max

    def _fill(self, caller: str, per_s_max: float, now_s: float) -> float:
        left, before_s = self._buckets.pop(caller, (per_s_max * _BURST_S, now_s))
        return min(per_s_max * _BURST_S, left + max(0.0, now_s - before_s) * per_s_max)

    def _put(self, caller: str, left: float, now_s: float) -> None:
        self._buckets[caller] = (left, now_s)
        if len(self._buckets) > _CALLERS_MAX:
            self._buckets.popitem(last=False)
