"""Messages of one event or one join, step by step, while no time passes.

The peers of a simulation are driven as the simulator does, but each message arrives at once, so
that steps can be counted: a message that answers another is one step later. For overlays at rest.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from contrada.overlay.boxes import Box
from contrada.overlay.effects import Deliver, Effect, Send
from contrada.overlay.messages import Event, Join, Message, PeerId
from contrada.simulation.simulator import Simulator


@dataclass(slots=True)
class Trace:
    """What one event or join has caused; the peer with which it began is among `visited`.

    `path_max` is the length of the longest chain of messages that ended with an event or a join.
    """

    visited: set[PeerId] = field(default_factory=set)
    received: list[PeerId] = field(default_factory=list)
    messages: int = 0
    path_max: int = 0


def trace_event(simulator: Simulator, publisher: PeerId, box: Box) -> Trace:
    """Publish an event and follow it to all whom it visits."""
    effects = simulator.peers[publisher].publish(box, None, simulator.now)
    return _follow(simulator, publisher, effects, Event)


def trace_join(simulator: Simulator, joiner: PeerId, contact: PeerId) -> Trace:
    """Let a new peer ask another for a parent, and follow what that causes."""
    effects = simulator.peers[joiner].tick(simulator.now, contact)
    return _follow(simulator, joiner, effects, Join)


def _follow(
    simulator: Simulator, first: PeerId, effects: Iterable[Effect], kind: type[Message]
) -> Trace:
    trace = Trace({first})
    pending: deque[tuple[PeerId, int, Effect]] = deque((first, 1, effect) for effect in effects)
    while pending:
        sender, step, effect = pending.popleft()
        match effect:
            case Deliver(_):
                trace.received.append(sender)
            case Send(to, message) if to in simulator.peers:
                trace.messages += 1
                if isinstance(message, kind):
                    trace.visited.add(to)
                    trace.path_max = max(trace.path_max, step)
                answers = simulator.peers[to].receive(message, sender, simulator.now)
                pending.extend((to, step + 1, answer) for answer in answers)
    return trace
