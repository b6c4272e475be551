"""`contrada serve` as a process: it starts, is refused, hears signals, and ends in time."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from contrada.cli import main

COMMAND = [sys.executable, "-m", "contrada", "serve"]
PATIENCE_S = 60.0
SSE = {"Accept": "text/event-stream"}
PATH = "/v1/subscribers/s/deliveries"


class Process:
    """A server that was started as a command."""

    def __init__(self, *args: str) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CONTRADA_")}
        self._process = subprocess.Popen(
            [*COMMAND, "--port", "0", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.lines: list[str] = []
        self._is_logged = threading.Condition()
        self._reading = threading.Thread(target=self._read)
        self._reading.start()
        assert self._process.stdout is not None
        self.ready = self._process.stdout.readline()
        found = re.fullmatch(r"contrada: (http://127\.0\.0\.1:(\d+)) serves (.*)\n", self.ready)
        assert found is not None, (self.ready, self.lines)
        self.address, self.port, self.data = found[1], int(found[2]), Path(found[3])

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._is_logged:
                self.lines.append(line)
                self._is_logged.notify_all()

    def wait_for_line(self, words: str) -> None:
        """Wait until the log has a line with some words."""
        with self._is_logged:
            found = self._is_logged.wait_for(
                lambda: any(words in line for line in self.lines), PATIENCE_S
            )
        assert found, self.lines

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def end(self) -> int:
        """Wait for the end; that it ends within ten seconds is its own business."""
        code = self._process.wait(PATIENCE_S)
        self.close()
        return code

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reading.join()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()


@contextmanager
def served(*args: str) -> Iterator[Process]:
    process = Process(*args)
    try:
        yield process
    finally:
        process.close()


def run(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*COMMAND, *args], capture_output=True, text=True, check=False)


def test_sigterm_ends_streams_and_keeps_what_was_taken_and_the_next_goes_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    feature = {"type": "Feature", "properties": {}}
    feature["geometry"] = {"type": "Point", "coordinates": [1, 2]}
    with served("--data", str(data)) as server:
        assert server.data == data
        second = run("--data", str(data), "--port", "0")
        assert (second.returncode, second.stdout) == (2, "")
        assert second.stderr.splitlines()[-1].startswith("contrada: ")
        assert "another broker is running on this folder" in second.stderr.splitlines()[-1]
        with (
            httpx.Client(base_url=server.address, trust_env=False, timeout=PATIENCE_S) as client,
            server.connect() as silent,
            server.connect() as half,
        ):
            half.sendall(b"GET / HTTP/1.1\r\nHo")
            body = {"geometry": feature["geometry"], "subscriber": "s"}
            assert client.put("/v1/subscriptions/a", json=body).status_code == 201
            assert client.post("/v1/events", json=feature).json()["matches"] == 1
            with client.stream("GET", PATH, headers=SSE) as stream:
                heard = stream.iter_text()
                assert "contrada.delivery" in next(text for text in heard if "delivery" in text)
                server.send(signal.SIGTERM)
                for _ in heard:  # it ends as it should: a cut would raise
                    pass
            assert silent.recv(1) == half.recv(1) == b""
            assert server.end() == 0
    assert all(json.loads(line) for line in server.lines)
    with served("--data", str(data)) as server:
        found = httpx.get(f"{server.address}{PATH}", trust_env=False).json()
        assert len(found["deliveries"]) == 1
        server.send(signal.SIGINT)
        assert server.end() == 0


def test_sighup_reads_limits_anew_and_cuts_nobody_off(tmp_path: Path) -> None:
    config = tmp_path / "contrada.toml"
    config.write_text("requests_per_s_max = 100000")
    with served("--ephemeral", "--config", str(config)) as server:
        folder = server.data
        assert folder.is_dir()
        with httpx.Client(base_url=server.address, trust_env=False) as client:
            client.put("/v1/subscribers/s", json={})
            with client.stream("GET", PATH, headers=SSE) as stream:
                config.write_text('requests_per_s_max = 1\nport = 9\nallow_host = ["maps.example"]')
                server.send(signal.SIGHUP)
                server.wait_for_line("settings were read again")
                named = {"Host": "maps.example"}
                asked = [client.get("/docs", headers=named).status_code for _ in range(5)]
                assert asked[0] == 200
                assert 429 in asked
                config.write_text("prot = 1")
                server.send(signal.SIGHUP)
                server.wait_for_line("no setting 'prot'")
                assert client.get("/readyz").status_code == 200
                server.send(signal.SIGTERM)
                stream.read()
        assert server.end() == 0
        assert not folder.exists()


def test_settings_are_shown_with_their_sources_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONTRADA_PORT", "9000")
    assert main(["serve", "--print-config", "--set", "connections_max=7"]) == 0
    out = capsys.readouterr().out
    assert "port = 9000  # CONTRADA_PORT\n" in out
    assert "connections_max = 7  # --set connections_max\n" in out
    assert 'host = "127.0.0.1"  # default\n' in out
    assert tomllib.loads(out)["data"] == "contrada-data"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "contrada key add NAME --scope admin"),
        (["--port", "web"], "--port: 'web' is not a port|--port: web is not a port"),
        (["--set", "prot=1"], "there is no setting 'prot'"),
        (["--config", "none.toml"], r"none\.toml: cannot be read"),
        (["--ephemeral", "--data", "x"], "exclude each other"),
        (["--allow-origin", "maps.example"], "'maps.example' is not an origin"),
        (["--allow-webhook", "intranet"], "'intranet' is neither an address nor a network"),
        (["--tls-key", "key.pem"], "need each other"),
        (["--data", __file__], "test_cli_serve.py: is a file, not a folder"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_2(
    words: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("contrada: ")
    assert re.search(said, line)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["uvicorn", "starlette", "httptools", "websockets", "httpx"])
def test_a_missing_package_is_one_line_that_names_the_extra(
    package: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["serve"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"contrada serve needs {package}" in line
    assert line.endswith('pip install "contrada[server]"')
