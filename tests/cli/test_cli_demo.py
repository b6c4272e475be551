"""`contrada demo` before Spark starts: what it refuses, and the data that it writes."""

import sys
from pathlib import Path

import geopandas
import pyarrow as pa
import pytest
import shapely

from contrada.cli import demo, main
from contrada.errors import InvalidInput


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrada.spark.session", None)


def refusal(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """The one line of a refusal."""
    assert main(["demo", *args]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("contrada: ")
    return line


def test_a_folder_that_cannot_be_made_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for folder in ("/proc/nope", str(tmp_path / "file"), str(tmp_path / "file" / "in-a-file")):
        assert f"--folder {folder}: cannot be created" in refusal(capsys, "--folder", folder)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--seed", "-1"], ["--seed -1", "0 or more"]),
        (["--master", "yarm"], ["--master yarm", "local[*]"]),
        (["--conf", "spark.ui.enabled"], ["--conf spark.ui.enabled", "spark.NAME=VALUE"]),
    ],
)
def test_a_wrong_argument_is_refused_before_a_folder_is_made(
    args: list[str], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(capsys, "--folder", str(tmp_path / "new"), *args)
    for word in words:
        assert word in line
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("package", ["tqdm", "matplotlib"])
def test_a_package_that_is_missing_is_named_before_a_folder_is_made(
    package: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    line = refusal(capsys, "--folder", str(tmp_path / "new"))
    assert line.endswith(f"pip install {package}")
    assert not (tmp_path / "new").exists()


def test_the_data_of_the_demo_appear_together_or_not_at_all(tmp_path: Path) -> None:
    point = shapely.to_wkb(shapely.Point(1, 2))
    sites = pa.table({"id": ["a"], "geometry": [point]})
    events = pa.table({"id": ["x", "y"], "geometry": [point, None]})
    (tmp_path / demo.SITES_FILE).write_text("from another day")
    (tmp_path / demo.EVENTS_FILE).mkdir()
    with pytest.raises(InvalidInput, match=r"events\.geoparquet: is a folder"):
        demo.write_data(tmp_path, sites, events)
    assert (tmp_path / demo.SITES_FILE).read_text() == "from another day"
    assert len(list(tmp_path.iterdir())) == 2
    (tmp_path / demo.EVENTS_FILE).rmdir()
    demo.write_data(tmp_path, sites, events)
    for name, table in ((demo.SITES_FILE, sites), (demo.EVENTS_FILE, events)):
        written = geopandas.read_parquet(tmp_path / name)
        assert written.crs == "OGC:CRS84"
        assert written.id.to_list() == table["id"].to_pylist()
        assert list(shapely.to_wkb(written.geometry.to_numpy())) == table["geometry"].to_pylist()
