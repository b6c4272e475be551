"""What is known of matches on streams, for the log: of so many at the most. No Spark runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyspark.sql import Row

from contrada.spark.stream_listening import SessionListening


class Named:
    """A set of which nothing is to be said, and whether it was looked at."""

    def __init__(self) -> None:
        self.looks = 0

    def look(self, _: str | None) -> list[str]:
        self.looks += 1
        return []


def hear(listening: SessionListening, name: str) -> None:
    """Let a batch of a match end."""
    done = dict.fromkeys(("evaluated", "set_aside", "mended", "without_geometry"), 0)
    versions = {"version_low": 1, "version_high": 1}
    metrics = {
        f"contrada_in_{name}": Row(events=0),
        f"contrada_out_{name}": Row(**done, **versions),
    }
    progress: Any = SimpleNamespace(batchId=0, observedMetrics=metrics)
    listening.hear(progress)


def test_of_many_matches_those_are_forgotten_that_were_not_heard_of_for_longest() -> None:
    listening = SessionListening(known_max=3)
    sets: dict[str, Any] = {name: Named() for name in "abcde"}
    for name in "abc":
        listening.know(f"contrada_out_{name}", sets[name])
    hear(listening, "a")
    for name in "de":
        listening.know(f"contrada_out_{name}", sets[name])
    for name in "abcde":
        hear(listening, name)
    assert [sets[name].looks for name in "abcde"] == [2, 0, 0, 1, 1]
