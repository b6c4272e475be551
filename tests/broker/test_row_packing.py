"""Rows are packed in a process of their own, which may end as it likes: whoever asked goes on."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada import InvalidInput, Unavailable
from contrada.broker.packing_process import (
    DRAFTS_FOLDER,
    RowPackers,
    clear_drafts,
    keep_packed,
    open_draft,
)
from contrada.broker.row_packing import PackingLimits
from contrada.errors import BadRows, Overloaded
from contrada.files import open_output
from contrada.matcher.packed_rows import PackedRows, SharedTerms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TERMS = SharedTerms()


@pytest.fixture
def draft(tmp_path: Path) -> Iterator[Path]:
    with open_draft(tmp_path) as folder:
        yield folder


def write_parquet(path: Path, count: int) -> Path:
    points = shapely.points(np.arange(count, dtype=float), np.zeros(count))
    circles = shapely.to_wkb(shapely.buffer(points, 0.4, quad_segs=1))
    table = pa.table({"id": [f"row {n}" for n in range(count)], "geometry": list(circles)})
    with open_output(path, table.schema, geometry_column="geometry", crs="OGC:CRS84") as output:
        output.write(table)
    return path


def write_lines(path: Path, geometries: list[Any]) -> Path:
    features = [
        {"type": "Feature", "id": number, "properties": {}, "geometry": geometry}
        for number, geometry in enumerate(geometries)
    ]
    path.write_text("\n".join(map(json.dumps, features)))
    return path


def end_child(source: Path, how: str) -> Path:
    """Write rows whose reader first runs a module that lies beside them, and may end it."""
    package = source.parent / "site"
    package.mkdir()
    (package / "sitecustomize.py").write_text(how)
    return write_lines(source, [])


def test_rows_are_packed_and_kept(draft: Path, tmp_path: Path) -> None:
    source = write_parquet(draft / "rows.geoparquet", 3)
    packed = RowPackers().pack(source, SharedTerms(where="speed > 3"))
    assert (packed.count, packed.crs) == (3, "OGC:CRS84")
    kept = keep_packed(packed, tmp_path)
    assert kept.path.parent == tmp_path
    assert PackedRows.open(kept.path).row_ids[2] == "row 2"


def test_what_is_wrong_with_rows_comes_back_with_places_and_without_remedies(draft: Path) -> None:
    source = write_lines(draft / "rows.geojsonl", [None, {"type": "Point", "coordinates": [1]}])
    with pytest.raises(BadRows) as refused:
        RowPackers().pack(source, TERMS)
    assert refused.value.message == "rows.geojsonl: 2 of 2 subscriptions cannot be used"
    assert refused.value.rows[0].startswith("line 1 (row 0), id 0, column 'geometry': ")
    assert refused.value.remedies == ()


def test_a_file_that_is_not_what_it_says_is_refused_by_its_own_name(draft: Path) -> None:
    source = draft / "rows.parquet"
    source.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pytest.raises(InvalidInput, match=r"^rows\.parquet: "):
        RowPackers().pack(source, TERMS)


def test_rows_that_take_too_much_memory_are_refused(draft: Path) -> None:
    source = write_parquet(draft / "rows.geoparquet", 50_000)
    limits = PackingLimits(memory_bytes_max=400 * 2**20)
    with pytest.raises(InvalidInput, match="takes more than 419,430,400 bytes of memory"):
        RowPackers(limits).pack(source, TERMS)


def test_rows_that_take_too_much_of_the_disk_are_refused(draft: Path) -> None:
    source = write_parquet(draft / "rows.geoparquet", 1_000)
    with pytest.raises(InvalidInput, match="takes more than 10,000 bytes on the disk"):
        RowPackers(PackingLimits(file_bytes_max=10_000)).pack(source, TERMS)


def test_rows_that_take_too_much_work_are_refused(
    draft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = "import contrada.files\n\ndef work(*_, **__):\n    while True: pass\n\n"
    source = end_child(draft / "rows.geojsonl", how + "contrada.files.read_rows = work")
    monkeypatch.setenv("PYTHONPATH", str(draft / "site"))
    with pytest.raises(InvalidInput, match="takes more work than 1 s"):
        RowPackers(PackingLimits(cpu_s_max=1)).pack(source, TERMS)


def test_a_process_is_ended_when_its_time_is_over(draft: Path) -> None:
    source = write_lines(draft / "rows.geojsonl", [])
    with pytest.raises(Unavailable, match="takes longer than 0 s"):
        RowPackers(PackingLimits(time_s_max=0)).pack(source, TERMS)


def test_a_process_is_ended_when_nobody_waits_any_longer(draft: Path) -> None:
    source = write_lines(draft / "rows.geojsonl", [])
    gave_up = threading.Event()
    gave_up.set()
    with pytest.raises(Unavailable, match="nobody waits"):
        RowPackers().pack(source, TERMS, gave_up)


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [
        ("import os; os.abort()", InvalidInput, "ended with SIGABRT"),
        ("import os; os._exit(7)", InvalidInput, "ended with status 7"),
        ("import os; os.kill(os.getpid(), 9)", Unavailable, "was killed"),
    ],
)
def test_a_process_that_ends_by_itself_ends_nobody_else(
    draft: Path, monkeypatch: pytest.MonkeyPatch, how: str, error: type[Exception], said: str
) -> None:
    source = end_child(draft / "rows.geojsonl", how)
    monkeypatch.setenv("PYTHONPATH", str(draft / "site"))
    with pytest.raises(error, match=said):
        RowPackers().pack(source, TERMS)


def test_secrets_in_the_environment_are_not_passed_on(
    draft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = draft / "environment"
    write = f"open({str(seen)!r}, 'w').write(json.dumps(dict(os.environ)))"
    how = f"import os, json; {write}; os._exit(7)"
    source = end_child(draft / "rows.geojsonl", how)
    monkeypatch.setenv("PYTHONPATH", str(draft / "site"))
    monkeypatch.setenv("CONTRADA_KEY", "secret")
    with pytest.raises(InvalidInput):
        RowPackers().pack(source, TERMS)
    assert "CONTRADA_KEY" not in json.loads(seen.read_text())


def test_who_waits_too_long_for_a_turn_is_told_to_come_again(draft: Path) -> None:
    source = write_lines(draft / "rows.geojsonl", [])
    packers = RowPackers(wait_s=0.0)
    with packers._turns, pytest.raises(Overloaded) as refused:
        packers.pack(source, TERMS)
    assert refused.value.retry_after_s == 30
    gave_up = threading.Event()
    gave_up.set()
    with packers._turns, pytest.raises(Unavailable, match="nobody waits"):
        packers.pack(source, TERMS, gave_up)
    assert packers.pack(source, TERMS).count == 0


def test_drafts_go_with_their_block_or_with_the_next_start(tmp_path: Path) -> None:
    with open_draft(tmp_path) as draft:
        (draft / "rows.parquet").write_bytes(b"x")
    assert not draft.exists()
    left = tmp_path / DRAFTS_FOLDER / "left"
    left.mkdir(parents=True)
    clear_drafts(tmp_path)
    assert list(tmp_path.iterdir()) == []
    clear_drafts(tmp_path)
