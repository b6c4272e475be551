"""Suffixes are listed once, in the code: documents, help and errors say the same."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from contrada.cli import make_parser
from contrada.errors import InvalidInput
from contrada.files import open_output, read_rows
from contrada.files.output import WRITTEN_SUFFIXES
from contrada.files.reading import READ_SUFFIXES

ROWS_PAGE = Path(__file__).parents[2] / "docs" / "rows.md"


def suffixes_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w.])\.[a-z][a-z0-9.]*[a-z0-9]", text))


def read_help(option: str = "") -> str:
    (commands,) = (a for a in make_parser()._actions if isinstance(a.choices, dict))
    assert isinstance(commands.choices, dict)
    match = commands.choices["match"]
    if not option:
        return str(match.description)
    (found,) = (action.help for action in match._actions if option in action.option_strings)
    return str(found)


def test_the_document_lists_what_is_read() -> None:
    table = ROWS_PAGE.read_text().partition("| format | suffix |")[2].partition("\n\n")[0]
    listed = [row.rsplit("|", 2)[1] for row in table.splitlines()[2:]]
    assert suffixes_in(" ".join(listed)) == set(READ_SUFFIXES)


def test_the_document_lists_what_is_written() -> None:
    (header,) = re.findall(r"^\| type \| in .*$", ROWS_PAGE.read_text(), re.MULTILINE)
    assert suffixes_in(header) == set(WRITTEN_SUFFIXES)


def test_help_lists_what_is_read_and_written() -> None:
    assert suffixes_in(read_help()) == set(READ_SUFFIXES)
    assert suffixes_in(read_help("--output")) == set(WRITTEN_SUFFIXES)
    for option in ("--quarantine", "--quarantine-subscriptions"):
        assert suffixes_in(read_help(option)) == {*WRITTEN_SUFFIXES} - {".geoparquet"}


@pytest.mark.parametrize("suffix", READ_SUFFIXES)
def test_what_is_listed_is_read(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file"):
        read_rows(tmp_path / f"none{suffix}")


@pytest.mark.parametrize("suffix", WRITTEN_SUFFIXES)
def test_what_is_listed_is_written(suffix: str, tmp_path: Path) -> None:
    schema = pa.schema({"geometry": pa.binary()})
    with open_output(tmp_path / f"x{suffix}", schema, geometry_column="geometry") as output:
        output.write(pa.table([[b""]], schema=schema).slice(1))
    assert (tmp_path / f"x{suffix}").exists()


def test_an_unknown_suffix_is_met_with_the_common_ones_and_a_number() -> None:
    known = ", ".join(READ_SUFFIXES)
    words = rf"x\.doc: unknown suffix; known suffixes: {known} and \d+ more that GDAL reads$"
    with pytest.raises(InvalidInput, match=words):
        read_rows("x.doc")
