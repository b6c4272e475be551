"""How versions are added, found and pruned: files alone, without Spark."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs
import pytest
from pyspark.sql.types import IntegerType, StringType, StructType

from contrada.errors import InvalidInput, Unavailable
from contrada.spark import published_sets, uris, version_files, version_names, version_pruning
from contrada.spark.evaluators import EXACT
from contrada.spark.frames import MOMENT
from contrada.spark.published_sets import (
    Manifest,
    PublishedChoice,
    find_manifest,
    find_newest,
    find_version,
    read_manifest,
)
from contrada.spark.set_descriptions import SetDescription, StreamEvents
from contrada.spark.staging import StagedPart, put
from contrada.spark.version_files import add_version
from contrada.spark.version_names import VersionName, list_versions, walk_versions

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
START = 1_800_000_000_000_000
LEAD_US = 2_000_000


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return (tmp_path / "fences").as_uri()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The publisher's clock, which only the test moves."""
    now = [START]
    monkeypatch.setattr(version_files, "now_us", lambda: now[0])
    return now


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files lie where no lock of this machine reaches, as in an object store."""
    inner = uris.open_uri

    def open_elsewhere(uri: str) -> tuple[pa.fs.FileSystem, str]:
        filesystem, path = inner(uri)
        return pa.fs.SubTreeFileSystem("/", filesystem), path.lstrip("/")

    for module in ("version_files", "version_names", "small_files", "version_pruning"):
        monkeypatch.setattr(f"contrada.spark.{module}.open_uri", open_elsewhere)


def folder_of(uri: str) -> Path:
    return Path(uri.removeprefix("file://"))


def make_part(uri: str, text: str) -> StagedPart:
    """A file among the parts of a set."""
    part = StagedPart(hashlib.sha256(text.encode()).hexdigest(), 1, len(text))
    path = folder_of(uri) / "parts" / part.file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (START / 1e6, START / 1e6))
    return part


def make_draft(uri: str, text: str, *attributes: str, **changes: Any) -> Manifest:
    """A version of one part that reads some attributes."""
    described = SetDescription(attributes, (), (), 0, None, has_distances=False)
    return Manifest(
        number=0,
        moment=0,
        has_whole_ids=False,
        has_whole_subscribers=False,
        crs=None,
        parts=(make_part(uri, text),),
        description=replace(described, **changes),
    )


def publish(uri: str, draft: Manifest, lead_us: int = LEAD_US, retention_us: int = DAY_US) -> str:
    return add_version(uri, draft, find_newest(uri), lead_us, retention_us)


def count_calls(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, size: Callable[[Any], int]
) -> list[int]:
    """Let a function note the size of all that it returns."""
    inner, sizes = getattr(module, name), []

    def noting(*args: Any, **options: Any) -> Any:
        result = inner(*args, **options)
        sizes.append(size(result))
        return result

    monkeypatch.setattr(module, name, noting)
    return sizes


def test_the_version_of_a_moment_is_found_by_two_short_lists_of_thousands(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = HOUR_US // 120
    known = [VersionName(n + 1, START + n * step, f"{n:08x}") for n in range(4_000)]
    for name in known:
        path = folder_of(uri) / name.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert list_versions(uri) == known
    listed = count_calls(monkeypatch, version_names, "_list", len)
    for place in (0, 1, 2_345, 3_999):
        assert next(walk_versions(uri, known[place].moment + step - 1)) == known[place]
    assert next(walk_versions(uri)) == known[-1]
    assert len(listed) == 2 * 5
    assert max(listed) <= 120
    assert next(walk_versions(uri, START - 1), None) is None


def test_a_worker_looks_once_for_all_tasks_of_a_batch(
    uri: str, clock: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(uri, make_draft(uri, "a"))
    second = publish(uri, make_draft(uri, "b"))
    listed = count_calls(monkeypatch, version_names, "_list", len)
    for moment in (START + LEAD_US, START + LEAD_US + 1):
        batch = pa.record_batch({MOMENT: pa.array([str(moment)] * 3)})
        for _ in range(5):
            assert PublishedChoice(uri, EXACT).choose(batch).version == second
    assert len(listed) == 2 * 2


def test_an_hour_is_read_once_to_learn_what_is_needed(
    uri: str, clock: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pruned = count_calls(monkeypatch, version_files, "prune_versions", lambda _: 0)
    read = count_calls(monkeypatch, version_pruning, "read_manifest", lambda _: 1)
    for hour in range(5):
        read.clear()
        for number in range(10):
            clock[0] = START + hour * HOUR_US + number * 1_000_000
            publish(uri, make_draft(uri, f"{hour} {number}"))
        assert len(pruned) == hour + 1, "by the first version of each hour"
        assert len(read) <= 10 + 1, "the hour before, and the one that has begun"


def test_versions_go_with_their_files_once_they_have_not_held_for_long(
    uri: str, clock: list[int]
) -> None:
    shared = make_part(uri, "shared")
    for number in range(5):
        draft = make_draft(uri, f"own {number}")
        clock[0] = START + number * 10 * HOUR_US
        publish(uri, replace(draft, parts=(shared, *draft.parts)))
        for path in (folder_of(uri) / "parts").iterdir():
            os.utime(path, (START / 1e6 - 7_200,) * 2)
    assert [version.number for version in list_versions(uri)] == [2, 3, 4, 5]
    left = {path.read_text() for path in (folder_of(uri) / "parts").iterdir()}
    assert left == {"shared", "own 1", "own 2", "own 3", "own 4"}
    with pytest.raises(InvalidInput, match=r"version 1-.*, which held at 2027-.* is gone") as fault:
        find_manifest(uri, START + 1)
    first = list_versions(uri)[0]
    assert f"start the stream with '{uri}#{first}' until it has caught up" in str(fault.value)
    assert find_version(uri, str(first)).number == 2
    with pytest.raises(InvalidInput, match=rf"or no longer has it: .* kept are {first} to 5-"):
        find_version(uri, "1-12345678")


def test_an_hour_that_a_withdrawn_version_left_empty_does_not_end_the_one_before(
    uri: str, clock: list[int]
) -> None:
    publish(uri, make_draft(uri, "a"))
    publish(uri, make_draft(uri, "b"))
    (folder_of(uri) / "versions" / f"{START // HOUR_US + 1:08}").mkdir()
    version_pruning.prune_versions(uri, DAY_US, START)
    third = make_draft(uri, "c")
    publish(uri, third)
    for path in (folder_of(uri) / "parts").iterdir():
        os.utime(path, (0, 0))
    version_pruning.prune_versions(uri, DAY_US, START)
    assert (folder_of(uri) / "parts" / third.parts[0].file_name).exists()


def test_drafts_that_a_publisher_left_behind_go(uri: str, clock: list[int]) -> None:
    publish(uri, make_draft(uri, "a"))
    versions, parts = folder_of(uri) / "versions", folder_of(uri) / "parts"
    left = [versions / ".0.tmp", parts / ".1.tmp"]
    for path in left:
        path.touch()
        os.utime(path, (0, 0))
    young = versions / ".2.tmp"
    young.touch()
    os.utime(young, (START / 1e6, START / 1e6))
    publish(uri, make_draft(uri, "b"))
    assert [path.exists() for path in (*left, young)] == [False, False, True]


def test_what_cannot_be_pruned_leaves_the_version_that_was_added(
    uri: str, clock: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def is_out_of_reach(*_: object) -> None:
        raise Unavailable("the disk is gone")

    publish(uri, make_draft(uri, "a"))
    monkeypatch.setattr(version_files, "prune_versions", is_out_of_reach)
    assert publish(uri, make_draft(uri, "b")) == str(list_versions(uri)[-1])
    assert "could not be deleted: the disk is gone" in caplog.text


def race(uri: str, count: int) -> list[str]:
    """Let publishers add the next version all at once; return what became of each."""
    newest = find_newest(uri)
    drafts = [make_draft(uri, f"{newest and newest.number} {n}") for n in range(count)]
    barrier = Barrier(count)

    def run(draft: Manifest) -> str:
        barrier.wait()
        try:
            return add_version(uri, draft, newest, LEAD_US, DAY_US)
        except Unavailable:
            return ""

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, drafts))


def test_of_publishers_at_once_one_succeeds(uri: str) -> None:
    for number in range(1, 9):
        (done,) = [name for name in race(uri, 4) if name]
        assert [str(name) for name in list_versions(uri)][-1] == done
        assert [name.number for name in list_versions(uri)] == list(range(1, number + 1))


@pytest.mark.usefixtures("store")
def test_of_publishers_at_once_in_a_store_at_most_one_succeeds(uri: str) -> None:
    publish(uri, make_draft(uri, "first"))
    added = 1
    for _ in range(8):
        done = [name for name in race(uri, 4) if name]
        assert len(done) <= 1
        added += len(done)
        assert [name.number for name in list_versions(uri)] == list(range(1, added + 1))
    assert not list((folder_of(uri) / "versions").glob("*.claim"))


def test_two_never_both_succeed_even_where_nothing_keeps_them_apart(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(uri, make_draft(uri, "first"))
    monkeypatch.setattr(version_files, "_publishing", lambda _: nullcontext())
    monkeypatch.setattr(version_files, "prune_versions", lambda *_: None)
    for _ in range(8):
        before = len(list_versions(uri))
        done = [name for name in race(uri, 4) if name]
        assert len(done) <= 1
        assert [str(name) for name in list_versions(uri)[before:]] == done


@pytest.mark.usefixtures("store")
def test_a_claim_in_a_store_counts_for_a_minute(uri: str, clock: list[int]) -> None:
    publish(uri, make_draft(uri, "a"))
    claim = folder_of(uri) / "versions" / f"{7:016x}.claim"
    claim.touch()
    os.utime(claim, (START / 1e6 - 59,) * 2)
    with pytest.raises(Unavailable, match="another publisher is adding a version"):
        publish(uri, make_draft(uri, "b"))
    assert claim.exists()
    os.utime(claim, (START / 1e6 - 61,) * 2)
    publish(uri, make_draft(uri, "b"))
    assert not claim.exists()
    assert len(list_versions(uri)) == 2


def test_two_manifests_of_one_number_are_seen_and_the_later_is_withdrawn(
    uri: str, clock: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(uri, make_draft(uri, "a"))
    monkeypatch.setattr(version_files, "_publishing", lambda _: nullcontext())
    inner = version_files._check_files

    def be_overtaken(*args: Any) -> None:
        monkeypatch.setattr(version_files, "_check_files", inner)
        publish(uri, make_draft(uri, "quicker"))
        inner(*args)

    monkeypatch.setattr(version_files, "_check_files", be_overtaken)
    with pytest.raises(Unavailable, match="another publisher is adding a version"):
        publish(uri, make_draft(uri, "slower"))
    newest = find_newest(uri)
    assert newest is not None
    assert (newest.number, newest.parts) == (2, (make_part(uri, "quicker"),))
    assert len(list_versions(uri)) == 2


def test_a_file_that_another_publisher_deleted_is_not_named(uri: str, clock: list[int]) -> None:
    publish(uri, make_draft(uri, "a"))
    draft = make_draft(uri, "b")
    (folder_of(uri) / "parts" / draft.parts[0].file_name).unlink()
    with pytest.raises(Unavailable, match=r"has deleted .*\.contrada, .* publish again"):
        publish(uri, draft)
    assert len(list_versions(uri)) == 1


def test_an_old_file_that_is_staged_again_is_as_good_as_new(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.spark.staging.read_digest", lambda _: "d" * 64)
    path = tmp_path / "part"
    path.write_bytes(b"subscriptions")
    staged = folder_of(uri) / put(uri, path, 1).file_name
    for age_s, is_new in ((60, False), (7_200, True)):
        old = staged.stat().st_mtime - age_s
        os.utime(staged, (old, old))
        put(uri, path, 1)
        assert (staged.stat().st_mtime != old) == is_new


EVENTS = StructType().add("speed", IntegerType()).add("name", StringType())
COLUMNS = pa.schema([("speed", pa.float64()), ("name", pa.string())])
STRICT = StreamEvents(EVENTS, COLUMNS, "EPSG:3857", is_strict=True)


@pytest.mark.parametrize(
    ("attributes", "changes", "fault"),
    [
        (("speed", "heat"), {}, "reads 'heat', which no event has"),
        (("speed",), {"expectations": (("speed", ("TEXT",)),)}, "column 'speed' holds numbers"),
        (("speed",), {"has_distances": True}, "dwithin reads coordinates as longitude"),
    ],
)
def test_strict_events_stay_with_the_last_version_that_they_have_all_for(
    uri: str, clock: list[int], attributes: tuple[str, ...], changes: dict[str, Any], fault: str
) -> None:
    publish(uri, make_draft(uri, "old", "speed"))
    first = publish(uri, make_draft(uri, "fits", "speed"))
    for number in range(4):
        clock[0] += 20 * HOUR_US
        for path in (folder_of(uri) / "parts").iterdir():
            os.utime(path, (0, 0))
        publish(uri, make_draft(uri, f"more {number}", *attributes, **changes))
        now = clock[0] + LEAD_US
        assert find_manifest(uri, now, STRICT).version == first
        assert find_manifest(uri, now).number == number + 3
    assert first not in {str(name) for name in list_versions(uri)}, "as a version it is gone"
    left = {path.read_text() for path in (folder_of(uri) / "parts").iterdir()}
    assert "fits" in left
    assert "old" not in left
    clock[0] += 1
    again = publish(uri, make_draft(uri, "less", "name"))
    assert find_manifest(uri, clock[0] + LEAD_US, STRICT).version == again
    clock[0] += 1
    publish(uri, make_draft(uri, "nothing"))
    newest = find_newest(uri)
    assert newest is not None
    assert newest.fallbacks == (), "which all events have all for"


def test_events_that_no_version_is_for_are_told_why(uri: str, clock: list[int]) -> None:
    publish(uri, make_draft(uri, "a", "heat"))
    with pytest.raises(InvalidInput, match=r"version 1-.* reads 'heat', which no event has"):
        find_manifest(uri, START, STRICT)


def test_fallbacks_are_few(uri: str, clock: list[int]) -> None:
    names: list[str] = []
    for number in range(12):
        names.append(f"n{number}")
        publish(uri, make_draft(uri, f"{number}", *names))
    newest = find_newest(uri)
    assert newest is not None
    assert [older.number for older in newest.fallbacks] == list(range(11, 3, -1))


def test_a_task_takes_the_version_that_brought_events_to_it(uri: str, clock: list[int]) -> None:
    publish(uri, make_draft(uri, "a"))
    first = publish(uri, make_draft(uri, "b"), lead_us=0)
    clock[0] += 10
    publish(uri, make_draft(uri, "c"), lead_us=0)
    moment = pa.array([str(clock[0])])
    routed = pa.record_batch({MOMENT: moment, "__version": pa.array([2], pa.int32())})
    chosen = PublishedChoice(uri, EXACT).choose(routed)
    assert (chosen.version, chosen.number) == (first, 2)
    assert published_sets.find_manifest(uri, clock[0]).number == 3
    gone = pa.record_batch({MOMENT: moment, "__version": pa.array([7], pa.int32())})
    with pytest.raises(InvalidInput, match="version 7, which brought events here, is gone"):
        PublishedChoice(uri, EXACT).choose(gone)


def test_a_manifest_that_is_damaged_anywhere_is_refused(uri: str) -> None:
    publish(uri, make_draft(uri, "a"))
    (name,) = list_versions(uri)
    path = folder_of(uri) / name.file_name
    sound = path.read_bytes()
    for at in range(len(sound)):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        read_manifest.cache_clear()
        with pytest.raises(InvalidInput, match=f"{path.name}: is damaged"):
            find_newest(uri)
    path.write_bytes(sound)
    read_manifest.cache_clear()
    assert find_newest(uri) is not None
