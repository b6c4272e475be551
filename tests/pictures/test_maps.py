"""`draw_map` as a caller sees it: which files appear, which do not, and what is refused."""

import builtins
import errno
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from contrada.errors import InvalidInput, MissingPackage, Unavailable
from contrada.pictures import Layer, draw_map

SQUARE = shapely.box(0, 0, 4, 3)


def layer_of(*geometries: shapely.Geometry | None, **changes: Any) -> Layer:
    columns: dict[str, Any] = {
        "name": "shapes",
        "geometries": np.array(geometries, dtype=object),
        "labels": [f"shape {row}" for row in range(len(geometries))],
        "matched": np.ones(len(geometries), dtype=bool),
        "role": "subscription",
    }
    return Layer(**(columns | changes))


@pytest.mark.parametrize("name", ["map.html", "map.png", "map.HTML"])
def test_a_map_is_one_file_and_leaves_nothing_else(tmp_path: Path, name: str) -> None:
    draw_map(str(tmp_path / name), [layer_of(SQUARE)], title="one square")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["map.html", "map.png"])
def test_the_same_input_draws_the_same_file(tmp_path: Path, name: str) -> None:
    layer = layer_of(*(shapely.Point(k, k % 7) for k in range(30)))
    (tmp_path / "again").mkdir()
    for path in (tmp_path / name, tmp_path / "again" / name):
        draw_map(path, [layer], title="points", unmatched_max=7)
    assert (tmp_path / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@pytest.mark.parametrize("name", ["map.svg", "map", "map.html.gz", ".png"])
def test_another_suffix_is_refused_with_the_path_and_both_suffixes(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        draw_map(tmp_path / name, [layer_of(SQUARE)], title="one square")
    assert str(tmp_path / name) in str(caught.value)
    assert ".html" in str(caught.value)
    assert ".png" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r'there is no folder ".*absent"'):
        draw_map(tmp_path / "absent" / "map.html", [], title="nowhere")


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(errno.ENOSPC, "no room")])
@pytest.mark.parametrize("step", ["open", "replace"])
@pytest.mark.parametrize("name", ["map.html", "map.png"])
def test_a_failed_write_keeps_the_old_file_and_leaves_no_draft(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    step: str,
    failure: BaseException,
) -> None:
    target = tmp_path / name
    target.write_text("the old map")
    whole_step = getattr(Path, step)

    def fail_afterwards(path: Path, *arguments: Any) -> Any:
        if step == "open":
            whole_step(path, *arguments).close()
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(Path, step, fail_afterwards)
        # The page's template is read with `open` too, and must not be what fails.
        patch.setattr("contrada.pictures.maps.render_page", lambda picture: b"the new map")
        with pytest.raises(Unavailable if isinstance(failure, OSError) else KeyboardInterrupt):
            draw_map(target, [layer_of(SQUARE)], title="one square")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert target.read_text() == "the old map"


def test_without_matplotlib_a_page_is_drawn_and_an_image_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_import = builtins.__import__

    def refuse_matplotlib(
        name: str,
        globals_: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return whole_import(name, globals_, locals_, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", refuse_matplotlib)
    draw_map(tmp_path / "map.html", [layer_of(SQUARE)], title="one square")
    with pytest.raises(MissingPackage, match="pip install matplotlib"):
        draw_map(tmp_path / "map.png", [layer_of(SQUARE)], title="one square")
    assert [path.name for path in tmp_path.iterdir()] == ["map.html"]


@pytest.mark.parametrize("name", ["map.html", "map.png"])
@pytest.mark.parametrize(
    "layers",
    [
        pytest.param([], id="no layer"),
        pytest.param([layer_of()], id="an empty layer"),
        pytest.param([layer_of(None, shapely.Point())], id="nothing to draw"),
        pytest.param([layer_of(shapely.Point(2, 48))], id="one point"),
        pytest.param([layer_of(shapely.Point(1e12, -1e12))], id="one point far away"),
        pytest.param([layer_of(shapely.LineString([(0, 7), (9, 7)]))], id="no height"),
        pytest.param([layer_of(shapely.LineString([(7, 0), (7, 1e-7)]))], id="no width"),
        pytest.param([layer_of(shapely.LineString([(0, 0), (0, 0)]))], id="no length"),
        pytest.param([layer_of(shapely.Point(0, 90), shapely.Point(1, 90))], id="at the pole"),
        pytest.param([layer_of(shapely.box(-1e140, 0, 1e140, 1))], id="huge"),
        pytest.param([layer_of(shapely.box(0, 0, 1e-90, 1e-90))], id="tiny"),
    ],
)
def test_extents_of_any_size_are_drawn(tmp_path: Path, name: str, layers: list[Layer]) -> None:
    draw_map(tmp_path / name, layers, title="an odd extent")
    assert (tmp_path / name).stat().st_size > 1_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": ["a", "b"]}, '"shapes" has 1 geometries, 2 labels and 1 matched flags'),
        ({"matched": [True, False]}, "1 geometries, 1 labels and 2 matched flags"),
        ({"role": "publisher"}, 'has the role "publisher"'),
        ({"geometries": ["POINT (0 0)"]}, "row 0: 'POINT \\(0 0\\)' is not a geometry"),
    ],
)
def test_a_layer_whose_columns_do_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        layer_of(SQUARE, **changes)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (np.array([[0, 0], [1, 0]]), r"row 1: \[1, 0\] is out of range; there are 1 events and 1"),
        (np.array([[0, -1]]), r"row 0: \[0, -1\] is out of range"),
        (np.array([0, 0]), r"pairs has the shape \(2,\)"),
        (np.array([[0.0, 0.0]]), "the type float64"),
    ],
)
def test_pairs_that_name_no_shapes_are_refused(tmp_path: Path, pairs: Any, message: str) -> None:
    layers = [layer_of(SQUARE), layer_of(shapely.Point(1, 1), role="event")]
    with pytest.raises(InvalidInput, match=message):
        draw_map(tmp_path / "map.html", layers, title="pairs", pairs=pairs)


def test_a_map_of_no_shapes_at_all_is_not_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="unmatched_max is -1"):
        draw_map(tmp_path / "map.html", [layer_of(SQUARE)], title="nothing", unmatched_max=-1)
