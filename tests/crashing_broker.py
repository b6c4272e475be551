"""A broker that works through a script of its own, and is killed: run as a process by tests.

It prints a line for each thing that was answered. With `--at PLACE N` it kills itself with SIGKILL
when it comes to a place for the n-th time; without, whoever started it does.
"""

import argparse
import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker_stories import BOX, feature, incoming
from contrada.broker import Broker, BrokerOptions, restoring
from contrada.broker.log_writing import LogWriter

OPTIONS = BrokerOptions(
    retention_bytes=600_000, retention_interval_s=0.0, snapshot_interval_s=0.0, repeats_age_s=3_600
)
NAMES = ["a", "b", "c", "d"]
PLACES = ["before commit", "after commit", "retention", "checkpoint", "snapshot", "answer"]


def kill_at(place: str, times: int) -> None:
    """Let the process kill itself when it comes to a place for the n-th time."""
    left = times

    def count() -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(owner: Any, name: str, *, before: bool) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def wrapped(*args: Any, **options: Any) -> Any:
            if before:
                count()
            answer = inner(*args, **options)
            if not before:
                count()
            return answer

        setattr(owner, name, wrapped)

    match place:
        case "before commit":
            around(LogWriter, "commit", before=True)
        case "after commit":
            around(LogWriter, "commit", before=False)
        case "retention":
            around(LogWriter, "drop_some", before=False)
        case "checkpoint":
            around(LogWriter, "checkpoint", before=True)
        case "snapshot":
            restoring._CHANGES_MIN = 20
            around(restoring, "_save", before=True)
        case "answer":
            around(sys.modules[__name__], "say", before=True)


def make_event(number: int, speed: int) -> dict[str, Any]:
    """A position of one of three objects, which is in the box where the speed is even."""
    time = f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    x = 1 if speed % 2 == 0 else 9
    return feature(number, x, 1, speed=speed, object_id=f"object {number % 3}", time=time)


def say(**facts: Any) -> None:
    """Tell of something that was answered."""
    print(json.dumps(facts), flush=True)


def work(broker: Broker, seed: int, first: int) -> None:
    """Change, publish and acknowledge, by chance, for as long as the process lives."""
    random_ = random.Random(seed)
    number = first
    while True:
        chance = random_.random()
        name = random_.choice(NAMES)
        if chance < 0.15:
            bound = random_.randrange(100)
            body = {"filter": f"speed > {bound}"}
            say(doing="put", name=name, bound=bound)
            say(done="put", position=broker.put_subscription(name, body).result().position)
        elif chance < 0.2 and name in {
            s["id"] for s in broker.list_subscriptions()["subscriptions"]
        }:
            say(doing="delete", name=name)
            say(done="delete", position=broker.delete_subscription(name).result().position)
        elif chance < 0.3 and any(
            s["name"] == name for s in broker.list_subscribers()["subscribers"]
        ):
            page = broker.read_deliveries(name, limit=5)
            if page.deliveries:
                say(doing="ack", name=name)
                position = broker.ack(name, page.deliveries[-1].position).result()
                say(done="ack", name=name, position=position)
        else:
            count = random_.choice([1, 1, 3, 40])
            speeds = [random_.randrange(100) for _ in range(count)]
            events = [make_event(number + i, speed) for i, speed in enumerate(speeds)]
            say(doing="publish", first=number, speeds=speeds)
            published = broker.publish(incoming(events, f"from {number}")).result()
            say(done="publish", first=number, position=published.position)
            number += count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--at", default="")
    parser.add_argument("--times", type=int, default=1)
    options = parser.parse_args()
    if options.at:
        kill_at(options.at, options.times)
    broker = Broker.open(options.folder, OPTIONS)
    say(done="open", position=broker.head)
    broker.put_subscription("moves", {"geometry": BOX, "transitions": True}).result()
    work(broker, options.seed, options.first)


if __name__ == "__main__":
    main()
