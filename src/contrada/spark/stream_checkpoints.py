"""What a stream that is written keeps in its checkpoint, beside what Spark keeps there.

    CHECKPOINT/contrada/query.json    the token of the query, which its folders have too
    CHECKPOINT/contrada/7.json        which files are batch 7: from then on it is decided
    CHECKPOINT/contrada/7.placed      the same file, when they are all where readers look
    CHECKPOINT/contrada/lock          held while the query runs, on a local file system

A batch is decided by one file. What was decided is only ever carried through, and never written
again, whatever the query has become meanwhile.
"""

import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING

from contrada.errors import InvalidInput
from contrada.machine import try_lock
from contrada.spark.small_files import delete, list_names, read_json, rename, write_json
from contrada.spark.uris import name_place, open_uri

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

STREAM_FORMAT = 1
_FOLDER = "contrada"
_QUERY = f"{_FOLDER}/query.json"
_DECIDED, _PLACED = ".json", ".placed"


@dataclass(frozen=True, slots=True)
class DecidedBatch:
    """The files that a batch consists of: those with matches, and those with bad rows."""

    batch: int
    matches: tuple[str, ...]
    bad: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamCheckpoint:
    """The checkpoint of a query; `planned` is the last batch that Spark has planned in it."""

    uri: str
    token: str
    planned: int | None

    @classmethod
    def open(cls, uri: str) -> "StreamCheckpoint":
        """Open the checkpoint of a query, or make a new one; that of another query is refused."""
        numbers = (int(name) for name in list_names(uri, "offsets") if name.isdecimal())
        planned = max(numbers, default=None)
        stated = read_json(uri, _QUERY)
        if stated is None and planned is not None:
            raise InvalidInput(
                f"{uri}: is the checkpoint of a query that write_stream has not started; "
                "give a new checkpoint"
            )
        if stated is None:
            stated = {"format": STREAM_FORMAT, "token": secrets.token_hex(8)}
            write_json(uri, _QUERY, stated)
        check_format(stated, f"{uri}/{_QUERY}")
        return cls(uri, str(stated["token"]), planned)

    @property
    def has_begun(self) -> bool:
        """Whether Spark has planned a batch."""
        return self.planned is not None

    def find_decided(self) -> "tuple[DecidedBatch, bool] | None":
        """Find the last batch that was decided, and whether it is in place; None without one."""
        names = list_names(self.uri, _FOLDER)
        stems = [name.partition(".")[0] for name in names if name.endswith((_DECIDED, _PLACED))]
        last = max((int(stem) for stem in stems if stem.isdecimal()), default=None)
        if last is None:
            return None
        is_placed = f"{last}{_PLACED}" in names
        stated = read_json(self.uri, f"{_FOLDER}/{last}{_PLACED if is_placed else _DECIDED}")
        if stated is None:  # deleted since it was listed
            return None
        for name in names:  # of batches before, where the query ended just then
            if name.endswith(_PLACED) and name != f"{last}{_PLACED}":
                delete(self.uri, f"{_FOLDER}/{name}")
        found = DecidedBatch(stated["batch"], tuple(stated["matches"]), tuple(stated["bad"]))
        return found, is_placed

    def decide(self, decided: DecidedBatch) -> None:
        """Decide a batch."""
        write_json(self.uri, f"{_FOLDER}/{decided.batch}{_DECIDED}", asdict(decided))

    def settle(self, decided: DecidedBatch, before: DecidedBatch | None) -> None:
        """Note that a batch is in place; forget that before it, which Spark has committed."""
        stem = f"{_FOLDER}/{decided.batch}"
        rename(self.uri, stem + _DECIDED, stem + _PLACED)
        if before is not None:
            delete(self.uri, f"{_FOLDER}/{before.batch}{_PLACED}")


def check_format(stated: dict[str, object], place: str) -> None:
    """Refuse what another version of Contrada has written, or nobody."""
    if stated.get("format") != STREAM_FORMAT or "token" not in stated:
        raise InvalidInput(
            f"{place}: is in format {stated.get('format')!r}; this version of Contrada reads "
            f"{STREAM_FORMAT}"
        )


@dataclass(eq=False, slots=True)
class CheckpointHold:
    """The right to run the query of a checkpoint: one at a time, here and on this machine."""

    place: str
    query: "StreamingQuery | None" = None
    file: IO[str] | None = field(default=None, repr=False)

    @classmethod
    def take(cls, uri: str) -> "CheckpointHold":
        """Take the checkpoint; refuse it while another query runs on it."""
        place = name_place(uri)
        with _guard:
            if (other := _holds.get(place)) is not None:
                if other.is_running():
                    raise _refuse_second(uri)
                other.close()
            hold = _holds[place] = cls(place, file=_lock(uri))
        return hold

    def is_running(self) -> bool:
        """Whether the query runs, or is about to."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        try:
            return self.query is None or self.query.isActive
        except (Py4JError, OSError, AttributeError):  # Spark has ended, and the query with it
            return False

    def release(self) -> None:
        """Let others have the checkpoint."""
        with _guard:
            self.close()
            if _holds.get(self.place) is self:
                del _holds[self.place]

    def close(self) -> None:
        """Open the lock of the machine."""
        if self.file is not None:
            self.file.close()


_guard = Lock()
_holds: dict[str, CheckpointHold] = {}  # those of this process, by place


def _lock(uri: str) -> IO[str] | None:
    """Lock a checkpoint on a local file system; elsewhere Spark alone sees to it."""
    filesystem, folder = open_uri(uri)
    if filesystem.type_name != "local":
        return None
    try:
        filesystem.create_dir(f"{folder}/{_FOLDER}", recursive=True)
        return try_lock(Path(folder) / _FOLDER / "lock")
    except BlockingIOError:
        raise _refuse_second(uri) from None
    except OSError:  # what cannot be written is refused later
        return None


def _refuse_second(uri: str) -> InvalidInput:
    return InvalidInput(
        f"{uri}: a query is running on this checkpoint; stop it first, or give another checkpoint "
        "and another folder"
    )
