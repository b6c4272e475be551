"""A file of columns goes into another matcher as the rows of one of format 1 would."""

from __future__ import annotations

import json
import mmap
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada import InvalidInput, Matcher
from contrada.cli import main
from contrada.errors import BadRows
from contrada.files.sections import open_sections
from contrada.matcher.holding import Holding
from contrada.matcher.inside import freeze
from contrada.matching.subscribing import PredicateReader
from contrada.matching.subscription_columns import SubscriptionColumns
from snapshots import FORMATS, check_same, save_as, write_settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contrada.matching.segments import SubscriptionSet
    from contrada.model.subscription import Id, Predicate, Subscription

Arguments = dict[str, Any]  # of `Matcher`

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fences.contrada"


MAKERS: dict[str, Arguments] = {
    "strtree": {"engine": "strtree"},
    "strtree as written": {"engine": "strtree", "simplify": False},
    "crtree": {"engine": "crtree", "split": "constraint"},
    "crtree as written": {"engine": "crtree", "simplify": False},
    "discrete": {
        "engine": "crtree",
        "evaluator": "discrete",
        "density": 3.0,
        "universe": (0.0, 0.0, 12.0, 12.0),
    },
    "scan": {"engine": "scan"},
    "ahs": {"engine": "ahs", "level": 5, "universe": (0.0, 0.0, 12.0, 12.0)},
    "ahs, coarse": {"engine": "ahs", "level": 3, "universe": (0.0, 0.0, 12.0, 12.0)},
}


def make_rows() -> pa.Table:
    """Rows with areas of one part, as all engines take them; some say a thing twice."""
    rng = np.random.default_rng(8)
    shapes = shapely.buffer(shapely.points(rng.uniform(2, 10, (40, 2))), 1.5, quad_segs=3)
    again: Any = shapely.buffer(shapes, 0.3, quad_segs=2)
    relations = ["intersects", "within", "covers", "overlaps"] * 10
    wheres: list[str | None] = [None, "n > 2", "n > 2 AND n > 1", "s = 'a' OR n < 3"] * 10
    for row in range(4, 40, 5):
        wheres[row] = f"S_INTERSECTS(geometry, {again[row].wkt}) AND n < 9"
    return pa.table(
        {
            "id": [f"z{row}" for row in range(40)],
            "geometry": shapely.to_wkb(shapes),
            "relation": relations,
            "where": wheres,
            "subscriber": [None, "u", "v", "w"] * 10,
        }
    )


def make_events() -> pa.Table:
    rng = np.random.default_rng(9)
    shapes: Any = shapely.points(rng.uniform(2, 10, (60, 2)))
    shapes[::2] = shapely.buffer(shapes[::2], 1.2, quad_segs=2)
    return pa.table(
        {
            "geometry": shapely.to_wkb(shapes),
            "n": [i % 7 for i in range(60)],
            "s": ["a", "b", None] * 20,
        }
    )


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("taker", MAKERS)
def test_a_file_of_any_engine_answers_as_if_its_rows_were_added(
    path: Path, maker: str, taker: str
) -> None:
    made, taken, direct = (Matcher(**MAKERS[name]) for name in (maker, taker, taker))
    made.add_many(make_rows())
    made.save(path)
    assert taken.add_many(path) == direct.add_many(make_rows()) == 40
    events = make_events()
    answer = direct.match_many(events)
    assert answer.num_rows > 50
    assert taken.match_many(events).equals(answer)
    for event in events.slice(0, 10).to_pylist():
        assert taken.match(event) == direct.match(event)
        assert taken.subscribers(event) == direct.subscribers(event)
    if not MAKERS[taker].get("simplify", True) or taker.startswith(("ahs", "discrete")):
        assert [taken.get(id_) for id_ in taken] == [direct.get(id_) for id_ in direct]


def write_both(folder: Path, matcher: Matcher) -> list[Path]:
    """Save a matcher in each format."""
    paths = [folder / f"format-{format_}.contrada" for format_ in FORMATS]
    for format_, path in zip(FORMATS, paths, strict=True):
        save_as(format_, matcher, path)
    return paths


def three() -> Matcher:
    matcher = Matcher()
    matcher.add("a", "n > 1", subscriber="u")
    matcher.add("b", geometry=SQUARE, where="n > 1", subscriber="v")
    matcher.add("c", "n > 2", subscriber="w")
    return matcher


def test_what_is_taken_is_refused_as_of_rows_and_nothing_is_added(tmp_path: Path) -> None:
    messages = []
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        matcher.add("b", "TRUE")
        matcher.add("x", "TRUE")
        with pytest.raises(InvalidInput, match="row 1, id 'b': the id 'b' is already taken") as one:
            matcher.add_many(path)
        matcher.add("a", "TRUE")
        with pytest.raises(BadRows, match="2 of 3 subscriptions cannot be used") as two:
            matcher.add_many(path)
        messages.append([str(e.value).replace(path.name, "") for e in (one, two)])
        assert list(matcher) == ["a", "b", "x"]
        assert all(matcher.get(id_).text == "TRUE" for id_ in matcher)
    assert messages[0] == messages[1]


def test_with_replace_those_of_the_file_take_the_place_of_others(tmp_path: Path) -> None:
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        for id_ in ("b", "x"):
            matcher.add(id_, "TRUE")
        assert matcher.add_many(path, replace=True) == 3
        assert matcher.add_many(path, replace=True) == 3
        assert list(matcher) == ["a", "b", "c", "x"]
        assert matcher.match({"n": 2}) == ["a", "x"]


def test_quarantine_and_on_bad_work_as_for_rows(tmp_path: Path) -> None:
    told: list[list[Any]] = []
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        matcher.add("b", "TRUE")
        assert matcher.add_many(path, quarantine=True) == 2
        assert (list(matcher), matcher.stats()["subscriptions_left_out"]) == (["a", "b", "c"], 1)
        bad: list[Any] = []
        other = Matcher()
        other.add("c", "TRUE")
        other.add_many(path, quarantine=True, on_bad=lambda *row, bad=bad: bad.append(row))
        assert Matcher().add_many(path, on_bad=lambda *row, bad=bad: bad.append(row)) == 3
        told.append(bad)
    assert told[0] == told[1] == [(2, "c", "the id 'c' is already taken")]


def test_another_column_of_ids_is_taken_as_of_rows(tmp_path: Path) -> None:
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        assert matcher.add_many(path, id="subscriber") == 3
        assert list(matcher) == ["u", "v", "w"]
        assert matcher.get("v").text == three().get("b").text
        with pytest.raises(InvalidInput, match=rf'{path.name}.*"?nothing"?'):
            matcher.add_many(path, id="nothing")


def test_repair_finds_nothing_to_mend_and_adds_all(tmp_path: Path) -> None:
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        assert matcher.add_many(path, repair=True) == 3
        assert matcher.stats()["subscriptions_mended"] == 0
        check_same(three(), matcher)


def test_what_an_engine_does_not_take_is_refused_as_of_rows(tmp_path: Path) -> None:
    matcher = three()
    matcher.add("d", geometry=shapely.box(0, 0, 9, 9).difference(shapely.box(1, 1, 2, 2)))
    messages = []
    for path in write_both(tmp_path, matcher):
        discrete = Matcher(**MAKERS["discrete"])
        with pytest.raises(InvalidInput, match=r"row 3, id 'd': .*without holes") as caught:
            discrete.add_many(path)
        assert len(discrete) == 0
        assert discrete.add_many(path, quarantine=True) == 3
        messages.append(str(caught.value).replace(path.name, ""))
    assert messages[0] == messages[1]


def test_more_filters_than_the_matcher_allows_are_refused_as_of_rows(tmp_path: Path) -> None:
    matcher = three()
    matcher.add("d", "n = 1 OR m = 2 OR s = 'x'")
    messages = []
    for path in write_both(tmp_path, matcher):
        strict = Matcher(filters_max=2)
        with pytest.raises(InvalidInput, match=r"row 3, id 'd', .*more than 2 filters") as caught:
            strict.add_many(path)
        assert len(strict) == 0
        messages.append(str(caught.value).replace(path.name, ""))
    assert messages[0] == messages[1]


def test_ids_of_another_kind_are_refused(tmp_path: Path) -> None:
    for path in write_both(tmp_path, three()):
        matcher = Matcher()
        matcher.add(1, "TRUE")
        with pytest.raises(InvalidInput, match=rf"{path.name}: .*all strings or all integers"):
            matcher.add_many(path)
        assert list(matcher) == [1]


def test_another_coordinate_system_is_refused(tmp_path: Path) -> None:
    projected = Matcher(crs="EPSG:2154")
    projected.add("a", geometry=SQUARE)
    for path in write_both(tmp_path, projected):
        matcher = Matcher(crs="EPSG:4326")
        with pytest.raises(InvalidInput, match=rf"{path.name} is in EPSG:2154, the matcher in"):
            matcher.add_many(path)
        fresh = Matcher()
        fresh.add_many(path)
        assert fresh.crs == "EPSG:2154"


def test_a_coordinate_system_that_is_none_is_refused(path: Path) -> None:
    three().save(path)
    write_settings(path, {**open_sections(path).settings, "crs": "nowhere"})
    matcher = Matcher()
    with pytest.raises(InvalidInput, match=r'fences\.contrada: unknown coordinate system "nowher'):
        matcher.add_many(path)
    assert (len(matcher), matcher.crs) == (0, None)


def test_subscriptions_of_an_engine_that_is_not_known_here_are_added_all_the_same(
    path: Path,
) -> None:
    three().save(path)
    write_settings(path, {**open_sections(path).settings, "engine": "quux", "options": {"a": 1}})
    matcher = Matcher()
    assert matcher.add_many(path) == 3
    check_same(three(), matcher)


def test_capitals_in_the_suffix_make_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "FENCES.CONTRADA"
    three().save(path)
    assert Matcher().add_many(path) == 3


def test_columns_are_no_events(path: Path) -> None:
    three().save(path)
    with pytest.raises(InvalidInput, match=r"fences\.contrada: .*it holds columns, not rows"):
        three().match_many(path)


# On the command line


def test_the_command_matches_and_keeps_what_a_file_of_either_format_holds(tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("id,wkt,n\n7,POINT(1 1),2\n8,POINT(9 9),5\n")
    outputs = []
    for path in write_both(tmp_path, three()):
        out = tmp_path / "pairs.jsonl"
        kept = [f"subscription.{name}" for name in ("subscriber", "relation", "where")]
        options = [option for name in kept for option in ("--keep", name)]
        assert main(["match", str(path), str(events), "-o", str(out), *options]) == 0
        outputs.append(out.read_text())
    assert outputs[0] == outputs[1]
    rows = [json.loads(line) for line in outputs[0].splitlines()]
    assert [(row["event"], row["subscription"]) for row in rows] == [
        *((7, "a"), (7, "b"), (8, "a"), (8, "c")),
    ]
    assert rows[1]["subscription.subscriber"] == "v"
    assert rows[1]["subscription.relation"] == "intersects"


# As columns, which nobody turns into rows


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Id]:
    """The ids of the subscriptions that have become objects."""
    ids: list[Id] = []
    make = SubscriptionColumns._make

    def note(columns: SubscriptionColumns, position: int, *rest: Any) -> Subscription:
        ids.append(columns.ids.one(position))
        return make(columns, position, *rest)

    monkeypatch.setattr(SubscriptionColumns, "_make", note)
    return ids


def test_no_row_is_made_of_a_file_whatever_becomes_of_bad_rows(path: Path, made: list[Id]) -> None:
    three().save(path)
    told: list[Any] = []
    assert Matcher().add_many(path, quarantine=True) == 3
    assert Matcher().add_many(path, repair=True, on_bad=lambda *row: told.append(row)) == 3
    assert Matcher().add_many(path, id="id") == 3
    assert Matcher().add_many(path, id="subscriber") == 3
    taken = Matcher()
    taken.add("b", "TRUE")
    assert taken.add_many(path, quarantine=True, on_bad=lambda *row: told.append(row)) == 2
    with pytest.raises(BadRows):
        taken.add_many(path)
    assert told == [(1, "b", "the id 'b' is already taken")]
    assert made == []


def test_the_command_makes_no_row_of_a_file(tmp_path: Path, path: Path, made: list[Id]) -> None:
    three().save(path)
    events, out, bad = (tmp_path / name for name in ("events.csv", "pairs.csv", "bad.csv"))
    events.write_text("id,wkt,n\n7,POINT(1 1),2\n8,POINT(9 9),5\n")
    options = ["-o", str(out), "--quarantine-subscriptions", str(bad)]
    kept = ["--keep", "subscription.subscriber"]
    assert main(["match", str(path), str(events), *options, *kept]) == 0
    assert out.read_text().splitlines()[1:] == ["7,a,u", "7,b,v", "8,a,u", "8,c,w"]
    assert bad.read_text().splitlines() == ["row,line,id,reason"]
    assert made == []


def test_of_a_file_that_is_made_anew_only_what_is_refused_is_read_as_a_row(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matcher = three()
    matcher.add("d", "n = 1 OR m = 2 OR s = 'x'")
    matcher.save(path)
    read: list[object] = []
    parse = PredicateReader.parse

    def note(reader: PredicateReader, source: str) -> Predicate:
        read.append(source)
        return parse(reader, source)

    monkeypatch.setattr(PredicateReader, "parse", note)
    strict, told = Matcher(filters_max=2), []
    assert strict.add_many(path, quarantine=True, on_bad=lambda *row: told.append(row)) == 3
    assert list(strict) == ["a", "b", "c"]
    ((row, id_, reason),) = told
    assert (row, id_) == (3, "d")
    assert reason.startswith("column 'filter': ")
    assert len(read) == 1


def test_rows_without_a_subscriber_are_refused_where_subscribers_are_ids(tmp_path: Path) -> None:
    messages = []
    for path in write_both(tmp_path, three()):
        matcher = Matcher.open(path)
        matcher.add("d", "TRUE")
        matcher.save(path)
        with pytest.raises(InvalidInput, match=r"row 3, column 'subscriber'") as caught:
            Matcher().add_many(path, id="subscriber")
        messages.append(str(caught.value).replace(path.name, ""))
        mixed = Matcher.open(path)
        mixed.add("d", "TRUE", subscriber=7, replace=True)
        mixed.save(path)
        with pytest.raises(InvalidInput) as caught:
            Matcher().add_many(path, id="subscriber")
        messages.append(str(caught.value).replace(path.name, ""))
    assert messages[:2] == messages[2:]


# In the place of others


def find_map(column: Any) -> object:
    """What holds the memory of a column in the end."""
    while isinstance(column, np.ndarray) and column.base is not None:
        column = column.base
    return column.obj if isinstance(column, memoryview) else column


def save_fences(path: Path, ids: Sequence[str], least: int) -> Path:
    matcher = Matcher()
    shapes = [shapely.box(i, 0, i + 2, 2) for i in range(len(ids))]
    where = [f"n > {least}"] * len(ids)
    columns = {"id": ids, "geometry": shapely.to_wkb(shapes), "where": where}
    matcher.add_many(pa.table(columns))
    matcher.save(path)
    return path


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> list[list[Id]]:
    """The ids of each version that is published."""
    found: list[list[Id]] = []
    publish = Holding._publish

    def note(held: Holding, changed: SubscriptionSet, *rest: Any, **options: Any) -> None:
        found.append(changed.living_ids())
        publish(held, changed, *rest, **options)

    monkeypatch.setattr(Holding, "_publish", note)
    return found


def test_a_file_takes_the_place_of_another_in_one_version(
    tmp_path: Path, versions: list[list[Id]]
) -> None:
    first = save_fences(tmp_path / "first.contrada", ["a", "b", "c"], 3)
    second = save_fences(tmp_path / "second.contrada", ["b", "c", "d", "e"], 6)
    versions.clear()
    matcher = Matcher()
    matcher.add("x", "n > 0")
    matcher.add_many(first)
    event = {"geometry": "POINT(2.5 1)", "n": 5}
    assert matcher.match(event) == ["b", "c", "x"]
    assert matcher.add_many(second, discard=["a", "b", "c"]) == 4
    assert versions == [["x"], ["a", "b", "c", "x"], ["b", "c", "d", "e", "x"]]
    assert matcher.match(event) == ["x"]
    assert matcher.match({**event, "n": 7}) == ["c", "d", "x"]
    assert matcher.match_many([{**event, "n": 7}]).num_rows == 3


@pytest.mark.parametrize("others", [0, 3])
def test_a_file_that_takes_the_place_of_another_stays_mapped(tmp_path: Path, others: int) -> None:
    old = [f"a{i}" for i in range(50)]
    first = save_fences(tmp_path / "first.contrada", old, 3)
    second = save_fences(tmp_path / "second.contrada", [f"b{i}" for i in range(40)], 6)
    matcher = Matcher()
    for number in range(others):
        matcher.add(f"x{number}", "TRUE")
    for path, discarded in ((first, []), (second, old)):
        matcher.add_many(path, discard=pa.array(discarded, pa.string()))
        segment, *small = freeze(matcher)._segments
        columns = segment.rows.columns
        for column in (
            columns.expressions.operands,
            columns.table.members,
            columns.pools.bits,
            columns.pools.geometries.columns()["coordinates"],
        ):
            assert isinstance(find_map(column), mmap.mmap)
        assert sum(s.living_count for s in small) == others
    assert len(matcher) == 40 + others
    assert matcher.match({"geometry": "POINT(2.5 1)", "n": 7})[:2] == ["b1", "b2"]


def test_ids_that_are_discarded_are_free_and_those_that_nobody_has_are_passed_over(
    tmp_path: Path,
) -> None:
    path = save_fences(tmp_path / "fences.contrada", ["a", "b"], 3)
    matcher = Matcher()
    matcher.add("a", "TRUE")
    matcher.add("c", "TRUE")
    with pytest.raises(InvalidInput, match="the id 'a' is already taken"):
        matcher.add_many(path, discard=["c", "nobody"])
    assert list(matcher) == ["a", "c"]
    assert matcher.add_many(path, discard=["a", "nobody"]) == 2
    assert list(matcher) == ["a", "b", "c"]
    assert matcher.get("a").text != "TRUE"


def test_ids_may_be_of_another_kind_once_all_others_are_discarded(tmp_path: Path) -> None:
    path = save_fences(tmp_path / "fences.contrada", ["a", "b"], 3)
    matcher = Matcher()
    matcher.add(7, "TRUE")
    with pytest.raises(InvalidInput, match="all strings or all integers"):
        matcher.add_many(path, discard=[8])
    assert matcher.add_many(path, discard=np.array([7, 8])) == 2
    assert list(matcher) == ["a", "b"]


@pytest.mark.parametrize("discard", ["abc", [None], [1.5], ["a", 1], 7, pa.array([1.5])])
def test_what_cannot_be_ids_cannot_be_discarded(path: Path, discard: Any) -> None:
    three().save(path)
    with pytest.raises(InvalidInput, match="discard"):
        Matcher().add_many(path, discard=discard)
