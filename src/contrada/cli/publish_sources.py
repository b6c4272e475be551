"""The events that `contrada publish` sends: the rows of a file, or JSON values, one on a line.

Lines are sent as they are, so that nothing of them is lost in columns. What is not an event, and a
row that cannot be read, goes along with its fault, so that it keeps its place in a batch.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from contrada.cli.notes import note
from contrada.cli.terminal import STDOUT
from contrada.client.outgoing import read_outgoing
from contrada.client.outgoing_events import OutgoingEvent
from contrada.errors import BAD_ROWS_SHOWN_MAX, InvalidInput, Unavailable
from contrada.files import read_rows
from contrada.files.crs import is_longitude_latitude
from contrada.files.json_lines import SUFFIXES, describe_length, split_texts
from contrada.files.reading import name_layer
from contrada.files.regular_files import check_regular
from contrada.model.json_message import decode_json
from contrada.showing import brief


@dataclass(slots=True)
class EventSource:
    """Events in their order; `count` is None where nobody knows how many they are.

    While they are iterated over, `numbers` takes what `place` names each of them by, `bad_count`
    counts those that are left out, and `bad` has the first ones, each with the reason.
    """

    count: int | None
    place: Callable[[int], str]
    numbers: deque[int] = field(default_factory=deque)
    bad_count: int = 0
    bad: list[tuple[int, str]] = field(default_factory=list)
    _open: Callable[["EventSource"], Iterator[OutgoingEvent]] = field(
        default=lambda _: iter(()), repr=False
    )

    def leave_out(self, number: int, reason: str) -> None:
        """Count an event that cannot be sent, or was not taken."""
        self.bad_count += 1
        if len(self.bad) < BAD_ROWS_SHOWN_MAX:
            self.bad.append((number, reason))

    def describe_bad(self) -> list[str]:
        """Describe the events that were left out, or the first of them, in their order."""
        return [f"{self.place(number)}: {reason}" for number, reason in sorted(self.bad)]

    def __iter__(self) -> Iterator[OutgoingEvent]:
        return self._open(self)


def open_source(name: str, layer: str | None) -> EventSource:
    """Open a file of events, or with the name `-` stdin."""
    path = Path(name)
    if layer is None and (name == STDOUT or path.name.lower().endswith(SUFFIXES)):
        return _open_lines(name)
    rows = read_rows(name if layer is None else name_layer(name, layer))
    if rows.crs is not None and not is_longitude_latitude(rows.crs):
        note(f"{name} is in {rows.crs:.60}; its coordinates are sent as they are")

    def read(source: EventSource) -> Iterator[OutgoingEvent]:
        for number, event in enumerate(read_outgoing(rows)):
            source.numbers.append(number)
            yield event

    return EventSource(rows.count, rows.place, _open=read)


def _open_lines(name: str) -> EventSource:
    is_stdin = name == STDOUT
    shown = "stdin" if is_stdin else name
    if not is_stdin:
        _check(name)

    def read(source: EventSource) -> Iterator[OutgoingEvent]:
        if is_stdin:
            yield from _read_lines(sys.stdin.buffer, shown, source)
            return
        with Path(name).open("rb") as file:
            yield from _read_lines(file, shown, source)

    return EventSource(None, lambda line: f"{shown}, line {line}", _open=read)


def _check(name: str) -> None:
    try:
        check_regular(Path(name), name)
        with Path(name).open("rb"):
            pass
    except InvalidInput:
        raise
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise InvalidInput(f"{name}: no such file") from None
    except OSError as fault:
        raise Unavailable(f"{name}: cannot be read: {fault.strerror or fault}") from fault


def _read_lines(file: IO[bytes], name: str, source: EventSource) -> Iterator[OutgoingEvent]:
    for line, text in split_texts(file, name, is_lenient=True):
        try:
            event = _read_event(text)
        except InvalidInput as error:
            event = OutgoingEvent.bad(error)
        source.numbers.append(line)
        yield event


def _read_event(text: bytes) -> OutgoingEvent:
    if not text:
        raise InvalidInput(f"it is {describe_length()}")
    value = decode_json(text)
    if not isinstance(value, dict):
        raise InvalidInput(f"it is not a JSON object: {brief(value)}")
    if value.get("type") == "FeatureCollection" and "features" in value:
        raise InvalidInput("it is an entire FeatureCollection, not a Feature")
    (event,) = read_outgoing(value)
    return event
