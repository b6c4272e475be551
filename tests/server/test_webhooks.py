"""Webhooks as their receivers see them, whatever these do."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from random import Random
from typing import Any

import pytest

from contrada.broker.broker_options import BrokerOptions
from contrada.errors import InvalidInput
from contrada.server.public_addresses import AddressRules
from contrada.signatures import make_secret, verify_webhook
from server.webhook_receiver import (
    SOON,
    Answer,
    Desk,
    Receiver,
    accept_and_stall,
    calling,
    drip,
    flood,
    flood_headers,
    reset,
    stall,
    with_header,
)


def run(folder: Path, test: Callable[[Desk], Awaitable[None]], **options: Any) -> None:
    """Run a test with a broker whose webhooks are called."""

    async def with_desk() -> None:
        async with calling(folder, **options) as desk:
            await test(desk)

    asyncio.run(with_desk())


def test_a_new_target_answers_a_ping_and_then_gets_all_in_order(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver())
        changed = await desk.call("ops", receiver.url)
        last = await desk.publish(*range(20))
        await receiver.until(lambda: len(receiver.requests) == 20)
        assert receiver.ids == list(range(20))
        assert len(receiver.pings) == 1
        first = receiver.requests[0]
        assert first.line == "POST /hook HTTP/1.1"
        assert first.headers["host"] == f"127.0.0.1:{receiver.port}"
        assert first.headers["content-type"] == "application/cloudevents+json"
        assert first.events[0]["data"]["matches"] == [{"subscription": "all of ops"}]
        for request in receiver.pings + receiver.requests:
            verify_webhook(request.body, request.headers, changed.details["secret"])
        await desk.until(lambda: desk.show("ops")["cursor"] == last)
        shown = desk.show("ops")["webhook"]
        assert (shown["state"], shown["breaker"], shown["failures"]) == ("active", "closed", 0)
        assert "secret" not in json.dumps(desk.show("ops"))
        assert receiver.connections == 1

    run(tmp_path, test)


def test_nothing_is_sent_before_the_ping_is_accepted(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver(pings=(404, 500, reset, 301)))
        await desk.call("ops", receiver.url)
        await desk.publish(1)
        await receiver.until(lambda: bool(receiver.requests))
        assert len(receiver.pings) == 5
        assert len({ping.headers["webhook-id"] for ping in receiver.pings}) == 1

    run(tmp_path, test)


def test_batches_are_lists_in_order(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver())
        await desk.publish(0)
        await desk.call("ops", receiver.url, batch=7)
        await desk.publish(*range(100))
        await receiver.until(lambda: len(receiver.ids) == 100)
        assert receiver.ids == list(range(100))
        assert max(len(request.events) for request in receiver.requests) == 7
        kinds = {request.headers["content-type"] for request in receiver.requests}
        assert kinds == {"application/cloudevents-batch+json"}

    run(tmp_path, test)


def name_of(answer: object) -> str:
    """A name that is the same in every process."""
    return str(getattr(answer, "__name__", answer))


@pytest.mark.parametrize(
    "failure",
    [500, 503, 429, 302, reset, b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200", flood_headers],
    ids=name_of,
)
def test_what_fails_is_sent_again_as_it_was_until_it_is_accepted(
    tmp_path: Path, failure: Answer
) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver(*[failure] * 7))
        await desk.call("ops", receiver.url)
        await desk.publish(1, 2)
        await receiver.until(lambda: len(receiver.requests) == 9)
        assert receiver.ids == [1] * 8 + [2]
        assert len({request.headers["webhook-id"] for request in receiver.requests[:8]}) == 1
        assert len({request.body for request in receiver.requests[:8]}) == 1
        await desk.until(lambda: desk.show("ops")["webhook"]["failures"] == 0)
        assert desk.show("ops")["webhook"]["dead_letters"] == 0

    run(tmp_path, test)


@pytest.mark.parametrize("failure", [stall, drip], ids=name_of)
def test_a_receiver_that_does_not_answer_in_time_is_asked_again(
    tmp_path: Path, failure: Answer
) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver(failure, failure))
        await desk.call("ops", receiver.url)
        await desk.publish(1)
        await receiver.until(lambda: len(receiver.requests) == 3)
        assert receiver.ids == [1, 1, 1]

    run(tmp_path, test, answer_s_max=0.1)


@pytest.mark.parametrize("answer", [flood, accept_and_stall], ids=name_of)
def test_a_2xx_counts_whatever_comes_of_its_body(tmp_path: Path, answer: Answer) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver(answer, answer))
        await desk.call("ops", receiver.url)
        await desk.publish(1, 2, 3)
        await receiver.until(lambda: len(receiver.requests) == 3)
        assert receiver.ids == [1, 2, 3]

    run(tmp_path, test, rest_s_max=0.05)


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        other = await desk.listen(Receiver())
        receiver = await desk.listen(Receiver())
        receiver.script = [with_header(307, f"Location: {other.url}")] * 3
        await desk.call("ops", receiver.url)
        await desk.publish(1)
        await receiver.until(lambda: len(receiver.requests) == 4)
        assert other.connections == 0

    run(tmp_path, test)


def test_what_is_refused_five_times_is_a_dead_letter_and_can_be_sent_again(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver(204, *[422] * 5))
        await desk.call("ops", receiver.url)
        await desk.publish(1, 2, 3)
        await receiver.until(lambda: len(receiver.requests) == 7)
        assert receiver.ids == [1, 2, 2, 2, 2, 2, 3]
        await desk.until(lambda: desk.show("ops")["webhook"]["dead_letters"] == 1)
        letters, following = desk.broker.webhooks.letters.list("ops")
        assert following is None
        (letter,) = letters
        assert json.loads(letter.delivery.json)["data"]["event"]["id"] == 2
        assert (letter.error, letter.is_due) == ("answered 422", False)
        assert await asyncio.wrap_future(desk.broker.webhooks.redrive("ops")) == 1
        await receiver.until(lambda: len(receiver.requests) == 8)
        again = receiver.requests[-1]
        assert (again.ids, again.body) == ([2], receiver.requests[1].body)
        assert again.headers["webhook-id"] == receiver.requests[1].headers["webhook-id"]
        await desk.until(lambda: desk.show("ops")["webhook"]["dead_letters"] == 0)
        await desk.publish(4)
        await receiver.until(lambda: receiver.ids[-1] == 4)

    run(tmp_path, test)


def test_a_dead_letter_that_is_refused_again_stays_one(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver(*[400] * 5, 204, *[418] * 5))
        await desk.call("ops", receiver.url)
        await desk.publish(1, 2)
        await receiver.until(lambda: len(receiver.requests) == 6)
        await desk.until(lambda: desk.show("ops")["webhook"]["dead_letters"] == 1)
        await asyncio.wrap_future(desk.broker.webhooks.redrive("ops"))
        await desk.publish(3)
        await receiver.until(lambda: receiver.ids[-1] == 3)
        assert receiver.ids == [1] * 5 + [2] + [1] * 5 + [3]
        (letter,) = desk.broker.webhooks.letters.list("ops")[0]
        assert (letter.error, letter.is_due) == ("answered 418", False)

    run(tmp_path, test)


def test_of_a_batch_only_what_is_refused_by_itself_is_a_dead_letter(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = Receiver()
        await desk.listen(receiver)
        await desk.call("ops", receiver.url, batch=3)
        await receiver.until(lambda: bool(receiver.pings))
        receiver.script = [413, 204, *[413] * 5]
        await desk.publish(1, 2, 3, 4, 5, 6)
        await receiver.until(lambda: receiver.requests[-1:] != [] and receiver.ids[-1] == 6)
        assert [request.ids for request in receiver.requests] == [
            [1, 2, 3],
            [1],
            *[[2]] * 5,
            [3],
            [4, 5, 6],
        ]
        await desk.until(lambda: desk.show("ops")["webhook"]["dead_letters"] == 1)

    run(tmp_path, test)


def test_410_pauses_until_the_next_put(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver(204, 410))
        await desk.call("ops", receiver.url)
        await desk.publish(1, 2, 3)
        await desk.until(lambda: desk.show("ops")["webhook"]["state"] == "paused")
        await desk.publish(4)
        await desk.until(lambda: desk.webhooks.count_tasks() == 0)
        assert receiver.ids == [1, 2]
        await desk.call("ops", receiver.url)
        await receiver.until(lambda: len(receiver.requests) == 5)
        assert receiver.ids == [1, 2, 2, 3, 4]
        assert len(receiver.pings) == 2

    run(tmp_path, test)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("is_date", [False, True])
def test_retry_after_is_kept_to(tmp_path: Path, status: int, is_date: bool) -> None:
    async def test(desk: Desk) -> None:
        asked = formatdate(time.time() + 1_800, usegmt=True) if is_date else "1800"
        receiver = await desk.listen(Receiver(with_header(status, f"Retry-After: {asked}")))
        await desk.call("ops", receiver.url)
        await desk.publish(1)
        await desk.until(lambda: desk.show("ops")["webhook"]["failures"] == 1)
        webhook = desk.broker.webhooks.find("ops", time.time())
        assert webhook is not None
        assert 1_700 < webhook.state.wait_s(time.time(), SOON) < 2_000
        await desk.publish(2)
        await desk.until(lambda: desk.webhooks.count_tasks() == 0)
        assert len(receiver.requests) == 1
        await desk.call("ops", receiver.url)  # whoever puts it again does not want to wait
        await receiver.until(lambda: receiver.ids == [1, 1, 2])

    run(tmp_path, test)


def test_while_an_endpoint_is_down_all_waits_and_then_comes(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver())
        await desk.call("ops", receiver.url, batch=10)
        await receiver.until(lambda: bool(receiver.pings))
        await desk.end(receiver)
        await desk.publish(*range(25))
        await desk.until(lambda: desk.show("ops")["webhook"]["breaker"] == "open")
        assert "no answer" in desk.show("ops")["webhook"]["last_error"]
        await desk.listen(receiver)
        await receiver.until(lambda: len(receiver.ids) == 25)
        assert receiver.ids == list(range(25))
        await desk.until(lambda: desk.show("ops")["webhook"]["breaker"] == "closed")

    run(tmp_path, test)


def test_a_slow_and_a_dead_receiver_delay_nobody(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        slow = await desk.listen(Receiver(*[stall] * 9))
        dead = await desk.listen(Receiver())
        await desk.call("slow", slow.url)
        await desk.call("dead", dead.url)
        await asyncio.gather(*(r.until(lambda r=r: bool(r.pings)) for r in (slow, dead)))  # type: ignore[misc]
        await desk.end(dead)
        others = [await desk.listen(Receiver()) for _ in range(10)]
        for number, receiver in enumerate(others):
            await desk.call(f"other {number}", receiver.url)
        await desk.publish(*range(10))
        for receiver in others:
            await receiver.until(lambda r=receiver: len(r.requests) == 10)  # type: ignore[misc]
            assert receiver.ids == list(range(10))
        assert len(slow.requests) == 1

    run(tmp_path, test)


def test_a_cursor_that_is_put_back_while_a_request_is_under_way_stays_there(
    tmp_path: Path,
) -> None:
    async def test(desk: Desk) -> None:
        is_put = asyncio.Event()

        async def wait(writer: asyncio.StreamWriter) -> None:
            await is_put.wait()
            writer.write(with_header(204, "X: y"))
            await writer.drain()

        receiver = await desk.listen(Receiver(204, 204, wait))
        await desk.call("ops", receiver.url)
        first = await desk.publish(1)
        await desk.publish(2, 3, 4)
        await receiver.until(lambda: len(receiver.requests) == 3)
        await asyncio.wrap_future(desk.broker.put_cursor("ops", position=first))
        is_put.set()
        await receiver.until(lambda: len(receiver.requests) == 6)
        assert receiver.ids == [1, 2, 3, 2, 3, 4]

    run(tmp_path, test)


def test_a_cursor_that_is_put_back_wakes_a_webhook_that_had_sent_all(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver())
        await desk.call("ops", receiver.url)
        first = await desk.publish(1)
        last = await desk.publish(2)
        await desk.until(lambda: desk.show("ops")["cursor"] == last)
        await asyncio.wrap_future(desk.broker.put_cursor("ops", position=first))
        await receiver.until(lambda: receiver.ids == [1, 2, 2])

    run(tmp_path, test)


def test_another_url_is_pinged_and_takes_over_where_the_first_was(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        one, other = await desk.listen(Receiver()), await desk.listen(Receiver())
        await desk.call("ops", one.url)
        last = await desk.publish(1)
        await desk.until(lambda: desk.show("ops")["cursor"] == last)
        assert not (await desk.call("ops", other.url)).details
        await desk.publish(2)
        await other.until(lambda: bool(other.requests))
        assert (one.ids, other.ids, len(other.pings)) == ([1], [2], 1)

    run(tmp_path, test)


def test_an_old_secret_signs_beside_the_new_one(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        old, new = make_secret(), make_secret()
        receiver = await desk.listen(Receiver())
        await desk.call("ops", receiver.url, secret=old)
        await desk.call("ops", receiver.url, secret=new)
        rotated = await desk.call("ops", receiver.url, rotate=True)
        await desk.publish(1)
        await receiver.until(lambda: bool(receiver.requests))
        request = receiver.requests[0]
        for secret in (old, new, rotated.details["secret"]):
            verify_webhook(request.body, request.headers, secret)
        webhook = desk.broker.webhooks.find("ops", time.time() + 90_000)
        assert webhook is not None
        assert webhook.secrets == (rotated.details["secret"],)

    run(tmp_path, test)


def test_an_equal_put_changes_nothing(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver())
        await desk.call("ops", receiver.url)
        last = await desk.publish(1)
        await desk.until(lambda: desk.show("ops")["cursor"] == last)
        again = await desk.call("ops", receiver.url)
        assert (again.is_changed, again.is_new, again.details) == (False, False, {})

    run(tmp_path, test)


def test_who_reads_again_or_ends_is_not_called(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver())
        for name in ("reads", "ends"):
            await desk.call(name, receiver.url)
        last = await desk.publish(1)
        for name in ("reads", "ends"):
            await desk.until(lambda name=name: desk.show(name)["cursor"] == last)  # type: ignore[misc]
        await asyncio.wrap_future(desk.broker.put_subscriber("reads", {}))
        await asyncio.wrap_future(desk.broker.delete_subscriber("ends"))
        await desk.publish(2)
        await desk.until(lambda: desk.webhooks.count_tasks() == 0)
        assert len(receiver.requests) == 2
        assert "webhook" not in desk.show("reads")
        assert len(desk.broker.read_deliveries("reads").deliveries) == 1

    run(tmp_path, test)


def test_private_addresses_are_not_called_unless_allowed(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver())
        for host in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"):
            with pytest.raises(InvalidInput, match="not a public address"):
                await desk.call("refused", f"http://{host}:{receiver.port}/")
        assert "webhook" not in desk.show("refused")
        for number, host in enumerate(("localhost", "2130706433")):
            await desk.call(f"hook {number}", f"http://{host}:{receiver.port}/")
        for number in range(2):
            name = f"hook {number}"
            await desk.until(lambda name=name: desk.show(name)["webhook"]["failures"] > 0)  # type: ignore[misc]
            last_error = desk.show(name)["webhook"]["last_error"]
            assert "has no public address" in last_error
            assert "127.0.0.1" not in last_error
        assert receiver.connections == 0

    run(tmp_path, test, addresses=AddressRules())


def test_a_proxy_of_the_environment_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver())
        await desk.call("ops", receiver.url)
        await receiver.until(lambda: bool(receiver.pings))

    run(tmp_path, test)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_receiver_does_each_delivery_is_accepted_or_a_dead_letter_in_order(
    tmp_path: Path, seed: int
) -> None:
    choose = Random(seed)
    kinds: list[Answer] = [204, 204, 200, 400, 422, 429, 500, 503, 302, reset, b"", stall]
    receiver = Receiver(*choose.choices(kinds, k=120), pings=(500, reset, 400))

    async def begin(desk: Desk) -> None:
        await desk.listen(receiver)
        await desk.call("ops", receiver.url, batch=choose.choice([1, 3, 10]))
        await desk.publish(*range(20))
        await receiver.until(lambda: len(receiver.requests) >= 2)
        await desk.publish(*range(20, 40))

    async def go_on(desk: Desk) -> None:
        await desk.listen(receiver)
        last = await desk.publish(*range(40, 60))
        await desk.until(lambda: desk.show("ops")["cursor"] == last)
        letters = desk.broker.webhooks.letters.list("ops")[0]
        dead = {json.loads(each.delivery.json)["data"]["event"]["id"] for each in letters}
        accepted = [id_ for request in receiver.accepted for id_ in request.ids]
        came = list(dict.fromkeys(accepted))
        assert came == sorted(came)
        assert dead | set(came) == set(range(60))

    run(tmp_path, begin, answer_s_max=0.1, stop_s_max=0.01)
    run(tmp_path, go_on, answer_s_max=0.1)


def test_states_and_cursors_outlive_a_restart(tmp_path: Path) -> None:
    receivers: list[Receiver] = []

    async def begin(desk: Desk) -> None:
        receiver = await desk.listen(Receiver(204, *[422] * 5, 204, *[500] * 50))
        receivers.append(receiver)
        await desk.call("ops", receiver.url)
        await desk.publish(1, 2, 3, 4, 5)
        await desk.until(lambda: desk.show("ops")["webhook"]["breaker"] == "open")

    async def go_on(desk: Desk) -> None:
        shown = desk.show("ops")["webhook"]
        assert (shown["breaker"], shown["dead_letters"]) == ("open", 1)
        receiver = Receiver()
        receiver.port = receivers[0].port
        await desk.listen(receiver)
        await receiver.until(lambda: len(receiver.requests) == 2)
        assert receiver.ids == [4, 5]
        assert receiver.pings == []
        sent = receivers[0].requests[-1]
        assert receiver.requests[0].body == sent.body
        assert receiver.requests[0].headers["webhook-id"] == sent.headers["webhook-id"]

    run(tmp_path, begin)
    run(tmp_path, go_on)


def test_what_is_no_longer_kept_is_told_before_what_is(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver())
        await desk.call("ops", receiver.url)
        await receiver.until(lambda: bool(receiver.pings))
        await desk.end(receiver)
        await desk.publish(*range(3_000))
        await desk.until(lambda: desk.show("ops")["webhook"]["failures"] == 1)
        for start in (3_000, 6_000):
            await desk.publish(*range(start, start + 3_000))
        await desk.until(lambda: desk.show("ops")["gone"] > 8_000)  # all blocks but the last
        gone = desk.show("ops")["gone"]
        await desk.listen(receiver)
        await desk.call("ops", receiver.url)
        await receiver.until(lambda: len(receiver.requests) == 2)
        told, following = receiver.requests
        assert told.events[0]["type"] == "contrada.gap"
        assert told.events[0]["data"]["deliveries"] == gone
        assert following.ids == [gone]

    kept = BrokerOptions(is_durable=False, retention_bytes=1, retention_interval_s=0.01)
    run(tmp_path, test, kept=kept, timing=replace(SOON, wait_s=600.0, wait_s_max=600.0))


def test_stopping_lets_a_request_under_way_end(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        is_stopping = asyncio.Event()

        async def wait(writer: asyncio.StreamWriter) -> None:
            await is_stopping.wait()
            writer.write(with_header(204, "X: y"))
            await writer.drain()

        receiver = await desk.listen(Receiver(wait))
        await desk.call("ops", receiver.url)
        last = await desk.publish(1)
        await receiver.until(lambda: bool(receiver.requests))
        stopping = asyncio.create_task(desk.webhooks.stop())
        await asyncio.sleep(0)
        is_stopping.set()
        await stopping
        assert desk.show("ops")["cursor"] == last

    run(tmp_path, test)


def test_stopping_does_not_wait_for_who_never_answers(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver(stall))
        await desk.call("ops", receiver.url)
        await desk.publish(1)
        await receiver.until(lambda: bool(receiver.requests))
        await desk.webhooks.stop()
        assert desk.webhooks.count_tasks() == 0

    run(tmp_path, test, stop_s_max=0.05)


def test_answers_are_counted(tmp_path: Path) -> None:
    async def test(desk: Desk) -> None:
        receiver = await desk.listen(Receiver(500, *[400] * 5))
        await desk.call("ops", receiver.url)
        last = await desk.publish(1, 2)
        await desk.until(lambda: desk.show("ops")["cursor"] == last)
        assert desk.webhooks.counts == {
            "webhook_accepted": 2,
            "webhook_failed": 6,
            "webhook_dead": 1,
        }

    run(tmp_path, test, timing=replace(SOON, refusals_max=5))
