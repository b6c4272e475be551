"""Subscriptions that lie elsewhere: what is known of them is answered without them."""

import pyarrow as pa

from contrada import Matcher
from contrada.files import read_rows
from contrada.matcher.inside import freeze, plan_run, show_elsewhere
from contrada.matcher.sets_elsewhere import OutlinedSubscriptions, SetOutline
from contrada.matching.subscription_columns import SubscriptionColumns


def test_a_set_that_lies_elsewhere_is_fetched_only_for_its_ids_and_members() -> None:
    matcher = Matcher()
    matcher.add("b", "wind > 17")
    matcher.add("a", "S_INTERSECTS(area, POLYGON((0 0, 4 0, 4 4, 0 0)))")
    fetched = []

    def fetch() -> SubscriptionColumns:
        fetched.append(True)
        return freeze(matcher).living()

    here = freeze(matcher)
    outline = SetOutline(2, here.id_type, here.attributes, here.geometry_attributes, False, ())
    shown = show_elsewhere(OutlinedSubscriptions(outline, fetch), "EPSG:4326", "zones.csv", 1, 3)
    assert len(shown) == 2
    assert shown.crs == "EPSG:4326"
    stats = shown.stats()
    assert [stats[f"subscriptions{end}"] for end in ("", "_mended", "_left_out")] == [2, 1, 3]
    elsewhere = freeze(shown)
    assert elsewhere.attributes == {"wind", "area"}
    assert elsewhere.geometry_attributes == ("area",)
    run = plan_run(shown, read_rows(pa.table({"id": [1], "wind": [3], "note": ["x"]})))
    assert run.schema == plan_run(matcher, read_rows(pa.table({"id": [1], "wind": [3]}))).schema
    assert not fetched
    assert elsewhere.ids.to_pylist() == ["a", "b"]
    assert [subscription.id for subscription in elsewhere] == [s.id for s in here]
    assert len(fetched) == 1
