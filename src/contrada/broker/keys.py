"""The keys of a data folder: who may do what, in which tenant.

A token has 256 random bits, so nobody guesses one, and the file keeps a plain SHA-256 of it: a slow
or salted hash protects what people choose, of which a dictionary can be made. The part of a token
between its underscores is public: it finds the key, whose digest is then compared in constant time.
This module knows no HTTP and no clock.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from contrada.errors import Conflict, InvalidInput, NotFound, blame
from contrada.machine import locked, write_whole
from contrada.showing import brief, listed

SCOPES = ("publish", "subscribe", "admin")
DEFAULT_TENANT = "default"
KEYS_FILE = "keys.json"

_FORMAT = 1
_PREFIX, _ID_BYTES, _SECRET_BYTES = "contrada", 6, 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")  # a folder, on any file system
_DIGEST = re.compile("[0-9a-f]{64}")
_NOBODY = "0" * 64


@dataclass(frozen=True, slots=True)
class AccessKey:
    """What one key allows; `id` is the public part of its token, `digest` that of the whole."""

    name: str
    id: str
    digest: str
    scopes: tuple[str, ...]
    tenant: str
    created: str

    def may(self, scope: str) -> bool:
        """Whether the key allows something; admin is everything."""
        return scope in self.scopes or "admin" in self.scopes


class Keyring:
    """The keys there are at one moment."""

    def __init__(self, keys: Iterable[AccessKey] = ()) -> None:
        """Take keys; their names differ."""
        self._keys = {key.id: key for key in keys}

    def __iter__(self) -> Iterator[AccessKey]:
        return iter(sorted(self._keys.values(), key=lambda key: key.name))

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: AccessKey) -> bool:
        return self._keys.get(key.id) == key

    def find(self, token: str) -> AccessKey | None:
        """Find the key whose token this is, in a time that does not depend on the secret part."""
        _, _, rest = token.partition("_")
        key = self._keys.get(rest.partition("_")[0])
        digest = _NOBODY if key is None else key.digest
        return key if hmac.compare_digest(digest, _digest(token)) else None


class KeyFile:
    """The file of a data folder's keys; processes that change it take turns.

    While it is there a key is needed, even if the last one has been revoked: to revoke is never to
    open.
    """

    def __init__(self, folder: Path) -> None:
        """Take the data folder, which need not be there yet."""
        self._folder = folder
        self.path = folder / KEYS_FILE

    @property
    def state(self) -> tuple[int, ...] | None:
        """Something that differs whenever the file does; None without one."""
        try:
            status = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as fault:
            raise blame(fault, f"{self.path}: cannot be read: {fault.strerror}") from fault
        return status.st_ino, status.st_mtime_ns, status.st_size

    def read(self) -> Keyring:
        """Read the keys; none where there is no file."""
        try:
            content = self.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return Keyring()
        except OSError as fault:
            raise blame(fault, f"{self.path}: cannot be read: {fault.strerror}") from fault
        return Keyring(_read_keys(content, self.path))

    def add(self, name: str, scopes: Iterable[str], tenant: str, now: datetime) -> str:
        """Add a key and return its token, which nothing can show again."""
        scopes = _check(name, list(scopes), tenant)
        id_ = secrets.token_hex(_ID_BYTES)
        token = f"{_PREFIX}_{id_}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        created = now.isoformat(timespec="seconds")
        key = AccessKey(name, id_, _digest(token), scopes, tenant, created)
        with self._changing() as keys:
            if any(other.name == name for other in keys):
                raise Conflict(f"there is a key {name!r} already: revoke it first")
            self._write([*keys, key])
        return token

    def revoke(self, name: str) -> None:
        """Remove a key."""
        self.require_folder()
        with self._changing() as keys:
            left = [key for key in keys if key.name != name]
            if len(left) == len(keys):
                raise NotFound(f"there is no key {brief(name)} in {self.path}")
            self._write(left)

    def require_folder(self) -> None:
        """Refuse a folder that is not there, where nothing is to be made."""
        if not self._folder.is_dir():
            raise NotFound(f"there is no folder {self._folder}")

    @contextmanager
    def _changing(self) -> Iterator[Keyring]:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as fault:
            raise blame(fault, f"{self._folder}: cannot be made: {fault.strerror}") from fault
        with locked(self._folder / f"{KEYS_FILE}.lock"):
            yield self.read()

    def _write(self, keys: Iterable[AccessKey]) -> None:
        value = {"format": _FORMAT, "keys": [asdict(key) for key in Keyring(keys)]}
        write_whole(self.path, json.dumps(value, indent=1).encode())
        if sys.platform != "win32":
            self.path.chmod(0o600)  # it has no secret, but names that are nobody's business
            if os.geteuid() == 0:  # the server, which runs as whose folder it is, must read it
                owner = self._folder.stat()
                os.chown(self.path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def check_tenant(name: str) -> None:
    """Refuse a tenant's name that could not be a folder everywhere."""
    if not _TENANT.fullmatch(name):
        words = "has lower-case letters, digits and hyphens, at most 63"
        raise InvalidInput(f"a tenant's name {words}: {brief(name)} will not do")


def _check(name: str, scopes: list[str], tenant: str) -> tuple[str, ...]:
    if not _NAME.fullmatch(name):
        words = "has letters, digits and . _ @ -, at most 100"
        raise InvalidInput(f"a key's name {words}: {brief(name)} will not do")
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        what = f"scope {brief(unknown[0])} is unknown" if unknown else "a key needs a scope"
        raise InvalidInput(f"{what}; there are {listed(SCOPES)}")
    check_tenant(tenant)
    return tuple(scope for scope in SCOPES if scope in scopes)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


def _read_keys(content: bytes, path: Path) -> list[AccessKey]:
    try:
        value = json.loads(content)
        written = value["format"]
        keys = [_read_key(member) for member in value["keys"]] if written == _FORMAT else []
    except (ValueError, TypeError, KeyError, RecursionError) as fault:
        raise InvalidInput(
            "this is not a file of keys, or it is damaged", place=f"{path}"
        ) from fault
    if written != _FORMAT:
        raise InvalidInput("a newer Contrada has written these keys", place=f"{path}")
    return keys


def _read_key(member: Mapping[str, Any]) -> AccessKey:
    key = AccessKey(**{**member, "scopes": tuple(member["scopes"])})
    check_tenant(key.tenant)
    is_text = all(isinstance(text, str) for text in (key.name, key.id, key.created))
    if not (is_text and _DIGEST.fullmatch(key.digest)):
        raise TypeError
    return key
