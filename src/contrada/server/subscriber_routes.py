"""`/v1/subscribers`: who reads, from which position on."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contrada.errors import InvalidInput
from contrada.limits import PAGE_DELIVERIES_MAX
from contrada.server.change_answers import describe_change
from contrada.server.json_answers import answer_json
from contrada.server.query_parameters import QueryParameters
from contrada.server.raw_paths import read_path_name
from contrada.server.resources import (
    check_text,
    read_members,
    read_object,
    read_text_member,
    resource,
)
from contrada.server.service import SUBSCRIBE, service_of

_PAGE = 100  # items where no limit is named
_SMALL = 256 * 2**10  # bytes of bodies that are never large


def subscriber_routes() -> list[Route]:
    """Make the routes of subscribers, but for reading their deliveries."""
    return [
        resource("/v1/subscribers", GET=list_subscribers),
        resource(
            "/v1/subscribers/{name}",
            GET=get_subscriber,
            PUT=put_subscriber,
            DELETE=delete_subscriber,
        ),
        resource("/v1/subscribers/{name}/ack", POST=acknowledge),
        resource("/v1/subscribers/{name}/cursor", PUT=put_cursor),
    ]


async def put_subscriber(request: Request) -> Response:
    """Add a subscriber, or change its channel; 201 where it is new."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    QueryParameters(request)
    body = read_object(await service.read_json(request, _SMALL))
    changed = await service.write(
        broker.put_subscriber,
        read_path_name(request, "name"),
        body,
        by=service.name_of(request),
    )
    return answer_json(describe_change(changed), 201 if changed.is_new else 200)


async def get_subscriber(request: Request) -> Response:
    """Answer what there is to know of a subscriber: its cursor, its channel, how far it is."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    QueryParameters(request)
    return answer_json(await service.read(broker.get_subscriber, read_path_name(request, "name")))


async def delete_subscriber(request: Request) -> Response:
    """Remove a subscriber, with its subscriptions and what waits for it."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    QueryParameters(request)
    changed = await service.write(
        broker.delete_subscriber, read_path_name(request, "name"), by=service.name_of(request)
    )
    return answer_json(describe_change(changed))


async def list_subscribers(request: Request) -> Response:
    """Answer a page of subscribers, by name."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    query = QueryParameters(request, "after", "limit")
    limit = query.count("limit", _PAGE, PAGE_DELIVERIES_MAX)
    return answer_json(
        await service.read(broker.list_subscribers, after=query.text("after"), limit=limit)
    )


async def acknowledge(request: Request) -> Response:
    """Move the cursor of a subscriber forward; it never goes back."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    QueryParameters(request)
    position = read_text_member(await service.read_json(request, _SMALL), "position")
    cursor = await service.write(broker.ack, read_path_name(request, "name"), position)
    return answer_json({"position": cursor})


async def put_cursor(request: Request) -> Response:
    """Move the cursor of a subscriber to a position or a time, forward or back."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    QueryParameters(request)
    members = read_members(await service.read_json(request, _SMALL), "position", "time")
    if len(members) != 1:
        raise InvalidInput("either a position or a time is wanted", place="the body")
    target = {name: check_text(value, name) for name, value in members.items()}
    cursor = await service.write(broker.put_cursor, read_path_name(request, "name"), **target)
    return answer_json({"position": cursor})
