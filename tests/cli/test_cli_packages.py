"""The command line where an optional package is missing: one line that says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

from contrada.cli import main

# Imports of these fail as if nothing but the required packages were installed.
BARE = """
import sys
for name in ("tqdm", "matplotlib", "pyogrio", "pyspark", "pandas", "geopandas"):
    sys.modules[name] = None
from contrada.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "zones.csv").write_text('id,wkt\na,"POLYGON((0 0,4 0,4 4,0 4,0 0))"\n')
    (tmp_path / "events.csv").write_text("id,lon,lat\n1,1,1\n")
    return [str(tmp_path / "zones.csv"), str(tmp_path / "events.csv")]


def run_bare(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", BARE, *args], capture_output=True, text=True, check=False
    )


def test_explain_needs_no_optional_package() -> None:
    done = run_bare("explain", "wind > 90")
    assert (done.returncode, done.stderr) == (0, "")
    assert "wind > 90" in done.stdout


def test_match_without_a_package_is_one_line_that_names_it(files: list[str]) -> None:
    done = run_bare("match", *files, "-o", "-")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("contrada: ")
    assert line.endswith("pip install tqdm")


@pytest.mark.parametrize(
    ("package", "args"),
    [
        ("tqdm", []),
        ("tqdm", ["--spark", "local[2]"]),
        ("matplotlib", ["--map", "map.png"]),
        ("matplotlib", ["--map", "map.PNG", "--spark", "local[2]"]),
    ],
)
def test_a_missing_package_is_named_before_any_file_is_read(
    package: str,
    args: list[str],
    files: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("contrada.cli.inputs.read_rows", None)
    assert main(["match", *files, *args]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"pip install {package}")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_page_needs_no_matplotlib(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["match", *files, "--map", str(tmp_path / "map.html")]) == 0
