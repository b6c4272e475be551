"""One tree of errors, by who must act.

Only what a caller can act on is an error here; a broken invariant of our own is an assert.
"""

import errno
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

_LENGTH_MAX, _TAIL = 4_000, 1_000  # characters of a message, and those after the gap
_GAP = " … "
_LINE = "contrada.errors: "  # begins the line of JSON that an error is
BAD_ROWS_SHOWN_MAX = 20
_WRONG_PATHS = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EINVAL,
}


class ContradaError(Exception):
    """The root of all errors that Contrada raises on purpose.

    A message that a stranger's values have made very long loses its middle, and half a surrogate
    pair, which no terminal or log could take, is escaped.

    >>> try:
    ...     contrada.Matcher.open("missing.contrada")
    ... except contrada.ContradaError as error:
    ...     print(error)
    missing.contrada: cannot be read: No such file or directory
    """

    def __init__(self, *args: Any) -> None:
        """Take the message first."""
        super().__init__(*(_tame(arg) if isinstance(arg, str) else arg for arg in args))


class Remedy(Enum):
    """An option that would help; a command and a function have their own words for it."""

    REPAIR = auto()
    QUARANTINE_EVENTS = auto()
    QUARANTINE_SUBSCRIPTIONS = auto()
    RETURN_BAD_EVENTS = auto()  # on Spark
    REPLACE = auto()
    EVENT_ID = auto()
    SUBSCRIPTION_ID = auto()
    ROW_NUMBERS = auto()
    SPARK_EVENT_ID = auto()
    SPARK_SUBSCRIPTION_ID = auto()
    LAYER = auto()
    OBJECT = auto()
    TIME = auto()
    FILTERS_MAX = auto()


IN_PYTHON: Mapping[Remedy, str] = {
    Remedy.REPAIR: "repair=True mends what can be mended",
    Remedy.QUARANTINE_EVENTS: "quarantine=True leaves bad events out",
    Remedy.QUARANTINE_SUBSCRIPTIONS: "quarantine=True leaves bad subscriptions out",
    Remedy.RETURN_BAD_EVENTS: "quarantine=True returns every bad event, with its file",
    Remedy.REPLACE: "replace=True replaces the existing one",
    Remedy.EVENT_ID: "id=… names the column of event ids",
    Remedy.SUBSCRIPTION_ID: "id=… names the column of subscription ids",
    Remedy.ROW_NUMBERS: "without id=… the rows are numbered",
    Remedy.SPARK_EVENT_ID: "event_id=… names the column of ids",
    Remedy.SPARK_SUBSCRIPTION_ID: "subscription_id=… names the column of ids",
    Remedy.LAYER: "FILE|layername=NAME names a layer",
    Remedy.OBJECT: "object=… names the column of objects",
    Remedy.TIME: "time=… names the column of times",
    Remedy.FILTERS_MAX: "filters_max=… allows more",
}


class InvalidInput(ContradaError, ValueError):
    """The input must change. The message names the place and shows the value.

    It is also a `ValueError`. `remedies` are the options that would help. As a text the error names
    them as Python code does; the command line takes `message` and has words of its own.

    >>> contrada.Matcher().add("gale", "wind >")
    Traceback (most recent call last):
    contrada.errors.InvalidInput: subscription 'gale': the predicate ends too early, at character 6
    """

    def __init__(
        self,
        *args: Any,
        remedies: Sequence[Remedy] = (),
        place: str = "",
        code: str = "",
        row: int | None = None,
    ) -> None:
        """Take what is wrong first, and where it is not in its words: the place, a code, a row."""
        super().__init__(*args)
        self.remedies = tuple(dict.fromkeys(remedies))
        self.place, self.code, self.row = place, code, row

    @property
    def what(self) -> str:
        """What is wrong, without the place and the remedies."""
        return str(self.args[0]) if self.args else ""

    @property
    def message(self) -> str:
        """The place and what is wrong there, without the remedies."""
        places = [*([] if self.row is None else [f"row {self.row}"]), self.place]
        place = ", ".join(filter(None, places))
        return _tame(f"{place}: {self.what}") if place else self.what

    def __str__(self) -> str:
        return "; ".join([self.message, *(IN_PYTHON[remedy] for remedy in self.remedies)])

    def with_remedies(self, *remedies: Remedy) -> "InvalidInput":
        """Return the same error with other remedies."""
        place, code, row = self.place, self.code, self.row
        return InvalidInput(self.what, remedies=remedies, place=place, code=code, row=row)

    def within(self, place: str) -> "InvalidInput":
        """Return the same error at a place inside of another, which says where its row is."""
        inner = f"{place}, {self.place}" if self.place else place
        return InvalidInput(self.what, remedies=self.remedies, place=inner, code=self.code)


class BadRows(InvalidInput):
    """Several rows of a table cannot be used: a summary, and the first of them, one text each."""

    def __init__(
        self, summary: str, rows: Sequence[str], count: int, remedies: Sequence[Remedy] = ()
    ) -> None:
        """Take some of `count` bad rows; the first of them are shown."""
        shown = tuple(_tame(row) for row in rows[:BAD_ROWS_SHOWN_MAX])
        super().__init__(summary, shown, count, remedies=remedies)

    @property
    def rows(self) -> tuple[str, ...]:
        """Where the first bad rows are and what is wrong with each, and how many more there are."""
        _, shown, count = self.args
        more = count - len(shown)
        return (*shown, f"and {more:,} more") if more else shown

    def __str__(self) -> str:
        lines = [f"{self.message}:", *(f"  {row}" for row in self.rows)]
        words = "; ".join(IN_PYTHON[remedy] for remedy in self.remedies)
        return "\n".join([*lines, words] if words else lines)


class UnknownSubscription(InvalidInput, KeyError):
    """An id that the matcher does not have."""

    def __str__(self) -> str:
        """Return the message itself; KeyError would quote it."""
        return str(self.args[0])


class NotBuilt(InvalidInput):
    """A value that names something which this version does not have yet."""


class Unavailable(ContradaError):
    """The environment is at fault, not the input: the same call may succeed elsewhere or later.

    A disk is full, a folder may not be written to, a package is missing, a server does not answer.
    Unlike `InvalidInput`, it asks for no change of the input.

    >>> issubclass(contrada.Unavailable, contrada.ContradaError)
    True
    >>> issubclass(contrada.Unavailable, contrada.InvalidInput)
    False
    """


class NotFound(InvalidInput):
    """A name, or a path, that the broker does not have."""


class Conflict(InvalidInput):
    """What is asked for goes against what the broker has."""


class Gone(InvalidInput):
    """A position that is no longer kept, or one of a history that a backup has replaced."""


class Overloaded(ContradaError):
    """The broker has as much to do as it may take on: try again after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        """Take what is full, and when to try again."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class BrokerStarting(Overloaded):
    """The broker is being opened, as after a restart: it takes requests in a moment."""


class OutOfSpace(Unavailable):
    """The disk is nearly full: nothing is stored any more but cursors and deletions."""


class MissingPackage(Unavailable, ImportError):
    """An optional package must be installed; the message says how."""


class RowsLost(ContradaError):
    """A job did not account for every row that came in: its answer must not be used."""


class PeerError(ContradaError):
    """What a peer has sent, or would have to send, is not a message: drop it, or the link."""


def write_line(error: ContradaError) -> str:
    """Write an error as a line of JSON: where only text comes through, `read_line` finds it."""
    fields: dict[str, Any] = {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, InvalidInput):
        fields["message"] = error.what
        fields |= {"place": error.place, "code": error.code, "row": error.row}
        fields["remedies"] = [remedy.name for remedy in error.remedies]
    if isinstance(error, BadRows):
        fields |= {"rows": error.args[1], "count": error.args[2]}
    return f"{_LINE}{json.dumps(fields)}"


def read_line(text: str) -> ContradaError | None:
    """Read back the last error that a text has a line of, among whatever else; None without one."""
    lines = [line for line in text.splitlines() if line.startswith(_LINE)]
    if not lines:
        return None
    fields = json.loads(lines[-1].removeprefix(_LINE))
    kind, message = fields.pop("kind"), fields.pop("message")
    for other in (Unavailable, MissingPackage, RowsLost, PeerError):
        if kind == other.__name__:
            return other(message)
    remedies = [Remedy[name] for name in fields.pop("remedies")]
    if kind == BadRows.__name__:
        return BadRows(message, fields["rows"], fields["count"], remedies)
    return InvalidInput(message, remedies=remedies, **fields)


def blame(
    fault: BaseException, message: str, *, is_remote: bool = False
) -> InvalidInput | Unavailable:
    """Make an error of what the system or a library says, by who must act on it."""
    return Unavailable(message) if is_of_machine(fault, is_remote) else InvalidInput(message)


def is_of_machine(fault: BaseException, is_remote: bool = False) -> bool:
    """Whether the machine is to blame, not a path that is wrong or content that is damaged.

    Libraries report damaged content as an OSError without a number, and what is `remote` and out
    of reach, too.
    """
    if isinstance(fault, OSError):
        return is_remote if fault.errno is None else fault.errno not in _WRONG_PATHS
    return isinstance(fault, MemoryError)


@contextmanager
def blaming_memory() -> Iterator[None]:
    """Let a lack of memory be an error of ours, as whatever else the machine lacks."""
    try:
        yield
    except MemoryError as fault:
        raise Unavailable(f"there is not enough memory: {fault}".rstrip(": ")) from fault


def _tame(message: str) -> str:
    message = message.encode("utf-8", "backslashreplace").decode()
    if len(message) <= _LENGTH_MAX:
        return message
    head = _LENGTH_MAX - _TAIL - len(_GAP)
    return f"{message[:head]}{_GAP}{message[-_TAIL:]}"
