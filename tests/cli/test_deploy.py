"""The files of `deploy/` name commands and settings that there are."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from contrada.cli import make_parser
from contrada.server.settings import read_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT, CONTAINER = DEPLOY / "contrada.service", DEPLOY / "Containerfile"


def test_the_settings_are_settings() -> None:
    text = (DEPLOY / "contrada.toml").read_text()
    found = read_settings({}, str(DEPLOY / "contrada.toml"), environment={})
    for name in re.findall(r"^#? ?(\w+) = ", text, re.M):
        assert name in found.sources, name


def test_the_unit_starts_a_command_with_variables_that_are_read() -> None:
    unit = UNIT.read_text()
    command = re.search(r"^ExecStart=\S+/contrada (.*)$", unit, re.M)
    assert command is not None
    assert make_parser().parse_args(shlex.split(command[1])).config == "/etc/contrada/contrada.toml"
    variables = dict(re.findall(r"(CONTRADA_\w+)=(\S+)", unit))
    assert read_settings({}, environment=variables).data == Path("/var/lib/contrada")
    for words in re.findall(r"^# .*bin/contrada (key .*)$", unit, re.M):
        make_parser().parse_args(shlex.split(words))


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not on this machine"
)
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    text = re.sub(
        r"^ExecStart=\S+", f"ExecStart={shutil.which('true')}", UNIT.read_text(), flags=re.M
    )
    copy = tmp_path / UNIT.name
    copy.write_text(text.replace("User=contrada", "User=root"))
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert said == []


def test_the_container_runs_a_command_with_variables_that_are_read() -> None:
    text = CONTAINER.read_text().replace("\\\n", " ")
    variables = dict(re.findall(r"(CONTRADA_\w+)=(\S+)", text))
    found = read_settings({}, environment=variables)
    assert (found.data, found.host) == (Path("/data"), "0.0.0.0")
    command = re.search(r"^CMD (\[.*\])$", text, re.M)
    assert command is not None
    make_parser().parse_args(json.loads(command[1]))
    for words in re.findall(r"^# .* contrada (key .*)$", text, re.M):
        make_parser().parse_args(shlex.split(words))
    root = DEPLOY.parent
    for source in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M):
        assert all((root / name).exists() for name in source.split())
