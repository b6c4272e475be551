"""A backup of a running broker, what is started from it, and what a check of either finds."""

import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from broker_stories import BOX, feature, incoming, matched, read_all
from contrada.broker import Broker
from contrada.broker.backing_up import back_up
from contrada.broker.tenant_folders import tenant_folder
from contrada.broker.verifying import find_log_faults
from contrada.errors import Conflict, Gone, InvalidInput


def test_a_backup_of_a_broker_that_is_publishing_is_whole(tmp_path: Path) -> None:
    data = tmp_path / "data"
    broker = Broker.open(tenant_folder(data))
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    stopping = threading.Event()

    def publish() -> None:
        number = 0
        while not stopping.is_set():
            broker.publish(incoming([feature(number, 1, 1, speed=5)])).result()
            number += 1

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        while broker.counts()["events"] < 20:
            pass
        (copied,) = back_up(data, tmp_path / "copy")
    finally:
        stopping.set()
        thread.join()
    broker.close()
    folder = tenant_folder(tmp_path / "copy")
    assert find_log_faults(folder) == []
    restored = Broker.open(folder)
    ids = [id_ for id_, _ in matched(read_all(restored, "all"))]
    assert len(ids) >= 20
    assert ids == list(range(len(ids)))
    assert copied.position.rpartition("-")[2] == str(len(ids) + 1)
    restored.close()


def test_nobody_else_may_look_into_a_backup(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    Broker.open(tenant_folder(data)).close()
    back_up(data, copy)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700


def test_positions_after_a_backup_mean_nothing_in_what_is_started_from_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    broker = Broker.open(tenant_folder(data))
    broker.put_subscription("all", {"geometry": BOX}).result()
    broker.publish(incoming([feature("before", 1, 1)])).result()
    before = broker.head
    back_up(data, tmp_path / "copy")
    broker.publish(incoming([feature("after", 1, 1)])).result()
    after = broker.head
    broker.close()
    restored = Broker.open(tenant_folder(tmp_path / "copy"))
    assert matched(read_all(restored, "all")) == [("before", ["all"])]
    restored.publish(incoming([feature("other", 1, 1)])).result()
    assert restored.head != after
    assert restored.head.rpartition("-")[2] == after.rpartition("-")[2]
    assert matched(read_all(restored, "all", before)) == [("other", ["all"])]
    with pytest.raises(Gone, match="came after the backup"):
        restored.ack("all", after)
    restored.close()
    again = Broker.open(tenant_folder(tmp_path / "copy"))
    assert again.describe()["epoch"] == restored.describe()["epoch"]
    again.close()


def test_a_backup_overwrites_nothing_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with pytest.raises(InvalidInput, match="is not the data folder"):
        back_up(data, tmp_path / "copy")
    Broker.open(tenant_folder(data)).close()
    (tmp_path / "copy").mkdir()
    with pytest.raises(Conflict, match="is there already"):
        back_up(data, tmp_path / "copy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "data"]


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("DELETE FROM entries WHERE position = 3", "entries 3 to 3 are missing"),
        ("UPDATE entries SET body = 'nothing' WHERE position = 4", "body of entry 4 is not JSON"),
        ("UPDATE deliveries SET matches = 99 WHERE position = 3", "names subscription 99"),
        ("UPDATE subscriptions SET subscriber = 99", "'all' has no subscriber"),
        ("UPDATE subscribers SET cursor = 99", "cursor of 'all' is at 99"),
        ("UPDATE deliveries SET block = 7 WHERE position = 3", "is in block 7"),
    ],
)
def test_a_check_finds_what_is_wrong(tmp_path: Path, damage: str, fault: str) -> None:
    broker = Broker.open(tmp_path)
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    broker.publish(incoming([feature(i, 1, 1, speed=5) for i in range(5)])).result()
    broker.close()
    assert find_log_faults(tmp_path) == []
    connection = sqlite3.connect(tmp_path / "log.sqlite")
    connection.execute(damage)
    connection.commit()
    connection.close()
    assert fault in "\n".join(find_log_faults(tmp_path))


def test_a_check_finds_a_page_that_is_damaged(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    broker.put_subscription("all", {"filter": "speed > 3"}).result()
    broker.publish(incoming([feature(i, 1, 1, speed=5) for i in range(500)])).result()
    broker.close()
    log = tmp_path / "log.sqlite"
    content = bytearray(log.read_bytes())
    for place in range(5 * 4_096, len(content), 4_096):
        content[place : place + 64] = b"\xff" * 64
    log.write_bytes(content)
    (fault, *_) = find_log_faults(tmp_path)
    assert "is damaged" in fault


def test_a_damaged_page_is_one_line_at_the_start(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    for number in range(300):
        broker.put_subscription(f"{number}", {"filter": f"speed > {number}"})
    broker.close()
    log = tmp_path / "log.sqlite"
    content = bytearray(log.read_bytes())
    for place in range(4_096, len(content), 4_096):
        content[place : place + 16] = b"\xff" * 16
    log.write_bytes(content)
    with pytest.raises(InvalidInput, match="damaged"):
        Broker.open(tmp_path)
    log.write_bytes(b"")
    (tmp_path / "rows" / "some.contrada").write_bytes(b"rows")
    with pytest.raises(InvalidInput, match="though there are rows"):
        Broker.open(tmp_path)
