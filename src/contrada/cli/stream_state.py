"""The folder in which `contrada stream` keeps what it needs to go on: `--state`.

stream.json      what the stream reads and writes, and the columns that it began with
subscriptions/   the versions of the subscriptions, as `contrada.spark.publish` writes them
checkpoint/      how far it is, as Spark writes it
quarantine/      bad events, unless they go to a topic
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrada.errors import InvalidInput, blame
from contrada.machine import write_whole

_FORMAT = 1
_FIXED = {"events": "--events", "to": "--to"}  # what a stream that goes on must have as before


@dataclass(frozen=True, slots=True)
class StreamState:
    """The folder of a stream; `stated` is what it began with."""

    folder: Path
    stated: Mapping[str, Any]

    @classmethod
    def open(cls, folder: str, given: Mapping[str, str]) -> "StreamState":
        """Open the folder, or make it; refuse that of another stream."""
        path = Path(folder).absolute()
        try:
            path.mkdir(parents=True, exist_ok=True)
            text = (path / "stream.json").read_text() if (path / "stream.json").exists() else None
        except OSError as fault:
            raise blame(fault, f"--state {folder}: {fault}") from fault
        if text is None:
            if any(path.iterdir()):
                raise InvalidInput(
                    f"--state {folder}: has files, but not those of a stream; name an empty folder"
                )
            return cls(path, {"format": _FORMAT, **given})
        return cls(path, _check(folder, text, given))

    def settle(self, columns: Mapping[str, Any]) -> None:
        """Write down what the stream begins with."""
        content = json.dumps({**self.stated, "columns": dict(columns)}, indent=2)
        write_whole(self.folder / "stream.json", content.encode())

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


def _check(folder: str, text: str, given: Mapping[str, str]) -> dict[str, Any]:
    try:
        stated: dict[str, Any] = json.loads(text)
        format_, missing = stated["format"], [name for name in _FIXED if name not in stated]
    except (ValueError, KeyError, TypeError) as fault:
        raise InvalidInput(f"--state {folder}: stream.json is damaged: {fault!r}") from None
    if format_ != _FORMAT:
        raise InvalidInput(
            f"--state {folder}: is in format {format_}; this version of Contrada writes {_FORMAT}"
        )
    for name, option in _FIXED.items():
        if name in missing or stated[name] != given[name]:
            raise InvalidInput(
                f"--state {folder}: that stream has {option} {stated.get(name)}, not "
                f"{given[name]}; another one needs a folder of its own"
            )
    return stated
