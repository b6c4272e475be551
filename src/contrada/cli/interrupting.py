"""Ctrl-C: a command that was told to stop says so and nothing else, whatever breaks meanwhile.

Libraries answer an interrupt in ways of their own: Spark's handler cancels the jobs, whose failure
may come first, and Arrow gives an error of its own. So what counts is that the signal came, which
a pipe remembers, not which exception did.
"""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_LAUNCH = "launch_gateway"  # of PySpark
_RETRY_S = 0.2


class Interrupts:
    """Whether an interrupt has come."""

    def __init__(self, memory: socket.socket | None = None) -> None:
        self._memory = memory
        self._has_come = False

    def has_come(self) -> bool:
        """Tell whether an interrupt has come since the command began."""
        if self._memory is not None:
            with suppress(BlockingIOError):
                self._has_come |= signal.SIGINT in self._memory.recv(4096)
        return self._has_come


@contextmanager
def listening() -> Iterator[Interrupts]:
    """Remember interrupts meanwhile; only the main thread hears them."""
    if threading.current_thread() is not threading.main_thread():
        yield Interrupts()
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        descriptor = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        handler, postponing = signal.getsignal(signal.SIGINT), _Postponing()
        if handler is signal.default_int_handler:
            signal.signal(signal.SIGINT, postponing)
        try:
            yield Interrupts(ours)
        finally:
            postponing.cancel()
            if signal.getsignal(signal.SIGINT) is postponing:
                signal.signal(signal.SIGINT, handler)
            signal.set_wakeup_fd(descriptor)


class _Postponing:
    """A handler that interrupts at once, but not while a Java starts: nobody would stop that one.

    Java ends with this process from the moment on at which both have met. Whoever interrupts twice
    is not kept waiting.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None
        self._is_due = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, or come again later."""
        is_first = self._timer is None or self._is_due
        if not (is_first and _is_launching(frame)):
            self.cancel()
            signal.default_int_handler(number, frame)
        self._is_due = False
        self._timer = threading.Timer(_RETRY_S, self._come_again)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Do not come again."""
        if self._timer is not None:
            self._timer.cancel()

    def _come_again(self) -> None:
        self._is_due = True
        signal.raise_signal(signal.SIGINT)


def _is_launching(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == _LAUNCH:
            return True
        frame = frame.f_back
    return False
