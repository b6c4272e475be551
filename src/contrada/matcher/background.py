"""Merges in the background: a thread that ends when nothing is to be merged any more."""

import os
import threading
from collections.abc import Callable

from contrada.matching.segment_rows import SegmentRows
from contrada.matching.segments import Merge
from contrada.threads import ProcessLock


class BackgroundMerges:
    """Carries out the merges of one set of subscriptions, one after another.

    The thread is not a daemon: a process that ends waits for the merge that is under way.
    """

    def __init__(
        self, next_merge: Callable[[], Merge | None], publish: Callable[[Merge, SegmentRows], None]
    ) -> None:
        """Take what says which merge is due, and what puts its result into the current version."""
        self._next_merge, self._publish = next_merge, publish
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
            while (merge := self._decide()) is not None:
                self._publish(merge, merge.run())
        finally:
            self._busy = None

    def _decide(self) -> Merge | None:
        """Return the next merge; without one the thread is no longer at work."""
        with self._deciding:
            merge = self._next_merge() if threading.main_thread().is_alive() else None
            if merge is None:
                self._busy = None
            return merge
