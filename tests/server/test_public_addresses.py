"""Which addresses are public, and that only what was checked is connected to."""

import asyncio
import contextlib
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address
from pathlib import Path

import httpcore
import pytest

from contrada.errors import InvalidInput
from contrada.server.public_addresses import (
    AddressRules,
    CheckedConnections,
    NameLookups,
    is_public,
)

LOOPBACK = AddressRules.read(["127.0.0.0/8"])
NOBODY = AddressRules()


@pytest.mark.parametrize(
    "text",
    """0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.0.1
    168.63.129.16 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.9 192.0.0.192
    192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1
    224.0.1.1 239.255.255.255 240.0.0.1 255.255.255.255
    :: ::1 ::7f00:1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:808:808 64:ff9b::7f00:1
    64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1
    2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:808:808::1 3ffe::1 3fff::1 4000::1 5f00::1
    2a00:1450::5efe:7f00:1 2a00:1450::200:5efe:a00:1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0
    2a00:1450::1%eth0 fec0::1 feff::1 ff02::1 ff0e::1 ffff::1""".split(),
)
def test_what_leads_elsewhere_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    """1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
    168.63.129.17 169.253.0.1 172.15.0.1 172.32.0.1 192.0.1.1 192.167.1.1 198.17.0.1 198.20.0.1
    203.0.114.1 223.255.255.255
    2001:200::1 2001:4860:4860::8888 2003::1 2400:cb00::1 2600::1 2606:4700:4700::1111 2a00:1450::1
    """.split(),
)
def test_what_belongs_to_somebody_on_the_internet_is_public(text: str) -> None:
    assert is_public(ip_address(text))


def test_networks_that_are_allowed_may_be_connected_to() -> None:
    rules = AddressRules.read(["10.1.0.0/16", "::1"])
    allowed = ["10.1.2.3", "::1", "8.8.8.8"]
    refused = ["10.2.0.1", "127.0.0.1", "::ffff:10.1.2.3"]
    assert all(rules.allows(ip_address(text)) for text in allowed)
    assert not any(rules.allows(ip_address(text)) for text in refused)
    everything = AddressRules.read(["all"])
    assert all(everything.allows(ip_address(text)) for text in allowed + refused)


@pytest.mark.parametrize("text", ["10.0.0.1/8", "example.org", "", "10.0.0.0/33"])
def test_a_network_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="allow_webhook"):
        AddressRules.read([text])


def test_a_host_that_is_an_address_is_checked_before_anything_is_sent() -> None:
    for host in ("127.0.0.1", "[::1]", "[64:ff9b::7f00:1]", "127.0.0.1:443"):
        with pytest.raises(InvalidInput, match="not a public address"):
            NOBODY.check_url(f"https://{host}/")
    for host in ("8.8.8.8", "localhost", "[2600::1]"):
        NOBODY.check_url(f"https://{host}/")
    LOOPBACK.check_url("http://127.0.0.1:8080/hook")


class Answers:
    """Answers the question for a name with these addresses, the next ones each time."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextlib.asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[str]]]:
    """A server on loopback that answers 200 to every request; its port, and who came."""
    came: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            came.append(head.decode())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1], came
    finally:
        server.close()
        await server.wait_closed()


async def ask(backend: CheckedConnections, url: str, tls: ssl.SSLContext | None = None) -> int:
    async with httpcore.AsyncConnectionPool(network_backend=backend, ssl_context=tls) as pool:
        extensions = {"timeout": {"connect": 30.0, "read": 30.0, "write": 30.0}}
        return (await pool.request("GET", url, extensions=extensions)).status


def test_a_name_that_stands_for_a_private_address_is_not_connected_to() -> None:
    async def run() -> None:
        async with listening() as (port, came):
            backend = CheckedConnections(NOBODY, Answers(["127.0.0.1"]))
            with pytest.raises(httpcore.ConnectError, match="has no public address") as fault:
                await ask(backend, f"http://receiver.test:{port}/")
            assert "127.0.0.1" not in str(fault.value)  # whoever names a host learns nothing of it
            assert came == []

    asyncio.run(run())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "0"])
def test_every_spelling_of_loopback_is_refused(host: str) -> None:
    async def run() -> None:
        async with listening() as (port, came):
            with pytest.raises(httpcore.ConnectError, match=r"no public|was not found"):
                await ask(CheckedConnections(NOBODY, NameLookups()), f"http://{host}:{port}/")
            assert came == []

    asyncio.run(run())


def test_the_address_that_was_checked_is_the_one_that_is_connected_to() -> None:
    async def run() -> None:
        async with listening() as (port, came):
            answers = Answers(["127.0.0.1"], ["10.255.255.1"])  # another one if asked again
            assert (
                await ask(CheckedConnections(LOOPBACK, answers), f"http://a.test:{port}/x") == 200
            )
            assert answers.asked == 1
            assert f"Host: a.test:{port}" in came[0]

    asyncio.run(run())


def test_of_several_addresses_only_those_that_are_allowed_are_tried() -> None:
    async def run() -> None:
        async with listening() as (port, _):
            answers = Answers(["::1", "127.0.0.1"])
            assert await ask(CheckedConnections(LOOPBACK, answers), f"http://a.test:{port}/") == 200

    asyncio.run(run())


def test_the_next_address_is_tried_where_the_first_does_not_answer() -> None:
    async def run() -> None:
        async with listening() as (port, _):
            answers = Answers(["127.0.0.2", "127.0.0.1"])  # the server listens on the second only
            assert await ask(CheckedConnections(LOOPBACK, answers), f"http://a.test:{port}/") == 200

    asyncio.run(run())


def test_a_name_without_addresses_or_of_another_kind_is_not_found() -> None:
    async def run() -> None:
        for host in ("name.invalid", "a" * 64 + ".test"):
            with pytest.raises(httpcore.ConnectError, match="was not found") as fault:
                await ask(CheckedConnections(NOBODY, NameLookups()), f"http://{host}/")
            assert "codec" not in str(fault.value)
        with pytest.raises(httpcore.ConnectError, match="has no address"):
            await ask(CheckedConnections(NOBODY, Answers([])), "http://a.test/")

    asyncio.run(run())


def test_a_name_server_that_does_not_answer_ends_with_the_time_to_connect() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    async def run() -> None:
        with pytest.raises(httpcore.ConnectTimeout, match="not found in time"):
            await CheckedConnections(NOBODY, never).connect_tcp("a.test", 80, timeout=0.01)

    asyncio.run(run())


def test_a_name_that_is_being_asked_for_is_not_asked_for_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    look_up = socket.getaddrinfo

    def count(*args: object, **kwargs: object) -> object:
        asked.append(args)
        return look_up("127.0.0.1", 80)

    async def run() -> None:
        lookups = NameLookups()
        monkeypatch.setattr(socket, "getaddrinfo", count)
        found = await asyncio.gather(*(lookups("localhost", 80) for _ in range(20)))
        assert {tuple(addresses) for addresses in found} == {("127.0.0.1",)}
        assert len(asked) == 1

    asyncio.run(run())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for `receiver.test` that it has signed itself, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    path = tmp_path_factory.mktemp("tls") / "receiver.pem"
    key = path.with_suffix(".key")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = ["-subj", "/CN=receiver.test", "-addext", "subjectAltName=DNS:receiver.test"]
    subprocess.run(
        [*command.split(), *names, "-keyout", str(key), "-out", str(path)],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + key.read_text())
    return path


def test_tls_verifies_the_name_though_the_address_is_connected_to(certificate: Path) -> None:
    async def run() -> None:
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(certificate)
        trusting = ssl.create_default_context(cafile=str(certificate))
        async with listening(own) as (port, came):
            backend = CheckedConnections(LOOPBACK, Answers(["127.0.0.1"]))
            assert await ask(backend, f"https://receiver.test:{port}/", trusting) == 200
            for host in ("other.test", "127.0.0.1"):
                with pytest.raises(httpcore.ConnectError, match="certificate"):
                    await ask(backend, f"https://{host}:{port}/", trusting)
            with pytest.raises(httpcore.ConnectError, match="certificate"):
                await ask(backend, f"https://receiver.test:{port}/", ssl.create_default_context())
            assert len(came) == 1

    asyncio.run(run())
