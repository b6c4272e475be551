"""What is asked of transitions as JSON, and what is refused, with the place of it."""

from __future__ import annotations

from typing import Any

import pytest

from contrada.broker.transition_bodies import (
    FenceTerms,
    TrackingSettings,
    read_tracking_settings,
    read_transitions,
    write_tracking_settings,
)
from contrada.errors import InvalidInput
from contrada.transitions.followed import ALL_KINDS, KINDS


@pytest.mark.parametrize("value", [None, False])
def test_without_transitions_there_are_no_terms(value: Any) -> None:
    assert read_transitions(value, "transitions") is None


@pytest.mark.parametrize("value", [True, {}, {"kinds": None, "dwell": None}])
def test_all_transitions_are_the_default(value: Any) -> None:
    assert read_transitions(value, "transitions") == FenceTerms(kinds=ALL_KINDS)


def test_each_term_is_read() -> None:
    value = {"kinds": ["enter", "dwell"], "hysteresis": 25, "cooldown": "30 s", "dwell": "10 min"}
    kinds = KINDS["enter"] | KINDS["dwell"]
    expected = FenceTerms(25.0, 30_000_000, 600_000_000, kinds)
    assert read_transitions(value, "transitions") == expected


@pytest.mark.parametrize(
    ("value", "place", "what"),
    [
        ("yes", "transitions", "must be true or an object, not 'yes'"),
        ({"kind": []}, "transitions.kind", "there is no such member"),
        ({"kinds": ["leave"]}, "transitions.kinds", "unknown kind of transition 'leave'"),
        ({"kinds": {"enter": 1}}, "transitions.kinds", "must be a list of names"),
        ({"kinds": [["enter"]]}, "transitions.kinds", "is a text, not ['enter']"),
        ({"hysteresis": -1}, "transitions.hysteresis", "must be a number of metres"),
        ({"hysteresis": True}, "transitions.hysteresis", "not True"),
        ({"cooldown": 30}, "transitions.cooldown", "must be a duration such as"),
        ({"cooldown": "soon"}, "transitions.cooldown", "not 'soon'"),
        ({"dwell": "0 s"}, "transitions.dwell", "must be longer than zero"),
    ],
)
def test_what_cannot_be_is_refused_at_its_place(value: Any, place: str, what: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_transitions(value, "transitions")
    assert refused.value.place == place
    assert what in refused.value.what
    assert "timedelta" not in refused.value.what and "None is" not in refused.value.what


def test_settings_have_defaults() -> None:
    assert read_tracking_settings({}) == TrackingSettings()
    assert read_tracking_settings({"object": None}).object == "object_id"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"object": "ship", "time": "at", "silence": "1 h"},
        {"lateness": "1500 ms", "ahead": "0 s", "idle": "7 us"},
        {"lateness": "36 h", "silence": "2 day"},
    ],
)
def test_settings_that_are_written_read_the_same(body: dict[str, Any]) -> None:
    settings = read_tracking_settings(body)
    assert read_tracking_settings(write_tracking_settings(settings)) == settings


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"objects": "x"}, "objects"),
        ({"object": ""}, "object"),
        ({"object": 7}, "object"),
        ({"time": "\ud800"}, "time"),
        ({"silence": "0 s"}, "silence"),
        ({"lateness": "-3 s"}, "lateness"),
        ({"idle": 60}, "idle"),
    ],
)
def test_settings_that_cannot_be_are_refused_at_their_place(body: Any, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_tracking_settings(body)
    assert refused.value.place.strip("'") == place


def test_settings_are_an_object() -> None:
    with pytest.raises(InvalidInput, match="settings are a JSON object"):
        read_tracking_settings([])
