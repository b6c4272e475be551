"""What is asked without storing anything: what a predicate means, and what an event matches."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from contrada.broker.log_reading import LogReader
from contrada.broker.number_names import NumberNames
from contrada.broker.standing_set import StandingSet
from contrada.broker.subscription_bodies import read_subscription_body
from contrada.errors import InvalidInput
from contrada.limits import WHY_MAX
from contrada.matcher.explanations import explain
from contrada.model.event import is_feature
from contrada.model.subscription import Subscription
from contrada.showing import brief, listed

_MEMBERS = ["event", "why"]


def explain_body(body: Any, standing: StandingSet) -> dict[str, Any]:
    """Explain the predicate of a subscription's body."""
    read = read_subscription_body("explained", body, standing.matcher)
    if read.predicate is None:
        raise InvalidInput("there is neither a filter nor a geometry")
    return explain(Subscription("explained", read.predicate)).as_dict()


def match_body(
    body: Any, standing: StandingSet, names: NumberNames, reader: LogReader
) -> dict[str, Any]:
    """Match one event: a Feature, or an object with the event and ids to explain."""
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
    numbers = standing.matcher.match(event)
    found: dict[str, Any] = {"matches": [names.find(int(number)) for number in numbers]}
    if wanted:
        found["why"] = {str(id_): _explain_match(id_, event, standing, reader) for id_ in wanted}
    return found


def _explain_match(
    id_: Any, event: Mapping[str, Any], standing: StandingSet, reader: LogReader
) -> dict[str, Any] | None:
    """Explain why a subscription matches an event, or does not; None where there is none."""
    stored = reader.find_subscription(id_) if isinstance(id_, str) else None
    if stored is None or stored.number not in standing.matcher:
        return None
    why = replace(standing.matcher.why(stored.number, event), id=stored.id)
    filters = [
        [{"constraint": truth.text, "value": truth.value} for truth in constraints]
        for constraints in why.filters
    ]
    return {"matches": bool(why), "filters": filters, "text": str(why)}
