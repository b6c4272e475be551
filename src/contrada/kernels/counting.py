"""Counting satisfied constraints per filter, as Siena does.

Constraint c is counted by the filters `filters[starts[c] : starts[c + 1]]`; filter f is complete
once `needed[f]` of its constraints are. Filters belong to groups, and a group that is found needs
no other filter; a filter of a negative group is nobody's.
"""

import numpy as np
from numpy.typing import NDArray

from contrada.kernels.boxtree import Ints
from contrada.kernels.compiling import kernel

Flags = NDArray[np.bool_]


@kernel
def count_filters(satisfied: Ints, starts: Ints, filters: Ints, needed: Ints, counts: Ints) -> Ints:
    """Count constraints, each of which must come once; return the filters thus completed."""
    complete = np.empty(len(needed), np.int64)
    size = 0
    for constraint in satisfied:
        for k in range(starts[constraint], starts[constraint + 1]):
            filter_ = filters[k]
            counts[filter_] += 1
            if counts[filter_] == needed[filter_]:
                complete[size] = filter_
                size += 1
    return complete[:size]


@kernel
def find_groups(chosen: Ints, owner: Ints, groups: Ints, is_found: Flags) -> Ints:
    """Mark the groups of some satisfied filters; return the owners of those that are new."""
    new = np.empty(len(chosen), np.int64)
    size = 0
    for filter_ in chosen:
        group = groups[owner[filter_]]
        if group >= 0 and not is_found[group]:
            is_found[group] = True
            new[size] = owner[filter_]
            size += 1
    return new[:size]


@kernel
def choose_open(
    open_: Ints,
    starts: Ints,
    filters: Ints,
    needed: Ints,
    counts: Ints,
    owner: Ints,
    groups: Ints,
    is_found: Flags,
    quota: int,
    may_count: Ints,
    asked: Ints,
) -> tuple[Ints, Ints]:
    """Choose which undecided constraints to evaluate next; return them, and those for later.

    A constraint that cannot complete a filter of a group not found is dropped. For each group at
    most `quota` are chosen: first what would complete a filter at once, then one of each filter.
    `may_count` (by filter) and `asked` (by group) are scratch, all zero before and after.
    """
    for constraint in open_:
        for k in range(starts[constraint], starts[constraint + 1]):
            may_count[filters[k]] += 1
    useful = np.empty(len(open_), np.int64)
    useful_count = 0
    for constraint in open_:
        for k in range(starts[constraint], starts[constraint + 1]):
            filter_ = filters[k]
            group = groups[owner[filter_]]
            if group < 0 or is_found[group]:
                continue
            if counts[filter_] + may_count[filter_] >= needed[filter_]:
                useful[useful_count] = constraint
                useful_count += 1
                break
    useful = useful[:useful_count]
    is_chosen = np.zeros(useful_count, np.bool_)
    for completes in (True, False):
        for i in range(useful_count):
            for k in range(starts[useful[i]], starts[useful[i] + 1]):
                filter_ = filters[k]
                group = groups[owner[filter_]]
                if is_chosen[i] or group < 0 or is_found[group] or may_count[filter_] < 0:
                    continue
                lacking = needed[filter_] - counts[filter_]
                if lacking > may_count[filter_] or (completes and lacking > 1):
                    continue
                if asked[group] < quota:
                    asked[group] += 1
                    may_count[filter_] = -1  # this filter has been asked
                    is_chosen[i] = True
    for constraint in open_:
        for k in range(starts[constraint], starts[constraint + 1]):
            may_count[filters[k]] = 0
            asked[max(groups[owner[filters[k]]], 0)] = 0
    return useful[is_chosen], useful[~is_chosen]


@kernel
def keep_held(chosen: Ints, starts: Ints, members: Ints, is_open: Flags, holds: Flags) -> Ints:
    """Keep the filters all of whose members hold, but for those that are open.

    Filter f has the members `members[starts[f] : starts[f + 1]]`.
    """
    kept = np.empty(len(chosen), np.int64)
    size = 0
    for filter_ in chosen:
        is_held = True
        for k in range(starts[filter_], starts[filter_ + 1]):
            is_held &= is_open[members[k]] | holds[members[k]]
        if is_held:
            kept[size] = filter_
            size += 1
    return kept[:size]
