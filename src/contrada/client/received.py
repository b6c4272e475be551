"""What a client is answered, as values.

What a broker leaves out is None here. Positions are opaque texts: they are compared by nobody but
the broker that made them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contrada.errors import BadRows, Unavailable
from contrada.showing import brief


@dataclass(frozen=True, slots=True)
class ChangeReceipt:
    """That a change is on disk: what is published after it was answered is matched with it.

    `position` is its place in the log; `is_new` where there was nothing of that name before. What
    was the same already is not changed, and then the position is that of the change before.
    """

    position: str
    is_new: bool = False
    is_changed: bool = True


@dataclass(frozen=True, slots=True)
class RowsReceipt(ChangeReceipt):
    """That the rows of a collection are in place; `count` is how many they are."""

    count: int | None = None


@dataclass(frozen=True, slots=True)
class WebhookReceipt(ChangeReceipt):
    """That a webhook is in place; `secret` is the one that the broker made, and shows only now."""

    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class EventFault:
    """Why one event was not taken; `index` counts the events of the call from 0."""

    index: int
    detail: str


@dataclass(frozen=True, slots=True)
class PublishReceipt:
    """That events are on disk, and will reach whoever wants them.

    `accepted` counts those that were taken, and `repeated` those among them that had been taken
    before; `matches` counts the subscriptions that they satisfied, and `errors` has the events that
    were not taken. `position` is the last one's; None where there is none.
    """

    accepted: int
    matches: int
    position: str | None
    errors: tuple[EventFault, ...] = ()
    repeated: int = 0


class RefusedEvents(BadRows):
    """None of the events of a call was taken; `receipt` has the reason for each."""

    def __init__(self, receipt: PublishReceipt) -> None:
        """Take the receipt."""
        faults = receipt.errors
        rows = [f"event {fault.index}: {fault.detail}" for fault in faults[:100]]
        super().__init__(f"no event was taken; {len(faults):,} cannot be used", rows, len(faults))
        self.receipt = receipt

    def __reduce__(self) -> tuple[Any, ...]:
        return RefusedEvents, (self.receipt,)


@dataclass(frozen=True, slots=True)
class ReceivedMatch:
    """A subscription that the event of a delivery satisfied, or a transition that it caused.

    `row` is the row of a collection, `relation` the one that its row names where it has no filter;
    the last four are those of a transition.
    """

    subscription: str
    row: str | int | None = None
    relation: str | None = None
    transition: str | None = None
    object: str | int | None = None
    time: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class ReceivedDelivery:
    """One event for one subscriber, with all that it matched.

    `event` is a GeoJSON Feature; None where a clock or a change caused a transition. The same
    delivery may come again, under the same position.
    """

    position: str
    event: Mapping[str, Any] | None
    matches: tuple[ReceivedMatch, ...]
    time: str | None = None


@dataclass(frozen=True, slots=True)
class ReceivedLetter:
    """A dead letter: a delivery that a webhook's receiver has refused, with its last words.

    `time` is when it was given up; `is_due` says that it is to be sent again.
    """

    delivery: ReceivedDelivery
    error: str
    time: str
    is_due: bool = False


@dataclass(frozen=True, slots=True)
class MissedDeliveries:
    """A gap: deliveries up to the position `until` were no longer kept when they were to be read.

    `deliveries` is how many they are; None where nobody has counted, as for a reader that is not
    at its subscriber's cursor.
    """

    until: str
    deliveries: int | None


@dataclass(frozen=True, slots=True)
class ReceivedPage:
    """Some deliveries in their order; `next` is the position after which the next ones come.

    `gap` is what is missing before the first of them.
    """

    deliveries: tuple[ReceivedDelivery, ...]
    next: str
    gap: MissedDeliveries | None = None


def read_page(answer: Mapping[str, Any]) -> ReceivedPage:
    """Read an answer with deliveries."""
    try:
        gap = answer.get("gap")
        return ReceivedPage(
            tuple(map(read_delivery, answer["deliveries"])),
            answer["next"],
            None if gap is None else MissedDeliveries(gap["until"], gap.get("deliveries")),
        )
    except (KeyError, TypeError, AttributeError) as fault:
        raise _foreign(answer) from fault


def read_delivery(envelope: Mapping[str, Any]) -> ReceivedDelivery:
    """Read the CloudEvent that a delivery is, as pages, streams and webhooks have it.

    >>> from contrada.client.received import read_delivery
    >>> body = {"position": "p-7", "data": {"matches": [{"subscription": "bay"}]}}
    >>> read_delivery(body).matches[0].subscription
    'bay'
    """
    try:
        data = envelope["data"]
        matches = tuple(map(read_match, data["matches"]))
        return ReceivedDelivery(
            envelope["position"], data.get("event"), matches, envelope.get("time")
        )
    except (KeyError, TypeError, AttributeError) as fault:
        raise _foreign(envelope) from fault


def read_letter(letter: Mapping[str, Any]) -> ReceivedLetter:
    """Read one dead letter."""
    try:
        delivery = read_delivery(letter["delivery"])
        return ReceivedLetter(delivery, letter["error"], letter["time"], letter["due"])
    except (KeyError, TypeError) as fault:
        raise _foreign(letter) from fault


def read_match(match: Mapping[str, Any]) -> ReceivedMatch:
    """Read one match; members of a later version are passed over."""
    known = {name: value for name, value in match.items() if name in _MATCH_MEMBERS}
    return ReceivedMatch(**known)


_MATCH_MEMBERS = frozenset(ReceivedMatch.__dataclass_fields__)


def read_change(answer: Mapping[str, Any], is_new: bool) -> ChangeReceipt:
    """Read the answer to a change."""
    return ChangeReceipt(read_position(answer), is_new, answer.get("changed", True))


def read_rows_receipt(answer: Mapping[str, Any], is_new: bool) -> RowsReceipt:
    """Read the answer to the rows of a collection."""
    changed = answer.get("changed", True)
    return RowsReceipt(read_position(answer), is_new, changed, answer.get("count"))


def read_webhook_receipt(answer: Mapping[str, Any], is_new: bool) -> WebhookReceipt:
    """Read the answer to a webhook."""
    changed = answer.get("changed", True)
    return WebhookReceipt(read_position(answer), is_new, changed, answer.get("secret"))


def read_position(answer: Mapping[str, Any]) -> str:
    """Read the position that an answer has."""
    position = answer.get("position")
    if not isinstance(position, str):
        raise _foreign(answer)
    return position


def read_receipt(answer: Mapping[str, Any], first: int) -> PublishReceipt:
    """Read the answer to events of which the first is the `first` of its call."""
    try:
        faults = (EventFault(first + e["index"], e["detail"]) for e in answer.get("errors", ()))
        return PublishReceipt(
            answer.get("accepted", 0),
            answer.get("matches", 0),
            answer.get("position"),
            tuple(faults),
            answer.get("repeated", 0),
        )
    except (KeyError, TypeError, AttributeError) as fault:
        raise _foreign(answer) from fault


def add_receipts(one: PublishReceipt, other: PublishReceipt) -> PublishReceipt:
    """Make one receipt of those of two batches, the later one second."""
    return PublishReceipt(
        one.accepted + other.accepted,
        one.matches + other.matches,
        one.position if other.position is None else other.position,
        one.errors + other.errors,
        one.repeated + other.repeated,
    )


def _foreign(answer: object) -> Unavailable:
    return Unavailable(f"the server does not answer as this version expects: {brief(answer)}")
