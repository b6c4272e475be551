"""Every public name of the package shows what it does in an example, and the example is true."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import contrada
from contrada.matcher.explanations import Explanation, Why
from docstring_examples import public_names, run_examples
from served_broker import serving

RETURNED = {
    "Explanation": Explanation,
    "Explanation.as_dict": Explanation.as_dict,
    "Why": Why,
}
PUBLIC = dict(public_names(contrada)) | RETURNED
CLIENTS = {
    name: PUBLIC.pop(name)
    for name in list(PUBLIC)
    if name.startswith(("contrada.Client", "contrada.AsyncClient"))
}


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_a_public_name_is_true(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(name, PUBLIC[name], {"contrada": contrada})


@pytest.mark.parametrize("name", CLIENTS)
def test_the_example_of_a_client_is_true_of_a_new_broker(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path / "data") as served:
        monkeypatch.setenv("CONTRADA_URL", served.url)
        with given_client("AsyncClient" in name) as given:
            run_examples(name, CLIENTS[name], given)


@contextmanager
def given_client(is_async: bool) -> Iterator[Mapping[str, Any]]:
    """What the examples of a client have at hand."""
    if not is_async:
        with contrada.Client() as client:
            yield {"contrada": contrada, "client": client}
        return
    with asyncio.Runner() as runner:
        asynchronous = contrada.AsyncClient()
        try:
            yield {"contrada": contrada, "client": asynchronous, "run": runner.run}
        finally:
            runner.run(asynchronous.close())
