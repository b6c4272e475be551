"""`/v1/subscriptions`: what is wanted."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contrada.limits import PAGE_DELIVERIES_MAX
from contrada.server.change_answers import describe_change
from contrada.server.json_answers import answer_json
from contrada.server.query_parameters import QueryParameters
from contrada.server.raw_paths import read_path_name
from contrada.server.resources import resource
from contrada.server.service import SUBSCRIBE, service_of

_PAGE = 100  # items where no limit is named


def subscription_routes() -> list[Route]:
    """Make the routes of subscriptions, but for the rows of collections."""
    return [
        resource("/v1/subscriptions", GET=list_subscriptions),
        resource(
            "/v1/subscriptions/{id}",
            GET=get_subscription,
            PUT=put_subscription,
            DELETE=delete_subscription,
        ),
    ]


async def put_subscription(request: Request) -> Response:
    """Add a subscription, or change it; 201 where it is new."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    QueryParameters(request)
    body = await service.read_json(request, service.limits.subscription_bytes_max)
    changed = await service.write(
        broker.put_subscription, read_path_name(request, "id"), body, by=service.name_of(request)
    )
    return answer_json(describe_change(changed), 201 if changed.is_new else 200)


async def get_subscription(request: Request) -> Response:
    """Answer the body of a subscription, with its id and the position since which it holds."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    QueryParameters(request)
    return answer_json(await service.read(broker.get_subscription, read_path_name(request, "id")))


async def delete_subscription(request: Request) -> Response:
    """Remove a subscription; what it has matched is still delivered."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    QueryParameters(request)
    changed = await service.write(
        broker.delete_subscription, read_path_name(request, "id"), by=service.name_of(request)
    )
    return answer_json(describe_change(changed))


async def list_subscriptions(request: Request) -> Response:
    """Answer a page of subscriptions, by id."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    query = QueryParameters(request, "after", "limit", "subscriber")
    page = await service.read(
        broker.list_subscriptions,
        after=query.text("after"),
        limit=query.count("limit", _PAGE, PAGE_DELIVERIES_MAX),
        subscriber=query.text("subscriber"),
    )
    return answer_json(page)
