"""Small valid files of every format that is read, and ways to damage them."""

import gzip
import hashlib
import json
import random
import struct
import sys
import warnings
import zlib
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from contrada import Matcher
from contrada.errors import InvalidInput, Unavailable
from contrada.files import read_rows
from contrada.files.snapshot_header import HEADER_BYTES
from snapshots import save_as

SHAPES = [
    shapely.Point(1, 2),
    shapely.Polygon([(0, 0), (4, 0), (4, 4), (0, 0)]),
    shapely.MultiPoint([(1, 1), (2, 2)]),
]
TOKENS = (
    b'"', b"\n", b",", b"{", b"}", b"[", b"]", b"null", b"-", b"1e999", b"NaN", b"\xff", b"\0",
    b"\\ud800", b'{"a":', b"[" * 400, b"9" * 30, b"true", b'""', b"\r", b"\x1e", b"\x80", b"()",
)  # fmt: skip


def table() -> pa.Table:
    """A table with a column of every kind that rows may have."""
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": {
        "encoding": "WKB", "geometry_types": [], "crs": {"id": {"authority": "EPSG", "code": 4326}},
    }}}  # fmt: skip
    return pa.table(
        {
            "id": [1, 2, 3],
            "name": ["a", "é", None],
            "wind": [1.5, None, 2.5],
            "tags": [["x"], [], None],
            "inner": [{"a": 1}, None, {"a": 2}],
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
            "geometry": [shape.wkb for shape in SHAPES],
        }
    ).replace_schema_metadata({"geo": json.dumps(geo)})


def _features() -> list[str]:
    return [
        json.dumps(
            {
                "type": "Feature",
                "id": row,
                "properties": {"name": "é", "n": row, "a": [1.5, None], "b": {"c": "x"}},
                "geometry": shapely.geometry.mapping(shape),
            }
        )
        for row, shape in enumerate(SHAPES)
    ]


def _write_csv(path: Path) -> None:
    rows = [f'{row},é,1.5,"{shape.wkt}","a\nb"\n' for row, shape in enumerate(SHAPES)]
    path.write_text(f"id,name,wind,wkt,note\n{''.join(rows)}", encoding="utf-8")


def _write_csv_gz(path: Path) -> None:
    path.write_bytes(gzip.compress(b"id,lon,lat\n1,2,3\n4,5,6\n" * 3, mtime=0))


def _write_geojson(path: Path) -> None:
    crs = '{"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC::CRS84"}}'
    path.write_text(
        f'{{"type": "FeatureCollection", "crs": {crs}, "features": [{", ".join(_features())}]}}'
    )


def _write_ndjson(path: Path) -> None:
    path.write_text("\n".join(_features()))


def _write_sequence(path: Path) -> None:
    path.write_text("".join(f"\x1e{feature}\n" for feature in _features()))


def _write_vector(path: Path) -> None:
    from geopandas import GeoDataFrame

    shapes = [SHAPES[1], shapely.Polygon([(1, 1), (2, 1), (2, 2), (1, 1)])]
    columns = {"n": [1, 2], "name": ["a", "é"], "geometry": shapes}
    GeoDataFrame(columns, crs="EPSG:4326").to_file(path, engine="pyogrio")


def _write_snapshot(path: Path, format_: int) -> None:
    matcher = Matcher("crtree", evaluator="discrete", universe=(0.0, 0.0, 9.0, 9.0))
    matcher.add("a", geometry=SHAPES[1], where="wind > 3", subscriber="x")
    matcher.add("b", "name LIKE 'a%' OR n BETWEEN 1 AND 2", subscriber=7)
    save_as(format_, matcher, path)


WRITERS: dict[str, Callable[[Path], None]] = {
    "x.csv": _write_csv,
    "x.csv.gz": _write_csv_gz,
    "x.geojson": _write_geojson,
    "x.ndjson": _write_ndjson,
    "x.geojsons": _write_sequence,
    "x.parquet": lambda path: pq.write_table(table(), path),
    "x.fgb": _write_vector,
    "x.gpkg": _write_vector,
    "rows.contrada": lambda path: _write_snapshot(path, 1),
    "columns.contrada": lambda path: _write_snapshot(path, 2),
}


def damage(content: bytes, chance: random.Random) -> bytes:
    """Change, cut, repeat or put in some bytes, once or a few times."""
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(content) + 1) if content else 0
        length = chance.choice((1, 1, 2, 4, 8, chance.randrange(1, 200)))
        before, inside, after = content[:at], content[at : at + length], content[at + length :]
        match chance.randrange(8):
            case 0:
                content = (
                    before + bytes(byte ^ (1 << chance.randrange(8)) for byte in inside) + after
                )
            case 1:
                content = before + chance.randbytes(len(inside)) + after
            case 2:
                content = before + after
            case 3:
                content = before + inside + inside + after
            case 4:
                content = before
            case 5:
                content = before + chance.choice(TOKENS) + inside + after
            case 6:
                content = before + chance.choice(TOKENS) + after
            case _:
                extreme = chance.choice((b"\xff", b"\0", b"\x7f", b"\x80"))
                content = before + extreme * len(inside) + after
    return content


def overwrite(path: Path, content: bytes | bytearray) -> None:
    """Give a file another content; in place, as a disk waits for one that was emptied before."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


def seal(content: bytes) -> bytes:
    """Give a damaged snapshot a header that vouches for it."""
    fields = content[:20] + struct.pack("<Q", len(content))
    fields += hashlib.sha256(content[HEADER_BYTES:]).digest()
    return fields + struct.pack("<I", zlib.crc32(fields)) + content[HEADER_BYTES:]


def read_damaged(name: str, folder: Path, seeds: range) -> None:
    """Damage a file once for each seed, and read it in every way."""
    path = folder / name
    WRITERS[name](path)
    whole = path.read_bytes()
    matcher = Matcher()
    matcher.add("s", "S_INTERSECTS(geometry, POLYGON((0 0,4 0,4 4,0 0)))")
    matcher.add("t", "name LIKE 'a%' OR kind = 'u' OR wind > 1 OR inner.a = 1 OR tags = ('x')")
    for seed in seeds:
        content = damage(whole, random.Random(seed))
        is_sealed = name.endswith(".contrada") and seed % 4 and len(content) > 64
        path.write_bytes(seal(content) if is_sealed else content)
        print(name, seed, file=sys.stderr)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _use(path, matcher)


def _use(path: Path, matcher: Matcher) -> None:
    ways: list[Callable[[], object]] = [
        lambda: deque(read_rows(path, batch_rows=2).batches(), 0),
        lambda: matcher.match_many(path, quarantine=True),
        lambda: Matcher().add_many(path),
    ]
    if path.suffix == ".contrada":
        ways.append(lambda: Matcher.open(path).match({"wind": 4, "name": "a"}))
    for way in ways:
        try:
            way()
        except (InvalidInput, Unavailable) as fault:  # the latter: it asks for too much memory
            reason = str(fault)
            assert path.name in reason
