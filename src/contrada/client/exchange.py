"""What the calls of a client ask for, and what they are answered: no socket, no clock.

A call is a generator. It yields a request, or a pause, and is sent what came of it; what it returns
is the result of the call. So every call is written once, and one loop that blocks and one that
awaits carry it out.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

ROOT_PATH = "/v1"


@dataclass(frozen=True, slots=True)
class BrokerRequest:
    """One request; `content` is a body, or a file to be one.

    `wait_s` is how long the broker may take on purpose. What `is_repeatable` may be sent again when
    its answer was lost: done twice, it is as if done once.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    content: bytes | Path = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    is_repeatable: bool = True


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server answered, and how long it took; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    took_s: float = 0.0


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why none came; `is_sent` where the broker may have done what it was asked.

    `was_there` says that the same client has been answered before.
    """

    reason: str
    is_sent: bool
    was_there: bool = False
    took_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Pause:
    """A time to let pass before what comes next."""

    seconds: float


_Result = TypeVar("_Result")
Steps = Generator[BrokerRequest | Pause, Any, _Result]


def path_of(*names: str) -> str:
    """Write a path below `/v1`; whatever is in a name, it stays one segment."""
    quoted = (quote(name, safe="").replace(".", "%2E") for name in names)
    return "/".join([ROOT_PATH, *quoted])
