"""Texts and binaries in a file of columns: what was written comes back, where it lies."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from contrada.errors import InvalidInput
from contrada.files.sections import Sections, open_sections, write_sections
from contrada.files.text_columns import binary_array, binary_columns, text_array, text_columns

GOOD: dict[str, NDArray[Any]] = {
    "a.starts": np.array([0, 1, 1, 3]),
    "a.bytes": np.frombuffer("aé".encode(), np.uint8),
    "a.is_there": np.array([True, False, True]),
}


def save(folder: Path, columns: dict[str, NDArray[Any]]) -> Sections:
    write_sections(folder / "x.contrada", {}, columns)
    return open_sections(folder / "x.contrada")


@given(
    texts=st.lists(st.none() | st.text(max_size=5)),
    start=st.integers(0, 3),
    kind=st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]),
)
def test_texts_come_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str | None], start: int, kind: Any
) -> None:
    array = pa.array(texts, kind)[start:]
    sections = save(tmp_path_factory.mktemp("texts"), text_columns("a", array))
    found = text_array(sections, "a")
    assert found.type == pa.large_string()
    assert found.to_pylist() == texts[start:]
    assert ("a.is_there" in sections.columns) == (None in texts[start:])


@given(
    binaries=st.lists(st.none() | st.binary(max_size=5)),
    start=st.integers(0, 3),
    kind=st.sampled_from([pa.binary(), pa.large_binary()]),
)
def test_binaries_come_back(
    tmp_path_factory: pytest.TempPathFactory, binaries: list[bytes | None], start: int, kind: Any
) -> None:
    array = pa.array(binaries, kind)[start:]
    sections = save(tmp_path_factory.mktemp("binaries"), binary_columns("a", array))
    found = binary_array(sections, "a")
    assert found.type == pa.large_binary()
    assert found.to_pylist() == binaries[start:]


def test_columns_are_as_documented() -> None:
    found = text_columns("a", pa.array(["a", None, "é"]))
    assert found.keys() == GOOD.keys()
    for name, column in GOOD.items():
        assert found[name].dtype == column.dtype
        assert found[name].tolist() == column.tolist()


def test_the_same_texts_have_the_same_columns_whatever_lies_under_a_null() -> None:
    hidden = pa.array(["a", "hidden", "é"])
    bits = pa.py_buffer(b"\x05")
    with_null = pa.Array.from_buffers(pa.string(), 3, [bits, *hidden.buffers()[1:]])
    sliced = pa.array(["before", "a", None, "é", "after"])[1:4]
    for array in (with_null, sliced):
        found = text_columns("a", array)
        assert {name: column.tolist() for name, column in found.items()} == {
            name: column.tolist() for name, column in GOOD.items()
        }


def test_large_texts_are_not_copied_on_their_way_out_or_in(tmp_path: Path) -> None:
    texts = pa.array(["abc" * 100, "x"], pa.large_string())
    columns = text_columns("a", texts)
    assert columns["a.bytes"].ctypes.data == texts.buffers()[2].address
    sections = save(tmp_path, columns)
    _, starts, content = text_array(sections, "a").buffers()
    assert starts.address == sections.columns["a.starts"].ctypes.data
    assert content.address == sections.columns["a.bytes"].ctypes.data


def test_an_array_keeps_the_file_mapped(tmp_path: Path) -> None:
    array = text_array(save(tmp_path, GOOD), "a")
    (tmp_path / "x.contrada").unlink()
    assert array.to_pylist() == ["a", None, "é"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"a.starts": None}, "has no column 'a.starts'"),
        ({"a.bytes": None}, "has no column 'a.bytes'"),
        ({"a.starts": np.zeros(0, np.int64)}, "column 'a.starts' is empty"),
        ({"a.starts": np.array([1, 2, 3])}, "column 'a.starts' goes from 1 to 3, not from 0 to 3"),
        ({"a.starts": np.array([0, 2, 2, 2])}, "column 'a.starts' goes from 0 to 2, not from 0"),
        ({"a.starts": np.array([0, 1, 9, 3])}, "column 'a' is damaged: Offset invariant failure"),
        ({"a.starts": np.array([0, -1, 1, 3])}, "column 'a' is damaged: Offset invariant failure"),
        ({"a.starts": np.array([0, 2**62, 1, 3])}, "column 'a' is damaged: Offset invariant"),
        ({"a.starts": np.array([0, 1, 2, 3])[:, None]}, "column 'a.starts' is of int64 in 2 dim"),
        ({"a.starts": np.array([0.0, 3.0])}, "column 'a.starts' is of float64 in 1 dim"),
        ({"a.bytes": np.zeros(3, np.bool_)}, "column 'a.bytes' is of bool in 1 dimensions"),
        ({"a.bytes": np.array([97, 255, 97], np.uint8)}, "column 'a' is damaged: Invalid UTF8"),
        ({"a.is_there": np.ones(2, np.bool_)}, "column 'a.is_there' has 2 values, not 3"),
        ({"a.is_there": np.ones(3, np.uint8)}, "column 'a.is_there' is of uint8 in 1 dim"),
    ],
)
def test_columns_that_are_not_of_texts_are_refused(
    tmp_path: Path, change: dict[str, NDArray[Any] | None], fault: str
) -> None:
    changed = {**GOOD, **change}
    sections = save(tmp_path, {n: column for n, column in changed.items() if column is not None})
    with pytest.raises(InvalidInput) as caught:
        text_array(sections, "a")
    assert str(caught.value).startswith(f"{tmp_path / 'x.contrada'}: {fault}")
