"""Counting: the kernels against plain Python."""

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contrada.arrays import Positions
from contrada.matching.grouping import group_by
from contrada.matching.tallying import Counted, Tally


@dataclass
class Layout:
    """Filters as sets of constraints, their owners, and the group of each owner."""

    filters: list[list[int]]
    owner: list[int]
    groups: list[int]

    def tally(self, constraint_count: int) -> Tally:
        members = np.array([c for filter_ in self.filters for c in filter_], np.int64)
        filter_of = np.repeat(np.arange(len(self.filters)), [len(f) for f in self.filters])
        order, starts = group_by(members, constraint_count)
        needed = np.array([len(f) for f in self.filters], np.int64)
        counted = Counted(starts, filter_of[order], needed)
        return Tally(counted, as_ids(self.owner), as_ids(self.groups))

    def group_of(self, filter_: int) -> int:
        return self.groups[self.owner[filter_]]


CONSTRAINTS = 12


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    owners = draw(st.integers(1, 6))
    filters = draw(
        st.lists(
            st.lists(st.integers(0, CONSTRAINTS - 1), min_size=1, max_size=3, unique=True),
            min_size=1,
            max_size=12,
        )
    )
    owner = draw(st.lists(st.integers(0, owners - 1), min_size=len(filters), max_size=len(filters)))
    groups = draw(st.lists(st.integers(-1, owners - 1), min_size=owners, max_size=owners))
    return Layout(filters, owner, groups)


def as_ids(numbers: list[int]) -> Positions:
    return np.array(numbers, np.int64)


@given(layouts(), st.sets(st.integers(0, CONSTRAINTS - 1)), st.integers(0, CONSTRAINTS))
def test_a_filter_is_complete_when_the_last_of_its_constraints_is_counted(
    layout: Layout, satisfied: set[int], first: int
) -> None:
    tally = layout.tally(CONSTRAINTS)
    before = [n for n in sorted(satisfied) if n < first]
    after = [n for n in sorted(satisfied) if n >= first]
    complete = [*tally.add(as_ids(before)).tolist(), *tally.add(as_ids(after)).tolist()]
    assert sorted(complete) == [
        number for number, members in enumerate(layout.filters) if satisfied.issuperset(members)
    ]


@given(
    layouts(),
    st.lists(st.sampled_from(["known", "open", "false"]), min_size=12, max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
    st.integers(1, 5),
)
def test_asking_a_few_at_a_time_finds_every_group_and_asks_nothing_useless(
    layout: Layout, states: list[str], truths: list[bool], quota: int
) -> None:
    tally = layout.tally(CONSTRAINTS)
    known = {n for n, state in enumerate(states) if state == "known"}
    open_ = as_ids([n for n, state in enumerate(states) if state == "open"])
    possible = known | set(open_.tolist())
    tally.find(tally.add(as_ids(sorted(known))))
    while open_.size:
        found = {layout.groups[p] for p in tally.found().tolist()}
        chosen, open_ = tally.choose(open_, quota)
        for number in chosen.tolist():
            assert any(
                number in members and possible.issuperset(members)
                for f, members in enumerate(layout.filters)
                if layout.group_of(f) >= 0 and layout.group_of(f) not in found
            )
            if not truths[number]:
                possible.discard(number)
        assert chosen.size or not open_.size
        tally.find(tally.add(as_ids([n for n in chosen.tolist() if truths[n]])))
    satisfied = known | {n for n, state in enumerate(states) if state == "open" and truths[n]}
    expected = {
        layout.group_of(f)
        for f, members in enumerate(layout.filters)
        if satisfied.issuperset(members) and layout.group_of(f) >= 0
    }
    positions = tally.found().tolist()
    assert len(positions) == len({layout.groups[p] for p in positions})
    assert {layout.groups[p] for p in positions} == expected


def test_what_would_complete_a_filter_is_asked_before_the_rest() -> None:
    layout = Layout([[0, 1], [2, 3]], [0, 0], [0])
    tally = layout.tally(4)
    tally.add(as_ids([3]))
    chosen, later = tally.choose(as_ids([0, 1, 2]), 1)
    assert (chosen.tolist(), later.tolist()) == ([2], [0, 1])
