"""Events that come as a list of what `Matcher.match` takes: matched one by one."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from contrada.errors import InvalidInput, Remedy
from contrada.matcher.keeping import AttributeKeeping
from contrada.matcher.match_run import Counts, answer_schema, judged, read_column_name
from contrada.matching.ids import id_type, read_id
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscribing import HearBad
from contrada.model.event import Event, read_event
from contrada.model.subscription import Id
from contrada.showing import brief


class EventList:
    """One pass of a list of events over one version of the subscriptions."""

    def __init__(
        self,
        subscriptions: SubscriptionSet,
        *,
        id_attribute: str | None,
        repair: bool,
        quarantine: bool,
        on_bad: HearBad | None,
        kept: Sequence[str] = (),
    ) -> None:
        """Fix what is matched against, and how bad events are treated."""
        read_column_name(id_attribute)
        self._subscriptions, self._id_attribute = subscriptions, id_attribute
        self._repair, self._quarantine, self._on_bad = repair, quarantine or repair, on_bad
        self._keeping = AttributeKeeping(kept, subscriptions.geometry_attributes, repair)
        self._ids: list[Id] = []
        self._found: list[Id] = []
        self._last: Id | None = None
        self._mended = self._left_out = self._without_geometry = 0
        self.rows: list[int] = []  # of the event of each pair

    def match(self, events: Sequence[Any], counts: Counts) -> pa.Table:
        """Return the pairs of event and subscription, with what is kept beside them."""
        are_numbered = self._id_attribute is None and not any(map(_states_id, events))
        for row, item in enumerate(events):
            self._match_one(row, item, are_numbered)
        counts.add(
            events=len(events),
            events_mended=self._mended,
            events_left_out=self._left_out,
            events_without_geometry=self._without_geometry,
        )
        kind = pa.int64() if self._last is None else id_type([self._last])
        schema = answer_schema(kind, self._subscriptions.ids.type)
        table = pa.table({"event": self._ids, "subscription": self._found}, schema=schema)
        return self._keeping.beside(table)

    def _match_one(self, row: int, item: Any, is_numbered: bool) -> None:
        place, id_ = f"row {row}", None
        try:
            event = read_event(item, place=place)
            id_ = row if is_numbered else _find_id(event, self._id_attribute)
            key = _read_event_id(id_, place)
            event, reason = self._judge(event, item)
            matched = self._subscriptions.match(event)
        except InvalidInput as error:
            self._leave_out(row, id_, error)
            return
        if reason is not None:
            self._mended += 1
            if self._on_bad is not None:
                self._on_bad(row, key, reason, True)
        self._without_geometry += self._lacks_geometry(event)
        self._check_kind(key, place)
        self._keeping.take(event, reason is not None, len(matched))
        self._ids += [key] * len(matched)
        self._found += matched
        self.rows += [row] * len(matched)

    def _judge(self, event: Event, item: Any) -> tuple[Event, str | None]:
        """Return an event whose geometries are judged, and what was mended about it."""
        try:
            return judged(event, self._subscriptions), None
        except InvalidInput as error:
            if not self._repair:
                raise
            mended = read_event(item, repair=True, place=event.place)
            return judged(mended, self._subscriptions), error.message

    def _leave_out(self, row: int, id_: Any, error: InvalidInput) -> None:
        if not self._quarantine:
            raise error.with_remedies(*error.remedies, Remedy.QUARANTINE_EVENTS) from None
        self._left_out += 1
        if self._on_bad is not None:
            self._on_bad(row, id_, error.message, False)

    def _lacks_geometry(self, event: Event) -> bool:
        """Whether an event has none of the geometries that subscriptions read."""
        names = self._subscriptions.geometry_attributes
        return bool(names) and all(event.geometry(name) is None for name in names)

    def _check_kind(self, key: Id, place: str) -> None:
        if self._last is not None and isinstance(key, int) is not isinstance(self._last, int):
            raise InvalidInput(
                "ids must be all strings or all integers, "
                f"but {brief(key)} follows {brief(self._last)}",
                place=place,
            )
        self._last = key


def _states_id(item: Any) -> bool:
    """Whether an event of a list has an id, be it null: the rows of a table would have a column."""
    try:
        event = read_event(item)
    except InvalidInput:  # which is refused in its turn
        return False
    return event.id is not None or "id" in event.attributes


def _find_id(event: Event, attribute: str | None) -> Any:
    if attribute is not None:
        return event.value(attribute)
    return event.value("id") if event.id is None else event.id


def _read_event_id(id_: Any, place: str) -> Id:
    place = f"{place}, the event's id"
    if id_ is None:
        raise InvalidInput("the id is missing", place=place, remedies=[Remedy.EVENT_ID])
    return read_id(id_, place)
