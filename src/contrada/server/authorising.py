"""Who a caller is, and what it may do: keys in the `Authorization` header, and nowhere else.

The file of keys is looked at several times a second, so that a key that is added or revoked counts
at once, for streams that are open too: what asks whether a key allows something asks again.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from contrada.broker.keys import DEFAULT_TENANT, AccessKey, KeyFile, Keyring
from contrada.errors import ContradaError
from contrada.server.accepting import address_of
from contrada.server.guard_limits import GuardLimits
from contrada.server.guarded_sockets import PACE
from contrada.server.problems import HttpRefusal
from contrada.server.rates import RequestRates
from contrada.server.tenants import Tenants

_LOG = logging.getLogger("contrada.server")
_LOOK_S = 0.2
_UNLIMITED = ("/healthz", "/readyz")  # asked by what would end the server if it were refused
_HOW = "send a key in the header Authorization: Bearer KEY"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request it is: the key that came with it, if any.

    `account` is under what its requests, frames and bodies count: its key, or else its address.
    """

    key: AccessKey | None
    account: str

    @property
    def tenant(self) -> str:
        """The tenant whose broker it talks to."""
        return DEFAULT_TENANT if self.key is None else self.key.tenant

    @property
    def name(self) -> str | None:
        """The name under which it is logged."""
        return None if self.key is None else self.key.name


class KeysAtWork:
    """The keys that count at the moment, as the file has them."""

    def __init__(self, file: KeyFile, *, is_loopback: bool) -> None:
        """Read the file; one that cannot be read is refused."""
        self._file, self._is_loopback = file, is_loopback
        self._state = file.state
        self.keyring: Keyring = file.read()

    @property
    def are_required(self) -> bool:
        """Whether nobody gets in without a key: also when the last one was revoked.

        Beyond loopback it is so even when somebody takes the file away.
        """
        return self._state is not None or not self._is_loopback

    def look(self) -> None:
        """Read the file again if it has changed; while it cannot be read, the keys before count."""
        try:
            state = self._file.state
            if state == self._state:
                return
            self.keyring = self._file.read()
            self._state = state
            _LOG.info("keys were read", extra={"fields": {"keys": len(self.keyring)}})
        except ContradaError as fault:
            _LOG.error("the keys cannot be read, so those of before count: %s", fault)

    async def follow(self) -> None:
        """Look at the file again and again."""
        while True:
            await asyncio.sleep(_LOOK_S)
            self.look()

    def find(self, headers: Headers) -> AccessKey | None:
        """Find the key of a request; None without one, or with one that does not count.

        One that is unknown may have been added a moment ago.
        """
        stated = headers.getlist("authorization")
        scheme, _, token = stated[0].partition(" ") if len(stated) == 1 else ("", "", "")
        if scheme.lower() != "bearer":
            return None
        key = self.keyring.find(token.strip())
        if key is None:
            self.look()
            key = self.keyring.find(token.strip())
        return key

    def check_scope(self, connection: HTTPConnection, scope: str) -> None:
        """Refuse a caller who may not, or may no longer, do what a scope stands for."""
        if not self.are_required:
            return
        key = caller_of(connection).key
        if key is None or key not in self.keyring:
            refusal = {"WWW-Authenticate": 'Bearer realm="contrada"'}
            is_stated = "authorization" in connection.headers
            what = "this key is unknown, or has been revoked" if is_stated else "this needs a key"
            raise HttpRefusal(401, f"{what}: {_HOW}", refusal)
        if not key.may(scope):
            raise HttpRefusal(403, f"the key {key.name!r} has no scope {scope!r}")


def caller_of(connection: HTTPConnection) -> Caller:
    """Return whose request it is."""
    caller: Caller = connection.scope["state"]["caller"]
    return caller


class KeyGate:
    """ASGI middleware that finds out who a caller is, how often it asks, and opens its broker."""

    def __init__(
        self, app: ASGIApp, keys: KeysAtWork, tenants: Tenants, limits: Callable[[], GuardLimits]
    ) -> None:
        """Take the application inside."""
        self._app, self._keys, self._tenants, self._limits = app, keys, tenants, limits
        self._rates, self._frames = RequestRates(), RequestRates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in with its caller beside it; what it may do is asked later."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        key = self._keys.find(Headers(scope=scope))
        account = address_of(HTTPConnection(scope)) if key is None else f"key {key.id}"
        if scope["path"] not in _UNLIMITED:
            self._limit(account)
        state = scope.setdefault("state", {})
        state["caller"] = caller = Caller(key, account)
        if scope["type"] == "websocket":
            state[PACE] = partial(self._pace, account)
        if key is not None or scope["type"] == "websocket":  # whose frames are not to overtake
            await self._tenants.opened(caller.tenant)
        await self._app(scope, receive, send)

    def _limit(self, caller: str) -> None:
        most = self._limits().requests_per_s_max
        wait_s = self._rates.take(caller, most, time.monotonic())
        if wait_s:
            headers = {"Retry-After": str(max(1, round(wait_s)))}
            raise HttpRefusal(429, f"more than {most:,} requests a second are too many", headers)

    def _pace(self, account: str, frames: int) -> float:
        most = self._limits().frames_per_s_max
        return self._frames.borrow(account, frames, most, time.monotonic())
