"""The experiments of the AHS paper run, and their numbers are consistent."""

import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import shapely
from shapely import LineString, Point

from contrada.cli import main
from contrada.kernels.area_matrices import relate_lists
from contrada.language.spatial import related
from contrada.matching.grid import Grid
from contrada.model.geometry import as_array
from contrada.model.relation import RELATIONS
from contrada.reproduce.ahs import postgis
from contrada.reproduce.ahs.aggregation import aggregate
from contrada.reproduce.ahs.experiments import reproduce
from contrada.reproduce.ahs.load import PARTITIONS, measure_load
from contrada.reproduce.ahs.pairs import make_events, make_subscriptions
from contrada.reproduce.ahs.plan import AhsPlan, AhsRun
from contrada.reproduce.ahs.shapes import KM_PER_DEGREE, make_city, random_line, random_polygon
from contrada.reproduce.ahs.two_workers import Cluster
from contrada.reproduce.ahs.workers import measure_workers
from notes import Notes

TINY = AhsPlan(
    copies=(5, 10),
    query_repeats=1,
    point_count=1,
    shape_count=2,
    worker_repeats=1,
    pair_count=4,
    error_levels=(8, 14),
    aggregated=(20, 60),
    loaded=60,
)
FIGURES = {f"figure-{number}.png" for number in range(4, 10)} | {
    "error-by-relation.png",
    "error-by-kind.png",
    "aggregation.png",
    "load.png",
}


@pytest.fixture
def run(tmp_path: Path) -> AhsRun:
    return AhsRun(TINY, tmp_path, Notes(), seed=1)


@pytest.fixture
def without_postgis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)


@pytest.mark.usefixtures("without_postgis")
def test_all_tables_are_printed_and_all_figures_drawn(tmp_path: Path) -> None:
    notes = Notes()
    reproduce(tmp_path, TINY, notes)
    for title in (
        "Figure 4",
        "Figures 5 and 6",
        "Figures 7 to 9",
        "by level",
        "saved",
        "load by θ",
    ):
        assert title in notes.text
    assert "PostGIS is not installed here" in notes.text
    assert "--spark 'local[2]'" in notes.text
    assert "What differs, and why" in notes.text
    assert notes.made == notes.announced
    assert {path.name for path in tmp_path.iterdir()} == FIGURES


def test_the_matrices_of_any_number_of_workers_sum_to_that_of_one(run: AhsRun) -> None:
    subjects = measure_workers(run)
    assert [subject.kind for subject in subjects] == ["point"] + ["line"] * 2 + ["polygon"] * 2
    for subject in subjects:
        assert [part.worker_count for part in subject.splits] == [1, 4, 16, 64, 256]
        assert all(part.matrix.sum() == subject.size for part in subject.splits)
        assert all((part.matrix == subject.splits[0].matrix).all() for part in subject.splits)
        fullest = [part.cell_count_max for part in subject.splits]
        assert fullest == sorted(fullest, reverse=True)
        assert fullest[0] == subject.cell_count


@pytest.mark.parametrize("seed", range(3))
def test_each_pair_satisfies_its_relation_exactly_and_with_two_workers(seed: int) -> None:
    grid = Grid()
    count = 0
    for subscription in make_subscriptions(np.random.default_rng(seed)).values():
        cluster = Cluster(grid, subscription)
        cells = grid.list_cells(subscription)
        for events in make_events(subscription).values():
            for name, event in events.items():
                answer = cluster.ask(event, RELATIONS[name])
                assert answer.holds, (subscription.geom_type, event.geom_type, name)
                pair = as_array([event]), as_array([subscription])
                assert related(RELATIONS[name], *pair)[0].all()
                standalone = grid.list_cells(event)
                expected = relate_lists(standalone, cells, grid.level)
                assert answer.matrix.tolist() == expected.tolist()
                areas = grid.decompose(as_array([event])).areas()[0]
                assert answer.event_areas.tolist() == areas.tolist()
                count += 1
    assert count == 46


def test_aggregation_never_adds_cells_and_copies_add_none(run: AhsRun) -> None:
    savings = aggregate(run)
    for saving in savings:
        assert saving.area >= saving.listed >= saving.postings >= saving.cells
    few, many = [saving for saving in savings if saving.workload.startswith("copies")]
    assert few.cells == many.cells
    assert many.listed == 3 * few.listed


def test_smaller_theta_has_more_prefixes_and_packing_keeps_loads_even(run: AhsRun) -> None:
    loads = measure_load(run)
    for coarse, fine in pairwise(loads):
        assert coarse.prefix_count <= fine.prefix_count
    for load in loads:
        assert 1 <= load.heaviest_partition <= PARTITIONS
        assert load.copies >= 1
    assert loads[-1].heaviest_partition < loads[-1].heaviest_prefix


def test_random_geometries_are_valid_and_of_the_size_asked_for() -> None:
    rng = np.random.default_rng(1)
    everywhere = shapely.box(-180, -90, 180, 90)
    for share in (1e-6, 0.01, 0.37):
        polygon = random_polygon(rng, share)
        assert polygon.is_valid
        assert everywhere.covers(polygon)
        assert polygon.area / everywhere.area == pytest.approx(share)
    for km in (10, 7_778):
        line = random_line(rng, km)
        assert line.length * KM_PER_DEGREE == pytest.approx(km)
        assert everywhere.covers(line)
    assert isinstance(line, LineString)


def test_postgis_is_asked_in_one_session_that_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripts = []

    def answer(*_: object, input: str, **__: object) -> subprocess.CompletedProcess[str]:
        scripts.append(input)
        times = "".join(f"7\nTime: {ms}.5 ms\n" for ms in range(input.count("ST_Within")))
        return subprocess.CompletedProcess([], 0, times or "3.3.2\n")

    monkeypatch.setattr("shutil.which", lambda _: "/bin/psql")
    monkeypatch.setattr("subprocess.run", answer)
    assert postgis.find_postgis() == "3.3.2"
    city = make_city(np.random.default_rng(1))
    assert postgis.time_postgis(city, Point(0, 0), (10, 30)) == [3_500, 9_500]
    assert "create temporary table" in scripts[1]
    assert "generate_series(1, 10)" in scripts[1]
    assert "generate_series(1, 20)" in scripts[1]


def test_a_database_that_does_not_answer_is_no_postgis(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(2, "psql")

    monkeypatch.setattr("shutil.which", lambda _: "/bin/psql")
    monkeypatch.setattr("subprocess.run", fail)
    assert postgis.find_postgis() is None
    assert postgis.time_postgis(make_city(np.random.default_rng(1)), Point(0, 0), (10,)) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ahs", "--data", "."], "--data .: reproduce ahs makes its own geometries"),
        (["ahs", "--spark", "nowhere"], "--spark nowhere is not a Spark master"),
        (["crtree", "--spark", "local[2]"], "--spark local[2]: reproduce crtree uses no Spark"),
        (["ahs", "--seed", "-1"], "--seed must be a number >= 0, not -1"),
        (["ahs", "--folder", __file__], "is a file, not a folder"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments]) == 2
    assert message in capsys.readouterr().err
