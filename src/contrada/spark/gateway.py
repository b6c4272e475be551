"""The Java process of a session: it starts quietly, in time, or leaves one line and no process.

PySpark hands our stderr to Java, where Spark writes tracebacks, and keeps the process when a start
has failed. Here what Java says is held back until Spark has started.
"""

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any
from weakref import WeakKeyDictionary

from contrada.errors import ContradaError, InvalidInput, Unavailable
from contrada.showing import brief_text

START_SECONDS = "spark.contrada.start.seconds"
_HELD_BYTES_MAX = 2**20
_CHUNK_BYTES = 2**16
_LAST_WORDS_S = 1.0
_CAUSE_LENGTH_MAX = 500
_STDERR = 2
# As a Java that ends, an error of Py4J's and spark-submit write them.
_CAUSE = re.compile(r'^(?:Exception in thread "[^"]*" |Caused by: |: |Error: )(.*\S)', re.MULTILINE)
_AFTERWORDS = re.compile(
    r"^Error: (Could not create the Java|A fatal exception).*\n?", re.MULTILINE
)
_BAD_SETTING = re.compile(r"Invalid |(Spark)?(IllegalArgument|NumberFormat)Exception\b")
_PACKAGE = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z])")

_log = logging.getLogger(__name__)


@contextmanager
def starting(master: str, config: Mapping[str, str], wait_s: float | None) -> Iterator[None]:
    """Start Java; the body, which starts Spark, may take so long as `wait_s` (None: for ever).

    Whatever goes wrong becomes one line, and ends the Java process.
    """
    words = _hold_words()
    is_late = Event()
    try:
        _launch(config, words)
        with _silencing_py4j(), _ending_java(wait_s, is_late):
            yield
        if is_late.is_set():  # Spark has started in the very moment in which Java was ended
            raise TimeoutError
    except BaseException as error:
        message = _read_message(error)
        _end_java()
        if isinstance(error, ContradaError) or not isinstance(error, Exception):
            raise
        said = words.end()
        if is_late.is_set():
            raise Unavailable(
                f"{master} did not accept the application within {wait_s:g} s: it is slow or not "
                f"a Spark master; {START_SECONDS} sets how long to wait"
            ) from None
        cause = find_cause(said, message)
        kind = InvalidInput if _BAD_SETTING.match(cause) else Unavailable
        raise kind(f"Spark cannot start on {master}: {cause}") from None
    words.pass_on()


def _read_message(error: BaseException) -> str:
    """Read the message of an error, for which Py4J asks Java, if that is still there."""
    with suppress(Exception):
        return str(error)
    return ""


class HeldWords:
    """What a process says on `stderr`, a pipe: it is held back, or passed on to our own."""

    def __init__(self) -> None:
        """Listen until the process has ended."""
        self._pipe, self.stderr = os.pipe()
        self._held, self._is_passing = b"", False
        self._listener = Thread(target=self._listen, name="contrada-java-stderr", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        while chunk := os.read(self._pipe, _CHUNK_BYTES):
            if self._is_passing:
                _write_to_stderr(chunk)
            else:
                self._held = (self._held + chunk)[-_HELD_BYTES_MAX:]
        os.close(self._pipe)

    def hold_back(self) -> None:
        """Hold back from now on what is said."""
        self._is_passing = False

    def leave_to_process(self) -> None:
        """Close our end for writing: the process that was started has its own."""
        if self.stderr >= 0:
            os.close(self.stderr)
            self.stderr = -1

    def pass_on(self) -> None:
        """Hold nothing back from now on; what was held back goes to the log."""
        self._is_passing = True
        if self._held:
            _log.debug("Java said while Spark started: %s", self._held.decode(errors="replace"))
        self._held = b""

    def end(self) -> str:
        """Return what a process that has ended wrote."""
        self.leave_to_process()
        self._listener.join(_LAST_WORDS_S)
        return self._held.decode(errors="replace")


def _write_to_stderr(chunk: bytes) -> None:
    with suppress(OSError):  # nobody may be reading
        while chunk:
            chunk = chunk[os.write(_STDERR, chunk) :]


def find_cause(said: str, message: str) -> str:
    """Find the last cause in the message of an error, or in what Java has said; on one line."""
    said = _AFTERWORDS.sub("", said)
    for text in (message, said):
        causes = _CAUSE.findall(text)
        if causes:
            return brief_text(_PACKAGE.sub("", causes[-1]), _CAUSE_LENGTH_MAX)
    lines = [line for text in (message, said) for line in text.splitlines() if line.strip()]
    return brief_text(lines[-1] if lines else "no reason was given", _CAUSE_LENGTH_MAX)


_words: "WeakKeyDictionary[Any, HeldWords]" = WeakKeyDictionary()  # of gateways that we launched


def _hold_words() -> HeldWords:
    """Hold back what is said by the Java process that there is, or will be."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    words = None if gateway is None else _words.get(gateway)
    if words is None:
        return HeldWords()
    words.hold_back()
    return words


def _launch(config: Mapping[str, str], words: HeldWords) -> None:
    """Start the Java process, unless there is one."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    try:
        if SparkContext._gateway is None:
            conf = SparkConf().setAll(list(config.items()))
            gateway = launch_gateway(conf, {"stderr": words.stderr})  # type: ignore[no-untyped-call]
            _words[gateway] = words
            SparkContext._ensure_initialized(gateway=gateway)
    finally:
        words.leave_to_process()


@contextmanager
def _ending_java(wait_s: float | None, is_late: Event) -> Iterator[None]:
    """End the Java process, at which its caller fails, if the body takes longer."""
    process = _java_process()
    if wait_s is None or process is None:
        yield
        return

    def end() -> None:
        is_late.set()
        process.kill()

    timer = Timer(wait_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _silencing_py4j() -> Iterator[None]:
    """Keep Py4J from logging that Java has gone, which it does at the root of all logs."""
    root, nobody = logging.getLogger(), logging.NullHandler()

    def is_other(record: logging.LogRecord) -> bool:
        return Path(record.pathname).parent.name != "py4j"

    root.addHandler(nobody)  # else to log there would make a handler for good
    root.addFilter(is_other)
    try:
        yield
    finally:
        root.removeFilter(is_other)
        root.removeHandler(nobody)


def _java_process() -> Any:
    """Return the process that PySpark has started for this one; None where it uses another's."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    return None if gateway is None else vars(gateway).get("proc")


def _end_java() -> None:
    """End the Java process in which Spark did not start, so that the next session has its own."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        with suppress(Exception):  # Java may have gone already
            SparkContext._active_spark_context.stop()
    process = _java_process()
    if process is None:
        return
    with SparkContext._lock:
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    # Else Py4J goes on to tell Java which objects it may forget, and logs that nobody listens.
    assert gateway is not None
    gateway._gateway_client.is_connected = False
    process.kill()
    process.wait()
    process.stdin.close()
