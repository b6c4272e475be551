"""Merges in the background: a thread that ends when nothing is to be merged any more."""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from contrada.matching.merges import Merge
from contrada.matching.segment_rows import SegmentRows
from contrada.threads import ProcessLock

ChooseMerge = Callable[[Sequence[Merge]], Merge | None]  # beside those that are under way


@dataclass(frozen=True, slots=True, eq=False)
class MergeClaim:
    """A merge that somebody carries out, in this process or in one that forked."""

    merge: Merge
    process: int


class BackgroundMerges:
    """Carries out the merges of one set of subscriptions, one after another.

    A writer may carry out others: who claims a merge has it alone.

    The thread is not a daemon: a process that ends waits for the merge that is under way.
    """

    def __init__(self, choose: ChooseMerge, publish: Callable[[Merge, SegmentRows], None]) -> None:
        """Take what says which merge is due, and what puts its result into the current version."""
        self._choose, self._publish = choose, publish
        self._claims: list[MergeClaim] = []
        self._deciding = ProcessLock()
        self._busy: int | None = None  # the process whose thread is at work

    def wake(self) -> None:
        """Begin, unless a thread is at work, which then sees what is due."""
        with self._deciding:
            if self._busy == os.getpid():
                return
            self._busy = os.getpid()
        try:
            threading.Thread(target=self._run, name="contrada-merge").start()
        except RuntimeError:  # no more threads, or the interpreter is about to end
            self._busy = None

    def _run(self) -> None:
        try:
            while (claim := self._decide()) is not None:
                try:
                    self._publish(claim.merge, claim.merge.run())
                finally:
                    self.release(claim)
        finally:
            self._busy = None

    def _decide(self) -> MergeClaim | None:
        """Claim the next merge; without one the thread is no longer at work."""
        with self._deciding:
            is_over = not threading.main_thread().is_alive()
            claim = None if is_over else self._claim(self._choose)
            if claim is None:
                self._busy = None
            return claim

    def claim(self, choose: ChooseMerge) -> MergeClaim | None:
        """Choose a merge beside those that are under way, and have it alone until `release`."""
        with self._deciding:
            return self._claim(choose)

    def _claim(self, choose: ChooseMerge) -> MergeClaim | None:
        merge = choose(self.under_way())
        if merge is None:
            return None
        claim = MergeClaim(merge, os.getpid())
        self._claims = [*self._claims, claim]
        return claim

    def release(self, claim: MergeClaim) -> None:
        """End a merge, after its result has been published or dropped."""
        with self._deciding:
            self._claims = [each for each in self._claims if each is not claim]

    def under_way(self) -> list[Merge]:
        """List the merges that somebody carries out."""
        return [claim.merge for claim in self._claims if claim.process == os.getpid()]
