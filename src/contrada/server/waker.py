"""What a commit in another thread wakes in the event loop."""

import asyncio
from contextlib import suppress


class Waker:
    """An `asyncio.Event` that any thread may set; wakes that come close together are one.

    Clear it, look, then wait: what is committed after the look wakes the wait.
    """

    def __init__(self) -> None:
        """Belong to the loop that runs."""
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._is_due = False

    def __call__(self) -> None:
        """Wake whoever waits; a loop that is closed has nobody left."""
        if not self._is_due:
            self._is_due = True
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._event.set)

    def clear(self) -> None:
        """Forget earlier wakes."""
        self._is_due = False
        self._event.clear()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for a wake; false where none came in time."""
        if self._event.is_set():
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        return True
