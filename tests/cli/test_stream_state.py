"""The folder of a stream's state: whose it is, and until when it may change. No Spark runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from contrada.cli.stream_state import StreamState
from contrada.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

GIVEN = {"events": "in", "to": "out"}


def begin(folder: Path, **given: str) -> None:
    """Let a stream begin, as Spark does, with its first batch."""
    with StreamState.open(str(folder), GIVEN | given) as state:
        state.settle({"schema": "a"})
        (folder / "checkpoint" / "offsets").mkdir(parents=True)
        (folder / "checkpoint" / "offsets" / "0").touch()


def test_a_stream_that_was_refused_at_first_may_begin_otherwise(tmp_path: Path) -> None:
    with StreamState.open(str(tmp_path), {"events": "typo", "to": "out"}) as state:
        state.settle({"schema": "a"})
        (tmp_path / "subscriptions").mkdir()  # published before the fault was seen
    with StreamState.open(str(tmp_path), GIVEN) as state:
        assert state.columns is None


def test_a_stream_that_has_begun_keeps_its_columns_and_its_places(tmp_path: Path) -> None:
    begin(tmp_path)
    with StreamState.open(str(tmp_path), GIVEN) as state:
        assert state.columns == {"schema": "a"}
    with (
        pytest.raises(InvalidInput, match=r"that stream has --to /.*/out, not /.*/other; another"),
        StreamState.open(str(tmp_path), GIVEN | {"to": "other"}),
    ):
        pass


def test_a_place_is_the_same_however_it_is_spelt_and_another_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    begin(tmp_path / "state", to="kafka://host:9092/out")
    for events in ("in/", "./in", "../here/in", str(tmp_path / "here" / "in")):
        given = {"events": events, "to": "kafka://host:9092/out"}
        with StreamState.open(str(tmp_path / "state"), given) as state:
            assert state.stated["events"] == str(tmp_path / "here" / "in")
    monkeypatch.chdir(tmp_path / "there")
    with (
        pytest.raises(InvalidInput, match=r"has --events /.*here/in, not /.*there/in"),
        StreamState.open("../state", GIVEN | {"to": "kafka://host:9092/out"}),
    ):
        pass


def test_a_second_command_is_refused_before_it_does_anything(tmp_path: Path) -> None:
    with (
        StreamState.open(str(tmp_path), GIVEN),
        pytest.raises(InvalidInput, match="another `contrada stream` is running on it; stop that"),
        StreamState.open(str(tmp_path), GIVEN),
    ):
        pass
    with StreamState.open(str(tmp_path), GIVEN):
        pass


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "stream.json is damaged"),
        ("[]", "stream.json is damaged"),
        (json.dumps({"format": 9}), "is in format 9; this version of Contrada writes 1"),
    ],
)
def test_a_state_that_cannot_be_read_is_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "stream.json").write_text(content)
    with pytest.raises(InvalidInput, match=message), StreamState.open(str(tmp_path), GIVEN):
        pass
