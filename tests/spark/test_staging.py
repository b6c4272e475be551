"""Staged parts: fetched once a machine, whole or not at all, and refused if they are others."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from contrada.errors import InvalidInput, Unavailable
from contrada.matcher.column_files import load_columns
from contrada.matching.subscribing import PredicateReader
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.subscription import Subscription
from contrada.spark import staging, worker_cache
from contrada.spark.staging import StagedPart, fetch
from contrada.spark.subscription_tasks import write_part
from contrada.spark.worker_cache import CachePruner


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(staging, "_pruner", CachePruner())
    return tmp_path / "cache" / "contrada" / "snapshots"


def stage(folder: Path, text: str = "wind > 3") -> tuple[str, StagedPart]:
    uri = folder.as_uri()
    return uri, write_part(
        uri, pack_subscriptions([Subscription("a", PredicateReader().parse(text))])
    )


def test_a_part_is_fetched_once_and_again_if_the_copy_is_damaged(
    tmp_path: Path, cache: Path
) -> None:
    uri, part = stage(tmp_path / "staging")
    assert len(load_columns(fetch(uri, part))) == 1
    copy = cache / part.file_name
    copy.write_bytes(copy.read_bytes()[:-1])
    assert fetch(uri, part).digest == part.digest
    (tmp_path / "staging" / part.file_name).unlink()
    assert fetch(uri, part).digest == part.digest


def test_a_part_that_is_gone_or_another_one_is_refused_and_leaves_nothing(
    tmp_path: Path, cache: Path
) -> None:
    uri, part = stage(tmp_path / "staging")
    _, other = stage(tmp_path / "staging", "wind > 4")
    staged = tmp_path / "staging" / part.file_name
    (tmp_path / "staging" / other.file_name).replace(staged)
    with pytest.raises(InvalidInput, match=f"{part.file_name}.* is another snapshot"):
        fetch(uri, part)
    staged.unlink()
    with pytest.raises(InvalidInput, match=f"{part.file_name}: .* cannot be read"):
        fetch(uri, part)
    assert {path.suffix for path in cache.iterdir()} == {".lock"}


def test_a_task_that_is_killed_before_it_has_verified_its_copy_leaves_none_that_is_trusted(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, part = stage(tmp_path / "staging", "wind > 1002")
    staged = tmp_path / "staging" / part.file_name
    content = bytearray(staged.read_bytes())
    content[content.index((1002).to_bytes(8, "little"))] ^= 1
    staged.write_bytes(content)

    def is_killed(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("contrada.spark.staging.open_sections", is_killed)
        with pytest.raises(SystemExit):
            fetch(uri, part)
    with pytest.raises(InvalidInput, match=f"{part.file_name}.* is damaged"):
        fetch(uri, part)
    assert {path.suffix for path in cache.iterdir()} == {".lock"}


def test_drafts_go_that_nobody_has_written_to_for_long(tmp_path: Path, cache: Path) -> None:
    uri, part = stage(tmp_path / "staging")
    cache.mkdir(parents=True)
    for name, mtime in ((".old.tmp", 0), (".young.tmp", None)):
        (cache / name).write_bytes(b"half")
        if mtime is not None:
            os.utime(cache / name, (mtime, mtime))
    fetch(uri, part)
    assert [path.name for path in cache.glob(".*.tmp")] == [".young.tmp"]


def test_many_parts_leave_few_locks(tmp_path: Path, cache: Path) -> None:
    for number in range(40):
        uri, part = stage(tmp_path / "staging", f"wind > {number}")
        assert fetch(uri, part).digest == part.digest
    assert len(list(cache.glob("*.contrada"))) == 40
    assert len(list(cache.glob("*.lock"))) <= 16


def test_the_longest_unused_copies_go_beyond_the_cap(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, first = stage(tmp_path / "staging")
    _, second = stage(tmp_path / "staging", "wind > 4")
    fetch(uri, first)
    monkeypatch.setenv("CONTRADA_CACHE_BYTES_MAX", str(second.size_bytes))
    fetch(uri, second)
    assert [path.name for path in cache.glob("*.contrada")] == [second.file_name]
    monkeypatch.setenv("CONTRADA_CACHE_BYTES_MAX", "much")
    with pytest.raises(InvalidInput, match=r"CONTRADA_CACHE_BYTES_MAX .* not 'much'"):
        fetch(uri, first)


def test_where_no_cache_can_be_written_the_machine_is_to_blame(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, part = stage(tmp_path / "staging")
    fetch(uri, part)
    with monkeypatch.context() as patch:
        patch.setattr("contrada.machine.os.access", lambda *_: False)
        with pytest.raises(Unavailable, match="set XDG_CACHE_HOME to a folder that is"):
            fetch(uri, part)
    (lock,) = cache.glob("*.lock")
    lock.unlink()
    lock.mkdir()
    with pytest.raises(Unavailable, match=r"\.lock: cannot be locked: Is a directory"):
        fetch(uri, part)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"file/staging: subscriptions cannot be written"):
        stage(tmp_path / "file" / "staging")


def test_a_full_cache_is_blamed_on_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, part = stage(tmp_path / "staging")

    def is_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("contrada.spark.staging.shutil.copyfileobj", is_full)
    with pytest.raises(Unavailable, match=r"snapshots: a copy .* No space left .*XDG_CACHE_HOME"):
        fetch(uri, part)
    assert {path.suffix for path in cache.iterdir()} == {".lock"}


def test_copies_beyond_the_most_go_and_not_at_each_new_one(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_cache, "_FILES_MAX", 10)
    monkeypatch.setattr(worker_cache, "_PRUNED_AFTER", (8, 1.0))
    looks: list[int] = []
    inner = worker_cache._delete_unused

    def look(*args: Any) -> None:
        looks.append(1)
        inner(*args)

    monkeypatch.setattr(worker_cache, "_delete_unused", look)
    for number in range(50):
        uri, part = stage(tmp_path / "staging", f"wind > {number}")
        fetch(uri, part)
        assert len(list(cache.glob("*.contrada"))) < 10 + 8
    assert len(looks) == 1 + 49 // 8
