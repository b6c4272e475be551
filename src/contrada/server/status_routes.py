"""`/healthz`, `/readyz` and `/metrics`: how the server is, for those who watch it."""

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contrada.server.json_answers import answer_json
from contrada.server.resources import resource
from contrada.server.service import ADMIN, service_of

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_NO_NAME = re.compile(r"[^a-zA-Z0-9_]")
_GROWING = frozenset("bad commits deliveries events matches repeated".split())  # since the start


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
    """Answer what the caller's broker has counted, as Prometheus reads it."""
    service = service_of(request)
    broker = service.open_broker(request, ADMIN)
    counts = await service.read(broker.counts)
    counts |= {"streams": len(service.streams), "bodies_bytes": service.bodies.bytes_held}
    return Response(write_metrics(counts), media_type=METRICS_TYPE)


def write_metrics(counts: dict[str, int | float]) -> str:
    """Write counts as Prometheus reads them; what only grows has a name that ends in `_total`."""
    lines = []
    for name, value in sorted(counts.items()):
        is_growing = name in _GROWING or name.endswith("_total")
        metric = f"contrada_{_NO_NAME.sub('_', name.removesuffix('_total'))}"
        metric, kind = (f"{metric}_total", "counter") if is_growing else (metric, "gauge")
        lines += [f"# TYPE {metric} {kind}", f"{metric} {value}"]
    return "\n".join([*lines, ""])
