"""`contrada key`: a key is shown once; lists have no secrets."""

import json
from pathlib import Path

import pytest

from contrada.broker.keys import KeyFile
from contrada.cli import main


def test_a_key_is_added_listed_and_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(tmp_path)]
    add = ["key", "add", "harbour", "--scope", "publish,subscribe", "--tenant", "north"]
    assert main([*add, *data]) == 0
    out, err = capsys.readouterr()
    (token,) = out.split()
    assert "cannot be shown again" in err
    key = KeyFile(tmp_path).read().find(token)
    assert key is not None
    assert key.scopes == ("publish", "subscribe")
    assert main(["key", "list", *data]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "SCOPES", "TENANT", "CREATED"]
    assert row.split()[:3] == ["harbour", "publish,subscribe", "north"]
    assert main(["key", "list", "--json", *data]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["keys"]
    assert listed.keys() == {"name", "id", "scopes", "tenant", "created"}
    assert main(["key", "revoke", "harbour", *data]) == 0
    assert len(KeyFile(tmp_path).read()) == 0


def test_scopes_may_be_given_one_by_one_and_the_folder_by_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTRADA_DATA", str(tmp_path / "data"))
    scopes = ["--scope", "subscribe", "--scope", "publish"]
    assert main(["key", "add", "a", *scopes, "--json"]) == 0
    token = json.loads(capsys.readouterr().out)["key"]
    key = KeyFile(tmp_path / "data").read().find(token)
    assert key is not None
    assert (key.scopes, key.tenant) == (("publish", "subscribe"), "default")


@pytest.mark.parametrize("words", [["list"], ["revoke", "a"]])
def test_a_folder_that_is_not_there_is_told_and_not_made(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "nosuch"
    assert main(["key", *words, "--data", str(folder)]) == 2
    assert capsys.readouterr().err == f"contrada: there is no folder {folder}\n"
    assert not folder.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "a", "--scope", "root"], "scope 'root' is unknown"),
        (["add", "a", "--scope", "publish", "--tenant", "../b"], "a tenant's name"),
        (["revoke", "b"], "there is no key 'b'"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_2(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["key", *words, "--data", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("contrada: ") and said in line
