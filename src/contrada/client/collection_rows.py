"""The rows of a collection on their way to a broker: a file as it is, anything else as GeoParquet.

A file that a broker reads is sent from the disk, so that millions of rows need no memory here.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from contrada.client.calls import CREATED
from contrada.client.exchange import BrokerRequest, Steps, path_of
from contrada.client.received import RowsReceipt, read_rows_receipt
from contrada.client.refusals import read_object
from contrada.client.retrying import Attempts, Persistence, ask
from contrada.errors import InvalidInput, blame
from contrada.files import Rows, open_output, read_rows
from contrada.model.event import GEOMETRY
from contrada.showing import listed

_PARQUET = "application/vnd.apache.parquet"
_LINES = "application/x-ndjson"
_TYPES = {
    ".parquet": _PARQUET,
    ".geoparquet": _PARQUET,
    ".geojson": "application/geo+json",
    ".json": "application/geo+json",
    ".geojsonl": _LINES,
    ".ndgeojson": _LINES,
    ".ndjson": _LINES,
    ".jsonl": _LINES,
}
_JUDGING_S = 600.0  # in which a broker reads and judges millions of rows


@contextmanager
def packed_rows(rows: Any) -> Iterator[tuple[Path, str]]:
    """Have a file of the rows that a broker reads, and its type, while the block runs."""
    path = Path(os.fsdecode(rows)) if isinstance(rows, str | os.PathLike) else None
    if path is not None and path.is_file() and path.suffix.lower() in _TYPES:
        yield path, _TYPES[path.suffix.lower()]
        return
    with tempfile.TemporaryDirectory(prefix="contrada-rows-") as folder:
        packed = Path(folder, "rows.geoparquet")
        _write(rows if isinstance(rows, Rows) else read_rows(rows), packed)
        yield packed, _PARQUET


def _write(rows: Rows, path: Path) -> None:
    if GEOMETRY not in rows.schema.names:
        raise InvalidInput(
            f"{rows.name}: the rows of a collection need a column {GEOMETRY!r}; "
            f"it has {listed(rows.schema.names)}"
        )
    names = [name for name in ("id", GEOMETRY) if name in rows.schema.names]
    schema = pa.schema([rows.schema.field(name) for name in names])
    with open_output(path, schema, geometry_column=GEOMETRY, crs=rows.crs) as output:
        for batch in rows.narrowed(names).batches():
            output.write(batch.select(names))


def put_rows(
    id: str, path: Path, media_type: str, may_be_empty: bool, persistence: Persistence
) -> Steps[RowsReceipt]:
    """Replace the rows of a collection by those in a file; only if it may be empty by none."""
    try:
        path.stat()
    except OSError as fault:
        raise blame(fault, f"{path}: cannot be read: {fault.strerror}") from fault
    target = path_of("subscriptions", id, "rows")
    headers = {"content-type": media_type}
    query = {"empty": "true"} if may_be_empty else {}
    request = BrokerRequest("PUT", target, query, path, headers, wait_s=_JUDGING_S)
    answer = yield from ask(request, Attempts(persistence))
    return read_rows_receipt(read_object(answer), answer.status == CREATED)
