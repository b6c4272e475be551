"""Packed rows on their way into a matcher: what takes long is done before they take their place."""

from contrada.errors import InvalidInput
from contrada.matcher.facade import Matcher
from contrada.matcher.packed_rows import PackedRows
from contrada.matching.segments import SubscriptionSet

_NOBODY = range(0)


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
        self._known = known

    def put(self) -> None:
        """Let the rows take their place: what is matched from now on meets them."""
        source = self._source
        self._held.exchange(self._replaced, self._rows, self._draft, source.crs, source.name)


def _check_numbers(known: SubscriptionSet, packed: PackedRows, replaced: range) -> None:
    """Refuse rows of which a number is taken, and a matcher whose ids are not numbers."""
    if known.has_whole_ids is False:
        raise InvalidInput(f"{packed.source.name}: the ids of the matcher are not integers")
    if known.has_any(packed.range, but=replaced):
        shown = f"{packed.range.start} to {packed.range.stop - 1}"
        raise InvalidInput(f"{packed.source.name}: some of the numbers {shown} are taken")
