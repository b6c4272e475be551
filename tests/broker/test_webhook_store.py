"""What a broker stores of webhooks: results count once, and only for what they were sent with."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker_stories import feature, incoming
from contrada.broker.broker import Broker
from contrada.broker.broker_options import BrokerOptions
from contrada.broker.webhook_rules import WebhookPhase, WebhookState
from contrada.broker.webhook_store import Webhook, WebhookResult
from contrada.errors import Conflict, Gone, InvalidInput, NotFound
from contrada.signatures import make_secret

NOW = 1_800_000_000.0
URL = "https://receiver.example/hook"
ACTIVE = WebhookState(WebhookPhase.ACTIVE, last_success=NOW)
FAILED = replace(ACTIVE, failures=3, last_error="answered 500", not_before=NOW + 60)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    opened = Broker.open(tmp_path / "data", BrokerOptions(is_durable=False))
    opened.put_subscription("all", {"filter": "id >= 0", "subscriber": "ops"}).result()
    yield opened
    opened.close()


def put(broker: Broker, **more: Any) -> Any:
    return broker.put_subscriber("ops", {"webhook": {"url": URL, **more}}).result()


def find(broker: Broker, now: float = NOW) -> Webhook:
    webhook = broker.webhooks.find("ops", now)
    assert webhook is not None
    return webhook


def publish(broker: Broker, *ids: int) -> list[str]:
    return [broker.publish(incoming([feature(id_, 1, 1, id=id_)])).result().position for id_ in ids]


def bury(broker: Broker, positions: list[str], error: str = "answered 422") -> None:
    """Make dead letters of deliveries, one after the other."""
    for position in positions:
        result = WebhookResult(replace(ACTIVE, last_error=error), cursor=position, dead=position)
        assert broker.webhooks.settle(find(broker), result).result()


def test_a_webhook_is_new_and_its_secret_is_shown_once(broker: Broker) -> None:
    changed = put(broker)
    webhook = find(broker)
    assert webhook.secrets == (changed.details["secret"],)
    assert (webhook.url, webhook.batch, webhook.state) == (URL, 1, WebhookState())
    assert not put(broker).details
    shown = broker.get_subscriber("ops")
    assert shown["webhook"]["state"] == "new"
    for text in (json.dumps(shown), repr(webhook)):
        assert changed.details["secret"] not in text
    assert broker.webhooks.list_names() == ["ops"]


def test_a_secret_that_is_given_is_not_shown(broker: Broker) -> None:
    secret = make_secret()
    assert put(broker, secret=secret).details == {}
    assert find(broker).secrets == (secret,)


def test_a_result_is_stored_with_its_cursor(broker: Broker) -> None:
    put(broker)
    (position,) = publish(broker, 1)
    assert broker.webhooks.settle(find(broker), WebhookResult(ACTIVE, cursor=position)).result()
    assert find(broker).state == ACTIVE
    assert find(broker).cursor == position == broker.get_subscriber("ops")["cursor"]


def test_a_result_of_what_was_sent_before_a_change_counts_for_nothing(broker: Broker) -> None:
    put(broker)
    first, second = publish(broker, 1, 2)
    result = WebhookResult(ACTIVE, cursor=second)
    before = find(broker)
    put(broker, batch=5)
    assert not broker.webhooks.settle(before, result).result()
    before = find(broker)
    broker.ack("ops", first).result()
    assert not broker.webhooks.settle(before, result).result()
    before = find(broker)
    broker.put_subscriber("ops", {}).result()
    assert not broker.webhooks.settle(before, result).result()
    broker.delete_subscriber("ops").result()
    assert not broker.webhooks.settle(before, result).result()


def test_a_put_ends_a_wait_and_a_pause(broker: Broker) -> None:
    put(broker)
    for state in (FAILED, replace(FAILED, phase=WebhookPhase.PAUSED)):
        broker.webhooks.settle(find(broker), WebhookResult(state)).result()
        changed = put(broker)
        was_paused = state.phase is WebhookPhase.PAUSED
        assert (changed.is_changed, changed.position == broker.head) == (was_paused, was_paused)
        assert find(broker).state.not_before == 0.0
        broker.put_subscriber("other", {}).result()
    assert find(broker).state.phase is WebhookPhase.NEW


def test_a_webhook_that_waits_shows_why(broker: Broker) -> None:
    put(broker)
    broker.webhooks.settle(find(broker), WebhookResult(FAILED)).result()
    shown = broker.get_subscriber("ops")["webhook"]
    assert shown == {
        "url": URL,
        "batch": 1,
        "state": "active",
        "breaker": "closed",
        "failures": 3,
        "last_success": "2027-01-15T08:00:00.000000Z",
        "next_attempt": "2027-01-15T08:01:00.000000Z",
        "last_error": "answered 500",
        "dead_letters": 0,
    }


def test_secrets_that_are_replaced_are_valid_for_a_day(broker: Broker) -> None:
    old, new = make_secret(), make_secret()
    put(broker, secret=old)
    put(broker, secret=new)
    assert find(broker).secrets[0] == new
    assert set(find(broker, 0.0).secrets) == {new, old}
    assert find(broker, 1e11).secrets == (new,)
    put(broker, secret=old)
    assert find(broker, 0.0).secrets == (old, new)
    for _ in range(10):
        put(broker, rotate=True)
    assert len(find(broker, 0.0).secrets) == 4


def test_who_watches_hears_of_every_change_of_a_webhook(broker: Broker) -> None:
    heard: list[str] = []
    stop = broker.webhooks.watch(heard.append)
    put(broker)
    broker.put_cursor("ops", position=broker.head).result()
    broker.webhooks.redrive("ops").result()
    broker.put_subscriber("ops", {}).result()
    broker.delete_subscriber("ops").result()
    assert heard == ["ops"] * 5
    stop()
    put(broker)
    assert heard == ["ops"] * 5


def test_dead_letters_are_listed_page_by_page(broker: Broker) -> None:
    put(broker)
    positions = publish(broker, *range(5))
    bury(broker, positions[:4])
    letters = broker.webhooks.letters
    page, following = letters.list("ops", limit=3)
    assert [letter.delivery.position for letter in page] == positions[:3]
    assert {letter.error for letter in page} == {"answered 422"}
    assert following == positions[2]
    page, following = letters.list("ops", after=following, limit=3)
    assert [letter.delivery.position for letter in page] == positions[3:4]
    assert following is None
    assert broker.get_subscriber("ops")["webhook"]["dead_letters"] == 4


def test_letters_are_sent_again_in_their_order_and_then_gone(broker: Broker) -> None:
    put(broker)
    positions = publish(broker, *range(4))
    bury(broker, positions)
    letters = broker.webhooks.letters
    assert not find(broker).letters_due
    assert broker.webhooks.redrive("ops", [positions[2], positions[1]]).result() == 2
    for position in positions[1:3]:
        assert find(broker).letters_due
        due = letters.find_due("ops")
        assert due is not None
        assert due.position == position
        result = WebhookResult(ACTIVE, accepted=position)
        assert broker.webhooks.settle(find(broker), result).result()
    assert not find(broker).letters_due
    assert letters.find_due("ops") is None
    left = [letter.delivery.position for letter in letters.list("ops")[0]]
    assert left == [positions[0], positions[3]]
    assert find(broker).cursor == positions[3]


def test_what_is_to_be_sent_again_waits_for_nothing_but_a_pause(broker: Broker) -> None:
    put(broker)
    bury(broker, publish(broker, 1))
    for state, wait_s in ((FAILED, 0.0), (replace(FAILED, phase=WebhookPhase.PAUSED), NOW + 60)):
        broker.webhooks.settle(find(broker), WebhookResult(state)).result()
        assert broker.webhooks.redrive("ops").result() == 1
        assert find(broker).state.not_before == wait_s


def test_letters_of_who_reads_are_shown_and_cannot_be_sent(broker: Broker) -> None:
    put(broker)
    bury(broker, publish(broker, 1))
    broker.put_subscriber("ops", {}).result()
    assert broker.get_subscriber("ops")["dead_letters"] == 1
    with pytest.raises(Conflict, match="no webhook"):
        broker.webhooks.redrive("ops").result()


def test_letters_of_a_subscriber_that_is_not_there_are_not_found(broker: Broker) -> None:
    with pytest.raises(NotFound):
        broker.webhooks.letters.list("nobody")
    with pytest.raises(NotFound):
        broker.webhooks.redrive("nobody").result()
    with pytest.raises(InvalidInput):
        broker.webhooks.redrive("ops", ["here"])
    with pytest.raises(Gone):
        broker.webhooks.redrive("ops", ["aaaaaaaa-1"])


def test_a_subscriber_that_begins_anew_has_no_letters(broker: Broker) -> None:
    put(broker)
    bury(broker, publish(broker, 1))
    broker.delete_subscriber("ops").result()
    assert put(broker).is_new
    assert broker.get_subscriber("ops")["webhook"]["dead_letters"] == 0
    (count,) = broker._writer.connection.execute("SELECT count(*) FROM dead_letters").fetchone()
    assert count == 0


def test_letters_go_with_the_log(tmp_path: Path) -> None:
    options = BrokerOptions(is_durable=False, retention_bytes=1, retention_interval_s=0.01)
    broker = Broker.open(tmp_path, options)
    broker.put_subscription("all", {"filter": "id >= 0", "subscriber": "ops"}).result()
    put(broker)
    old = publish(broker, 1)
    bury(broker, old)
    for _ in range(3):
        broker.publish(incoming([feature(0, 1, 1, id=-1)] * 3_000)).result()
    while int(broker.counts()["floor"]) < 4_095:
        publish(broker, -1)
    assert broker.get_subscriber("ops")["webhook"]["dead_letters"] == 0
    assert broker.webhooks.letters.list("ops") == ([], None)
    assert broker.webhooks.redrive("ops").result() == 0
    bury(broker, publish(broker, 2))
    (count,) = broker._writer.connection.execute("SELECT count(*) FROM dead_letters").fetchone()
    assert count == 1
    broker.close()


def test_webhooks_outlive_a_restart(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    broker.put_subscription("all", {"filter": "id >= 0", "subscriber": "ops"}).result()
    put(broker, batch=7)
    bury(broker, publish(broker, 1), "answered 400, which is too many")
    before = find(broker)
    broker.close()
    broker = Broker.open(tmp_path)
    assert find(broker) == before
    (letter,) = broker.webhooks.letters.list("ops")[0]
    assert letter.error == "answered 400, which is too many"
    broker.close()
