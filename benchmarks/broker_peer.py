"""PostGIS as people use it for this: a trigger that finds fences and notifies.

It runs in a server of its own, written as well as we can: fences clustered by their index, a
statement of 500 rows a transaction, a statement-level trigger that joins the new rows with the
fences at once and notifies each subscriber once a statement; `synchronous_commit` is on, as here
every answered event is on disk.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SCHEMA = """
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE TABLE fences (id text, subscriber text, speed float, area geometry);
INSERT INTO fences SELECT 'fence-' || n, 's' || n % 1000, n % 50,
    ST_MakeEnvelope((n / 2) % {side}, (n / 2) / {side}, (n / 2) % {side} + 1, (n / 2) / {side} + 1)
    FROM generate_series(0, {last}) n;
CREATE INDEX fences_area ON fences USING gist (area);
CLUSTER fences USING fences_area;
ANALYZE fences;
CREATE TABLE events (
    id bigserial, name text, speed float, kind text, load int, place geometry);
CREATE TABLE deliveries (event bigint, subscriber text, fence text);
CREATE FUNCTION deliver() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH found AS (
        INSERT INTO deliveries
        SELECT e.id, f.subscriber, f.id FROM arrived e JOIN fences f
        ON ST_Intersects(f.area, e.place) AND e.speed > f.speed
        RETURNING subscriber
    )
    SELECT count(pg_notify('deliveries', subscriber)) FROM (SELECT DISTINCT subscriber FROM found) s
    INTO STRICT last_count;
    RETURN NULL;
END $$;
"""


class PostgisPeer:
    """A PostgreSQL of its own in a temporary folder, on a socket there."""

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes]") -> None:
        self._folder, self._process = folder, process

    @classmethod
    def start(cls, count: int, side: float) -> "PostgisPeer | None":
        """Start a server with so many fences; None where PostGIS is not installed."""
        binaries = _find_binaries()
        if binaries is None:
            return None
        folder = Path(tempfile.mkdtemp(prefix="contrada-postgis-"))
        shutil.chown(folder, "postgres", "postgres")
        _run_as_postgres(str(binaries / "initdb"), "-D", str(folder / "data"), "-A", "trust")
        process = subprocess.Popen(
            [
                "setpriv",
                "--reuid=postgres",
                "--regid=postgres",
                "--clear-groups",
                str(binaries / "postgres"),
                "-D",
                str(folder / "data"),
                "-k",
                str(folder),
                "-h",
                "",
                "-c",
                "shared_buffers=1GB",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        peer = cls(folder, process)
        for _ in range(100):
            with suppress(subprocess.CalledProcessError):
                peer._sql("SELECT 1")
                break
            time.sleep(0.1)
        schema = _SCHEMA.replace("INTO STRICT last_count", "INTO last_count")
        schema = schema.replace("AS $$\nBEGIN", "AS $$\nDECLARE last_count bigint;\nBEGIN")
        peer._sql(schema.format(side=int(side), last=count - 1))
        peer._sql(
            "CREATE TRIGGER delivering AFTER INSERT ON events REFERENCING NEW TABLE AS arrived "
            "FOR EACH STATEMENT EXECUTE FUNCTION deliver()"
        )
        return peer

    def measure(self, places: NDArray[np.float64]) -> float:
        """Insert points, 500 a transaction, over four connections; return events a second."""
        parts = np.array_split(places, 4)
        files = []
        for number, part in enumerate(parts):
            path = self._folder / f"load-{number}.sql"
            path.write_text("\n".join(_insert(batch) for batch in _cut(part.tolist())))
            path.chmod(0o644)
            files.append(path)
        begun = time.perf_counter()
        running = [
            subprocess.Popen([*self._psql(), "-f", str(path)], stdout=subprocess.DEVNULL)
            for path in files
        ]
        for process in running:
            if process.wait():
                raise SystemExit("PostGIS has failed")
        return len(places) / (time.perf_counter() - begun)

    def stop(self) -> None:
        """End the server, and remove what it had."""
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _psql(self) -> list[str]:
        return ["psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", str(self._folder), "-U", "postgres"]

    def _sql(self, text: str) -> None:
        subprocess.run([*self._psql(), "-c", text], check=True, capture_output=True)


def _insert(batch: Sequence[Sequence[float]]) -> str:
    rows = ", ".join(
        f"('vehicle {n}', 60.5, 'van', {n}, ST_MakePoint({x}, {y}))"
        for n, (x, y) in enumerate(batch)
    )
    return f"INSERT INTO events (name, speed, kind, load, place) VALUES {rows};"


def _cut(places: list[Any]) -> list[list[Any]]:
    return [places[i : i + 500] for i in range(0, len(places), 500)]


def _find_binaries() -> Path | None:
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        extension = Path(f"/usr/share/postgresql/{folder.parent.name}/extension/postgis.control")
        if (folder / "initdb").exists() and extension.exists():
            return folder
    return None


def _run_as_postgres(*words: str) -> None:
    subprocess.run(
        ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *words],
        check=True,
        capture_output=True,
    )
