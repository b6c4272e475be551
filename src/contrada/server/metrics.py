"""What is counted, as Prometheus reads it: names, kinds and what each says, tenant by tenant."""

import re
from collections.abc import Mapping
from typing import NamedTuple

NamedCounts = Mapping[str, int | float]

_NO_NAME = re.compile(r"[^a-zA-Z0-9_]")
_GAUGE, _COUNTER = "gauge", "counter"


class CountedThing(NamedTuple):
    """What a number is: its name, how it changes, and what it says."""

    name: str
    kind: str
    about: str


def _grows(name: str, about: str) -> CountedThing:
    return CountedThing(f"contrada_{name}_total", _COUNTER, f"{about}, since the start.")


def _is(name: str, about: str) -> CountedThing:
    return CountedThing(f"contrada_{name}", _GAUGE, f"{about}.")


THINGS: Mapping[str, CountedThing] = {
    "events": _grows("events", "Events that were stored"),
    "bad": _grows("events_refused", "Events that were refused"),
    "repeated": _grows("events_repeated", "Events that had been stored before"),
    "events_waiting": _is("events_waiting", "Events that wait to be stored"),
    "matches": _grows("matches", "Pairs of an event and a subscription or row that it matches"),
    "deliveries": _grows("deliveries", "Deliveries that events brought"),
    "commits": _grows("commits", "Commits to the disk"),
    "head": _is("log_head", "Number of the last entry of the log"),
    "floor": _is("log_floor", "Number of the last entry that is no longer kept"),
    "clock_has_jumped": _is(
        "clock_has_jumped", "1 while the machine's clock is not believed, as it has jumped"
    ),
    "log_bytes": _is("log_bytes", "Bytes that retention counts, replaced bodies and rows included"),
    "rows_bytes": _is("rows_bytes", "Bytes of files with rows of collections, replaced ones too"),
    "subscriptions": _is("subscriptions", "Subscriptions, a collection as one"),
    "subscribers": _is("subscribers", "Subscribers"),
    "readers_waiting": _is("readers_waiting", "Streams, reads and webhooks that wait for more"),
    "positions_positions": _grows("positions", "Positions: events with an object and a time"),
    "positions_applied": _grows("positions_applied", "Positions that were applied"),
    "positions_late": _grows("positions_late", "Positions that came too late to be applied"),
    "positions_repeated": _grows("positions_repeated", "Positions that had come before"),
    "positions_without_geometry": _grows(
        "positions_without_geometry", "Positions without a place, which change nothing"
    ),
    "positions_without_time": _grows(
        "positions_without_time", "Events with an object but no time that can be read"
    ),
    "positions_held": _is("positions_held", "Positions that wait until lateness is over"),
    "positions_objects": _is("objects", "Objects that are known"),
    "positions_bytes": _is("objects_bytes", "Bytes of what is known of objects"),
    "webhook_accepted": _grows("webhook_requests_accepted", "Requests that webhooks accepted"),
    "webhook_failed": _grows("webhook_requests_failed", "Requests to webhooks that failed"),
    "webhook_dead": _grows("webhook_dead_letters", "Deliveries that became dead letters"),
    "webhook_tasks": _is("webhook_tasks", "Webhooks that have something to send right now"),
    "streams": _is("streams", "Streams, sockets and waiting reads that are open"),
    "bodies_bytes": _is("bodies_bytes", "Bytes of bodies of requests in memory"),
    "connections": _is("connections", "Connections that are open"),
    "connections_refused": _grows("connections_refused", "Connections beyond what may be open"),
}


def write_metrics(by_tenant: Mapping[str, NamedCounts], of_server: NamedCounts) -> str:
    """Write counts: those of tenants with their names, those of the server as a whole without."""
    samples: dict[CountedThing, list[str]] = {}
    for tenant, counts in sorted(by_tenant.items()):
        for name, value in counts.items():
            thing = _find(name)
            label = f'tenant="{_escape(tenant)}"'
            samples.setdefault(thing, []).append(f"{thing.name}{{{label}}} {value}")
    for name, value in of_server.items():
        thing = _find(name)
        samples.setdefault(thing, []).append(f"{thing.name} {value}")
    lines = []
    for thing in sorted(samples):
        lines += [f"# HELP {thing.name} {thing.about}", f"# TYPE {thing.name} {thing.kind}"]
        lines += samples[thing]
    return "\n".join([*lines, ""])


def _find(name: str) -> CountedThing:
    """Find what a number is; of one that has no words here its name says it."""
    known = THINGS.get(name)
    return known or _is(_NO_NAME.sub("_", name), name.replace("_", " ").capitalize())


def _escape(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
