"""The columns of a subscription's row are stated once."""

import ast
from inspect import signature
from pathlib import Path

import contrada
from contrada import Matcher
from contrada.matcher.saving import _Row
from contrada.model.row_columns import ROW_COLUMNS

SOURCE = Path(contrada.__file__).parent
NAMES = [column.name for column in ROW_COLUMNS]


def test_add_takes_what_a_row_may_say() -> None:
    assert set(NAMES) <= set(signature(Matcher.add).parameters)


def test_a_snapshot_has_the_columns_in_their_order() -> None:
    assert list(_Row._fields) == NAMES


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


def test_the_document_on_rows_has_them_all() -> None:
    said = (SOURCE.parents[1] / "docs" / "rows.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in said] == []
