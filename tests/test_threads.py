"""Values made once and locks: what threads wait for, and what a forked child inherits."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contrada.threads import once

PATIENCE_S = 60  # for what must happen at once


class Slow:
    """Makes a value only when it may."""

    def __init__(self) -> None:
        self.is_making, self.may_finish = threading.Event(), threading.Event()
        self.made = 0

    @once
    def value(self) -> int:
        """Count how often it is made."""
        self.is_making.set()
        assert self.may_finish.wait(PATIENCE_S)
        self.made += 1
        return self.made


def test_no_object_waits_while_another_of_its_class_makes_its_value() -> None:
    slow, quick = Slow(), Slow()
    quick.may_finish.set()
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(lambda: slow.value)
        assert slow.is_making.wait(PATIENCE_S)
        try:
            assert pool.submit(lambda: quick.value).result(PATIENCE_S) == 1
        finally:
            slow.may_finish.set()
        assert waiting.result(PATIENCE_S) == 1


def test_threads_that_ask_for_one_value_at_once_get_the_same_one() -> None:
    slow = Slow()
    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(lambda: slow.value) for _ in range(4)]
        assert slow.is_making.wait(PATIENCE_S)
        slow.may_finish.set()
        assert [each.result(PATIENCE_S) for each in asking] == [1] * 4
    assert slow.made == 1


def test_a_value_that_cannot_be_made_is_tried_by_whoever_asks_next() -> None:
    class Failing:
        tried = 0

        @once
        def value(self) -> int:
            self.tried += 1
            if self.tried < 3:
                raise ValueError(f"try {self.tried}")
            return self.tried

    failing = Failing()
    for message in ("try 1", "try 2"):
        with pytest.raises(ValueError, match=message):
            failing.value  # noqa: B018
    assert (failing.value, failing.value, failing.tried) == (3, 3, 3)


def test_a_value_that_asks_for_itself_meanwhile_is_not_waited_for() -> None:
    class Nested:
        depth = 0

        @once
        def value(self) -> int:
            self.depth += 1
            return self.depth if self.depth > 1 else self.value + 10

    assert Nested().value == 12


def test_the_property_of_a_class_says_what_it_is() -> None:
    assert Slow.value.__doc__ == "Count how often it is made."


# A fork copies the locks of threads that do not exist in the child, where nobody would open them.

FORKED = """
import os, signal, sys, threading
import contrada.matching.strtree.index as strtree
from contrada import Matcher

matcher = Matcher()
matcher.add("a", "S_INTERSECTS(geometry, POLYGON((0 0,4 0,4 4,0 0)))")
event = {"geometry": "POINT(3 1)"}
is_inside, may_leave = threading.Event(), threading.Event()
parent = os.getpid()

def stop_here(*_):
    if os.getpid() == parent:
        is_inside.set()
        may_leave.wait()

def fork_and_run(task):
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # a child that hangs dies of it
        try:
            task()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    may_leave.set()
    return status
"""

IN_A_BUILD = """
make_trees = strtree.make_trees
strtree.make_trees = lambda *given: (stop_here(), make_trees(*given))[1]
builder = threading.Thread(target=matcher.match, args=[event])
def task():
    assert matcher.match(event) == ["a"]
"""

IN_AN_ADD = """
object.__setattr__(matcher._engine, "check", stop_here)
builder = threading.Thread(target=matcher.add, args=["b", "n > 0"])
def task():
    matcher.add("c", "n > 1")
    assert matcher.match({"n": 2}) == ["c"] and matcher.match(event) == ["a"]
    assert matcher.match_many([event])["subscription"].to_pylist() == ["a"]
"""

IN_A_COUNT = """
class Totals(dict):
    def __setitem__(self, name, value):
        stop_here()
        super().__setitem__(name, value)
matcher._counts._totals = Totals(matcher._counts._totals)
builder = threading.Thread(target=matcher.match_many, args=[[event]])
def task():
    assert matcher.match_many([event])["subscription"].to_pylist() == ["a"]
    matcher.stats()
"""

IN_THE_COMPILER = """
import numba
from numba.core.compiler_lock import global_compiler_lock
import contrada.kernels.machine_code  # as soon as a kernel is called

double = numba.njit(lambda x: 2 * x)

def compile_until_the_fork():
    with global_compiler_lock:
        is_inside.set()
        may_leave.wait(60)

os.register_at_fork(before=may_leave.set)  # what is registered last runs first
builder = threading.Thread(target=compile_until_the_fork)
def task():
    assert double(2) == 4
"""

IN_A_SEARCH = """
import sys
assert "colorsys" not in sys.modules

class SlowFinder:
    def find_spec(self, name, path=None, target=None):
        if name == "colorsys":
            is_inside.set()
            may_leave.wait(60)

def look():
    import colorsys

sys.meta_path.insert(0, SlowFinder())
os.register_at_fork(before=lambda: threading.Timer(0.2, may_leave.set).start())
builder = threading.Thread(target=look)
task = look
"""

IN_AN_IMPORT = """
from importlib.machinery import ModuleSpec

class SlowLoader:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name == "slow_module" else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        stop_here()
        need()

def look():
    import slow_module

sys.meta_path.insert(0, SlowLoader())
builder = threading.Thread(target=look)
"""

THAT_LOGS = """
import logging  # whose hook holds its lock at a fork

def need():
    logging.getLogger("of the module")

os.register_at_fork(before=lambda: threading.Timer(0.2, may_leave.set).start())
task = look
"""

THAT_COMPILES = """
from numba.core.compiler_lock import global_compiler_lock
import contrada.kernels.machine_code  # as soon as a kernel is called

def need():
    with global_compiler_lock:
        pass

os.register_at_fork(before=lambda: threading.Timer(0.2, may_leave.set).start())
task = look
"""

THAT_A_STRANGER_STOPS = """
import contrada.threads

contrada.threads._PATIENCE_S = 0.2
lock = threading.Lock()

def need():
    with lock:
        pass

os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
os.register_at_fork(before=may_leave.set)
def task():
    assert matcher.match(event) == ["a"]
"""

RUN = """
builder.start()
assert is_inside.wait(60)
print(fork_and_run(task))
builder.join()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
@pytest.mark.parametrize(
    "where",
    [
        IN_A_BUILD,
        IN_AN_ADD,
        IN_A_COUNT,
        IN_THE_COMPILER,
        IN_A_SEARCH,
        IN_AN_IMPORT + THAT_LOGS,
        IN_AN_IMPORT + THAT_COMPILES,
        IN_AN_IMPORT + THAT_A_STRANGER_STOPS,
    ],
    ids=["build", "add", "count", "compiler", "search", "logging", "compiling", "stranger"],
)
def test_a_child_matches_although_a_thread_of_its_parent_was_busy_at_the_fork(where: str) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED + where + RUN],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.stdout == "0\n", run.stderr[-1000:]


def test_a_child_leaves_the_temporary_folders_of_its_parent_alone() -> None:
    program = """
import os, sys
from contrada.machine import temporary_folder

folder = temporary_folder("test")
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
print(folder.exists(), folder)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    is_there, folder = done.stdout.split()
    assert is_there == "True"
    assert not Path(folder).exists()


@pytest.mark.parametrize("delay_s", [0.001, 0.05, 0.2])
def test_a_child_matches_though_a_thread_was_importing(delay_s: float) -> None:
    """The first list of events makes NumPy and Arrow import, which holds locks of both."""
    program = f"""
import faulthandler, os, threading
import contrada

matcher = contrada.Matcher()
matcher.add("x", "a = 1")
is_over = threading.Event()

def work():
    while not is_over.is_set():
        matcher.match_many([{{"a": 1}}] * 50)

thread = threading.Thread(target=work)
thread.start()
is_over.wait({delay_s})
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later({PATIENCE_S / 2}, exit=True)
    os._exit(0 if matcher.match_many([{{"a": 1}}] * 20).num_rows == 20 else 3)
status = os.waitpid(child, 0)[1]
is_over.set()
thread.join()
print("status", status)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.split() == ["status", "0"], done.stderr
