"""JSON of a stranger's: nested deep, without end, or with half a character."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from contrada import Matcher
from contrada.errors import InvalidInput
from contrada.files import Rows, read_rows
from contrada.files.json_rows import BATCH_CELLS
from contrada.limits import JSON_DEPTH_MAX
from contrada.matcher.inside import freeze
from contrada.matcher.match_run import narrow_to_read

POINT = {"type": "Point", "coordinates": [1, 2]}
FORMATS = [".geojson", ".ndjson"]


def feature(properties: str) -> str:
    return f'{{"type": "Feature", "geometry": {json.dumps(POINT)}, "properties": {properties}}}'


def read(folder: Path, suffix: str, *features: str) -> Rows:
    texts = {
        ".geojson": f'{{"type": "FeatureCollection", "features": [{", ".join(features)}]}}',
        ".ndjson": "\n".join(features),
    }
    path = folder / f"x{suffix}"
    path.write_text(texts[suffix])
    return read_rows(path)


def nested(depth: int, kind: str) -> str:
    start, end = {"object": ('{"a":', "}"), "list": ("[", "]")}[kind]
    return f"{start * depth}1{end * depth}"


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("kind", ["object", "list"])
@pytest.mark.parametrize("depth", [JSON_DEPTH_MAX + 1, 150, 330, 900, 5_000, 100_000])
def test_a_value_nested_too_deep_is_refused_with_its_place(
    tmp_path: Path, suffix: str, kind: str, depth: int
) -> None:
    bad = feature(f'{{"ok": 1, "deep": {nested(depth, kind)}}}')
    with pytest.raises(
        InvalidInput, match=r"x\..*(line \d|column \"deep.* in (line \d \()?row 1.* .*JSON_DEPTH)"
    ):
        read(tmp_path, suffix, feature("{}"), bad)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("kind", ["object", "list"])
def test_a_value_nested_as_deep_as_allowed_is_read(tmp_path: Path, suffix: str, kind: str) -> None:
    rows = read(tmp_path, suffix, feature(f'{{"deep": {nested(JSON_DEPTH_MAX, kind)}}}'))
    (batch,) = rows.batches()
    assert batch.column("deep").to_pylist() == [json.loads(nested(JSON_DEPTH_MAX, kind))]


@pytest.mark.parametrize("depth", [330, 900, 100_000])
@pytest.mark.parametrize(
    "text",
    [
        "{deep}",
        '{{"type": {deep}}}',
        '{{"type": "FeatureCollection", "features": [{deep}]}}',
        '{{"type": "FeatureCollection", "features": [], "crs": {deep}}}',
        (
            '{{"type": "FeatureCollection", "features": [], "crs": {{"type": "name", '
            '"properties": {{"name": {deep}}}}}}}'
        ),
        '{{"type": "Feature", "properties": {deep}, "geometry": null}}',
        '{{"type": "Feature", "id": {deep}, "geometry": null}}',
        '{{"type": "Feature", "properties": {{"id": {deep}}}, "geometry": null}}',
    ],
)
def test_whatever_is_nested_deep_is_refused_as_ours(tmp_path: Path, depth: int, text: str) -> None:
    for suffix in FORMATS:
        for kind in ("object", "list"):
            path = tmp_path / f"x{suffix}"
            path.write_text(text.format(deep=nested(depth, kind)))
            if "crs" in text and suffix == ".ndjson":
                continue  # a member of no meaning there
            with pytest.raises(InvalidInput, match=r"x\."):
                for _ in read_rows(path).batches():
                    pass


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("properties", [r'{"\ud800": 1}', r'{"a": {"b\udfff": 1}}'])
def test_half_a_surrogate_in_a_name_is_refused_with_its_row(
    tmp_path: Path, suffix: str, properties: str
) -> None:
    with pytest.raises(
        InvalidInput, match=r"line \d+ \(row 1\) has half a surrogate pair in the name '.*\\ud"
    ) as e:
        read(tmp_path, suffix, feature("{}"), feature(properties))
    str(e.value).encode()


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_value_that_does_not_end_is_refused_with_its_line(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("json_window", "json_lines"):
        monkeypatch.setattr(f"contrada.files.{module}.ROW_BYTES_MAX", 5_000)
    monkeypatch.setattr("contrada.files.json_window.CHUNK_BYTES", 1_000)
    good = feature(json.dumps({"a": "x" * 4_000}))
    assert read(tmp_path, suffix, good, good, good).count == 3
    long: list[Any] = [{"a": "x" * 9_000}, {"a": list(range(5_000))}, {"x" * 9_000: 1}]
    for properties in long:
        with pytest.raises(InvalidInput, match=r"line \d.*longer than 5,000 bytes \(ROW_BYTES_MAX"):
            read(tmp_path, suffix, good, feature(json.dumps(properties)))


def test_what_stands_beside_the_features_is_bounded_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.files.json_window.ROW_BYTES_MAX", 5_000)
    path = tmp_path / "x.geojson"
    members = ", ".join(f'"member {n}": {n}' for n in range(1_000))
    path.write_text(f'{{"type": "FeatureCollection", {members}, "features": []}}')
    with pytest.raises(InvalidInput, match="ROW_BYTES_MAX"):
        read_rows(path)


def test_a_text_of_a_sequence_is_bounded_over_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.files.json_lines.ROW_BYTES_MAX", 5_000)
    path = tmp_path / "x.geojsons"
    path.write_text(f"\x1e{feature('{}')}\n\x1e[\n" + "1,\n" * 5_000 + "1]\n")
    with pytest.raises(InvalidInput, match=r"lines 2 to \d+ are longer than 5,000 bytes"):
        read_rows(path)


def test_the_name_of_a_member_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "x.geojson"
    for text in ("{[1]: 2}", "{5: 1}", "{null: 1}"):
        path.write_text(text)
        with pytest.raises(InvalidInput, match="line 1, column 2: expected the name of a member"):
            read_rows(path)


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_file_of_ever_new_columns_is_refused(tmp_path: Path, is_inside: bool) -> None:
    path = tmp_path / "x.ndjson"
    names = [{f"k{row}_{i}": 1 for i in range(100)} for row in range(101)]
    path.write_text("\n".join(json.dumps({"m": n} if is_inside else n) for n in names))
    with pytest.raises(InvalidInput) as caught:
        read_rows(path)
    place = '"m.k99_99" in line 100 (row 99)' if is_inside else '"k100_0" in line 101 (row 100)'
    assert str(caught.value).endswith(
        f"more than 10,000 columns, nested ones included (COLUMNS_MAX), at {place}"
    )


def test_a_header_of_too_many_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(",".join(f"c{i}" for i in range(10_001)) + "\n")
    with pytest.raises(InvalidInput, match=r"its header has 10,001 columns; the limit is 10,000"):
        read_rows(path)


def test_a_list_of_objects_with_ever_new_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text(json.dumps({"a": [{f"k{i}": 1} for i in range(2_000)]}))
    with pytest.raises(InvalidInput) as caught:
        read_rows(path)
    assert str(caught.value).endswith(
        'in line 1 (row 0), the objects in the list "a" have too many different member names: '
        "as a table they would take more than 1,000,000 cells (LIST_CELLS_MAX) for 1,001 values"
    )
    path.write_text(json.dumps({"a": [{f"k{i % 50}": 1} for i in range(30_000)]}))
    assert read_rows(path).count == 1


def write_wide(path: Path, rows: int, *, is_inside: bool) -> None:
    """One row of 9,000 members, and many of nearly none."""
    wide = {f"k{i}": i for i in range(9_000)}
    first = {"id": 0, "tags": wide} if is_inside else {"id": 0, **wide}
    rest = [{"id": i, "tags": {}} if is_inside else {"id": i} for i in range(1, rows)]
    path.write_text("\n".join(map(json.dumps, [first, *rest])))


@pytest.mark.parametrize(("is_inside", "name"), [(False, "k7"), (True, "tags.k7")])
def test_of_a_wide_and_sparse_file_only_what_is_read_costs(
    tmp_path: Path, is_inside: bool, name: str
) -> None:
    path = tmp_path / "wide.ndjson"
    write_wide(path, 20_000, is_inside=is_inside)
    matcher = Matcher()
    matcher.add("s", f'"{name}" = 7')
    schema = narrow_to_read(read_rows(path), freeze(matcher), "id").schema
    tags = pa.field("tags", pa.struct([("k7", pa.int64())])) if is_inside else ("k7", pa.int64())
    assert schema == pa.schema([("id", pa.int64()), tags])
    assert matcher.match_many(path).to_pylist() == [{"event": 0, "subscription": "s"}]


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_wide_and_sparse_table_is_refused(tmp_path: Path, is_inside: bool) -> None:
    path = tmp_path / "wide.ndjson"
    write_wide(path, 12_000, is_inside=is_inside)
    with pytest.raises(InvalidInput) as caught:
        next(read_rows(path).batches())
    assert str(caught.value).endswith(
        "the table would be too sparse: 9,001 columns (nested ones included) make 108,012,000 "
        f"cells for {33_000 if is_inside else 21_000:,} values; the limit is 100,000,000 "
        "(TABLE_CELLS_MAX)"
    )


def test_batches_of_many_columns_have_fewer_rows(tmp_path: Path) -> None:
    path = tmp_path / "wide.ndjson"
    write_wide(path, 4_000, is_inside=False)
    batches = list(read_rows(path).batches())
    assert max(batch.num_rows for batch in batches) == BATCH_CELLS // 9_001
    assert sum(batch.num_rows for batch in batches) == 4_000


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("[" * 100_000, "a value is nested deeper than 64 (JSON_DEPTH_MAX)"),
        ("9" * 4_301, "a number has more than 4,300 digits (DIGITS_MAX)"),
    ],
    ids=["deep", "digits"],
)
def test_what_python_refuses_is_refused_in_our_words(
    tmp_path: Path, suffix: str, value: str, reason: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, suffix, feature(f'{{"a": {value}}}'))
    assert reason in str(caught.value)
    assert ": line 1" in str(caught.value)
