"""The error of the AHS model: measured alike each time, falling with the level."""

import numpy as np
import shapely

from contrada.reproduce.ahs_error import GEOMETRY_KINDS, make_pairs, measure_errors, sum_errors


def test_the_same_seed_gives_the_same_table_with_a_row_for_all_that_can_be_asked() -> None:
    rows = measure_errors(1, (8, 12), 8)
    assert rows == measure_errors(1, (8, 12), 8)
    named = {(row.level, row.relation, row.event, row.subscription) for row in rows}
    assert len(named) == len(rows) == 2 * (36 * 10 + 4 * 8)
    assert all(row.missed <= row.holds <= row.pairs == 8 for row in rows)


def test_disjoint_is_missed_but_never_invented_and_errors_fall_with_the_level() -> None:
    rows = measure_errors(2, (8, 11, 14), 40)
    assert sum(row.invented for row in rows if row.relation == "disjoint") == 0
    assert sum(row.missed for row in rows if row.relation == "disjoint") > 0
    ((levels, shares),) = sum_errors(rows, lambda _: "all").values()
    assert levels == [8, 11, 14]
    assert 50 > shares[0] > shares[1] > shares[2] > 0


def test_pairs_are_valid_and_of_all_sorts() -> None:
    for kind in GEOMETRY_KINDS:
        events, shapes = make_pairs(np.random.default_rng(3), kind, "polygon", 80)
        assert shapely.is_valid(events).all()
        assert shapely.is_valid(shapes).all()
        meets = shapely.intersects(events, shapes)
        assert 20 < meets.sum() < 80
