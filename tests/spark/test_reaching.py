"""A master that cannot be reached is refused at once, in one line."""

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import contrada.spark
from contrada.cli import main
from contrada.errors import InvalidInput
from contrada.spark.reaching import refuse_unreachable

SESSIONS = sys.modules["contrada.spark.session"]  # whose name the function has taken


@pytest.fixture
def open_port() -> Iterator[int]:
    """A port at which somebody takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    """A port at which nobody does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize("scheme", ["spark://", "k8s://https://", "k8s://"])
def test_a_port_that_refuses_is_named(closed_port: int, scheme: str) -> None:
    address = f"127.0.0.1:{closed_port}"
    with pytest.raises(InvalidInput, match=rf"{scheme}{address}: {address}: Connection refused"):
        refuse_unreachable(f"{scheme}{address}")


def test_one_standby_that_answers_is_enough(open_port: int, closed_port: int) -> None:
    refuse_unreachable(f"spark://127.0.0.1:{closed_port},127.0.0.1:{open_port}")
    refuse_unreachable(f"spark://127.0.0.1:{open_port}")


def test_who_does_not_answer_is_not_waited_for() -> None:
    with pytest.raises(InvalidInput, match=r"no answer|unreachable|refused"):
        refuse_unreachable("spark://192.0.2.1:7077", wait_s=0.01)  # an address that nobody has


@pytest.mark.parametrize("master", ["local[2]", "local", "yarn", "local-cluster[1,1,1024]"])
def test_a_master_without_an_address_is_not_tried(master: str) -> None:
    refuse_unreachable(master)


@pytest.mark.parametrize("master", ["spark://host", "spark://:7077", "spark://host:many"])
def test_a_master_without_host_and_port_is_refused(master: str) -> None:
    with pytest.raises(InvalidInput, match="is no master of Spark: it has no host and port"):
        refuse_unreachable(master)


@pytest.mark.parametrize("command", ["match", "demo"])
def test_a_command_says_so_in_one_line(
    command: str,
    closed_port: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SESSIONS, "_running", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    Path("zones.csv").write_text("id,filter\na,x > 1\n")
    Path("events.csv").write_text("id,x\n1,2\n")
    master = f"spark://127.0.0.1:{closed_port}"
    args = ["zones.csv", "events.csv", "--spark"] if command == "match" else ["--master"]
    assert main([command, *args, master]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if "contrada: " in line]
    assert len(said) == 1
    assert "Connection refused" in said[0]


def test_a_session_is_refused(closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SESSIONS, "_running", lambda *_: None)
    with pytest.raises(InvalidInput, match="Connection refused"):
        contrada.spark.session(f"spark://127.0.0.1:{closed_port}")
