"""TLS: what is spoken, and certificates that change while connections last."""

import socket
import ssl
from pathlib import Path

import pytest

from certificate_files import make_certificate, needs_openssl
from contrada.errors import InvalidInput, Unavailable
from contrada.server.certificates import Certificate
from contrada.server.guard_limits import GuardLimits
from guarded_app import Guarded, guarded, read_all
from hosted import hosted, wait_until

pytestmark = needs_openssl
LAST = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate)


def wrap(server: Guarded, context: ssl.SSLContext) -> ssl.SSLSocket:
    return context.wrap_socket(server.connect(), server_hostname="127.0.0.1")


def name_of(connection: ssl.SSLSocket) -> str:
    """The name in the certificate that the other end has shown."""
    shown = connection.getpeercert()
    assert shown is not None
    subject = shown["subject"]
    assert isinstance(subject, tuple)
    return str(subject[0][0][1])


def test_what_is_served_is_encrypted_and_tls_1_2_is_the_oldest(tmp_path: Path) -> None:
    paths = make_certificate(tmp_path, "first")
    certificate = Certificate(*paths)
    assert certificate.context.minimum_version == ssl.TLSVersion.TLSv1_2
    with guarded(tls=certificate.context) as server:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = trusting(paths[0])
            context.minimum_version = context.maximum_version = version
            with wrap(server, context) as connection:
                connection.sendall(LAST)
                assert read_all(connection).endswith(b"here")


def test_a_certificate_changes_while_connections_last(tmp_path: Path) -> None:
    paths = make_certificate(tmp_path, "first")
    first = trusting(paths[0])
    data = tmp_path / "data"
    files = {"tls_certificate": paths[0], "tls_key": paths[1]}
    with hosted(data, **files) as server:
        assert server.address.startswith("https://")
        port = int(server.address.rpartition(":")[2])

        def open_with(context: ssl.SSLContext) -> ssl.SSLSocket:
            plain = socket.create_connection(("127.0.0.1", port), 60)
            return context.wrap_socket(plain, server_hostname="127.0.0.1")

        with open_with(first) as old:
            make_certificate(tmp_path, "second")
            server.call("reload")
            with open_with(trusting(paths[0])) as new:
                assert [name_of(old), name_of(new)] == ["first", "second"]
            paths[1].write_text("this is no key")
            server.call("reload")  # which is refused, and nothing changes
            with open_with(trusting(paths[0])) as new:
                assert name_of(new) == "second"
            old.sendall(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert b"200 OK" in read_all(old)


def test_a_handshake_that_does_not_come_counts_and_ends(tmp_path: Path) -> None:
    limits = GuardLimits(header_s_max=0.2, connections_max=2)
    certificate = Certificate(*make_certificate(tmp_path, "first"))
    with guarded(limits, certificate.context) as server, server.connect(), server.connect():
        wait_until(lambda: server.server.guarded.count == 2)
        with server.connect() as third:
            assert read_all(third) == b""
        wait_until(lambda: server.server.guarded.count == 0)


def test_who_does_not_speak_tls_is_cut_off(tmp_path: Path) -> None:
    certificate = Certificate(*make_certificate(tmp_path, "first"))
    with guarded(tls=certificate.context) as server, server.connect() as connection:
        connection.sendall(LAST)
        assert b"200" not in read_all(connection)
        wait_until(lambda: server.server.guarded.count == 0)


def test_a_certificate_without_its_key_is_refused_by_its_place(tmp_path: Path) -> None:
    certificate, _ = make_certificate(tmp_path / "one", "first")
    _, key = make_certificate(tmp_path / "other", "second")
    with pytest.raises(InvalidInput, match=r"certificate\.pem with .*key values mismatch"):
        Certificate(certificate, key)
    with pytest.raises((InvalidInput, Unavailable), match="No such file"):
        Certificate(certificate, tmp_path / "none.pem")
    (tmp_path / "text.pem").write_text("hello")
    with pytest.raises(InvalidInput, match="not a certificate in PEM"):
        Certificate(tmp_path / "text.pem", key)
