"""What documents do on a local Spark runs, in the session that tests share."""

import shlex
from pathlib import Path

import geopandas
import pytest

from contrada.cli import main
from documents import DOCUMENTS, SHELLS, blocks, make_demo_files, printed_by, python_of

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


@pytest.mark.filterwarnings("default")  # as they would be shown
@pytest.mark.parametrize("document", [d for d in DOCUMENTS if python_of(d, on_spark=True)])
def test_the_python_of_a_document_runs_on_spark_and_prints_what_it_says(
    document: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)  # others go on with it
    code = python_of(document, on_spark=True)
    exec(compile(code, document, "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out
    for expected in printed_by(code):
        assert expected in said
