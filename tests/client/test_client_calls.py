"""A client and a real broker: each call does what it says, and errors are those of the library."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
import shapely

import contrada
from contrada.client.awaiting import AsyncClient
from contrada.client.blocking import Client
from contrada.client.received import ReceivedMatch
from contrada.errors import Gone, InvalidInput, NotFound
from served_broker import ServedBroker

STRANGE = ["a/b", "..", ".", "50%", "a b", "?x=1#y", "ü", "+"]


def test_an_event_reaches_the_subscriber_that_wants_it(client: Client) -> None:
    changed = client.put_subscription("gale", "wind > 17", subscriber="ops")
    receipt = client.publish([{"wind": 20}, {"wind": 5}, {"wind": 30}])
    assert changed.is_new
    assert (receipt.accepted, receipt.matches, receipt.errors) == (3, 2, ())
    page = client.deliveries("ops")
    assert [delivery.event["properties"] for delivery in page.deliveries if delivery.event] == [
        {"wind": 20},
        {"wind": 30},
    ]
    assert page.deliveries[0].matches == (ReceivedMatch("gale"),)
    assert page.next == receipt.position


def test_an_equal_subscription_changes_nothing(client: Client) -> None:
    first = client.put_subscription("gale", "wind > 17")
    second = client.put_subscription("gale", "wind > 17")
    assert (first.is_new, first.is_changed) == (True, True)
    assert (second.is_new, second.is_changed) == (False, False)


def test_a_subscription_takes_what_matcher_add_takes(client: Client) -> None:
    square = shapely.box(0, 0, 9, 9)
    client.put_subscription(
        "pond", geometry=square, relation=contrada.Relation.INSIDE, where="wind > 17"
    )
    client.put_subscription("bay", geometry=square.wkb, relation="within", attribute="area")
    client.put_subscription("text", geometry=square.wkt)
    client.put_subscription("json", {"op": ">", "args": [{"property": "wind"}, 17]})
    assert client.get_subscription("pond")["relation"] == "ehInside"
    assert client.get_subscription("bay")["attribute"] == "area"
    inner = {"geometry": shapely.box(1, 1, 2, 2), "area": shapely.Point(1, 1), "wind": 20}
    found = {match.subscription for match in client.match(inner)}
    assert found == {"pond", "bay", "text", "json"}


def test_a_subscription_that_expires_says_when(client: Client) -> None:
    end = datetime.now(UTC) + timedelta(hours=1)
    client.put_subscription("gale", "wind > 17", expires=end)
    assert client.get_subscription("gale")["expires"] == end.isoformat()


@pytest.mark.parametrize("id_", STRANGE)
def test_any_id_can_stand_in_a_path(client: Client, id_: str) -> None:
    client.put_subscription(id_, "wind > 17")
    assert client.get_subscription(id_)["id"] == id_
    assert client.deliveries(id_).deliveries == ()
    client.delete_subscription(id_)
    with pytest.raises(NotFound):
        client.get_subscription(id_)


def test_a_bad_predicate_is_refused_in_the_words_of_the_library(client: Client) -> None:
    with pytest.raises(InvalidInput) as theirs:
        client.put_subscription("gale", "wind >")
    with pytest.raises(InvalidInput) as ours:
        contrada.Matcher().add("gale", "wind >")
    assert theirs.value.what == ours.value.what


def test_a_place_is_named_once(client: Client) -> None:
    with pytest.raises(InvalidInput) as refused:
        client.put_subscription("gale", "wind > 17", expires="soon")
    assert refused.value.place == "expires"
    assert str(refused.value).count("expires") == 1


def test_what_is_not_there_is_not_found(client: Client) -> None:
    for ask in (
        lambda: client.get_subscription("gale"),
        lambda: client.delete_subscription("gale"),
        lambda: client.get_subscriber("ops"),
        lambda: client.deliveries("ops"),
        lambda: next(client.listen("ops")),
        lambda: client.why("gale", {"wind": 20}),
    ):
        with pytest.raises(NotFound):
            ask()


def test_a_position_of_another_log_is_gone(client: Client) -> None:
    client.put_subscription("gale", "wind > 17", subscriber="ops")
    with pytest.raises(Gone):
        client.deliveries("ops", after="aaaaaaaa-1")


def test_lists_go_over_all_pages(client: Client) -> None:
    ids = [f"gale-{number:03}" for number in range(205)]
    for id_ in ids:
        client.put_subscription(id_, "wind > 17", subscriber="ops" if id_ < "gale-2" else "sea")
    assert [found["id"] for found in client.list_subscriptions()] == ids
    assert len(list(client.list_subscriptions(subscriber="sea"))) == 5
    assert [found["name"] for found in client.list_subscribers()] == ["ops", "sea"]


def test_an_ack_moves_the_cursor_forward_and_a_cursor_goes_anywhere(client: Client) -> None:
    client.put_subscription("gale", "wind > 17", subscriber="ops")
    client.publish([{"wind": 20}, {"wind": 30}])
    first, second = client.deliveries("ops").deliveries
    assert client.ack("ops", second.position) == second.position
    assert client.ack("ops", first.position) == second.position
    assert client.deliveries("ops").deliveries == ()
    assert client.put_cursor("ops", position=first.position) == first.position
    assert client.deliveries("ops").deliveries == (second,)
    client.put_cursor("ops", time=datetime(2020, 1, 1))  # noqa: DTZ001 - without a zone it is UTC
    assert client.deliveries("ops").deliveries == (first, second)
    with pytest.raises(InvalidInput):
        client.put_cursor("ops")


def test_why_names_each_constraint(client: Client) -> None:
    client.put_subscription("gale", "wind > 17")
    assert client.why("gale", {"wind": 20})["matches"] is True
    assert client.why("gale", {"wind": 5})["matches"] is False
    assert client.explain("wind > 17")["text"] == "wind > 17"


def test_transitions_name_the_object_and_what_happened(client: Client) -> None:
    client.put_settings(object="ship", lateness="0 s")
    client.put_subscription(
        "harbour", geometry=shapely.box(0, 0, 2, 2), transitions=True, subscriber="ops"
    )
    places = [("08:00", "POINT(5 5)"), ("08:10", "POINT(1 1)"), ("08:20", "POINT(5 5)")]
    client.publish(
        {"ship": "a", "time": f"2026-03-02T{time}:00Z", "geometry": place} for time, place in places
    )
    heard = islice(client.listen("ops"), 2)
    matches = [match for delivery in heard for match in delivery.matches]
    assert [(match.object, match.transition) for match in matches] == [
        ("a", "enter"),
        ("a", "exit"),
    ]
    assert (matches[0].time or "").startswith("2026-03-02T08:10:00")


def test_a_deleted_subscriber_takes_its_subscriptions_along(client: Client) -> None:
    client.put_subscription("gale", "wind > 17", subscriber="ops")
    client.delete_subscriber("ops")
    assert list(client.list_subscriptions()) == []


def test_the_asynchronous_client_has_the_same_calls(served: ServedBroker) -> None:
    def public(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient)

    async def talk() -> list[str]:
        async with AsyncClient(served.url) as client:
            await client.put_subscription("gale", "wind > 17", subscriber="ops")
            receipt = await client.publish([{"wind": 20}, {"wind": 30}])
            position = await client.ack("ops", (await client.deliveries("ops")).next)
            assert position == receipt.position
            await client.put_cursor("ops", time="2020-01-01T00:00:00Z")
            assert [found["id"] async for found in client.list_subscriptions()] == ["gale"]
            assert [found["name"] async for found in client.list_subscribers()] == ["ops"]
            assert (await client.match({"wind": 20}))[0].subscription == "gale"
            assert (await client.why("gale", {"wind": 2}))["matches"] is False
            assert (await client.get_subscription("gale"))["subscriber"] == "ops"
            assert (await client.get_subscriber("ops"))["name"] == "ops"
            heard = []
            async for delivery in client.listen("ops", auto_ack=True):
                heard.append(str(delivery.event))
                if len(heard) == 2:
                    break
            await client.delete_subscription("gale")
            await client.delete_subscriber("ops")
            return heard

    first, second = asyncio.run(talk())
    assert "20" in first
    assert "30" in second


def test_a_closed_client_says_so(served: ServedBroker) -> None:
    client = Client(served.url)
    client.close()
    with pytest.raises(InvalidInput, match="closed"):
        client.match({"wind": 20})
