"""The door: sockets that listen, and how many connections they let in.

A connection counts from when it is accepted until its socket is closed, its TLS handshake included,
which asyncio's own servers do not count.
"""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from typing import Any, NamedTuple

from starlette.requests import HTTPConnection

from contrada.errors import InvalidInput, Unavailable
from contrada.server.guard_limits import GuardLimits
from contrada.showing import brief_text

_LOG = logging.getLogger("contrada.server")
_BACKLOG = 1_024
_PAUSE_S = 0.5  # after the system would not give another socket
_SHUTDOWN_S = 5.0  # for the end of TLS
_PROBE_AFTER_S, _PROBES = 30, 3  # of a connection that is silent


class SocketPlace(NamedTuple):
    """An address that a host has, as sockets take it."""

    family: int
    kind: int
    protocol: int
    address: tuple[Any, ...]

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return ip_address(self.address[0].partition("%")[0]).is_loopback


def find_places(host: str, port: int) -> list[SocketPlace]:
    """Find the addresses of a host of this machine; `*` has all."""
    name = None if host == "*" else host
    try:
        flags = socket.AI_PASSIVE
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError) as fault:
        raise InvalidInput(f"{brief_text(host)} is not a host: {fault}", place="host") from fault
    places = [SocketPlace(family, kind, protocol, to) for family, kind, protocol, _, to in found]
    return list(dict.fromkeys(places))


def listen(places: Iterable[SocketPlace]) -> list[socket.socket]:
    """Listen on addresses; with port 0 on one that is free, the same for all."""
    listeners: list[socket.socket] = []
    for place in places:
        host, port, *rest = place.address
        if port == 0 and listeners:
            port = listeners[0].getsockname()[1]
        try:
            listener = socket.socket(place.family, place.kind, place.protocol)
            listeners.append(_listen(listener, (host, port, *rest)))
        except OSError as fault:
            for listener in listeners:
                listener.close()
            words = f"{host}, port {port}: cannot listen there: {fault.strerror}"
            raise Unavailable(words) from fault
    return listeners


def _listen(listener: socket.socket, address: Any) -> socket.socket:
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listener.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


class Connections:
    """How many connections there are, of each address and of all; those refused are counted."""

    def __init__(self, limits: GuardLimits) -> None:
        """Start without any."""
        self._limits = limits
        self._of: Counter[str] = Counter()
        self.count = self.refused = 0

    def enter(self, address: str) -> bool:
        """Count one more; false where it is one too many."""
        limits = self._limits
        is_full = self.count >= limits.connections_max
        if is_full or self._of[address] >= limits.connections_per_address_max:
            self.refused += 1
            return False
        self.count += 1
        self._of[address] += 1
        return True

    def describe(self) -> dict[str, int]:
        """Count those that are open, and those that were refused."""
        return {"connections": self.count, "connections_refused": self.refused}

    def leave(self, address: str) -> None:
        """Count one fewer."""
        self.count -= 1
        self._of[address] -= 1
        if not self._of[address]:
            del self._of[address]


class _CountedSocket(socket.socket):
    """A socket that calls a function when it is closed, by whomever."""

    on_close: Callable[[], None] | None = None

    def close(self) -> None:
        super().close()
        call, self.on_close = self.on_close, None
        if call is not None:
            call()


class Door:
    """Accepts connections from one listener until it is closed."""

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        connections: Connections,
        limits: GuardLimits,
        tls: ssl.SSLContext | None,
    ) -> None:
        """Take a listener, which must not block; accept from `open` on."""
        self._listener, self._make_protocol = listener, make_protocol
        self._connections, self._limits, self._tls = connections, limits, tls
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Begin to accept."""
        self._accepting = asyncio.create_task(self._accept())
        self._accepting.add_done_callback(lambda _: self._listener.close())

    def close(self) -> None:
        """Accept no more; connections stay, but for those in mid-handshake."""
        for task in [self._accepting, *self._handshakes]:
            if task is not None:
                task.cancel()

    async def wait_closed(self) -> None:
        """Return once nothing is accepted any more."""
        tasks = [task for task in (self._accepting, *self._handshakes) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listener)
            except OSError as fault:  # the process or the machine has no more of something
                _LOG.error("no connection can be accepted: %s", fault.strerror)
                await asyncio.sleep(_PAUSE_S)
                continue
            network = network_of(address[0])
            if not self._connections.enter(network):
                accepted.close()
                continue
            counted = _CountedSocket(
                accepted.family, accepted.type, accepted.proto, accepted.detach()
            )
            counted.on_close = lambda network=network: self._connections.leave(network)
            task = loop.create_task(self._welcome(counted))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    async def _welcome(self, counted: _CountedSocket) -> None:
        is_open = False
        try:
            _probe_when_silent(counted)
            more: dict[str, Any] = {}
            if self._tls is not None:
                more = {"ssl": self._tls, "ssl_handshake_timeout": self._limits.header_s_max}
                more["ssl_shutdown_timeout"] = _SHUTDOWN_S
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(self._make_protocol, counted, **more)
            is_open = True
        except OSError:  # it is gone, or does not speak TLS (ssl.SSLError is one)
            pass
        finally:
            if not is_open:
                counted.close()


def _probe_when_silent(connection: socket.socket) -> None:
    """Find out when the machine at the other end has vanished, which no packet says."""
    connection.setblocking(False)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _PROBE_AFTER_S),
        ("TCP_KEEPINTVL", _PROBE_AFTER_S // _PROBES),
        ("TCP_KEEPCNT", _PROBES),
        ("TCP_USER_TIMEOUT", 2_000 * _PROBE_AFTER_S),
    ):
        if hasattr(socket, name):
            with suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def address_of(connection: HTTPConnection) -> str:
    """Return the address that a request came from, as `network_of` has it."""
    return network_of(connection.client.host if connection.client is not None else "")


def network_of(address: str) -> str:
    """Return whom an address stands for: one of IPv4 itself, one of IPv6 its /64 network."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{IPv6Address(int(found) >> 64 << 64)}/64"
