"""Folders that a stream writes: `batch=N` for each batch that has rows, whole or not there.

    FOLDER/_contrada.json          the token of the query that the folder belongs to
    FOLDER/batch=7/part-….parquet  the files of batch 7, and `_SUCCESS`
    .FOLDER-TOKEN.tmp/             beside it: what tasks are writing, and no reader looks for

A batch that is in place never changes. Whoever lists the folder sees it whole, where the file
system renames folders; elsewhere its files come one by one, and `_SUCCESS` last.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.fs

from contrada.errors import InvalidInput
from contrada.spark.drafts import (
    SUCCESS,
    WHOLE_DRAFT,
    draft_path,
    new_file,
    refusing,
    renames_folders,
)
from contrada.spark.small_files import list_names, read_json, write_json
from contrada.spark.stream_checkpoints import STREAM_FORMAT, StreamCheckpoint, check_format
from contrada.spark.uris import open_uri

MARKER = "_contrada.json"
_BATCH, _PARQUET = "batch=", ".parquet"


@dataclass(frozen=True, slots=True)
class StreamFolder:
    """A folder that belongs to the query with a token; tasks write to its draft."""

    uri: str
    token: str

    @classmethod
    def claim(cls, uri: str, checkpoint: StreamCheckpoint, *, can_be_new: bool) -> "StreamFolder":
        """Make a folder that of a query; one that another query or nobody has marked is refused."""
        _refuse_alone(uri)
        marker = _read_marker(uri)
        if marker is None:
            _refuse_unmarked(uri, checkpoint, can_be_new)
            stated = {
                "format": STREAM_FORMAT,
                "token": checkpoint.token,
                "checkpoint": checkpoint.uri,
            }
            write_json(uri, MARKER, stated)
        folder = cls(uri, checkpoint.token)
        folder.check()
        return folder

    def check(self) -> None:
        """Refuse to write where another query does."""
        marker = _read_marker(self.uri) or {}
        if marker.get("token") == self.token:
            return
        if not marker:
            raise InvalidInput(
                f"{self.uri}: has no {MARKER} any more: the folder was removed or emptied while "
                "its query ran; put it back if it had something that is needed, and start again"
            )
        raise InvalidInput(
            f"{self.uri}: is the folder of the query with the checkpoint "
            f"{marker.get('checkpoint')}; go on with that checkpoint, or give another folder: a "
            "new checkpoint begins with batch 0 again"
        )

    def begin(self) -> None:
        """Make the draft; what an earlier attempt has left in it is removed."""
        self.clear()
        filesystem, root = open_uri(self.uri)
        with refusing(self.uri):
            filesystem.create_dir(self._draft(root), recursive=True)

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file of the draft for writing; what a failure leaves of it is removed."""
        filesystem, root = open_uri(self.uri)
        with new_file(filesystem, f"{self._draft(root)}/{name}") as file:
            yield file

    def put(self, batch: int, names: Sequence[str]) -> None:
        """Put files of the draft in place as a batch; one that is in place stays as it is.

        Other files in place of it are refused: what the batch has now would be lost. An earlier
        attempt may have come to an end anywhere on the way. One that was in place, and
        was taken away since by whoever read it, has left its draft behind without the files.
        """
        filesystem, root = open_uri(self.uri)
        draft, target = self._draft(root), f"{root}/{_BATCH}{batch}"
        is_renaming = renames_folders(filesystem)
        place = f"{draft}/{WHOLE_DRAFT}" if is_renaming else target
        with refusing(self.uri):
            in_place = _present(filesystem, target)
            if {name for name in in_place if name.endswith(_PARQUET)} - set(names):
                raise self._refuse_newer(batch, batch)
            if SUCCESS in in_place:
                return
            drafted, placed = _present(filesystem, draft), _present(filesystem, place)
            left = drafted & set(names)
            missing = set(names) - left - placed
            if missing and not left and self._was_placed(filesystem, draft, drafted):
                return
            if missing:
                raise InvalidInput(
                    f"{self.uri}: {', '.join(sorted(missing))} of batch {batch} should be in "
                    f"{draft}; go on with the folder that the query had before"
                )
            filesystem.create_dir(place, recursive=True)
            for name in sorted(left):
                filesystem.move(f"{draft}/{name}", f"{place}/{name}")
            with filesystem.open_output_stream(f"{place}/{SUCCESS}"):
                pass
            if is_renaming:
                filesystem.move(place, target)

    def refuse_later(self, batch: int, *, is_decided: bool) -> None:
        """Refuse to write a batch in a folder that has it, or one after it.

        The checkpoint is then older than the folder. Of a batch that is decided, only those after
        it are looked for.
        """
        numbers = [name.removeprefix(_BATCH) for name in list_names(self.uri)]
        last = max((int(number) for number in numbers if number.isdecimal()), default=-1)
        if last > batch or (last == batch and not is_decided):
            raise self._refuse_newer(batch, last)

    def _refuse_newer(self, batch: int, last: int) -> InvalidInput:
        return InvalidInput(
            f"{self.uri}: has {_BATCH}{last} already, and Spark would now make batch {batch}, of "
            "other events: the checkpoint is older than the folder, as after restoring a copy of "
            f"it. Restore the checkpoint as it was last, or move {_BATCH}{batch} and all after it "
            "out of this folder and out of that of the quarantine: their events are then matched "
            "again"
        )

    @staticmethod
    def _was_placed(filesystem: pa.fs.FileSystem, draft: str, drafted: set[str]) -> bool:
        """Whether a draft without files has been put in place; one that is gone tells nothing."""
        is_there = filesystem.get_file_info(draft).type == pa.fs.FileType.Directory
        return is_there and WHOLE_DRAFT not in drafted

    def clear(self) -> None:
        """Remove the draft; what cannot be removed has a hidden name."""
        filesystem, root = open_uri(self.uri)
        with contextlib.suppress(OSError, pa.ArrowException):
            filesystem.delete_dir(self._draft(root))

    def _draft(self, root: str) -> str:
        return draft_path(root, self.token)


def _read_marker(uri: str) -> dict[str, object] | None:
    marker = read_json(uri, MARKER)
    if marker is not None:
        check_format(marker, f"{uri}/{MARKER}")
    return marker


def _refuse_alone(uri: str) -> None:
    """Refuse a folder that has no room beside it, from where a draft could be renamed."""
    filesystem, root = open_uri(uri)
    is_mount = filesystem.type_name == "local" and Path(root or "/").is_mount()
    if is_mount or "/" not in root:
        raise InvalidInput(
            f"{uri}: is the top of its file system, and drafts lie beside the folder; give a "
            "folder below"
        )


def _refuse_unmarked(uri: str, checkpoint: StreamCheckpoint, can_be_new: bool) -> None:
    if any(not name.startswith(".") for name in list_names(uri)):
        raise InvalidInput(
            f"{uri}: has files that were not written by write_stream; give a folder that is empty "
            "or does not exist yet"
        )
    if not can_be_new:
        raise InvalidInput(
            f"{uri}: is empty or does not exist, but the query of checkpoint {checkpoint.uri} has "
            "written batches to another folder; go on with that folder, or give a new checkpoint"
        )


def _present(filesystem: pa.fs.FileSystem, path: str) -> set[str]:
    found = filesystem.get_file_info(pa.fs.FileSelector(path, allow_not_found=True))
    return {info.base_name for info in found}
