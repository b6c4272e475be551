"""What is answered to whoever has published, by HTTP or on a socket."""

from typing import Any

from contrada.broker.commit_tasks import PublishAnswer
from contrada.server.problems import make_problem


def describe_published(published: PublishAnswer) -> dict[str, Any]:
    """Return what became of events of which some are stored, or of none."""
    answer: dict[str, Any] = {
        "accepted": published.accepted,
        "position": published.position,
        "matches": published.matches,
        "errors": [{"index": bad.index, "detail": bad.detail} for bad in published.errors],
    }
    if published.repeated:
        answer["repeated"] = published.repeated
    return answer


def bad_events_problem(published: PublishAnswer, all_or_none: bool) -> dict[str, Any]:
    """Return the problem of events of which some are bad, and none is stored."""
    count, first = len(published.errors), published.errors[0]
    words = "one event is bad" if count == 1 else f"{count:,} events are bad"
    rest = ", so none is stored" if all_or_none else ", and there is no other"
    detail = f"{words}{rest}; event {first.index}: {first.detail}"
    errors = [{"index": bad.index, "detail": bad.detail} for bad in published.errors]
    return make_problem(400, detail) | {"accepted": 0, "errors": errors}
