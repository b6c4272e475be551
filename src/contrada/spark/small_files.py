"""Small files of JSON at a URI, which appear whole."""

import contextlib
import json
import secrets
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.fs

from contrada.errors import InvalidInput
from contrada.spark.drafts import new_file, refusing
from contrada.spark.uris import open_uri
from contrada.spark.worker_cache import DRAFT_SUFFIX


def read_json(uri: str, name: str) -> dict[str, Any] | None:
    """Read a file below a URI; None where there is none."""
    filesystem, folder = open_uri(uri)
    with refusing(uri):
        if filesystem.get_file_info(f"{folder}/{name}").type != pa.fs.FileType.File:
            return None
        with filesystem.open_input_stream(f"{folder}/{name}") as file:
            content = file.read()
    try:
        stated = json.loads(content)
    except ValueError as fault:
        raise InvalidInput(f"{uri}/{name}: is damaged: {fault}") from fault
    if not isinstance(stated, dict):
        raise InvalidInput(f"{uri}/{name}: is damaged: {content[:60]!r}")
    return stated


def write_json(uri: str, name: str, stated: dict[str, Any]) -> None:
    """Write a file below a URI that is not there yet; its folder is made if need be."""
    write_small(uri, name, json.dumps(stated).encode())


def write_small(uri: str, name: str, content: bytes) -> None:
    """Write bytes as `write_json` does a value."""
    filesystem, folder = open_uri(uri)
    target = f"{folder}/{name}"
    with refusing(uri):
        filesystem.create_dir(target.rpartition("/")[0], recursive=True)
        draft = f"{target.rpartition('/')[0]}/.{secrets.token_hex(8)}{DRAFT_SUFFIX}"
        with new_file(filesystem, draft) as file:
            file.write(content)
        filesystem.move(draft, target)


def list_names(uri: str, name: str = "") -> list[str]:
    """List what a folder at or below a URI has; nothing where there is no folder."""
    filesystem, folder = open_uri(uri)
    path = f"{folder}/{name}" if name else folder
    with refusing(uri):
        if filesystem.get_file_info(path or "/").type == pa.fs.FileType.File:
            raise InvalidInput(f"{uri}: is a file, not a folder")
        found = filesystem.get_file_info(pa.fs.FileSelector(path, allow_not_found=True))
    return [info.base_name for info in found]


def delete(uri: str, name: str) -> None:
    """Delete a file below a URI; one that cannot be deleted, or is gone, does no harm."""
    filesystem, folder = open_uri(uri)
    with contextlib.suppress(OSError, pa.ArrowException):
        filesystem.delete_file(f"{folder}/{name}")


def rename(uri: str, name: str, new_name: str) -> None:
    """Let a file below a URI take another name, which no file has."""
    filesystem, folder = open_uri(uri)
    with refusing(uri):
        filesystem.move(f"{folder}/{name}", f"{folder}/{new_name}")


def modified_us(info: pa.fs.FileInfo) -> int:
    """Return when a file was written, in microseconds since 1970; if it does not say, just now."""
    modified = info.mtime or datetime.now(UTC)
    return int(modified.timestamp() * 1e6)
