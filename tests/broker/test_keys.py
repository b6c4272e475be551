"""Keys: shown once, kept as digests, found in constant time, revoked for good."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contrada.broker.keys import KeyFile
from contrada.errors import Conflict, InvalidInput, NotFound

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "data")


def test_a_token_opens_what_its_key_allows(file: KeyFile) -> None:
    token = file.add("harbour", ["publish"], "north", NOW)
    key = file.read().find(token)
    assert key is not None
    assert (key.name, key.tenant, key.created) == ("harbour", "north", "2026-11-19T12:00:00+00:00")
    assert key.may("publish")
    assert not key.may("subscribe")
    assert not key.may("admin")


def test_admin_is_everything(file: KeyFile) -> None:
    token = file.add("root", ["admin"], "default", NOW)
    key = file.read().find(token)
    assert key is not None
    assert key.may("publish") and key.may("subscribe")


def test_the_file_has_no_token_and_is_the_owners_alone(file: KeyFile) -> None:
    token = file.add("harbour", ["publish"], "default", NOW)
    secret = token.split("_", 2)[2]
    assert len(secret) == 43, "256 bits"
    assert secret not in file.path.read_text()
    assert file.path.stat().st_mode & 0o077 == 0
    assert file.path.parent.stat().st_mode & 0o077 == 0


def test_a_token_of_which_one_letter_differs_opens_nothing(file: KeyFile) -> None:
    token = file.add("harbour", ["publish"], "default", NOW)
    keys = file.read()
    for place in range(len(token)):
        other = "x" if token[place] != "x" else "y"
        assert keys.find(f"{token[:place]}{other}{token[place + 1 :]}") is None
    for wrong in ("", "_", "__", token[:-1], f"{token} ", "contrada_", "\udcff", "é" * 9):
        assert keys.find(wrong) is None


def test_a_revoked_key_opens_nothing_and_its_name_may_be_used_again(file: KeyFile) -> None:
    first = file.add("harbour", ["publish"], "default", NOW)
    before = file.read().find(first)
    file.revoke("harbour")
    assert len(file.read()) == 0
    second = file.add("harbour", ["publish"], "default", NOW)
    assert file.read().find(first) is None
    assert before is not None
    assert before not in file.read()
    assert file.read().find(second) is not None


def test_every_change_is_another_state(file: KeyFile) -> None:
    states = [file.state]
    file.add("a", ["publish"], "default", NOW)
    states.append(file.state)
    file.revoke("a")
    states.append(file.state)
    assert states[0] is None
    assert len(set(states)) == 3


def test_a_name_is_taken_once_and_must_be_there_to_be_revoked(file: KeyFile) -> None:
    file.add("harbour", ["publish"], "default", NOW)
    with pytest.raises(Conflict, match="'harbour' already"):
        file.add("harbour", ["subscribe"], "default", NOW)
    with pytest.raises(NotFound, match="no key 'bay' in"):
        file.revoke("bay")


@pytest.mark.parametrize(
    ("name", "scopes", "tenant", "words"),
    [
        ("", ["publish"], "default", "a key's name"),
        ("a\nb", ["publish"], "default", "a key's name"),
        ("a", [], "default", "needs a scope; there are publish, subscribe, admin"),
        ("a", ["publish", "root"], "default", "scope 'root' is unknown"),
        ("a", ["publish"], "", "a tenant's name"),
        ("a", ["publish"], "..", "a tenant's name"),
        ("a", ["publish"], "../default", "a tenant's name"),
        ("a", ["publish"], "North", "a tenant's name"),
        ("a", ["publish"], "north\n", "a tenant's name"),
    ],
)
def test_what_no_key_could_be_is_refused_and_nothing_written(
    name: str, scopes: list[str], tenant: str, words: str, file: KeyFile
) -> None:
    with pytest.raises(InvalidInput, match=words):
        file.add(name, scopes, tenant, NOW)
    assert file.state is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "damaged"),
        ("[]", "damaged"),
        ('{"format": 1, "keys": [{}]}', "damaged"),
        ("[" * 100_000, "damaged"),
        ('{"format": 2, "keys": []}', "newer"),
    ],
)
def test_a_damaged_or_newer_file_is_refused_by_name(
    content: str, words: str, file: KeyFile
) -> None:
    file.add("a", ["publish"], "default", NOW)
    file.path.write_text(content)
    with pytest.raises(InvalidInput, match=rf"keys\.json: .*{words}"):
        file.read()


def test_a_tenant_in_the_file_that_leads_elsewhere_is_refused(file: KeyFile) -> None:
    file.add("a", ["publish"], "default", NOW)
    value = json.loads(file.path.read_text())
    value["keys"][0]["tenant"] = "../../etc"
    file.path.write_text(json.dumps(value))
    with pytest.raises(InvalidInput):
        file.read()
