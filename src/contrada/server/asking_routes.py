"""`/v1/explain` and `/v1/match`: questions that store nothing."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contrada.broker.broker import Broker
from contrada.server.json_answers import answer_json
from contrada.server.query_parameters import QueryParameters
from contrada.server.resources import resource
from contrada.server.service import SUBSCRIBE, service_of


def asking_routes() -> list[Route]:
    """Make the routes that only ask."""
    return [
        resource("/v1/explain", POST=explain),
        resource("/v1/match", POST=match),
    ]


async def explain(request: Request) -> Response:
    """Answer how a predicate is understood: its normal form, and what serves each constraint."""
    return await _ask(request, lambda broker: broker.explain)


async def match(request: Request) -> Response:
    """Answer which subscriptions an event would match, and why those that are named do or not."""
    return await _ask(request, lambda broker: broker.match)


async def _ask(
    request: Request, question_of: Callable[[Broker], Callable[[Any], dict[str, Any]]]
) -> Response:
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    QueryParameters(request)
    body = await service.read_json(request, service.limits.subscription_bytes_max)
    return answer_json(await service.judge(question_of(broker), body))
