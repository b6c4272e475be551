"""What a person reads: the one place through which words of the commands reach a terminal.

A file may hold anything, and so may its name. Control characters in it would move the cursor,
change colours or the order of letters; they are shown as escapes, here and nowhere else.
"""

import io
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, TextIO, cast

from contrada.errors import Unavailable

STDOUT = "-"  # as the name of a file

# Controls but for tab and newline, marks that turn the direction of text, ends of lines that are
# no newline, and halves of characters, which no terminal takes.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: object) -> str:
    """Return a text with its control characters as escapes; lines stay lines."""
    return _CONTROL.sub(lambda found: _escape(found[0]), str(text))


def one_line(text: object) -> str:
    """Return a text as one line without control characters."""
    return visible(" ".join(str(text).split("\n")))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _spell(text: str, file: TextIO) -> str:
    """Return a text with escapes for what the encoding of a stream has no character for."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def require_stdout() -> None:
    """Refuse to work for an answer that nobody can get, as stdout is closed."""
    if sys.__stdout__ is None:
        raise Unavailable("stdout: cannot be written: it is closed")


def say(text: object) -> None:
    """Print on stderr what is being done."""
    print(_spell(visible(text), sys.stderr), file=sys.stderr, flush=True)


def complain(text: object, *more: object) -> None:
    """Print on stderr what went wrong, in one line; anything more gets a line each."""
    say(f"contrada: {one_line(text)}")
    for line in more:
        say(one_line(line))


def show(text: object, *, on_stderr: bool = False) -> None:
    """Print a result: on stdout, unless that is taken by something else.

    Where nobody reads it any more, the command goes on: it may have files to write.
    """
    if on_stderr:
        say(text)
        return
    with suppress(NobodyReads), writing_stdout() as file:
        print(_spell(visible(text), file), file=file, flush=True)


class NobodyReads(Exception):
    """Whoever read stdout has gone away."""


@contextmanager
def writing_stdout() -> Iterator[TextIO]:
    """Blame stdout for what cannot be written to it; raise NobodyReads if its reader has gone."""
    try:
        yield sys.stdout
    except OSError as fault:
        _lead_nowhere(sys.stdout)
        if isinstance(fault, BrokenPipeError):
            raise NobodyReads from fault
        raise Unavailable(f"stdout: cannot be written: {fault.strerror or fault}") from fault


class UnbrokenStream:
    """A text stream that takes everything, also when its reader has gone or its disk is full.

    Else a word about the work would end the work, or leave a lock of tqdm's held for ever.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, or lose it."""
        with self._losing():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is held."""
        with self._losing():
            self._stream.flush()

    @contextmanager
    def _losing(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            _lead_nowhere(self._stream)
        except OSError:
            pass


@contextmanager
def unbroken_stderr() -> Iterator[None]:
    """Let nothing that is said on stderr meanwhile fail."""
    before = sys.stderr
    sys.stderr = cast("TextIO", UnbrokenStream(before))
    try:
        yield
    finally:
        sys.stderr = before


class VisibleBytes(io.RawIOBase):
    """Takes bytes of UTF-8 and shows them on a terminal without control characters."""

    def __init__(self, terminal: IO[bytes]) -> None:
        self._terminal = terminal

    def writable(self) -> bool:
        """Whether this can be written to: always."""
        return True

    def write(self, text: Any) -> int:
        """Write whole characters."""
        shown = visible(bytes(text).decode("utf-8", "backslashreplace"))
        self._terminal.write(shown.encode())
        self._terminal.flush()
        return len(text)


def replace_closed_streams() -> None:
    """Discard output where whoever started the command has closed stdout or stderr.

    Python has no stream then, and the next file to be opened would take its number.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115


def stdout_bytes() -> IO[bytes]:
    """Return stdout for rows: exact in a file or pipe, without control characters on a terminal."""
    require_stdout()
    exact = sys.stdout.buffer
    return cast("IO[bytes]", VisibleBytes(exact)) if sys.stdout.isatty() else exact


def _lead_nowhere(stream: TextIO) -> None:
    """Discard what a stream holds and will be given, so that nobody tries again at the end."""
    with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), stream.fileno())


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as notes of one line each, without the place in our code."""
    before = warnings.formatwarning

    def describe(message: Warning | str, *_: object) -> str:
        return f"note: {one_line(message)}\n"

    warnings.formatwarning = describe  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.formatwarning = before


class VisibleFormatter(logging.Formatter):
    """Lines of a log, without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return visible(super().format(record))
