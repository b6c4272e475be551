"""A broker that is served, and clients of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contrada.client.blocking import Client
from served_broker import ServedBroker, serving


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedBroker]:
    with serving(tmp_path / "data") as served:
        yield served


@pytest.fixture
def client(served: ServedBroker) -> Iterator[Client]:
    with Client(served.url, timeout_s=10) as client:
        yield client
