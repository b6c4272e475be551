"""Collections of rows in a broker: put while others wait for nothing, and there after a start."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
import shapely

from contrada.broker.broker import Broker
from contrada.broker.broker_options import BrokerOptions
from contrada.broker.incoming_events import read_body
from contrada.broker.packing_process import DRAFTS_FOLDER, RowPackers, open_draft
from contrada.broker.restoring import ROWS_FOLDER
from contrada.broker.row_intake import take_rows
from contrada.broker.verifying import find_log_faults
from contrada.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from contrada.matcher.packed_rows import SharedTerms

OPTIONS = BrokerOptions(is_durable=False)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    opened = Broker.open(tmp_path, OPTIONS)
    yield opened
    opened.close()


class InPlace(RowPackers):
    """Packs in this process, which takes no time to start; and may do something before."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._before = before

    def pack(self, source: Path, terms: SharedTerms, gave_up: threading.Event | None = None) -> Any:
        from contrada.broker.row_packing import pack_rows

        self._before()
        return pack_rows(source, source.with_name("packed.contrada"), terms)


def put(
    broker: Broker, id_: str, wests: dict[str, float], packers: RowPackers | None = None
) -> Any:
    """Put squares of side 1 on the equator as the rows of a collection."""
    features = [
        {
            "type": "Feature",
            "id": row,
            "properties": {},
            "geometry": shapely.geometry.mapping(shapely.box(west, 0, west + 1, 1)),
        }
        for row, west in wests.items()
    ]
    with open_draft(broker.folder) as draft:
        source = draft / "rows.geojsonl"
        source.write_text("\n".join(map(json.dumps, features)))
        packing = packers or InPlace()
        none = threading.Event()
        return take_rows(broker, id_, source, packing, none, may_be_empty=True)[0]


def publish(broker: Broker, x: float, **properties: Any) -> int:
    place = {"type": "Point", "coordinates": [x, 0.5]}
    event = {"type": "Feature", "properties": properties, "geometry": place}
    events = read_body(json.dumps(event).encode(), "application/geo+json", {}, None)
    return broker.publish(events).result().matches


def rows_of(broker: Broker, subscriber: str) -> list[list[Any]]:
    """The rows of each delivery of a subscriber."""
    page = broker.read_deliveries(subscriber)
    met = [json.loads(delivery.json)["data"]["matches"] for delivery in page.deliveries]
    return [[match["row"] for match in matches] for matches in met]


def files(broker: Broker) -> int:
    return len(list((broker.folder / ROWS_FOLDER).iterdir()))


def test_deliveries_name_the_rows_that_matched_though_others_have_their_place(
    broker: Broker,
) -> None:
    assert put(broker, "zones", {"a": 0, "b": 0.5}).is_new
    publish(broker, 0.7)
    assert not put(broker, "zones", {"c": 0}).is_new
    publish(broker, 0.7)
    assert publish(broker, 1.2) == 0
    assert rows_of(broker, "zones") == [["a", "b"], ["c"]]


def test_collections_are_there_after_a_start(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path, OPTIONS)
    broker.put_subscription("zones", {"subscriber": "ops", "where": "speed > 3"}).result()
    put(broker, "zones", {"a": 0})
    put(broker, "zones", {"b": 0})
    put(broker, "others", {"z": 0})
    broker.close()
    again = Broker.open(tmp_path, OPTIONS)
    assert publish(again, 0.5, speed=4) == 2
    assert publish(again, 0.5) == 1
    assert rows_of(again, "ops") == [["b"]]
    assert rows_of(again, "others") == [["z"], ["z"]]
    again.close()


@pytest.mark.parametrize("transitions", [False, True])
def test_rows_belong_after_a_start_to_whom_they_were_handed(
    tmp_path: Path, transitions: bool
) -> None:
    broker = Broker.open(tmp_path, OPTIONS)
    broker.put_subscription("zones", {"transitions": transitions, "subscriber": "a"}).result()
    put(broker, "zones", {"x": 0})
    broker.put_subscription("zones", {"transitions": transitions, "subscriber": "b"}).result()
    time = "2026-03-02T08:00:00Z"
    for name in ("one", "two"):
        assert publish(broker, 0.5, object_id=name, time=time) == 1
        broker.close()
        broker = Broker.open(tmp_path, OPTIONS)
    assert rows_of(broker, "a") == []
    assert rows_of(broker, "b") == [["x"], ["x"]]
    broker.close()


def test_files_that_no_change_names_go_at_the_next_start(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path, OPTIONS)
    put(broker, "zones", {"a": 0})
    broker.close()
    (tmp_path / ROWS_FOLDER / "stray.contrada").write_bytes(b"x")
    (tmp_path / DRAFTS_FOLDER / "left").mkdir()
    again = Broker.open(tmp_path, OPTIONS)
    assert files(again) == 1
    assert not (tmp_path / DRAFTS_FOLDER).exists()
    again.close()


def test_a_collection_goes_with_its_subscription(broker: Broker) -> None:
    put(broker, "zones", {"a": 0})
    (path,) = (broker.folder / ROWS_FOLDER).iterdir()
    broker.delete_subscription("zones").result()
    assert broker.counts()["log_bytes"] > path.stat().st_size, "kept for what names its rows"
    assert publish(broker, 0.5) == 0
    assert put(broker, "zones", {"b": 0}).is_new
    assert publish(broker, 0.5) == 1


def test_a_geometry_gives_way_to_rows(broker: Broker) -> None:
    area = shapely.geometry.mapping(shapely.box(5, 0, 6, 1))
    broker.put_subscription("zones", {"geometry": area}).result()
    put(broker, "zones", {"a": 0})
    assert (publish(broker, 0.5), publish(broker, 5.5)) == (1, 0)


def test_a_collection_may_have_no_rows_more_than_once(broker: Broker) -> None:
    put(broker, "zones", {})
    put(broker, "others", {})
    put(broker, "zones", {})
    assert publish(broker, 0.5) == 0
    put(broker, "zones", {"a": 0})
    assert publish(broker, 0.5) == 1


def test_rows_that_were_packed_with_other_conditions_are_refused(broker: Broker) -> None:
    def change() -> None:
        broker.put_subscription("zones", {"where": "speed > 3"}).result()

    with pytest.raises(Conflict, match="has changed while its rows were being packed"):
        put(broker, "zones", {"a": 0}, InPlace(change))
    assert files(broker) == 0
    assert publish(broker, 0.5, speed=4) == 0


def test_rows_whose_subscription_goes_meanwhile_begin_it_anew(broker: Broker) -> None:
    put(broker, "zones", {"a": 0})
    again = InPlace(lambda: broker.delete_subscription("zones").result())
    assert put(broker, "zones", {"b": 0}, again).is_new
    assert publish(broker, 0.5) == 1


def test_a_subscription_with_a_filter_has_no_rows(broker: Broker) -> None:
    broker.put_subscription("gale", {"filter": "wind > 17"}).result()
    with pytest.raises(Conflict, match="'gale' has a filter"):
        put(broker, "gale", {"a": 0})


def test_a_check_finds_rows_that_are_damaged_or_missing(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path, OPTIONS)
    put(broker, "zones", {"a": 0, "b": 1})
    broker.close()
    assert find_log_faults(tmp_path) == []
    (path,) = (tmp_path / ROWS_FOLDER).iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert "cannot be used" in "\n".join(find_log_faults(tmp_path))
    path.unlink()
    assert "cannot be used" in "\n".join(find_log_faults(tmp_path))


def test_long_lists_of_rows_are_named_as_short_ones_are(broker: Broker) -> None:
    broker.put_subscription("plain", {"filter": "x IS NULL", "subscriber": "zones"}).result()
    put(broker, "zones", {f"row {i}": 0 for i in range(40)})
    broker.put_subscription("late", {"filter": "x IS NULL", "subscriber": "zones"}).result()
    publish(broker, 0.5)
    page = broker.read_deliveries("zones")
    found = json.loads(page.deliveries[0].json)["data"]["matches"]
    assert found == [
        {"subscription": "plain"},
        *(
            {"subscription": "zones", "row": f"row {i}", "relation": "intersects"}
            for i in range(40)
        ),
        {"subscription": "late"},
    ]
