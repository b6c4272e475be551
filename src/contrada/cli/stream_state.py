"""The folder in which `contrada stream` keeps what it needs to go on: `--state`.

stream.json      what the stream reads and writes, and the columns that it began with
subscriptions/   the versions of the subscriptions, as `contrada.spark.publish` writes them
checkpoint/      how far it is, as Spark writes it
quarantine/      bad events, unless they go to a topic
lock             held while the stream runs
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrada.errors import InvalidInput, blame
from contrada.machine import try_lock, write_whole

_FORMAT = 1
_FIXED = {"events": "--events", "to": "--to"}  # what a stream that goes on must have as before
_STREAM, _LOCK = "stream.json", "lock"


@dataclass(frozen=True, slots=True)
class StreamState:
    """The folder of a stream; `stated` is what it began with."""

    folder: Path
    stated: Mapping[str, Any]

    @classmethod
    @contextmanager
    def open(cls, folder: str, given: Mapping[str, str]) -> "Iterator[StreamState]":
        """Open the folder, or make it, and keep others out; refuse that of another stream.

        Whose it is stands in it from the first moment. Until Spark has planned a batch, a stream
        that was refused or killed may still be given other places and columns.
        """
        path = Path(folder).absolute()
        places = {name: spell_place(place) for name, place in given.items()}
        try:
            path.mkdir(parents=True, exist_ok=True)
            names = {entry.name for entry in path.iterdir()}
            if _STREAM not in names and names - {_LOCK}:
                raise InvalidInput(
                    f"--state {folder}: has files, but not those of a stream; name an empty folder"
                )
            lock = try_lock(path / _LOCK)
        except BlockingIOError:
            raise InvalidInput(
                f"--state {folder}: another `contrada stream` is running on it; stop that one "
                "first, or name another folder"
            ) from None
        except OSError as fault:
            raise blame(fault, f"--state {folder}: {fault}") from fault
        with lock:
            yield cls(path, _begin(path, folder, places))

    def settle(self, columns: Mapping[str, Any]) -> None:
        """Write down what the stream begins with."""
        _write(self.folder, {**self.stated, "columns": dict(columns)})

    @property
    def columns(self) -> Mapping[str, Any] | None:
        """The columns that the stream began with; None before it has."""
        return self.stated.get("columns")

    @property
    def subscriptions(self) -> str:
        """Where the versions of the subscriptions are."""
        return str(self.folder / "subscriptions")

    @property
    def checkpoint(self) -> str:
        """Where Spark writes how far it is."""
        return str(self.folder / "checkpoint")

    @property
    def quarantine(self) -> str:
        """Where bad events go, if not to a topic."""
        return str(self.folder / "quarantine")


def spell_place(place: str) -> str:
    """Spell a folder or pattern so that it is the same from everywhere; a URI stays one."""
    return place if "://" in place else os.path.abspath(place)  # noqa: PTH100  `a/..` goes, too


def _begin(path: Path, folder: str, places: Mapping[str, str]) -> dict[str, Any]:
    """Read what a stream began with, or write down what a new one is to read and write."""
    try:
        text = (path / _STREAM).read_text() if (path / _STREAM).exists() else None
    except OSError as fault:
        raise blame(fault, f"--state {folder}: {fault}") from fault
    stated = {} if text is None else _read(folder, text)
    if _has_begun(path):
        _check(folder, stated, places)
        return stated
    stated = {"format": _FORMAT, **places}
    _write(path, stated)
    return stated


def _has_begun(path: Path) -> bool:
    offsets = path / "checkpoint" / "offsets"
    return offsets.is_dir() and any(offsets.iterdir())


def _write(folder: Path, stated: Mapping[str, Any]) -> None:
    write_whole(folder / _STREAM, json.dumps(stated, indent=2).encode())


def _read(folder: str, text: str) -> dict[str, Any]:
    try:
        stated: dict[str, Any] = json.loads(text)
        format_ = stated["format"]
    except (ValueError, KeyError, TypeError) as fault:
        raise InvalidInput(f"--state {folder}: {_STREAM} is damaged: {fault!r}") from None
    if format_ != _FORMAT:
        raise InvalidInput(
            f"--state {folder}: is in format {format_}; this version of Contrada writes {_FORMAT}"
        )
    return stated


def _check(folder: str, stated: Mapping[str, Any], places: Mapping[str, str]) -> None:
    """Refuse to go on elsewhere: how far the stream is holds for its source alone."""
    for name, option in _FIXED.items():
        if stated.get(name) != places[name]:
            raise InvalidInput(
                f"--state {folder}: that stream has {option} {stated.get(name)}, not "
                f"{places[name]}; another one needs a folder of its own"
            )
