"""Many subscriptions of a matcher removed in one step, which costs hardly more than one."""

from collections.abc import Sequence

import pyarrow as pa

from contrada.matcher.facade import Matcher
from contrada.matching.subscription_columns import pack_subscriptions


def remove_numbers(matcher: Matcher, numbers: Sequence[int]) -> None:
    """Remove the subscriptions of some integer ids; one that is not there is passed over."""
    held, ids = matcher._held, pa.array(numbers, pa.int64())
    if held.subscriptions.are_taken(ids).any():
        held.change(pack_subscriptions([]), replace=False, discarded=ids)
