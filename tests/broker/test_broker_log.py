"""The broker as its users in Python see it: change, publish, read, acknowledge, start again."""

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from broker_stories import BOX, cloud_event, feature, incoming, matched, read_all
from contrada.broker import Broker, BrokerOptions
from contrada.broker.commit_tasks import CursorTask
from contrada.broker.log_reading import DELIVERIES_BYTES_MAX
from contrada.broker.log_schema import LOG_FILE, open_reading
from contrada.broker.repeats import RepeatWindow, StoredEvent
from contrada.broker.verifying import find_log_faults
from contrada.errors import Conflict, Gone, InvalidInput, NotFound, OutOfSpace, Unavailable


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    opened = Broker.open(tmp_path / "data")
    yield opened
    opened.close()


def test_an_event_is_delivered_once_with_all_that_a_subscriber_matched(broker: Broker) -> None:
    broker.put_subscription("harbour", {"geometry": BOX, "subscriber": "ops"}).result()
    broker.put_subscription("fast", {"filter": "speed > 3", "subscriber": "ops"}).result()
    broker.put_subscription("own", {"filter": "speed > 3"}).result()
    published = broker.publish(incoming([feature("a", 1, 1, speed=5)])).result()
    assert (published.accepted, published.matches) == (1, 3)
    (delivery,) = read_all(broker, "ops")
    assert delivery["id"] == delivery["position"] == published.position
    assert delivery["data"]["event"] == feature("a", 1, 1, speed=5)
    assert delivery["data"]["matches"] == [
        {"subscription": "harbour", "relation": "intersects"},
        {"subscription": "fast"},
    ]
    assert matched(read_all(broker, "own")) == [("a", ["own"])]


def test_an_event_is_matched_against_the_changes_before_it(broker: Broker) -> None:
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    broker.publish(incoming([feature("a", 1, 1, speed=5)])).result()
    broker.put_subscription("all", {"filter": "speed > 7"}).result()
    broker.publish(incoming([feature("b", 1, 1, speed=5), feature("c", 1, 1, speed=9)])).result()
    broker.delete_subscription("all").result()
    broker.publish(incoming([feature("d", 1, 1, speed=9)])).result()
    assert matched(read_all(broker, "all")) == [("a", ["all"]), ("c", ["all"])]


def test_what_waits_together_is_answered_in_its_order(broker: Broker) -> None:
    waiting = [broker.put_subscription("all", {"filter": "speed > 3"})]
    events = []
    for number in range(20):
        events.append(broker.publish(incoming([feature(number, 1, 1, speed=5)])))
        waiting.append(broker.put_subscription("all", {"filter": f"speed > {number % 7}"}))
    for future in waiting:
        future.result()
    expected = [number for number in range(20) if (3 if number == 0 else (number - 1) % 7) < 5]
    assert [id_ for id_, _ in matched(read_all(broker, "all"))] == expected
    positions = [int(future.result().position.rpartition("-")[2]) for future in events]
    assert positions == sorted(positions)


def test_an_equal_body_changes_nothing(broker: Broker) -> None:
    body = {"filter": "speed > 3", "relation": None}
    first = broker.put_subscription("all", body).result()
    again = broker.put_subscription("all", {"filter": "speed > 3", "id": "all"}).result()
    assert first.is_new
    assert not again.is_changed
    assert again.position == first.position == broker.head


def test_a_bad_event_is_told_and_the_others_are_stored(broker: Broker) -> None:
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    bad = feature("b", 1, 1, speed=5) | {"geometry": {"type": "Point", "coordinates": [1]}}
    events = [feature("a", 1, 1, speed=5), bad, feature("c", 1, 1, speed=5)]
    published = broker.publish(incoming(events)).result()
    assert published.accepted == 2
    assert [error.index for error in published.errors] == [1]
    assert [id_ for id_, _ in matched(read_all(broker, "all"))] == ["a", "c"]
    refused = broker.publish(incoming(events), all_or_none=True).result()
    assert refused.accepted == 0
    assert [id_ for id_, _ in matched(read_all(broker, "all"))] == ["a", "c"]
    broker.publish(incoming([bad])).result()
    assert broker.counts()["bad"] == 3, "whether or not others of its request are stored"


def test_a_second_geometry_is_judged_if_a_subscription_reads_it(broker: Broker) -> None:
    bow = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}
    event = feature("a", 1, 1, area=bow)
    assert not broker.publish(incoming([event])).result().errors
    broker.put_subscription("areas", {"geometry": BOX, "attribute": "area"}).result()
    published = broker.publish(incoming([event, feature("b", 1, 1)])).result()
    assert published.accepted == 1
    assert [error.index for error in published.errors] == [0]
    assert "area" in published.errors[0].detail


def test_a_repeat_gets_the_position_of_the_first(broker: Broker) -> None:
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    first = broker.publish(cloud_event("/a", "1", feature("x", 1, 1, speed=5))).result()
    again = broker.publish(cloud_event("/a", "1", feature("x", 1, 1, speed=5))).result()
    other = broker.publish(cloud_event("/b", "1", feature("x", 1, 1, speed=5))).result()
    assert (again.position, again.matches, again.repeated) == (first.position, 1, 1)
    assert other.position != first.position
    assert len(read_all(broker, "all")) == 2


def test_repeats_within_what_waits_together_and_after_a_start_are_known(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    futures = [
        broker.publish(incoming([feature(i, 1, 1, speed=5) for i in range(3)], "request-7"))
        for _ in range(5)
    ]
    assert len({future.result().position for future in futures}) == 1
    broker.close()
    broker = Broker.open(tmp_path)
    again = broker.publish(incoming([feature(i, 1, 1, speed=5) for i in range(3)], "request-7"))
    assert again.result().repeated == 3
    assert again.result().position == futures[0].result().position
    assert len(read_all(broker, "all")) == 3
    broker.close()


def test_an_id_of_a_feature_makes_no_repeat(broker: Broker) -> None:
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    for _ in range(2):
        broker.publish(incoming([feature("van", 1, 1, speed=5)])).result()
    assert len(read_all(broker, "all")) == 2


def test_reading_moves_no_cursor_and_an_ack_never_moves_it_back(broker: Broker) -> None:
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    broker.publish(incoming([feature(i, 1, 1, speed=5) for i in range(5)])).result()
    page = broker.read_deliveries("all", limit=2)
    assert broker.read_deliveries("all", limit=2) == page
    assert not page.is_end
    second = page.deliveries[1].position
    assert broker.ack("all", second).result() == second
    assert [id_ for id_, _ in matched(read_all(broker, "all"))] == [2, 3, 4]
    assert broker.ack("all", page.deliveries[0].position).result() == second
    first = broker.put_cursor("all", position=page.deliveries[0].position).result()
    assert first == page.deliveries[0].position
    assert [id_ for id_, _ in matched(read_all(broker, "all"))] == [1, 2, 3, 4]
    assert [id_ for id_, _ in matched(read_all(broker, "all", after=second))] == [2, 3, 4]


def test_a_subscriber_shows_since_when_its_next_delivery_waits(broker: Broker) -> None:
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    assert "waiting_since" not in broker.get_subscriber("all")
    for name in ("a", "b"):
        broker.publish(incoming([feature(name, 1, 1, speed=5)])).result()
    first, second = read_all(broker, "all")
    for delivery, left in ((first, 2), (second, 1)):
        shown = broker.get_subscriber("all")
        assert (shown["waiting"], shown["waiting_since"]) == (left, delivery["time"])
        broker.ack("all", delivery["position"]).result()
    shown = broker.get_subscriber("all")
    assert shown["waiting"] == 0
    assert "waiting_since" not in shown


def test_a_cursor_goes_to_a_time(broker: Broker) -> None:
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    broker.publish(incoming([feature("a", 1, 1, speed=5)])).result()
    (delivery,) = read_all(broker, "all")
    broker.ack("all", broker.head).result()
    broker.put_cursor("all", time=delivery["time"]).result()
    assert [id_ for id_, _ in matched(read_all(broker, "all"))] == ["a"]
    broker.put_cursor("all", time="2100-01-01T00:00:00Z").result()
    assert read_all(broker, "all") == []
    with pytest.raises(InvalidInput, match="is not a moment"):
        broker.put_cursor("all", time="noon")
    with pytest.raises(InvalidInput, match="either"):
        broker.put_cursor("all")


def test_everything_is_there_after_a_start(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    broker.put_subscription("harbour", {"geometry": BOX, "where": "speed > 3"}).result()
    broker.put_subscription("gone", {"filter": "speed > 0"}).result()
    broker.publish(incoming([feature("a", 1, 1, speed=5), feature("b", 1, 1, speed=6)])).result()
    broker.delete_subscription("gone").result()
    position = broker.read_deliveries("harbour", limit=1).deliveries[0].position
    broker.ack("harbour", position).result()
    head = broker.head
    broker.close()
    broker = Broker.open(tmp_path)
    assert broker.head == head
    broker.publish(incoming([feature("c", 1, 1, speed=7)])).result()
    assert matched(read_all(broker, "harbour")) == [("b", ["harbour"]), ("c", ["harbour"])]
    assert matched(read_all(broker, "gone")) == [("a", ["gone"]), ("b", ["gone"])]
    assert broker.get_subscription("harbour")["where"] == "speed > 3"
    with pytest.raises(NotFound, match="'gone'"):
        broker.get_subscription("gone")
    broker.close()


def test_a_second_broker_on_a_folder_is_refused(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    with pytest.raises(Unavailable, match="another broker is running on this folder"):
        Broker.open(tmp_path)
    broker.close()
    Broker.open(tmp_path).close()


def test_a_newer_log_and_what_is_no_log_are_refused(tmp_path: Path) -> None:
    Broker.open(tmp_path).close()
    log = tmp_path / "log.sqlite"
    content = bytearray(log.read_bytes())
    content[60:64] = (99).to_bytes(4, "big")  # the user version in SQLite's header
    log.write_bytes(content)
    with pytest.raises(InvalidInput, match="written by a newer version, in format 99"):
        Broker.open(tmp_path)
    log.write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(InvalidInput, match="is not a log, or damaged"):
        Broker.open(tmp_path)


@pytest.mark.parametrize(
    ("body", "place", "words"),
    [
        ({"filter": "wind >"}, "", "the predicate ends too early, at character 6"),
        ({"filter": "wind > 1", "geometry": BOX}, "", "not both"),
        ({}, "", "neither a filter nor a geometry"),
        ({"filters": "wind > 1"}, "filters", "there is no such member"),
        ({"filter": "wind > 1", "id": "other"}, "id", "the id in the path"),
        ({"filter": "wind > 1", "expires": "soon"}, "expires", "is not a moment"),
        ({"filter": "wind > 1", "expires": "2020-01-01T00:00:00Z"}, "expires", "is in the past"),
        ({"filter": "wind > 1", "subscriber": ""}, "subscriber", "a name is a text"),
        ({"geometry": BOX, "relation": "near"}, "", "near"),
    ],
)
def test_a_bad_body_is_refused_with_its_place(
    broker: Broker, body: dict[str, object], place: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        broker.put_subscription("x", body)
    assert place in refused.value.place
    with pytest.raises(NotFound):
        broker.get_subscription("x")


def test_positions_of_others_are_refused(broker: Broker) -> None:
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    for text in ("", "7", "abcdefgh-", "abcdefgh-07", "x" * 100):
        with pytest.raises(InvalidInput, match="is not a position"):
            broker.read_deliveries("all", after=text)
    with pytest.raises(Gone, match="another log"):
        broker.ack("all", "abcdefgh-1")
    with pytest.raises(InvalidInput, match="is not there yet"):
        broker.ack("all", broker.head + "0")
    with pytest.raises(NotFound, match="no subscriber 'nobody'"):
        broker.read_deliveries("nobody")
    with pytest.raises(NotFound, match="no subscriber 'nobody'"):
        broker.ack("nobody", broker.head).result()


def test_a_subscriber_ends_with_its_subscriptions_and_begins_anew(broker: Broker) -> None:
    broker.put_subscription("a", {"filter": "speed > 3", "subscriber": "ops"}).result()
    broker.put_subscription("b", {"filter": "speed > 3", "subscriber": "ops"}).result()
    broker.publish(incoming([feature("x", 1, 1, speed=5)])).result()
    assert broker.delete_subscriber("ops").result().details == {"subscriptions": 2}
    with pytest.raises(NotFound):
        broker.read_deliveries("ops")
    with pytest.raises(NotFound):
        broker.delete_subscriber("ops").result()
    assert broker.put_subscriber("ops", {}).result().is_new
    broker.publish(incoming([feature("y", 1, 1, speed=5)])).result()
    assert read_all(broker, "ops") == []
    assert broker.list_subscribers() == {
        "subscribers": [
            {"name": "ops", "cursor": broker.get_subscriber("ops")["cursor"]}
            | {"waiting": 0, "gone": 0}
        ],
        "next": None,
    }


def test_lists_come_in_pages(broker: Broker) -> None:
    for name in "dacbe":
        broker.put_subscription(name, {"filter": "speed > 3"}).result()
    page = broker.list_subscriptions(limit=2)
    assert [each["id"] for each in page["subscriptions"]] == ["a", "b"]
    page = broker.list_subscriptions(limit=3, after=page["next"])
    assert [each["id"] for each in page["subscriptions"]] == ["c", "d", "e"]
    assert page["next"] is None
    with pytest.raises(InvalidInput, match="PAGE_DELIVERIES_MAX"):
        broker.list_subscriptions(limit=0)


def test_a_list_is_short_where_its_subscriptions_are_large(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.broker.log_reading._LIST_BYTES_MAX", 1_000)
    for name in "abcd":
        kinds = [{"property": "kind"}, ["x" * (600 if name < "c" else 100)]]
        broker.put_subscription(name, {"filter": {"op": "in", "args": kinds}}).result()
    pages, after = [], None
    while True:
        page = broker.list_subscriptions(after=after)
        pages.append([each["id"] for each in page["subscriptions"]])
        if (after := page["next"]) is None:
            break
    assert pages == [["a"], ["b", "c"], ["d"]]


def test_explanations_of_one_answer_are_bounded_but_for_the_first(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.broker.asking.WHY_CHARACTERS_MAX", 50)
    for name in "ab":
        broker.put_subscription(name, {"geometry": BOX, "where": "speed > 3"}).result()
    event = feature("x", 1, 1, speed=5)
    assert broker.match({"event": event, "why": ["a"]})["why"]["a"]["matches"]
    with pytest.raises(InvalidInput, match=r"why: .* ask for fewer ids at once") as refused:
        broker.match({"event": event, "why": ["a", "b"]})
    assert refused.value.place == "why"


def test_a_subscription_expires(broker: Broker) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    broker.put_subscription("old", {"filter": "speed > 3", "expires": soon}).result()
    late = {"filter": "speed > 3", "expires": "2120-01-01T00:00:00Z"}
    broker.put_subscription("late", late).result()
    broker.publish(incoming([feature("x", 1, 1, speed=5)])).result()
    while "old" in {each["id"] for each in broker.list_subscriptions()["subscriptions"]}:
        broker.publish(incoming([])).result()
    broker.publish(incoming([feature("y", 1, 1, speed=5)])).result()
    assert [id_ for id_, _ in matched(read_all(broker, "late"))] == ["x", "y"]
    assert "y" not in [id_ for id_, _ in matched(read_all(broker, "old"))]


def test_who_waits_is_woken_by_its_own_deliveries_only(broker: Broker) -> None:
    broker.put_subscription("slow", {"filter": "speed < 3"}).result()
    broker.put_subscription("fast", {"filter": "speed > 3"}).result()
    woken: list[str] = []
    stop = broker.watch("slow", lambda: woken.append("slow"))
    broker.watch("fast", lambda: woken.append("fast"))
    broker.publish(incoming([feature("x", 1, 1, speed=5)])).result()
    assert woken == ["fast"]
    stop()
    broker.publish(incoming([feature("x", 1, 1, speed=1)])).result()
    assert woken == ["fast"]


@pytest.mark.parametrize("at_once", [50_000, 999])
def test_what_is_old_goes_by_blocks_and_who_lacks_it_is_told(
    tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.broker.log_writing._DROPPED_AT_ONCE", at_once)
    options = BrokerOptions(retention_bytes=1, retention_interval_s=0.0)
    broker = Broker.open(tmp_path, options)
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    beginning = broker.get_subscriber("all")["cursor"]
    for start in range(0, 10_000, 500):
        events = [feature(i, 1, 1, speed=5) for i in range(start, start + 500)]
        broker.publish(incoming(events)).result()
    while broker.read_deliveries("all").gap is None or broker.counts()["floor"] < 8_191:
        broker.publish(incoming([])).result()
    page = broker.read_deliveries("all")
    assert page.gap is not None
    floor = int(page.gap.until.rpartition("-")[2])
    assert page.gap.deliveries == floor - 1  # the first entry is the subscription
    kept = read_all(broker, "all", limit=1_000)
    assert [id_ for id_, _ in matched(kept)] == list(range(floor - 1, 10_000))
    with pytest.raises(Gone, match="is no longer kept"):
        broker.put_cursor("all", position=beginning)
    broker.ack("all", f"{beginning.partition('-')[0]}-{floor - 10}").result()
    gap = broker.read_deliveries("all").gap
    assert gap is not None
    assert gap.deliveries == 10, "what was acknowledged is not lost"
    broker.ack("all", broker.head).result()
    assert broker.read_deliveries("all").gap is None
    broker.close()


def test_who_has_lost_nothing_is_told_of_no_gap(tmp_path: Path) -> None:
    options = BrokerOptions(retention_bytes=1, retention_interval_s=0.0)
    with closing(Broker.open(tmp_path, options)) as broker:
        broker.put_subscription("slow", {"filter": "speed < 3"}).result()
        broker.publish(incoming([feature("old", 1, 1, speed=1)])).result()
        read = broker.read_deliveries("slow").next
        broker.put_subscription("quiet", {"filter": "speed > 9"}).result()
        while broker.counts()["floor"] < 4_095:
            events = [feature(i, 1, 1, speed=5) for i in range(500)]
            broker.publish(incoming(events)).result()
        for name, after in (("quiet", None), ("quiet", broker.get_subscriber("quiet")["cursor"])):
            page = broker.read_deliveries(name, after=after)
            assert (page.deliveries, page.gap) == ([], None)
        assert broker.read_deliveries("slow").gap is not None
        own = broker.read_deliveries("slow", after=read).gap
        assert own is not None, "which of those that are gone came after it is not known"
        assert own.deliveries is None


def test_what_was_replaced_counts_among_what_is_kept(broker: Broker) -> None:
    names = "x" * 20_000
    for number in range(10):
        body = {"filter": f"name = '{names}{number}'", "subscriber": "ops"}
        broker.put_subscription("all", body).result()
    assert 180_000 < broker.counts()["log_bytes"] < 190_000
    broker.delete_subscriber("ops").result()
    assert 200_000 < broker.counts()["log_bytes"] < 210_000


def test_without_room_on_the_disk_only_cursors_and_deletions_are_stored(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    broker.publish(incoming([feature("x", 1, 1, speed=5)])).result()
    broker.close()
    broker = Broker.open(tmp_path, BrokerOptions(space_bytes_min=2**62))
    with pytest.raises(OutOfSpace, match="only cursors and deletions"):
        broker.publish(incoming([feature("y", 1, 1, speed=5)]))
    with pytest.raises(OutOfSpace):
        broker.put_subscription("more", {"filter": "speed > 3"})
    broker.ack("all", broker.head).result()
    broker.delete_subscription("all").result()
    broker.close()


def test_the_log_says_who_changed_what(broker: Broker, tmp_path: Path) -> None:
    import sqlite3

    broker.put_subscription("all", {"filter": "speed > 3"}, by="key ops").result()
    broker.delete_subscription("all").result()
    with sqlite3.connect(tmp_path / "data" / "log.sqlite") as connection:
        bodies = [body for (body,) in connection.execute("SELECT body FROM entries WHERE kind = 1")]
    connection.close()
    assert [json.loads(body) for body in bodies] == [
        {"change": "put", "name": "all", "by": "key ops"},
        {"change": "delete", "name": "all"},
    ]


def test_there_are_no_more_subscriptions_than_may_be(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path, BrokerOptions(subscriptions_max=2))
    for number in range(4):  # numbers of versions do not count
        broker.put_subscription("a", {"filter": f"speed > {number}"}).result()
    broker.put_subscription("b", {"filter": "speed > 3"}).result()
    with pytest.raises(Conflict, match="there can be no more"):
        broker.put_subscription("c", {"filter": "speed > 3"}).result()
    broker.delete_subscription("a").result()
    broker.put_subscription("c", {"filter": "speed > 3"}).result()
    broker.close()


def test_no_reader_passes_by_what_is_being_committed(broker: Broker) -> None:
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    broker.put_subscription("moved", {"geometry": BOX, "transitions": True}).result()
    start, pages = broker.head, []

    class Reading:
        """Reads when a commit is on disk, and before anybody is told of it."""

        def store(self) -> None: ...

        def drop(self) -> None: ...

        def keep(self) -> None:
            pages.append(broker.read_deliveries("all", after=start))

    class ReadingWindow(RepeatWindow):
        """Reads when a part of what is to be told was told."""

        def add(self, events: Iterable[tuple[bytes, StoredEvent]], now_us: int) -> None:
            pages.append(broker.read_deliveries("all", after=start))

    broker._writer.partners.append(Reading())
    broker._window = ReadingWindow(1, 1)
    moved = feature("a", 1, 1, speed=5, object_id="van", time="2026-03-02T08:00:00Z")
    published = broker.publish(incoming([moved])).result()
    broker._writer.partners.pop()
    assert len(pages) == 2
    for page in pages:
        assert page.deliveries or page.next == start
    assert broker.read_deliveries("all", after=start).next == published.position
    assert len(read_all(broker, "moved")) == 1


def test_a_page_is_short_where_each_delivery_has_many_matches(broker: Broker) -> None:
    wanted = [
        broker.put_subscription(f"s{i}", {"filter": f"speed > {-i}", "subscriber": "ops"})
        for i in range(3_000)
    ]
    for future in wanted:
        future.result()
    events = [feature(i, 1, 1, speed=5) for i in range(40)]
    assert broker.publish(incoming(events)).result().matches == 120_000
    page = broker.read_deliveries("ops")
    assert sum(len(delivery.json) for delivery in page.deliveries) < 2 * DELIVERIES_BYTES_MAX
    assert not page.is_end
    assert [id_ for id_, _ in matched(read_all(broker, "ops"))] == list(range(40))


@pytest.mark.timeout(8)  # it took ten seconds, twice
def test_nobody_waits_for_who_reads_the_log_for_long_as_a_backup_does(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    broker.publish(incoming([feature("a", 1, 1)])).result()
    with closing(open_reading(tmp_path / LOG_FILE)) as backup:
        backup.execute("BEGIN")
        assert backup.execute("SELECT count(*) FROM entries").fetchone() == (1,)
        broker.publish(incoming([feature("b", 1, 1)])).result()
        task = CursorTask(lambda _: None)
        broker._committer.submit(task)
        task.future.result()
        broker._writer.checkpoint(is_idle=True)
        broker.close()
        assert backup.execute("SELECT count(*) FROM entries").fetchone() == (1,)
    broker = Broker.open(tmp_path)
    assert broker.head.endswith("-2")
    broker.close()


def test_many_subscriptions_that_expire_together_end_but_for_one_that_was_changed(
    tmp_path: Path,
) -> None:
    broker = Broker.open(tmp_path)
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    body = {"filter": "speed > 3", "subscriber": "ops"}
    for future in [broker.put_subscription(f"s{i}", body | {"expires": soon}) for i in range(450)]:
        future.result()
    broker.put_subscription("s7", body).result()
    while broker.counts()["subscriptions"] > 1:
        broker.publish(incoming([])).result()
    assert [each["id"] for each in broker.list_subscriptions()["subscriptions"]] == ["s7"]
    assert broker.publish(incoming([feature("a", 1, 1, speed=5)])).result().matches == 1
    broker.close()
    assert find_log_faults(tmp_path) == []


def test_events_that_match_very_much_together_are_refused_and_others_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.broker.event_storing.REQUEST_MATCHES_MAX", 30)
    broker = Broker.open(tmp_path)
    for number in range(20):
        body = {"filter": f"speed > {number / 100}", "subscriber": "all"}
        broker.put_subscription(f"{number}", body).result()
    much = broker.publish(incoming([feature(i, 1, 1, speed=5) for i in range(2)]))
    one = broker.publish(incoming([feature("one", 1, 1, speed=5)]))
    few = broker.publish(incoming([feature(i, 1, 1, speed=0.05) for i in range(5)]))
    with pytest.raises(InvalidInput, match="send fewer in one request"):
        much.result()
    assert one.result().matches == 20
    assert few.result().matches == 25
    assert [id_ for id_, _ in matched(read_all(broker, "all"))] == ["one", 0, 1, 2, 3, 4]
    broker.close()
