"""Numbers by text, against a dictionary."""

import numpy as np
import pyarrow as pa
import pytest

from contrada.matching.strtree import text_numbers
from contrada.matching.strtree.text_numbers import TextNumbers


@pytest.mark.parametrize("piece", [1, 7, 1_000])
def test_each_text_has_its_number_and_others_have_none(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_numbers, "_PIECE", piece)
    monkeypatch.setattr(text_numbers, "_AT_ONCE", 10)
    texts = [f"n{i}" for i in range(95)]
    numbers = TextNumbers(pa.array(texts, pa.large_string()), np.arange(95) * 3)
    assert [numbers.get(text) for text in texts] == list(range(0, 285, 3))
    assert numbers.get("n95") == numbers.get("") == -1
