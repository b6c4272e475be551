"""`contrada match --transitions`: rows in every format, counts, bad rows, maps and refusals."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.cli import main
from fleet import BAD, COLUMNS, ROWS, write_fleet
from map_data import read_links, read_page, read_paths, read_shapes

if TYPE_CHECKING:
    from pathlib import Path


def read_answer(path: Path) -> list[tuple[Any, ...]]:
    """The rows of a file as those of `fleet`."""
    match path.suffix:
        case ".parquet":
            table = pq.read_table(path)
            assert table.schema.field("time").type == pa.timestamp("us", "UTC")
            assert table.schema.names == [*COLUMNS[:6], "version", "cause"]
            rows = table.to_pylist()
            rows = [{**row, "time": f"{row['time']:%Y-%m-%dT%H:%M:%S.%fZ}"} for row in rows]
        case ".csv":
            frame = pd.read_csv(path)
            rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        case _:
            rows = [json.loads(line) for line in path.read_text().splitlines()]
    day, seconds = "2026-03-02T", ":00.000000Z"
    for row in rows:
        assert row["time"].startswith(day)
        assert row["time"].endswith(seconds)
        assert row["version"] is None
        row["time"] = row["time"].removeprefix(day).removesuffix(seconds)
    return [tuple(row[name] for name in COLUMNS) for row in rows]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".ndjson"])
def test_rows_go_to_files_of_every_format_without_geometry(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"out{suffix}"
    assert main([*write_fleet(tmp_path), "-o", str(out)]) == 0
    assert read_answer(out) == ROWS


def test_rows_go_to_the_next_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = write_fleet(tmp_path)
    assert main([*words, "--kinds", "cross,dwell", "-o", "-"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "object,subscription,subscriber,transition,time,event,version,cause",
        "van 7,bridge,,cross,2026-03-02T08:40:00.000000Z,p4,,position",
        "van 7,yard,gate 2,dwell,2026-03-02T09:20:00.000000Z,p5,,clock",
    ]


def test_the_report_counts_rows_of_each_kind_and_what_became_of_positions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = write_fleet(tmp_path, BAD)
    bad = tmp_path / "bad.csv"
    assert main([*words, "--json", "--quarantine", str(bad)]) == 0
    said = capsys.readouterr()
    counts = json.loads(said.out)
    kinds = Counter(row[3] for row in ROWS)
    assert {kind: counts[f"transitions_{kind}"] for kind in kinds} == kinds
    names = ("events", "events_left_out", "events_repeated", "events_without_geometry")
    assert [counts[name] for name in names] == [14, 2, 1, 1]
    parts = ("applied", "late", "repeated", "held", "left_out", "without_geometry")
    assert sum(counts[f"events_{part}"] for part in parts) == counts["events"]
    assert (counts["objects"], counts["transitions"], counts["quarantine"]) == (3, 9, str(bad))
    assert "  cross               1\n" in said.err
    assert bad.read_text().splitlines() == [
        "row,line,id,reason",
        "12,14,q4,column 'object_id': the object is missing",
        "13,15,q5,\"column 'time': the time 'noon' is not a timestamp, a date or ISO 8601 text\"",
    ]


def test_a_bad_row_is_refused_with_its_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    assert main([*write_fleet(tmp_path, BAD), "-o", str(out)]) == 2
    said = capsys.readouterr().err
    assert "tracks.csv, line 14 (row 12), column 'object_id': the object is missing" in said
    assert "--quarantine FILE lists bad events" in said
    assert not out.exists()


def test_silence_ends_visits_and_other_names_of_columns_are_taken(tmp_path: Path) -> None:
    words, out = write_fleet(tmp_path), tmp_path / "out.csv"
    tracks = tmp_path / "tracks.csv"
    tracks.write_text(tracks.read_text().replace("id,object_id,time", "fix,ship,seen", 1))
    named = ["--object", "ship", "--time", "seen", "--event-id", "fix", "--silence", "20 min"]
    assert main([*words, *named, "-o", str(out)]) == 0
    ends = [row for row in read_answer(out) if row[3] == "exit" and row[6] == "clock"]
    assert ends == [("van 7", "yard", "gate 2", "exit", "09:10", None, "clock")]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--keep", "id", "-o", "out.csv"], "--keep id cannot be combined with --transitions"),
        (["-o", "out.geoparquet"], "whose rows have no geometry; write .parquet instead"),
        (["--spark", "local[1]"], "--transitions cannot be combined with --spark yet"),
        (["--object", "ship"], "--object COLUMN names the column of objects"),
        (["--time", "when"], "--time COLUMN names the column of times"),
        (["--silence", "soon"], '--silence must be a duration such as "30 s", "10 min"'),
        (["--silence", "0 s"], "--silence must be longer than zero"),
        (["--cooldown=-1 s"], "or \"1 day\", not '-1 s'"),
        (["--hysteresis", "-1"], "--hysteresis -1.0: must be a number of metres >= 0"),
        (["--hysteresis", "inf"], "--hysteresis inf: must be a number of metres >= 0"),
        (["--kinds", "leave"], "--kinds leave: unknown kind of transition 'leave'"),
        (["--kinds", ","], "name some of enter, inside, exit, cross, dwell"),
    ],
)
def test_what_does_not_go_together_is_refused(
    more: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*write_fleet(tmp_path), *more]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("option", ["object", "time", "silence", "dwell", "cooldown", "kinds"])
def test_options_of_transitions_need_them(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_fleet(tmp_path)[:3]
    assert main([*files, f"--{option}", "1 s"]) == 2
    assert f"--{option} needs --transitions" in capsys.readouterr().err


def draw(folder: Path, *more: str) -> dict[str, Any]:
    page = folder / "tracks.html"
    assert main([*write_fleet(folder, BAD), "--repair", "--map", str(page), *more]) == 0
    return read_page(page)


def test_the_map_links_tracks_and_moments_with_the_fences_of_the_rows(tmp_path: Path) -> None:
    data = draw(tmp_path)
    assert read_links(data) == {(row[0], row[1]) for row in ROWS}
    shapes = read_shapes(data, "event")
    linked = list(zip(data["pairs"]["events"], data["pairs"]["subscriptions"], strict=True))
    fences = [shape.label for shape in read_shapes(data, "subscription")]
    for layer, kind in (("enters", "enter"), ("exits", "exit"), ("crossings", "cross")):
        found = {
            (shapes[event].label, fences[fence], shapes[event].attributes["event"])
            for event, fence in linked
            if shapes[event].layer == layer
        }
        assert found == {(row[0], row[1], row[5]) for row in ROWS if row[3] == kind}
    tracks = [shape for shape in shapes if shape.layer == "tracks"]
    counts = {(t.label, t.is_matched, t.partner_count) for t in tracks}
    assert counts == {("car", True, 1), ("idle", False, 0), ("van 7", True, 3)}
    assert [t.attributes["positions"] for t in tracks] == ["2", "1", "8"]
    assert {shape.label: shape.partner_count for shape in read_shapes(data, "subscription")} == {
        "bridge": 1,
        "depot": 1,
        "far": 0,
        "yard": 2,
    }


def test_the_map_draws_moments_where_they_happened_and_no_way_through_silence(
    tmp_path: Path,
) -> None:
    data = draw(tmp_path, "--silence", "30 min")
    names = [layer["name"] for layer in data["layers"]]
    enters = read_paths(data, names.index("enters"))
    places = [tuple(places.tolist()[0]) for [(_, places)] in enters]
    assert [tuple(round(x, 3) for x in place) for place in places] == [
        (7.2, 1.2), (1.6, 2.2), (6.8, 1.6), (7.5, 2.4),
    ]  # fmt: skip
    [[(_, way)]] = read_paths(data, names.index("crossings"))
    assert shapely.LineString(way).equals_exact(shapely.LineString([(3.7, 1.2), (5.3, 2.8)]), 0.01)
    van = read_paths(data, names.index("tracks"))[2]
    assert sorted(len(places) for _, places in van) == [1, 6], "a point after the silence"
    exits = [shape for shape in read_shapes(data, "event") if shape.layer == "exits"]
    assert [exit_.attributes.get("cause") for exit_ in exits] == ["position", "position", "clock"]


def test_the_help_of_streams_lists_all_options_of_transitions_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["stream", "--help"])
    own = capsys.readouterr().out.split("transitions (docs/transitions.md):")[1]
    for option in ("--object", "--silence", "--lateness", "--ahead", "--shards"):
        assert f"\n  {option} " in own
