"""The attributes of a page's shapes: each column once, repeated values once, within a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

ATTRIBUTES_BYTES_MAX = 4_000_000
VALUE_LENGTH_MAX = 200


def describe_attributes(
    attributes: Mapping[str, Sequence[str]], rows: NDArray[np.intp], bytes_max: int
) -> tuple[list[dict[str, Any]], int]:
    """Return the columns for the drawn rows, and their size in bytes; long ones may be left out.

    A column has its distinct `values` and for each row the `code` of its value.
    """
    columns: list[dict[str, Any]] = []
    taken = 0
    for name, texts in attributes.items():
        codes: dict[str, int] = {}
        chosen = [codes.setdefault(_cut(str(texts[row])), len(codes)) for row in rows.tolist()]
        size = sum(len(text) + 3 for text in codes) + sum(len(str(code)) + 1 for code in chosen)
        if taken + size <= bytes_max:
            columns.append({"name": _cut(name), "values": list(codes), "codes": chosen})
            taken += size
    return columns, taken


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_LENGTH_MAX else text[: VALUE_LENGTH_MAX - 1] + "…"
