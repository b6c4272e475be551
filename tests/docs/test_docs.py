"""The documents are true: their code runs, their commands parse, their paths exist."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import contrada.cli
import contrada.limits
from documents import DOCUMENTS, ROOT, SHELLS, blocks, make_demo_files
from served_broker import serving

_PATH = re.compile(r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+)`")
_LINK = re.compile(r"\]\((?!https?:)([\w./-]+)\)")
_EXPECTED = re.compile(r"# ([\[{].*)$", re.MULTILINE)
BROKER = "localhost:8080"  # which documents talk to; a new one stands in for it
_OTHER_LANGUAGES = {"", "dockerfile"}  # of blocks that no test could run


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What clients in documents find: a broker that is new."""
    with serving(tmp_path / "contrada-data") as served:
        yield {**os.environ, "CONTRADA_URL": served.url}


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d, "python")])
def test_the_python_of_a_document_runs_and_prints_what_it_says(
    document: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    code = "\n".join(block.code for block in blocks(document, "python") if not block.reason)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for expected in _EXPECTED.findall(code):
        assert expected in done.stdout


@pytest.fixture(scope="session")
def after_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `make demo` seems to have run."""
    return make_demo_files(tmp_path_factory.mktemp("after-demo"))


def _runs_here(document: str) -> list[str]:
    """What a shell runs of a document, block by block."""
    found = [block for block in blocks(document, *SHELLS) if not block.reason]
    return [block.code for block in found if not block.needs_spark]


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if _runs_here(d)])
def test_the_shell_commands_of_a_document_run(
    document: str, after_demo: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = tmp_path / "work"
    shutil.copytree(after_demo, folder)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    address = environment["CONTRADA_URL"].removeprefix("http://")
    for block in _runs_here(document):
        code = block.replace(BROKER, address)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code],
            cwd=folder,
            env=environment | {"PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
        for written in re.findall(r"(?:-o|--map|--animate|--dump) ([\w./-]+)", code):
            assert (folder / written).stat().st_size > 0


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_block_of_a_document_is_run_or_says_why_not(document: str) -> None:
    for block in blocks(document):
        assert block.language in {*SHELLS, "python", *_OTHER_LANGUAGES}, block.code
    text = (ROOT / document).read_text()
    marks = text.count("\n<!-- not run in tests: ")
    assert marks == sum(block.reason is not None for block in blocks(document))


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d, *SHELLS)])
def test_the_commands_of_a_document_exist(document: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for block in blocks(document, *SHELLS):
        subprocess.run(["bash", "-n", "-c", block.code], check=True)
        for line in block.code.splitlines():
            words = (
                shlex.split(line, comments=True) if line.startswith(("make", "contrada")) else []
            )
            if words[:1] == ["make"]:
                assert words[1] in targets
                assert block.reason is not None
            elif words:
                contrada.cli.make_parser().parse_args(words[1:])


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_paths_and_links_of_a_document_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text()
    for path in _PATH.findall(text):
        assert (ROOT / path).exists(), path
    for link in _LINK.findall(text):
        assert ((ROOT / document).parent / link).exists(), link


def test_a_file_named_without_its_room_lies_in_the_room_named_last() -> None:
    room = None
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for path, name in re.findall(r"`(?:(src/[\w./-]+)|([a-z_]+\.py))`", text):
        if path:
            room = ROOT / path if (ROOT / path).is_dir() else (ROOT / path).parent
        else:
            assert room is not None and (room / name).exists(), f"{name} in {room}"


def test_the_table_of_limits_shows_every_limit_with_its_value() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+)", (ROOT / "docs/limits.md").read_text(), re.M)
    shown = {name: int(value.replace(",", "")) for name, value in rows}
    limits = {name: value for name, value in vars(contrada.limits).items() if name.isupper()}
    assert shown == limits
