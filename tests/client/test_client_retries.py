"""What is sent again, when, and what an answer means: the steps of a call, without a socket."""

import json
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from contrada.client.calls import call
from contrada.client.exchange import BrokerRequest, HttpAnswer, NoAnswer, Pause
from contrada.client.retrying import FOR_EVER, ONCE, PAUSE_S_MAX, Attempts, Persistence, ask
from contrada.errors import (
    BrokerStarting,
    Conflict,
    ContradaError,
    Gone,
    InvalidInput,
    NotFound,
    OutOfSpace,
    Overloaded,
    Unavailable,
)

UNSENT, LOST = NoAnswer("no connection", is_sent=False), NoAnswer("no answer", is_sent=True)
DONE = HttpAnswer(200, {}, b"{}")
GET = BrokerRequest("GET", "/v1/settings")
UNREPEATABLE = BrokerRequest("POST", "/v1/once", is_repeatable=False)


def answered(status: int, headers: dict[str, str] | None = None, **problem: Any) -> HttpAnswer:
    body = json.dumps(problem).encode() if problem else b"<html>"
    kind = {"content-type": "application/problem+json"} if problem else {}
    return HttpAnswer(status, kind | (headers or {}), body)


def play(
    steps: Generator[Any, Any, Any],
    *outcomes: HttpAnswer | NoAnswer,
    pauses: list[float] | None = None,
) -> tuple[Any, list[float]]:
    """Answer the requests of a call one after the other; return its result, and the pauses."""
    left, is_whole = list(outcomes), pauses is None
    pauses = [] if pauses is None else pauses
    outcome: Any = None
    try:
        while True:
            step = steps.send(outcome)
            if isinstance(step, Pause):
                pauses.append(step.seconds)
                outcome = None
            else:
                outcome = left.pop(0)
    except StopIteration as stop:
        assert not (left and is_whole)
        return stop.value, pauses


def failure(*outcomes: HttpAnswer | NoAnswer, method: str = "PUT") -> ContradaError:
    with pytest.raises(ContradaError) as failed:
        play(call(method, "/v1/x", {}, persistence=Persistence(1)), *outcomes)
    return failed.value


@pytest.mark.parametrize(
    "outcome", [UNSENT, LOST, answered(502), answered(503), answered(504), answered(429)]
)
def test_what_may_pass_is_tried_again(outcome: HttpAnswer | NoAnswer) -> None:
    answer, pauses = play(ask(GET, Attempts(Persistence())), outcome, outcome, DONE)
    assert answer is DONE
    assert len(pauses) == 2


@pytest.mark.parametrize("outcome", [answered(400), answered(404), answered(500), answered(507)])
def test_what_will_not_pass_is_not_tried_again(outcome: HttpAnswer) -> None:
    assert play(ask(GET, Attempts(Persistence())), outcome) == (outcome, [])


def test_what_must_not_be_done_twice_is_sent_again_only_if_it_was_not_done() -> None:
    assert play(ask(UNREPEATABLE, Attempts(Persistence())), UNSENT, answered(503), DONE)[0] is DONE
    with pytest.raises(Unavailable, match="no answer"):
        play(ask(UNREPEATABLE, Attempts(Persistence())), LOST)


def test_attempts_come_to_an_end_and_pauses_grow() -> None:
    attempts = Attempts(Persistence(6))
    with pytest.raises(Unavailable, match="no connection"):
        play(ask(GET, attempts), *[UNSENT] * 7)
    assert attempts.failed == 7
    pauses = [pause.seconds for _ in range(20) if (pause := Attempts(FOR_EVER, _).pause())]
    assert max(pauses) <= 10
    assert pauses[0] < 1 < pauses[8]


def test_a_listener_has_no_last_attempt() -> None:
    assert play(ask(GET, Attempts(FOR_EVER)), *[UNSENT] * 500, DONE)[0] is DONE


def test_a_pause_that_is_asked_for_is_kept() -> None:
    _, pauses = play(ask(GET, Attempts(Persistence())), answered(503, {"retry-after": "7"}), DONE)
    assert 7 <= pauses[0] <= 8
    past = {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}
    _, pauses = play(ask(GET, Attempts(Persistence())), answered(429, past), DONE)
    assert pauses[0] <= 1
    _, pauses = play(
        ask(GET, Attempts(Persistence())), answered(503, {"retry-after": "soon"}), DONE
    )
    assert pauses[0] <= 1


def test_a_pause_that_is_too_long_is_for_the_caller() -> None:
    long = {"retry-after": f"{PAUSE_S_MAX + 1:.0f}"}
    error = failure(answered(503, long, detail="full"))
    assert isinstance(error, Overloaded)
    assert (str(error), error.retry_after_s) == ("full", PAUSE_S_MAX + 1)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidInput),
        (401, InvalidInput),
        (403, InvalidInput),
        (404, NotFound),
        (409, Conflict),
        (410, Gone),
        (413, InvalidInput),
        (500, Unavailable),
        (507, OutOfSpace),
    ],
)
def test_a_problem_is_an_error_in_the_words_of_the_broker(
    status: int, kind: type[ContradaError]
) -> None:
    error = failure(answered(status, detail="where: what", place="where", code="bad"))
    assert type(error) is kind
    assert str(error) == "where: what"
    if isinstance(error, InvalidInput):
        assert (error.place, error.code, error.what) == ("where", "bad", "what")


def starting(took_s: float = 0.0) -> HttpAnswer:
    answer = answered(503, {"retry-after": "2"}, detail="the broker is starting", code="starting")
    return replace(answer, took_s=took_s)


AWAY = NoAnswer("no connection", is_sent=False, was_there=True)


@pytest.mark.parametrize(
    ("outcome", "took_s", "tries"),
    [(starting(), 0, (9, 16)), (starting(5.0), 5, (5, 7)), (AWAY, 0, (15, 40))],
)
def test_a_broker_that_restarts_is_waited_for_by_time(
    outcome: HttpAnswer | NoAnswer, took_s: float, tries: tuple[int, int]
) -> None:
    pauses: list[float] = []
    attempts = Attempts(Persistence(1))
    with suppress(Unavailable):
        play(ask(GET, attempts), *[outcome] * 100, pauses=pauses)
    count = len(pauses) + 1
    assert 30 <= sum(pauses) + count * took_s <= 40
    assert tries[0] <= count <= tries[1]


def test_retries_are_left_when_a_broker_is_back() -> None:
    steps = ask(GET, Attempts(Persistence(2)))
    opening = [starting()] * 4
    answer, _ = play(steps, UNSENT, UNSENT, AWAY, answered(502), *opening, DONE)
    assert answer is DONE


@pytest.mark.parametrize("persistence", [ONCE, Persistence(5, restart_s=0)])
def test_a_broker_that_restarts_is_not_waited_for_where_that_is_asked_for(
    persistence: Persistence,
) -> None:
    assert play(ask(GET, Attempts(persistence)), starting())[1] == []


def test_a_broker_that_is_still_starting_is_told_from_one_that_is_busy() -> None:
    with pytest.raises(BrokerStarting, match=r"the broker is starting; .*restart_s") as failed:
        play(call("GET", "/v1/x", persistence=ONCE), starting())
    assert isinstance(failed.value, Overloaded)
    assert failed.value.retry_after_s == 2


@pytest.mark.parametrize("restart_s", [-1, float("nan")])
def test_a_time_for_restarts_is_not_negative(restart_s: float) -> None:
    with pytest.raises(InvalidInput, match="restart_s"):
        Persistence(restart_s=restart_s)


def test_several_bad_rows_are_listed() -> None:
    error = failure(answered(400, detail="2 rows are bad", errors=[{"detail": "row 1"}, {}]))
    assert "row 1" in str(error)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (answered(500), "500 Internal Server Error"),
        (answered(599), "599"),
        (HttpAnswer(200, {}, b"<html>hello"), "<html>hello"),
        (HttpAnswer(200, {}, b"[" * 100_000), "does not answer as a broker"),
        (HttpAnswer(200, {}, b"[]"), "does not answer as a broker"),
        (HttpAnswer(200, {}, b'{"next": 7}'), "as this version expects"),
    ],
)
def test_who_is_no_broker_is_unavailable(answer: HttpAnswer, words: str) -> None:
    from contrada.client.calls import change

    with pytest.raises(Unavailable, match=words):
        play(change("PUT", "/v1/x", {}, persistence=ONCE), answer)


def test_a_server_that_sends_on_is_not_followed() -> None:
    error = failure(answered(308, {"location": "https://else.example/"}))
    assert isinstance(error, InvalidInput)
    assert "https://else.example/" in str(error)


def test_a_deletion_whose_answer_was_lost_may_have_been_done() -> None:
    gone = answered(404, detail="there is no subscription 'gale'")
    assert "may have deleted it" in str(failure(LOST, gone, method="DELETE"))
    assert "may have deleted it" not in str(failure(UNSENT, gone, method="DELETE"))
