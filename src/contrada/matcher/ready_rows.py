"""Packed rows on their way into a matcher: what takes long is done before they take their place."""

import threading
import time

from contrada.errors import InvalidInput
from contrada.matcher.facade import Matcher
from contrada.matcher.packed_rows import PackedRows
from contrada.matching.segments import SubscriptionSet

_NOBODY = range(0)
_RELEASE_S = 2.0


class ReadyRows:
    """Packed rows with an index, for one matcher, which can have them at any moment.

    To make this takes seconds where there are a million rows, and nobody waits for it: neither
    matches nor changes. `put` takes milliseconds. Whoever made this keeps it until `put` is over:
    what the rows replace goes with it, which takes tenths of a second.
    """

    def __init__(self, matcher: Matcher, packed: PackedRows, replaced: range = _NOBODY) -> None:
        """Index rows that will take the place of those with the numbers of a range.

        Raises `InvalidInput` where another subscription has one of their numbers, and for rows
        that were packed for another kind of matcher or have another coordinate system.
        """
        source, held = packed.source, matcher._held
        if not source.settings.makes_filters_for(matcher._settings(matcher.crs)):
            raise InvalidInput(f"{source.name}: was packed for another kind of matcher")
        held.check_crs(source.crs, source.name)
        known = held.subscriptions
        _check_numbers(known, packed, replaced)
        rows = known.make_rows(source.columns)
        self._draft = known.exchanged(replaced, rows)
        self._draft.prepare(known)
        self._held, self._source, self._replaced, self._rows = held, source, replaced, rows
        self._known, self.range = known, packed.range

    def put(self, replaced: range | None = None) -> None:
        """Let the rows take their place: what is matched from now on meets them.

        They may replace another range than was to be expected; that takes a little longer.
        """
        source, gone = self._source, self._replaced if replaced is None else replaced
        self._held.exchange(gone, self._rows, self._draft, source.crs, source.name)


def remove_range(matcher: Matcher, numbers: range) -> None:
    """Remove the rows of a range of numbers; one that is not there is passed over."""
    known = matcher._held.exchange(numbers)
    thread = threading.Thread(target=_outlive, args=(known,), name="contrada-release", daemon=True)
    thread.start()


def _outlive(known: SubscriptionSet) -> None:  # noqa: ARG001
    """Keep what was replaced until those who matched it are done: they need not free it then."""
    time.sleep(_RELEASE_S)


def _check_numbers(known: SubscriptionSet, packed: PackedRows, replaced: range) -> None:
    """Refuse rows of which a number is taken, and a matcher whose ids are not numbers."""
    if known.has_whole_ids is False:
        raise InvalidInput(f"{packed.source.name}: the ids of the matcher are not integers")
    if known.has_any(packed.range, but=replaced):
        shown = f"{packed.range.start} to {packed.range.stop - 1}"
        raise InvalidInput(f"{packed.source.name}: some of the numbers {shown} are taken")
