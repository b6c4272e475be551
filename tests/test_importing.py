"""`import contrada` is quick and silent: what few calls need is loaded when one needs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import contrada.client
from contrada.cli import COMMANDS

SLOW = (
    "numba pandas geopandas pyogrio pyproj pyspark matplotlib "
    "pyarrow.compute pyarrow.csv pyarrow.fs pyarrow.parquet"
)
NEEDED_LATER = {"asyncio", "httpx", "numba", "pyarrow", "shapely", "tqdm"}
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


def load(program: str) -> tuple[str, set[str]]:
    """Run a program in a process of its own; what it said, and all that it loaded."""
    last = "import atexit, sys; atexit.register(lambda: print(*sys.modules))\n"
    said = subprocess.run(
        [sys.executable, "-c", last + program], capture_output=True, text=True, check=True
    )
    text, _, modules = said.stdout.rstrip().rpartition("\n")
    return text, set(modules.split())


def test_help_loads_no_command_and_no_other_room() -> None:
    said, loaded = load("import contrada.cli; contrada.cli.main(['--help'])")
    assert all(summary in said for summary in COMMANDS.values())
    assert not {f"contrada.cli.{command}" for command in COMMANDS} & loaded
    assert {name.split(".")[1] for name in loaded if name.startswith("contrada.")} == {
        "cli",
        "errors",
    }
    assert not {*NEEDED_LATER, "numpy", "ssl"} & loaded


@pytest.mark.parametrize("command", ["serve", "key", "publish", "backup", "check"])
def test_the_help_of_what_talks_to_a_broker_loads_no_client(command: str) -> None:
    said, loaded = load(f"import contrada.cli; contrada.cli.main([{command!r}, '--help'])")
    assert f"usage: contrada {command}" in said
    assert not {*NEEDED_LATER, "contrada.client.blocking", "contrada.files"} & loaded


def test_a_webhook_is_verified_without_a_client() -> None:
    _, loaded = load("from contrada.client import read_webhook, verify_webhook")
    assert not {*NEEDED_LATER, "contrada.client.blocking"} & loaded


def test_each_public_name_of_the_client_is_loaded_when_it_is_asked_for() -> None:
    assert dir(contrada.client) == sorted(contrada.client.__all__)
    assert all(getattr(contrada.client, name) for name in contrada.client.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'server'"):
        _ = contrada.client.server


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
