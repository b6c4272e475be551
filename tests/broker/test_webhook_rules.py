"""What follows from each answer of a webhook's receiver, without a clock or a network."""

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.broker.webhook_rules import (
    RetryTiming,
    Verdict,
    WebhookPhase,
    WebhookReply,
    WebhookRequest,
    WebhookState,
    begin_anew,
    read_retry_after,
    settle,
)

NOW = 1_800_000_000.0
TIMING = RetryTiming()
ACTIVE = WebhookState(WebhookPhase.ACTIVE)
ONE = WebhookRequest("one", count=1)
PING = WebhookRequest("ping", is_ping=True)
OK, REFUSED, BROKEN, GONE = (WebhookReply(status) for status in (204, 422, 500, 410))
NOTHING = WebhookReply(problem="nothing came")
LATE = WebhookReply(problem="nothing came in time", is_late=True)


def after(
    state: WebhookState,
    *replies: WebhookReply,
    request: WebhookRequest = ONE,
    batch: int = 100,
    seed: int = 1,
) -> tuple[Verdict, WebhookState]:
    """The last verdict, and the state after all replies to the same request, one at a time."""
    verdict, random = Verdict.WAIT, Random(seed)
    for reply in replies:
        verdict, state = settle(
            state, request, reply, batch=batch, now=NOW, random=random, timing=TIMING
        )
    return verdict, state


def batch_of(count: int) -> WebhookRequest:
    return WebhookRequest(f"batch of {count}", count=count)


def test_a_new_target_is_active_once_it_accepts_a_ping() -> None:
    verdict, state = after(WebhookState(), OK, request=PING)
    assert (verdict, state.phase, state.last_success) == (Verdict.ACCEPTED, "active", NOW)


def test_a_ping_that_is_refused_waits_and_is_never_dead() -> None:
    verdict, state = after(WebhookState(), *[REFUSED] * 50, request=PING)
    assert (verdict, state.phase) == (Verdict.WAIT, "new")
    assert TIMING.wait_s_max / 2 <= state.wait_s(NOW, TIMING) <= TIMING.wait_s_max


@pytest.mark.parametrize("status", [None, 101, 301, 307, 408, 425, 429, 500, 503, 599, 999])
def test_an_endpoint_that_is_down_makes_no_dead_letter_ever(status: int | None) -> None:
    state = ACTIVE
    for _ in range(200):
        verdict, state = after(state, WebhookReply(status))
        assert verdict is Verdict.WAIT
        assert 0 < state.wait_s(NOW, TIMING) <= 1.1 * TIMING.wait_s_max
    assert state.is_breaker_open


@pytest.mark.parametrize("status", [400, 401, 404, 413, 418, 422, 499])
def test_the_fifth_refusal_makes_a_dead_letter_and_the_next_is_due_at_once(status: int) -> None:
    verdict, state = after(ACTIVE, *[WebhookReply(status)] * 4)
    assert (verdict, state.refusals) == (Verdict.WAIT, 4)
    verdict, state = after(state, WebhookReply(status))
    assert (verdict, state.refusals, state.wait_s(NOW, TIMING)) == (Verdict.DEAD, 0, 0.0)


def test_refusals_are_counted_though_the_endpoint_is_down_in_between() -> None:
    verdict, _ = after(ACTIVE, REFUSED, REFUSED, BROKEN, NOTHING, REFUSED, BROKEN, REFUSED)
    assert verdict is Verdict.WAIT
    verdict, _ = after(ACTIVE, REFUSED, REFUSED, BROKEN, NOTHING, REFUSED, BROKEN, REFUSED, REFUSED)
    assert verdict is Verdict.DEAD


def test_refusals_of_one_are_not_counted_against_another() -> None:
    _, state = after(ACTIVE, *[REFUSED] * 4)
    verdict, state = after(state, REFUSED, request=WebhookRequest("other", is_letter=True))
    assert (verdict, state.refusals) == (Verdict.WAIT, 1)


def test_what_refuses_everything_is_asked_ever_more_seldom() -> None:
    _, state = after(ACTIVE, *[REFUSED] * 5)
    waits = []
    for _ in range(5):
        waits.append(state.wait_s(NOW, TIMING))
        _, state = after(state, REFUSED, request=WebhookRequest("next", count=1))
    assert waits[0] == 0.0
    assert min(waits[1:]) >= 8.0
    assert after(state, OK)[1].failures == 0


def test_410_pauses_and_a_put_begins_with_a_ping() -> None:
    verdict, state = after(ACTIVE, GONE)
    assert (verdict, state.phase) == (Verdict.PAUSE, "paused")
    assert state.last_error == "answered 410"
    assert begin_anew(state, is_other_target=False).phase == "new"


def test_a_put_tries_at_once_and_another_target_answers_a_ping_first() -> None:
    _, state = after(ACTIVE, *[NOTHING] * 10)
    again = begin_anew(state, is_other_target=False)
    assert (again.phase, again.not_before, again.failures) == ("active", 0.0, 0)
    assert again.last_error == "nothing came"
    assert begin_anew(state, is_other_target=True) == WebhookState()


def test_waits_double_up_to_a_limit() -> None:
    state, longest = ACTIVE, []
    for _ in range(10):
        _, state = after(state, REFUSED, request=PING)
        longest.append(min(60.0, 2.0 ** (state.failures - 1)))
        assert longest[-1] / 2 <= state.wait_s(NOW, TIMING) <= longest[-1]
    assert longest[-1] == 60.0


def test_webhooks_that_failed_together_do_not_come_back_together() -> None:
    waits = {after(ACTIVE, NOTHING, seed=seed)[1].not_before for seed in range(20)}
    assert len(waits) == 20


def test_the_same_seed_makes_the_same_waits() -> None:
    assert after(ACTIVE, NOTHING, REFUSED) == after(ACTIVE, NOTHING, REFUSED)


def test_retry_after_makes_a_wait_longer_and_never_shorter() -> None:
    for status in (429, 503, 400):
        _, state = after(ACTIVE, WebhookReply(status, retry_after_s=20.0))
        assert 20.0 <= state.wait_s(NOW, TIMING) <= 22.0
    _, state = after(ACTIVE, *[BROKEN] * 4, WebhookReply(503, retry_after_s=0.0))
    assert state.wait_s(NOW, TIMING) >= 8.0


def test_a_receiver_cannot_ask_for_eternity() -> None:
    _, state = after(ACTIVE, WebhookReply(503, retry_after_s=1e12))
    assert state.wait_s(NOW, TIMING) <= 1.1 * TIMING.retry_after_s_max


def test_a_clock_that_is_put_back_a_year_does_not_stop_a_webhook_for_a_year() -> None:
    _, state = after(ACTIVE, NOTHING)
    assert state.wait_s(NOW - 31_536_000, TIMING) <= 2 * TIMING.retry_after_s_max
    assert state.wait_s(NOW + 31_536_000, TIMING) == 0.0


def test_the_breaker_opens_after_five_failures_and_closes_when_the_endpoint_answers() -> None:
    _, state = after(ACTIVE, *[BROKEN, NOTHING] * 2)
    assert not state.is_breaker_open
    _, state = after(state, BROKEN)
    assert state.is_breaker_open
    assert 30.0 <= state.wait_s(NOW, TIMING) <= 33.0
    assert not after(state, OK)[1].is_breaker_open
    assert not after(state, REFUSED)[1].is_breaker_open


def test_a_batch_is_sent_again_as_it_was() -> None:
    for reply in (BROKEN, NOTHING):
        _, state = after(ACTIVE, reply, request=batch_of(7))
        assert state.count_to_send(100) == 7
        assert after(state, OK, request=batch_of(7))[1].count_to_send(100) == 100


def test_a_batch_that_took_too_long_is_halved_and_grows_back() -> None:
    _, state = after(ACTIVE, LATE, request=batch_of(100))
    assert state.count_to_send(100) == 50
    _, state = after(state, LATE, request=batch_of(50))
    assert state.count_to_send(100) == 25
    sizes = []
    while (size := state.count_to_send(100)) < 100:
        sizes.append(size)
        _, state = after(state, OK, request=batch_of(size))
    assert sizes == [25, 50]


def test_one_that_takes_too_long_is_sent_again() -> None:
    verdict, state = after(ACTIVE, *[LATE] * 10)
    assert (verdict, state.count_to_send(100)) == (Verdict.WAIT, 1)


def test_of_a_batch_that_is_refused_only_the_one_that_is_refused_by_itself_dies() -> None:
    verdict, state = after(ACTIVE, REFUSED, request=batch_of(3))
    assert (verdict, state.count_to_send(100)) == (Verdict.WAIT, 1)
    verdict, state = after(state, OK)
    assert (verdict, state.count_to_send(100)) == (Verdict.ACCEPTED, 1)
    verdict, state = after(state, *[REFUSED] * 5)
    assert (verdict, state.count_to_send(100)) == (Verdict.DEAD, 1)
    verdict, state = after(state, OK)
    assert (verdict, state.count_to_send(100)) == (Verdict.ACCEPTED, 100)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("Fri, 15 Jan 2027 08:00:30 GMT", 30.0),
        ("Friday, 15-Jan-27 08:00:30 GMT", 30.0),
        ("Fri Jan 15 08:00:30 2027", 30.0),
        ("Fri, 01 Jan 2021 00:00:00 GMT", 0.0),
        ("-5", None),
        ("1.5", None),
        ("1e9", None),
        ("9" * 5_000, None),
        ("soon", None),
        ("", None),
        (None, None),
        ("Fri, 99 Jan 2027 08:00:30 GMT", None),
        ("Fri, 31 Dec 9999999999 23:59:59 -9999", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(text: str | None, seconds: float) -> None:
    assert read_retry_after(text, NOW) == seconds


@given(st.text(max_size=50))
def test_no_text_of_retry_after_is_an_error(text: str) -> None:
    found = read_retry_after(text, NOW)
    assert found is None or found >= 0.0


replies = st.builds(
    WebhookReply,
    st.none() | st.sampled_from([200, 204, 301, 400, 404, 410, 429, 500, 503]),
    st.just("wrong"),
    st.none() | st.floats(0, 1e9),
    st.booleans(),
)


@given(st.lists(replies, max_size=60), st.integers(1, 50), st.integers(0, 2**32))
def test_whatever_is_answered_all_are_accepted_or_dead_in_their_order(
    answers: list[WebhookReply], batch: int, seed: int
) -> None:
    state, random, cursor = ACTIVE, Random(seed), 0
    for reply in answers:
        count = state.count_to_send(batch)
        assert 1 <= count <= batch
        request = WebhookRequest(f"{cursor}+{count}", count=count)
        verdict, state = settle(
            state, request, reply, batch=batch, now=NOW, random=random, timing=TIMING
        )
        assert WebhookState.from_json(json.loads(json.dumps(state.to_json()))) == state
        if verdict is Verdict.ACCEPTED:
            assert reply.status in {200, 204}
        if verdict is Verdict.DEAD:
            assert count == 1
            assert reply.status in {400, 404}
        if verdict in {Verdict.ACCEPTED, Verdict.DEAD}:
            cursor += count
            assert state.not_before <= NOW
        if verdict is Verdict.PAUSE:
            state = begin_anew(state, is_other_target=False)
            assert state.phase is WebhookPhase.NEW
            state = replace(state, phase=WebhookPhase.ACTIVE)


def test_a_state_of_another_version_is_read_as_far_as_it_is_known() -> None:
    assert WebhookState.from_json({"phase": "active", "mood": "good"}) == ACTIVE
    assert WebhookState.from_json({}) == WebhookState()
