"""How kernels are compiled with Numba, and where the machine code is kept.

Numba's cache does not notice edits in another file and would serve the old answer, so the cache
folder is named by a hash of all kernel sources, the Numba version and the processor. Where many
processes need a kernel that nobody has compiled yet, one compiles it while the others wait, and
then load it. Where no folder can be written to, each process compiles for itself; so it
does where the disk is full, or the folder cannot be read: a cache never fails, at worst it is no
help.
"""

import hashlib
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
import numba.core.config
from numba.core.compiler_lock import global_compiler_lock

from contrada.errors import Unavailable
from contrada.machine import cache_folders, locked
from contrada.threads import hold_at_fork

config: Any = numba.core.config


def compile_kernel(function: Callable[..., Any]) -> Any:
    """Make a function run without the GIL, cached, with exact floating-point arithmetic.

    Numba compiles it when it is called for the first time with arguments of some types.
    """
    before = config.CACHE_DIR
    folder = config.CACHE_DIR = before or _cache_folder()
    try:
        compiled: Any = numba.njit(nogil=True, cache=bool(folder), fastmath=False)(function)
    finally:
        config.CACHE_DIR = before
    if folder and hasattr(compiled, "_cache"):
        compiled._cache = _Forgiving(compiled._cache)
    locks = _cache_folder()
    if locks and hasattr(compiled, "compile"):  # a plain function where Numba is switched off
        lock = Path(locks) / f"{function.__module__}.{function.__qualname__}.lock"
        compiled.compile = _one_at_a_time(compiled.compile, lock)
    return compiled


def _one_at_a_time(compile_: Callable[[Any], Any], lock: Path) -> Callable[[Any], Any]:
    """Let one process compile a kernel; Numba itself loads what another has saved meanwhile.

    A kernel is compiled within those that call it, so that locks are taken in the order of calls,
    which has no cycle; one that calls itself takes its lock once.
    """
    is_locked = False

    def compile_alone(signature: Any) -> Any:
        nonlocal is_locked
        with global_compiler_lock, nullcontext() if is_locked else _locked_if_possible(lock):
            was_locked, is_locked = is_locked, True
            try:
                return compile_(signature)
            finally:
                is_locked = was_locked

    return compile_alone


@contextmanager
def _locked_if_possible(path: Path) -> Iterator[None]:
    """Let one process in at a time, or all where there is no room even for a lock."""
    with ExitStack() as stack:
        with suppress(Unavailable):
            stack.enter_context(locked(path))
        yield


class _Forgiving:
    """Numba's cache of one kernel, which is left alone from its first failure on.

    What is damaged in it fails in all the ways in which a pickle can.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the machine code for a signature; None where it must be compiled."""
        try:
            return self._cache.load_overload(signature, context)
        except Exception:
            with suppress(Exception):
                self._cache.flush()  # an index that cannot be read would stay for ever
            return None

    def save_overload(self, signature: Any, code: Any) -> None:
        """Keep machine code for other processes, if there is room."""
        try:
            self._cache.save_overload(signature, code)
        except Exception:
            self._cache.disable()

    def __getattr__(self, name: str) -> Any:
        """Return whatever else Numba asks of it."""
        return getattr(self._cache, name)


# A fork waits until no thread compiles: its child would wait for that thread for ever, and keep
# the lock of the folder from all other processes.
hold_at_fork(global_compiler_lock)


@lru_cache(maxsize=1)
def _cache_folder() -> str:
    """Find a folder for compiled kernels; empty where none can be written to."""
    content = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        content.update(source.read_bytes())
    content.update(f"{numba.__version__} {platform.machine()} {platform.processor()}".encode())
    folders = cache_folders(f"kernels-{content.hexdigest()[:16]}")
    return str(next(folders, ""))
