"""A broker whose certificate only some know: whom a client and a command trust."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from answering_port import answering
from certificate_files import make_certificate, needs_openssl
from contrada.cli import main
from contrada.client import Client, retrying
from contrada.client.connecting import Connecting
from contrada.errors import InvalidInput, Unavailable
from served_broker import ServedBroker, serving

NO_FILE = "no certificates to trust can be read"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return make_certificate(tmp_path / "tls", "broker")[0]


@pytest.fixture
def private(tmp_path: Path, certificate: Path) -> Iterator[ServedBroker]:
    files = {"tls_certificate": str(certificate), "tls_key": str(certificate.parent / "key.pem")}
    with serving(tmp_path / "data", **files) as served:
        yield served


@pytest.fixture
def events(tmp_path: Path) -> str:
    path = tmp_path / "events.ndjson"
    path.write_text('{"n": 1}\n')
    return str(path)


@needs_openssl
@pytest.mark.parametrize("take", [str, Path, lambda path: ssl.create_default_context(cafile=path)])
def test_a_private_certificate_is_trusted_by_its_file(
    private: ServedBroker, certificate: Path, take: Any
) -> None:
    with Client(private.url, verify=take(certificate)) as client:
        assert client.publish({"n": 1}).accepted == 1


@needs_openssl
def test_a_private_certificate_is_trusted_by_the_environment(
    private: ServedBroker, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with Client(private.url) as client:
        assert client.publish({"n": 1}).accepted == 1


@needs_openssl
def test_a_certificate_that_nobody_knows_is_refused_at_once(private: ServedBroker) -> None:
    with Client(private.url) as client, pytest.raises(Unavailable) as refused:
        client.publish({"n": 1})
    assert "certificate" in str(refused.value)
    assert "verify=" in str(refused.value)
    assert "--cacert" in str(refused.value)


def test_what_does_not_speak_tls_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting mends nothing: the request is sent once."""
    monkeypatch.setattr(retrying, "_plan_next", None)  # which says when it is sent again
    with (
        answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port,
        Client(f"https://127.0.0.1:{port}") as client,
        pytest.raises(Unavailable) as refused,
    ):
        client.publish({"n": 1})
    assert "does not speak TLS" in str(refused.value)
    assert "http://" in str(refused.value)


@needs_openssl
def test_the_command_publishes_to_a_broker_with_a_private_certificate(
    private: ServedBroker, certificate: Path, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["publish", events, "--to", private.url]) == 2
    assert main(["publish", events, "--to", private.url, "--cacert", str(certificate)]) == 0
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert main(["publish", events, "--to", private.url]) == 0


@pytest.mark.parametrize("url", ["https://broker.example", "http://127.0.0.1:1"])
def test_a_file_without_certificates_is_refused_by_name(tmp_path: Path, url: str) -> None:
    for path in (tmp_path / "missing.pem", tmp_path / "empty.pem"):
        with pytest.raises(InvalidInput, match=f"{path.name}: {NO_FILE}"):
            Client(url, verify=path)
        (tmp_path / "empty.pem").touch()


def test_the_environment_is_blamed_for_its_own_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    for url in ("https://broker.example", "https://127.0.0.1:1"):
        with pytest.raises(InvalidInput, match=f"SSL_CERT_FILE.*missing.pem: {NO_FILE}"):
            Client(url)
    Client("http://127.0.0.1:1").close()
    Client("http://broker.example").close()


def test_a_command_with_a_file_that_is_not_there_sends_nothing(
    events: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["publish", events, "--cacert", "missing.pem"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"missing.pem: {NO_FILE}" in line


def test_nothing_is_verified_only_where_that_is_asked_for() -> None:
    context = Connecting.read("https://broker.example", None, 1, False).verify
    assert isinstance(context, bool) and not context
    context = Connecting.read("https://broker.example", None, 1, True).verify
    assert isinstance(context, ssl.SSLContext)
    assert context.verify_mode == ssl.CERT_REQUIRED
