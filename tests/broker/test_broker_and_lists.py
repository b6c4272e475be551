"""A broker does what plain lists do, whatever the order of what is asked of it."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import contrada
from broker_stories import BOX, feature, incoming, matched, read_all
from contrada.broker import Broker

IDS = st.sampled_from("abcd")
SUBSCRIBERS = st.sampled_from(["a", "ops", "yard"])
BODIES = st.one_of(
    st.builds(lambda bound: {"filter": f"speed > {bound}"}, st.integers(0, 9)),
    st.builds(
        lambda bound, relation: (
            {"geometry": BOX, "where": f"speed < {bound}"} | {"relation": relation}
        ),
        st.integers(0, 9),
        st.sampled_from(["intersects", "within", "disjoint", "touches"]),
    ),
    st.just({"filter": {"op": "isNull", "args": [{"property": "kind"}]}}),
)
PLACES = st.sampled_from([(1, 1), (0, 2), (9, 9)])
EVENTS = st.lists(
    st.builds(
        lambda place, speed, kind: (place, {"speed": speed} | ({"kind": kind} if kind else {})),
        PLACES,
        st.one_of(st.integers(0, 9), st.none(), st.just("fast")),
        st.sampled_from(["", "van"]),
    ),
    max_size=4,
)


class BrokerAndLists(RuleBasedStateMachine):
    """The log as a list of what each subscriber gets, beside a broker."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.broker = Broker.open(self.folder)
        self.bodies: dict[str, dict[str, Any]] = {}
        self.delivered: dict[str, list[tuple[int, list[str]]]] = {}
        self.begun: dict[str, int] = {}
        self.acked: dict[str, int] = {}
        self.order: dict[str, int] = {}
        self.number = 0

    def teardown(self) -> None:
        self.broker.close()
        shutil.rmtree(self.folder)

    @rule(id_=IDS, body=BODIES, subscriber=SUBSCRIBERS)
    def put(self, id_: str, body: dict[str, Any], subscriber: str) -> None:
        whole = body | {"subscriber": subscriber}
        changed = self.broker.put_subscription(id_, whole).result()
        known = self.bodies.get(id_)
        assert changed.is_new is (known is None)
        if known != whole:
            self.order.pop(id_, None)
            self.order[id_] = max(self.order.values(), default=0) + 1
        self.bodies[id_] = whole
        self.delivered.setdefault(subscriber, [])

    @precondition(lambda self: self.bodies)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.bodies)))
        self.broker.delete_subscription(id_).result()
        del self.bodies[id_]

    @rule(events=EVENTS)
    def publish(self, events: list[tuple[tuple[int, int], dict[str, Any]]]) -> None:
        features = []
        pairs = 0
        for place, properties in events:
            event = feature(self.number, *place, **properties)
            features.append(event)
            matcher = contrada.Matcher()
            for id_, body in self.bodies.items():
                kept = {name: value for name, value in body.items() if name != "subscriber"}
                matcher.add(id_, **kept)
            found = sorted(map(str, matcher.match(event)), key=self.order.__getitem__)
            pairs += len(found)
            for subscriber in self.delivered:
                own = [id_ for id_ in found if self.bodies[id_]["subscriber"] == subscriber]
                if own:
                    self.delivered[subscriber].append((self.number, own))
            self.number += 1
        published = self.broker.publish(incoming(features)).result()
        assert (published.accepted, published.matches) == (len(events), pairs)
        assert published.errors == []

    @precondition(lambda self: any(self.delivered.values()))
    @rule(data=st.data())
    def ack(self, data: st.DataObject) -> None:
        subscriber = data.draw(st.sampled_from([n for n, d in self.delivered.items() if d]))
        everything = read_all(self.broker, subscriber, self.beginning())
        count = data.draw(st.integers(1, len(everything)))
        self.broker.ack(subscriber, everything[count - 1]["position"]).result()
        self.acked[subscriber] = max(self.acked.get(subscriber, 0), count)

    @rule()
    def start_again(self) -> None:
        self.broker.close()
        self.broker = Broker.open(self.folder)

    def beginning(self) -> str:
        return f"{self.broker.describe()['epoch']}-0"

    @invariant()
    def everybody_gets_what_the_lists_have(self) -> None:
        for subscriber, expected in self.delivered.items():
            for limit in (2, 100):
                got = matched(read_all(self.broker, subscriber, self.beginning(), limit))
                assert got == expected
            waiting = matched(read_all(self.broker, subscriber))
            assert waiting == expected[self.acked.get(subscriber, 0) :]
            assert self.broker.get_subscriber(subscriber)["waiting"] == len(waiting)
        known = self.broker.list_subscriptions()["subscriptions"]
        assert [each["id"] for each in known] == sorted(self.bodies)


TestBrokerAndLists = BrokerAndLists.TestCase
TestBrokerAndLists.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
