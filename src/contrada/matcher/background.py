"""Merges in the background: a thread that ends when nothing is to be merged any more."""

import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from contrada.matching.merges import Merge
from contrada.matching.segment_rows import SegmentRows
from contrada.threads import ProcessLock

_log = logging.getLogger(__name__)
_REST_S, _REST_MAX_S = 1.0, 600.0  # after the first failure, and at most; it doubles with each

ChooseMerge = Callable[[Sequence[Merge]], Merge | None]  # beside others


@dataclass(frozen=True, slots=True, eq=False)
class MergeClaim:
    """A merge that somebody carries out, in this process or in one that forked."""

    merge: Merge
    process: int


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    """What a thread has while it is the one at work, in its process."""

    process: int


class FailedMerges:
    """Merges that failed of late: nobody tries them again for a while, each time a longer one.

    Nothing is lost, since what was to be merged stays as it is; events only take longer.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self.error: Exception | None = None  # the last, until a merge succeeds
        self._merges: list[Merge] = []
        self._rest_s, self._end_s = _REST_S, 0.0

    def note(self, merge: Merge, error: Exception) -> None:
        """Keep a failure; only the first of several is logged."""
        if self.error is None:
            _log.warning(
                "subscriptions could not be merged; this is tried again later, and until then "
                "matching takes longer",
                exc_info=error,
            )
        self.error = error
        self._merges = [*self._merges, merge]
        self._end_s = monotonic() + self._rest_s
        self._rest_s = min(2 * self._rest_s, _REST_MAX_S)

    def note_success(self) -> None:
        """Forget failures, unless one of them has not been tried again yet."""
        if not self._merges:
            self.error, self._rest_s = None, _REST_S

    def resting(self) -> list[Merge]:
        """List those that are not to be tried yet."""
        if self._merges and monotonic() >= self._end_s:
            self._merges = []
        return self._merges


class HasMerges(Protocol):
    """Whoever has a set that is merged in the background."""

    def find_due(self, beside: Sequence[Merge]) -> Merge | None:
        """Choose what is to be merged next, but for what other merges take."""

    def put(self, merge: Merge, rows: SegmentRows) -> None:
        """Put what a merge has made into the current version."""


class BackgroundMerges:
    """Carries out the merges of one set of subscriptions, one after another.

    A writer may carry out others: who claims a merge has it alone.

    The thread is not a daemon: a process that ends waits for the merge that is under way.
    """

    def __init__(self, owner: HasMerges) -> None:
        """Take whose merges these are, who may go at any time."""
        self._owner = weakref.ref(owner)
        self._claims: list[MergeClaim] = []
        self.failed = FailedMerges()
        self._deciding = ProcessLock()
        self._turn: _Turn | None = None  # of the thread that is at work

    def wake(self) -> None:
        """Begin, unless a thread is at work, which then sees what is due."""
        turn = _Turn(os.getpid())
        try:
            with self._deciding:
                if self._turn is not None and self._turn.process == turn.process:
                    return
                self._turn = turn
            threading.Thread(target=self._run, args=(turn,), name="contrada-merge").start()
        except RuntimeError:  # no more threads, or the interpreter is about to end
            self._end(turn)
        except BaseException:  # the thread, if there is one, ends since it is not its turn
            self._end(turn)
            raise

    def _end(self, turn: _Turn) -> None:
        with self._deciding:
            if self._turn is turn:
                self._turn = None

    def _run(self, turn: _Turn) -> None:
        try:
            while (claim := self._decide(turn)) is not None:
                try:
                    rows = self.carry_out(claim)
                    owner = self._owner()
                    if rows is None or owner is None:
                        break
                    owner.put(claim.merge, rows)
                    del owner
                finally:
                    self.release(claim)
        finally:
            self._end(turn)

    def _decide(self, turn: _Turn) -> MergeClaim | None:
        """Claim the next merge; without one the thread is no longer at work."""
        with self._deciding:
            if self._turn is not turn:
                return None
            owner = self._owner() if threading.main_thread().is_alive() else None
            claim = None if owner is None else self._claim(owner.find_due)
            if claim is None:
                self._turn = None
            return claim

    def claim(self, choose: ChooseMerge) -> MergeClaim | None:
        """Choose a merge beside those that others have, and have it alone until `release`."""
        with self._deciding:
            return self._claim(choose)

    def _claim(self, choose: ChooseMerge) -> MergeClaim | None:
        merge = choose(self.beside())
        if merge is None:
            return None
        claim = MergeClaim(merge, os.getpid())
        self._claims = [*self._claims, claim]
        return claim

    def carry_out(self, claim: MergeClaim) -> SegmentRows | None:
        """Make the rows of a merge; None where that fails."""
        try:
            rows = claim.merge.run()
        except Exception as error:
            self.failed.note(claim.merge, error)
            return None
        self.failed.note_success()
        return rows

    def release(self, claim: MergeClaim) -> None:
        """End a merge, after its result has been published or dropped."""
        with self._deciding:
            own = [each for each in self._claims if each.process == os.getpid()]
            self._claims = [each for each in own if each is not claim]

    def beside(self) -> list[Merge]:
        """List the merges that nobody is to begin: that somebody has, or that failed of late."""
        mine = [claim.merge for claim in self._claims if claim.process == os.getpid()]
        return mine + self.failed.resting()
