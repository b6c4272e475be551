"""A master that cannot be used is refused at once, in one line."""

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import contrada.spark
from answering_port import SPARK_ANSWER, answering
from contrada.cli import main
from contrada.errors import InvalidInput, Unavailable
from contrada.spark.reaching import refuse_unusable

SESSIONS = sys.modules["contrada.spark.session"]  # whose name the function has taken


Serve = Callable[[bytes | None], int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Gives ports at which somebody answers, or says nothing."""
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(answering(answer))


@pytest.fixture
def closed_port() -> int:
    """A port at which nobody does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize("scheme", ["spark://", "k8s://https://", "k8s://"])
def test_a_port_that_refuses_is_named(closed_port: int, scheme: str) -> None:
    address = f"127.0.0.1:{closed_port}"
    with pytest.raises(Unavailable, match=rf"{scheme}{address}: {address}: Connection refused"):
        refuse_unusable(f"{scheme}{address}")


def test_one_standby_that_answers_is_enough(serve: Serve, closed_port: int) -> None:
    port = serve(SPARK_ANSWER)
    refuse_unusable(f"spark://127.0.0.1:{closed_port},127.0.0.1:{serve(None)},127.0.0.1:{port}")
    refuse_unusable(f"spark://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "no answer"),
        (b"", "it closed the connection, which a Spark master does not do"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "this is not a Spark master"),
    ],
)
def test_a_port_that_answers_but_is_not_a_spark_master_is_refused(
    answer: bytes | None, words: str, serve: Serve
) -> None:
    with pytest.raises(Unavailable, match=words):
        refuse_unusable(f"spark://127.0.0.1:{serve(answer)}", wait_s=0.2 if answer is None else 10)


@pytest.mark.parametrize("scheme", ["k8s://https://", "k8s://http://"])
def test_a_server_of_kubernetes_must_say_something(scheme: str, serve: Serve) -> None:
    refuse_unusable(f"{scheme}127.0.0.1:{serve(b'HTTP/1.1 401 Unauthorized')}")
    with pytest.raises(Unavailable, match="no answer"):
        refuse_unusable(f"{scheme}127.0.0.1:{serve(None)}", wait_s=0.2)


def test_yarn_is_refused_at_once_where_nothing_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("HADOOP_CONF_DIR", "")
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(Unavailable, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"):
        refuse_unusable("yarn")
    (tmp_path / "spark-env.sh").touch()  # which may set them
    refuse_unusable("yarn")
    (tmp_path / "spark-env.sh").unlink()
    refuse_unusable("yarn", {"spark.hadoop.yarn.resourcemanager.address": "somewhere:1"})


def test_who_does_not_answer_is_not_waited_for() -> None:
    with pytest.raises(Unavailable, match=r"no answer|unreachable|refused"):
        refuse_unusable("spark://192.0.2.1:7077", wait_s=0.01)  # an address that nobody has


@pytest.mark.parametrize("master", ["local[2]", "local", "local-cluster[1,1,1024]"])
def test_a_master_without_an_address_is_not_tried(master: str) -> None:
    refuse_unusable(master)


@pytest.mark.parametrize(
    "settings",
    [
        {"address": "{address}"},
        {"hostname": "127.0.0.1", "address": "${{yarn.resourcemanager.hostname}}:{port}"},
        {"ha.rm-ids": "a, b", "address.a": "{address}", "address.b": "{address}"},
    ],
)
def test_yarn_is_looked_for_where_its_settings_say(
    settings: dict[str, str],
    closed_port: int,
    serve: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)

    def write_settings(port: int) -> None:
        (tmp_path / "yarn-site.xml").write_text(describe(settings, port))

    write_settings(closed_port)
    with pytest.raises(Unavailable, match=rf"at yarn: 127.0.0.1:{closed_port}: Connection refus"):
        refuse_unusable("yarn")
    write_settings(serve(None))
    refuse_unusable("yarn")
    (tmp_path / "yarn-site.xml").write_text("<configuration>")
    refuse_unusable("yarn")  # Hadoop will say what it makes of that


def describe(settings: dict[str, str], port: int) -> str:
    """The settings of YARN, as Hadoop writes them."""
    properties = [
        f"<property><name>yarn.resourcemanager.{name}</name><value>{value}</value></property>"
        for name, text in settings.items()
        for value in [text.format(address=f"127.0.0.1:{port}", port=port)]
    ]
    return f"<configuration>{''.join(properties)}</configuration>"


@pytest.mark.parametrize("master", ["spark://host", "spark://:7077", "spark://host:many"])
def test_a_master_without_host_and_port_is_refused(master: str) -> None:
    with pytest.raises(InvalidInput, match="is not a Spark master: it has no host and port"):
        refuse_unusable(master)


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
    with pytest.raises(Unavailable, match="Connection refused"):
        contrada.spark.session(f"spark://127.0.0.1:{closed_port}")
