"""A running server: brokers of a data folder behind the guards, from its settings to its end.

It knows no process: whoever runs it hears signals and says where it listens.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from contrada.broker.broker import Broker
from contrada.broker.broker_options import READ_ONCE, BrokerOptions
from contrada.broker.keys import DEFAULT_TENANT, KeyFile
from contrada.errors import ContradaError, InvalidInput, blame
from contrada.server.accepting import find_places, listen
from contrada.server.application import make_app
from contrada.server.authorising import KeyGate, KeysAtWork, caller_of
from contrada.server.certificates import Certificate
from contrada.server.guard_limits import GuardLimits
from contrada.server.journal import Journal
from contrada.server.origins import AllowedOrigins, OriginGuard
from contrada.server.problems import ProblemAnswers
from contrada.server.row_routes import row_routes
from contrada.server.server_limits import ServerLimits
from contrada.server.service import Watched
from contrada.server.serving import GuardedServer
from contrada.server.settings import ServeSettings
from contrada.server.tenants import Tenants
from contrada.server.webhooks_of_all import AllWebhooks

_LOG = logging.getLogger("contrada.server")
_LASTING = ("data", "host", "port", "allow_webhook")  # settings that hold until the next start


class _Followed:
    """Has the attributes of whatever is in place at the moment."""

    def __init__(self, current: Callable[[], Any]) -> None:
        self._current = current

    def __getattr__(self, name: str) -> Any:
        return getattr(self._current(), name)


class Host:
    """One server; made, run and told to stop in one event loop."""

    def __init__(self, settings: ServeSettings, reread: Callable[[], ServeSettings]) -> None:
        """Listen, unless there are no keys and others than this machine could connect."""
        self._settings, self._reread = settings, reread
        self._certificate = _read_certificate(settings)
        file = KeyFile(settings.data)
        keyring = file.read()
        places = find_places(settings.host, settings.port)
        self._is_loopback = all(place.is_loopback for place in places)
        if not (self._is_loopback or len(keyring)):
            raise InvalidInput(
                f"--host {settings.host} lets other machines connect, for which there must be a "
                f"key: contrada key add NAME --scope admin --data {settings.data}"
            )
        self._allowed = self._read_allowed(settings)
        self._webhooks = AllWebhooks(settings.allow_webhook)
        _make_folder(settings.data)
        self._listeners = listen(places)
        self._keys = KeysAtWork(file, is_loopback=self._is_loopback)
        options = cast("BrokerOptions", _Followed(lambda: self._settings.broker))
        self._tenants = Tenants(settings.data, options, self._webhooks.begin)
        self._app = self._make_app()
        self._server = self._make_server()

    @property
    def address(self) -> str:
        """Where it listens, as a URL."""
        host, port = self._listeners[0].getsockname()[:2]
        host = f"[{host}]" if self._listeners[0].family == socket.AF_INET6 else host
        return f"{'http' if self._certificate is None else 'https'}://{host}:{port}"

    @property
    def routes(self) -> list[BaseRoute]:
        """What the application answers to."""
        return list(self._app.routes)

    async def run(self, on_ready: Callable[[str], object]) -> None:
        """Serve until told to stop; `on_ready` gets the address once events are taken."""
        address = self.address
        self._warn()
        following = asyncio.create_task(self._keys.follow())
        serving = asyncio.create_task(self._server.serve())
        opening = asyncio.create_task(self._tenants.open_all())
        try:
            await asyncio.wait({serving, opening}, return_when=asyncio.FIRST_COMPLETED)
            if opening.done() and not serving.done():
                await opening
                _LOG.info("the server is ready", extra={"fields": {"address": address}})
                on_ready(address)
            await serving
        finally:
            self._server.stop()
            for task in (following, opening):
                task.cancel()
            with suppress(Exception):  # it is raised above
                await serving
            await asyncio.gather(following, opening, return_exceptions=True)
            await self._webhooks.stop()
            await self._tenants.close()
            self._close_listeners()
            _LOG.info("the server has ended")

    def stop(self) -> None:
        """Begin to stop: streams end, and what is under way is finished."""
        _LOG.info("the server stops")
        self._server.stop()

    def force(self) -> None:
        """Stop at once; what is stored stays stored."""
        self._server.force()

    def reload(self) -> None:
        """Read certificates and limits anew; with what cannot be used, all stays as it was."""
        try:
            settings = self._reread()
            allowed = self._read_allowed(settings)
            if (self._certificate is None) != (settings.tls_certificate is None):
                raise InvalidInput("TLS begins and ends with a start")
            if self._certificate is not None:
                assert settings.tls_certificate is not None and settings.tls_key is not None
                self._certificate.read_again(settings.tls_certificate, settings.tls_key)
        except ContradaError as fault:
            _LOG.error("the settings stay as they were: %s", fault)
            return
        names = _find_changed(_LASTING, self._settings, settings)
        names += _find_changed(READ_ONCE, self._settings.broker, settings.broker)
        self._settings, self._allowed = settings, allowed
        self._keys.look()
        _LOG.info("settings were read again", extra={"fields": {"after_a_start": names}})

    def _read_allowed(self, settings: ServeSettings) -> AllowedOrigins:
        hosts = [*settings.allow_host]
        if settings.host not in ("", "*"):
            host, _, _ = settings.host.partition("%")  # a zone is this machine's own affair
            hosts.append(f"[{host}]" if ":" in host else host)
        return AllowedOrigins(hosts, settings.allow_origin, is_loopback=self._is_loopback)

    def _make_app(self) -> Starlette:
        limits = cast("GuardLimits", _Followed(lambda: self._settings.guard))
        gate = Middleware(KeyGate, self._keys, self._tenants, lambda: limits)
        return make_app(
            lambda connection: self._tenants.find(caller_of(connection).tenant),
            cast("ServerLimits", _Followed(lambda: self._settings.server)),
            check_scope=self._keys.check_scope,
            name_of=lambda connection: caller_of(connection).name,
            account_of=lambda connection: caller_of(connection).account,
            is_ready=lambda: self._tenants.is_ready,
            more_routes=row_routes(),
            middleware=[gate],
            watched=Watched(
                self._find_watched,
                self._webhooks.count,
                self._count_connections,
            ),
        )

    def _count_connections(self) -> dict[str, int]:
        return self._server.guarded.describe()

    def _find_watched(self, connection: HTTPConnection) -> Mapping[str, Broker]:
        """Find what a caller may watch: all, if it is of the tenant of who runs the server."""
        tenant = caller_of(connection).tenant
        if tenant == DEFAULT_TENANT:
            return self._tenants.brokers()
        return {tenant: self._tenants.find(tenant)}

    def _make_server(self) -> GuardedServer:
        return GuardedServer(
            _without_lifespan(self._app, self._guard(self._app)),
            self._listeners,
            cast("GuardLimits", _Followed(lambda: self._settings.guard)),
            tls=None if self._certificate is None else self._certificate.context,
            frame_bytes_max=lambda: self._settings.server.frame_bytes_max,
            on_stop=self._end_streams,
            has_ended=lambda: not len(self._app.state.service.streams),
        )

    def _end_streams(self) -> None:
        self._app.state.stopping.set()
        self._webhooks.begin_to_stop()

    def _guard(self, app: ASGIApp) -> ASGIApp:
        guarded = OriginGuard(app, lambda: self._allowed)
        return Journal(ProblemAnswers(guarded), lambda: self._settings.log)

    def _warn(self) -> None:
        if not self._is_loopback and self._certificate is None:
            _LOG.warning(
                "keys travel unencrypted: --tls-certificate and --tls-key encrypt them, or a proxy "
                "in front does"
            )

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()


def _find_changed(names: Iterable[str], before: object, after: object) -> list[str]:
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def _read_certificate(settings: ServeSettings) -> Certificate | None:
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    return Certificate(settings.tls_certificate, settings.tls_key)


def _make_folder(data: Path) -> None:
    """Make the data folder if need be; nobody else on this machine may look into it."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise InvalidInput(f"{data}: is a file, not a folder") from None
    except OSError as fault:
        raise blame(fault, f"{data}: cannot be made: {fault.strerror or fault}") from fault


def _without_lifespan(app: ASGIApp, guarded: ASGIApp) -> ASGIApp:
    """Let only requests and sockets through the guards."""

    async def divide(scope: Scope, receive: Receive, send: Send) -> None:
        await (app if scope["type"] == "lifespan" else guarded)(scope, receive, send)

    return divide
