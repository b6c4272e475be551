"""What a notebook and Python's prompt show of answers: short, whole and escaped."""

import html.parser
import re

import pytest
import shapely

import contrada
from contrada.notebook import abridge

TRIANGLE = "POLYGON((0 0, 9 0, 9 9, 0 0))"
PREDICATE = f"S_WITHIN(area, {TRIANGLE}) AND (wind > 90 OR name = '<b>&')"
STORM = {"area": "POLYGON((3 1, 5 1, 5 2, 3 1))", "wind": 80, "name": "<i>"}


@pytest.fixture
def matcher() -> contrada.Matcher:
    matcher = contrada.Matcher()
    matcher.add("tower", PREDICATE, subscriber="ops")
    return matcher


class Page(html.parser.HTMLParser):
    """The tags and the text of a piece of HTML; every tag is closed by its own."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts).replace("\xa0", " ")


def shown(value: object) -> Page:
    """What a notebook shows of a value, which must be safe wherever it is put."""
    page = Page(value._repr_html_())  # type: ignore[attr-defined]
    assert page.tags <= {"div", "table", "tr", "th", "td", "b", "code", "br"}
    return page


def test_a_why_is_the_answer(matcher: contrada.Matcher) -> None:
    assert not matcher.why("tower", STORM)
    assert matcher.why("tower", STORM | {"wind": 91})
    assert not matcher.why("tower", {"wind": 91})


def test_a_why_is_short_at_the_prompt(matcher: contrada.Matcher) -> None:
    assert repr(matcher.why("tower", STORM)) == (
        "<Why 'tower' does not match (false): 2 filters, 4 constraints>"
    )
    assert repr(matcher.why("tower", STORM | {"wind": 91})).startswith("<Why 'tower' matches:")


def test_a_why_in_a_notebook_has_each_value_and_the_matrix(matcher: contrada.Matcher) -> None:
    page = shown(matcher.why("tower", STORM))
    assert "'tower'  does not match (false)" in page.text
    for words in ("wind > 90", "wind = 80", "name = '<b>&'", "name = <i>", "1 of 2", "2 of 2"):
        assert words in page.text
    assert page.text.count("✓ true") == 2
    assert page.text.count("✗ false") == 2
    matrix = shapely.relate(shapely.from_wkt(str(STORM["area"])), shapely.from_wkt(TRIANGLE))
    assert matrix is not None
    first, second, third = (" ".join(matrix[i : i + 3]) for i in (0, 3, 6))
    assert f"I {first} B {second} E {third}" in re.sub(r" +", " ", page.text)


def test_a_why_of_an_approximate_engine_shows_the_exact_value_too() -> None:
    matcher = contrada.Matcher("ahs", level=3, universe=(0, 0, 8, 8))
    matcher.add("a", "S_WITHIN(geometry, POLYGON((0 0, 5 0, 5 5, 0 0)))")
    page = shown(matcher.why("a", {"geometry": "POLYGON((1 0, 5.1 0, 5 5, 1 0))"}))
    assert "✓ true (exactly: false)" in page.text


def test_what_can_never_match_says_so_in_a_notebook() -> None:
    matcher = contrada.Matcher()
    matcher.add("never", "speed > 3 AND speed < 2")
    assert "can never match:" in shown(matcher.why("never", {"speed": 1})).text
    explanation = contrada.explain("speed > 3 AND speed < 2")
    assert "never satisfied" in shown(explanation).text
    assert "removed by the simplifier" in shown(explanation).text


def test_what_always_matches_says_so_in_a_notebook() -> None:
    matcher = contrada.Matcher()
    matcher.add("all", filter=True)
    assert "always" in shown(matcher.why("all", {})).text
    assert "always" in shown(contrada.explain(True)).text


def test_an_explanation_is_short_at_the_prompt_and_a_table_in_a_notebook() -> None:
    explanation = contrada.explain(PREDICATE)
    assert repr(explanation).startswith("<Explanation with strtree, 2 filters, 4 constraints: ")
    assert len(repr(explanation)) < 200
    page = shown(explanation)
    for words in ("1 of 2", "STRtree of area, within", "range of wind", "name = '<b>&'"):
        assert words in page.text


def test_a_subscription_reads_as_cql2(matcher: contrada.Matcher) -> None:
    subscription = matcher.get("tower")
    assert isinstance(subscription, contrada.Subscription)
    assert repr(subscription).startswith("<Subscription 'tower' for 'ops': S_WITHIN(area, POLYGON")
    assert str(subscription) == subscription.text
    assert subscription.text in shown(subscription).text
    assert "'tower'  for 'ops'" in shown(subscription).text
    again = contrada.Matcher()
    again.add("tower", subscription.text, subscriber="ops")
    assert again.get("tower") == subscription


def test_a_subscription_with_a_large_geometry_still_shows_the_rest_of_its_predicate() -> None:
    matcher = contrada.Matcher()
    circle = shapely.Point(5.5, -4.25).buffer(1.125, quad_segs=1000)
    matcher.add("a", geometry=shapely.union(circle, shapely.box(20, 0, 30, 5)), where="wind > 90")
    subscription = matcher.get("a")
    assert len(subscription.text) > 50_000
    assert len(repr(subscription)) < 300
    assert "wind > 90" in repr(subscription)
    assert "wind > 90" in shown(subscription).text
    assert "wind > 90" in shown(contrada.explain(subscription)).text
    assert "more" in shown(matcher.why("a", {"geometry": "POINT(1 1)"})).text
    assert len(matcher.why("a", {"geometry": circle})._repr_html_()) < 5_000


def test_points_are_counted_when_they_are_left_out() -> None:
    ring, line = "0 0, 9 0, 9.5 -9, -0.25 9, 1 8, 2 3, 0 0", "0 0, 1 1, 2 2, 3 3"
    assert abridge(f"POLYGON(({ring}))") == "POLYGON((0 0, … 6 more))"
    assert abridge(f"S_WITHIN(a, MULTIPOLYGON((({ring}), ({ring})))) AND wind > 90") == (
        "S_WITHIN(a, MULTIPOLYGON(((0 0, … 13 more)))) AND wind > 90"
    )
    assert abridge(f"b OR GEOMETRYCOLLECTION(POLYGON(({ring})), POINT(1 2))") == (
        "b OR GEOMETRYCOLLECTION(POLYGON((0 0, … 6 more)), POINT(1 2))"
    )
    for short in (f"LINESTRING({line})", "a IN (1, 2, 3, 4, 5, 6, 7, 8)", f"a = 'POINT({line}'"):
        assert abridge(short) == short


def test_a_hostile_id_or_name_stays_text() -> None:
    matcher = contrada.Matcher()
    matcher.add("<script>alert(1)</script>", "\"<img src='x'>\" = '<script>'")
    for value in (
        matcher.get("<script>alert(1)</script>"),
        matcher.why("<script>alert(1)</script>", {"<img src='x'>": "</code><script>"}),
        contrada.explain("\"<img src='x'>\" = '<script>'"),
    ):
        assert "script" in shown(value).text


@pytest.mark.parametrize("relation", contrada.Relation)
def test_a_relation_shows_its_pattern_and_its_name_in_the_language(
    relation: contrada.Relation,
) -> None:
    page = shown(relation)
    assert str(relation) in page.text
    name = re.search(r"eh\w+", page.text)
    assert name is not None
    contrada.explain(f"{name[0]}(area, POLYGON((0 0, 9 0, 9 9, 0 0)))")
    cells = re.sub(r"\s|[IBE]", "", page.text.partition("fits")[2])
    assert len(cells) == 9


def test_figures_are_a_dictionary_and_a_table(matcher: contrada.Matcher) -> None:
    matcher.match_many([{"wind": i} for i in range(1_500)])
    stats = matcher.stats()
    assert stats == dict(stats)
    assert isinstance(stats, dict)
    assert repr(stats) == repr(dict(stats))
    text = shown(stats).text
    for words in ("engine strtree", "subscriptions 1 ", "events 1,500", "events left out 0"):
        assert words in text


def test_a_matcher_says_its_engine_its_size_and_where_it_is(matcher: contrada.Matcher) -> None:
    assert repr(matcher) == "<Matcher engine='strtree' subscriptions=1>"
    placed = contrada.Matcher("scan", crs="EPSG:4326")
    assert repr(placed) == "<Matcher engine='scan' subscriptions=0 crs='EPSG:4326'>"
