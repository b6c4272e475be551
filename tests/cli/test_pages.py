"""The pages of `match --map` and `simulate --animate`, as a browser runs them."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import geopandas
import pyarrow.csv
import pytest
import shapely

from browser import Browser, Page, needs_browser
from contrada.cli import main
from fleet import write_fleet

# One browser serves all tests of this module, so they stay on one process.
pytestmark = needs_browser

Place = tuple[float, float]
Pairs = list[tuple[int, str]]

IMAGE = "<img src=x onerror=window.ran=1>"
HOSTILE = [IMAGE, "</script><script>window.ran=2</script>", "\"'`&amp;<!--<b>", "{{data}}"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture
def city_map(city: Path, tmp_path: Path, browser: Browser) -> Iterator[Page]:
    """The map of the city, open; nothing that a test does makes it complain."""
    files = [str(city / f"{name}.parquet") for name in ("zones", "positions")]
    kept = ["--keep", "subscription.where", "-o", str(tmp_path / "pairs.csv")]
    assert main(["match", *files, *kept, "--map", str(tmp_path / "map.html")]) == 0
    with Page(browser, tmp_path / "map.html") as page:
        yield page
        assert page.complaints() == []


def on_map(page: Page, places: Iterable[Place]) -> list[Place]:
    """Where in the window places of the world are."""
    pixels: list[Place] = page.run(
        f"{[list(place) for place in places]}.map(([x, y]) => [toX((x - frame.west) / frame.unit),"
        " toY((y - frame.south) / frame.unit * frame.stretch)])"
    )
    return pixels


def positions_of(city: Path) -> dict[int, Place]:
    """Where each event is."""
    positions = geopandas.read_parquet(city / "positions.parquet")
    return {row.id: (row.geometry.x, row.geometry.y) for row in positions.itertuples()}


def zones_of(city: Path) -> dict[str, Place]:
    """A place that each zone has for itself, far from every event; some have none."""
    zones = geopandas.read_parquet(city / "zones.parquet")
    events = shapely.union_all(shapely.points(list(positions_of(city).values()))).buffer(0.15)
    places = {}
    for zone in zones.itertuples():
        others = zones.geometry[zones.id != zone.id].union_all().buffer(0.05)
        if not (own := zone.geometry.buffer(-0.05) - others - events).is_empty:
            place = own.representative_point()
            places[zone.id] = (place.x, place.y)
    return places


def sought(page: Page, words: str) -> list[str]:
    """What the box Find lists for some words."""
    page.run("document.getElementById('find').value = ''")
    page.click_on("#find")
    page.write(words)
    return page.texts("#found li")


def test_a_browser_that_is_given_a_bad_page_complains(browser: Browser, tmp_path: Path) -> None:
    scripts = ["console.log('said')", "throw 'thrown'", f"document.body.innerHTML = '{IMAGE}'"]
    for number, script in enumerate(scripts):
        path = tmp_path / f"{number}.html"
        path.write_text(f"<body><script>{script}</script>")
        with Page(browser, path) as page:
            assert page.complaints(), script
            assert page.run("window.ran") == (1 if IMAGE in script else None)


def test_the_map_draws_events_and_zones_where_they_are(city_map: Page, city: Path) -> None:
    places = [*positions_of(city).values(), *zones_of(city).values()]
    assert all(city_map.is_painted("shapes", on_map(city_map, places)))
    assert city_map.is_painted("shapes", [(3, 3)]) == [False]


def test_layers_and_what_did_not_match_can_be_hidden(
    city_map: Page, city: Path, city_pairs: Pairs
) -> None:
    zones = geopandas.read_parquet(city / "zones.parquet").union_all().buffer(0.05)
    positions = positions_of(city)
    matched = on_map(city_map, [positions[event] for event, _ in city_pairs])
    own = on_map(city_map, zones_of(city).values())
    alone = [place for place in positions.values() if not zones.covers(shapely.Point(place))]
    assert alone
    city_map.click_on("#legend label:last-of-type")
    city_map.settle()
    assert city_map.text("#legend label:last-of-type") == "matched only"
    assert not any(city_map.is_painted("shapes", on_map(city_map, alone)))
    city_map.click_on("#legend label:first-of-type")
    city_map.settle()
    assert city_map.text("#legend label:first-of-type").startswith("subscriptions")
    assert not any(city_map.is_painted("shapes", own))
    assert all(city_map.is_painted("shapes", matched))


def test_the_pointer_shows_the_event_below_it_and_a_click_its_partners(
    city_map: Page, city: Path, city_pairs: Pairs
) -> None:
    zones = zones_of(city)
    own = on_map(city_map, zones.values())
    for event, place in list(positions_of(city).items())[::8]:
        partners = sorted(zone for id_, zone in city_pairs if id_ == event)
        facts = ["event", "not matched"]
        if partners:
            facts = ["event", "matched", f"{len(partners)} partner" + "s" * (len(partners) > 1)]
        (spot,) = on_map(city_map, [place])
        city_map.move(*spot)
        assert city_map.text("#tip").splitlines()[:2] == [str(event), " · ".join(facts)]
        shown = city_map.text("#place").replace("°", "").split(", ")
        assert [float(side) for side in shown] == pytest.approx(place, abs=0.02)
        city_map.click(*spot)
        assert city_map.text("#held b") == str(event)
        assert sorted(city_map.texts("#partners li")) == partners
        city_map.settle()
        lit = {
            zone
            for zone, is_lit in zip(zones, city_map.is_painted("marks", own), strict=True)
            if is_lit
        }
        assert lit == set(partners) & zones.keys()


def test_a_click_on_a_zone_lists_its_events_and_one_of_these_its_zones(
    city_map: Page, city: Path, city_pairs: Pairs
) -> None:
    for zone, place in zones_of(city).items():
        city_map.click(*on_map(city_map, [place])[0])
        assert city_map.text("#held b") == zone
        listed = city_map.texts("#partners li")
        assert sorted(map(int, listed)) == [event for event, own in city_pairs if own == zone]
        city_map.click_on("#partners button")
        assert city_map.text("#held b") == listed[0]
        assert zone in city_map.texts("#partners li")
    city_map.click_on("#unpin")
    assert city_map.text("#pinned") == ""


def test_find_finds_ids_and_shows_values(city_map: Page, city: Path) -> None:
    assert sought(city_map, "ZONE-07") == ["zone-07"]
    city_map.press_enter()
    assert city_map.text("#held b") == "zone-07"
    first = min(positions_of(city))
    assert sought(city_map, str(first)) == [str(first)]
    assert sought(city_map, "speed > 50") == [f"zone-{n:02}\nspeed > 50" for n in range(0, 12, 3)]
    city_map.click_on("#found li:nth-child(2) button")
    assert city_map.text("#held b") == "zone-03"
    assert sought(city_map, "no such thing") == ["nothing found"]


def write_hostile_files(folder: Path) -> list[str]:
    """Events on a line, each in a square of its own; all names and values hold markup."""
    zones, events = folder / f"{IMAGE}.csv", folder / f"events {IMAGE}.csv"
    squares = [f"POLYGON(({k} 0,{k}.5 0,{k}.5 1,{k} 1,{k} 0))" for k in range(len(HOSTILE))]
    columns = {"id": HOSTILE, "subscriber": HOSTILE, "geometry": squares, IMAGE: HOSTILE}
    pyarrow.csv.write_csv(pyarrow.table(columns), zones)
    points = [f"POINT({k}.25 0.5)" for k in range(len(HOSTILE))]
    columns = {"id": HOSTILE, "geometry": points, IMAGE: HOSTILE}
    pyarrow.csv.write_csv(pyarrow.table(columns), events)
    return [str(zones), str(events)]


def test_markup_in_ids_names_and_values_stays_text(tmp_path: Path, browser: Browser) -> None:
    args = [*write_hostile_files(tmp_path), "--keep", f"subscription.{IMAGE}"]
    assert main(["match", *args, "--map", str(tmp_path / "map.html")]) == 0
    with Page(browser, tmp_path / "map.html") as page:
        assert IMAGE in page.run("document.title")
        assert IMAGE in page.text("h1")
        for k, text in enumerate(HOSTILE):
            page.move(*on_map(page, [(k + 0.25, 0.5)])[0])
            assert page.text("#tip b") == text
            assert page.texts("#tip dl > *") == [IMAGE, text]
            page.click(*on_map(page, [(k + 0.25, 0.1)])[0])
            assert page.text("#held b") == text
            assert page.texts("#held dd").count(text) == 2
            assert page.texts("#partners li") == [text]
            assert sought(page, text) == [text, text]
        assert page.run("document.querySelectorAll('img, b b').length") == 0
        assert page.run("document.scripts.length") == 2
        assert page.run("window.ran") is None
        assert page.complaints() == []


def test_the_map_of_tracks_shows_moments_and_a_click_their_fence(
    tmp_path: Path, browser: Browser
) -> None:
    assert main([*write_fleet(tmp_path), "--map", str(tmp_path / "tracks.html")]) == 0
    with Page(browser, tmp_path / "tracks.html") as page:
        page.settle()
        enter, crossing, exit_ = on_map(page, [(1.6, 2.2), (5, 2.5), (9.2, 1.2)])
        assert page.is_painted("shapes", [enter, crossing, exit_]) == [True] * 3
        for place, noun, label, fence in (
            (enter, "enter", "van 7", "depot"),
            (crossing, "cross", "van 7", "bridge"),
            (exit_, "exit", "car", "yard"),
        ):
            page.move(*place)
            assert page.text("#tip b") == label
            assert noun in page.text("#tip")
            page.click(*place)
            assert page.texts("#partners li") == [fence]
        page.click(*on_map(page, [(7.5, 2.9)])[0])
        assert page.text("#held b") == "yard"
        visitors = Counter(page.texts("#partners li"))
        assert visitors == Counter({"car": 3, "van 7": 2}), "tracks, enters and an exit"
        assert page.complaints() == []


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of the overlay, as a page and as a dump."""
    folder = tmp_path_factory.mktemp("run")
    args = ["--peers", "30", "--crash", "0.3", "--corrupt", "0.2", "--events", "20", "--seed", "4"]
    files = ["--animate", str(folder / "run.html"), "--dump", str(folder / "run.json")]
    assert main(["simulate", *args, "--plain", *files]) == 0
    return folder


@pytest.fixture
def run_page(run_folder: Path, browser: Browser) -> Iterator[Page]:
    with Page(browser, run_folder / "run.html") as page:
        yield page
        assert page.complaints() == []


@pytest.fixture
def dump(run_folder: Path) -> Any:
    return json.loads((run_folder / "run.json").read_text())


def figures_of(page: Page) -> dict[str, int]:
    """The table of the page of a run."""
    names, values = page.texts("#figures th"), page.texts("#figures td")
    return dict(zip(names, map(int, values), strict=True))


def test_the_page_of_a_run_goes_through_its_rounds_and_events(run_page: Page, dump: Any) -> None:
    assert run_page.text("#now") == "round 1: building"
    said, seen, bad = [], [], []
    for _ in range(run_page.run("scenes.length - 1")):
        run_page.click_on("#on")
        said.append(run_page.text("#now"))
        seen.append(figures_of(run_page))
        bad.append(run_page.texts("#figures tr:has(.bad) th"))
    stages = [words.partition(": ")[2] for words in said]
    assert seen[stages.index("faults")]["faults"] > 0
    for figures, names in zip(seen[:-20], bad[:-20], strict=True):
        assert ("faults" in names, "roots" in names) == (
            figures["faults"] > 0,
            figures["roots"] != 1,
        )
    assert 0 in [figures["roots"] for figures in seen[:-20]]
    calm = seen[len(seen) - len(dump["events"]) - 1]
    assert calm == {"peers alive": 21, "faults": 0, "roots": 1, "height": calm["height"]}
    assert said[-20:] == [f"event {number} of 20" for number in range(1, 21)]
    shown = [(figures["want the event"], figures["handled it"]) for figures in seen[-20:]]
    events = [(len(event["received"]), len(event["visited"])) for event in dump["events"]]
    assert sorted(shown) == sorted(events)
    run_page.click_on("#back")
    assert run_page.text("#now") == "event 19 of 20"


def test_the_page_of_a_run_shows_the_peer_below_the_pointer(run_page: Page, dump: Any) -> None:
    run_page.run(f"show(scenes.length - 1 - {len(dump['events'])})")
    for peer in dump["peers"]:
        low_x, low_y, high_x, high_y = peer["filter"]
        middle = [(low_x + high_x) / 2, (low_y + high_y) / 2]
        place = run_page.run(f"[toX({middle[0]} * units), toY({middle[1]} * units)]")
        run_page.move(*place)
        if not peer["alive"]:
            assert f"peer {peer['id']}\n" not in run_page.text("#tip")
            continue
        assert run_page.is_painted("map", [place]) == [True]
        top = peer["levels"][-1]
        parent = top["parent"]
        above = "a root" if parent in (peer["id"], None) else f"child of peer {parent}"
        said = f"peer {peer['id']}\n{above}, top level {top['level']}"
        assert run_page.text("#tip") == said


def test_the_page_of_a_run_plays_and_stops(run_page: Page) -> None:
    run_page.click_on("#play")
    assert run_page.run("document.getElementById('play').ariaLabel") == "Pause"
    run_page.run(
        "new Promise((done) => { const look = () => at ? done() : requestAnimationFrame(look);"
        " look(); })"
    )
    run_page.click_on("#play")
    assert run_page.run("document.getElementById('play').ariaLabel") == "Play"


def test_a_corrupted_tree_has_a_key_for_each_level_that_is_drawn(run_page: Page) -> None:
    tallest = run_page.run("Math.max(...frames.map((frame) => frame.top))")
    levels = [text for text in run_page.texts("#legend li") if "level" in text]
    assert len(levels) == min(tallest, 5)
    assert tallest > run_page.run("last.top")
