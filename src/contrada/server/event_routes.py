"""`/v1/events`: what happens; answered when it is on disk."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contrada.errors import InvalidInput
from contrada.server.event_answers import bad_events_problem, describe_published
from contrada.server.event_reading import read_events
from contrada.server.json_answers import answer_json, write_json
from contrada.server.problems import PROBLEM_TYPE, HttpRefusal
from contrada.server.query_parameters import QueryParameters
from contrada.server.request_bodies import is_json_type, read_media_type
from contrada.server.resources import resource
from contrada.server.service import PUBLISH, service_of
from contrada.showing import brief

LINE_TYPES = (
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonlines",
    "application/geo+json-seq",
    "application/json-seq",
)

_KEY_LENGTH_MAX = 255  # characters of an Idempotency-Key


def event_routes() -> list[Route]:
    """Make the route of events."""
    return [resource("/v1/events", POST=publish)]


async def publish(request: Request) -> Response:
    """Take events: 200, 207 where some of them are bad, 400 where none is stored."""
    service = service_of(request)
    broker = service.open_broker(request, PUBLISH)
    all_or_none = QueryParameters(request, "all").truth("all")
    key = _read_idempotency_key(request)
    content_type = _read_content_type(request)
    async with service.bodies.read(request, service.limits.body_bytes_max) as body:
        events = await read_events(service, body, content_type, dict(request.headers), key)
        published = await service.settle(broker.publish(events, all_or_none=all_or_none))
    if published.errors and not published.accepted:
        problem = bad_events_problem(published, all_or_none)
        return Response(write_json(problem), problem["status"], media_type=PROBLEM_TYPE)
    return answer_json(describe_published(published), 207 if published.errors else 200)


def _read_idempotency_key(request: Request) -> str | None:
    keys = request.headers.getlist("idempotency-key")
    if len(keys) > 1 or any(not 0 < len(key) <= _KEY_LENGTH_MAX for key in keys):
        raise InvalidInput(
            f"one key of 1 to {_KEY_LENGTH_MAX} characters is wanted",
            place="header Idempotency-Key",
        )
    return keys[0] if keys else None


def _read_content_type(request: Request) -> str | None:
    """Return the type of a body that may hold events; in binary CloudEvents it is that of data."""
    media_type = read_media_type(request)
    is_known = not media_type or is_json_type(media_type) or media_type in LINE_TYPES
    if not is_known and media_type != "text/json":
        accepted = ", ".join(["application/json", "application/geo+json", *LINE_TYPES])
        what = f"events are not read from {brief(media_type)}, only from {accepted}"
        raise HttpRefusal(415, what, {"Accept": accepted})
    return request.headers.get("content-type") if media_type else None
