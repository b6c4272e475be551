"""`make test` ends with what was not tested, and why, on one process or on two."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CASES = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_a(n):
    pytest.skip("no layers here" if n else "no paper here")

@pytest.mark.skipif(True, reason="no layers here")
def test_b():
    pass

@pytest.mark.parametrize("n", [])
def test_c(n):
    pass

@pytest.mark.soak
def test_d():
    pass

def test_e():
    pass
"""


def last_lines(folder: Path, *options: str) -> list[str]:
    """The last lines of a run of pytest in a folder with our hooks."""
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = soak\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return [line for line in done.stdout.splitlines() if line.startswith(("skipped", "left out"))]


@pytest.mark.parametrize("processes", ["0", "2"])
def test_each_reason_has_one_line_with_its_count(tmp_path: Path, processes: str) -> None:
    (tmp_path / "test_cases.py").write_text(CASES)
    assert last_lines(tmp_path, "-n", processes, "-m", "not soak") == [
        "skipped 3: no layers here",
        "skipped 1: no paper here",
        "skipped 1: there are no cases for it",
        "left out 1: -m 'not soak'",
    ]
