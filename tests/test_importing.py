"""`import contrada` is quick and silent: what few calls need is loaded when one needs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contrada.cli import COMMANDS

SLOW = (
    "numba pandas geopandas pyogrio pyproj pyspark matplotlib "
    "pyarrow.compute pyarrow.csv pyarrow.fs pyarrow.parquet"
)
LISTED = f"""
import atexit, sys
atexit.register(lambda: print("loaded:", *set({SLOW!r}.split()) & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "program",
    ["import contrada", "import contrada.cli; contrada.cli.main(['--help'])"],
    ids=["import", "help"],
)
def test_nothing_slow_is_loaded_and_no_folder_made(program: str, tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", LISTED + program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert said.stdout.splitlines()[-1] == "loaded:"
    assert said.stderr == ""
    assert not list(tmp_path.iterdir())


def test_help_loads_no_command_and_no_other_room() -> None:
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('loaded:', *sorted(sys.modules)))\n"
        "import contrada.cli; contrada.cli.main(['--help'])"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = said.stdout.splitlines()[-1].split()[1:]
    assert not {"asyncio", "httpx", "numpy", "pyarrow", "shapely", "ssl", "tqdm"}.intersection(
        loaded
    )
    commands = [f"contrada.cli.{command}" for command in COMMANDS]
    assert not set(commands).intersection(loaded)
    ours = {name.split(".")[1] for name in loaded if name.startswith("contrada.")}
    assert ours == {"cli", "errors"}
    assert all(summary in said.stdout for summary in COMMANDS.values())


def test_a_command_does_not_load_the_others() -> None:
    program = (
        "import sys; from contrada.cli import main; main(['explain', 'a = 1']); "
        "print('loaded:', *(n for n in ('demo', 'simulate', 'reproduce') "
        "if f'contrada.cli.{n}' in sys.modules), 'contrada.simulation' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines()[-1] == "loaded: False"
