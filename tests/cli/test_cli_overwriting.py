"""What is read is not written over: files, parts of folders, links, whatever the spelling."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contrada.cli import main

ZONES = 'id,wkt\na,"POLYGON((0 0,4 0,4 4,0 4,0 0))"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: subscriptions in a file and in a folder, events in a folder."""
    (tmp_path / "zones.csv").write_text(ZONES)
    (tmp_path / "elsewhere").mkdir()
    for part in ("events/part-0", "events/day=1/part-1", "elsewhere/linked"):
        path = tmp_path / f"{part}.parquet"
        path.parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(pa.table({"id": [1], "geometry": ["POINT (1 1)"]}), path)
    (tmp_path / "flat").mkdir()
    os.link(tmp_path / "events/part-0.parquet", tmp_path / "flat/part-0.parquet")
    (tmp_path / "flat/part-1.parquet").symlink_to(tmp_path / "elsewhere/linked.parquet")
    (tmp_path / "alias").symlink_to(tmp_path / "flat")
    (tmp_path / "again.csv").symlink_to(tmp_path / "zones.csv")
    os.link(tmp_path / "zones.csv", tmp_path / "hard.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("option", ["-o", "--quarantine"])
@pytest.mark.parametrize(
    "path",
    [
        "flat/part-0.parquet",
        "./flat/../flat/part-0.parquet",
        "{folder}/flat/part-0.parquet",
        "alias/part-0.parquet",
        "flat/part-1.parquet",
        "elsewhere/linked.parquet",
        "events/part-0.parquet",
        "flat/part-2.parquet",
        "alias/day=2/new.PARQUET",
        "zones.csv",
        "again.csv",
        "hard.csv",
    ],
)
@pytest.mark.parametrize("events", ["flat", "alias", "{folder}/flat/"])
def test_no_output_is_a_part_of_an_input(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str, path: str, events: str
) -> None:
    (folder / "flat/day=2").mkdir()
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    given = [text.format(folder=folder) for text in (events, path)]
    assert main(["match", "zones.csv", given[0], option, given[1]]) == 2
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
    line = capsys.readouterr().err
    assert "; choose another file" in line
    assert given[1] in line


def test_a_folder_of_subscriptions_is_not_written_over_either(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["match", "flat", "zones.csv", "-o", "flat/part-0.parquet"]) == 2
    assert "is also the input flat/part-0.parquet" in capsys.readouterr().err


def test_a_map_is_not_a_link_to_an_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "map.html").symlink_to(folder / "zones.csv")
    assert main(["match", "zones.csv", "flat", "--map", "map.html"]) == 2
    assert "--map map.html is also the input zones.csv" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["flat/pairs.csv", "flat/_pairs.parquet", "events/pairs.parquet"])
def test_what_is_not_read_with_a_folder_may_lie_in_it(
    folder: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["match", "zones.csv", "flat", "-o", path]) == 0
    assert main(["match", "zones.csv", "flat", "-o", path]) == 0


def test_two_outputs_are_not_one_file_by_a_hard_link(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.csv").write_text("from another day")
    os.link(folder / "a.csv", folder / "b.csv")
    assert main(["match", "zones.csv", "flat", "-o", "a.csv", "--quarantine", "b.csv"]) == 2
    assert "--quarantine b.csv is also --output" in capsys.readouterr().err
