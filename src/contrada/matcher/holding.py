"""The subscriptions that a matcher holds: one version at a time, which a change swaps."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.errors import InvalidInput, Remedy
from contrada.files import is_same_crs
from contrada.flags import check_flags
from contrada.matcher.background import BackgroundMerges
from contrada.matching.engine import Engine
from contrada.matching.id_columns import are_repeated
from contrada.matching.merges import Merge
from contrada.matching.segment_rows import SegmentRows
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.subscription import Id, Subscription
from contrada.threads import ProcessLock

Faults = list[tuple[int, InvalidInput]]  # by position among what is added

_MATCHER = "the matcher"


class HeldState(NamedTuple):
    """All of a matcher that changes; a change swaps it as a whole."""

    subscriptions: SubscriptionSet
    crs: str | None
    stated_by: str = _MATCHER  # who stated the system


class Holding:
    """The current version, and how the next one takes its place.

    Readers take whatever version there is; writers come one after another. What is large is merged
    in the background.
    """

    def __init__(
        self,
        engine: Engine,
        crs: str | None,
        stated_by: str = _MATCHER,
        first: SubscriptionSet | None = None,
    ) -> None:
        """Hold a first version, or nothing yet.

        The coordinate system is one that somebody has stated, or None.
        """
        self._engine = engine
        if first is None:
            first = SubscriptionSet(
                engine.make_index,
                find_event_faults=engine.find_event_faults,
                is_exact=engine.is_exact,
            )
        self._state = HeldState(first, crs, stated_by)
        self._writing = ProcessLock()
        self._merges = BackgroundMerges(self)

    def now(self) -> HeldState:
        """Return all that holds at one moment."""
        return self._state

    @property
    def subscriptions(self) -> SubscriptionSet:
        """The version that holds now."""
        return self._state.subscriptions

    @property
    def crs(self) -> str | None:
        """The coordinate system; None until a table states one."""
        return self._state.crs

    @property
    def stated_by(self) -> str:
        """Who stated the coordinate system."""
        return self._state.stated_by

    def remove(self, id_: Id) -> bool:
        """Remove the subscription of an id; tell whether there was one."""
        with self._writing:
            known = self.subscriptions
            if id_ not in known:
                return False
            self._publish(self._changed(known, [id_]))
        self._wake()
        return True

    def add(self, subscription: Subscription, replace: bool, name: str) -> None:
        """Swap in the version with one more subscription, or refuse it."""
        check_flags(replace=replace)
        with self._writing:
            known, id_ = self.subscriptions, subscription.id
            _check_kind(id_, known, name)
            if self._engine.check is not None:
                try:
                    self._engine.check(subscription)
                except InvalidInput as error:
                    raise error.within(name) from None
            is_taken = id_ in known
            if is_taken and not replace:
                raise _refuse_taken(id_).within(name)
            self._publish(self._changed(known, [id_] if is_taken else (), [subscription]))
        self._wake()

    def change(
        self,
        added: SubscriptionColumns,
        replace: bool,
        crs: str | None = None,
        name: str = "add",
        settle: Callable[[Faults], object] | None = None,
        is_lazy: bool = False,
        discarded: pa.Array | None = None,
    ) -> None:
        """Swap in the version with the added subscriptions, or refuse all of them.

        It has none of the `discarded` ids, whether or not there was a subscription with them.
        `settle` gets the faults by position, and may raise: else the others are added. A large
        index is built before, unless that is left to the first who asks.
        """
        with self._writing:
            known = self.subscriptions
            if discarded is not None and len(discarded):
                known = self._changed(known, discarded)
            if len(added):
                _check_kind(added.ids.one(0), known, name)
            faults = self._find_faults(added, known, replace)
            if faults and settle is None:
                position, fault = faults[0]
                who = f"subscription {added.ids.one(position)!r}"
                raise fault.within(name if name == who else f"{name}, {who}")
            if settle is not None:
                settle(faults)
            self.check_crs(crs, name)
            good = _choose(added, {position for position, _ in faults})
            changed = self._changed(known, good.ids.array if replace else (), good)
            self._publish(changed, self._stating(crs, name), is_lazy=is_lazy)
        self._wake()

    def exchange(
        self,
        gone: range,
        rows: SegmentRows | None = None,
        draft: SubscriptionSet | None = None,
        crs: str | None = None,
        name: str = _MATCHER,
    ) -> SubscriptionSet:
        """Swap in the version with rows that are indexed, or none, in place of a range of ids.

        The draft is the version that would have been next when the rows were indexed. Returns the
        version before.
        """
        with self._writing:
            self.check_crs(crs, name)
            known = self.subscriptions
            changed = known.exchanged(gone, rows, draft)
            changed.prepare(known)
            self._state = self._stating(crs, name)._replace(subscriptions=changed)
        self._wake()
        return known

    def _changed(
        self,
        known: SubscriptionSet,
        removed: Sequence[Id] | pa.Array = (),
        added: Sequence[Subscription] = (),
    ) -> SubscriptionSet:
        return known.changed(removed, added, self._merges.beside())

    def _publish(
        self, changed: SubscriptionSet, state: HeldState | None = None, *, is_lazy: bool = False
    ) -> None:
        """Swap a version in; what is overdue is merged before, so that writers wait for it."""
        claims = []
        try:
            while (claim := self._merges.claim(changed.overdue)) is not None:
                claims.append(claim)
                rows = self._merges.carry_out(claim)
                if rows is None:
                    break
                changed = changed.merged(claim.merge, rows)
            if not is_lazy:
                changed.prepare(self.subscriptions)
            self._state = (state or self._state)._replace(subscriptions=changed)
        finally:
            for claim in claims:
                self._merges.release(claim)

    def find_due(self, beside: Sequence[Merge]) -> Merge | None:
        """Choose what is to be merged next, but for what other merges take."""
        return self.subscriptions.due(beside)

    def _wake(self) -> None:
        if self.find_due(self._merges.beside()) is not None:
            self._merges.wake()

    def put(self, merge: Merge, rows: SegmentRows) -> None:
        """Put what a merge has made in its place."""
        with self._writing:
            known = self.subscriptions
            changed = known.merged(merge, rows)
            changed.prepare(known)
            self._state = self._state._replace(subscriptions=changed)

    def _find_faults(
        self, added: SubscriptionColumns, known: SubscriptionSet, replace: bool
    ) -> Faults:
        """Find the subscriptions that cannot be added, by position, and why."""
        faults = {}
        if self._engine.check is not None:
            for position, subscription in enumerate(added):
                try:
                    self._engine.check(subscription)
                except InvalidInput as error:
                    faults[position] = error
        if not replace:
            good = _without(len(added), faults)
            ids = added.ids.array.take(pa.array(good)) if faults else added.ids.array
            for i in np.flatnonzero(known.are_taken(ids) | are_repeated(ids)).tolist():
                faults[int(good[i])] = _refuse_taken(ids[i].as_py())
        return sorted(faults.items())

    def adopt_crs(self, crs: str | None, name: str) -> None:
        """Take the coordinate system of the first table that states one."""
        self.check_crs(crs, name)
        if crs is None or self.crs is not None:
            return  # there is nothing to write, so nothing to wait for
        with self._writing:
            self.check_crs(crs, name)
            self._state = self._stating(crs, name)

    def _stating(self, crs: str | None, name: str) -> HeldState:
        """Return the state after a table states its coordinate system; only the first counts."""
        state = self._state
        if crs is None or state.crs is not None:
            return state
        return state._replace(crs=crs, stated_by=_MATCHER if name == "table" else name)

    def check_crs(self, crs: str | None, name: str) -> None:
        """Refuse a table whose coordinate system differs from the one stated before."""
        _, own, who = self._state
        if crs is not None and own is not None and not is_same_crs(crs, own):
            raise InvalidInput(f"{name} is in {crs:.60}, {who} in {own:.60}; reproject one of them")


def _without(count: int, left_out: Collection[int]) -> Positions:
    """List the positions below a number, but for some."""
    is_in = np.ones(count, bool)
    is_in[list(left_out)] = False
    return np.flatnonzero(is_in)


def _choose(added: SubscriptionColumns, left_out: set[int]) -> SubscriptionColumns:
    """Return what is added, without some and without those of which another has the id later."""
    is_last = ~are_repeated(added.ids.array, from_end=True)
    is_last[list(left_out)] = False
    if left_out:  # a later one that is left out takes nobody's place
        good = _without(len(added), left_out)
        is_last[good] = ~are_repeated(added.ids.array.take(pa.array(good)), from_end=True)
    return added if is_last.all() else added.take(np.flatnonzero(is_last))


def _refuse_taken(id_: Id) -> InvalidInput:
    return InvalidInput(f"the id {id_!r} is already taken", remedies=[Remedy.REPLACE])


def _check_kind(id_: Id, known: SubscriptionSet, name: str) -> None:
    if known.has_whole_ids not in {None, isinstance(id_, int)}:
        raise InvalidInput(
            f"{name}: ids must be all strings or all integers, "
            f"but {id_!r} follows {next(iter(known)).id!r}",
            remedies=[Remedy.SUBSCRIPTION_ID],
        )
