"""Events on their way from a body to the broker, whatever carried them."""

from contrada.broker.incoming_events import IncomingEvents, read_body
from contrada.server.service import Service

_SMALL = 32 * 2**10  # bytes that are read sooner than a thread would take them over


async def read_events(
    service: Service,
    body: bytes,
    content_type: str | None,
    headers: dict[str, str],
    key: str | None,
) -> IncomingEvents:
    """Read events from a body; those of a large one in a thread."""
    if len(body) <= _SMALL:
        return read_body(body, content_type, headers, key)
    return await service.judge(read_body, body, content_type, headers, key)
