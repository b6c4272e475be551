"""Every public name of the package shows what it does in an example, and the example is true."""

from pathlib import Path

import pytest

import contrada
from contrada.matcher.explanations import Explanation, Why
from docstring_examples import public_names, run_examples

RETURNED = {
    "Explanation": Explanation,
    "Explanation.as_dict": Explanation.as_dict,
    "Why": Why,
}
PUBLIC = dict(public_names(contrada)) | RETURNED


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_a_public_name_is_true(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(name, PUBLIC[name], {"contrada": contrada})
