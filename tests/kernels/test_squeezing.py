"""Where values stand in JSON text, against Python's own reading of it."""

import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contrada.kernels.squeezing import (
    NOT_PLAIN,
    as_bytes,
    count_members,
    find_elements,
    find_members,
    squeeze,
)

NAMES = st.sampled_from(["", "a", "data", 'q"', "\\", "é", "\n ", "\U0001f600", "dat\ta", "{[,:"])
SCALARS = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | NAMES
VALUES = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: "e+" not in str(x)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
STYLES: Any = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 2]),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\r\n: ")]),
        "ensure_ascii": st.booleans(),
    }
)


def compact(value: Any, **style: Any) -> bytes:
    """The text that has no white space."""
    return json.dumps(value, **{"separators": (",", ":"), **style}).encode()


def squeezed(text: bytes) -> bytes:
    """What the kernel writes."""
    written = np.zeros(len(text), np.uint8)
    return written[: squeeze(as_bytes(text), written)].tobytes()


def members_of(value: Any) -> int:
    """The slow and obvious count."""
    if isinstance(value, dict):
        return len(value) + sum(map(members_of, value.values()))
    return sum(map(members_of, value)) if isinstance(value, list) else 0


def count(text: bytes, depth_max: int = 64) -> int:
    """The members of one value."""
    counts = np.zeros(1, np.int64)
    count_members(as_bytes(text), np.zeros(1, np.int64), np.full(1, len(text)), depth_max, counts)
    return int(counts[0])


def member(text: bytes, name: str) -> bytes | None:
    """The text of the only member of a name."""
    starts, ends = np.zeros(1, np.int64), np.full(1, len(text))
    find_members(as_bytes(text), as_bytes(name.encode()), starts, ends)
    return None if starts[0] < 0 else text[int(starts[0]) : int(ends[0])]


@given(VALUES, STYLES)
def test_white_space_goes_outside_of_texts_alone(value: Any, style: Any) -> None:
    text = json.dumps(value, **style).encode()
    assert squeezed(text) == compact(value, ensure_ascii=style["ensure_ascii"])


@given(st.lists(VALUES, max_size=6))
def test_elements_are_found_where_they_are(values: list[Any]) -> None:
    text = compact(values)
    starts, ends = np.zeros((2, len(values)), np.int64)
    assert find_elements(as_bytes(text), 0, starts, ends) == len(values)
    found = [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    assert found == [compact(value) for value in values]


def test_elements_without_a_place_are_counted() -> None:
    starts, ends = np.zeros((2, 1), np.int64)
    assert find_elements(as_bytes(b"[1,[2,3],4]"), 0, starts, ends) == 3
    assert (starts[0], ends[0]) == (1, 2)


@given(st.dictionaries(NAMES, VALUES, max_size=5), NAMES)
def test_a_member_is_found_by_its_name(value: dict[str, Any], name: str) -> None:
    text = compact(value, ensure_ascii=False)
    found = member(text, name)
    if any(json.dumps(key, ensure_ascii=False) != f'"{key}"' for key in value):
        assert found is None
    else:
        assert found == (compact(value[name], ensure_ascii=False) if name in value else None)


def test_a_name_that_comes_twice_or_with_an_escape_is_not_found() -> None:
    assert member(b'{"data":1,"b":{"data":2}}', "data") == b"1"
    assert member(b'{"data":1,"data":2}', "data") is None
    assert member(b'{"data":1,"d\\u0061ta":2}', "data") is None


@given(VALUES)
def test_members_are_counted_however_deep(value: Any) -> None:
    assert count(compact(value, ensure_ascii=False)) == members_of(value)


def test_what_needs_a_closer_look_is_not_plain() -> None:
    for text in (b"[NaN]", b"[-Infinity]", b"[1e999]", b"[2.5E+400]", b'["\\ud800"]', b"1" * 301):
        assert count(text) == NOT_PLAIN, text
    for text in (
        b'["NaN Infinity 1e999"]',
        b"[1.5e-300]",
        b'["\\u00e9\\\\ud800"]',
        b"[true,false]",
    ):
        assert count(text) == 0, text
    assert count(b"[[[]]]", 3) == 0
    assert count(b"[[[]]]", 2) == NOT_PLAIN
