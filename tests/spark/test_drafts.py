"""Folders that appear whole or not at all; no Spark is needed to see it."""

import errno
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pytest

from contrada.errors import InvalidInput, Unavailable
from contrada.spark import drafts
from contrada.spark.drafts import DraftFolder
from contrada.spark.geoparquet_writer import WriteTask
from contrada.spark.handshake import Handshake
from contrada.spark.part_files import FileShape
from contrada.spark.uris import as_uri, open_uri


def put(draft: DraftFolder, name: str, text: str) -> None:
    with draft.open(name) as file:
        file.write(text.encode())


def contents(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir()}


@pytest.fixture(params=["renames folders", "moves files"])
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for a folder, in a file system that renames folders or, as a bucket, does not."""
    if request.param == "moves files":
        monkeypatch.setattr(drafts, "_RENAMES_FOLDERS", ())
    return tmp_path / "my%20 folder"


def test_only_the_files_that_are_named_appear_and_nothing_stays_behind(target: Path) -> None:
    draft = DraftFolder.begin(as_uri(target), replace=False)
    put(draft, "first", "1")
    put(draft, "an attempt too many", "2")
    assert not target.exists()
    draft.finish(["first"])
    assert contents(target) == {"first": "1", "_SUCCESS": ""}
    assert list(target.parent.iterdir()) == [target]


def test_what_a_failing_task_has_written_is_gone(target: Path) -> None:
    draft = DraftFolder.begin(as_uri(target), replace=False)
    with pytest.raises(ZeroDivisionError), draft.open("half") as file:
        file.write(bytes(1 // 0))
    assert [path.name for path in target.parent.rglob("half")] == []
    draft.discard()
    assert list(target.parent.iterdir()) == []


def test_a_folder_is_replaced_only_where_asked_and_as_a_whole(target: Path) -> None:
    target.mkdir()
    (target / "old").write_text("0")
    with pytest.raises(InvalidInput, match=r'already exists; mode="overwrite" replaces it'):
        DraftFolder.begin(as_uri(target), replace=False)
    draft = DraftFolder.begin(as_uri(target), replace=True)
    put(draft, "new", "1")
    assert contents(target) == {"old": "0"}
    draft.finish(["new"])
    assert contents(target) == {"new": "1", "_SUCCESS": ""}
    assert list(target.parent.iterdir()) == [target]


def test_a_folder_that_came_in_between_is_not_touched(target: Path) -> None:
    draft = DraftFolder.begin(as_uri(target), replace=False)
    put(draft, "new", "1")
    target.mkdir()
    (target / "other").write_text("2")
    with pytest.raises(InvalidInput, match="already exists"):
        draft.finish(["new"])
    assert contents(target) == {"other": "2"}


def test_the_old_folder_comes_back_if_the_new_one_cannot_take_its_name(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").write_text("0")
    draft = DraftFolder.begin(as_uri(target), replace=True)
    with pytest.raises(InvalidInput, match="cannot be written"):
        draft.finish(["a file that no task has written"])
    filesystem, path = open_uri(as_uri(target))
    with pytest.raises(FileNotFoundError):
        draft._rename(filesystem, f"{path}-nowhere", path)
    assert contents(target) == {"old": "0"}


def test_a_file_and_an_unwritable_place_are_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "taken"
    file.write_text("")
    with pytest.raises(InvalidInput, match=r"taken: is a file"):
        DraftFolder.begin(as_uri(file), replace=True)
    with pytest.raises(InvalidInput, match=r"taken/below: cannot be written"):
        DraftFolder.begin(as_uri(file / "below"), replace=False)


def test_paths_become_uris_that_mean_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert as_uri("a b") == f"file://{tmp_path}/a%20b"
    assert as_uri("s3a://bucket/a") == "s3a://bucket/a"
    assert open_uri(as_uri("a b/"))[1] == f"{tmp_path}/a b"
    filesystem, path = open_uri("s3a://bucket/a?region=eu-south-1")
    assert isinstance(filesystem, pyarrow.fs.S3FileSystem)
    assert path == "bucket/a"
    with pytest.raises(InvalidInput, match="nonsense://a: cannot be opened"):
        open_uri("nonsense://a")


def test_a_task_without_room_for_its_file_blames_the_machine_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    draft = DraftFolder.begin(as_uri(tmp_path / "folder"), replace=False)
    schema = pa.schema([("geometry", pa.binary())])
    task = WriteTask(Handshake.here(), draft, FileShape(schema, "geometry"))
    monkeypatch.setattr("contrada.spark.part_files.GeoParquetWriter.write", is_full)
    with pytest.raises(Unavailable, match=r"folder: partition 3: cannot be written: .*No space"):
        task.write([pa.record_batch({"geometry": [b""]}, schema)], 3)
    (folder,) = tmp_path.iterdir()
    assert list(folder.iterdir()) == []
