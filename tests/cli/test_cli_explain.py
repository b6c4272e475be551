"""`contrada explain`: the same words as `contrada.explain`, for people and for programs."""

import json

import pytest

import contrada
from contrada.cli import main

TEXT = "S_INTERSECTS(area, POINT(1 2)) AND (wind > 90 OR wind IS NULL)"


def test_explain_shows_the_normal_form_and_what_serves_each_constraint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", TEXT]) == 0
    said = capsys.readouterr()
    assert said.out == f"{contrada.explain(TEXT)}\n"
    assert "filter 2 of 2" in said.out
    assert "wind > 90" in said.out
    assert said.err == ""


def test_explain_names_what_serves_each_constraint_in_the_engine_that_is_chosen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", TEXT, "--engine", "crtree"]) == 0
    said = capsys.readouterr().out
    assert "with the engine crtree:" in said
    assert "CR-tree of area" in said
    assert main(["explain", TEXT, "--engine", "btree"]) == 2
    assert "unknown engine 'btree'" in capsys.readouterr().err


def test_explain_reads_json_and_writes_one_json_object(
    capsys: pytest.CaptureFixture[str],
) -> None:
    predicate = {"op": "between", "args": [{"property": "wind"}, 1, 9007199254740993]}
    assert main(["explain", json.dumps(predicate), "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    answer = json.loads(line)
    assert answer["json"] == predicate
    assert answer["text"] == "wind BETWEEN 1 AND 9007199254740993"
    assert [[c["constraint"] for c in filter_] for filter_ in answer["filters"]]
    assert answer["removed"] == []
    assert answer["engine"] == "strtree"


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ("wind LIEK 'a%'", ['"LIEK"', "character 5"]),
        ("", ["empty"]),
        ("  ", ["empty"]),
        ('{"op": ', ["JSON", "character"]),
        ("storm(wind)", ['"storm"', "character 0"]),
        ("S_WITHIN(area, POLYGON((0 0, 1 1, 1 0, 0 1, 0 0)))", ["self-intersection", "0.5"]),
    ],
)
def test_a_predicate_that_cannot_be_understood_is_refused_in_one_line(
    predicate: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", predicate]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("contrada: ")
    for word in words:
        assert word in line
