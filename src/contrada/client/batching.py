"""Events in batches, each under a key by which a repeat of it is known.

A broker knows a CloudEvent by its `source` and `id`, and any other event by the `Idempotency-Key`
of its request and its place in it. So a request whose answer was lost can be sent again. An event
gets no id that it did not have: its id often names what moves.
"""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from contrada.client.defaults import BATCH_EVENTS_MAX
from contrada.client.exchange import BrokerRequest, Steps, path_of
from contrada.client.outgoing import read_outgoing
from contrada.client.outgoing_events import OutgoingEvent
from contrada.client.received import (
    EventFault,
    PublishReceipt,
    RefusedEvents,
    add_receipts,
    read_receipt,
)
from contrada.client.refusals import describe_answer, read_object, read_problem
from contrada.client.retrying import Attempts, Persistence, ask
from contrada.errors import InvalidInput
from contrada.showing import brief

BATCH_BYTES_MAX = 2 * 2**20
KEY_LENGTH_MAX = 200

_KEY_BYTES = 16
_BAD_REQUEST, _TOO_LARGE = 400, 413
_BODY = "the body"  # which a broker names where it cannot read any of it


@dataclass(frozen=True, slots=True)
class OutgoingBatch:
    """Events of one request, Features or CloudEvents; the first is the `first` of its call.

    Those with a fault are of either kind.
    """

    first: int
    events: Sequence[OutgoingEvent]

    def request(self, key: str, all_or_none: bool) -> BrokerRequest:
        """Make the request."""
        texts = ",".join(event.text for event in self.events)
        if any(event.is_envelope for event in self.events):
            body, media_type = f"[{texts}]", "application/cloudevents-batch+json"
        else:
            body = f'{{"type":"FeatureCollection","features":[{texts}]}}'
            media_type = "application/geo+json"
        headers = {"content-type": media_type, "idempotency-key": key}
        query = {"all": "true"} if all_or_none else {}
        return BrokerRequest("POST", path_of("events"), query, body.encode(), headers)

    def faults(self) -> dict[int, EventFault]:
        """Return what is known to be wrong, by index in the call, before anything is sent."""
        known = ((at, event.fault) for at, event in enumerate(self.events, self.first))
        return {at: EventFault(at, fault.message) for at, fault in known if fault is not None}

    def halves(self) -> tuple["OutgoingBatch", "OutgoingBatch"]:
        """Cut the batch in two."""
        middle = len(self.events) // 2
        return (
            OutgoingBatch(self.first, self.events[:middle]),
            OutgoingBatch(self.first + middle, self.events[middle:]),
        )


def cut_batches(
    events: Iterable[OutgoingEvent],
    events_max: int = BATCH_EVENTS_MAX,
    bytes_max: int = BATCH_BYTES_MAX,
) -> Iterator[OutgoingBatch]:
    """Cut events into batches of one kind and of bounded size; an event is never cut."""
    held: list[OutgoingEvent] = []
    first = size = 0
    kind: bool | None = None
    for event in events:
        length = len(event.text)
        is_other = event.fault is None and kind not in (None, event.is_envelope)
        if held and (size + length > bytes_max or is_other):
            yield OutgoingBatch(first, held)
            first, held, size, kind = first + len(held), [], 0, None
        held.append(event)
        size += length
        kind = kind if event.fault is not None else event.is_envelope
        if len(held) == events_max:  # at once: the next event may be long in coming
            yield OutgoingBatch(first, held)
            first, held, size, kind = first + len(held), [], 0, None
    if held:
        yield OutgoingBatch(first, held)


def publish(
    events: object, idempotency_key: str | None, all_or_none: bool, persistence: Persistence
) -> Steps[PublishReceipt]:
    """Publish events of any kind, batch by batch; see `Client.publish`."""
    if idempotency_key is not None:
        check_key(idempotency_key)
    run = idempotency_key or secrets.token_hex(_KEY_BYTES)
    receipt = PublishReceipt(0, 0, None)
    for batch in _cut(read_outgoing(events), all_or_none):
        sent = yield from _send(batch, run, all_or_none, persistence)
        receipt = add_receipts(receipt, sent)
    if receipt.errors and not receipt.accepted:
        raise RefusedEvents(receipt)
    return receipt


def _send(
    batch: OutgoingBatch, run: str, all_or_none: bool, persistence: Persistence
) -> Steps[PublishReceipt]:
    """Send a batch, or where it cannot be read as a whole its halves, down to the bad event."""
    known = batch.faults()
    if len(known) == len(batch.events) or (known and all_or_none):
        return PublishReceipt(0, 0, None, tuple(known.values()))
    key = f"{run}-{batch.first}" if batch.first else run
    answer = yield from ask(batch.request(key, all_or_none), Attempts(persistence))
    problem = read_problem(answer) if answer.status == _BAD_REQUEST else {}
    is_whole = answer.status == _TOO_LARGE or str(problem.get("place", "")).startswith(_BODY)
    if is_whole and not all_or_none:
        if len(batch.events) == 1:
            fault = EventFault(batch.first, describe_answer(answer))
            return PublishReceipt(0, 0, None, (fault,))
        one, other = batch.halves()
        first = yield from _send(one, run, all_or_none, persistence)
        second = yield from _send(other, run, all_or_none, persistence)
        return add_receipts(first, second)
    members = problem if is_about_events(problem) else read_object(answer)
    receipt = read_receipt(members, batch.first)
    faults = tuple(known.get(fault.index, fault) for fault in receipt.errors)
    return replace(receipt, errors=faults)


def _cut(events: Iterable[OutgoingEvent], all_or_none: bool) -> Iterator[OutgoingBatch]:
    """Cut events into batches; those that go together or not at all are one."""
    if not all_or_none:
        yield from cut_batches(events)
        return
    held = list(events)
    if len({event.is_envelope for event in held if event.fault is None}) > 1:
        raise InvalidInput("all_or_none takes Features or CloudEvents, not both at once")
    if held:
        yield OutgoingBatch(0, held)


def is_about_events(problem: dict[str, object]) -> bool:
    """Whether a problem lists what is wrong with each event."""
    errors = problem.get("errors")
    return isinstance(errors, list) and all(
        isinstance(error, dict) and "index" in error for error in errors
    )


def check_key(key: str) -> None:
    """Refuse a key that cannot be in a header."""
    is_sound = isinstance(key, str) and key.isascii() and key.isprintable() and key.strip() == key
    if not is_sound or not 0 < len(key) <= KEY_LENGTH_MAX or '"' in key or "\\" in key:
        raise InvalidInput(
            f"idempotency_key {brief(key)} is not 1 to {KEY_LENGTH_MAX} printable characters of "
            'ASCII without spaces around them, " and \\'
        )
