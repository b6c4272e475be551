"""The file of subscriptions of `contrada match --spark`: tasks read it, and the driver does not."""

from __future__ import annotations

import argparse
import json
import pickle
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada import InvalidInput, Matcher
from contrada.cli import main
from contrada.cli.spark_subscriptions import FileSurvey, StageFileTask, _copy_file, read_told
from contrada.files import reading, sections
from contrada.matching.subscribing import PredicateReader, SubscriptionRows
from contrada.spark import subscription_tasks
from contrada.spark.evaluators import EXACT
from contrada.spark.handshake import Handshake

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark", "patience"),
]

SPARK = ["--spark", "local[2]"]
SQUARE = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
BOW_TIE = "POLYGON((0 0,4 4,4 0,0 4,0 0))"
FAR = "POLYGON((50 0,54 0,54 4,50 4,50 0))"
BROKEN = 'id,filter\na,n > 1\nb,n >\nc,n > 2\nb,n > 3\nd,"S_INTERSECTS(geometry, POINT(x))"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with three events."""
    (tmp_path / "events.csv").write_text("id,lon,lat,n,s\n7,1,1,2,a\n8,3,3,5,b\n9,9,9,9,c\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What this process opens, reads row by row, or parses; tasks run in others."""
    found: list[str] = []

    def spy(owner: Any, name: str, describe: Callable[..., str]) -> None:
        inner = getattr(owner, name)

        def noted(*args: Any, **more: Any) -> Any:
            found.append(describe(*args))
            return inner(*args, **more)

        monkeypatch.setattr(owner, name, noted)

    spy(reading, "_read_file", lambda name, *_: Path(name).stem)
    spy(sections.Sections, "__init__", lambda *_: "a snapshot")
    spy(SubscriptionRows, "__init__", lambda *_: "rows of subscriptions")
    spy(PredicateReader, "parse", lambda _, text, *__: str(text))
    return found


def write_zones(name: str) -> None:
    """Three subscriptions, one of them to a bow tie."""
    columns = {
        "id": ["a", "b", "c"],
        "geometry": shapely.to_wkb(shapely.from_wkt([SQUARE, BOW_TIE, FAR])),
        "where": ["n > 1", None, "n > 3"],
        "subscriber": ["u", None, "v"],
    }
    if name.endswith(".parquet"):
        pq.write_table(pa.table(columns), name)
    elif name.endswith(".gpkg"):
        shapes = geopandas.GeoSeries.from_wkb(columns.pop("geometry"))
        geopandas.GeoDataFrame(columns, geometry=shapes, crs=4326).to_file(name)
    elif name.endswith(".contrada"):
        matcher = Matcher()
        matcher.add_many(pa.table(columns), repair=True)
        matcher.add("d", "n > 8", subscriber=7)
        matcher.save(name)
    else:
        lines = [f'a,"{SQUARE}",n > 1,u', f'b,"{BOW_TIE}",,', f'c,"{FAR}",n > 3,v', "d,nowhere,,"]
        Path(name).write_text("\n".join(["id,wkt,where,subscriber", *lines, ""]))


@pytest.mark.parametrize("name", ["z.csv", "z.parquet", "z.gpkg", "z.contrada"])
def test_the_driver_opens_no_file_of_subscriptions(
    name: str, folder: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write_zones(name)
    answers = []
    for place, more in (("plain", []), ("spark", SPARK)):
        opened.clear()
        bad = f"{place}-bad.csv"
        options = ["--repair", "--quarantine-subscriptions", bad, "--json", "-o", "-"]
        assert main(["match", name, "events.csv", *options, *more]) == 0
        *pairs, figures = capsys.readouterr().out.splitlines()
        counts = json.loads(figures)
        for only_here in ("seconds", "quarantine_subscriptions"):
            counts.pop(only_here)
        answers.append((sorted(pairs), counts, (folder / bad).read_text()))
    assert answers[0] == answers[1]
    assert answers[0][1]["matches"] >= 3
    assert set(opened) == {"events"}


def test_a_map_and_what_is_kept_of_subscriptions_are_as_without_spark(folder: Path) -> None:
    write_zones("z.contrada")
    for place, more in (("plain", []), ("spark", SPARK)):
        kept = ["--keep", "subscription.subscriber", "-o", f"{place}.csv"]
        drawn = ["--map", f"{place}.html"]
        assert main(["match", "z.contrada", "events.csv", *kept, *drawn, *more]) == 0
    pairs = [sorted((folder / f"{p}.csv").read_text().splitlines()) for p in ("plain", "spark")]
    assert pairs[0] == pairs[1]
    assert "9,d,7" in pairs[0]
    pages = [(folder / f"{place}.html").read_text() for place in ("plain", "spark")]
    assert len(pages[0]) == len(pages[1])


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (BROKEN, []),
        (BROKEN, ["--quarantine-subscriptions", "bad.csv"]),
        ("id,filter,Where\na,n > 1,\nb,n >,\nc,n >,\n", []),
        (BROKEN.replace("b,n >\n", ""), []),
        ("id,filter\na,n > 1\n", ["--id", "key"]),
        (f'id,wkt,Where\na,"{SQUARE}",n > 1\n', []),
        (f'id,wkt,Where\na,"{SQUARE}",n > 1\n', ["--strict"]),
        ("id,name\na,1\n", []),
        ("id,filter\na,s > 1\nb,s > 2\nc,m = 3\n", []),
        ("id,filter\na,s > 1\nb,s > 2\n", ["--strict"]),
        (f'id,wkt\na,"{FAR}"\n', []),
        (f'id,wkt\na,"{SQUARE}"\n', ["--where", "n >", "--relation", "within"]),
        (f'id,wkt\na,"{SQUARE}"\n', ["--where", "n > 4", "--relation", "disjoint"]),
        ("id,filter\n", []),
        ("", []),
    ],
)
def test_what_is_said_of_subscriptions_is_said_in_the_same_words(
    content: str, options: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "zones.csv").write_text(content)
    said = []
    for more in ([], SPARK):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            code = main(["match", "zones.csv", "events.csv", *options, *more])
        lines = capsys.readouterr().err.splitlines()
        lines += [str(warning.message) for warning in caught if warning.category is UserWarning]
        said.append((code, [line for line in lines if " seconds " not in line]))
    started = [line for line in said[1][1] if not line.startswith("starting Spark")]
    assert started == said[0][1]
    assert said[0][0] == said[1][0]


def test_files_that_cannot_be_read_are_refused_in_the_same_words(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_zones("z.contrada")
    content = Path("z.contrada").read_bytes()
    (folder / "damaged.contrada").write_bytes(content[:-9] + b"x" + content[-8:])
    write_zones("z.gpkg")
    for name in ("missing.csv", "damaged.contrada", "z.gpkg|layername=y", "z.unknown"):
        said = []
        for more in ([], SPARK):
            assert main(["match", name, "events.csv", *more]) == 2
            said.append(capsys.readouterr().err.splitlines()[-1])
        assert said[0] == said[1]


def test_subscriptions_in_another_system_are_refused_in_the_same_words(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shapes = geopandas.GeoSeries.from_wkt([SQUARE])
    for name, crs in (("zones", 2154), ("points", 32632)):
        geopandas.GeoDataFrame({"id": ["a"]}, geometry=shapes, crs=crs).to_parquet(
            f"{name}.parquet"
        )
    said = []
    for more in ([], SPARK):
        assert main(["match", "zones.parquet", "points.parquet", *more]) == 2
        said.append(capsys.readouterr().err.splitlines()[-1])
    assert said[0] == said[1]
    assert "zones.parquet in EPSG:2154; reproject one of them" in said[0]


# Inside a task


def run_task(name: str, copy: str | None = None, **options: Any) -> FileSurvey:
    """What a task tells of a file, here; errors are raised, and warnings given."""
    stated = {"id": None, "repair": False, "quarantine_subscriptions": None, "strict": False}
    chosen = argparse.Namespace(
        **{"subscriptions": name, "where": None, "relation": None, **stated, **options}
    )
    uri = (Path.cwd() / "staged").as_uri()
    versions, events = Handshake.here(), pa.schema([("n", pa.string())])
    task = StageFileTask(versions, chosen, str(Path.cwd()), copy, uri, EXACT, events)
    (batch,) = task(iter([pa.RecordBatch.from_pydict({"id": [0]})]))
    return read_told(*batch.to_pylist()[0].values())


def test_many_subscriptions_are_staged_in_parts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription_tasks, "PART_ROWS_MAX", 2)
    rows = "".join(f"{n},n > {n}\n" for n in range(5))
    (folder / "zones.csv").write_text(f"id,filter\n{rows}")
    survey = run_task("zones.csv")
    assert [line["count"] for line in survey.lines] == [2, 2, 1, None]
    assert [one.subscriptions for one in pickle.loads(survey.lines[0]["mismatches"])] == [2]
    assert survey.lines[-1]["rows"] == 5
    assert pa.types.is_int64(survey.id_type)


@pytest.mark.parametrize("name", ["zones.shp", "zones.gpkg|layername=zones", "zones"])
def test_where_machines_have_no_files_in_common_a_copy_is_read(name: str, folder: Path) -> None:
    shapes = geopandas.GeoSeries.from_wkt([SQUARE, FAR])
    frame = geopandas.GeoDataFrame({"id": ["a", "b"]}, geometry=shapes, crs=4326)
    (folder / "shared").mkdir()
    if name == "zones":
        (folder / name / "year=2026").mkdir(parents=True)
        frame.to_parquet(folder / name / "year=2026" / "part-0.parquet")
    else:
        frame.to_file(name.partition("|")[0])
    copy = _copy_file(name, folder / "shared")
    assert copy == str(folder / "shared" / name)
    survey = run_task(name, copy)
    assert survey.name == name
    assert survey.stated == ("EPSG:4326", name)
    assert survey.lines[0]["count"] == 2


def test_of_a_copy_errors_and_warnings_name_the_file_itself(folder: Path) -> None:
    (folder / "shared").mkdir()
    header, *rows = BROKEN.splitlines()
    lines = [f"{header},Where", *(f"{row}," for row in rows), ""]
    (folder / "zones.csv").write_text("\n".join(lines))
    copy = _copy_file("zones.csv", folder / "shared")
    with (
        pytest.warns(UserWarning, match="^zones.csv: .*Where"),
        pytest.raises(InvalidInput) as caught,
    ):
        run_task("zones.csv", copy)
    assert str(caught.value).startswith("zones.csv: 2 of 5 subscriptions cannot be used:")
    with pytest.warns(UserWarning, match="^zones.csv: .*Where"):
        survey = run_task("zones.csv", copy, quarantine_subscriptions="bad.csv")
    assert [row for row, _, _ in survey.bad] == [1, 4]
    assert survey.line_of == {1: 3, 4: 6}
