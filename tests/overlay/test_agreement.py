"""The overlay and the matcher agree: an event is found at just the peers that subscribe to it.

Each peer has subscriptions of its own, and the filters that are derived from them. An event may be
delivered at more peers than want it; the matcher there has the last word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import shapely

from contrada import Matcher
from contrada.language import to_json
from contrada.overlay.boxes import Space, meets
from contrada.overlay.filters import Dimensions, derive_filters, event_box
from contrada.overlay.state import Settings
from contrada.simulation.simulator import Network, Simulator

if TYPE_CHECKING:
    from numpy.random import Generator
    from shapely.geometry.base import BaseGeometry

    from contrada.overlay.boxes import Box
    from contrada.overlay.messages import Event, PeerId

WORLD = Space((-180.0, -90.0, 0.0, 180.0, 90.0, 200.0))
DIMENSIONS = Dimensions(("wind",))
PEERS, EVENTS = 20, 80
REST, ROUNDS_MAX = 60, 150


def make_region(rng: Generator, side_max: float = 90.0) -> BaseGeometry:
    x, y = rng.uniform((-180, -90), (120, 30)).tolist()
    width, height = rng.uniform(1, side_max, 2).tolist()
    corners = [(x, y), (x + width, y), (x + width / 2, y + height)]
    return (
        shapely.box(x, y, x + width, y + height) if rng.random() < 0.5 else shapely.Polygon(corners)
    )


def make_predicate(rng: Generator) -> str:
    """A predicate; one in five is unbounded in space, and half leave the wind open."""
    region, low = make_region(rng), int(rng.integers(0, 150))
    x, y = rng.uniform((-180, -90), (180, 90)).tolist()
    kinds = [
        f"S_INTERSECTS(geometry, {region})",
        f"S_INTERSECTS(geometry, {region}) AND wind > {low}",
        f"S_WITHIN(geometry, {region}) OR wind BETWEEN {low} AND {low + 2}",
        f"ehOverlap(geometry, {region}) AND wind < {low}",
        f"S_CROSSES(geometry, {region}) AND NOT (name = 'fog')",
        f"dwithin(geometry, POINT({x} {y}), {int(rng.integers(1, 2_000_000))})",
        f"S_INTERSECTS(geometry, {region}) AND wind IS NULL",
        f"S_DISJOINT(geometry, {region}) AND wind > {low + 40}",
        "geometry IS NULL AND name = 'fog'",
        f"name = 'hail' AND wind IN ({low}, {low + 1})",
    ]
    weights = np.array([8, 8, 4, 6, 4, 6, 4, 2, 1, 2])
    return str(rng.choice(kinds, p=weights / weights.sum()))


def make_event(rng: Generator) -> dict[str, Any]:
    """A point, a line, a polygon or nothing, with a wind or without."""
    region = make_region(rng)
    shapes = [region.centroid, region.boundary, region, make_region(rng, 5).centroid, None]
    event: dict[str, Any] = {"geometry": shapes[int(rng.choice(5, p=[0.3, 0.2, 0.2, 0.2, 0.1]))]}
    event["name"] = str(rng.choice(["fog", "hail", "storm"]))
    if rng.random() < 0.8:
        event["wind"] = int(rng.integers(0, 200))
    return event


def make_matcher(rng: Generator) -> Matcher:
    matcher = Matcher()
    for number in range(int(rng.integers(1, 5))):
        matcher.add(number, make_predicate(rng))
    return matcher


def make_boxes(matcher: Matcher, limit: int) -> tuple[Box, ...]:
    return derive_filters([matcher.get(id_) for id_ in matcher], DIMENSIONS, limit)


class Overlay:
    """Peers in a legal state, each with a matcher; and one matcher that knows all subscriptions."""

    def __init__(self, rng: Generator, limit: int) -> None:
        self.simulator = Simulator(Settings(WORLD, 2, 5), rng, Network(0.01, 0.05))
        self.everyone = Matcher()
        self.matchers: dict[PeerId, Matcher] = {}
        self.boxes: dict[PeerId, tuple[Box, ...]] = {}
        for _ in range(PEERS):
            matcher = make_matcher(rng)
            boxes = make_boxes(matcher, limit)
            peer = self.simulator.add(*boxes)
            self.matchers[peer], self.boxes[peer] = matcher, boxes
            for id_ in matcher:
                predicate = to_json(matcher.get(id_).predicate.expression)
                self.everyone.add(f"{peer}/{id_}", predicate, subscriber=peer)
        self.simulator.run_rounds(REST)  # children may yet move to better parents
        assert self.simulator.run_until_legal(ROUNDS_MAX) is not None

    def reached_by(self, event: dict[str, Any]) -> list[int]:
        """List the peers one of whose filters an event meets."""
        box = event_box(event, DIMENSIONS)
        return [id_ for id_, boxes in self.boxes.items() if any(meets(box, b) for b in boxes)]

    def publish(self, publisher: PeerId, event: dict[str, Any]) -> tuple[list[int], list[int]]:
        """Say where an event is delivered, and where a subscription is found for it."""
        delivered: list[int] = []
        found: list[int] = []

        def hear(id_: PeerId, _: Event) -> None:
            delivered.append(id_)
            if self.matchers[id_].match(event):
                found.append(id_)

        self.simulator.on_deliver = hear
        self.simulator.publish(publisher, event_box(event, DIMENSIONS))
        self.simulator.run_rounds(2)
        return sorted(delivered), sorted(found)


@pytest.mark.parametrize("limit", [1, 4, 32])
@pytest.mark.parametrize("seed", range(3))
def test_an_event_is_found_at_just_the_peers_that_the_matcher_names(seed: int, limit: int) -> None:
    rng = np.random.default_rng(seed)
    overlay = Overlay(rng, limit)
    spared = wanted = 0
    for _ in range(EVENTS):
        event = make_event(rng)
        publisher = overlay.simulator.living()[int(rng.integers(PEERS))]
        delivered, found = overlay.publish(publisher, event)
        assert found == overlay.everyone.subscribers(event), f"seed {seed}: {event}"
        assert delivered == overlay.reached_by(event), f"seed {seed}: {event}"
        spared += PEERS - len(delivered)
        wanted += len(found)
    assert min(wanted, spared) > EVENTS // 2, f"seed {seed}: {wanted} matches, {spared} spared"


@pytest.mark.parametrize("limit", [1, 32])
def test_some_peers_are_unbounded_in_space_and_some_are_not(limit: int) -> None:
    boxes = [make_boxes(make_matcher(rng), limit) for rng in map(np.random.default_rng, range(99))]
    are_open = [any(box[0] == -np.inf for box in of_peer) for of_peer in boxes]
    assert 20 < sum(are_open) < 80
