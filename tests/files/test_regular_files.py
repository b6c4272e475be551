"""Paths that lead to no file: pipes, sockets, devices, and links that go round or nowhere.

Nobody writes to the pipes here: whoever opens one waits for ever.
"""

import errno
import os
import socket
from pathlib import Path

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada import Matcher
from contrada.cli import main
from contrada.errors import InvalidInput, Unavailable
from contrada.files import read_rows
from contrada.files.output import open_output

SUFFIXES = [".csv", ".geojson", ".jsonl", ".parquet", ".contrada", ".shp", ".gpkg", ".gml", ".zip"]
every_suffix = pytest.mark.parametrize("suffix", SUFFIXES)
pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")


def make_loop(path: Path) -> None:
    path.with_suffix(".there").symlink_to(path)
    path.symlink_to(path.with_suffix(".there"))


@every_suffix
def test_a_pipe_is_refused_with_what_to_do(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"events{suffix}"
    os.mkfifo(path)
    words = rf"events{suffix}: is a pipe, not a regular file.*; save its contents to a file"
    with pytest.raises(InvalidInput, match=words):
        read_rows(path)


@every_suffix
def test_a_link_that_goes_round_is_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"events{suffix}"
    make_loop(path)
    with pytest.raises(InvalidInput, match=rf"events{suffix}: cannot be read: Too many levels"):
        read_rows(path)


def test_sockets_and_devices_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("events.csv")
        with pytest.raises(InvalidInput, match=r"events\.csv: is a socket, not a regular file"):
            read_rows("events.csv")
    (tmp_path / "null.csv").symlink_to("/dev/null")
    with pytest.raises(InvalidInput, match=r"null\.csv: is a device, not a regular file"):
        read_rows("null.csv")


def test_a_pipe_is_no_snapshot_to_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "saved")
    with pytest.raises(InvalidInput, match=r"saved: is a pipe"):
        Matcher.open(tmp_path / "saved")


@pytest.mark.parametrize("suffix", [".dbf", ".shx", ".prj"])
def test_a_pipe_beside_a_shapefile_is_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "a.shp"
    geopandas.GeoDataFrame({"n": [1]}, geometry=[shapely.Point(1, 1)], crs=4326).to_file(path)
    path.with_suffix(suffix).unlink()
    os.mkfifo(path.with_suffix(suffix))
    with pytest.raises(InvalidInput, match=rf"a\{suffix}: is a pipe"):
        read_rows(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of two parts, of which one lies in a folder."""
    folder = tmp_path / "events.parquet"
    for inside in ("day=1", "day=2"):
        (folder / inside).mkdir(parents=True)
        pq.write_table(pa.table({"n": [1]}), folder / inside / "a.parquet")
    return folder


@pytest.mark.parametrize("name", ["day=1/b.parquet", "b.parquet", "day=3", "day=1/b"])
def test_a_link_in_a_folder_that_leads_nowhere_is_refused(name: str, folder: Path) -> None:
    (folder / name).symlink_to(folder / "gone")
    with pytest.raises(InvalidInput, match=rf"{name}: is a broken link: No such file"):
        read_rows(folder)
    (folder / name).unlink()
    (folder / name).symlink_to(folder / name)
    with pytest.raises(InvalidInput, match=rf"{name}: is a broken link: Too many levels"):
        read_rows(folder)


def test_what_is_hidden_in_a_folder_is_not_followed(folder: Path) -> None:
    (folder / "_latest.parquet").symlink_to(folder / "gone")
    (folder / ".cache").symlink_to(folder)
    assert read_rows(folder).count == 2


def test_a_link_to_another_folder_is_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "day=2").rename(tmp_path / "elsewhere")
    (folder / "day=2").symlink_to(tmp_path / "elsewhere")
    rows = read_rows(folder)
    table = pa.Table.from_batches(list(rows.batches()))
    assert table["day"].to_pylist() == [1, 2]


@pytest.mark.parametrize("target", [".", "day=1"])
def test_a_link_to_a_folder_that_is_read_anyway_is_refused(target: str, folder: Path) -> None:
    (folder / "day=3").symlink_to(folder / target)
    with pytest.raises(InvalidInput, match=r"is the same folder as .*, reached through a link"):
        read_rows(folder)


def test_a_pipe_in_a_folder_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "day=1" / "b.parquet")
    with pytest.raises(InvalidInput, match=r"events\.parquet: day=1/b\.parquet: is a pipe"):
        read_rows(folder)


def test_a_folder_that_may_not_be_listed_is_not_passed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_folder = os.scandir

    def deny(path: str) -> object:
        if str(path).endswith("day=2"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return list_folder(path)

    monkeypatch.setattr(os, "scandir", deny)
    with pytest.raises(Unavailable, match=r"day=2: cannot be read: Permission denied"):
        read_rows(folder)


def test_the_layer_of_a_format_without_layers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("id,n\n1,2\n")
    with pytest.raises(InvalidInput, match=r"e\.csv\|layername=a: this format has no layers"):
        read_rows(f"{tmp_path}/e.csv|layername=a")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("make", [os.mkfifo, make_loop])
def test_the_command_says_so_in_one_line(
    make: object,
    suffix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zones.csv").write_text("id,wkt\n1,POINT(1 1)\n")
    assert callable(make)
    make(Path(f"odd{suffix}"))
    for inputs in (["zones.csv", f"odd{suffix}"], [f"odd{suffix}", "zones.csv"]):
        assert main(["match", *inputs, "-o", "pairs.csv"]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"contrada: odd{suffix}: ")
        assert error.count("\n") == 1


def test_what_is_written_where_a_link_goes_round_is_a_file(tmp_path: Path) -> None:
    make_loop(tmp_path / "dump.json")
    arguments = ["simulate", "--peers", "3", "--events", "1", "--dump", str(tmp_path / "dump.json")]
    assert main(arguments) == 0
    assert any(path.is_file() for path in tmp_path.iterdir())


def test_a_pipe_and_a_device_are_not_replaced_by_what_is_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "null.csv").symlink_to("/dev/null")
    for name, words in (("pipe.csv", r"pipe\.csv: is a pipe"), ("null.csv", "/dev/null: is a dev")):
        with pytest.raises(InvalidInput, match=words):
            open_output(tmp_path / name, pa.schema([("n", pa.int64())]))
        with pytest.raises(InvalidInput, match=words):
            Matcher().save(tmp_path / name)
    assert (tmp_path / "pipe.csv").is_fifo()
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("inside", ["day=1/a.parquet", "day=1/b.parquet"])
def test_a_link_in_a_folder_to_a_file_that_is_read_anyway_is_refused(
    inside: str, folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes((folder / "day=1/a.parquet").read_bytes())
    (folder / "day=1/b.parquet").symlink_to(elsewhere)
    assert read_rows(folder).count == 3
    (folder / "day=2/c.parquet").symlink_to(folder / inside)
    with pytest.raises(InvalidInput, match=rf"c\.parquet: is the same file as .*{inside}, reached"):
        read_rows(folder)


def test_an_empty_name_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"id": [1], "filter": ["a > 1"]}), "found.parquet")
    matcher = Matcher()
    for use in (read_rows, matcher.add_many, matcher.match_many, matcher.save, Matcher.open):
        with pytest.raises(InvalidInput, match="'' is not a path: it is empty"):
            use("")
    assert read_rows(".").count == 1


@pytest.mark.parametrize("place", ["/", ".", ".."])
def test_no_snapshot_takes_the_place_of_a_folder(place: str) -> None:
    with pytest.raises(InvalidInput, match=r"^/.*: cannot be written: it is a folder$"):
        Matcher().save(place)


def test_what_cannot_be_written_is_named_without_a_draft(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as told:
        Matcher().save(tmp_path / "nowhere" / "x.contrada")
    where = f"{tmp_path}/nowhere/x.contrada"
    assert str(told.value) == f"{where}: cannot be written: No such file or directory"
