"""Many clients change and publish at once: all their answers fit one order."""

import random
import threading
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from broker_stories import feature, incoming, read_all
from contrada.broker import Broker

NAMES = "abcde"
CLIENTS, CALLS = 6, 40


@dataclass(frozen=True)
class Call:
    """A call that was answered: when it began and ended, by one clock, and what it was."""

    began: int
    ended: int
    position: int
    name: str | None  # of the subscription that was put
    bound: int | None
    events: list[tuple[str, int]]  # that were published: id and speed


def test_all_answers_fit_one_order(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path)
    clock = count()
    calls: list[Call] = []

    def be_a_client(number: int) -> None:
        random_ = random.Random(number)
        for turn in range(CALLS):
            began = next(clock)
            answer: Any
            name: str | None = None
            bound: int | None = None
            events: list[tuple[str, int]] = []
            if random_.random() < 0.4:
                name, bound = random_.choice(NAMES), random_.randrange(10_000)
                answer = broker.put_subscription(name, {"filter": f"speed > {bound}"}).result()
                position = int(answer.position.rpartition("-")[2])
            else:
                speeds = [random_.randrange(10_000) for _ in range(random_.choice([1, 5]))]
                events = [(f"{number}/{turn}/{i}", speed) for i, speed in enumerate(speeds)]
                features = [feature(id_, 1, 1, speed=speed) for id_, speed in events]
                answer = broker.publish(incoming(features)).result()
                position = int(answer.position.rpartition("-")[2])
            calls.append(Call(began, next(clock), position, name, bound, events))

    threads = [threading.Thread(target=be_a_client, args=(i,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(broker, calls)
    broker.close()


def check(broker: Broker, calls: list[Call]) -> None:
    assert len(calls) == CLIENTS * CALLS
    in_order = sorted(calls, key=lambda call: call.position)
    for earlier in calls:  # an answer comes before what is asked after it
        for later in calls:
            if earlier.ended < later.began:
                assert earlier.position < later.position
    bounds: dict[str, int] = {}
    wanted: dict[str, list[str]] = {}
    for call in in_order:
        if call.name is not None and call.bound is not None:
            bounds[call.name] = call.bound
            wanted.setdefault(call.name, [])
        for id_, speed in call.events:
            for name, bound in bounds.items():
                if speed > bound:
                    wanted[name].append(id_)
    beginning = f"{broker.describe()['epoch']}-0"
    for name, ids in wanted.items():
        got = read_all(broker, name, beginning, 1_000)
        assert [delivery["data"]["event"]["id"] for delivery in got] == ids
