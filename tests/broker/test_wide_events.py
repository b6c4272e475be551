"""Events that very many subscribers want: each has a block of deliveries of its own."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from broker_stories import cloud_event, feature, incoming, matched, read_all
from contrada.broker import Broker, BrokerOptions
from contrada.broker.log_schema import LOG_FILE
from contrada.broker.retention import block_of
from contrada.broker.verifying import find_log_faults
from contrada.errors import Unavailable

COUNT = 20  # subscribers that make an event a wide one


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrada.broker.retention._BLOCK_DELIVERIES", COUNT)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with closing(Broker.open(tmp_path)) as broker:
        subscribe(broker)
        yield broker


def subscribe(broker: Broker) -> None:
    for number in range(COUNT):
        broker.put_subscription(f"s{number}", {"filter": "speed > 3"}).result()


def publish(broker: Broker, name: str, speed: int = 5) -> int:
    """Publish an event; return its position as a number."""
    answer = broker.publish(cloud_event("/a", name, feature(name, 1, 1, speed=speed))).result()
    return int(answer.position.rpartition("-")[2])


def test_a_wide_event_ends_its_block_and_a_narrow_one_does_not(broker: Broker) -> None:
    wide, narrow, next_ = publish(broker, "a"), publish(broker, "b", 1), publish(broker, "c", 1)
    assert (block_of(wide), block_of(narrow), block_of(next_)) == (0, 1, 1)
    assert next_ == narrow + 1


def test_nothing_is_lost_between_blocks_or_by_a_start(tmp_path: Path) -> None:
    with closing(Broker.open(tmp_path)) as broker:
        subscribe(broker)
        positions = [publish(broker, name) for name in "abc"]
        read = broker.read_deliveries("s7").next
    assert list(map(block_of, positions)) == [0, 1, 2]
    with closing(Broker.open(tmp_path)) as again:
        assert again.read_deliveries("s7", after=read).deliveries == []
        positions += [publish(again, "d"), publish(again, "a")]
        assert block_of(positions[3]) == 3
        assert positions[4] == positions[0], "a repeat is known across blocks"
        assert [id_ for id_, _ in matched(read_all(again, "s7"))] == ["a", "b", "c", "d"]
        assert len(again.read_deliveries("s7", after=read).deliveries) == 1
    assert find_log_faults(tmp_path) == []


def test_a_block_that_is_missing_is_a_fault_and_one_that_ended_early_is_none(
    tmp_path: Path,
) -> None:
    with closing(Broker.open(tmp_path)) as broker:
        subscribe(broker)
        positions = [publish(broker, name) for name in "abc"]
    assert find_log_faults(tmp_path) == []
    with closing(sqlite3.connect(tmp_path / LOG_FILE, isolation_level=None)) as connection:
        for table in ("deliveries", "entries"):
            connection.execute(f"DELETE FROM {table} WHERE position = ?", (positions[1],))
    missing = f"entries {positions[0] + 1} to {positions[2] - 1} are missing"
    assert find_log_faults(tmp_path) == [missing]


def test_repeats_are_counted_by_events_and_not_by_positions(tmp_path: Path) -> None:
    options = BrokerOptions(repeats_events_max=3)
    with closing(Broker.open(tmp_path, options)) as broker:
        subscribe(broker)
        first = [publish(broker, name) for name in "abcd"]
    with closing(Broker.open(tmp_path, options)) as broker:
        assert [publish(broker, name) for name in "dcb"] == first[:0:-1]
        assert publish(broker, "a") > first[-1]


def test_what_could_not_be_stored_leaves_no_gap(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    first = publish(broker, "a", 1)
    with monkeypatch.context() as patch:
        patch.setattr("contrada.broker.track_keeping.TrackKeeping.store", fail)
        with pytest.raises(Unavailable, match="memory"):
            publish(broker, "b")
    assert publish(broker, "c", 1) == first + 1


def test_blocks_that_ended_early_are_dropped_like_others(tmp_path: Path) -> None:
    options = BrokerOptions(retention_bytes=1, retention_interval_s=0.0)
    with closing(Broker.open(tmp_path, options)) as broker:
        subscribe(broker)
        for number in range(4):
            publish(broker, f"{number}")
        while broker.counts()["floor"] < 3 * 4_096 - 1:
            broker.publish(incoming([])).result()
        page = broker.read_deliveries("s0")
        assert page.gap is not None
        assert page.gap.deliveries == 3
        assert [id_ for id_, _ in matched(read_all(broker, "s0"))] == ["3"]
