"""A worker keeps sets and what is derived from them open, as long as all of it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import shapely

from contrada.errors import InvalidInput
from contrada.matching.subscribing import PredicateReader
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.relation import find_relation
from contrada.model.subscription import Subscription
from contrada.spark import open_sets
from contrada.spark.open_sets import OpenSets, derive, estimate_bytes, open_rows, open_set
from contrada.spark.staging import StagedSet
from contrada.spark.subscription_tasks import write_part

if TYPE_CHECKING:
    from pathlib import Path

    from shapely.geometry.base import BaseGeometry


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OpenSets:
    """The sets of a worker that has none open."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fresh = OpenSets()
    monkeypatch.setattr(open_sets, "_open_sets", fresh)
    return fresh


def stage(folder: Path, count: int, shape: BaseGeometry | None = None) -> StagedSet:
    """Stage subscriptions to one geometry, by their number."""
    shape = shapely.box(0, 0, 4, 4) if shape is None else shape
    predicate = PredicateReader().combine(shape, find_relation("intersects"), "geometry", None)
    uri = (folder / "staging").as_uri()
    part = write_part(uri, pack_subscriptions([Subscription(n, predicate) for n in range(count)]))
    return StagedSet(uri, (part,))


def test_a_set_is_opened_once(opened: OpenSets, tmp_path: Path) -> None:
    staged = stage(tmp_path, 3)
    assert len(open_set(staged)) == 3
    assert open_set(staged) is open_set(staged)
    assert derive(staged, "length", lambda: [3], len) is derive(staged, "length", list, len)


def test_the_longest_unused_go_beyond_the_limit(
    opened: OpenSets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTRADA_OPEN_BYTES_MAX", "0")
    staged = [stage(tmp_path, count) for count in range(1, 6)]
    for each in staged:
        open_set(each)
        open_set(staged[0])
    is_kept = [("set", each) in opened for each in staged]
    assert is_kept == [True, False, True, True, True], "four are kept, whatever the limit"


def test_what_is_derived_counts_like_a_set(
    opened: OpenSets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTRADA_OPEN_BYTES_MAX", "1000000")
    staged = [stage(tmp_path, count) for count in (1, 2)]
    for number in range(8):
        derive(staged[0], number, lambda: bytes(400_000), len)
        open_rows(staged[1])
    kept = [number for number in range(8) if (staged[0], number) in opened]
    assert kept == [5, 6, 7], "two would fit beside the set, and four values are always kept"
    assert ("rows", staged[1]) in opened


def test_sets_that_fit_stay_open(opened: OpenSets, tmp_path: Path) -> None:
    staged = [stage(tmp_path, count) for count in range(1, 12)]
    for each in staged:
        open_set(each)
    assert all(("set", each) in opened for each in staged)


def test_a_limit_that_is_no_number_is_refused(
    opened: OpenSets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTRADA_OPEN_BYTES_MAX", "much")
    with pytest.raises(InvalidInput, match=r"CONTRADA_OPEN_BYTES_MAX .* not 'much'"):
        open_set(stage(tmp_path, 1))


def test_vertices_count_once_for_all_that_share_them(opened: OpenSets, tmp_path: Path) -> None:
    angles = np.linspace(0, 2 * np.pi, 1_000)
    round_ = shapely.Polygon(np.column_stack([np.cos(angles), np.sin(angles)]))
    few, many = (
        estimate_bytes(open_set(stage(tmp_path, count, round_)).living()) for count in (1, 100)
    )
    plain = estimate_bytes(open_set(stage(tmp_path, 1)).living())
    assert few > plain + 50 * 900
    assert many < 2 * few


def test_a_worker_keeps_two_versions_and_the_parts_that_these_have(
    opened: OpenSets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_sets, "_recent_versions", open_sets._RecentVersions())
    parts = [stage(tmp_path, count).parts[0] for count in range(1, 6)]
    uri = stage(tmp_path, 1).uri
    versions = [
        StagedSet(uri, (parts[0], part), version=f"{number}")
        for number, part in enumerate(parts[1:])
    ]
    for number, version in enumerate(versions):
        open_set(version)
        derive(version, "length", lambda: [1], len)
        kept = [("set", each) in opened for each in versions]
        assert kept == [number - 1 <= place <= number for place in range(4)]
        assert [(each, "length") in opened for each in versions] == kept
        assert open_sets._part_key(version, parts[0]) in opened
        own = [open_sets._part_key(version, part) in opened for part in parts[1:]]
        assert own == kept
