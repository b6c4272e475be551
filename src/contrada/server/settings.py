"""The settings of a server: flags over the environment over a TOML file over defaults.

A setting has one name: `allow_host` in the file, `CONTRADA_ALLOW_HOST` in the environment (several
values with commas in between), `--allow-host` as a flag; limits, which are many, have the flag
`--set NAME=VALUE` in common. This module opens no socket.
"""

import json
import math
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from contrada.broker.broker_options import BrokerOptions
from contrada.errors import InvalidInput, blame
from contrada.server.guard_limits import GuardLimits
from contrada.server.server_limits import ServerLimits
from contrada.showing import brief, brief_text, listed

_ENVIRONMENT = "CONTRADA_"
_LIMITS = (BrokerOptions, ServerLimits, GuardLimits)
_BYTES_MAX = 1_000_000  # of a file of settings
LOGGED = ("changes", "all")
_Limits = TypeVar("_Limits")


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """What a server is told; `sources` has for each setting where its value comes from."""

    data: Path
    host: str
    port: int
    tls_certificate: Path | None
    tls_key: Path | None
    allow_host: tuple[str, ...]
    allow_origin: tuple[str, ...]
    allow_webhook: tuple[str, ...]
    log: str
    broker: BrokerOptions
    server: ServerLimits
    guard: GuardLimits
    sources: Mapping[str, str]

    def describe(self) -> list[str]:
        """List all settings with their values and sources, as a TOML file that could be used."""
        values = {name: getattr(self, name) for name in _MAIN}
        for limits in (self.broker, self.server, self.guard):
            values |= {name: getattr(limits, name) for name in _names_of(type(limits))}
        return [f"{_write(name, value)}  # {self.sources[name]}" for name, value in values.items()]


def read_settings(
    flags: Mapping[str, Any],
    config: str | None = None,
    more: Iterable[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> ServeSettings:
    """Read all settings; `flags` are those that were given, `more` the texts NAME=VALUE."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, place, value in _walk(flags, config, more, environment):
        if name not in sources:
            values[name], sources[name] = _READERS[name](value, place), place
    sources |= {name: "default" for name in _READERS if name not in sources}
    main = {name: values.get(name, default) for name, (_, default) in _MAIN.items()}
    if (main["tls_certificate"] is None) != (main["tls_key"] is None):
        raise InvalidInput("--tls-certificate and --tls-key need each other: give both or none")
    return ServeSettings(
        **main,
        broker=_pick(BrokerOptions, values),
        server=_pick(ServerLimits, values),
        guard=_pick(GuardLimits, values),
        sources=sources,
    )


def flag_of(name: str) -> str:
    """Return the flag of a main setting."""
    return f"--{name.replace('_', '-')}"


def _walk(
    flags: Mapping[str, Any],
    config: str | None,
    more: Iterable[str],
    environment: Mapping[str, str],
) -> Iterable[tuple[str, str, Any]]:
    """List what is set, with the place where: what comes first counts."""
    yield from ((name, flag_of(name), value) for name, value in flags.items() if value is not None)
    for text in more:
        name, sign, value = text.partition("=")
        if not sign or name not in _READERS:
            raise _unknown(name) if sign else InvalidInput(f"--set {brief(text)}: no = in it")
        yield name, f"--set {name}", value
    for name in _READERS:
        variable = f"{_ENVIRONMENT}{name.upper()}"
        if environment.get(variable):
            yield name, variable, environment[variable]
    if config is not None:
        for name, value in _read_file(config).items():
            if name not in _READERS:
                raise _unknown(name).within(config)
            yield name, config, value


def _read_file(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
        if len(content) > _BYTES_MAX:
            raise InvalidInput(f"larger than {_BYTES_MAX:,} bytes", place=path)
        return tomllib.loads(content.decode())
    except OSError as fault:
        raise blame(fault, f"{path}: cannot be read: {fault.strerror}") from fault
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise InvalidInput(f"this is not TOML: {fault}", place=path) from fault


def _unknown(name: str) -> InvalidInput:
    return InvalidInput(f"there is no setting {brief(name)}; there are {listed(_READERS)}")


def _pick(kind: type[_Limits], values: Mapping[str, Any]) -> _Limits:
    return kind(**{name: values[name] for name in _names_of(kind) if name in values})


def _names_of(kind: type[Any]) -> list[str]:
    """List the settings that a class of limits has; what is only for tests is none."""
    return [field.name for field in fields(kind) if not field.name.startswith("is_")]


def _write(name: str, value: Any) -> str:
    if value is None:
        return f"# {name}: none"  # TOML has no word for it
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{name} = {json.dumps(value, default=str, ensure_ascii=False)}"


def _read_text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{brief(value)} is not a text", place=place)
    return value


def _read_path(value: Any, place: str) -> Path:
    return value if isinstance(value, Path) else Path(_read_text(value, place))


def _read_texts(value: Any, place: str) -> tuple[str, ...]:
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, Sequence):
        raise InvalidInput(f"{brief(value)} is not a list of texts", place=place)
    words = [word.strip() for part in parts for word in _read_text(part, place).split(",")]
    return tuple(word for word in words if word)


def _read_port(value: Any, place: str) -> int:
    port = _read_number(value)
    if port is None or port != int(port) or not 0 <= port < 2**16:
        raise InvalidInput(f"{brief_text(value)} is not a port, a number up to 65535", place=place)
    return int(port)


def _read_logged(value: Any, place: str) -> str:
    if value not in LOGGED:
        raise InvalidInput(f"{brief(value)} is not one of {listed(LOGGED)}", place=place)
    return str(value)


def _read_count(value: Any, place: str) -> int:
    number = _read_number(value)
    if number is None or number != int(number) or number < 1:
        raise InvalidInput(f"{brief_text(value)} is not a number from 1 on", place=place)
    return int(number)


def _read_seconds(value: Any, place: str) -> float:
    number = _read_number(value)
    if number is None or number <= 0:
        raise InvalidInput(f"{brief_text(value)} is not a number above 0", place=place)
    return float(number)


def _read_number(value: Any) -> float | int | None:
    """Return a finite number, of a text or as it is; None if it is anything else."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) else None


_Read = Callable[[Any, str], Any]

_MAIN: dict[str, tuple[_Read, Any]] = {
    "data": (_read_path, Path("contrada-data")),
    "host": (_read_text, "127.0.0.1"),
    "port": (_read_port, 8080),
    "tls_certificate": (_read_path, None),
    "tls_key": (_read_path, None),
    "allow_host": (_read_texts, ()),
    "allow_origin": (_read_texts, ()),
    "allow_webhook": (_read_texts, ()),
    "log": (_read_logged, "changes"),
}
_READERS: dict[str, _Read] = {name: read for name, (read, _) in _MAIN.items()} | {
    field.name: _read_seconds if field.type is float or field.type == "float" else _read_count
    for kind in _LIMITS
    for field in fields(kind)
    if not field.name.startswith("is_")
}
