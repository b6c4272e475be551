"""What every route needs: the caller's broker, the limits, and threads that may block on a disk."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from starlette.requests import HTTPConnection, Request

from contrada.broker.broker import Broker
from contrada.model.json_message import decode_json
from contrada.server.open_streams import OpenStreams
from contrada.server.request_bodies import RequestBodies, check_is_json
from contrada.server.server_limits import ServerLimits

_P = ParamSpec("_P")
_T = TypeVar("_T")

PUBLISH, SUBSCRIBE, ADMIN = "publish", "subscribe", "admin"  # scopes of keys
_READING_THREADS, _JUDGING_THREADS = 8, 4


def _count_nothing(*_: Any) -> Mapping[str, int]:
    return {}


@dataclass(frozen=True, slots=True)
class Watched:
    """What `/metrics` counts: the brokers of tenants that a caller may watch, and what is around.

    All are called in the loop that serves.
    """

    brokers_of: Callable[[HTTPConnection], Mapping[str, Broker]]
    count_webhooks: Callable[[Broker], Mapping[str, int]] = _count_nothing
    count_connections: Callable[[], Mapping[str, int]] = _count_nothing


@dataclass(frozen=True, slots=True)
class Service:
    """One server's parts, which all its requests share.

    `name_of` names the caller for the log of changes. `check_scope` raises where the caller's key
    does not allow what a scope stands for; it is asked for every request, and again while a
    stream is open.
    """

    broker_of: Callable[[HTTPConnection], Broker]
    check_scope: Callable[[HTTPConnection, str], object]
    name_of: Callable[[HTTPConnection], str | None]
    is_ready: Callable[[], bool]
    limits: ServerLimits
    bodies: RequestBodies
    streams: OpenStreams
    stopping: asyncio.Event
    watched: Watched
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_READING_THREADS, "contrada-reading")
    )
    judges: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_JUDGING_THREADS, "contrada-judging")
    )

    def close(self) -> None:
        """Let the threads end once they have nothing to do."""
        for pool in (self.threads, self.judges):
            pool.shutdown(wait=False, cancel_futures=True)

    def open_broker(self, connection: HTTPConnection, scope: str) -> Broker:
        """Return the caller's broker, if its key has a scope."""
        self.check_scope(connection, scope)
        return self.broker_of(connection)

    async def read(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run what blocks for some milliseconds, as reads of the log do, in a thread.

        The threads stay: each has a connection to the log.
        """
        return await _run(self.threads, lambda: function(*args, **kwargs))

    async def judge(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run what a stranger could make long, apart from the threads that read deliveries."""
        return await _run(self.judges, lambda: function(*args, **kwargs))

    async def write(
        self, function: Callable[_P, "Future[_T]"], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Ask for a change in a thread, where it is judged, and wait until it is on disk."""
        return await self.settle(await self.judge(function, *args, **kwargs))

    async def settle(self, future: "Future[_T]") -> _T:
        """Wait for what is being written; it is written even if nobody waits any more."""
        return await asyncio.shield(asyncio.wrap_future(future))

    async def read_json(self, request: Request, bytes_max: int, *, empty: Any = None) -> Any:
        """Read the JSON body of a request; with `empty` there need not be one."""
        check_is_json(request)
        async with self.bodies.read(request, bytes_max) as body:
            if not body and empty is not None:
                return empty
            return await self.judge(decode_json, body)


async def _run(pool: ThreadPoolExecutor, function: Callable[[], _T]) -> _T:
    return await asyncio.get_running_loop().run_in_executor(pool, function)


def service_of(connection: HTTPConnection) -> Service:
    """Return the service that a request came to."""
    service: Service = connection.app.state.service
    return service
