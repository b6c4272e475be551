"""Where files are: paths and URIs as people and Spark write them, opened by pyarrow."""

import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.fs

from contrada.errors import blame

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_SPARKS_OWN = re.compile(r"s3[an]://")  # Hadoop's names for what all others call s3


def as_uri(path: str | os.PathLike[str]) -> str:
    """Return the URI of a path, which then means the same in every process; a URI stays one."""
    text = os.fspath(path)
    return text if _SCHEME.match(text) else Path(text).absolute().as_uri()


def open_uri(uri: str) -> tuple[pa.fs.FileSystem, str]:
    """Return the file system of a URI, and the path in it without a slash at the end."""
    try:
        filesystem, path = pa.fs.FileSystem.from_uri(_SPARKS_OWN.sub("s3://", uri, count=1))
    except (pa.ArrowException, OSError, ValueError) as fault:
        message = f"{uri}: cannot be opened: {fault}"
        raise blame(fault, message, is_remote=is_remote(uri)) from fault
    return filesystem, str(path).rstrip("/")


def is_remote(uri: str) -> bool:
    """Whether a URI is on another machine, as far as it says so."""
    scheme = _SCHEME.match(uri)
    return scheme is not None and scheme[0].lower() != "file:"


def name_place(uri: str) -> str:
    """Name the place of a URI, however it is spelt: the kind of file system and the path."""
    filesystem, path = open_uri(uri)
    return f"{filesystem.type_name}:{path}"
