from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from server.open_server import OpenServer, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OpenServer]:
    """A broker with nothing in it, served."""
    with serving(tmp_path) as opened:
        yield opened


@pytest.fixture
def client(server: OpenServer) -> httpx.Client:
    """What sends requests to it."""
    return server.client
