"""`contrada serve`: a broker on a socket, until SIGTERM or Ctrl-C."""

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

from contrada.cli.service_notices import notify
from contrada.cli.terminal import show
from contrada.errors import InvalidInput, MissingPackage

if TYPE_CHECKING:
    from contrada.server.hosting import Host
    from contrada.server.settings import ServeSettings

_LOG = logging.getLogger("contrada.server")
_PACKAGES = ("uvicorn", "starlette", "httptools", "websockets", "httpx")
_STOP_S = 9.0  # after which the process ends, whatever is still under way: it is on disk, or nobody
# was told that it would be
_OTHER_FILES = 1_000  # that are open beside connections
_FLAGS = ("data", "host", "port", "log", "tls_certificate", "tls_key")
_LISTS = ("allow_host", "allow_origin", "allow_webhook")

_EPILOG = """\
Without keys only this machine may connect, and nobody is asked who they are.
"contrada key add" adds a key; from then on each request needs one. Settings
come from flags, then from the environment (CONTRADA_PORT), then from --config,
a TOML file; their names are those that --print-config shows.

SIGTERM and Ctrl-C end streams and finish what is under way, with exit code 0;
SIGHUP reads limits, names, origins and certificates anew, and nobody is cut
off. The log goes to stderr, a JSON object a line.

examples:
  contrada serve
  contrada serve --data /var/lib/contrada --set retention_age_s=86400
  contrada serve --host 0.0.0.0 --tls-certificate cert.pem --tls-key key.pem
  contrada serve --ephemeral --port 0
"""


def add_parser(commands: Any, summary: str) -> None:
    """Describe the command and its options."""
    parser = commands.add_parser(
        "serve",
        help=summary,
        description="Serve a durable broker: subscribe, publish and read deliveries over HTTP.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_places(parser)
    _add_guards(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a limit; may be given several times (default: as --print-config shows)",
    )
    parser.add_argument(
        "--log",
        metavar="WHAT",
        help="requests to log: changes, or all; refused and failed ones always (default: changes)",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="settings as TOML (default: CONTRADA_CONFIG, or none)"
    )
    parser.add_argument(
        "--print-config", action="store_true", help="show all settings and their sources, and end"
    )
    parser.set_defaults(run=run)


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        help="where everything is kept; made if need be (default: ./contrada-data)",
    )
    parser.add_argument(
        "--ephemeral",
        action="store_true",
        help="keep everything in a temporary folder, which goes at the end; for tests",
    )
    parser.add_argument(
        "--host",
        metavar="NAME",
        help="address or name to listen on; * is all of them (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--port", metavar="N", help="port to listen on; 0 is one that is free (default: 8080)"
    )


def _add_guards(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tls-certificate",
        metavar="FILE",
        help="certificate in PEM, with those between it and its root (default: no TLS)",
    )
    parser.add_argument(
        "--tls-key", metavar="FILE", help="its private key in PEM (default: no TLS)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="answer to this name too; * to any (default: localhost, this machine's name, "
        "addresses)",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        metavar="URL",
        help="let web pages from there in, such as https://maps.example; * any (default: none)",
    )
    parser.add_argument(
        "--allow-webhook",
        action="append",
        metavar="NETWORK",
        help="call webhooks at these private addresses, such as 10.0.0.0/8 (default: none)",
    )


def run(options: argparse.Namespace) -> None:
    """Serve until told to stop."""
    _require_packages()
    from contrada.server.settings import read_settings

    flags = {name: getattr(options, name) for name in (*_FLAGS, *_LISTS)}
    config = options.config or os.environ.get("CONTRADA_CONFIG") or None
    if options.ephemeral:
        flags["data"] = _make_temporary_folder(options)

    if options.print_config:
        for line in read_settings(flags, config, options.set).describe():
            show(line)
        return

    def reread() -> "ServeSettings":
        settings = read_settings(flags, config, options.set)
        return replace(settings, data=settings.data.absolute())

    settings = reread()
    import asyncio

    from contrada.server.journal import logging_json

    with logging_json():
        _allow_files(settings.guard.connections_max + _OTHER_FILES)
        asyncio.run(_serve(settings, reread))


async def _serve(settings: "ServeSettings", reread: "Callable[[], ServeSettings]") -> None:
    from contrada.broker.warming import warming
    from contrada.server.hosting import Host

    def tell(address: str) -> None:
        show(f"contrada: {address} serves {settings.data}")
        notify("READY=1")

    host = Host(settings, reread)
    with warming(), _hearing(host):
        await host.run(tell)


def _require_packages() -> None:
    """Raise MissingPackage, with the remedy, where a package of the server is not installed."""
    for name in _PACKAGES:
        try:
            import_module(name)
        except ImportError as error:
            raise MissingPackage(
                f'contrada serve needs {name}, which is not installed: pip install "contrada'
                '[server]"'
            ) from error


def _make_temporary_folder(options: argparse.Namespace) -> str:
    from contrada.machine import temporary_folder

    if options.data is not None:
        raise InvalidInput(f"--data {options.data} and --ephemeral exclude each other")
    return str(temporary_folder("broker"))


@contextmanager
def _hearing(host: "Host") -> Iterator[None]:
    """Stop at a signal, at once at a second one; read settings anew at SIGHUP.

    The process ends in time, even if something never does.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    import asyncio

    loop = asyncio.get_running_loop()
    last = threading.Timer(_STOP_S, _end_process)
    last.daemon = True

    def stop(_: int, __: FrameType | None) -> None:
        is_first = not last.is_alive()
        if is_first:
            last.start()
            notify("STOPPING=1")
        loop.call_soon_threadsafe(host.stop if is_first else host.force)

    def reload(_: int, __: FrameType | None) -> None:
        loop.call_soon_threadsafe(host.reload)

    heard: dict[int, Any] = {signal.SIGINT: stop, signal.SIGTERM: stop}
    if sys.platform != "win32":
        heard[signal.SIGHUP] = reload
    before = {number: signal.signal(number, handler) for number, handler in heard.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_process() -> None:
    os._exit(0)


def _allow_files(count: int) -> None:
    """Let the process have as many files open as connections may need, if the system lets it."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < count:
        _LOG.warning("only %s files may be open, and connections may need %s", most, count)
