"""The body of a request, read within limits: of size, also once decompressed, and of time.

A body is decompressed as it comes and refused at the first byte too many, so that a small one
cannot become a large one in memory. Nothing is done with a body before its last byte is there.
"""

import asyncio
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from starlette.requests import HTTPConnection, Request

from contrada.errors import InvalidInput, Overloaded
from contrada.server.problems import HttpRefusal
from contrada.server.server_limits import ServerLimits
from contrada.showing import brief

_PLAIN, _PACKED = {"", "identity"}, {"gzip", "x-gzip", "deflate"}
_GZIP_OR_ZLIB, _RAW_DEFLATE = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS
_DISCARDED_BYTES_MAX, _DISCARDING_S_MAX = 64 * 2**20, 5.0  # of a body that is refused
_TOO_LARGE = 413
_FORM = "application/x-www-form-urlencoded"


class RequestBodies:
    """All bodies that are in memory at one time, and the limits of each and of each caller's."""

    def __init__(self, limits: ServerLimits, account_of: Callable[[HTTPConnection], str]) -> None:
        """Start without any."""
        self._limits, self._account_of = limits, account_of
        self._held_of: Counter[str] = Counter()
        self.bytes_held = 0

    @asynccontextmanager
    async def read(self, request: Request, bytes_max: int) -> AsyncIterator[bytes]:
        """Read a body, and count it as held until the block is left."""
        pieces: list[bytes] = []
        try:
            yield await self._collect(request, bytes_max, pieces)
        finally:
            self._hold(request, -sum(map(len, pieces)))

    def _hold(self, request: Request, nbytes: int) -> None:
        """Count bytes as held; a caller who holds too many does not keep others from sending."""
        account = self._account_of(request)
        self.bytes_held += nbytes
        self._held_of[account] += nbytes
        if nbytes <= 0:
            if not self._held_of[account]:
                del self._held_of[account]
            return
        if self._held_of[account] > self._limits.bodies_of_caller_bytes_max:
            raise Overloaded("your other requests fill the memory that one caller has for bodies")
        if self.bytes_held > self._limits.bodies_bytes_max:
            raise Overloaded("the bodies of other requests fill the memory there is")

    async def _collect(self, request: Request, bytes_max: int, pieces: list[bytes]) -> bytes:
        """Read a body to its end; `pieces` has what was read even where it is refused."""
        try:
            opened = _OpenedBody(request, bytes_max)
            async for chunk in self._chunks(request):
                pieces.append(opened.open(chunk))
                self._hold(request, len(pieces[-1]))
            opened.finish()
        except HttpRefusal as fault:
            if fault.status == _TOO_LARGE:
                await self._discard(request)
            raise
        if len(pieces) > 1:
            pieces[:] = [b"".join(pieces)]
        return pieces[0] if pieces else b""

    async def _discard(self, request: Request) -> None:
        """Read on for a while: who is still sending when a connection closes sees no answer."""
        if request.headers.get("expect", "").lower() == "100-continue":
            return
        left = _DISCARDED_BYTES_MAX
        with suppress(TimeoutError, RuntimeError):  # it may have been read to its end
            async with asyncio.timeout(_DISCARDING_S_MAX):
                async for chunk in request.stream():
                    left -= len(chunk)
                    if left < 0:
                        return

    async def _chunks(self, request: Request) -> AsyncIterator[bytes]:
        async for chunk in chunks_in_time(request, self._limits, self._limits.body_time_s_max):
            yield chunk


async def chunks_in_time(
    request: Request, limits: ServerLimits, time_s_max: float
) -> AsyncIterator[bytes]:
    """Yield a body as it comes; one that pauses, or is slow after its first seconds, is refused.

    What counts against its speed is only the time in which it is waited for.
    """
    end = time.monotonic() + time_s_max
    stream = request.stream()
    left_s = float(limits.body_start_s_max)
    while True:
        begin = time.monotonic()
        try:
            async with asyncio.timeout(min(limits.body_idle_s_max, end - begin, left_s)):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise HttpRefusal(408, "the body did not come in time") from None
        if chunk is None:
            return
        left_s += len(chunk) / limits.body_bytes_per_s_min - (time.monotonic() - begin)
        yield chunk


class _OpenedBody:
    """A body that is decompressed as it comes."""

    def __init__(self, request: Request, bytes_max: int) -> None:
        self._bytes_max = self._bytes_left = bytes_max
        coding = request.headers.get("content-encoding", "").strip().lower()
        if coding not in _PLAIN | _PACKED:
            accepted = {"Accept-Encoding": "gzip, deflate"}
            what = f"content encoding {brief(coding)} is not read; gzip and deflate are"
            raise HttpRefusal(415, what, accepted)
        self._is_packed = coding in _PACKED
        self._unpacker: zlib._Decompress | None = None
        self._read = 0
        stated = request.headers.get("content-length", "")
        if stated.isdecimal() and int(stated) > bytes_max:
            raise self._too_large()

    def open(self, chunk: bytes) -> bytes:
        """Return what a chunk holds."""
        self._read += len(chunk)
        if self._read > self._bytes_max:
            raise self._too_large()
        if not self._is_packed:
            return chunk
        try:
            return self._unpack(chunk)
        except zlib.error as fault:
            raise InvalidInput(f"cannot be decompressed: {fault}", place="the body") from None

    def finish(self) -> None:
        """Refuse a compressed body that ends too early."""
        if self._unpacker is not None and not self._unpacker.eof:
            raise InvalidInput("its compressed data end too early", place="the body")

    def _unpack(self, chunk: bytes) -> bytes:
        pieces = []
        while chunk:
            if self._unpacker is None or self._unpacker.eof:
                self._unpacker = zlib.decompressobj(_find_window_bits(chunk))
            piece = self._unpacker.decompress(chunk, self._bytes_left + 1)
            self._bytes_left -= len(piece)
            if self._bytes_left < 0:
                raise self._too_large()
            pieces.append(piece)
            chunk = self._unpacker.unused_data
        return b"".join(pieces)

    def _too_large(self) -> HttpRefusal:
        return HttpRefusal(_TOO_LARGE, f"a body here has at most {self._bytes_max:,} bytes")


def read_media_type(request: Request) -> str:
    """Return the type of a body without its parameters; empty where none is stated.

    curl and urllib call what they send a form where they are told no type; a form that a page in a
    browser sends has an `Origin`, and is not taken for anything else.
    """
    stated = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return "" if stated == _FORM and "origin" not in request.headers else stated


def check_is_json(request: Request) -> None:
    """Refuse a body that says it is something other than JSON."""
    media_type = read_media_type(request)
    if media_type and media_type != "text/json" and not is_json_type(media_type):
        accepted = {"Accept": "application/json"}
        message = f"the body is JSON here (Content-Type: application/json), not {brief(media_type)}"
        raise HttpRefusal(415, message, accepted)


def is_json_type(media_type: str) -> bool:
    """Whether a type, without parameters, is JSON or one of its many kinds."""
    return media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )


def _find_window_bits(head: bytes) -> int:
    """Return zlib's name for a format: `deflate` should be zlib's, but some send it bare."""
    is_gzip = head[:1] == b"\x1f"
    is_zlib = len(head) < 2 or (head[0] & 15 == 8 and int.from_bytes(head[:2]) % 31 == 0)
    return _GZIP_OR_ZLIB if is_gzip or is_zlib else _RAW_DEFLATE
