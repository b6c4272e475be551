"""Random cases: the same in every run of `make test`, new and many in `make soak`.

Also who runs what, and the last lines of a run: what was not tested, and why.
"""

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from contrada.cli import progress

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("soak", deadline=None, max_examples=3_000, print_blob=True)
settings.load_profile("default")

SPARK_ROOM = "tests/spark/"
_OF_STREAMS = re.compile("stream|kafka|publish|version|transition")  # half of them

_deselected = pytest.StashKey[int]()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let two workers begin with the tests on Spark, in a session each; the rest goes by file.

    On Spark tests mostly wait, for Java or for Python, so that one worker alone would be last.
    """
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = _room_or_file
    return scheduler


def _room_or_file(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    if not file.startswith(SPARK_ROOM):
        return file
    return SPARK_ROOM + ("streams" if _OF_STREAMS.search(file) else "tables")


def pytest_deselected(items: list[pytest.Item]) -> None:
    for config in {item.config for item in items}:
        config.stash[_deselected] = config.stash.get(_deselected, 0) + len(items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the number from a worker of pytest-xdist, which all collect the same, to its master."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["deselected"] = session.config.stash.get(_deselected, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    count = getattr(node, "workeroutput", {}).get("deselected", 0)
    node.config.stash[_deselected] = max(count, node.config.stash.get(_deselected, 0))


def pytest_terminal_summary(terminalreporter: "TerminalReporter") -> None:
    """Say what was skipped, in one line for each reason."""
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", ()))
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"skipped {count}: {reason}")
    config = terminalreporter.config
    if left_out := config.stash.get(_deselected, 0):
        asked = {"-m": config.option.markexpr, "-k": config.option.keyword}
        said = " ".join(f"{option} {words!r}" for option, words in asked.items() if words)
        terminalreporter.write_line(f"left out {left_out}: {said}")


def _reason(report: Any) -> str:
    """Give why a test was skipped; one without any case is not told by its name."""
    place = report.longrepr
    text = str(place[2] if isinstance(place, tuple) else place).removeprefix("Skipped: ")
    return "there are no cases for it" if text.startswith("got empty parameter set") else text


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, commands do not say what they are doing meanwhile."""
    monkeypatch.setattr(progress, "_MOMENT_S", 600.0)
