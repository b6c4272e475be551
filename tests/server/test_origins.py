"""No web page reaches a server on loopback: names that lead there, and pages from elsewhere."""

import socket
from collections.abc import Iterator

import httpx
import pytest
from starlette.datastructures import Headers
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from contrada.errors import InvalidInput
from contrada.server.origins import AllowedOrigins
from hosted import PATIENCE_S, Hosted, hosted

HOSTS = [
    ("127.0.0.1:8080", 200),
    ("127.0.0.1", 200),
    ("127.9.9.9:80", 200),
    ("localhost:8080", 200),
    ("LOCALHOST", 200),
    ("localhost.:8080", 200),
    ("anything.localhost", 200),
    ("[::1]:8080", 200),
    ("maps.example", 200),
    ("maps.example:443", 200),
    ("evil.example", 421),
    ("evil.example:8080", 421),
    ("127.0.0.1.evil.example", 421),
    ("localhost.evil.example", 421),
    ("evillocalhost", 421),
    ("sub.maps.example", 421),
    ("93.184.216.34", 421),
    ("[2606:2800::1]", 421),
    ("user@localhost", 421),
    ("localhost:8080:80", 421),
    ("localhost/", 421),
    ("127.0.0.1%evil", 421),
    ("127.0.0.1%25evil", 421),
    ("[127.0.0.1]", 421),
    ("[::1%ee]", 421),
    ("127.0.0.1:8080", 200),
    ("", 421),
]
PAGES = [
    ({}, 200),
    ({"Origin": "http://localhost"}, 200),
    ({"Origin": "http://localhost:80"}, 200),
    ({"Origin": "https://friend.example"}, 200),
    ({"Origin": "http://localhost:3000"}, 403),
    ({"Origin": "http://127.0.0.1"}, 403),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "http://friend.example"}, 403),
    ({"Origin": "https://friend.example.evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": ""}, 403),
    ({"Origin": "file://"}, 403),
    ({"Sec-Fetch-Site": "none"}, 200),
    ({"Sec-Fetch-Site": "same-origin"}, 200),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
    (
        {
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "document",
        },
        200,
    ),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    folder = tmp_path_factory.mktemp("origins")
    allowed = {"allow_host": ["maps.example"], "allow_origin": ["https://friend.example"]}
    with hosted(folder, "requests_per_s_max=100000", **allowed) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Hosted) -> Iterator[httpx.Client]:
    with server.client({"Host": "localhost"}) as client:
        yield client


@pytest.mark.parametrize(("host", "status"), HOSTS)
@pytest.mark.parametrize("path", ["/v1/subscriptions", "/", "/readyz"])
def test_a_server_answers_only_to_its_own_names(
    host: str, status: int, path: str, client: httpx.Client
) -> None:
    assert client.get(path, headers={"Host": host}).status_code == status


@pytest.mark.parametrize("hosts", [[], ["localhost", "evil.example"], ["localhost", "localhost"]])
def test_a_request_has_one_host(hosts: list[str], server: Hosted) -> None:
    lines = ["GET / HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close", "", ""]
    address = ("127.0.0.1", int(server.address.rpartition(":")[2]))
    with socket.create_connection(address, PATIENCE_S) as connection:
        connection.sendall("\r\n".join(lines).encode())
        assert connection.recv(1_000).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(("headers", "status"), PAGES)
def test_a_page_from_elsewhere_may_not_ask(
    headers: dict[str, str], status: int, client: httpx.Client
) -> None:
    assert client.get("/v1/subscriptions", headers=headers).status_code == status
    if status == 403:
        sent = client.post("/v1/events", headers=headers, content=b"{}")
        assert sent.status_code == 403
        assert "access-control-allow-origin" not in sent.headers


def test_a_link_leads_to_a_page_but_sends_nothing(client: httpx.Client) -> None:
    link, status = PAGES[-1]
    assert status == 200
    assert client.post("/v1/events", headers=link, content=b"{}").status_code == 403


def test_a_page_that_is_allowed_may_read_the_answers(client: httpx.Client) -> None:
    page = {"Origin": "https://friend.example"}
    asked = {"Access-Control-Request-Method": "PUT"}
    asked["Access-Control-Request-Headers"] = "authorization,content-type"
    before = client.options("/v1/subscriptions/a", headers=page | asked)
    assert before.status_code == 204
    assert before.headers["access-control-allow-origin"] == "https://friend.example"
    assert before.headers["access-control-allow-headers"] == "authorization,content-type"
    assert "PUT" in before.headers["access-control-allow-methods"]
    answer = client.get("/v1/subscriptions", headers=page)
    assert answer.headers["access-control-allow-origin"] == "https://friend.example"
    assert client.options("/", headers={"Origin": "http://evil.example"} | asked).status_code == 403


@pytest.mark.parametrize(
    ("origin", "status"),
    [(None, 101), ("https://friend.example", 101), ("http://evil.example", 403)],
)
def test_a_page_from_elsewhere_opens_no_socket(
    origin: str | None, status: int, server: Hosted
) -> None:
    url = f"{server.address.replace('http', 'ws')}/v1/socket"
    headers = {} if origin is None else {"Origin": origin}
    if status == 101:
        with connect(url, additional_headers=headers, proxy=None):
            return
    with pytest.raises(InvalidStatus) as refused:
        connect(url, additional_headers=headers, proxy=None)
    assert refused.value.response.status_code == status


def test_beyond_loopback_any_address_is_a_name_of_the_server() -> None:
    allowed = AllowedOrigins([], [], is_loopback=False)
    allowed.check_host(Headers({"host": "93.184.216.34:8080"}))
    allowed.check_host(Headers({"host": "[2606:2800::1]"}))
    with pytest.raises(Exception, match=r"is not 'evil\.example'"):
        allowed.check_host(Headers({"host": "evil.example"}))


@pytest.mark.parametrize(
    ("hosts", "origins", "words"),
    [
        (["maps.example:80"], [], "'maps.example:80' is not a name without a port"),
        (["http://maps.example"], [], "is not a name"),
        ([], ["maps.example"], "'maps.example' is not an origin"),
        ([], ["https://maps.example/page"], "is not an origin"),
    ],
)
def test_what_is_no_name_or_origin_is_refused(
    hosts: list[str], origins: list[str], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        AllowedOrigins(hosts, origins, is_loopback=True)
