"""Streams, sockets and waiting reads that are open, and what ends them besides themselves.

A stream ends when its other end goes, when the server stops, or when its key no longer allows it.
What it is doing at that moment, even a write that a stalled reader holds up, is cancelled.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

from starlette.types import Receive

from contrada.errors import ContradaError, Overloaded
from contrada.server.server_limits import ServerLimits


class Ending(Enum):
    """Why a stream has ended without an error."""

    FINISHED = auto()  # it had nothing more to do
    STOPPED = auto()  # the server stops
    GONE = auto()  # nobody is at the other end


class OpenStreams:
    """All streams that are open in one server."""

    def __init__(self, limits: ServerLimits, stopping: asyncio.Event) -> None:
        """Start without any; all that will be open end when `stopping` is set."""
        self._limits, self._stopping = limits, stopping
        self._open: set[OneStream] = set()
        self._rechecking: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def entered(self, check: Callable[[], object]) -> Iterator["OneStream"]:
        """Count a stream as open; `check` raises once it is no longer allowed."""
        if len(self._open) >= self._limits.streams_max:
            most = f"{self._limits.streams_max:,} (STREAMS_MAX)"
            raise Overloaded(f"{most} streams are open, and there can be no more")
        if self._stopping.is_set():
            raise Overloaded("the broker is stopping")
        stream = OneStream(check, self._stopping)
        self._open.add(stream)
        if self._rechecking is None or self._rechecking.done():
            self._rechecking = asyncio.create_task(self._keep_rechecking())
        try:
            yield stream
        finally:
            self._open.discard(stream)

    async def _keep_rechecking(self) -> None:
        while self._open:
            await asyncio.sleep(self._limits.recheck_s)
            for stream in list(self._open):
                stream.recheck()


class OneStream:
    """One stream: what it does, and what may end it."""

    def __init__(self, check: Callable[[], object], stopping: asyncio.Event) -> None:
        """Start as allowed."""
        self._check, self._stopping = check, stopping
        self._refused: asyncio.Future[ContradaError] = asyncio.get_running_loop().create_future()

    def recheck(self) -> None:
        """End the stream if it is no longer allowed."""
        if self._refused.done():
            return
        try:
            self._check()
        except ContradaError as fault:
            self._refused.set_result(fault)

    async def run(self, work: Coroutine[Any, Any, None], gone: Coroutine[Any, Any, None]) -> Ending:
        """Work until that is done, `gone` returns or the server stops; raise what it raises."""
        working = asyncio.ensure_future(work)
        others = [asyncio.ensure_future(gone), asyncio.ensure_future(self._stopping.wait())]
        every: set[asyncio.Future[Any]] = {working, *others, self._refused}
        try:
            await asyncio.wait(every, return_when=asyncio.FIRST_COMPLETED)
            if self._refused.done() and not working.done():
                raise self._refused.result()
        finally:
            for task in (working, *others):
                task.cancel()
            await asyncio.gather(working, *others, return_exceptions=True)
        if not working.cancelled():
            working.result()
            return Ending.FINISHED
        return Ending.STOPPED if self._stopping.is_set() else Ending.GONE


async def wait_until_gone(receive: Receive) -> None:
    """Return once nobody is at the other end of a request whose body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
