"""Transitions in a broker: enter, exit, dwell and the rest as deliveries, and never twice."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from broker_stories import BOX, feature, incoming, read_all
from contrada.broker import Broker
from contrada.broker.verifying import find_log_faults
from contrada.errors import InvalidInput


def at(object_: Any, minute: float, x: float, y: float, **more: Any) -> dict[str, Any]:
    hours, minutes = divmod(minute, 60)
    seconds = round(minutes % 1 * 60)
    time = f"2026-03-02T{8 + int(hours):02}:{int(minutes):02}:{seconds:02}Z"
    return feature(f"{object_}/{minute}", x, y, object_id=object_, time=time, **more)


def publish(broker: Broker, events: Sequence[dict[str, Any]]) -> None:
    assert not broker.publish(incoming(events)).result().errors


def said(deliveries: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What each match of each delivery says: transition, object, minute, cause, event."""
    return [
        (
            match.get("transition"),
            match.get("object"),
            match["time"][14:16] if "time" in match else None,
            match.get("cause"),
            delivery["data"].get("event", {}).get("id"),
        )
        for delivery in deliveries
        for match in delivery["data"]["matches"]
    ]


def test_a_subscription_with_transitions_gets_them_and_no_plain_matches(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    broker.put_subscription(
        "depot", {"geometry": BOX, "subscriber": "fleet", "transitions": True}
    ).result()
    broker.put_subscription("fast", {"filter": "speed > 3", "subscriber": "fleet"}).result()
    publish(broker, [at("van", 0, 9, 9, speed=5), at("van", 10, 1, 1, speed=5)])
    publish(broker, [at("van", 20, 2, 2, speed=1), feature("no position", 1, 1, speed=9)])
    publish(broker, [at("van", 30, 9, 9, speed=1)])
    assert said(read_all(broker, "fleet")) == [
        (None, None, None, None, "van/0"),
        (None, None, None, None, "van/10"),
        ("enter", "van", "10", "position", "van/10"),
        ("inside", "van", "20", "position", "van/20"),
        (None, None, None, None, "no position"),
        ("exit", "van", "30", "position", "van/30"),
    ]
    broker.close()
    assert find_log_faults(tmp_path) == []


def test_visits_go_on_after_a_start_and_end_with_their_subscription(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    asked = {"kinds": ["enter", "exit", "dwell"], "dwell": "30 min"}
    body = {"geometry": BOX, "subscriber": "fleet", "transitions": asked}
    broker.put_subscription("depot", body).result()
    publish(broker, [at("van", 0, 1, 1)])
    broker.close()
    broker = Broker.open(tmp_path)
    publish(broker, [at("bus", 40, 9, 9), at("van", 45, 2, 2)])
    broker.put_subscription("depot", body | {"where": "speed > 3"}).result()
    publish(broker, [at("van", 50, 2, 2, speed=5)])
    broker.close()
    broker = Broker.open(tmp_path)
    broker.delete_subscription("depot").result()
    publish(broker, [at("van", 55, 1, 1, speed=5)])
    assert said(read_all(broker, "fleet")) == [
        ("enter", "van", "00", "position", "van/0"),
        ("dwell", "van", "30", "clock", None),
        ("exit", "van", "50", "version", None),
    ]
    broker.close()
    assert find_log_faults(tmp_path) == []


def test_a_dwell_that_is_due_because_its_subscription_changed_is_delivered(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    body = {"geometry": BOX, "subscriber": "fleet"}
    broker.put_subscription("depot", body | {"transitions": {"dwell": "1 h"}}).result()
    publish(broker, [at("van", 0, 1, 1), at("bus", 10, 9, 9)])
    broker.put_subscription("depot", body | {"transitions": {"dwell": "1 min"}}).result()
    assert said(read_all(broker, "fleet")) == [
        ("enter", "van", "00", "position", "van/0"),
        ("dwell", "van", "01", "clock", None),
    ]
    broker.close()


def test_late_positions_are_held_counted_and_applied_in_order(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    broker.put_settings({"lateness": "10 min", "object": "vehicle"}).result()
    assert broker.get_settings()["lateness"] == "10 min"
    broker.put_subscription("depot", {"geometry": BOX, "transitions": True}).result()

    def vehicle(minute: float, x: float) -> dict[str, Any]:
        event = at("van", minute, x, 1)
        event["properties"]["vehicle"] = event["properties"].pop("object_id")
        return event

    publish(broker, [vehicle(5, 9), vehicle(0, 1)])
    assert read_all(broker, "depot") == []
    broker.close()
    broker = Broker.open(tmp_path)
    publish(broker, [vehicle(30, 1)])
    publish(broker, [vehicle(2, 1)])
    deliveries = read_all(broker, "depot")
    assert said(deliveries) == [
        ("enter", "van", "00", "position", "van/0"),
        ("exit", "van", "05", "position", "van/5"),
    ]
    assert deliveries[0]["data"]["event"]["geometry"]["coordinates"] == [1, 1]
    assert broker.counts()["positions_late"] == 1
    broker.close()


def test_a_position_from_the_future_is_refused(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    broker.put_subscription("depot", {"geometry": BOX, "transitions": True}).result()
    event = at("van", 0, 1, 1)
    event["properties"]["time"] = "2199-01-01T00:00:00Z"
    (error,) = broker.publish(incoming([event])).result().errors
    assert "ahead of the broker's clock" in error.detail
    broker.close()


def test_an_expired_fence_ends_its_visits(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    from datetime import UTC, datetime, timedelta

    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    body = {"geometry": BOX, "transitions": True, "expires": soon}
    broker.put_subscription("depot", body).result()
    publish(broker, [at("van", 0, 1, 1)])
    while len(read_all(broker, "depot")) < 2:
        broker.publish(incoming([])).result()
    assert said(read_all(broker, "depot"))[1] == ("exit", "van", "00", "version", None)
    broker.close()


BESIDE = {"geometry": BOX, "relation": "disjoint"}


@pytest.mark.parametrize(
    ("body", "asked", "words"),
    [
        ({"geometry": BOX}, {"kinds": ["cross", "dwell"], "dwell": "1 s", "hysteresis": 5}, []),
        ({"geometry": BOX}, True, []),
        ({"filter": "speed > 3"}, {"kinds": ["enter"]}, []),
        ({"filter": "speed > 3"}, {"kinds": ["cross"]}, ["needs a fence"]),
        (BESIDE, {"kinds": ["cross"], "hysteresis": 5}, ["kinds", "hysteresis"]),
        ({"relation": "disjoint"}, {"hysteresis": 5}, ["needs a fence"]),
        ({"relation": "within"}, {"hysteresis": 5}, []),
        ({"geometry": BOX}, {"kinds": ["dwell"]}, ["without `dwell`"]),
        ({"geometry": BOX}, {"kinds": ["enter"], "dwell": "1 s"}, ['lacks "dwell"']),
        ({"geometry": BOX}, {"kinds": []}, ["names no transition"]),
    ],
)
def test_what_can_do_nothing_is_warned_of(
    tmp_path: Path, body: dict[str, object], asked: object, words: list[str]
) -> None:
    with closing(Broker.open(tmp_path)) as broker:
        for _ in range(2):
            changed = broker.put_subscription("depot", body | {"transitions": asked}).result()
            warnings = changed.details.get("warnings", [])
            assert len(warnings) == len(words)
            assert all(word in said for word, said in zip(words, warnings, strict=True))


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ({"kinds": ["enters"]}, "transitions.kinds"),
        ({"dwell": "long"}, "transitions.dwell"),
        ({"dwel": "1 s"}, "transitions"),
        ("yes", "transitions"),
    ],
)
def test_what_is_asked_wrongly_is_refused_with_its_place(
    tmp_path: Path, asked: object, place: str
) -> None:
    broker = Broker.open(tmp_path)
    with pytest.raises(InvalidInput) as refused:
        broker.put_subscription("depot", {"geometry": BOX, "transitions": asked})
    assert refused.value.place.startswith(place)
    broker.close()


def test_no_more_positions_of_an_object_wait_than_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.broker.track_keeping.HELD_PER_OBJECT_MAX", 2)
    broker = Broker.open(tmp_path)
    broker.put_settings({"lateness": "10 min"}).result()
    broker.put_subscription("depot", {"geometry": BOX, "transitions": True}).result()
    publish(broker, [at("van", 0, 1, 1), at("van", 1, 1, 1)])
    published = broker.publish(incoming([at("van", 2, 1, 1), at("bus", 2, 1, 1)])).result()
    assert published.accepted == 1
    assert "HELD_PER_OBJECT_MAX" in published.errors[0].detail
    broker.close()


def test_no_more_positions_wait_than_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrada.broker.track_keeping.HELD_POSITIONS_MAX", 2)
    broker = Broker.open(tmp_path)
    broker.put_settings({"lateness": "10 min"}).result()
    broker.put_subscription("depot", {"geometry": BOX, "transitions": True}).result()
    publish(broker, [at("van", 0, 1, 1), at("van", 1, 1, 1)])
    published = broker.publish(incoming([at("van", 2, 1, 1), feature("plain", 1, 1)])).result()
    assert published.accepted == 1
    assert "HELD_POSITIONS_MAX" in published.errors[0].detail
    broker.close()


def test_what_positions_gave_that_waited_comes_between_the_events_of_a_batch(
    tmp_path: Path,
) -> None:
    broker = Broker.open(tmp_path)
    broker.put_settings({"lateness": "10 min"}).result()
    body = {"geometry": BOX, "subscriber": "fleet", "transitions": True}
    broker.put_subscription("depot", body).result()
    broker.put_subscription("plain", {"filter": "kind = 'plain'", "subscriber": "fleet"}).result()
    publish(broker, [at("van", minute, 1 if minute % 2 else 9, 1) for minute in range(8)])
    plain = [feature(f"plain {i}", 1, 1, kind="plain") for i in range(2)]
    publish(broker, [plain[0], at("van", 30, 1, 1), plain[1], at("van", 60, 9, 1)])
    found = said(read_all(broker, "fleet"))
    moved = [(row[0], row[4]) for row in found if row[0] is not None]
    assert moved == [
        (transition, f"van/{minute}")
        for minute in range(1, 8)
        for transition in ["enter" if minute % 2 else "exit"]
    ] + [("inside", "van/30")]
    assert [row[4] for row in found if row[0] is None] == ["plain 0", "plain 1"]
    broker.close()
    assert find_log_faults(tmp_path) == []
