"""A disk that is full in mid-commit: what is not taken is not there, and the broker lives on."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker_stories import BOX, feature, incoming, matched, read_all
from contrada.broker import Broker, BrokerOptions
from contrada.broker.log_writing import LogWriter
from contrada.errors import ContradaError, NotFound, OutOfSpace
from hosted import wait_until
from small_disk import SmallDisk, small_disk

NO_RESERVE = BrokerOptions(space_bytes_min=1, is_durable=False, retention_interval_s=0.01)
FRAME_BYTES = 4_120  # of the write-ahead log, a page and its header
INDEXED_FRAMES = 4_062  # by the first page of its index, which then grows by another


@contextmanager
def on_small_disk(tmp_path: Path, megabytes: int) -> Iterator[tuple[SmallDisk, Broker]]:
    """A broker on a disk of its own, with a subscription of all; it must not end by itself.

    Whatever state the disk is left in, the broker closes, and the next one has the same.
    """
    ends: list[str] = []
    with small_disk(tmp_path / "disk", megabytes) as disk:
        broker = Broker.open(disk.folder / "data", NO_RESERVE, on_fatal=ends.append)
        try:
            broker.put_subscription("all", {"geometry": BOX}).result(30)
            yield disk, broker
            kept = ids_kept(broker)
        finally:
            broker.close()
        assert not ends
        disk.empty()
        again = Broker.open(disk.folder / "data", NO_RESERVE)
        assert ids_kept(again) == kept
        again.close()


def publish(broker: Broker, id_: int, size: int = 0) -> bool:
    """Whether an event was stored, for which otherwise there is no room."""
    try:
        broker.publish(incoming([feature(id_, 1, 1, text="x" * size)])).result(30)
    except OutOfSpace:
        return False
    return True


def ids_kept(broker: Broker) -> list[int]:
    return [id_ for id_, _ in matched(read_all(broker, "all", limit=1_000))]


@pytest.mark.parametrize("left_bytes", [0, 4_096, 20_480, 100_000])
def test_what_is_acknowledged_is_there_and_nothing_else(tmp_path: Path, left_bytes: int) -> None:
    with on_small_disk(tmp_path, 12) as (disk, broker):
        stored = [id_ for id_ in range(5) if publish(broker, id_, 5_000)]
        disk.fill(left_bytes)
        stored += [id_ for id_ in range(5, 25) if publish(broker, id_, 10_000)]
        assert 24 not in stored
        assert ids_kept(broker) == stored
        disk.empty()
        wait_until(lambda: publish(broker, 25))
        assert ids_kept(broker) == [*stored, 25]


def test_a_disk_without_room_for_the_index_of_the_log_ends_nothing(tmp_path: Path) -> None:
    with on_small_disk(tmp_path, 40) as (disk, broker):
        log = broker.folder / "log.sqlite-wal"
        stored: list[int] = []
        while log.stat().st_size < FRAME_BYTES * (INDEXED_FRAMES - 30):
            stored.append(len(stored))
            assert publish(broker, stored[-1], 40_000)
        disk.fill(28_000)  # a commit of one event, and no page of the index
        while publish(broker, len(stored)):
            stored.append(len(stored))
            disk.empty()
            disk.fill(28_000)
        assert log.stat().st_size > FRAME_BYTES * INDEXED_FRAMES
        assert ids_kept(broker) == stored
        disk.empty()
        wait_until(lambda: publish(broker, len(stored)))
        assert ids_kept(broker) == [*stored, len(stored)]


def test_what_expires_while_a_disk_is_full_is_ended_when_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with on_small_disk(tmp_path, 12) as (disk, broker):
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1.5))
        broker.put_subscription("brief", {"geometry": BOX, "expires": soon}).result(30)
        disk.fill()
        wait_until(lambda: "what has expired: nothing was stored" in caplog.text)
        assert broker.get_subscription("brief")["id"] == "brief"
        disk.empty()

        def is_gone() -> bool:
            try:
                broker.get_subscription("brief")
            except NotFound:
                return True
            return False

        wait_until(is_gone)


def test_a_broker_on_a_full_disk_closes_and_is_opened_again(tmp_path: Path) -> None:
    with on_small_disk(tmp_path, 12) as (disk, broker):
        assert all(publish(broker, id_, 1_000) for id_ in range(20))
        disk.fill()


@pytest.mark.parametrize("place", ["retention", "checkpoint", "commit"])
def test_a_sync_that_fails_ends_the_process_wherever_it_is(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No disk here fails so, hence this one place where something stands in for it."""
    ends: list[str] = []
    broker = Broker.open(tmp_path, NO_RESERVE, on_fatal=ends.append)

    def fail(*_: object, **__: object) -> None:
        fault = sqlite3.OperationalError("disk I/O error")
        fault.sqlite_errorname = "SQLITE_IOERR_FSYNC"
        raise fault

    name = {"retention": "write_meta", "checkpoint": "checkpoint", "commit": "commit"}[place]
    monkeypatch.setattr(LogWriter, name, fail)
    try:
        publishing = broker.publish(incoming([feature(1, 1, 1)]))
        wait_until(lambda: bool(ends))
        if place == "commit":
            assert not publishing.done() or isinstance(publishing.exception(), ContradaError)
    finally:
        monkeypatch.undo()
        broker.close()
