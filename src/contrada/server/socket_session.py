"""One WebSocket while it is open: its frames in, and answers and deliveries out.

Nothing piles up: frames are read one at a time, publishes that are not yet answered are bounded,
deliveries need credit, and every write waits until the one before it has found room.
"""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from contrada.broker.broker import Broker
from contrada.broker.commit_tasks import PublishAnswer
from contrada.broker.incoming_events import IncomingEvents
from contrada.errors import InvalidInput, Overloaded
from contrada.server.delivery_reader import DeliveryReader
from contrada.server.event_answers import bad_events_problem, describe_published
from contrada.server.event_reading import read_events
from contrada.server.problems import describe_problem
from contrada.server.service import PUBLISH, SUBSCRIBE, Service
from contrada.server.socket_frames import (
    CLOSE_TOO_LONG,
    AckFrame,
    BadFrame,
    CreditFrame,
    PublishFrame,
    ReadFrame,
    Ref,
    StopFrame,
    read_frame,
    write_deliveries,
    write_frame,
)

_FAREWELL_S = 1.0  # for answers that are still to come when the socket must end
_PAUSE_S = 0.005  # before a full broker is asked again; later longer
_PAGE = 500  # deliveries in one frame, if there is credit
_Answer = tuple[Ref, bool, "Future[PublishAnswer] | Exception"]


class SocketSession:
    """What one socket has under way: publishes that wait for the disk, and subscribers it reads."""

    def __init__(self, service: Service, socket: WebSocket) -> None:
        """Begin with nothing."""
        self._service, self._socket = service, socket
        self._answers: asyncio.Queue[_Answer] = asyncio.Queue(service.limits.socket_publishes_max)
        self._readers: dict[str, _SocketReader] = {}

    async def run(self) -> None:
        """Take frames until the other end is gone; what was handed in is answered first."""
        taking = asyncio.create_task(self._take_all())
        answering = asyncio.create_task(self._answer_publishes())
        try:
            await asyncio.wait([taking, answering], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            taking.cancel()
            await asyncio.wait([asyncio.ensure_future(self._answers.join())], timeout=_FAREWELL_S)
            raise
        finally:
            tasks = [taking, answering, *(reader.task for reader in self._readers.values())]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in (taking, answering):
            if not task.cancelled():
                task.result()

    async def _take_all(self) -> None:
        while (text := await self._receive()) is not None:
            await self._take(text)
            await asyncio.sleep(0)  # frames that are ready never end: everybody has a turn

    async def _receive(self) -> bytes | None:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        text = message.get("text")
        frame: bytes = message.get("bytes") or b"" if text is None else text.encode()
        if len(frame) > self._service.limits.frame_bytes_max:
            await self._socket.close(CLOSE_TOO_LONG)
            return None
        return frame

    async def _take(self, text: bytes) -> None:
        names: dict[str, Any] = {}
        try:
            frame = read_frame(text, self._service.limits.credit_max)
            match frame:
                case PublishFrame():
                    await self._publish(frame)
                case ReadFrame():
                    names = {"subscriber": frame.subscriber}
                    await self._begin_reading(frame)
                case CreditFrame():
                    names = {"subscriber": frame.subscriber}
                    self._find_reader(frame.subscriber).add_credit(frame.credit)
                case AckFrame():
                    names = {"subscriber": frame.subscriber, "ref": frame.ref}
                    await self._acknowledge(frame)
                case StopFrame():
                    names = {"subscriber": frame.subscriber}
                    await self._stop_reading(frame.subscriber)
                    await self._send("stopped", subscriber=frame.subscriber)
        except BadFrame as fault:
            await self._send_problem(fault, fault.names)
        except WebSocketDisconnect:
            raise
        except Exception as fault:
            await self._send_problem(fault, names)

    async def _send(self, kind: str, **members: Any) -> None:
        await self._socket.send_text(write_frame(kind, **members))

    async def _send_problem(self, fault: Exception, names: dict[str, Any]) -> None:
        await self._send("error", **names, problem=describe_problem(fault))

    # Publishing

    async def _publish(self, frame: PublishFrame) -> None:
        """Hand events to the broker before the next frame is read; a full broker makes it wait."""
        outcome: Future[PublishAnswer] | Exception
        try:
            broker = self._service.open_broker(self._socket, PUBLISH)
            body = json.dumps(frame.events).encode()
            events = await read_events(self._service, body, None, {}, frame.key)
            outcome = await self._hand_in(broker, events, frame.is_all_or_none)
        except Exception as fault:
            outcome = fault
        await self._answers.put((frame.ref, frame.is_all_or_none, outcome))

    async def _hand_in(
        self, broker: Broker, events: IncomingEvents, all_or_none: bool
    ) -> "Future[PublishAnswer]":
        pause_s = _PAUSE_S
        while True:
            try:
                return broker.publish(events, all_or_none=all_or_none)
            except Overloaded as fault:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, fault.retry_after_s)

    async def _answer_publishes(self) -> None:
        """Answer publishes in the order in which they came."""
        while True:
            ref, all_or_none, outcome = await self._answers.get()
            await self._answer_publish(ref, all_or_none, outcome)
            self._answers.task_done()

    async def _answer_publish(
        self, ref: Ref, all_or_none: bool, outcome: "Future[PublishAnswer] | Exception"
    ) -> None:
        try:
            if isinstance(outcome, Exception):
                raise outcome
            published = await self._service.settle(outcome)
        except Exception as fault:
            await self._send("error", ref=ref, problem=describe_problem(fault))
            return
        if published.errors and not published.accepted:
            problem = bad_events_problem(published, all_or_none)
            await self._send("error", ref=ref, problem=problem)
        else:
            await self._send("published", ref=ref, **describe_published(published))

    # Receiving

    async def _begin_reading(self, frame: ReadFrame) -> None:
        broker = self._service.open_broker(self._socket, SUBSCRIBE)
        await self._stop_reading(frame.subscriber)
        if len(self._readers) >= self._service.limits.socket_readers_max:
            most = self._service.limits.socket_readers_max
            raise InvalidInput(f"one socket reads at most {most} subscribers", place="subscriber")
        deliveries = DeliveryReader(self._service, broker, frame.subscriber, frame.after)
        reader = _SocketReader(self._service, self._socket, deliveries, frame.credit)
        await reader.look_up()
        await self._send("reading", subscriber=frame.subscriber, after=deliveries.position)
        self._readers[frame.subscriber] = reader
        reader.start(lambda: self._forget(reader))

    def _forget(self, reader: "_SocketReader") -> None:
        if self._readers.get(reader.subscriber) is reader:
            del self._readers[reader.subscriber]

    def _find_reader(self, subscriber: str) -> "_SocketReader":
        if subscriber not in self._readers:
            raise InvalidInput(
                "this socket does not read it: send a read first", place="subscriber"
            )
        return self._readers[subscriber]

    async def _stop_reading(self, subscriber: str) -> None:
        reader = self._readers.pop(subscriber, None)
        if reader is not None:
            reader.task.cancel()
            await asyncio.gather(reader.task, return_exceptions=True)

    async def _acknowledge(self, frame: AckFrame) -> None:
        broker = self._service.open_broker(self._socket, SUBSCRIBE)
        cursor = await self._service.write(broker.ack, frame.subscriber, frame.position)
        await self._send("acked", ref=frame.ref, subscriber=frame.subscriber, position=cursor)


class _SocketReader:
    """The deliveries of one subscriber on their way to a socket, as far as it has credit."""

    task: asyncio.Task[None]

    def __init__(
        self, service: Service, socket: WebSocket, deliveries: DeliveryReader, credit: int
    ) -> None:
        self._service, self._socket, self._deliveries = service, socket, deliveries
        self._credit = credit
        self._has_credit = asyncio.Event()
        self._has_credit.set()

    @property
    def subscriber(self) -> str:
        """Whose deliveries they are."""
        return self._deliveries.subscriber

    async def look_up(self) -> None:
        """Refuse a subscriber or a position that cannot be read."""
        await self._deliveries.probe()

    def start(self, forget: Callable[[], object]) -> None:
        """Begin to send."""
        self.task = asyncio.create_task(self._run())
        self.task.add_done_callback(lambda _: forget())

    def add_credit(self, credit: int) -> None:
        """Allow further deliveries."""
        self._credit = min(self._credit + credit, self._service.limits.credit_max)
        self._has_credit.set()

    async def _run(self) -> None:
        try:
            with self._deliveries.watching():
                await self._send_pages()
        except WebSocketDisconnect:
            return
        except Exception as fault:
            problem = describe_problem(fault)
            frame = write_frame("error", subscriber=self.subscriber, problem=problem)
            with suppress(WebSocketDisconnect, RuntimeError):  # it may be what has failed
                await self._socket.send_text(frame)

    async def _send_pages(self) -> None:
        while True:
            await self._has_credit.wait()
            limit = min(self._credit, _PAGE)
            page = await self._deliveries.read(limit, self._service.limits.heartbeat_s)
            has_news = bool(page.deliveries or page.gap is not None)
            frame = write_deliveries(self.subscriber, page) if has_news else ""
            self._credit -= len(page.deliveries)
            if self._credit <= 0:
                self._has_credit.clear()
            del page  # a stalled reader, of whom there may be many, holds one frame and no more
            if frame:
                await self._socket.send_text(frame)
            del frame
