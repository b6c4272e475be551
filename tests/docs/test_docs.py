"""The documents are true: their code runs, their commands parse, their paths exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import contrada.cli
import contrada.limits

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
)
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+)`")
_LINK = re.compile(r"\]\((?!https?:)([\w./-]+)\)")
_EXPECTED = re.compile(r"# ([\[{].*)$", re.MULTILINE)


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text()
    return [code for kind, code in _BLOCK.findall(text) if kind == language]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d, "python")])
def test_the_python_of_a_document_runs_and_prints_what_it_says(
    document: str, tmp_path: Path
) -> None:
    code = "\n".join(blocks(document, "python"))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for expected in _EXPECTED.findall(code):
        assert expected in done.stdout


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d, "sh")])
def test_the_commands_of_a_document_exist(document: str) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in "".join(blocks(document, "sh")).splitlines():
        words = re.findall(r"\"[^\"]*\"|'[^']*'|[^\s]+", line.partition("  #")[0])
        words = [word.strip("\"'") for word in words]
        if words and words[0] == "make":
            assert words[1] in targets
        elif words:
            assert words[0] == "contrada"
            contrada.cli.make_parser().parse_args(words[1:])


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_paths_and_links_of_a_document_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text()
    for path in _PATH.findall(text):
        assert (ROOT / path).exists(), path
    for link in _LINK.findall(text):
        assert ((ROOT / document).parent / link).exists(), link


def test_the_table_of_limits_shows_every_limit_with_its_value() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+)", (ROOT / "docs/limits.md").read_text(), re.M)
    shown = {name: int(value.replace(",", "")) for name, value in rows}
    limits = {name: value for name, value in vars(contrada.limits).items() if name.isupper()}
    assert shown == limits
