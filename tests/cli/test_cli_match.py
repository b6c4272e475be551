"""What `contrada match` says and does besides the pairs: figures, repair, quarantine, maps."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.cli import main

Pairs = list[tuple[int, str]]

BOW_TIE = "POLYGON((0 0,4 4,4 0,0 4,0 0))"
CURVE = bytes.fromhex("010800000003000000" + "00" * 48)
DIRTY: dict[str | None, bytes | None] = {
    "good": shapely.to_wkb(shapely.Point(1, 2)),
    "bow tie": shapely.to_wkb(shapely.from_wkt(BOW_TIE)),
    "infinite": shapely.to_wkb(shapely.from_wkt("LINESTRING(0 0,1 inf)")),
    "cut": shapely.to_wkb(shapely.box(0, 0, 1, 1))[:40],
    None: shapely.to_wkb(shapely.Point(1, 2)),
    "curve": CURVE,
    "empty": shapely.to_wkb(shapely.from_wkt("POLYGON EMPTY")),
    "nowhere": None,
}


@pytest.fixture
def dirty(tmp_path: Path) -> tuple[str, str]:
    """A subscription to everything between 0 and 4, and events of which most are bad."""
    zones, events = tmp_path / "zones.csv", tmp_path / "dirty.parquet"
    zones.write_text('id,wkt\nall,"POLYGON((0 0,4 0,4 4,0 4,0 0))"\n')
    pq.write_table(
        pa.table({"id": list(DIRTY), "geometry": pa.array(DIRTY.values(), pa.binary())}), events
    )
    return str(zones), str(events)


def read_rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()  # type: ignore[no-any-return]
    with path.open(newline="") as file:
        return [
            {"row": int(row["row"]), "id": row["id"] or None, "reason": row["reason"]}
            for row in csv.DictReader(file)
        ]


def test_json_ends_stdout_with_one_object_of_the_right_figures(
    city: Path, city_pairs: Pairs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = tmp_path / "pairs.parquet", tmp_path / "map.html"
    args = ["match", str(city / "zones.parquet"), str(city / "positions.parquet")]
    assert main([*args, "-o", str(out), "--map", str(page), "--json"]) == 0
    said = capsys.readouterr()
    (line,) = said.out.splitlines()
    figures = json.loads(line)
    assert figures.pop("seconds") >= 0
    assert figures == {
        "subscriptions": 12,
        "events": 200,
        "matches": len(city_pairs),
        "events_matched": len({event for event, _ in city_pairs}),
        "subscriptions_matched": len({subscription for _, subscription in city_pairs}),
        "subscriptions_mended": 0,
        "subscriptions_left_out": 0,
        "events_mended": 0,
        "events_left_out": 0,
        "events_without_geometry": 0,
        "output": str(out),
        "map": str(page),
    }


def test_json_comes_after_the_pairs_where_both_go_to_stdout(
    city: Path, city_pairs: Pairs, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["match", str(city / "zones.parquet"), str(city / "positions.parquet")]
    assert main([*args, "-o", "-", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(city_pairs) + 1
    assert json.loads(lines[-1])["matches"] == len(city_pairs)


def test_without_an_output_the_figures_are_shown(
    city: Path, city_pairs: Pairs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["match", str(city / "zones.parquet"), str(city / "positions.parquet")]) == 0
    said = capsys.readouterr()
    assert re.search(rf"^matches +{len(city_pairs)}$", said.out, re.MULTILINE)
    assert "mended" not in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    "options", [["--engine", "scan"], ["--engine", "strtree"], ["--threads", "1"]]
)
def test_engines_and_threads_do_not_change_the_file(
    options: list[str], city: Path, tmp_path: Path
) -> None:
    args = ["match", str(city / "zones.parquet"), str(city / "positions.parquet")]
    plain, other = tmp_path / "plain.csv", tmp_path / "other.csv"
    assert main([*args, "-o", str(plain)]) == 0
    assert main([*args, "-o", str(other), *options]) == 0
    assert plain.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("output", "words"), [("-", "interrupted"), ("new.csv", "interrupted; nothing was written")]
)
def test_an_interrupt_says_what_became_of_the_pairs(
    output: str,
    words: str,
    city: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("contrada.cli.match._count", interrupt)
    args = ["match", str(city / "zones.parquet"), str(city / "positions.parquet"), "-o", output]
    assert main(args) == 130
    said = capsys.readouterr()
    assert said.err == f"contrada: {words}\n"
    assert bool(said.out) == (output == "-")
    assert list(tmp_path.iterdir()) == []


def test_ids_come_from_the_columns_that_are_named_and_else_number_the_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zones, events = tmp_path / "zones.csv", tmp_path / "events.csv"
    zones.write_text('code,wkt\nB,POINT(1 1)\nA,"POINT(1 1)"\n')
    events.write_text("key,lon,lat\nx,2,2\ny,1,1\n")
    args = ["match", str(zones), str(events), "-o", "-"]
    assert main(args) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["1,0", "1,1"]
    assert main([*args, "--id", "code", "--event-id", "key"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["y,A", "y,B"]


def test_ids_of_64_bits_are_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zones, events = tmp_path / "zones.csv", tmp_path / "events.geojson"
    zones.write_text(f"id,wkt\n{-(2**63)},POINT(1 1)\n{2**63 - 1},POINT(1 1)\n")
    point = {"type": "Point", "coordinates": [1, 1]}
    events.write_text(json.dumps({"type": "Feature", "id": 2**63 - 1, "geometry": point}))
    assert main(["match", str(zones), str(events), "-o", "-"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"{2**63 - 1},{-(2**63)}",
        f"{2**63 - 1},{2**63 - 1}",
    ]


def test_one_file_may_be_both_inputs(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The zones have no speed, so that only those without a condition are satisfied.
    zones = str(city / "zones.parquet")
    assert main(["match", zones, zones, "--json"]) == 0
    said = capsys.readouterr()
    figures = json.loads(said.out)
    assert figures["subscriptions"] == figures["events"] == 12
    assert figures["subscriptions_matched"] == 4
    assert (
        "note: subscriptions refer to the columns 'kind', 'speed', which no event has" in said.err
    )


def test_files_without_a_row_give_files_without_a_row(
    city: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, out = tmp_path / "empty.csv", tmp_path / "pairs.parquet"
    empty.write_text("id,speed,kind,lon,lat\n")
    for inputs in (
        [str(city / "zones.parquet"), str(empty)],
        [str(empty), str(city / "positions.parquet")],
        [str(empty), str(empty)],
    ):
        assert main(["match", *inputs, "-o", str(out), "--map", str(tmp_path / "map.html")]) == 0
        table = pq.read_table(out)
        assert (table.num_rows, table.schema.names) == (0, ["event", "subscription"])


def test_paths_may_have_any_character(city: Path, tmp_path: Path) -> None:
    folder = tmp_path / "città [1] 🏛 {a,b}"
    folder.mkdir()
    events, out = folder / "événements 100%.parquet", folder / "пары*.csv"
    events.write_bytes((city / "positions.parquet").read_bytes())
    page = folder / "карта.html"
    args = ["match", str(city / "zones.parquet"), str(events), "-o", str(out), "--map", str(page)]
    assert main(args) == 0
    assert sorted(folder.iterdir()) == sorted([events, out, page])


# Dirty data


def test_repair_mends_what_can_be_mended_and_leaves_out_the_rest(
    dirty: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["match", *dirty, "--repair", "-o", "-", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:-1] == ["good,all", "bow tie,all"]
    figures = json.loads(lines[-1])
    assert figures["events"] == len(DIRTY)
    assert (figures["events_mended"], figures["events_left_out"]) == (1, 4)
    assert figures["events_without_geometry"] == 2


def test_repair_mends_subscriptions_and_leaves_out_those_without_an_area(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zones, events = tmp_path / "zones.csv", tmp_path / "events.csv"
    zones.write_text(
        f'id,wkt\n1,"{BOW_TIE}"\n2,POLYGON EMPTY\n3,\n4,"POINT(1 nan)"\n5,POINT(2 1)\n'
    )
    events.write_text("lon,lat\n2,1\n1,2\n")
    assert main(["match", str(zones), str(events), "-o", "-", "--repair", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:-1] == ["0,5", "1,1"]
    figures = json.loads(lines[-1])
    assert figures["subscriptions"] == 5
    assert (figures["subscriptions_mended"], figures["subscriptions_left_out"]) == (1, 3)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_quarantine_writes_row_id_and_reason_of_each_bad_event_and_goes_on(
    suffix: str, dirty: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / f"bad{suffix}"
    assert main(["match", *dirty, "--quarantine", str(bad), "-o", "-", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:-1] == ["good,all"]
    assert json.loads(lines[-1])["events_left_out"] == 5
    rows = read_rows(bad)
    assert [(row["row"], row["id"]) for row in rows] == [
        (1, "bow tie"),
        (2, "infinite"),
        (3, "cut"),
        (4, None),
        (5, "curve"),
    ]
    words = ["self-intersection at (2, 2)", "(1.0, inf) at vertex 1", "cannot read", "id", "curve"]
    for row, word in zip(rows, words, strict=True):
        assert word in row["reason"]
        assert row["reason"].startswith("column '")


def test_quarantine_with_repair_keeps_only_what_could_not_be_mended(
    dirty: tuple[str, str], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    assert main(["match", *dirty, "--repair", "--quarantine", str(bad)]) == 0
    assert [row["row"] for row in read_rows(bad)] == [2, 3, 4, 5]


def test_a_quarantine_without_a_bad_row_has_its_header(city: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    args = ["match", str(city / "zones.parquet"), str(city / "positions.parquet")]
    assert main([*args, "--quarantine", str(bad)]) == 0
    assert bad.read_text() == "row,line,id,reason\n"


# Maps


def test_a_map_as_a_page_has_the_figures_and_loads_nothing(
    city: Path, city_pairs: Pairs, tmp_path: Path
) -> None:
    page = tmp_path / "map.html"
    args = ["match", str(city / "zones.parquet"), str(city / "positions.parquet")]
    assert main([*args, "--map", str(page)]) == 0
    text = page.read_text()
    assert "<title>positions over zones</title>" in text
    assert "zone-03" in text
    assert re.search(rf"\b{len(city_pairs)}\b", text)
    assert not re.search(r"https?://|<link|src=", text)


def test_a_map_as_an_image_is_a_png_with_colours(city: Path, tmp_path: Path) -> None:
    from matplotlib import image

    plate = tmp_path / "map.PNG"
    args = ["match", str(city / "zones.parquet"), str(city / "positions.parquet")]
    assert main([*args, "--map", str(plate)]) == 0
    pixels = image.imread(plate)
    assert min(pixels.shape[:2]) >= 400
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 10


def test_a_map_of_subscriptions_and_events_without_a_shape_is_drawn_all_the_same(
    tmp_path: Path,
) -> None:
    zones, readings, page = (tmp_path / name for name in ("zones.csv", "readings.csv", "map.html"))
    zones.write_text('id,filter\nhot,"degrees > 30"\n')
    readings.write_text("id,degrees,lon,lat\na,31,,\nb,32,1,2\n")
    assert main(["match", str(zones), str(readings), "--map", str(page)]) == 0
    assert page.exists()
