"""systemd is told what it waits for, where there is one."""

import socket
from pathlib import Path

import pytest

from contrada.cli.service_notices import notify


@pytest.mark.parametrize("is_abstract", [False, True])
def test_a_state_reaches_whoever_the_variable_names(
    is_abstract: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"@contrada-{tmp_path}" if is_abstract else str(tmp_path / "notices")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{address[1:]}" if is_abstract else address)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify("READY=1")
        assert receiver.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "nowhere", "/no/such/socket"])
def test_without_anybody_to_tell_nothing_happens(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify("READY=1")
