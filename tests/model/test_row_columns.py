"""The columns of a subscription's row are stated once."""

import ast
from inspect import signature
from pathlib import Path

import contrada
from contrada import Matcher
from contrada.files.arrow_types import storage_type
from contrada.files.snapshot import open_snapshot
from contrada.matcher.inside import freeze
from contrada.matcher.saving import save_rows
from contrada.model.row_columns import DEFAULT_RELATION, ROW_COLUMNS

SOURCE = Path(contrada.__file__).parent
NAMES = [column.name for column in ROW_COLUMNS]


def test_add_takes_what_a_row_may_say() -> None:
    assert set(NAMES) <= set(signature(Matcher.add).parameters)


def test_add_has_the_defaults_of_a_row() -> None:
    parameters = signature(Matcher.add).parameters
    taken = {name: parameters[name].default for name in NAMES if name != "id"}
    assert taken == {column.name: column.default for column in ROW_COLUMNS[1:]}


def test_a_snapshot_of_rows_has_the_columns_in_their_order_with_their_types(
    tmp_path: Path,
) -> None:
    matcher = Matcher()
    matcher.add(1, "a > 1", subscriber="who")
    matcher.add(2, geometry="POINT(1 1)", where="a > 1", subscriber=7)
    save_rows(tmp_path / "old.contrada", freeze(matcher), matcher._settings(matcher.crs))
    schema = open_snapshot(tmp_path / "old.contrada").schema
    assert schema.names == NAMES
    for field, column in zip(schema, ROW_COLUMNS, strict=True):
        assert storage_type(field.type) in column.types


def test_nobody_else_states_the_default_relation() -> None:
    places = [SOURCE / room for room in ("matcher", "cli", "spark")]
    files = [
        path for place in places for path in place.rglob("*.py") if path.name != "demo_data.py"
    ]
    files += [SOURCE / "matching" / name for name in ("subscribing.py", "plain_rows.py")]
    assert [path.name for path in files if f'"{DEFAULT_RELATION}"' in path.read_text()] == []


def test_nobody_else_lists_them() -> None:
    lists = [
        (path.name, node.lineno)
        for path in SOURCE.rglob("*.py")
        if path.name != "row_columns.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Tuple | ast.List | ast.Set)
        and sum(isinstance(e, ast.Constant) and e.value in NAMES for e in node.elts) > 2
    ]
    assert lists == []


def test_no_class_has_a_field_for_each_of_them() -> None:
    classes = [
        (path.name, node.name)
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and len(
            {
                field.target.id
                for field in node.body
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            }.intersection(NAMES)
        )
        > 3
    ]
    assert classes == []


def test_the_document_on_rows_has_them_all() -> None:
    said = (SOURCE.parents[1] / "docs" / "rows.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in said] == []
