"""Whether anybody answers at the address of a master.

Spark itself tries for a minute, and ends with tracebacks of Java; a connection tells at once.
"""

import socket
import time
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.parse import urlsplit

from contrada.errors import InvalidInput

WAIT_S = 10.0
_PORTS = {"http": 80, "https": 443}

Address = tuple[str, int]


def refuse_unreachable(master: str, wait_s: float = WAIT_S) -> None:
    """Refuse a master, `spark://` or `k8s://`, where nobody takes a connection in time.

    Of several standbys one must; masters of other kinds have no address to try.
    """
    addresses = _find_addresses(master)
    if not addresses:
        return
    answers: SimpleQueue[str | None] = SimpleQueue()
    for address in addresses:
        # A thread each, since nobody can say how long a name server takes.
        Thread(target=_connect, args=(address, wait_s, answers), daemon=True).start()
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
    raise InvalidInput(
        f"no master of Spark can be reached at {master}: {reasons}; is it running, and is this the "
        "address that it gives itself?"
    )


def _connect(address: Address, wait_s: float, answers: "SimpleQueue[str | None]") -> None:
    try:
        socket.create_connection(address, timeout=wait_s).close()
    except OSError as fault:
        host, port = address
        reason = "no answer" if isinstance(fault, TimeoutError) else fault.strerror or fault
        answers.put(f"{host}:{port}: {reason}")
    else:
        answers.put(None)


def _find_addresses(master: str) -> list[Address]:
    scheme, _, rest = master.partition("://")
    if scheme == "spark":
        return [_read_address(master, f"//{part}", None) for part in rest.split(",")]
    if scheme == "k8s":
        url = rest if "://" in rest else f"https://{rest}"
        return [_read_address(master, url, _PORTS.get(urlsplit(url).scheme))]
    return []


def _read_address(master: str, url: str, default: int | None) -> Address:
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port or default
    except ValueError:
        host = port = None
    if not host or port is None:
        raise InvalidInput(f"{master} is no master of Spark: it has no host and port")
    return host, port
