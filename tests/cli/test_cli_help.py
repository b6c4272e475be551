"""`--help` says what a newcomer needs, and does no work, wherever something can be run."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from contrada.cli import main, make_parser
from contrada.matching.engines import ENGINES

ROOT = Path(__file__).parents[2]
ROOMS = ("src", "benchmarks", "examples", "tests")
SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix()
    for room in ROOMS
    for path in (ROOT / room).rglob("*.py")
    if room == "examples" or re.search(r'^if __name__ == "__main__":', path.read_text(), re.M)
)


def read_help(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["match", "publish", "serve", "explain", "demo", "simulate", "reproduce"]
)
def test_the_help_of_a_command_fits_a_terminal_and_has_defaults(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = read_help(capsys, command)
    assert max(map(len, said.splitlines())) <= 80
    options = re.findall(r"^  (-.*?)(?=^  -|^\S|\Z)", said, re.M | re.S)
    taking_values = [o for o in options if re.match(r"-[-\w]+(, --\w+)? [A-Za-z{]", o)]
    assert taking_values or command == "explain"
    for option in taking_values:
        assert "(default: " in " ".join(option.split()), option


def test_the_help_of_match_has_every_default_and_a_line_for_each_engine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = read_help(capsys, "match")
    options = re.findall(r"^  (-.*?)(?=^  -|^\S|\Z)", said, re.M | re.S)
    assert len(options) > 15
    for option in options:
        assert "default: " in " ".join(option.split()) or "--help" in option, option
    for name, line in ((kind.name, kind.line) for kind in ENGINES.values()):
        assert re.search(rf"^  {name} +{re.escape(line)}$", said, re.M)


@pytest.mark.parametrize("command", ["match", "publish", "serve", "key", "explain", "demo"])
def test_the_examples_of_a_command_are_commands(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = read_help(capsys, command).replace("\\\n", " ")
    examples = re.findall(
        rf"contrada ({command} [^-\[\n].*|(?:demo|serve) --.*)$", said.partition("example")[2], re.M
    )
    assert examples
    for example in examples:
        make_parser().parse_args(shlex.split(example))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_that_is_asked_for_help_gives_it_and_does_nothing_else(
    script: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str((ROOT / script).parent))
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")


@pytest.mark.parametrize("module", ["contrada", "contrada.cli"])
def test_the_command_can_be_run_as_a_module(
    module: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [module, "match", "--help"])
    monkeypatch.delitem(sys.modules, f"{module}.__main__", raising=False)  # of another test
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"{module}.__main__", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: contrada match")
