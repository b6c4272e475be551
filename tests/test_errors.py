"""Messages stay short and printable, whatever a stranger's values have put into them."""

import errno
import os
import pickle
from collections import OrderedDict, deque
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from contrada import Matcher
from contrada.cli.remedies import ON_THE_COMMAND_LINE
from contrada.errors import (
    IN_PYTHON,
    BadRows,
    ContradaError,
    InvalidInput,
    MissingPackage,
    PeerError,
    Remedy,
    RowsLost,
    Unavailable,
    UnknownSubscription,
    blame,
    read_line,
    write_line,
)
from contrada.files import read_rows
from contrada.machine import write_whole
from contrada.showing import brief, brief_text, listed


def test_a_message_loses_its_middle_not_its_ends() -> None:
    message = str(InvalidInput(f"row 7: {'x' * 1_000_000} is too long"))
    assert len(message) < 5_000
    assert message.startswith("row 7: xxx")
    assert message.endswith("xxx is too long")


def test_half_a_character_in_a_message_can_be_printed() -> None:
    message = str(InvalidInput("no column \ud800"))
    assert message.encode() == rb"no column \ud800"


def test_an_error_stays_as_it_is_through_pickle() -> None:
    error = UnknownSubscription("\ud800" * 10_000)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    "given", [{"op": "x" * 1_000_000, "args": []}, "a = \ud800", "f" * 500_000 + "(a) = 1"]
)
def test_a_long_or_broken_predicate_is_refused_in_a_few_lines(given: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Matcher().add("s", given)
    assert len(str(caught.value).encode()) < 8_000


def test_what_is_cut_is_seen_to_be_cut() -> None:
    assert brief("abc") == "'abc'"
    assert brief("a" * 100, 10) == "'aaaaaaaa…"
    assert brief_text("a" * 10, 10) == "a" * 10
    assert brief_text("a" * 11, 10) == "aaaaaaaaa…"
    assert brief(10**5_000) == "an integer of 16,610 bits"
    assert brief_text(10**5_000) == "an integer of 16,610 bits"
    assert listed(["a", "b"]) == "a, b"
    assert listed(map(str, range(60))).endswith("48, 49 and 10 more")


@pytest.mark.parametrize(
    "value",
    [
        [1, "a", None, True, 2.5],
        (1,),
        (1, 2),
        (),
        [],
        {},
        set(),
        {"a": [1, {"b": (2,)}]},
        {7},
        Decimal("1.50"),
        b"ab",
        "a'b",
        [[[[[1]]]]],
        {(1, 2): None},
    ],
)
def test_a_small_value_is_shown_as_python_writes_it(value: object) -> None:
    assert brief(value) == repr(value)
    assert brief_text(value) == str(value)


def test_a_value_is_shown_in_the_time_that_its_text_takes() -> None:
    shared: Any = [1]
    by_name: Any = 1
    wide: Any = 1
    for _ in range(60):
        shared, by_name = [shared, shared], OrderedDict(a=by_name, b=by_name)
        wide = [wide] * 50
    cycle: list[Any] = []
    cycle += [cycle] * 20
    held = np.empty(2, object)
    held[:] = [shared, shared]
    for value in (shared, by_name, wide, cycle, held, deque([shared] * 9), {"a": shared}.values()):
        for show in (brief, brief_text):
            assert len(show(value, 1_000)) <= 1_000
            assert "…" in show(value, 1_000)


def test_a_part_that_cannot_be_shown_is_named_by_its_type() -> None:
    class Mute:
        def __repr__(self) -> str:
            raise ValueError

    assert brief([1, Mute(), 10**5_000]) == "[1, a value of type Mute, an integer of 16,610 bits]"


def test_each_remedy_has_its_own_words_in_python_and_some_on_the_command_line() -> None:
    assert set(IN_PYTHON) == set(ON_THE_COMMAND_LINE) == set(Remedy)
    assert len(set(IN_PYTHON.values())) == len(Remedy)
    for words in ON_THE_COMMAND_LINE.values():
        assert words is None or ("=" not in words and "--" in words)


@pytest.mark.parametrize("remedies", [[], [Remedy.REPAIR], [Remedy.EVENT_ID, Remedy.REPLACE]])
@pytest.mark.parametrize("place", ["", "column 'site: area; b'", "a\nb, row 3: 'ü'"])
def test_an_error_is_read_back_from_its_line_with_every_field(
    remedies: list[Remedy], place: str
) -> None:
    error = InvalidInput("a: b; c", remedies=remedies, place=place, code="invalid", row=7)
    text = f"Traceback:\n{write_line(InvalidInput('before'))}\n{error}\n{write_line(error)}\n at x"
    again = read_line(text)
    assert isinstance(again, InvalidInput)
    assert vars(again) == vars(error)
    assert (again.what, str(again)) == ("a: b; c", str(error))


@pytest.mark.parametrize("kind", [Unavailable, MissingPackage, RowsLost, PeerError])
def test_an_error_of_another_kind_stays_of_that_kind(kind: type[ContradaError]) -> None:
    again = read_line(write_line(kind("staging: full")))
    assert (type(again), str(again)) == (kind, "staging: full")


def test_a_text_without_the_line_of_an_error_has_none() -> None:
    assert read_line("contrada.errors.InvalidInput: row 3 is odd") is None


def test_places_go_from_the_outside_in_and_replace_the_row() -> None:
    error = InvalidInput("odd", place="column 'a: b'", row=3)
    assert error.message == "row 3, column 'a: b': odd"
    assert error.within("x.csv, line 5").message == "x.csv, line 5, column 'a: b': odd"
    assert error.within("x").within("y").place == "y, x, column 'a: b'"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert len(InvalidInput("odd", place="x" * 10_000).message) <= 4_000


def test_bad_rows_stay_as_they_are_through_pickle() -> None:
    error = BadRows("t: 30 of 40", [f"row {n}" for n in range(25)], 30, [Remedy.REPAIR])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert str(error).splitlines()[-2:] == ["  and 10 more", IN_PYTHON[Remedy.REPAIR]]


def test_a_place_goes_before_the_message_and_the_remedies_stay() -> None:
    error = InvalidInput("bad", remedies=[Remedy.REPAIR]).within("row 1")
    assert str(error) == f"row 1: bad; {IN_PYTHON[Remedy.REPAIR]}"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (FileNotFoundError(errno.ENOENT, "no such file"), InvalidInput),
        (IsADirectoryError(errno.EISDIR, "a folder"), InvalidInput),
        (OSError(errno.ENAMETOOLONG, "too long"), InvalidInput),
        (OSError("not a gzipped file"), InvalidInput),
        (pa.ArrowInvalid("damaged"), InvalidInput),
        (PermissionError(errno.EACCES, "denied"), Unavailable),
        (OSError(errno.ENOSPC, "full"), Unavailable),
        (OSError(errno.EROFS, "read-only"), Unavailable),
        (OSError(errno.EIO, "broken"), Unavailable),
        (OSError(errno.EMFILE, "too many open files"), Unavailable),
        (pa.ArrowMemoryError("malloc failed"), Unavailable),
    ],
)
def test_a_wrong_path_and_damage_are_of_the_input_and_all_else_of_the_machine(
    fault: BaseException, kind: type[ContradaError]
) -> None:
    error = blame(fault, "x.csv: cannot be read")
    assert type(error) is kind
    assert str(pickle.loads(pickle.dumps(error))) == "x.csv: cannot be read"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (OSError("AWS Error NETWORK_CONNECTION: no answer"), Unavailable),
        (FileNotFoundError(errno.ENOENT, "no such key"), InvalidInput),
        (pa.ArrowInvalid("damaged"), InvalidInput),
    ],
)
def test_what_is_far_and_fails_without_a_number_is_out_of_reach(
    fault: BaseException, kind: type[ContradaError]
) -> None:
    assert type(blame(fault, "s3://b/x: cannot be read", is_remote=True)) is kind


def test_what_the_machine_lacks_is_not_invalid_input() -> None:
    assert issubclass(MissingPackage, Unavailable)
    assert not issubclass(Unavailable, InvalidInput)
    assert not issubclass(InvalidInput, Unavailable)


@pytest.mark.parametrize("name", ["x.csv", "x.geojson", "x.ndjson", "x.parquet", "x.contrada"])
def test_a_file_that_may_not_be_read_is_of_the_machine_and_one_that_is_not_there_of_the_input(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    with pytest.raises(InvalidInput, match=f"{name}: no such file"):
        read_rows(path)
    path.write_bytes(b"")

    def deny(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "open", deny)
    monkeypatch.setattr("contrada.files.parquet.pq.ParquetFile", deny)
    with pytest.raises(Unavailable, match=rf"{name}: cannot be read: .*Permission denied"):
        read_rows(path)


def test_a_file_is_not_written_for_reasons_of_the_path_or_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="cannot be written: No such file"):
        write_whole(tmp_path / "nowhere" / "x", b"")

    def is_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", is_full)
    with pytest.raises(Unavailable, match="x: cannot be written: No space left"):
        write_whole(tmp_path / "x", b"")
    assert list(tmp_path.iterdir()) == []
