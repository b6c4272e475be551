"""`make setup` says how far it is, and nothing of what pip says unless it fails."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "install.py"


@pytest.fixture(scope="module")
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_progress_counts_what_is_fetched_and_then_what_is_unpacked(
    install: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "pip-1.dist-info").mkdir()
    progress = install.Progress(tmp_path)
    assert str(progress) == "fetching: 0 packages"
    progress.hear("Looking in links: /somewhere")
    progress.hear("Collecting numpy==2.4.6 (from -r requirements.lock (line 7))")
    progress.hear("  Downloading numpy-2.4.6-cp311-linux.whl (16 MB)")
    progress.hear("Collecting py4j>=0.10")
    assert str(progress) == "fetching: 2 packages, now py4j"
    progress.hear("Installing collected packages: numpy, py4j, pyspark")
    assert str(progress) == "unpacking: 0 of 3 packages"
    (tmp_path / "numpy-2.4.6.dist-info").mkdir()
    assert str(progress) == "unpacking: 1 of 3 packages"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Install into a folder, from nowhere but here."""
    return subprocess.run(
        [sys.executable, SCRIPT, "--no-index", "--target", folder / "site", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_pip_says_is_shown_only_where_it_fails(tmp_path: Path) -> None:
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("tiny.py", "")
        file.writestr(
            "tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0"
        )
        file.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any")
        file.writestr("tiny-1.0.dist-info/RECORD", "")
    good = run(tmp_path, str(wheel))
    assert good.returncode == 0, good.stderr
    assert (tmp_path / "site" / "tiny.py").exists()
    assert good.stdout == ""
    assert "installed in" in good.stderr
    assert "tiny" not in good.stderr
    bad = run(tmp_path, "no-such-package-anywhere")
    assert bad.returncode != 0
    assert "No matching distribution found for no-such-package-anywhere" in bad.stderr


def test_pip_gives_no_notices() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for setting in ("PIP_DISABLE_PIP_VERSION_CHECK := 1", "PIP_ROOT_USER_ACTION := ignore"):
        assert f"export {setting}" in makefile
