"""Snapshots whose checksum is right and whose content is not: refused by name, never a crash.

Settings are the same in both formats, rows are those of format 1. Columns that lie are in
`test_lying_columns.py`.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import shapely

from contrada import Matcher
from contrada.errors import InvalidInput
from contrada.files import read_rows
from contrada.files.snapshot import open_snapshot, write_snapshot
from contrada.matcher.saving import open_any
from snapshots import FORMATS, save_as, write_settings

SHAPE = shapely.Polygon([(0, 0), (4, 0), (4, 4), (0, 0)])
DEEP: Any = json.loads('{"a":' * 330 + "1" + "}" * 330)


@pytest.fixture(params=FORMATS)
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A good snapshot of either format."""
    return write_good(request.param, tmp_path)


@pytest.fixture
def rows_path(tmp_path: Path) -> Path:
    """A good snapshot of format 1."""
    return write_good(1, tmp_path)


def write_good(format_: int, folder: Path) -> Path:
    matcher = Matcher()
    matcher.add("a", geometry=SHAPE, where="wind > 3", subscriber="x")
    matcher.add("b", "n > 1")
    save_as(format_, matcher, folder / "x.contrada")
    return folder / "x.contrada"


def change(path: Path, **columns: pa.Array) -> None:
    """Write the snapshot again with other columns, and a checksum that is right."""
    snapshot = open_snapshot(path)
    batches = list(snapshot.batches())
    schema = snapshot.schema
    for name, array in columns.items():
        index = schema.names.index(name)
        schema = schema.set(index, pa.field(name, array.type, metadata=schema.field(name).metadata))
        batches = [
            pa.record_batch([array if n == name else b.column(n) for n in schema.names], schema)
            for b in batches
        ]
    write_snapshot(path, schema, snapshot.settings, batches)


def state(path: Path, **settings: Any) -> None:
    """Give a snapshot other settings."""
    write_settings(path, {**open_any(path).settings, **settings})


VALUES: list[Any] = [
    *(None, 5, -1, 1e300, 10**400, True, "x", "", [], [1], {"a": 1}, {"": {}}),
]
BAD_SETTINGS = [
    (name, value)
    for name, good in {
        "engine": (),
        "options": (),
        "simplify": (True,),
        "crs": (None, ""),
        "filters_max": (5, 10**400),
    }.items()
    for value in VALUES
    if not any(value is one or (type(value) is type(one) and value == one) for one in good)
]


@pytest.mark.parametrize(("name", "value"), BAD_SETTINGS)
def test_settings_that_are_not_what_they_should_be_are_refused(
    path: Path, name: str, value: Any
) -> None:
    state(path, **{name: value})
    with pytest.raises(InvalidInput, match=r"x\.contrada: "):
        Matcher.open(path)


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "scan"},
        {"self": 1},
        {"simplify": True},
        {"crs": None},
        {"universe": "x"},
        {"universe": [0, 0, 1]},
        {"universe": [0, 0, 1, None]},
        {"universe": [0, 0, 1, 10**400]},
        {"universe": {"a": 1}, "evaluator": "discrete"},
        {"evaluator": []},
        {"evaluator": {"a": 1}},
        {"evaluator": "discrete", "density": "x"},
        {"evaluator": "discrete", "density": [1], "universe": [0, 0, 1, 1]},
        {"evaluator": "discrete", "density": 10**400, "universe": [0, 0, 1, 1]},
        {"evaluator": "discrete", "halo": {}, "universe": [0, 0, 1, 1], "density": 4},
        {"split": []},
        {"split": None},
        {"\ud800": 1},
        {"level": 5},
    ],
)
def test_options_of_an_engine_that_it_does_not_take_are_refused(
    path: Path, options: dict[str, Any]
) -> None:
    state(path, engine="crtree", options=options)
    with pytest.raises(InvalidInput, match=r"x\.contrada: "):
        Matcher.open(path)


@pytest.mark.parametrize("level", [None, "x", [], 10**400, -1, 1.5, True, {}])
def test_a_level_that_is_none_is_refused(path: Path, level: Any) -> None:
    state(path, engine="ahs", options={"level": level})
    with pytest.raises(InvalidInput, match=r"x\.contrada: "):
        Matcher.open(path)


@pytest.mark.parametrize("test", ['{"property":"\\ud800"},1', '{"property":"a"},"\\ud800"'])
def test_half_a_surrogate_pair_in_a_predicate_is_refused_with_its_row(
    rows_path: Path, test: str
) -> None:
    nothing = pa.array([None, None], pa.string())
    filters = pa.array([f'{{"op":"=","args":[{test}]}}', '{"property":"p"}'])
    change(rows_path, filter=filters, where=nothing, relation=nothing, attribute=nothing)
    with pytest.raises(InvalidInput, match=r"x\.contrada, row 0, column 'filter': .*Unicode at \$"):
        Matcher.open(rows_path)


@pytest.mark.parametrize("settings", [[], 5, "x", ["engine"], DEEP])
def test_settings_that_are_no_object_are_refused(rows_path: Path, settings: Any) -> None:
    write_settings(rows_path, settings)
    with pytest.raises(InvalidInput, match=r"x\.contrada: "):
        Matcher.open(rows_path)


@pytest.mark.parametrize("name", ["engine", "options", "simplify", "crs", "filters_max"])
def test_settings_without_an_end_are_refused(rows_path: Path, name: str) -> None:
    state(rows_path, **{name: DEEP})
    with pytest.raises(InvalidInput, match=r"x\.contrada: "):
        Matcher.open(rows_path)


@pytest.mark.parametrize(
    "column", ["id", "filter", "geometry", "relation", "attribute", "where", "subscriber"]
)
@pytest.mark.parametrize(
    "array",
    [
        pa.array([1.5, 2.5]),
        pa.array([True, None]),
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, None]),
        pa.array([b"\xff", b"\x01\x02"]),
        pa.array(["\0", "("]),
        pa.array([1, 2]),
        pa.array(["x", "x"]).dictionary_encode(),
        pa.nulls(2),
        pa.array([None, None], pa.string()),
        pa.array(["x", "(" * 9_999]),
        pa.array(["x", '{"op":"not","args":[' * 330 + "true" + "]}" * 330]),
    ],
    ids=str,
)
def test_columns_of_another_type_or_content_are_refused_or_mean_something(
    rows_path: Path, column: str, array: pa.Array
) -> None:
    change(rows_path, **{column: array})
    try:
        matcher = Matcher.open(rows_path)
    except InvalidInput as error:
        reason = str(error)
    else:
        reason = f"x.contrada {matcher.match({'geometry': SHAPE, 'n': 1, 'wind': 1})}"
    assert "x.contrada" in reason


def test_text_that_is_not_utf_8_is_refused(rows_path: Path) -> None:
    raw = pa.array([b"a", b"\xff"]).buffers()
    change(rows_path, filter=pa.Array.from_buffers(pa.string(), 2, [None, *raw[1:]]))
    with pytest.raises(InvalidInput, match=r"x\.contrada: "):
        Matcher.open(rows_path)
    with pytest.raises(InvalidInput, match=r"x\.contrada: "):
        list(read_rows(rows_path).batches())
