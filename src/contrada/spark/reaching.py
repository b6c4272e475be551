"""Whether a master can be used, as far as that is known before Java starts.

Spark itself tries for a minute, and ends with tracebacks of Java; a word with the master settles it
at once.
"""

import os
import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.parse import urlsplit

from contrada.errors import InvalidInput, Unavailable
from contrada.spark.yarn import find_resource_managers

WAIT_S = 10.0
_PORTS = {"http": 80, "https": 443}

_STREAM_REQUEST, _LENGTH_BYTES = 6, 8  # of a message in Spark's TransportFrameDecoder
_NO_STREAM = b"/files/contrada"
_SHORT_MESSAGE = b"\0\0\0\0"  # the first half of its length

Connect = Callable[[], socket.socket]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a master should be, and what it should speak: spark, yarn, http or https."""

    host: str
    port: int
    language: str


def refuse_unusable(
    master: str, config: Mapping[str, str] | None = None, wait_s: float = WAIT_S
) -> None:
    """Refuse a master that cannot be used.

    That is one where nobody takes a connection and answers in time (of several standbys one must),
    and YARN without a word about where it is.
    """
    addresses = _find_addresses(master, config or {})
    if not addresses:
        return
    answers: SimpleQueue[str | None] = SimpleQueue()
    for address in addresses:
        # A thread each, since nobody can say how long a name server takes.
        Thread(target=_try, args=(address, wait_s, answers), daemon=True).start()
    faults = []
    deadline = time.monotonic() + wait_s
    for _ in addresses:
        try:
            fault = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        if fault is None:
            return
        faults.append(fault)
    reasons = "; ".join(faults) or f"no answer within {wait_s:g} s"
    raise Unavailable(
        f"no Spark master can be reached at {master}: {reasons}; is it running, and is this the "
        "address that it announces?"
    )


def _try(address: Address, wait_s: float, answers: "SimpleQueue[str | None]") -> None:
    """Put what is wrong with an address into a queue, or None."""
    try:
        speak = _SPEAKING[address.language]
        fault = speak(lambda: socket.create_connection((address.host, address.port), wait_s))
    except OSError as error:
        fault = "no answer" if isinstance(error, TimeoutError) else str(error.strerror or error)
    answers.put(None if fault is None else f"{address.host}:{address.port}: {fault}")


def _speak_spark(connect: Connect) -> str | None:
    """Ask what every Spark process answers; return what is wrong with the answer."""
    answer = b""
    with connect() as link, suppress(ConnectionError):
        link.sendall(_ask_for_stream())
        answer = link.recv(_LENGTH_BYTES)
    if answer.startswith(_SHORT_MESSAGE) or _speaks_tls(connect):  # it may encrypt all it says
        return None
    return (
        "this is not a Spark master"
        if answer
        else "it closed the connection, which a Spark master does not do"
    )


def _speak_http(connect: Connect) -> str | None:
    """Ask a server; whatever it answers, Spark will show."""
    with connect() as link, suppress(ConnectionError):
        link.sendall(b"GET /version HTTP/1.0\r\n\r\n")
        link.recv(1)
    return None


def _speak_https(connect: Connect) -> str | None:
    """Shake hands with a server; whatever comes of it, Spark will show."""
    _speaks_tls(connect)
    return None


def _speak_yarn(connect: Connect) -> str | None:
    """Connect and close: being there is enough."""
    connect().close()
    return None


_SPEAKING = {
    "spark": _speak_spark,
    "yarn": _speak_yarn,
    "http": _speak_http,
    "https": _speak_https,
}


def _speaks_tls(connect: Connect) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # for a connection that will carry nothing
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with connect() as link:
        try:
            context.wrap_socket(link).close()
        except ssl.SSLError as error:
            return "ALERT" in (error.reason or "")
        except ConnectionError:
            return False
    return True


def _ask_for_stream() -> bytes:
    """Write a message to which every process of Spark answers: a request for an unknown stream."""
    body = struct.pack(">Bi", _STREAM_REQUEST, len(_NO_STREAM)) + _NO_STREAM
    return struct.pack(">q", _LENGTH_BYTES + len(body)) + body


def _find_addresses(master: str, config: Mapping[str, str]) -> list[Address]:
    scheme, _, rest = master.partition("://")
    if scheme == "spark":
        return [_read_address(master, f"spark://{part}") for part in rest.split(",")]
    if master == "yarn":
        managers = find_resource_managers(os.environ, config)
        return [_read_address(master, f"yarn://{manager}") for manager in managers]
    if scheme == "k8s":
        return [_read_address(master, rest if "://" in rest else f"https://{rest}")]
    return []


def _read_address(master: str, url: str) -> Address:
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        host = port = None
    if not host or port is None:
        raise InvalidInput(f"{master} is not a Spark master: it has no host and port")
    return Address(host, port, parts.scheme)
