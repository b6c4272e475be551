"""`contrada match --spark` writes what `contrada match` writes."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.cli import main, spark_match
from contrada.cli.spark_source import Source
from contrada.cli.spark_start import shared_folder
from contrada.errors import InvalidInput, Remedy
from contrada.files import read_rows
from unread import unread_streams

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark", "patience"),
]

DATA = Path(__file__).parents[3] / "shared" / "data"
SPARK = ["--spark", "local[2]"]
POINT = shapely.to_wkb(shapely.Point(1, 2))
BOW_TIE = "POLYGON((0 0,4 4,4 0,0 4,0 0))"


def read_pairs(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return sorted(csv.reader(file))


def match_both_ways(folder: Path, zones: object, events: object, *options: str) -> list[list[str]]:
    """The pairs, which must be the same with and without Spark."""
    plain, spark = folder / "plain.csv", folder / "spark.csv"
    args = ["match", str(zones), str(events), *options]
    assert main([*args, "-o", str(plain)]) == 0
    assert main([*args, "-o", str(spark), *SPARK]) == 0
    assert read_pairs(plain) == read_pairs(spark)
    return read_pairs(spark)


@pytest.fixture
def zones(tmp_path: Path) -> Path:
    """Four zones in a row, without ids; the second and the fourth want speed."""
    rows = [
        f'"POLYGON(({x} 0,{x + 3} 0,{x + 3} 10,{x} 10,{x} 0))",{"speed > 50" if x % 4 else ""}'
        for x in (0, 2, 4, 6)
    ]
    path = tmp_path / "zones.csv"
    path.write_text("\n".join(["wkt,where", *rows, ""]))
    return path


@pytest.fixture
def positions() -> geopandas.GeoDataFrame:
    rng = np.random.default_rng(5)
    columns = {"key": np.arange(60) + 2**60, "speed": rng.uniform(0, 100, 60)}
    return geopandas.GeoDataFrame(columns, geometry=shapely.points(rng.uniform(0, 10, (60, 2))))


@pytest.mark.parametrize("name", ["p.parquet", "p.geoparquet", "p.csv", "p.geojson", "p.gpkg"])
def test_spark_gives_the_same_pairs_for_every_format(
    name: str, tmp_path: Path, zones: Path, positions: geopandas.GeoDataFrame
) -> None:
    path = tmp_path / name
    if path.suffix == ".csv":
        sheet = pd.DataFrame(positions.drop(columns="geometry"))
        sheet["wkt"] = positions.geometry.to_wkt()
        sheet.to_csv(path, index=False)
    elif path.suffix in {".parquet", ".geoparquet"}:
        positions.to_parquet(path)
    else:
        positions.set_crs(4326).to_file(path)
    numbered = match_both_ways(tmp_path, zones, path)
    keyed = match_both_ways(tmp_path, zones, path, "--event-id", "key")
    assert len(numbered) == len(keyed) > 30
    assert keyed[0][0].startswith("11529215046068")


def test_spark_writes_its_files_when_nobody_reads_what_it_says(tmp_path: Path, zones: Path) -> None:
    (tmp_path / "p.csv").write_text("lon,lat,speed\n1,1,60\n3,1,60\n")
    with unread_streams():
        pairs = match_both_ways(tmp_path, zones, tmp_path / "p.csv")
    assert len(pairs) == 4


def test_spark_takes_one_condition_and_relation_for_all_subscriptions(
    tmp_path: Path, positions: geopandas.GeoDataFrame
) -> None:
    positions.to_parquet(tmp_path / "p.parquet")
    shapes = shapely.to_wkb(shapely.box([0, 2, 4], [0] * 3, [5, 7, 9], [10] * 3))
    wheres = ["speed <= 50", None, None]
    table = pa.table({"id": ["a", "b", "c"], "where": wheres, "geometry": shapes})
    pq.write_table(table, tmp_path / "zones.parquet")  # which Spark reads itself as it is
    options = ["--where", "speed > 50", "--relation", "disjoint"]
    found = match_both_ways(tmp_path, tmp_path / "zones.parquet", tmp_path / "p.parquet", *options)
    zones = geopandas.GeoSeries.from_wkb(shapes).to_list()
    slow, far = positions.speed <= 50, positions.geometry.disjoint
    expected = [
        [str(row), id_]
        for id_, zone, is_wanted in zip("abc", zones, [slow, ~slow, ~slow], strict=True)
        for row in positions.index[far(zone) & is_wanted]
    ]
    assert len(expected) > 10
    assert found == sorted([["event", "subscription"], *expected])


def test_spark_writes_figures_geometry_and_map(
    tmp_path: Path,
    zones: Path,
    positions: geopandas.GeoDataFrame,
    capsys: pytest.CaptureFixture[str],
) -> None:
    positions.set_crs(2154).to_parquet(tmp_path / "positions.parquet")
    figures = []
    for options in ([], SPARK):
        out, page = (
            tmp_path / f"pairs{len(options)}.geoparquet",
            tmp_path / f"map{len(options)}.html",
        )
        args = ["match", str(zones), str(tmp_path / "positions.parquet"), "-o", str(out)]
        assert main([*args, "--map", str(page), "--json", *options]) == 0
        figures.append(json.loads(capsys.readouterr().out))
        figures[-1].pop("seconds")
        assert figures[-1].pop("output") == str(out)
        assert figures[-1].pop("map") == str(page)
    assert figures[0] == figures[1]
    assert figures[0]["events"] == 60
    # One map differs from the other only in the order of pairs, if at all.
    assert len((tmp_path / "map0.html").read_text()) == len((tmp_path / "map2.html").read_text())
    frames = [geopandas.read_parquet(tmp_path / f"pairs{n}.geoparquet") for n in (0, 2)]
    rows = [f.sort_values(["event", "subscription"]).reset_index(drop=True) for f in frames]
    assert rows[0].equals(rows[1])
    assert frames[1].crs == "EPSG:2154"


def test_spark_carries_columns_along_and_explains_its_plan(
    tmp_path: Path,
    zones: Path,
    positions: geopandas.GeoDataFrame,
    capsys: pytest.CaptureFixture[str],
) -> None:
    positions.set_crs(2154).to_parquet(tmp_path / "p.parquet")
    out = tmp_path / "pairs.geoparquet"
    args = ["match", str(zones), str(tmp_path / "p.parquet"), "-o", str(out), *SPARK, "--explain"]
    more = ["--keep", "speed", "--keep", "geometry", "--event-id", "key", "--plan", "partitioned"]
    assert main([*args, *more, "--strict", "--conf", "spark.ui.enabled=false"]) == 0
    said = capsys.readouterr().err
    assert "plan: partitioned (requested)" in said
    assert "replication: " in said
    found = geopandas.read_parquet(out)
    assert list(found.columns) == ["event", "subscription", "speed", "geometry"]
    speeds = positions.set_index("key").speed
    assert found.speed.to_list() == speeds.loc[found.event].to_list()


def test_spark_counts_the_matches_of_each_event(
    tmp_path: Path,
    zones: Path,
    positions: geopandas.GeoDataFrame,
    capsys: pytest.CaptureFixture[str],
) -> None:
    positions.to_parquet(tmp_path / "p.parquet")
    args = ["match", str(zones), str(tmp_path / "p.parquet"), "--event-id", "key", "--json"]
    pairs, counts = tmp_path / "pairs.csv", tmp_path / "counts.csv"
    assert main([*args, "-o", str(pairs)]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert main([*args, "-o", str(counts), "--counts", *SPARK]) == 0
    counted = json.loads(capsys.readouterr().out)
    assert counted["subscriptions_matched"] is None, "nobody enumerates them"
    same = ["events", "matches", "events_matched", "subscriptions"]
    assert [counted[name] for name in same] == [figures[name] for name in same]
    found = pd.read_csv(counts).set_index("event").n
    assert len(found) == len(positions)
    expected = pd.read_csv(pairs).groupby("event").size()
    assert found[found > 0].to_dict() == expected.to_dict()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            [*SPARK, "--threads", "2"],
            "--threads 2 cannot be combined with --spark; try --spark 'local[2]'",
        ),
        ([*SPARK, "--counts", "--map", "m.html"], "--map cannot be combined with --counts"),
        ([*SPARK, "-o", "p.csv", "--keep", "sped"], "--keep sped: "),
        (["--keep", "speed"], "--keep speed needs -o"),
        (["--keep", "speed", "--map", "m.png"], "or --map FILE.html, which shows it"),
        ([*SPARK, "--conf", "ui=false"], "--conf ui=false: must be spark.NAME=VALUE"),
        (["--evaluator", "area"], "--evaluator needs --spark"),
        (["--conf", "spark.ui.enabled=false"], "--conf needs --spark"),
        (["--strict"], "subscriptions refer to the column 'speed', which no event has"),
        (["--strict", *SPARK], "subscriptions refer to the column 'speed', which no event has"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: list[str],
    words: str,
    tmp_path: Path,
    zones: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text("id,lon,lat\n1,1,1\n")
    assert main(["match", str(zones), "events.csv", *options]) == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_spark_writes_the_geometry_of_text_as_a_geometry(tmp_path: Path) -> None:
    zones, events, out = (tmp_path / n for n in ("zones.csv", "events.csv", "pairs.geoparquet"))
    zones.write_text('id,filter\nhot,"degrees > 30"\n')
    events.write_text("id,degrees,wkt\na,31,\nb,32,POINT(1 2)\nc,33,nowhere\nd,3,POINT(1 2)\n")
    assert main(["match", str(zones), str(events), "-o", str(out), *SPARK]) == 0
    found = geopandas.read_parquet(out).sort_values("event")
    assert found.event.to_list() == ["a", "b", "c"]
    assert found.geometry.to_list() == [None, shapely.Point(1, 2), None]


def test_spark_quarantines_the_same_rows_and_mends_the_same(
    tmp_path: Path, zones: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bow = shapely.to_wkb(shapely.from_wkt(BOW_TIE))
    shapes = [POINT, bow, POINT[:-1], POINT, None]
    ids = ["a", "bow", "cut", None, "nowhere"]
    table = pa.table({"id": ids, "geometry": pa.array(shapes, pa.binary()), "speed": [60.0] * 5})
    pq.write_table(table, tmp_path / "dirty.parquet")
    args = ["match", str(zones), str(tmp_path / "dirty.parquet"), "-o", "-", "--json"]
    for options in ([], ["--repair"]):
        bad = [tmp_path / "plain.jsonl", tmp_path / "spark.jsonl"]
        said = []
        for path, more in zip(bad, ([], SPARK), strict=True):
            assert main([*args, *options, "--quarantine", str(path), *more]) == 0
            *pairs, figures = capsys.readouterr().out.splitlines()
            said.append((sorted(pairs), json.loads(figures)))
        assert bad[0].read_text() == bad[1].read_text()
        assert said[0][0] == said[1][0]
        left_out = [figures["events_left_out"] for _, figures in said]
        assert left_out == ([2, 2] if options else [3, 3])
    assert said[0][1]["events_mended"] == said[1][1]["events_mended"] == 1
    assert [figures["events_without_geometry"] for _, figures in said] == [1, 1]
    assert [figures["events"] for _, figures in said] == [5, 5]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_spark_sets_the_same_subscriptions_aside(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    zones, events = tmp_path / f"zones{suffix}", tmp_path / "events.csv"
    square = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
    table = pa.table({"geometry": [BOW_TIE, square, "POINT(1 x)", square], "name": list("abcd")})
    if suffix == ".csv":
        with pa.OSFile(str(zones), "wb") as file:
            pa.csv.write_csv(table, file)
    else:
        wkb = [shapely.to_wkb(shapely.from_wkt(square))] * 4
        wkb[0], wkb[2] = shapely.to_wkb(shapely.from_wkt(BOW_TIE)), POINT[:-1]
        pq.write_table(table.set_column(0, "geometry", pa.array(wkb, pa.binary())), zones)
    events.write_text("id,lon,lat\nx,1,1\n")
    args = ["match", str(zones), str(events), "-o", "-", "--json", "--quarantine-subscriptions"]
    bad = [tmp_path / "plain.csv", tmp_path / "spark.csv"]
    said = []
    for path, more in zip(bad, ([], SPARK), strict=True):
        assert main([*args, str(path), *more]) == 0
        *pairs, figures = capsys.readouterr().out.splitlines()
        said.append((sorted(pairs), json.loads(figures)["subscriptions_left_out"]))
    assert said == [(["event,subscription", "x,1", "x,3"], 2)] * 2
    assert bad[0].read_text() == bad[1].read_text()


def test_a_bad_event_on_spark_is_one_line_and_leaves_nothing(
    tmp_path: Path, zones: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = tmp_path / "bad.csv"
    events.write_text(f'id,wkt,speed\nx,POINT(1 1),1\ny,"{BOW_TIE}",1\n')
    before = sorted(tmp_path.iterdir())
    assert main(["match", str(zones), str(events), "-o", str(tmp_path / "p.csv"), *SPARK]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    start, line = said.err.splitlines()
    assert start == "starting Spark on local[2]"
    assert line.startswith(f"contrada: {events}, line 3 (row 1), column 'geometry': ")
    assert "self-intersection at (2, 2)" in line
    assert line.endswith(
        "--repair mends what can be mended; "
        "--quarantine FILE lists bad events and continues without them"
    )
    assert "quarantine=" not in line
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("options", [[], ["--plan", "partitioned", "--counts"]])
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("lat.csv", "line 5 (row 2), column 'lat': 'ab' is not a number"),
        ("null.csv", "line 3 (row 1), column 'id': the id is missing"),
        ("bow.parquet", "row 1, column 'geometry': invalid Polygon"),
    ],
)
def test_a_bad_event_on_spark_is_named_by_file_and_line_as_without(
    name: str,
    place: str,
    options: list[str],
    tmp_path: Path,
    zones: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lat.csv").write_text('id,note,lon,lat,speed\nx,"1\n2",1,1,1\ny,,1,2,1\nz,,1,ab,1\n')
    Path("null.csv").write_text("id,lon,lat,speed\nx,1,1,1\n,1,2,1\n")
    shapes = [POINT, shapely.to_wkb(shapely.from_wkt(BOW_TIE))]
    pq.write_table(pa.table({"geometry": shapes, "speed": [1.0, 1.0]}), "bow.parquet")
    said = []
    for more in ([], [*SPARK, *options]):
        assert main(["match", str(zones), name, *more]) == 2
        said.append(capsys.readouterr().err.splitlines()[-1])
    assert said[0].startswith(f"contrada: {name}, {place}")
    assert said[0] == said[1]


def test_explaining_on_spark_names_columns_as_the_user_does(
    tmp_path: Path, zones: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events, out = tmp_path / "events.csv", tmp_path / "pairs.csv"
    events.write_text("key,event,wkt,speed\nx,e,POINT(1 1),60\n")
    more = ["--keep", "event.event", "--keep", "key", "--quarantine", str(tmp_path / "bad.csv")]
    args = ["match", str(zones), str(events), "-o", str(out), *SPARK, "--explain"]
    assert main([*args, *more]) == 0
    line = next(line for line in capsys.readouterr().err.splitlines() if "sent to Python" in line)
    assert line == "event columns sent to Python: geometry, speed, event, key"


@pytest.mark.parametrize("remedy", [Remedy.EVENT_ID, Remedy.SUBSCRIPTION_ID])
def test_a_missing_column_of_ids_names_the_option_of_its_own_file(
    remedy: Remedy, zones: Path
) -> None:
    with pytest.raises(InvalidInput, match="no column 'key' for the id") as raised:
        Source(read_rows(zones), str(zones), "key", remedy, ())
    assert raised.value.remedies == (remedy,)


def test_an_interrupt_while_spark_answers_leaves_the_files_as_they_were(
    tmp_path: Path,
    zones: Path,
    positions: geopandas.GeoDataFrame,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = spark_match._read_answer

    def interrupted(*args: Any) -> Iterator[pa.RecordBatch]:
        yield from inner(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(spark_match, "_read_answer", interrupted)
    positions.to_parquet(tmp_path / "positions.parquet")
    (tmp_path / "old.csv").write_text("from another day")
    before = sorted(tmp_path.iterdir())
    args = ["match", str(zones), str(tmp_path / "positions.parquet"), *SPARK]
    assert main([*args, "-o", str(tmp_path / "old.csv"), "--map", str(tmp_path / "m.html")]) == 130
    assert "interrupted; nothing was written" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "old.csv").read_text() == "from another day"


def test_a_master_other_than_the_running_one_is_refused(
    tmp_path: Path, zones: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.csv").write_text("id,lon,lat,speed\n1,1,1,1\n")
    args = ["match", str(zones), str(tmp_path / "events.csv"), "--spark", "local[3]"]
    assert main(args) == 2
    assert '"local[2]" is running' in capsys.readouterr().err


def cluster(staging: str | None) -> Any:
    """What looks like the session of a cluster, to whom asks for its settings."""
    settings = {"spark.master": "spark://host:7077", "spark.contrada.staging": staging}
    return SimpleNamespace(
        sparkContext=SimpleNamespace(master="spark://host:7077"),
        conf=SimpleNamespace(get=lambda name, default: settings.get(name) or default),
    )


def test_on_a_cluster_files_are_passed_on_through_the_staging_folder() -> None:
    assert shared_folder(cluster("file:///shared/a%20b")) == "/shared/a b"
    with pytest.raises(InvalidInput, match=r"staging is s3://bucket/x, .* set it to file:///"):
        shared_folder(cluster("s3://bucket/x"))
    with pytest.raises(InvalidInput, match=r"staging is not set: .* all machines of spark://host"):
        shared_folder(cluster(None))


def test_parquet_that_spark_itself_cannot_read_is_read_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text(
        "id,filter\n"
        "1,\"at > TIMESTAMP('2026-01-01T00:00:00Z')\"\n"
        "2,half > 0.4\n"
        "3,big > 1\n"
        "4,place.level = 2\n"
        '5,"S_INTERSECTS(geometry, POINT(1 2))"\n'
    )
    struct = pa.struct([("level", pa.int8()), ("since", pa.timestamp("ns"))])
    columns: dict[str, pa.Array] = {
        "id": pa.array([2**63 - 1, 1, 0], pa.uint64()),
        "geometry": pa.array([POINT, None, POINT], pa.large_binary()),
        "at": pa.array([1_780_000_000_000_000_001, 1, None], pa.timestamp("ns", "UTC")),
        "half": pa.array(np.array([0.5, 0.25, 1], np.float16)),
        "big": pa.array([2**64 - 1, 1, None], pa.uint64()),
        "place": pa.array([{"level": 2}, {"level": 1}, None], struct),
        "clock": pa.array([1, 2, 3], pa.time64("us")),
        "Clock": pa.array([Decimal(1)] * 3, pa.decimal256(50)),
        "none": pa.nulls(3),
    }
    pq.write_table(pa.table(columns), tmp_path / "odd.parquet")
    pairs = match_both_ways(tmp_path, tmp_path / "zones.csv", tmp_path / "odd.parquet")
    ids = [str(2**63 - 1), "0"]
    expected = [[ids[0], str(n)] for n in range(1, 6)] + [[ids[1], n] for n in ("2", "5")]
    assert pairs == sorted([*expected, ["event", "subscription"]])


def test_a_constraint_on_a_type_that_spark_lacks_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "zones.csv").write_text("id,filter\n1,clock IS NULL\n")
    columns = {"id": [1], "clock": pa.array([1], pa.time64("us"))}
    pq.write_table(pa.table(columns), tmp_path / "odd.parquet")
    args = ["match", str(tmp_path / "zones.csv"), str(tmp_path / "odd.parquet"), *SPARK]
    assert main(args) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "odd.parquet: column 'clock' is of type time64[us]" in line


def test_the_primary_geometry_may_have_another_name(
    tmp_path: Path, positions: geopandas.GeoDataFrame
) -> None:
    zones = tmp_path / "zones.csv"
    zones.write_text(
        'id,filter\n1,"S_INTERSECTS(geom, POLYGON((0 0,5 0,5 5,0 5,0 0)))"\n'
        '2,"S_INTERSECTS(geometry, POLYGON((0 0,5 0,5 5,0 5,0 0)))"\n'
    )
    positions.rename_geometry("geom").to_parquet(tmp_path / "positions.parquet")
    pairs = match_both_ways(tmp_path, zones, tmp_path / "positions.parquet")
    found = {zone: {event for event, other in pairs if other == zone} for zone in "12"}
    assert found["1"] == found["2"] != set()


def test_paths_may_have_any_character(
    tmp_path: Path, zones: Path, positions: geopandas.GeoDataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "città: [1] {a,b} 100%"
    folder.mkdir()
    positions.to_parquet(folder / "événements*?.parquet")
    monkeypatch.chdir(folder)
    assert match_both_ways(folder, zones, "événements*?.parquet")


def test_files_without_a_row_give_files_without_a_row(tmp_path: Path, zones: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("id,speed,lon,lat\n")
    assert match_both_ways(tmp_path, zones, empty) == [["event", "subscription"]]


def test_a_real_layer_gives_the_published_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layers = [DATA / "nws_counties.parquet", DATA / "nws_alerts_colorado_2026.parquet"]
    if not all(layer.is_file() for layer in layers):
        pytest.skip("the real layers are not here")
    assert main(["match", *map(str, layers), "--repair", "--json", *SPARK]) == 0
    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (figures["matches"], figures["events_matched"]) == (2_067, 720)
    assert (figures["subscriptions_left_out"], figures["events_left_out"]) == (3, 0)


@pytest.mark.parametrize("read", ["area", "geometry"])
def test_text_that_is_no_geometry_is_set_aside_alike(tmp_path: Path, read: str) -> None:
    column = {"encoding": "WKB", "geometry_types": []}
    geo = {"version": "1.1.0", "primary_column": "area", "columns": {"area": column}}
    table = pa.table(
        {"area": ["POINT(1 1)", "nonsense", "", '{"type":"Point","coordinates":[1,1]}']}
    )
    pq.write_table(
        table.replace_schema_metadata({"geo": json.dumps(geo)}), tmp_path / "events.parquet"
    )
    zones = tmp_path / "zones.csv"
    zones.write_text(f'id,filter\na,"S_INTERSECTS({read}, POLYGON((0 0,4 0,4 4,0 4,0 0)))"\n')
    bad = tmp_path / "bad.csv"
    args = ["--quarantine", str(bad)]
    pairs = match_both_ways(tmp_path, zones, tmp_path / "events.parquet", *args)
    assert pairs == [["0", "a"], ["3", "a"], ["event", "subscription"]]
    assert read_pairs(bad)[0][0] == "1"
    assert f"column '{read}': cannot read the geometry: it is not WKT" in read_pairs(bad)[0][-1]
