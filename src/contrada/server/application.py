"""The HTTP application: all routes over whoever's broker it is, whatever serves it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute

from contrada.broker.broker import Broker
from contrada.broker.keys import DEFAULT_TENANT
from contrada.server.accepting import address_of
from contrada.server.asking_routes import asking_routes
from contrada.server.delivery_routes import delivery_routes
from contrada.server.document_routes import document_routes
from contrada.server.event_routes import event_routes
from contrada.server.letter_routes import letter_routes
from contrada.server.open_streams import OpenStreams
from contrada.server.problems import ProblemAnswers, answer_http_exception
from contrada.server.raw_paths import RawPaths
from contrada.server.request_bodies import RequestBodies
from contrada.server.server_limits import ServerLimits
from contrada.server.service import Service, Watched
from contrada.server.settings_routes import settings_routes
from contrada.server.socket_routes import socket_routes
from contrada.server.status_routes import status_routes
from contrada.server.subscriber_routes import subscriber_routes
from contrada.server.subscription_routes import subscription_routes


def allow_all(connection: HTTPConnection, scope: str) -> None:
    """Allow everybody everything, as without keys."""


def make_app(
    broker_of: Callable[[HTTPConnection], Broker],
    limits: ServerLimits | None = None,
    *,
    check_scope: Callable[[HTTPConnection, str], object] = allow_all,
    name_of: Callable[[HTTPConnection], str | None] = lambda _: None,
    account_of: Callable[[HTTPConnection], str] = address_of,
    is_ready: Callable[[], bool] = lambda: True,
    more_routes: Sequence[BaseRoute] = (),
    middleware: Sequence[Middleware] = (),
    watched: Watched | None = None,
) -> Starlette:
    """Make the application.

    `broker_of` returns the broker of whoever sent a request or opened a socket, and `check_scope`
    raises where they may not do what a scope (publish, subscribe, admin) stands for; both are asked
    again each second while a stream is open, and may raise any error of ours, as may `middleware`.
    `name_of` names the caller for the log of changes; `account_of` tells callers apart whose
    bodies share the memory there is.
    `more_routes` come first: they find the parts that all routes share with `service_of`.
    `watched` is what `/metrics` counts; without it that is the caller's broker alone.

    `app.state.stopping` is an `asyncio.Event`: set it in the loop that serves, and all streams end.
    """
    limits = limits or ServerLimits()
    stopping = asyncio.Event()
    streams = OpenStreams(limits, stopping)
    bodies = RequestBodies(limits, account_of)
    watched = watched or Watched(lambda connection: {DEFAULT_TENANT: broker_of(connection)})
    service = Service(
        broker_of, check_scope, name_of, is_ready, limits, bodies, streams, stopping, watched
    )
    routes = [
        *more_routes,
        *subscription_routes(),
        *event_routes(),
        *subscriber_routes(),
        *delivery_routes(),
        *letter_routes(),
        *socket_routes(),
        *asking_routes(),
        *settings_routes(),
        *status_routes(),
        *document_routes(),
    ]

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        yield
        stopping.set()
        service.close()

    app = Starlette(
        routes=routes,
        middleware=[Middleware(ProblemAnswers), *middleware, Middleware(RawPaths)],
        exception_handlers={HTTPException: answer_http_exception},
        lifespan=live,
    )
    app.router.redirect_slashes = False
    app.state.service, app.state.stopping = service, stopping
    return app
