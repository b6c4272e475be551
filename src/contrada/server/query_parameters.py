"""The query of a request: parameters that are known, each once, and each of its kind."""

import re

from starlette.requests import HTTPConnection

from contrada.errors import InvalidInput
from contrada.showing import brief, listed

_TRUTHS = {"true": True, "1": True, "": True, "false": False, "0": False}
_SECONDS = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_LENGTH_MAX = 1_000


class QueryParameters:
    """The parameters of one request; those that its path does not know are refused by name."""

    def __init__(self, connection: HTTPConnection, *known: str) -> None:
        """Take a request and the names that it may have."""
        self._values: dict[str, str] = {}
        for name, value in connection.query_params.multi_items():
            place = f"query parameter {brief(name)}"
            if name not in known:
                hint = f"; known here: {listed(known)}" if known else "; there is none here"
                raise InvalidInput(f"unknown{hint}", place=place)
            if name in self._values:
                raise InvalidInput("it comes twice", place=place)
            if len(value) > _LENGTH_MAX:
                raise InvalidInput(f"longer than {_LENGTH_MAX:,} characters", place=place)
            self._values[name] = value

    def text(self, name: str) -> str | None:
        """Return a text; None where it is absent."""
        value = self._values.get(name)
        if value == "":
            raise InvalidInput("it is empty", place=_place(name))
        return value

    def count(self, name: str, default: int, most: int) -> int:
        """Return a number of things, at least 1; more than `most` are as good as `most`."""
        text = self._values.get(name)
        if text is None:
            return min(default, most)
        if not (text.isascii() and text.isdecimal()) or int(text) == 0:
            raise InvalidInput(f"{brief(text)} is not a number from 1 on", place=_place(name))
        return min(int(text), most)

    def seconds(self, name: str, most: float) -> float:
        """Return a duration; absent is 0, and more than `most` is as good as `most`."""
        text = self._values.get(name, "0")
        if not _SECONDS.fullmatch(text):
            raise InvalidInput(f"{brief(text)} is not a number of seconds", place=_place(name))
        return min(float(text), most)

    def truth(self, name: str) -> bool:
        """Return whether something is so; absent is false."""
        text = self._values.get(name, "false")
        if text.lower() not in _TRUTHS:
            raise InvalidInput(f"{brief(text)} is not true or false", place=_place(name))
        return _TRUTHS[text.lower()]


def _place(name: str) -> str:
    return f"query parameter {name!r}"
