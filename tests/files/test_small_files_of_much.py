"""Few bytes that stand for gigabytes: read in pieces of bounded size, or refused by a limit.

Each runs in a process of its own whose memory is bounded, so that it is seen if one is not.
"""

import ast
import subprocess
import sys
from pathlib import Path

BOUND_BYTES = 450_000_000  # beyond what the process has taken before

PROGRAM = """
import resource, sys
from pathlib import Path
import numpy as np
import pyarrow as pa
import pyarrow.compute, pyarrow.parquet as pq
from contrada import InvalidInput, Matcher

matcher = Matcher()
matcher.add("none", "t = 'y' OR S_INTERSECTS(geometry, POINT(1 1))")
small = pa.table({"t": ["x"], "geometry": ["POINT (0 0)"], "id": ["x"]})
matcher.match_many(small, id="id")
LONG = "x" * 2**20
PLACE = bytes(2**20)  # not a geometry
ROWS = 700

def coded(value, rows=ROWS, kind=pa.string()):
    codes = pa.array(np.zeros(rows, np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array([value], kind))

def one_each(values):
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), values)

def one_list(values):
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)

def runs(value, rows=ROWS):
    return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int64()), pa.array([value]))

def views():
    view = np.array([len(LONG), int.from_bytes(b"xxxx", "little"), 0, 0], np.int32)
    buffers = [None, pa.py_buffer(np.tile(view, ROWS)), pa.py_buffer(LONG.encode())]
    return pa.Array.from_buffers(pa.string_view(), ROWS, buffers)

def views_of_lists():
    starts, lengths = pa.array([0] * 15, pa.int32()), pa.array([2**20] * 15, pa.int32())
    return pa.ListViewArray.from_arrays(starts, lengths, pa.array(np.arange(2**20)))

def store(table, **options):
    path = Path(sys.argv[1]) / "x.parquet"
    usual = {"compression": "zstd", "store_schema": False, "dictionary_pagesize_limit": 2**30}
    pq.write_table(table, path, **usual | options)
    assert path.stat().st_size < 300_000, path.stat().st_size
    return path
"""

BOUNDED = {
    "a dictionary": 'pa.table({"t": coded(LONG)})',
    "a dictionary of ids": 'pa.table({"t": coded(LONG), "id": coded(LONG)})',
    "a dictionary of geometries": 'pa.table({"geometry": coded(PLACE, kind=pa.binary())})',
    "a dictionary in a list": 'pa.table({"t": one_each(coded(LONG))})',
    "a dictionary in a struct": 'pa.table({"t": pa.StructArray.from_arrays([coded(LONG)], ["m"])})',
    "runs": 'pa.table({"t": runs(LONG)})',
    "runs of ids": 'pa.table({"id": runs(LONG)})',
    "runs of geometries": 'pa.table({"geometry": runs(PLACE)})',
    "views of one text": 'pa.table({"t": views()})',
    "views of one list": 'pa.table({"t": views_of_lists()})',
    "a dictionary of lists": 'pa.table({"t": coded([LONG] * 20, 40, pa.list_(pa.string()))})',
    "a file: texts": 'store(pa.table({"t": coded(LONG)}))',
    "a file: ids": 'store(pa.table({"id": coded(LONG)}))',
    "a file: geometries": 'store(pa.table({"geometry": coded(PLACE, kind=pa.binary())}))',
    "a file: a struct": 'store(pa.table({"t": pa.StructArray.from_arrays([coded(LONG)], ["m"])}))',
    "a file: lists": 'store(pa.table({"t": one_each(coded(LONG))}))',
    "a file: prefixes": 'store(pa.table({"t": pa.array([LONG] * ROWS)}), use_dictionary=False, '
    'column_encoding={"t": "DELTA_BYTE_ARRAY"})',
    "a file: bytes of one size": 'store(pa.table({"t": coded(PLACE, kind=pa.binary(2**20))}))',
    "a file that keeps its dictionaries": 'store(pa.table({"t": coded(LONG)}), store_schema=True)',
    "a file: long texts in small pages": 'store(pa.table({"t": [LONG * 30 for _ in range(25)]}), '
    "use_dictionary=False, row_group_size=1)",
}
REFUSED = {
    "a list of one text": (
        'pa.table({"t": one_list(coded(LONG))})',
        "ROW_BYTES_MAX",
    ),
    "a list of nulls": (
        'pa.table({"t": one_list(pa.nulls(2**30))})',
        "ROW_BYTES_MAX",
    ),
    "a list of runs": (
        'pa.table({"t": one_list(runs(LONG, 2**30))})',
        "ROW_BYTES_MAX",
    ),
    "a file: a list of one text": (
        'store(pa.table({"t": one_list(coded(LONG))}))',
        "ROW_BYTES_MAX",
    ),
    "a file: a list of nulls": (
        'store(pa.table({"t": one_list(pa.nulls(2**26, pa.int8()))}))',
        "LIST_VALUES_MAX",
    ),
    "a file: a page": (
        'store(pa.table({"t": [LONG * 100]}), use_dictionary=False)',
        "PARQUET_PAGE_BYTES_MAX",
    ),
    "a file: a dictionary page": ('store(pa.table({"t": [LONG * 100]}))', "PARQUET_PAGE_BYTES_MAX"),
}


RUN = """
def judge(make, id_column):
    source = make()
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + int(sys.argv[2]), resource.RLIM_INFINITY))
    try:
        matcher.match_many(source, id=id_column, threads=1, quarantine=True)
    except InvalidInput as error:
        return str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    return "read"

for name, make in CASES.items():
    print(name, file=sys.stderr, flush=True)
    print(repr((name, judge(make, "id" if " ids" in name else None))))
"""


def run(cases: dict[str, str], folder: Path) -> dict[str, str]:
    """Match tables and files with bounded memory; return what was said of each."""
    made = "".join(f"    {name!r}: lambda: {text},\n" for name, text in cases.items())
    done = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}\nCASES = {{\n{made}}}\n{RUN}", folder, str(BOUND_BYTES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return dict(map(ast.literal_eval, done.stdout.splitlines()))


def test_what_expands_is_read_in_bounded_memory(tmp_path: Path) -> None:
    assert run(BOUNDED, tmp_path) == dict.fromkeys(BOUNDED, "read")


def test_a_row_that_expands_is_refused_by_a_limit(tmp_path: Path) -> None:
    said = run({name: text for name, (text, _) in REFUSED.items()}, tmp_path)
    assert {name: text for name, text in said.items() if f"({REFUSED[name][1]})" not in text} == {}
