"""What is asked without storing anything: what a predicate means, and what an event matches."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from contrada.broker.geojson_words import reword
from contrada.broker.log_reading import LogReader
from contrada.broker.number_names import NumberNames
from contrada.broker.standing_set import StandingSet
from contrada.broker.subscription_bodies import read_subscription_body
from contrada.errors import InvalidInput, UnknownSubscription
from contrada.limits import WHY_MAX
from contrada.matcher.explanations import Why, explain
from contrada.model.event import GEOMETRY, is_feature
from contrada.model.subscription import Subscription
from contrada.showing import brief, listed

_MEMBERS = ["event", "why"]
_WHY_ROWS_MAX = 10  # of one collection: each costs as much as a subscription


def explain_body(body: Any, standing: StandingSet) -> dict[str, Any]:
    """Explain the predicate of a subscription's body."""
    read = read_subscription_body("explained", body, standing.matcher)
    if read.predicate is None:
        raise InvalidInput("there is neither a filter nor a geometry")
    return explain(Subscription("explained", read.predicate)).as_dict()


class Questions:
    """Answers what an event would match, and why; from any thread."""

    def __init__(
        self,
        standing: StandingSet,
        followed: StandingSet,
        names: NumberNames,
        reader: LogReader,
    ) -> None:
        """Take what events are matched against, and what objects are followed through."""
        self._standing, self._followed = standing, followed
        self._names, self._reader = names, reader

    def match(self, body: Any) -> dict[str, Any]:
        """Match one event: a Feature, or an object with the event and ids to explain."""
        event, wanted = _read_question(body)
        try:
            numbers = self._standing.matcher.match(event)
        except InvalidInput as fault:
            words = reword(fault.what, event.get(GEOMETRY))
            if words is None:
                raise
            raise InvalidInput(words, place=f"event.{GEOMETRY}") from None
        found: dict[str, Any] = {"matches": [self._names.find(int(n)) for n in numbers]}
        if wanted:
            found["why"] = {str(id_): self._explain(id_, event) for id_ in wanted}
        return found

    def _explain(self, id_: Any, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """Explain why a subscription matches an event, or does not; None where there is none."""
        stored = self._reader.find_subscription(id_) if isinstance(id_, str) else None
        if stored is None:
            return None
        body = json.loads(stored.body)
        side = self._followed if "transitions" in body else self._standing
        if "filter" not in body and GEOMETRY not in body:
            return self._explain_rows(stored.number, event, side)
        if stored.number not in side.matcher:
            return None  # it has ended, or become another, a moment ago
        return _describe(replace(side.matcher.why(stored.number, event), id=stored.id))

    def _explain_rows(
        self, subscription: int, event: Mapping[str, Any], side: StandingSet
    ) -> dict[str, Any]:
        """Explain the first rows of a collection that an event matches."""
        rows = self._reader.find_rows(subscription)
        numbers = range(0) if rows is None else range(rows.first, rows.first + rows.length)
        met = [number for number in map(int, side.matcher.match(event)) if number in numbers]
        shown = []
        for number in met[:_WHY_ROWS_MAX]:
            row = self._names.find(number).get("row", "")
            with suppress(UnknownSubscription):  # other rows have taken its place meanwhile
                why = replace(side.matcher.why(number, event), id=row)
                shown.append({"row": row, **_describe(why)})
        return {"matches": bool(met), "count": len(met), "of": len(numbers), "rows": shown}


def _read_question(body: Any) -> tuple[Mapping[str, Any], list[Any]]:
    """Read an event, and the ids that are to be explained."""
    if not isinstance(body, Mapping):
        raise InvalidInput(f"the body is a JSON object, not {brief(body)}")
    event: Any = body
    wanted: Any = []
    if not is_feature(body):
        for member in body:
            if member not in _MEMBERS:
                raise InvalidInput(
                    f"there is no such member; the body is a Feature, or has {listed(_MEMBERS)}",
                    place=brief(member),
                )
        event, wanted = body.get("event"), body.get("why") or []
    if not isinstance(event, Mapping):
        raise InvalidInput(f"is a Feature, not {brief(event)}", place="event")
    if not isinstance(wanted, list) or len(wanted) > WHY_MAX:
        raise InvalidInput(f"is a list of at most {WHY_MAX} ids (WHY_MAX)", place="why")
    return event, wanted


def _describe(why: Why) -> dict[str, Any]:
    filters = [
        [{"constraint": truth.text, "value": truth.value} for truth in constraints]
        for constraints in why.filters
    ]
    return {"matches": bool(why), "filters": filters, "text": str(why)}
