"""Folders and checkpoints of streams, which belong to one query; no Spark is needed to see it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.fs
import pytest

from contrada.errors import InvalidInput
from contrada.spark import drafts
from contrada.spark.folder_sink import FolderSink
from contrada.spark.stream_checkpoints import CheckpointHold, DecidedBatch, StreamCheckpoint
from contrada.spark.stream_folders import MARKER, StreamFolder
from contrada.spark.stream_watch import StreamWatch
from contrada.spark.uris import as_uri

NAMES = ["part-0.parquet", "part-1.parquet"]


@pytest.fixture
def checkpoint(tmp_path: Path) -> StreamCheckpoint:
    return StreamCheckpoint.open(as_uri(tmp_path / "checkpoint"))


def claim(path: Path, checkpoint: StreamCheckpoint, *, can_be_new: bool = True) -> StreamFolder:
    return StreamFolder.claim(as_uri(path), checkpoint, can_be_new=can_be_new)


def write(folder: StreamFolder, *names: str) -> None:
    folder.begin()
    for name in names:
        with folder.open(name) as file:
            file.write(name.encode())


def listing(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


# Whose a folder is


def test_a_folder_is_marked_and_stays_with_its_checkpoint(
    tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    claim(tmp_path / "out", checkpoint)
    again = StreamCheckpoint.open(checkpoint.uri)
    assert again == checkpoint
    claim(tmp_path / "out", again, can_be_new=False)
    assert listing(tmp_path / "out") == [MARKER]


def test_a_folder_of_another_query_is_refused_and_its_checkpoint_named(
    tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    claim(tmp_path / "out", checkpoint)
    other = StreamCheckpoint.open(as_uri(tmp_path / "new"))
    message = r"out: is the folder of the query with the checkpoint .*/checkpoint; go on with that"
    with pytest.raises(InvalidInput, match=message):
        claim(tmp_path / "out", other)


def test_a_folder_that_another_query_took_meanwhile_is_not_written(
    tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    folder = claim(tmp_path / "out", checkpoint)
    marker = tmp_path / "out" / MARKER
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"token": "another"}))
    with pytest.raises(InvalidInput, match="is the folder of the query with"):
        folder.check()
    marker.unlink()
    with pytest.raises(
        InvalidInput, match=r"out: has no _contrada.json any more: the folder was removed"
    ):
        folder.check()


def test_a_folder_with_files_and_no_marker_is_refused(
    tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".hidden").touch()
    claim(tmp_path / "out", checkpoint)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "data.parquet").touch()
    with pytest.raises(
        InvalidInput, match="taken: has files that were not written by write_stream"
    ):
        claim(tmp_path / "taken", checkpoint)
    with pytest.raises(InvalidInput, match=r"data.parquet: is a file, not a folder"):
        claim(tmp_path / "taken" / "data.parquet", checkpoint)


@pytest.mark.parametrize("uri", ["file:///", "file:///dev", "s3://bucket?region=eu-south-1"])
def test_a_folder_that_has_nothing_beside_it_is_refused(
    uri: str, checkpoint: StreamCheckpoint
) -> None:
    with pytest.raises(InvalidInput, match="is the top of its file system, and drafts lie"):
        StreamFolder.claim(uri, checkpoint, can_be_new=True)


def test_a_query_that_has_begun_does_not_go_on_in_another_folder(
    tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    with pytest.raises(InvalidInput, match="has written batches to another folder"):
        claim(tmp_path / "other", checkpoint, can_be_new=False)


@pytest.mark.parametrize("content", ["", "[]", '{"format": 9, "token": "a"}', '{"format": 1}'])
def test_a_damaged_marker_is_refused_by_name(
    content: str, tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    claim(tmp_path / "out", checkpoint)
    (tmp_path / "out" / MARKER).write_text(content)
    with pytest.raises(InvalidInput, match=rf"{MARKER}: is (damaged|in format)"):
        claim(tmp_path / "out", checkpoint)


def test_the_checkpoint_of_a_query_of_spark_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    (tmp_path / "spark" / "offsets" / "0").touch()
    with pytest.raises(InvalidInput, match="of a query that write_stream has not started"):
        StreamCheckpoint.open(as_uri(tmp_path / "spark"))


def test_a_checkpoint_is_held_by_one_query_at_a_time(tmp_path: Path) -> None:
    class Query:
        isActive = True  # noqa: N815

    uri, query = as_uri(tmp_path / "checkpoint"), Query()
    hold = CheckpointHold.take(uri)
    with pytest.raises(InvalidInput, match="a query is running on this checkpoint"):
        CheckpointHold.take(f"{uri}/")
    hold.query = query  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match="a query is running on this checkpoint"):
        CheckpointHold.take(uri)
    query.isActive = False  # and nobody has heard of its end yet
    second = CheckpointHold.take(uri)
    hold.release()
    with pytest.raises(InvalidInput, match="a query is running on this checkpoint"):
        CheckpointHold.take(uri)
    second.release()
    CheckpointHold.take(uri).release()


def test_another_process_cannot_take_a_checkpoint_that_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = as_uri(tmp_path / "checkpoint")
    hold = CheckpointHold.take(uri)
    with monkeypatch.context() as patched:  # as another process, which has only the lock to see
        patched.setattr("contrada.spark.stream_checkpoints._holds", {})
        with pytest.raises(InvalidInput, match="a query is running on this checkpoint"):
            CheckpointHold.take(uri)
    hold.release()


# How a batch comes in place


@pytest.fixture(params=["renames folders", "moves files"])
def renames(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the file system renames folders or, as a bucket, does not."""
    if request.param == "moves files":
        monkeypatch.setattr(drafts, "_RENAMES_FOLDERS", ())
    return bool(request.param == "renames folders")


@pytest.mark.usefixtures("renames")
def test_a_batch_has_the_files_that_are_named_and_its_draft_goes(
    tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    folder = claim(tmp_path / "my%20 out", checkpoint)
    write(folder, *NAMES, "an attempt too many")
    assert listing(tmp_path / "my%20 out") == [MARKER]
    folder.put(7, NAMES)
    folder.clear()
    expected = [MARKER, "batch=7/_SUCCESS", *(f"batch=7/{name}" for name in NAMES)]
    assert listing(tmp_path / "my%20 out") == sorted(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "my%20 out"]


class Interrupted(Exception):
    """What ends an attempt."""


class InterruptedFileSystem:
    """A file system on which the n-th step is not taken any more."""

    def __init__(self, inner: Any, steps: int) -> None:
        self._inner = inner
        self._left = steps

    def __getattr__(self, name: str) -> Any:
        if name in {"move", "open_output_stream", "create_dir"}:
            if not self._left:
                raise Interrupted(name)
            self._left -= 1
        return getattr(self._inner, name)


@pytest.mark.parametrize("steps", range(6))
def test_what_an_attempt_has_left_anywhere_is_carried_through(
    steps: int,
    renames: bool,
    tmp_path: Path,
    checkpoint: StreamCheckpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = claim(tmp_path / "out", checkpoint)
    write(folder, *NAMES)
    taken = 4 + renames  # make a folder, move two files, mark it as complete, rename it
    with monkeypatch.context() as patched:
        system = InterruptedFileSystem(pyarrow.fs.LocalFileSystem(), steps)
        patched.setattr(
            "contrada.spark.stream_folders.open_uri", lambda uri: (system, str(tmp_path / "out"))
        )
        if steps < taken:
            with pytest.raises(Interrupted):
                folder.put(7, NAMES)
            assert not renames or listing(tmp_path / "out") == [MARKER]
        else:
            folder.put(7, NAMES)
    folder.put(7, NAMES)
    expected = [MARKER, "batch=7/_SUCCESS", *(f"batch=7/{name}" for name in NAMES)]
    assert listing(tmp_path / "out") == sorted(expected)


def test_a_draft_that_got_lost_is_not_passed_over(
    tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    folder = claim(tmp_path / "out", checkpoint)
    write(folder, NAMES[0])
    with pytest.raises(InvalidInput, match=r"part-1.parquet of batch 7 should be in .*\.out-"):
        folder.put(7, NAMES)
    assert listing(tmp_path / "out") == [MARKER]


@pytest.mark.usefixtures("renames")
def test_a_batch_that_its_reader_has_taken_away_is_not_asked_for_again(
    tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    folder = claim(tmp_path / "out", checkpoint)
    write(folder, *NAMES, "an attempt too many")
    folder.put(7, NAMES)
    shutil.rmtree(tmp_path / "out" / "batch=7")  # and the query was killed before it knew
    folder.put(7, NAMES)
    assert listing(tmp_path / "out") == [MARKER]
    folder.clear()
    with pytest.raises(InvalidInput, match=r"part-0.parquet, part-1.parquet of batch 7 should be"):
        folder.put(7, NAMES)  # nothing tells that it was ever there


def test_a_checkpoint_that_begins_anew_is_refused(
    tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    folder = claim(tmp_path / "out", checkpoint)
    seventh = DecidedBatch(7, (NAMES[0],))
    checkpoint.decide(seventh)
    checkpoint.settle(seventh, None)
    watch: Any = StreamWatch(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="would begin again with batch 0, but batch 7 has been"):
        FolderSink(checkpoint, folder, None, watch).recover()
    with pytest.raises(InvalidInput, match="would begin again with batch 7, but batch 7 has been"):
        FolderSink(replace(checkpoint, planned=6), folder, None, watch).recover()
    sink: Any = FolderSink(replace(checkpoint, planned=8), folder, None, watch)
    sink.recover()
    with pytest.raises(InvalidInput, match="would begin again with batch 6, but batch 7 has been"):
        sink(None, 6)


OLDER = "of other events: the checkpoint is older than the folder, as after restoring a copy"


@pytest.mark.usefixtures("renames")
def test_a_batch_is_not_taken_for_another_one_of_its_number(
    tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    folder = claim(tmp_path / "out", checkpoint)
    write(folder, *NAMES)
    folder.put(7, NAMES)
    folder.put(7, NAMES)  # by an attempt that had not known
    write(folder, "part-2.parquet")
    with pytest.raises(InvalidInput, match=f"has batch=7 already.* batch 7, {OLDER}"):
        folder.put(7, ["part-2.parquet"])


@pytest.mark.parametrize(("batch", "is_decided"), [(6, True), (6, False), (7, False)])
def test_a_batch_before_those_of_the_folder_is_refused(
    batch: int, is_decided: bool, tmp_path: Path, checkpoint: StreamCheckpoint
) -> None:
    folder = claim(tmp_path / "out", checkpoint)
    folder.refuse_later(0, is_decided=False)
    write(folder, *NAMES)
    folder.put(7, NAMES)
    folder.refuse_later(7, is_decided=True)
    folder.refuse_later(8, is_decided=False)
    message = f"out: has batch=7 already, and Spark would now make batch {batch}, {OLDER}"
    with pytest.raises(InvalidInput, match=message):
        folder.refuse_later(batch, is_decided=is_decided)


def test_a_checkpoint_knows_the_last_batch_and_whether_it_is_in_place(
    checkpoint: StreamCheckpoint, tmp_path: Path
) -> None:
    assert checkpoint.find_decided() is None
    third, tenth = DecidedBatch(3, ("a",)), DecidedBatch(10, (), ("b", "c"))
    checkpoint.decide(third)
    assert checkpoint.find_decided() == (third, False)
    checkpoint.settle(third, None)
    assert checkpoint.find_decided() == (third, True)
    checkpoint.decide(tenth)
    assert checkpoint.find_decided() == (tenth, False)
    checkpoint.settle(tenth, None)  # and ends before it forgets the one before
    assert checkpoint.find_decided() == (tenth, True)
    assert listing(tmp_path / "checkpoint" / "contrada") == ["10.placed", "query.json"]
