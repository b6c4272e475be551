"""`contrada stream` as a process: it takes up new subscriptions, and stops when it is told to."""

from __future__ import annotations

import itertools
import signal
from typing import TYPE_CHECKING

import pytest

from stream_desk import Desk, RunningStream

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


class Traffic:
    """Events that come in one by one, each in a file, all at one place."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._ids = desk, itertools.count(1)
        self.sent: list[int] = []

    def send(self) -> int:
        """Let an event come in; return its id."""
        self.sent.append(next(self._ids))
        self._desk.send(f"{self.sent[-1]:03}.csv", f"id,lon,lat\n{self.sent[-1]},0.5,0.5\n")
        return self.sent[-1]

    def send_and_see(self, stream: RunningStream) -> int:
        """Let an event come in, wait for its matches, and return the number of their version."""
        id_ = self.send()
        found: list[str] = []

        def is_matched() -> bool:
            found[:] = [row["version"] for row in self._desk.rows("out") if row["event"] == id_]
            return bool(found)

        stream.wait_until(is_matched)
        (version,) = set(found)
        return int(version.partition("-")[0])


def numbers(folder: Path) -> set[int]:
    """The batches of which Spark has written something to a folder of its checkpoint."""
    return {int(path.name) for path in folder.iterdir() if path.name.isdigit()}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.soak)]
)
def test_a_running_stream_takes_up_subscriptions_and_ends_after_its_batch(
    number: signal.Signals, tmp_path: Path
) -> None:
    desk = Desk(tmp_path)
    traffic = Traffic(desk)
    traffic.send()
    checkpoint = tmp_path / "state" / "checkpoint"
    with desk.running("--every", "0.1 s") as stream:
        assert traffic.send_and_see(stream) == 1

        desk.subscribe(b=0, c=0)
        stream.wait_until(lambda: "subscriptions: version 2-" in stream.said)
        seen = [traffic.send_and_see(stream)]
        while seen[-1] == 1:  # a version holds two seconds after it was published
            seen.append(traffic.send_and_see(stream))
        assert set(seen) <= {1, 2}

        desk.put("fences.csv", "id,filter\na,speed >\n")
        stream.wait_until(lambda: "stay as they were, at version 2-" in stream.said)
        assert "ends too early" in stream.said
        assert traffic.send_and_see(stream) == 2

        begun = numbers(checkpoint / "offsets")
        traffic.send()
        stream.wait_until(lambda: numbers(checkpoint / "offsets") != begun)
        traffic.send()
        stream.process.send_signal(number)
        assert stream.process.wait() == 0, stream.said
    assert "stopping after the batch under way\n" in stream.said
    assert stream.said.splitlines()[-1].startswith("stopped; the same --state ")
    assert numbers(checkpoint / "commits") == numbers(checkpoint / "offsets")

    desk.subscribe(b=0, c=0)
    assert desk.run() == 0
    found = [(row["event"], row["version"][0], row["subscription"]) for row in desk.rows("out")]
    versions = {event: version for event, version, _ in found}
    assert sorted(versions) == traffic.sent
    zones = {"1": "a", "2": "bc"}
    assert sorted(found) == [
        (id_, v, zone) for id_, v in sorted(versions.items()) for zone in zones[v]
    ]
