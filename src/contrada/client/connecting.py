"""How a client connects: to which broker, with which key, for how long; and what may go wrong.

The key is held by nothing but the header that it is sent in; no text that is shown has it.
"""

import ipaddress
import os
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from contrada import __version__
from contrada.client.defaults import DEFAULT_URL, KEY_VARIABLE, URL_VARIABLE
from contrada.client.exchange import BrokerRequest, HttpAnswer, NoAnswer
from contrada.client.trust import Verify, find_refusal, read_trust
from contrada.errors import InvalidInput, MissingPackage, Unavailable
from contrada.showing import brief

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 30.0
FILE_PIECE_BYTES = 2**18

_CONNECT_S_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Connecting:
    """Where a broker is, and how long to wait for it; `headers` have the key and are not shown."""

    url: str
    timeout_s: float
    is_local: bool
    verify: ssl.SSLContext | bool
    headers: dict[str, str] = field(repr=False)

    @classmethod
    def read(
        cls,
        url: str | None,
        key: str | None,
        timeout_s: float,
        verify: Verify,
    ) -> "Connecting":
        """Take the arguments of a client, or what the environment has in their place."""
        url = (os.environ.get(URL_VARIABLE) or DEFAULT_URL) if url is None else url
        key = key or os.environ.get(KEY_VARIABLE) or None
        parts = _split(url)
        if not timeout_s > 0:
            raise InvalidInput(f"timeout_s must be more than 0, not {timeout_s}")
        headers = {"user-agent": f"contrada/{__version__}", "accept": "application/json"}
        if key is not None:
            headers["authorization"] = f"Bearer {_check_key(key)}"
        plain = parts._replace(path=parts.path.rstrip("/"), query="", fragment="").geturl()
        trust = read_trust(verify, is_secure=parts.scheme == "https")
        return cls(plain, timeout_s, _is_loopback(parts.hostname or ""), trust, headers)

    def options(self) -> dict[str, Any]:
        """Return the arguments for a client of httpx; no proxy stands before a local broker."""
        import httpx

        return {
            "base_url": self.url,
            "headers": self.headers,
            "timeout": self._timeout(0.0),
            "verify": self.verify,
            "trust_env": not self.is_local,
            "limits": httpx.Limits(max_connections=None, max_keepalive_connections=20),
        }

    def arguments(self, request: BrokerRequest) -> dict[str, Any]:
        """Return the arguments for one request of httpx, but for its body."""
        headers = dict(request.headers)
        if not isinstance(request.content, bytes):
            headers["content-length"] = str(request.content.stat().st_size)
        return {
            "method": request.method,
            "url": request.path,
            "params": dict(request.query),
            "headers": headers,
            "timeout": self._timeout(request.wait_s),
        }

    def _timeout(self, wait_s: float) -> "httpx.Timeout":
        import httpx

        return httpx.Timeout(
            self.timeout_s,
            connect=self._connect_s(),
            read=self.timeout_s + wait_s,
        )

    def _connect_s(self) -> float:
        return min(self.timeout_s, _CONNECT_S_MAX)

    def describe(self, fault: Exception, was_there: bool) -> NoAnswer:
        """Describe why there was no answer, and whether the request may have arrived.

        Raises `Unavailable` for a certificate that is not trusted, and for what does not speak TLS,
        since waiting mends neither.
        """
        import httpx

        refusal = find_refusal(fault)
        if refusal is not None:
            raise Unavailable(f"{self.url}: {refusal}") from fault
        unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
        if isinstance(fault, unsent):
            words = f"{self.url}: no connection: {_words(fault)}"
            took_s = self._connect_s() if isinstance(fault, httpx.ConnectTimeout) else 0.0
            return NoAnswer(words, is_sent=False, was_there=was_there, took_s=took_s)
        return NoAnswer(f"{self.url}: no answer: {_words(fault)}", is_sent=True)


def require_httpx() -> None:
    """Raise MissingPackage, with the remedy, where httpx is not installed."""
    try:
        import httpx  # noqa: F401
    except ImportError as error:
        raise MissingPackage(
            "a client of a broker needs httpx, which is not installed: "
            'pip install "contrada[client]"'
        ) from error


def read_answer(response: "httpx.Response") -> HttpAnswer:
    """Take what matters of a response."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    took_s = response.elapsed.total_seconds()
    return HttpAnswer(response.status_code, headers, response.content, took_s)


def _words(fault: Exception) -> str:
    import httpx

    if isinstance(fault, httpx.TimeoutException):
        return "it took too long"
    return str(fault) or type(fault).__name__


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound = False
    if not is_sound:
        raise InvalidInput(f"{brief(url)} is not the address of a broker, such as {DEFAULT_URL!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            f"the address of a broker is only http(s)://host:port, not all that was given for "
            f"{brief(parts.hostname)}; a key goes into key=… or {KEY_VARIABLE}"
        )
    return parts


def _check_key(key: str) -> str:
    """Refuse what cannot be in a header, without showing it."""
    if not (isinstance(key, str) and key.isascii() and key.isprintable() and " " not in key):
        raise InvalidInput("the key has characters that no key has")
    return key


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
