"""`examples/quickstart.ipynb` runs from an empty folder to a map, cell by cell, without Spark."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "quickstart.ipynb"

# Runs the cells as a notebook does, and writes down what it would show of each.
RUNNER = """
import ast, json, sys
sys.modules["pyspark"] = None
names, shown = {"__name__": "__main__"}, []
for source in json.load(sys.stdin):
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
    value = last and eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    show = getattr(value, "_repr_html_", lambda: repr(value))
    shown.append([type(value).__name__, show()])
with open("shown.json", "w") as file:
    json.dump(shown, file)
"""


@pytest.fixture(scope="module")
def cells() -> list[dict[str, Any]]:
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_it_has_ten_cells_of_code_without_outputs(cells: list[dict[str, Any]]) -> None:
    assert len(cells) == 10
    assert len({cell["id"] for cell in cells}) == 10
    for cell in cells:
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        assert cell["source"][0].startswith("# ")


def test_it_runs_from_an_empty_folder_to_a_map(cells: list[dict[str, Any]], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUNNER],
        input=json.dumps(["".join(cell["source"]) for cell in cells]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads((tmp_path / "shown.json").read_text())
    kinds = [kind for kind, _ in shown]
    assert kinds == [
        *("GeoDataFrame", "GeoDataFrame", "Matcher", "ShownSubscription", "tuple", "Why"),
        *("Explanation", "DataFrame", "GeoDataFrame", "NoneType"),
    ]
    texts = [text for _, text in shown]
    assert texts[2] == "<Matcher engine='strtree' subscriptions=4 crs='OGC:CRS84'>"
    assert "S_WITHIN(geometry, POLYGON" in texts[3]
    assert texts[4] == "(['wreck'], ['coastguard'])"
    assert "does not match (false)" in texts[5]
    assert "DE-9IM" in texts[5]
    assert "dwithin" in texts[6]
    for name in ("harbour", "anchorage", "reserve", "wreck"):
        assert name in texts[7]
        assert name in (tmp_path / "map.html").read_text()
    pairs = (tmp_path / "pairs.csv").read_text().splitlines()
    assert len(pairs) > 100
