"""`/v1/subscriptions/{id}/rows`: the geometries of a collection, as a file of any length.

The body goes to the disk as it comes, and no process of ours reads it but one that may end.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from contrada.broker.broker import Broker
from contrada.broker.packing_process import RowPackers, open_draft, refuse_without_room
from contrada.broker.row_intake import find_terms, take_rows
from contrada.errors import Conflict, InvalidInput, Overloaded
from contrada.limits import COLLECTION_BYTES_MAX
from contrada.server.event_routes import LINE_TYPES
from contrada.server.json_answers import answer_json
from contrada.server.problems import HttpRefusal
from contrada.server.query_parameters import QueryParameters
from contrada.server.raw_paths import read_path_name
from contrada.server.request_bodies import chunks_in_time, read_media_type
from contrada.server.resources import resource
from contrada.server.service import SUBSCRIBE, Service, service_of
from contrada.showing import brief

_PARQUET, _GEOJSON, _LINES = ".parquet", ".geojson", ".geojsonl"
_SUFFIXES = {
    "application/vnd.apache.parquet": _PARQUET,
    "application/geo+json": _GEOJSON,
    **dict.fromkeys(LINE_TYPES, _LINES),
}
_GENERIC = {"", "application/octet-stream", "application/json", "text/json", "text/plain"}
_PIECE_BYTES = 2**20
_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """What a file of rows may be, and how many may come at one time.

    A client may be silent for as long as in any body; for the whole of one it has `time_s_max`.
    """

    bytes_max: int = COLLECTION_BYTES_MAX
    time_s_max: float = 3_600.0
    uploads_max: int = 4


def row_routes(
    packers: RowPackers | None = None, limits: UploadLimits | None = None
) -> list[Route]:
    """Make the route of the rows of collections."""
    uploads = _Uploads(packers or RowPackers(), limits or UploadLimits())
    return [resource("/v1/subscriptions/{id}/rows", PUT=uploads.put)]


class _Uploads:
    """All files that are on their way; each collection has one at most."""

    def __init__(self, packers: RowPackers, limits: UploadLimits) -> None:
        self._packers, self._limits = packers, limits
        self._under_way: set[tuple[Path, str]] = set()
        self._threads = ThreadPoolExecutor(limits.uploads_max, "contrada-rows")

    async def put(self, request: Request) -> Response:
        """Replace the rows of a collection as a whole; 201 where it is new."""
        service = service_of(request)
        broker = service.open_broker(request, SUBSCRIBE)
        may_be_empty = QueryParameters(request, "empty").truth("empty")
        id_ = read_path_name(request, "id")
        suffix = _read_suffix(request)
        self._check_length(request)
        with self._turn(broker, id_):
            await service.read(find_terms, broker, id_)
            async with self._draft(broker) as draft:
                source = await self._receive(request, service, draft, suffix)
                take = partial(
                    take_rows,
                    broker,
                    id_,
                    source,
                    self._packers,
                    by=service.name_of(request),
                    may_be_empty=may_be_empty,
                )
                changed, count = await self._take(request, service, take)
        answer = {"position": changed.position, "changed": changed.is_changed, "count": count}
        return answer_json(answer, 201 if changed.is_new else 200)

    @contextmanager
    def _turn(self, broker: Broker, id_: str) -> Iterator[None]:
        """Let nobody else send rows for the same collection meanwhile."""
        key = broker.folder, id_
        if key in self._under_way:
            raise Conflict(f"other rows of {brief(id_)} are on their way")
        if len(self._under_way) >= self._limits.uploads_max:
            raise Overloaded("rows of other collections are on their way", 10.0)
        self._under_way.add(key)
        try:
            yield
        finally:
            self._under_way.discard(key)

    async def _run(self, function: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)

    @asynccontextmanager
    async def _draft(self, broker: Broker) -> AsyncIterator[Path]:
        opened = open_draft(broker.folder)
        draft = await self._run(opened.__enter__)
        try:
            yield draft
        finally:
            await asyncio.shield(self._run(opened.__exit__, None, None, None))

    # The body

    def _check_length(self, request: Request) -> None:
        stated = request.headers.get("content-length", "")
        if stated.isdecimal() and int(stated) > self._limits.bytes_max:
            raise self._too_large()

    def _too_large(self) -> HttpRefusal:
        return HttpRefusal(413, f"a file of rows has at most {self._limits.bytes_max:,} bytes")

    async def _receive(
        self, request: Request, service: Service, draft: Path, suffix: str | None
    ) -> Path:
        """Write the body to a file, piece by piece, and name it by its format."""
        path = draft / "rows"
        with path.open("xb") as file:
            async for piece in self._pieces(request, service):
                await self._run(_write, file, piece, draft)
        if suffix is None or not path.stat().st_size:
            suffix = await self._run(guess_format, path)
        return path.rename(path.with_suffix(suffix))

    async def _pieces(self, request: Request, service: Service) -> AsyncIterator[bytes]:
        """Yield the body in pieces of some size."""
        held: list[bytes] = []
        length = total = 0
        async for chunk in chunks_in_time(request, service.limits, self._limits.time_s_max):
            held.append(chunk)
            length, total = length + len(chunk), total + len(chunk)
            if total > self._limits.bytes_max:
                raise self._too_large()
            if length >= _PIECE_BYTES:
                yield b"".join(held)
                held, length = [], 0
        yield b"".join(held)

    # The rows

    async def _take(
        self, request: Request, service: Service, take: Callable[..., tuple[Any, int]]
    ) -> tuple[Any, int]:
        """Pack and put the rows, unless the client goes or the server ends before."""
        gave_up = threading.Event()
        taking = asyncio.ensure_future(self._run(partial(take, gave_up=gave_up)))
        watching = [
            asyncio.ensure_future(each)
            for each in (_wait_for_end(request), service.stopping.wait())
        ]
        try:
            await asyncio.wait([taking, *watching], return_when=asyncio.FIRST_COMPLETED)
            if not taking.done() and watching[0].done():
                raise ClientDisconnect
            if not taking.done():
                raise Overloaded("the broker is about to end")
            changed, count = taking.result()
            return changed, count
        finally:
            gave_up.set()
            for each in watching:
                each.cancel()
            await asyncio.shield(asyncio.wait([taking]))  # the file is in use until then
            if not taking.cancelled():
                taking.exception()


async def _wait_for_end(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _write(file: IO[bytes], piece: bytes, draft: Path) -> None:
    refuse_without_room(draft, len(piece))
    file.write(piece)


def _read_suffix(request: Request) -> str | None:
    """Read the format off the headers; None where it is to be seen from the body."""
    coding = request.headers.get("content-encoding", "").strip().lower()
    if coding not in {"", "identity"}:
        what = f"rows are not read with content encoding {brief(coding)}; Parquet is compressed"
        raise HttpRefusal(415, what, {"Accept-Encoding": "identity"})
    media_type = read_media_type(request)
    if media_type in _GENERIC:
        return None
    if media_type not in _SUFFIXES:
        accepted = ", ".join(_SUFFIXES)
        what = f"rows are not read from {brief(media_type)}, only from {accepted}"
        raise HttpRefusal(415, what, {"Accept": accepted})
    return _SUFFIXES[media_type]


def guess_format(path: Path) -> str:
    """Find the format of a file of rows from its first bytes, as the suffix of its name.

    One that is empty has no rows in any format.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(b"PAR1"):
        return _PARQUET
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if text.startswith(b"\x1e"):
        return _LINES
    if not text and len(head) < _HEAD_BYTES:
        return _LINES
    if not text.startswith(b"{"):
        raise InvalidInput("is neither GeoParquet nor GeoJSON", place="the body")
    line, _, rest = text.partition(b"\n")
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return _GEOJSON  # one document over several lines
    is_row = isinstance(first, dict) and first.get("type") != "FeatureCollection"
    return _LINES if is_row and rest.strip() else _GEOJSON
