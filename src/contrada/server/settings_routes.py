"""`/v1/settings`: what a tenant has in common, such as which attributes name objects and times."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contrada.server.change_answers import describe_change
from contrada.server.json_answers import answer_json
from contrada.server.query_parameters import QueryParameters
from contrada.server.resources import read_object, resource
from contrada.server.service import ADMIN, SUBSCRIBE, service_of

_SMALL = 64 * 2**10  # bytes


def settings_routes() -> list[Route]:
    """Make the route of settings."""
    return [resource("/v1/settings", GET=get_settings, PUT=put_settings)]


async def get_settings(request: Request) -> Response:
    """Answer the settings of the tenant."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    QueryParameters(request)
    return answer_json(await service.read(broker.get_settings))


async def put_settings(request: Request) -> Response:
    """Replace the settings of the tenant."""
    service = service_of(request)
    broker = service.open_broker(request, ADMIN)
    QueryParameters(request)
    body = read_object(await service.read_json(request, _SMALL))
    changed = await service.write(broker.put_settings, body, by=service.name_of(request))
    return answer_json(describe_change(changed))
