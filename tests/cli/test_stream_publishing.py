"""When a changed file of subscriptions is published, and when again. No Spark runs."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

import pytest

from contrada.cli.stream_publishing import SubscriptionPublisher
from contrada.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from pathlib import Path


class TriedPublisher(SubscriptionPublisher):
    """A publisher that only counts; `faults` are raised one after the other."""

    def __init__(self, path: Path) -> None:
        super().__init__(None, Namespace(subscriptions=str(path)), str(path.parent / "set"))  # type: ignore[arg-type]
        self.faults: list[Exception] = []
        self.tries: list[str] = []

    def _publish(self, lead: str | float) -> str:
        self.tries.append(str(lead))
        if self.faults:
            raise self.faults.pop(0)
        return f"{len(self.tries)}-a"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "fences.csv"
    path.write_text("id\na\n")
    return path


@pytest.fixture
def publisher(path: Path) -> TriedPublisher:
    publisher = TriedPublisher(path)
    publisher.begin()
    return publisher


def test_a_file_is_published_when_it_has_changed_and_no_longer_does(
    publisher: TriedPublisher, path: Path
) -> None:
    for _ in range(3):
        publisher.look()
    assert publisher.tries == ["0"]
    for number in range(3):  # somebody is writing it
        with path.open("a") as file:
            file.write(f"b{number}\n")
        publisher.look()
    assert publisher.tries == ["0"]
    for _ in range(3):
        publisher.look()
    assert publisher.tries == ["0", "2 s"]
    assert publisher.version == "2-a"


@pytest.mark.parametrize(
    "fault", [Unavailable("the disk is full"), OSError("the disk is full")], ids=repr
)
def test_what_the_machine_is_to_blame_for_is_said_once_and_tried_again(
    fault: Exception, publisher: TriedPublisher, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text("id\nb\nc\n")
    publisher.faults = [fault, fault]
    for _ in range(6):
        publisher.look()
    assert publisher.tries == ["0", "2 s", "2 s", "2 s"]
    told = capsys.readouterr().err
    assert told.count("the disk is full") == 1
    assert "at version 1-a; publishing is tried again" in told
    assert "version 4-a from now on" in told


def test_a_bad_file_is_said_once_and_left_until_it_changes(
    publisher: TriedPublisher, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(2):
        path.write_text(f"id\n{number}{number}\nbad\n" + "\n" * number)
        publisher.faults = [InvalidInput(f"row {number} is bad")]
        for _ in range(4):
            publisher.look()
    assert len(publisher.tries) == 3
    assert "row 1 is bad" in capsys.readouterr().err


def test_what_is_wrong_with_the_first_file_ends_the_command(path: Path) -> None:
    publisher = TriedPublisher(path)
    publisher.faults = [Unavailable("the disk is full")]
    with pytest.raises(Unavailable, match="the disk is full"):
        publisher.begin()


def test_a_folder_that_goes_while_it_is_listed_ends_nothing(
    publisher: TriedPublisher, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.unlink()
    path.mkdir()

    def vanish(*_: object) -> None:
        raise FileNotFoundError

    with monkeypatch.context() as patched:
        patched.setattr(type(path), "rglob", vanish)
        publisher.look()
    publisher.look()
    publisher.look()
    assert len(publisher.tries) == 2
