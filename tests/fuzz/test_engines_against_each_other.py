"""All exact engines live through the same story and never answer differently.

Subscriptions are added, replaced and removed, one by one and by table, and saved and opened again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fuzz import runs
from fuzz.stories import Story

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:.*which is never true")  # of other types


def run(seeds: Iterable[int], folder: Path, steps: int, request: pytest.FixtureRequest) -> None:
    """Tell one story after the other until the engines differ."""
    asked = 0
    for seed in seeds:
        story = Story(seed, folder, steps)
        differences = "\n".join(story.tell()[:5])
        assert not differences, f"{differences}\nReplay it: {runs.command(seed, request)}"
        asked += story.asked
    print(f"{asked:,} events")
    assert asked > 0


def test_engines_agree_through_changes(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run(runs.few(2), tmp_path, 45, request)


@pytest.mark.soak
def test_engines_agree_through_many_changes(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run(runs.many(request), tmp_path, 120, request)
