"""The commands of documents that go to a local Spark run, in the session that tests share."""

import shlex
from pathlib import Path

import geopandas
import pytest

from contrada.cli import main
from documents import DOCUMENTS, SHELLS, blocks, make_demo_files

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]

COMMANDS = [
    line
    for document in DOCUMENTS
    for block in blocks(document, *SHELLS)
    if block.needs_spark and not block.reason
    for line in block.code.splitlines()
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_on_a_local_spark_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_demo_files(tmp_path))
    words = shlex.split(command.replace("local[*]", "local[2]"))  # the session that runs
    assert words[0] == "contrada"
    assert main(words[1:]) == 0
    written = geopandas.read_parquet(tmp_path / words[words.index("-o") + 1])
    assert len(written) > 1_000
    assert {words[i + 1] for i, word in enumerate(words) if word == "--keep"} <= set(written)
