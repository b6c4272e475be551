"""Where a client connects to, and that nobody sees its key."""

import logging
import pickle
import socket
import subprocess
import sys
import traceback

import pytest

from contrada.client.awaiting import AsyncClient
from contrada.client.blocking import Client
from contrada.client.connecting import Connecting
from contrada.client.defaults import DEFAULT_URL
from contrada.client.exchange import BrokerRequest
from contrada.errors import ContradaError, InvalidInput, Unavailable

KEY = "contrada_very_secret"


def read(url: str | None = None, key: str | None = None) -> Connecting:
    return Connecting.read(url, key, 30.0, True)


def test_address_and_key_come_from_arguments_then_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CONTRADA_URL", raising=False)
    monkeypatch.delenv("CONTRADA_KEY", raising=False)
    assert read().url == DEFAULT_URL
    assert "authorization" not in read().headers
    monkeypatch.setenv("CONTRADA_URL", "https://broker.example")
    monkeypatch.setenv("CONTRADA_KEY", KEY)
    assert read().url == "https://broker.example"
    assert read().headers["authorization"] == f"Bearer {KEY}"
    assert read("http://[::1]:1/", "other").url == "http://[::1]:1"
    assert read(None, "other").headers["authorization"] == "Bearer other"


@pytest.mark.parametrize(
    "url",
    ["localhost:8080", "ftp://host", "http://", "http://[", "http://host:99999", "/v1", " ", ""],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="is not the address of a broker"):
        read(url)


@pytest.mark.parametrize("rest", [f"{KEY}@", f"me:{KEY}@", ""])
def test_a_key_in_an_address_is_refused_and_not_shown(rest: str) -> None:
    url = f"http://{rest}host" if rest else f"http://host?key={KEY}"
    with pytest.raises(InvalidInput) as refused:
        read(url)
    assert "CONTRADA_KEY" in str(refused.value)
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY} ", f"{KEY}ü"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(None, key)
    assert KEY not in str(refused.value)


def test_only_a_local_broker_is_reached_past_a_proxy() -> None:
    assert not read("http://127.0.0.5:1").options()["trust_env"]
    assert not read("http://localhost").options()["trust_env"]
    assert read("https://broker.example").options()["trust_env"]


def test_a_key_is_in_no_text_about_a_client(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with Client(f"http://127.0.0.1:{port}", key=KEY, retries=0) as client:
            with pytest.raises(Unavailable) as failed:
                client.match({"n": 1})
            said = "".join(traceback.format_exception(failed.value))
            assert f"http://127.0.0.1:{port}: no connection" in str(failed.value)
            shown = [
                repr(client),
                str(client),
                repr(client._connecting),
                repr(client._http.headers),
            ]
    assert KEY not in "".join([said, caplog.text, *shown])
    assert repr(AsyncClient("http://host", key=KEY)) == "<AsyncClient http://host>"


def test_an_answer_that_takes_too_long_is_not_waited_for() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        late = pytest.raises(Unavailable, match="no answer: it took too long")
        with Client(url, timeout_s=0.05, retries=0) as client, late:
            client.match({"n": 1})


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan")])
def test_a_time_to_wait_is_more_than_none(timeout_s: float) -> None:
    with pytest.raises(InvalidInput, match="timeout_s"):
        Client(timeout_s=timeout_s)


def test_errors_can_be_pickled() -> None:
    with pytest.raises(ContradaError) as refused:
        read("nowhere")
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_without_httpx_a_client_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['httpx'] = None; from contrada.errors import MissingPackage\n"
        "from contrada.client.blocking import Client\n"
        "try: Client()\n"
        "except MissingPackage as error: print(error)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert 'pip install "contrada[client]"' in said.stdout


def test_a_request_names_no_key_in_its_address() -> None:
    arguments = read(None, KEY).arguments(BrokerRequest("GET", "/v1/settings", {"after": "p"}))
    assert KEY not in repr(arguments)
