"""LIKE, CASEI and ACCENTI."""

from typing import Any

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.language import read, truth
from contrada.model.event import Event

ABSENT = object()
NO_TEXTS = (ABSENT, None, 5, True, float("nan"), b"abc", ["abc"], shapely.Point(), object())


def truth_of(text: str, value: Any = ABSENT, **attributes: Any) -> bool | None:
    present = attributes if value is ABSENT else {"a": value, **attributes}
    return truth(read(text), Event(present))


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("abc", ["abc"], ["", "ab", "abcd", "ABC", "xabc"]),
        ("", [""], ["a", " "]),
        ("%", ["", "a", "a\nb"], []),
        ("_", ["a", "\n", "é", "\U0001f600"], ["", "ab"]),
        ("a%", ["a", "ab", "a%"], ["", "ba", "A"]),
        ("%a", ["a", "ba", "aa"], ["ab", ""]),
        ("%a%", ["a", "bab", "aaa"], ["", "b"]),
        ("a%b", ["ab", "axb", "abb"], ["a", "b", "ba", "abc"]),
        ("a_c", ["abc", "a_c", "a%c"], ["ac", "abbc"]),
        ("%a_c%e", ["abce", "xxabcabcde", "aacccee"], ["abcd", "ace", "ae"]),
        ("%ab%ab", ["abab", "ababab", "abxab"], ["ab", "aab"]),
        ("a%%b", ["ab", "axb"], ["a"]),
        ("a\\%b", ["a%b"], ["axb", "ab", "a\\%b"]),
        ("a\\_b", ["a_b"], ["axb"]),
        ("a\\\\b", ["a\\b"], ["a\\\\b", "ab"]),
        ("a\\\\%", ["a\\", "a\\x"], ["a", "a%"]),
        ("a\\b", ["ab"], ["a\\b"]),
        ("a\\", ["a\\"], ["a"]),
        (".*[a-z]+$", [".*[a-z]+$"], ["abc"]),
        ("it''s", ["it's"], ["its", "it''s"]),
        ("100\\%%", ["100%", "100% pure"], ["100", "1000"]),
        ("Ä%", ["Ärger"], ["ärger", "Arger"]),
    ],
)
def test_like_fits_the_whole_text(pattern: str, fitting: list[str], others: list[str]) -> None:
    for text in fitting:
        assert truth_of(f"a LIKE '{pattern}'", text) is True, text
        assert truth_of(f"a NOT LIKE '{pattern}'", text) is False, text
    for text in others:
        assert truth_of(f"a LIKE '{pattern}'", text) is False, text
        assert truth_of(f"NOT a LIKE '{pattern}'", text) is True, text


@pytest.mark.parametrize("value", NO_TEXTS)
def test_like_of_what_is_no_text_is_unknown(value: Any) -> None:
    assert truth_of("a LIKE '%'", value) is None
    assert truth_of("a NOT LIKE '%'", value) is None
    assert truth_of("'abc' LIKE a", value) is None
    assert truth_of("CASEI(a) LIKE '%'", value) is None


def test_a_pattern_may_be_an_attribute() -> None:
    assert truth_of("a LIKE b", "abc", b="a%") is True
    assert truth_of("a LIKE b", "abc", b="b%") is False
    assert truth_of("a LIKE b", "abc") is None
    assert truth_of("'abc' LIKE a", "%c") is True


def fits(text: str, pattern: str) -> bool:
    """The meaning of a pattern without escapes, character by character."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return fits(text, pattern[1:]) or (text != "" and fits(text[1:], pattern))
    return text != "" and pattern[0] in ("_", text[0]) and fits(text[1:], pattern[1:])


@given(st.text("ab", max_size=8), st.text("ab%_", max_size=6))
def test_like_is_what_it_says_character_by_character(text: str, pattern: str) -> None:
    assert truth_of("a LIKE b", text, b=pattern) is fits(text, pattern)


@given(st.text("ab%_\\'", max_size=6), st.text("ab%_\\'", max_size=6))
def test_an_escaped_pattern_fits_only_itself(text: str, other: str) -> None:
    pattern = "".join(f"\\{character}" if character in "%_\\" else character for character in text)
    assert truth_of("a LIKE b", text, b=pattern) is True
    assert truth_of("a LIKE b", other, b=pattern) is (text == other)


def test_many_wildcards_do_not_multiply_the_work() -> None:
    assert truth_of("a LIKE '" + "%a" * 30 + "%b'", "a" * 2000) is False


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("CASEI(a) = CASEI('ÄRGER')", "ärger", True),
        ("CASEI(a) = CASEI('STRASSE')", "Straße", True),
        ("CASEI(a) = 'ÄRGER'", "ärger", False),  # only one side is folded
        ("CASEI(a) = CASEI('x')", "y", False),
        ("ACCENTI(a) = ACCENTI('École')", "Ecole", True),
        ("ACCENTI(a) = 'Ecole'", "E\u0301cole", True),
        ("ACCENTI(a) = ACCENTI('école')", "Ecole", False),
        ("ACCENTI(CASEI(a)) = ACCENTI(CASEI('ÉCOLE'))", "ecole", True),
        ("CASEI(ACCENTI(a)) = CASEI(ACCENTI('ÉCOLE'))", "ecole", True),
        ("CASEI(a) IN (CASEI('Rain'), CASEI('SNOW'))", "snow", True),
        ("CASEI(a) IN (CASEI('Rain'), CASEI('SNOW'))", "hail", False),
        ("ACCENTI(a) IN (ACCENTI('Müller'), 'Strauss')", "Muller", True),
        ("CASEI(a) NOT IN (CASEI('Rain'))", "RAIN", False),
        ("CASEI(a) LIKE CASEI('FOO%')", "Foobar", True),
        ("CASEI(a) LIKE CASEI('FOO%')", "bar", False),
        ("ACCENTI(a) LIKE ACCENTI('Éc_l%')", "Ecole", True),
        ("ACCENTI(CASEI(a)) LIKE ACCENTI(CASEI('%É\\%'))", "cafE%", True),
        ("CASEI('A') = a", "a", True),
        ("CASEI(a) < CASEI('B')", "A", True),
        ("CASEI(a) BETWEEN 'a' AND 'c'", "B", True),
    ],
)
def test_case_and_accents_can_be_ignored(text: str, value: str, expected: bool) -> None:
    assert truth_of(text, value) is expected


@pytest.mark.parametrize("value", NO_TEXTS)
@pytest.mark.parametrize("function", ["CASEI", "ACCENTI"])
def test_case_and_accents_of_what_is_no_text_are_unknown(function: str, value: Any) -> None:
    assert truth_of(f"{function}(a) = 'x'", value) is None
    assert truth_of(f"NOT {function}(a) = 'x'", value) is None
    assert truth_of(f"{function}(a) IN ('x', 'y')", value) is None
    assert truth_of(f"{function}(a) LIKE '%'", value) is None
