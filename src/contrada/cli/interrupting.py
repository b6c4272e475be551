"""Ctrl-C, SIGTERM and SIGHUP: a command told to stop says so and nothing else, whatever breaks.

Libraries answer an interrupt in ways of their own: Spark's handler cancels the jobs, whose failure
may come first, and Arrow raises an error of its own. So what counts is that the signal came, which
a pipe remembers, not which exception did.
"""

import signal
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_LAUNCH = "launch_gateway"  # of PySpark
_RETRY_S = 0.2


class Interrupted(KeyboardInterrupt):
    """Somebody pressed Ctrl-C: unlike the one of Python's own, it can be followed."""


class Terminated(Interrupted):
    """Somebody sent SIGTERM, or a terminal went away: it ends a command as Ctrl-C does."""


def _make_interrupt(number: int) -> Interrupted:
    return Interrupted() if number == signal.SIGINT else Terminated()


_DEFAULTS: dict[int, Callable[[int, FrameType | None], Any] | signal.Handlers] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
if sys.platform != "win32":
    _DEFAULTS[signal.SIGHUP] = signal.SIG_DFL


class Interrupts:
    """Whether an interrupt has come, and which was the first."""

    def __init__(
        self, memory: socket.socket | None = None, settle: Callable[[], None] = lambda: None
    ) -> None:
        self._memory, self._settle = memory, settle
        self._first: int | None = None

    def first(self, fault: BaseException) -> int | None:
        """Return the signal that made a command fail; None where the fault is its own.

        The command has ended with that, so no interrupt is repeated any more.
        """
        self._settle()
        if self._memory is not None and self._first is None:
            with suppress(BlockingIOError):
                come = self._memory.recv(4096)
                self._first = next((number for number in come if number in _DEFAULTS), None)
        if self._first is None and isinstance(fault, KeyboardInterrupt):
            return signal.SIGINT
        return self._first


@contextmanager
def listening() -> Iterator[Interrupts]:
    """Remember interrupts while this runs; only the main thread hears them."""
    if threading.current_thread() is not threading.main_thread():
        yield Interrupts()
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        descriptor = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        postponing = _Postponing()
        taken = [n for n, default in _DEFAULTS.items() if signal.getsignal(n) is default]
        for number in taken:
            signal.signal(number, postponing)
        sys.unraisablehook = postponing.hear_lost
        try:
            yield Interrupts(ours, postponing.settle)
        finally:
            postponing.settle()
            sys.unraisablehook = postponing.tell_lost
            for number in taken:
                if signal.getsignal(number) is postponing:
                    signal.signal(number, _DEFAULTS[number])
            signal.set_wakeup_fd(descriptor)


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """Set an event when the command is told to stop, and let it end what it is doing meanwhile.

    Spark's own handler would cancel all jobs first. Whoever interrupts twice is not kept waiting.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def hear(number: int, _: FrameType | None) -> None:
        if asked.is_set():
            raise _make_interrupt(number)
        asked.set()

    before = {number: signal.signal(number, hear) for number in _DEFAULTS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Postponing:
    """A handler that interrupts at once, but not while a Java starts: nobody would stop that one.

    Java ends with this process from the moment on at which both have met. Whoever interrupts twice
    is not kept waiting. Where an interrupt is lost before it has ended the command, it comes again,
    too: a callback such as those of a compiler can raise nothing, and there are libraries that
    catch whatever is raised while they are loaded.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None
        self._is_due = False
        self._is_settled = False
        self.tell_lost = sys.unraisablehook

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, or come again later."""
        is_first = self._timer is None or self._is_due
        if not (is_first and _is_launching(frame)):
            self.cancel()
            raise self._make_followed(number)
        self._wait(number)

    def _make_followed(self, number: int) -> Interrupted:
        """Make an interrupt that comes again if it is gone before it has ended the command.

        Nobody may keep it who has raised it: it would live on with the frame.
        """
        interrupt = _make_interrupt(number)
        weakref.finalize(interrupt, self._wait, number).atexit = False
        return interrupt

    def hear_lost(self, lost: Any) -> None:
        """Be silent about an interrupt that was lost, as it comes again; report anything else."""
        if not issubclass(lost.exc_type, Interrupted):
            self.tell_lost(lost)

    def cancel(self) -> None:
        """Stop repeating it."""
        if self._timer is not None:
            self._timer.cancel()

    def settle(self) -> None:
        """Repeat no interrupt from now on."""
        self._is_settled = True
        self.cancel()

    def _wait(self, number: int) -> None:
        self.cancel()
        if self._is_settled:
            return
        self._is_due = False
        self._timer = threading.Timer(_RETRY_S, self._come_again, [number])
        self._timer.daemon = True
        self._timer.start()

    def _come_again(self, number: int) -> None:
        self._is_due = True
        main = threading.main_thread().ident
        if main is None or sys.platform == "win32":
            signal.raise_signal(number)
        else:
            signal.pthread_kill(main, number)  # in this thread it would not wake the other


def _is_launching(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == _LAUNCH:
            return True
        frame = frame.f_back
    return False
