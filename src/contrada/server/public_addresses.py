"""Connections that only go to public addresses, unless an operator allows others.

A stranger names the host of a webhook, and must not reach through this machine what only this
machine can reach: loopback, private networks, the metadata of a cloud. A name may stand for another
address each time it is asked for, so the address that was checked is the one that is connected to,
while TLS still verifies the name.

What is public is stated here, not asked of `ipaddress.is_global`, which takes for global what
leads to IPv4 addresses of any kind (NAT64, 6to4), site-local addresses and multicast. Of IPv6 only
global unicast counts, without what of it is set apart; of IPv4 all that is not set apart. A NAT64
under a prefix of its own cannot be told from anything else: where there is one, the network must
keep it from leading to private addresses.
"""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias
from urllib.parse import urlsplit

import httpcore

from contrada.errors import InvalidInput
from contrada.showing import brief, brief_text

IpAddress: TypeAlias = IPv4Address | IPv6Address
IpNetwork: TypeAlias = IPv4Network | IPv6Network
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

_ADDRESSES_MAX = 4  # of a name: as many are tried
_LOOKUPS_MAX = 256  # threads that ask for names at one time
_IPV4_APART = [
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers; the metadata of a cloud
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # the metadata of a cloud
        "169.254.0.0/16",  # link-local; the metadata of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocols
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved; broadcast
    )
]
_IPV6_UNICAST = ip_network("2000::/3")
_IPV6_APART = [
    ip_network(text)
    for text in (
        "2001::/23",  # protocols: Teredo, benchmarks, identifiers
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3ffe::/16",  # given back
        "3fff::/20",  # documentation
    )
]
_ISATAP = {0x00005EFE, 0x02005EFE}  # the middle of an address that leads to an IPv4 one


def is_public(address: IpAddress) -> bool:
    """Whether an address may belong to anybody on the internet, and leads nowhere else."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _IPV4_APART)
    if address.scope_id is not None or address not in _IPV6_UNICAST:
        return False
    is_tunnel = (int(address) >> 32) & 0xFFFFFFFF in _ISATAP
    return not is_tunnel and not any(address in network for network in _IPV6_APART)


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Which addresses may be connected to: public ones, and those of networks that are allowed."""

    allowed: tuple[IpNetwork, ...] = ()

    @classmethod
    def read(cls, networks: Iterable[str]) -> "AddressRules":
        """Read networks such as `10.1.0.0/16` or `::1`; `all` allows every address."""
        texts = [part for text in networks for part in _EVERYTHING.get(text, (text,))]
        return cls(tuple(_read_network(text) for text in texts))

    def allows(self, address: IpAddress) -> bool:
        """Whether an address may be connected to."""
        return is_public(address) or any(address in network for network in self.allowed)

    def check_url(self, url: str) -> None:
        """Refuse a URL whose host is an address that may not be connected to; names may be."""
        host = urlsplit(url).hostname or ""
        try:
            address = ip_address(host)
        except ValueError:
            return
        if not self.allows(address):
            wrong = f"{brief_text(host)} is not a public address, nor one that this server allows"
            raise InvalidInput(wrong, place="webhook.url")


_EVERYTHING = {"all": ("0.0.0.0/0", "::/0")}


def _read_network(text: str) -> IpNetwork:
    try:
        return ip_network(text)
    except ValueError as fault:
        wrong = f"{brief(text)} is neither an address nor a network such as 10.1.0.0/16: {fault}"
        raise InvalidInput(wrong, place="allow_webhook") from None


class NameLookups:
    """Asks for the addresses of names, each in a thread that nothing waits for at the end.

    A name server may keep a question for long. So threads are not those that others need, there
    are only so many, and a name that is being asked for is not asked for twice.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._pending: dict[tuple[str, int], asyncio.Future[list[str]]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a name; raises OSError where there are none."""
        pending = self._pending.get((host, port))
        if pending is None:
            if len(self._pending) >= _LOOKUPS_MAX:
                raise OSError("too many names are being asked for")
            pending = self._ask(host, port)
        return await asyncio.shield(pending)

    def _ask(self, host: str, port: int) -> "asyncio.Future[list[str]]":
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[str]] = loop.create_future()
        self._pending[host, port] = answer

        def settle(found: list[str] | OSError) -> None:
            self._pending.pop((host, port), None)
            if isinstance(found, OSError):
                answer.set_exception(found)
                answer.exception()  # nobody may be waiting any more
            else:
                answer.set_result(found)

        def ask() -> None:
            found = _look_up(host, port)
            with suppress(RuntimeError):  # the loop is closed: nobody is waiting
                loop.call_soon_threadsafe(settle, found)

        threading.Thread(target=ask, name="contrada-names", daemon=True).start()
        return answer


def _look_up(host: str, port: int) -> list[str] | OSError:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as fault:
        return fault
    except ValueError:  # a label that is too long
        return OSError("it is too long, or empty between two dots")
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class CheckedConnections(httpcore.AsyncNetworkBackend):
    """Connects to the addresses of a host that the rules allow, and to no others."""

    def __init__(self, rules: AddressRules, resolve: Resolve) -> None:
        """Take the rules, and what asks for the addresses of a name."""
        self._rules, self._resolve = rules, resolve
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that answers; the host is asked for anew each time."""
        fault: httpcore.NetworkError | httpcore.TimeoutException | None = None
        for address in await self._find(host, port, timeout):
            try:
                return await self._backend.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failed:
                fault = fault or failed
        raise fault or httpcore.ConnectError(f"{host} has no address")

    async def sleep(self, seconds: float) -> None:
        """Wait, as a pool does between two tries."""
        await asyncio.sleep(seconds)

    async def _find(self, host: str, port: int, timeout_s: float | None) -> list[str]:
        try:
            async with asyncio.timeout(timeout_s):
                found = await self._resolve(host, port)
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"the name {host} was not found in time") from None
        except OSError as fault:
            reason = fault.strerror or fault
            raise httpcore.ConnectError(f"the name {host} was not found: {reason}") from fault
        allowed = [text for text in found if self._rules.allows(ip_address(text))]
        if found and not allowed:
            raise httpcore.ConnectError(f"the name {host} has no public address")
        return allowed[:_ADDRESSES_MAX]
