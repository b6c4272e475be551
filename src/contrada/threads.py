"""What threads share and a forked process inherits: values made once, and locks.

The lock of a thread that a fork left behind would never be opened in the child, so everything here
counts for one process only.
"""

import _imp
import concurrent.futures.thread  # noqa: F401  it and logging have hooks at forks, see `_Fork`
import importlib
import logging  # noqa: F401
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, overload

Cached = TypeVar("Cached")
_PATIENCE_S, _STEP_S = 20.0, 0.002


@dataclass(frozen=True, slots=True)
class _Making:
    """A value that a thread is about to make."""

    thread: int = field(default_factory=threading.get_ident)
    is_over: threading.Event = field(default_factory=threading.Event)


class once(Generic[Cached]):  # noqa: N801  used like `property`
    """A property that is made when it is first asked for, and then kept.

    Unlike `functools.cached_property`, which before Python 3.12 lets no two objects of a class make
    theirs at once, nobody waits here but for the very value that is being made. A child of a fork
    makes what a thread of its parent was making.
    """

    def __init__(self, make: Callable[[Any], Cached]) -> None:
        """Take the method that makes the value."""
        self._make = make
        self._makings: dict[tuple[int, int], _Making] = {}
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Keep values under the name of the property, where Python looks first."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Cached: ...

    def __get__(self, instance: object | None, owner: type) -> Self | Cached:
        """Make the value, or wait for the thread that is making it."""
        if instance is None:
            return self
        while self._name not in instance.__dict__:
            mine = _Making()
            key = (os.getpid(), id(instance))
            making = self._makings.setdefault(key, mine)
            if making is mine:
                self._make_alone(instance, key)
            elif making.thread == mine.thread:  # in a signal handler: waiting would be for itself
                return self._make(instance)
            else:
                making.is_over.wait()
        value: Cached = instance.__dict__[self._name]
        return value

    def _make_alone(self, instance: object, key: tuple[int, int]) -> None:
        """Make the value, unless another thread did so before this one set out to."""
        try:
            if self._name not in instance.__dict__:
                instance.__dict__[self._name] = self._make(instance)
        finally:
            self._makings.pop(key).is_over.set()


class _Fork:
    """What must be at rest when a process forks: a child would wait for it for ever.

    That is what other threads import, since packages import others when they are first used, such
    as NumPy its masked arrays, and pandas is for an Arrow table; and some locks. While one of them
    is waited for, none is held: an import may need the lock, and its holder an import.

    A hook of somebody else's that runs before ours may hold what an import needs. Those of Python
    itself run after it, since `logging` and `concurrent.futures` are loaded before it is
    registered. For any other the wait comes to an end.
    """

    def __init__(self) -> None:
        self._locks: list[_Lock] = []
        self._held: list[_Lock] = []

    def hold_also(self, lock: "_Lock") -> None:
        """Let nobody have a lock at a fork."""
        self._locks.append(lock)

    def hold(self) -> None:
        """Wait until no other thread imports or has one of the locks, and let none begin."""
        end_s = time.monotonic() + _PATIENCE_S
        while True:
            self._wait_for_imports(end_s)
            for lock in self._locks:
                lock.acquire()
                self._held.append(lock)
            _imp.acquire_lock()
            if not self._pending() or time.monotonic() >= end_s:
                return
            self.release()

    def release(self) -> None:
        """Let others import again, and have the locks."""
        _imp.release_lock()
        while self._held:
            self._held.pop().release()

    def _wait_for_imports(self, end_s: float) -> None:
        while self._pending():
            if time.monotonic() >= end_s:
                return
            time.sleep(_STEP_S)
        if "pandas" in sys.modules and "pyarrow" in sys.modules:
            sys.modules["pyarrow"].array([0.5])  # waits where a thread makes Arrow know pandas

    def _pending(self) -> list[str]:
        """Names of the modules that other threads are about to find or to load."""
        mine = threading.get_ident()
        locks = {name: lock() for name, lock in list(_module_locks.items())}
        owners = {name: getattr(lock, "owner", None) for name, lock in locks.items()}
        return [name for name, owner in owners.items() if owner not in (None, mine)]


class _Lock(Protocol):
    def acquire(self) -> object: ...

    def release(self) -> object: ...


_module_locks: dict[str, Callable[[], object]] = getattr(importlib._bootstrap, "_module_locks", {})
_fork = _Fork()
hold_at_fork = _fork.hold_also
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_fork.hold,
        after_in_parent=_fork.release,
        after_in_child=_fork.release,
    )


def make_lock_held_at_forks() -> AbstractContextManager[object]:
    """Make a lock that guards what is half done while it is closed: a fork waits until it is open.

    The thread that has closed it may close it again. Keep one for a module: it is never forgotten.
    """
    lock = threading.RLock()
    hold_at_fork(lock)
    return lock


class ProcessLock:
    """A lock between the threads of a process; in a child of a fork it is open.

    It must guard nothing that is half done while it is closed: the child goes on from there.
    """

    def __init__(self) -> None:
        """Start open."""
        self._locks: dict[int, threading.Lock] = {}

    def __enter__(self) -> None:
        self._locks.setdefault(os.getpid(), threading.Lock()).acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._locks[os.getpid()].release()
