"""`/v1/subscribers/{name}/dead-letters`: what a webhook's receiver has refused, and its redrive."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contrada.broker.dead_letters import DeadLetter
from contrada.errors import InvalidInput
from contrada.limits import PAGE_DELIVERIES_MAX
from contrada.server.json_answers import JSON_TYPE, answer_json, write_json
from contrada.server.query_parameters import QueryParameters
from contrada.server.raw_paths import read_path_name
from contrada.server.resources import check_text, read_members, resource
from contrada.server.service import SUBSCRIBE, service_of
from contrada.showing import brief

_PAGE = 100  # letters where no limit is named
_SMALL = 256 * 2**10  # bytes


def letter_routes() -> list[Route]:
    """Make the routes of dead letters."""
    path = "/v1/subscribers/{name}/dead-letters"
    return [resource(path, GET=list_letters), resource(f"{path}/redrive", POST=redrive)]


async def list_letters(request: Request) -> Response:
    """Answer a page of dead letters, by position."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    query = QueryParameters(request, "after", "limit")
    letters, after = await service.read(
        broker.webhooks.letters.list,
        read_path_name(request, "name"),
        after=query.text("after"),
        limit=query.count("limit", _PAGE, PAGE_DELIVERIES_MAX),
    )
    return Response(_write_letters(letters, after), media_type=JSON_TYPE)


async def redrive(request: Request) -> Response:
    """Let dead letters be sent again: all, also without a body, or those of some positions."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    QueryParameters(request)
    members = read_members(await service.read_json(request, _SMALL, empty={}), "positions")
    positions = members.get("positions")
    if positions is not None:
        if not isinstance(positions, list) or len(positions) > PAGE_DELIVERIES_MAX:
            most = f"{PAGE_DELIVERIES_MAX:,} positions (PAGE_DELIVERIES_MAX)"
            words = f"a list of at most {most} is wanted, not {brief(positions)}"
            raise InvalidInput(words, place="positions")
        positions = [check_text(each, f"positions[{i}]") for i, each in enumerate(positions)]
    name = read_path_name(request, "name")
    return answer_json({"redriven": await service.write(broker.webhooks.redrive, name, positions)})


def _write_letters(letters: Sequence[DeadLetter], after: str | None) -> bytes:
    """Write a page as JSON; its deliveries are JSON already."""
    written = (
        write_json({"error": letter.error, "time": letter.time, "due": letter.is_due})[:-1]
        + b',"delivery":'
        + letter.delivery.json
        + b"}"
        for letter in letters
    )
    return b'{"dead_letters":[' + b",".join(written) + b"]," + write_json({"next": after})[1:]
