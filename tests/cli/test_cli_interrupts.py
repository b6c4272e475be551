"""Ctrl-C ends a command with one word and 130, SIGTERM and SIGHUP as such; no Java is left."""

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from contrada.cli import main
from contrada.cli.interrupting import asked_to_stop
from contrada.errors import InvalidInput

COMMAND = [sys.executable, "-m", "contrada.cli"]
MODULES = {"match": ["a", "b"], "explain": ["a"], "demo": [], "simulate": [], "reproduce": ["ahs"]}


@pytest.fixture(autouse=True)
def python_hears_signals() -> Iterator[None]:
    """Begin as a command does: a SparkContext of another test has left its own handler.

    A child inherits what is ignored here, as SIGHUP is where tests run under `nohup`.
    """
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGHUP, hangup)


def interrupt_and(fault: Exception | None) -> Callable[[argparse.Namespace], None]:
    """A command that is interrupted; what the user sees first is something else."""

    def run(_: argparse.Namespace) -> None:
        def hear(*_: object) -> None:
            if fault is not None:
                raise fault
            raise KeyboardInterrupt

        signal.signal(signal.SIGINT, hear)  # as Spark does
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    return run


@pytest.mark.parametrize("command", MODULES)
@pytest.mark.parametrize(
    "fault",
    [
        None,
        RuntimeError("a job was cancelled"),
        InvalidInput("cannot read on"),
        OSError(28, "full"),
    ],
)
def test_every_command_says_that_it_was_interrupted(
    command: str,
    fault: Exception | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(f"contrada.cli.{command}.run", interrupt_and(fault))
    assert main([command, *MODULES[command]]) == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err in ("contrada: interrupted\n", "contrada: interrupted; nothing was written\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_may_end_its_work_is_told_once_and_interrupted_the_second_time(
    number: signal.Signals,
) -> None:
    def cancel(*_: object) -> None:
        raise AssertionError("as Spark does, which cancels all jobs")

    before = signal.signal(number, cancel)
    try:
        with asked_to_stop() as asked:
            signal.raise_signal(number)
            assert asked.is_set()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
        assert signal.getsignal(number) is cancel
    finally:
        signal.signal(number, before)


def test_a_thread_is_never_asked_to_stop() -> None:
    heard: list[bool] = []

    def ask() -> None:
        with asked_to_stop() as asked:
            heard.append(asked.is_set())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert heard == [False]


@pytest.mark.parametrize("command", MODULES)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("fault", [None, RuntimeError("a job was cancelled")])
def test_every_command_says_that_it_was_terminated(
    command: str,
    number: signal.Signals,
    fault: Exception | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(_: argparse.Namespace) -> None:
        try:
            signal.raise_signal(number)
        finally:
            if fault is not None:
                raise fault

    monkeypatch.setattr(f"contrada.cli.{command}.run", run)
    assert main([command, *MODULES[command]]) == 128 + number
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err in ("contrada: terminated\n", "contrada: terminated; nothing was written\n")
    assert signal.getsignal(number) is signal.SIG_DFL


def test_whoever_ignores_a_signal_goes_on_ignoring_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: argparse.Namespace) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("contrada.cli.explain.run", run)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert main(["explain", "a"]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_fault_without_an_interrupt_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: argparse.Namespace) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("contrada.cli.explain.run", run)
    with pytest.raises(ZeroDivisionError):
        main(["explain", "a"])


def test_while_a_java_starts_an_interrupt_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    began, steps = threading.Event(), []

    def launch_gateway() -> None:
        signal.raise_signal(signal.SIGINT)
        steps.append("java is there")
        began.set()

    def run(_: argparse.Namespace) -> None:
        launch_gateway()
        assert began.wait(60)
        time.sleep(60)  # the interrupt comes again meanwhile
        steps.append("nobody interrupts")

    monkeypatch.setattr("contrada.cli.explain.run", run)
    began_at = time.monotonic()
    assert main(["explain", "a"]) == 130
    assert time.monotonic() - began_at < 30, "the second signal wakes who sleeps"
    assert steps == ["java is there"]
    assert capsys.readouterr().err == "contrada: interrupted\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_a_callback_loses_comes_again(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    callback = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(number))
    steps = []

    def run(_: argparse.Namespace) -> None:
        callback()  # as LLVM does when it has compiled something
        steps.append("compiled")
        time.sleep(60)  # the interrupt comes again meanwhile
        steps.append("nobody interrupts")

    monkeypatch.setattr("contrada.cli.explain.run", run)
    assert main(["explain", "a"]) == 128 + number
    assert steps == ["compiled"]
    said = capsys.readouterr().err
    assert said in ("contrada: interrupted\n", "contrada: terminated\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_that_a_library_catches_comes_again(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = []

    def run(_: argparse.Namespace) -> None:
        with suppress(BaseException):  # as while a module is loaded
            signal.raise_signal(number)
        steps.append("loaded")
        threading.Event().wait(60)
        steps.append("nobody interrupts")

    monkeypatch.setattr("contrada.cli.explain.run", run)
    assert main(["explain", "a"]) == 128 + number
    assert steps == ["loaded"]
    assert capsys.readouterr().err in ("contrada: interrupted\n", "contrada: terminated\n")


def test_an_interrupt_that_ends_a_command_does_not_come_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = []

    def run(_: argparse.Namespace) -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            assert not any(isinstance(one, threading.Timer) for one in threading.enumerate())
            steps.append("tidied up")

    monkeypatch.setattr("contrada.cli.explain.run", run)
    assert main(["explain", "a"]) == 128 + signal.SIGTERM
    assert steps == ["tidied up"]
    assert capsys.readouterr().err == "contrada: terminated\n"


def test_whoever_interrupts_twice_does_not_wait(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def launch_gateway() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError

    monkeypatch.setattr("contrada.cli.explain.run", lambda _: launch_gateway())
    assert main(["explain", "a"]) == 130


def test_a_command_outside_the_main_thread_runs(capsys: pytest.CaptureFixture[str]) -> None:
    codes: list[Any] = []
    thread = threading.Thread(target=lambda: codes.append(main(["explain", "a = 1"])))
    thread.start()
    thread.join()
    assert codes == [0]


def has_java(group: int) -> bool:
    """Tell whether Spark's Java runs in a process group."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition(" (")[2].rpartition(") ")
            command = (stat.parent / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if name == "java" and rest.split()[2] == str(group) and b"SparkSubmit" in command:
            return True
    return False


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGINT, b"interrupted"), (signal.SIGTERM, b"terminated")]
)
def test_a_signal_while_spark_starts_leaves_no_java_behind(
    number: signal.Signals, word: bytes, tmp_path: Path
) -> None:
    with match_on_spark(tmp_path, 1) as process:
        assert process.stderr is not None
        assert b"starting Spark on local[1]\n" in iter(process.stderr.readline, b"")
        while not has_java(process.pid):
            assert process.poll() is None
        if number == signal.SIGTERM:
            process.send_signal(number)  # as `kill` does
        else:
            os.killpg(process.pid, number)  # as a terminal does
        said = process.stderr.read()  # until Java has closed it, too
    assert said == b"contrada: %s; nothing was written\n" % word
    assert process.returncode == 128 + number
    assert not has_java(process.pid)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGINT, b"interrupted"), (signal.SIGTERM, b"terminated")]
)
def test_a_signal_in_the_middle_of_a_job_on_spark_says_so(
    number: signal.Signals, word: bytes, tmp_path: Path
) -> None:
    with match_on_spark(tmp_path, 200_000) as process:
        assert process.stderr is not None
        said = b""
        while b"matching on Spark" not in said:
            said += os.read(process.stderr.fileno(), 65_536)
        if number == signal.SIGTERM:
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)
        said = process.stderr.read()
    assert said.splitlines()[-1] == b"contrada: %s; nothing was written" % word
    assert process.returncode == 128 + number
    assert not (tmp_path / "out.csv").exists()


def match_on_spark(folder: Path, events: int) -> "subprocess.Popen[bytes]":
    """Begin to match so many events against a thousand zones."""
    pytest.importorskip("pyspark")
    zone = '"POLYGON((0 0,4 0,4 4,0 4,0 0))"'
    zones = "".join(f"{i},{zone}\n" for i in range(1_000))
    points = "".join(f"{i},{i % 1_000 / 100},1\n" for i in range(events))
    (folder / "zones.csv").write_text(f"id,wkt\n{zones}")
    (folder / "events.csv").write_text(f"id,lon,lat\n{points}")
    files = [str(folder / name) for name in ("zones.csv", "events.csv", "out.csv")]
    return subprocess.Popen(
        [*COMMAND, "match", *files[:2], "-o", files[2], "--spark", "local[1]"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("part", ["contrada.cli.match", "numpy", "pyarrow", "shapely"])
@pytest.mark.parametrize("module", ["contrada", "contrada.cli"])
def test_a_command_hears_signals_while_it_loads(
    module: str, part: str, number: signal.Signals
) -> None:
    program = f"""
import os, runpy, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {part!r}:
            os.kill(os.getpid(), {int(number)})

sys.meta_path.insert(0, Interrupting())
sys.argv = ["contrada", "match", "a.csv", "b.csv"]
runpy.run_module({module!r}, run_name="__main__")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    what = "interrupted" if number == signal.SIGINT else "terminated"
    assert ended.stderr == f"contrada: {what}\n"
    assert (ended.returncode, ended.stdout) == (128 + number, "")


@pytest.mark.parametrize(
    "module", ["contrada.cli", "contrada.cli.terminal", "contrada.cli.remedies", "contrada.errors"]
)
def test_an_interrupt_before_the_command_listens_is_one_line(module: str) -> None:
    code = f"""
import runpy, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
runpy.run_module("contrada", run_name="__main__")
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "contrada: interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["contrada", "contrada.cli"])
def test_a_command_that_a_signal_ends_does_not_wait_for_native_threads_to_abort_it(
    module: str, number: signal.Signals
) -> None:
    program = f"""
import ctypes, os, runpy, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "contrada.cli.match":
            os.kill(os.getpid(), {int(number)})

c = ctypes.CDLL(None)
c.__cxa_atexit(ctypes.cast(c.abort, ctypes.c_void_p), None, None)  # as C++ does
sys.meta_path.insert(0, Interrupting())
sys.argv = ["contrada", "match", "a.csv", "b.csv"]
runpy.run_module({module!r}, run_name="__main__")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 128 + number
    assert ended.stderr.startswith("contrada: ")


def test_the_command_that_is_installed_is_the_one_that_hears_interrupts_early() -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert settings["project"]["scripts"] == {"contrada": "contrada.__main__:main"}
