"""A folder of files, written by many tasks and visible whole or not at all.

Tasks write into a draft beside the folder, each attempt under a name of its own. When all have
succeeded, the driver takes those files that they name, and no others: what failed and doubled
attempts have left goes with the draft.
"""

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import pyarrow as pa
import pyarrow.fs

from contrada.errors import InvalidInput, blame
from contrada.spark.uris import is_remote, open_uri

SUCCESS = "_SUCCESS"  # the last file of a folder that is complete
WHOLE_DRAFT = "whole"  # the folder of a draft that is renamed to the target
_RENAMES_FOLDERS = ("local", "hdfs")


@dataclass(frozen=True, slots=True)
class DraftFolder:
    """A draft of the folder at a URI; `token` makes it this draft."""

    uri: str
    token: str
    replace: bool

    @classmethod
    def begin(cls, uri: str, *, replace: bool) -> "DraftFolder":
        """Make a draft; refuse a folder that exists, unless it is to be replaced."""
        draft = cls(uri, secrets.token_hex(8), replace)
        filesystem, target = open_uri(uri)
        with refusing(uri):
            draft._check_target(filesystem, target)
            filesystem.create_dir(draft_path(target, draft.token), recursive=True)
        return draft

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file of the draft for writing; what a failure leaves of it is removed."""
        filesystem, target = open_uri(self.uri)
        with new_file(filesystem, f"{draft_path(target, self.token)}/{name}") as file:
            yield file

    def finish(self, names: Sequence[str]) -> None:
        """Put files of the draft in place, as all that the folder has.

        Where folders can be renamed this is one step. Elsewhere the files come one by one, and
        `_SUCCESS` last, as from Spark itself.
        """
        filesystem, target = open_uri(self.uri)
        with refusing(self.uri):
            self._check_target(filesystem, target)
            if renames_folders(filesystem):
                whole = f"{draft_path(target, self.token)}/{WHOLE_DRAFT}"
                self._move(filesystem, names, target, whole)
                self._rename(filesystem, whole, target)
            else:
                filesystem.delete_dir_contents(target, missing_dir_ok=True)
                self._move(filesystem, names, target, target)
        self.discard()

    def discard(self) -> None:
        """Remove the draft; what cannot be removed has a hidden name."""
        filesystem, target = open_uri(self.uri)
        with contextlib.suppress(OSError):
            filesystem.delete_dir(draft_path(target, self.token))

    def _check_target(self, filesystem: pa.fs.FileSystem, target: str) -> None:
        kind = filesystem.get_file_info(target).type
        if kind == pa.fs.FileType.File:
            raise InvalidInput(f"{self.uri}: is a file, not a folder")
        if kind != pa.fs.FileType.NotFound and not self.replace:
            raise InvalidInput(f'{self.uri}: already exists; mode="overwrite" replaces it')

    def _move(
        self, filesystem: pa.fs.FileSystem, names: Sequence[str], target: str, place: str
    ) -> None:
        filesystem.create_dir(place, recursive=True)
        for name in names:
            filesystem.move(f"{draft_path(target, self.token)}/{name}", f"{place}/{name}")
        with filesystem.open_output_stream(f"{place}/{SUCCESS}"):
            pass

    def _rename(self, filesystem: pa.fs.FileSystem, whole: str, target: str) -> None:
        """Let the whole folder take its name; the one that had it comes back on failure."""
        if filesystem.get_file_info(target).type == pa.fs.FileType.NotFound:
            filesystem.move(whole, target)
            return
        old = f"{draft_path(target, self.token)}.old"
        filesystem.move(target, old)
        try:
            filesystem.move(whole, target)
        except BaseException:
            filesystem.move(old, target)
            raise
        with contextlib.suppress(OSError):
            filesystem.delete_dir(old)


def draft_path(target: str, token: str) -> str:
    """Return the path of a draft: beside its target, under a name that readers skip."""
    parent, slash, name = target.rpartition("/")
    return f"{parent}{slash}.{name}-{token}.tmp"


@contextlib.contextmanager
def new_file(filesystem: pa.fs.FileSystem, path: str) -> Iterator[IO[bytes]]:
    """Open a new file; what a failure leaves of it is removed."""
    try:
        with filesystem.open_output_stream(path) as file:
            yield file
    except BaseException:
        with contextlib.suppress(OSError):
            filesystem.delete_file(path)
        raise


def renames_folders(filesystem: pa.fs.FileSystem) -> bool:
    """Whether a folder can take another name in one step, with all that it holds."""
    return filesystem.type_name in _RENAMES_FOLDERS


@contextlib.contextmanager
def refusing(uri: str) -> Iterator[None]:
    """Name the place at which files cannot be written."""
    try:
        yield
    except (OSError, pa.ArrowException) as fault:
        message = f"{uri}: cannot be written; it must be a folder that all machines reach: {fault}"
        raise blame(fault, message, is_remote=is_remote(uri)) from fault
