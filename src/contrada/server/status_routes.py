"""`/healthz`, `/readyz` and `/metrics`: how the server is, for those who watch it."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contrada.broker.keys import DEFAULT_TENANT
from contrada.server.json_answers import answer_json
from contrada.server.metrics import write_metrics
from contrada.server.resources import resource
from contrada.server.service import ADMIN, service_of

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def status_routes() -> list[Route]:
    """Make the routes that say how the server is."""
    return [
        resource("/healthz", GET=get_health),
        resource("/readyz", GET=get_readiness),
        resource("/metrics", GET=get_metrics),
    ]


async def get_health(_: Request) -> Response:
    """Answer that the process lives."""
    return answer_json({"status": "alive"})


async def get_readiness(request: Request) -> Response:
    """Answer 200 once events are taken, 503 before, and once the server stops."""
    service = service_of(request)
    if service.stopping.is_set():
        return answer_json({"status": "stopping"}, 503)
    is_ready = service.is_ready()
    return answer_json({"status": "ready" if is_ready else "starting"}, 200 if is_ready else 503)


async def get_metrics(request: Request) -> Response:
    """Answer what the brokers that the caller may watch have counted, as Prometheus reads it."""
    service = service_of(request)
    service.check_scope(request, ADMIN)
    brokers = service.watched.brokers_of(request)
    counts = await service.read(lambda: {name: each.counts() for name, each in brokers.items()})
    by_tenant = {
        name: {**own, **service.watched.count_webhooks(brokers[name])}
        for name, own in counts.items()
    }
    of_server: dict[str, int | float] = {}
    if DEFAULT_TENANT in brokers:  # who runs the server; what others do is nobody else's business
        of_server = {
            "streams": len(service.streams),
            "bodies_bytes": service.bodies.bytes_held,
            **service.watched.count_connections(),
        }
    return Response(write_metrics(by_tenant, of_server), media_type=METRICS_TYPE)
