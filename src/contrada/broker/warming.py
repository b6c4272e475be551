"""Kernels are compiled before anybody waits for them, once on a machine, by another process.

The first event with transitions would otherwise keep everybody waiting for as long as that takes,
half a minute on a busy machine. Whoever needs a kernel meanwhile waits for just that one, and then
loads what the other process has compiled. A file in the user's cache says that it has been done.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import contrada.kernels
from contrada.machine import cache_folders

_FOLDER = "warmed"
_EVENTS = 500
_NICENESS = 10


@contextmanager
def warming() -> Iterator[None]:
    """Let another process compile kernels meanwhile, unless that was done on this machine."""
    marker = _find_marker()
    if marker is None or marker.exists():
        yield
        return
    process = subprocess.Popen(  # noqa: S603  our own Python
        [sys.executable, "-m", __name__],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a Ctrl-C is for the server
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _find_marker() -> Path | None:
    """Return the file that says so for these kernels; None where no file can be written."""
    folder = next(cache_folders(_FOLDER), None)
    if folder is None:
        return None
    digest = hashlib.sha256(f"{sys.version} {version('numba')}".encode())
    for path in sorted(Path(contrada.kernels.__path__[0]).glob("*.py")):
        digest.update(path.read_bytes())
    return folder / digest.hexdigest()[:32]


def warm_up() -> None:
    """Let a broker in a temporary folder do all that needs kernels."""
    from contrada.broker.broker import Broker
    from contrada.broker.broker_options import BrokerOptions
    from contrada.broker.incoming_events import read_body

    area = {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]]]}
    with tempfile.TemporaryDirectory(prefix="contrada-warming-") as folder:
        broker = Broker.open(folder, BrokerOptions(is_durable=False))
        for number, asked in enumerate(({}, {"transitions": {"dwell": "1 min"}})):
            body = {"geometry": area, "where": "speed > 3", **asked}
            broker.put_subscription(f"{number}", body).result()
        for minute in (1, 2):
            features = [_make_position(number, minute) for number in range(_EVENTS)]
            text = json.dumps({"type": "FeatureCollection", "features": features}).encode()
            broker.publish(read_body(text, "application/geo+json", {}, None)).result()
        broker.close()


def _make_position(number: int, minute: int) -> dict[str, object]:
    place = [number / _EVENTS * 20, 4.5 * minute]
    return {
        "type": "Feature",
        "id": number,
        "geometry": {"type": "Point", "coordinates": place},
        "properties": {
            "object_id": f"{number % 50}",
            "time": f"2026-01-01T0{number % 10}:0{minute}:00Z",
            "speed": number / 7,
            "kind": "van",
        },
    }


def main() -> None:
    """Compile the kernels, and leave a word that it is done."""
    import os

    argparse.ArgumentParser(description=__doc__).parse_args()
    with suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    warnings.simplefilter("ignore")
    warm_up()
    marker = _find_marker()
    if marker is not None:
        with suppress(OSError):
            marker.touch()


if __name__ == "__main__":
    main()
