"""A broker that is killed loses nothing that it answered."""

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from broker_stories import BOX, incoming
from contrada.broker import Broker
from crashing_broker import NAMES, OPTIONS, PLACES, make_event

TESTS = Path(__file__).parents[1]


@dataclass
class Seen:
    """What was asked and answered, over all lives of a broker; None where nobody knows."""

    entries: list[tuple[str, Any]] = field(default_factory=list)  # in the order of the log
    cursors: dict[str, str] = field(default_factory=dict)
    next_event: int = 0


def live(folder: Path, seen: Seen, seed: int, *arguments: str, lines: int = 0) -> None:
    """Let a broker work until it kills itself, or until it has said so many lines."""
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    command = [sys.executable, str(TESTS / "crashing_broker.py"), str(folder)]
    command += ["--seed", str(seed), "--first", str(seen.next_event), *arguments]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        said = []
        for line in child.stdout:
            said.append(line)
            if len(said) == lines:
                child.kill()
        code = child.wait(60)
        assert child.stderr is not None
        assert code == -signal.SIGKILL, child.stderr.read()
    doing: dict[str, Any] | None = None
    for line in said:
        if not line.endswith("}\n"):
            continue
        facts = json.loads(line)
        if "doing" in facts:
            doing = facts
        elif facts["done"] != "open":
            assert doing is not None
            note(seen, doing, facts)
            doing = None
    if doing is not None:
        settle(folder, seen, doing)


def note(seen: Seen, doing: dict[str, Any], done: dict[str, Any]) -> None:
    match doing["doing"]:
        case "put":
            seen.entries.append(("put", (doing["name"], doing["bound"])))
        case "delete":
            seen.entries.append(("delete", doing["name"]))
        case "ack":
            seen.cursors[doing["name"]] = done["position"]
        case "publish":
            seen.entries.append(("publish", (doing["first"], doing["speeds"])))
            seen.next_event = doing["first"] + len(doing["speeds"])


def settle(folder: Path, seen: Seen, doing: dict[str, Any]) -> None:
    """What was under way was done as a whole or not at all; publishing it again does no harm."""
    broker = Broker.open(folder, OPTIONS)
    try:
        known = {s["id"]: s for s in broker.list_subscriptions()["subscriptions"]}
        if doing["doing"] == "put":
            where = known.get(doing["name"], {}).get("filter")
            if where == f"speed > {doing['bound']}":
                note(seen, doing, {})
        elif doing["doing"] == "delete" and doing["name"] not in known:
            note(seen, doing, {})
        elif doing["doing"] == "ack":
            cursor = broker.get_subscriber(doing["name"])["cursor"]
            seen.cursors[doing["name"]] = cursor
        elif doing["doing"] == "publish":
            first, speeds = doing["first"], doing["speeds"]
            events = [make_event(first + i, speed) for i, speed in enumerate(speeds)]
            again = broker.publish(incoming(events, f"from {first}")).result()
            assert again.repeated in {0, len(speeds)}
            note(seen, doing, {})
    finally:
        broker.close()


def expected_of(seen: Seen) -> dict[str, list[int]]:
    """Which events each subscriber wants, by the rules, in order."""
    bounds: dict[str, int] = {}
    wanted: dict[str, list[int]] = {name: [] for name in NAMES}
    for kind, facts in seen.entries:
        if kind == "put":
            bounds[facts[0]] = facts[1]
        elif kind == "delete":
            bounds.pop(facts, None)
        else:
            for i, speed in enumerate(facts[1]):
                for name, bound in bounds.items():
                    if speed > bound:
                        wanted[name].append(facts[0] + i)
    return wanted


def check(folder: Path, seen: Seen) -> None:
    """Every answered event reaches who wants it, in order, as far as the log is kept."""
    broker = Broker.open(folder, OPTIONS)
    try:
        bounds: dict[str, int] = {}
        for kind, facts in seen.entries:
            if kind == "put":
                bounds[facts[0]] = facts[1]
            elif kind == "delete":
                bounds.pop(facts)
        known = {
            s["id"]: s["filter"]
            for s in broker.list_subscriptions()["subscriptions"]
            if s["id"] != "moves"
        }
        assert known == {name: f"speed > {bound}" for name, bound in bounds.items()}
        for speed in (0, 17, 50, 99):
            event = {"type": "Feature", "geometry": BOX, "properties": {"speed": speed}}
            names = {match["subscription"] for match in broker.match(event)["matches"]} - {"moves"}
            assert names == {name for name, bound in bounds.items() if speed > bound}
        start = f"{broker.describe()['epoch']}-0"
        wanted = expected_of(seen)
        for each in broker.list_subscribers()["subscribers"]:
            name = each["name"]
            if name == "moves":
                check_moves(broker, seen, start)
                continue
            runs = [
                [d["data"]["event"]["id"] for d in run] for run in read_runs(broker, name, start)
            ]
            check_runs(runs, wanted[name])
            if not broker.counts()["floor"]:
                assert runs == [wanted[name]]
            assert each["cursor"] == seen.cursors.get(name, each["cursor"])
    finally:
        broker.close()


def check_moves(broker: Broker, seen: Seen, start: str) -> None:
    """Each position gives what the rules say, once, however often the broker was killed."""
    inside: dict[int, bool] = {}
    expected = []
    for kind, facts in seen.entries:
        for i, speed in enumerate(facts[1] if kind == "publish" else ()):
            number = facts[0] + i
            was, now = inside.get(number % 3, False), speed % 2 == 0
            inside[number % 3] = now
            if was or now:
                transition = "inside" if was and now else "enter" if now else "exit"
                expected.append((number, transition))
    runs = [
        [
            (delivery["data"]["event"]["id"], match["transition"])
            for delivery in run
            for match in delivery["data"]["matches"]
        ]
        for run in read_runs(broker, "moves", start)
    ]
    check_runs(runs, expected)
    assert runs[-1] or not expected


def read_runs(broker: Broker, subscriber: str, after: str) -> list[list[dict[str, Any]]]:
    """All deliveries of a subscriber, a list for each run without a gap.

    The log may drop its oldest block while it is read, so a gap may come at any page.
    """
    runs: list[list[dict[str, Any]]] = [[]]
    while True:
        page = broker.read_deliveries(subscriber, after=after, limit=1_000)
        if page.gap is not None:
            runs.append([])
        runs[-1] += [json.loads(delivery.json) for delivery in page.deliveries]
        if page.is_end:
            return runs
        after = page.next


def check_runs(runs: list[list[Any]], expected: list[Any]) -> None:
    """Each run is a part of what is expected, in order, and the last one goes to the end."""
    end = 0
    for run in runs[:-1]:
        if run:
            start = expected.index(run[0], end)
            end = start + len(run)
            assert run == expected[start:end]
    last = runs[-1]
    assert end <= len(expected) - len(last)
    assert last == expected[len(expected) - len(last) :]


@pytest.mark.parametrize("place", PLACES)
def test_a_broker_that_is_killed_at_a_bad_moment_loses_nothing(tmp_path: Path, place: str) -> None:
    seen = Seen()
    times = {"retention": 1, "checkpoint": 1, "snapshot": 2}.get(place, 37)
    live(tmp_path / "data", seen, 1, "--at", place, "--times", str(times))
    check(tmp_path / "data", seen)
    live(tmp_path / "data", seen, 2, "--at", "after commit", "--times", "20")
    check(tmp_path / "data", seen)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_a_broker_that_is_killed_ten_times_at_random_loses_nothing(
    tmp_path: Path, seed: int
) -> None:
    random_ = random.Random(seed)
    seen = Seen()
    for life in range(10):
        lines = random_.randrange(1, 400)
        live(tmp_path / "data", seen, 1_000 * seed + life, lines=lines)
        check(tmp_path / "data", seen)
