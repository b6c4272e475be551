"""What Tab shows: everything public, and nothing else."""

import re
import rlcompleter
import types
import typing
from collections.abc import Iterator

import pyarrow as pa

import contrada
import contrada.spark


def test_tab_on_the_package_shows_public_names_and_no_rooms() -> None:
    assert set(dir(contrada)) == {*contrada.__all__, "__version__"}


def test_tab_on_contrada_spark_shows_public_names_and_no_modules() -> None:
    assert dir(contrada.spark) == sorted(contrada.spark.__all__)
    for name in dir(contrada.spark):
        assert not isinstance(getattr(contrada.spark, name), types.ModuleType)


def test_tab_on_a_matcher_shows_what_is_documented_and_no_internals() -> None:
    calls = "add add_many get match match_frame match_many open remove save stats subscribers why"
    expected = sorted(f"{calls} crs engine simplify".split())
    matcher = contrada.Matcher()
    assert [name for name in dir(matcher) if not name.startswith("_")] == expected
    shown = rlcompleter.Completer({"matcher": matcher}).attr_matches("matcher.")
    assert sorted(re.findall(r"matcher\.(\w+)", " ".join(shown))) == expected


def test_type_checkers_know_what_match_many_gives() -> None:
    hints = [
        typing.get_type_hints(form) for form in typing.get_overloads(contrada.Matcher.match_many)
    ]
    given = {str(hint["batches"]): hint["return"] for hint in hints}
    assert given == {
        "typing.Literal[False]": pa.Table,
        "typing.Literal[True]": Iterator[pa.RecordBatch],
    }
