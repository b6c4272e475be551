"""What is asked without storing anything: what a predicate means, and what an event matches."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from contrada.broker.geojson_words import reword
from contrada.broker.log_reading import LogReader
from contrada.broker.number_names import NumberNames
from contrada.broker.standing_set import StandingSet
from contrada.broker.subscription_bodies import read_subscription_body
from contrada.errors import InvalidInput, UnknownSubscription
from contrada.limits import MATCHES_AT_ONCE_MAX, WHY_CHARACTERS_MAX, WHY_MAX
from contrada.matcher.explanations import Why, explain
from contrada.model.event import GEOMETRY, is_feature
from contrada.model.subscription import Subscription
from contrada.showing import brief, listed

_MEMBERS = ["event", "why", "after"]
_WHY_ROWS_MAX = 10  # of one collection: each costs as much as a subscription
_NUMBER_DIGITS_MAX = 18


@dataclass(frozen=True, slots=True)
class _Question:
    """An event, the ids that are to be explained, and after which number matches are wanted."""

    event: Mapping[str, Any]
    why: Sequence[Any] = ()
    after: int = 0


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
        """Match one event: a Feature, or an object with the event and ids to explain.

        The answer has some of the matches, their number, and after which the next ones come.
        """
        question = _read_question(body)
        event = question.event
        met = _Met(event)
        try:
            numbers = met.by(self._standing)
        except InvalidInput as fault:
            words = reword(fault.what, event.get(GEOMETRY))
            if words is None:
                raise
            raise InvalidInput(words, place=f"event.{GEOMETRY}") from None
        start = bisect_right(numbers, question.after)
        shown = numbers[start : start + MATCHES_AT_ONCE_MAX]
        found: dict[str, Any] = {"matches": self._names.find_all(shown), "count": len(numbers)}
        if start + len(shown) < len(numbers):
            found["next"] = str(shown[-1])
        if question.why:
            found["why"] = self._explain_all(question.why, met)
        return found

    def _explain_all(self, ids: Sequence[Any], met: "_Met") -> dict[str, Any]:
        found: dict[str, Any] = {}
        for id_ in ids:
            if met.explained > WHY_CHARACTERS_MAX:
                raise InvalidInput(
                    f"the explanations have more than {WHY_CHARACTERS_MAX:,} characters "
                    "(WHY_CHARACTERS_MAX): ask for fewer ids at once",
                    place="why",
                )
            if str(id_) not in found:
                found[str(id_)] = self._explain(id_, met)
        return found

    def _explain(self, id_: Any, met: "_Met") -> dict[str, Any] | None:
        """Explain why a subscription matches an event, or does not; None where there is none."""
        stored = self._reader.find_subscription(id_) if isinstance(id_, str) else None
        if stored is None:
            return None
        body = json.loads(stored.body)
        side = self._followed if "transitions" in body else self._standing
        if "filter" not in body and GEOMETRY not in body:
            return self._explain_rows(stored.number, met, side)
        if stored.number not in side.matcher:
            return None  # it has ended, or become another, a moment ago
        return met.describe(replace(side.matcher.why(stored.number, met.event), id=stored.id))

    def _explain_rows(self, subscription: int, met: "_Met", side: StandingSet) -> dict[str, Any]:
        """Explain the first rows of a collection that an event matches."""
        rows = self._reader.find_rows(subscription)
        numbers = range(0) if rows is None else range(rows.first, rows.first + rows.length)
        found = met.by(side)
        first, end = bisect_left(found, numbers.start), bisect_left(found, numbers.stop)
        shown = []
        for number in found[first : min(end, first + _WHY_ROWS_MAX)]:
            if met.explained > WHY_CHARACTERS_MAX:
                break
            row = self._names.find(number).get("row", "")
            with suppress(UnknownSubscription):  # other rows have taken its place meanwhile
                why = replace(side.matcher.why(number, met.event), id=row)
                shown.append({"row": row, **met.describe(why)})
        count = end - first
        return {"matches": count > 0, "count": count, "of": len(numbers), "rows": shown}


class _Met:
    """What an event matches, found once for each set, however much is asked about it.

    `explained` counts the characters of all that was told of why.
    """

    def __init__(self, event: Mapping[str, Any]) -> None:
        self.event, self.explained = event, 0
        self._numbers: dict[int, list[int]] = {}

    def by(self, side: StandingSet) -> list[int]:
        """Return the numbers of what it matches in a set, sorted."""
        found = self._numbers.get(id(side))
        if found is None:
            found = self._numbers[id(side)] = [int(each) for each in side.matcher.match(self.event)]
        return found

    def describe(self, why: Why) -> dict[str, Any]:
        """Describe why it matches, or not."""
        filters = [
            [{"constraint": truth.text, "value": truth.value} for truth in constraints]
            for constraints in why.filters
        ]
        text = str(why)
        self.explained += len(text)
        return {"matches": bool(why), "filters": filters, "text": text}


def _read_question(body: Any) -> _Question:
    """Read an event, and what is to be told of it."""
    if not isinstance(body, Mapping):
        raise InvalidInput(f"the body is a JSON object, not {brief(body)}")
    if is_feature(body):
        return _Question(body)
    for member in body:
        if member not in _MEMBERS:
            raise InvalidInput(
                f"there is no such member; the body is a Feature, or has {listed(_MEMBERS)}",
                place=brief(member),
            )
    event, wanted, after = body.get("event"), body.get("why") or [], body.get("after")
    if not isinstance(event, Mapping):
        raise InvalidInput(f"a Feature is wanted, not {brief(event)}", place="event")
    if not isinstance(wanted, list) or len(wanted) > WHY_MAX:
        raise InvalidInput(f"a list of at most {WHY_MAX} ids is wanted (WHY_MAX)", place="why")
    return _Question(event, wanted, 0 if after is None else _read_after(after))


def _read_after(after: Any) -> int:
    """Read after which match the next ones are wanted, as an answer has said it."""
    is_number = isinstance(after, str) and after.isascii() and after.isdigit()
    if not is_number or len(after) > _NUMBER_DIGITS_MAX:
        raise InvalidInput(f"the `next` of an answer is wanted, not {brief(after)}", place="after")
    return int(after)
