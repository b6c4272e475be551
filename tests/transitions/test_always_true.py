"""What is always true of transitions, whatever comes in: for rows, counts, batches and shards."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.transitions.deciding import finish
from contrada.transitions.joined_states import join_states
from contrada.transitions.state_bytes import decode, encode
from contrada.transitions.taking_in import begin
from contrada.transitions.track_state import TrackState
from transition_cases import (
    Batch,
    Fences,
    Follower,
    columns_of,
    count,
    find,
    fixes,
    followed,
    id_array,
    options,
    rows_of,
    streams,
)
from transition_cases import fence_sets as fence_strategy
from transitions_oracle import KINDS, Fix, Row

if TYPE_CHECKING:
    from contrada.transitions.followed import StreamOptions

quick = settings(max_examples=40, deadline=None)


def all_kinds(batches: list[Batch], **terms: Any) -> list[Batch]:
    """The same batches, of whose fences everything is computed."""
    return [
        replace(
            batch,
            fences={
                id_: replace(fence, kinds=KINDS, **terms) for id_, fence in batch.fences.items()
            },
        )
        for batch in batches
    ]


def follow_batches(batches: list[Batch], how: StreamOptions) -> tuple[Follower, list[Row]]:
    follower = Follower(how)
    return follower, [row for batch in batches for row in follower.follow(batch)]


@quick
@given(streams(), options())
def test_enters_and_exits_take_turns(batches: list[Batch], how: StreamOptions) -> None:
    _, rows = follow_batches(all_kinds(batches), how)
    turns = defaultdict(list)
    for row in rows:
        if row.transition in {"enter", "exit"}:
            turns[row.object, row.subscription].append(row.transition)
    for taken in turns.values():
        assert taken == (["enter", "exit"] * len(taken))[: len(taken)]


@quick
@given(streams(), options())
def test_enters_and_insides_are_the_matches_of_applied_positions(
    batches: list[Batch], how: StreamOptions
) -> None:
    state = TrackState.empty()
    for batch in all_kinds(batches, hysteresis=0, cooldown=0):
        columns = columns_of(batch.fixes) if batch.fixes else None
        begun = begin(state, columns, how, clock_us=batch.clock)
        found = find(begun, columns, batch.fences)
        step = finish(begun, followed(batch.fences), found)
        kinds = [row.transition for row in rows_of(step)]
        assert kinds.count("enter") + kinds.count("inside") == len(found.matched.rows)
        state = step.state


@quick
@given(streams(), options())
def test_each_position_is_accounted_for_once(batches: list[Batch], how: StreamOptions) -> None:
    follower, rows = follow_batches(batches, how)
    became = ("applied", "late", "repeated", "without_geometry")
    came = sum(len(batch.fixes) for batch in batches)
    accounted = sum(count(follower.steps, name) for name in became) + follower.state.held_count
    assert accounted == count(follower.steps, "came") == came
    assert sum(row.transition == "late" for row in rows) == count(follower.steps, "late")
    for step in follower.steps:
        own = step.counts
        assert own.came + own.waited == own.held + sum(getattr(own, name) for name in became)


@quick
@given(streams(), options(), st.randoms(use_true_random=False))
def test_the_order_of_a_batch_and_a_retry_change_nothing(
    batches: list[Batch], how: StreamOptions, random_: random.Random
) -> None:
    follower, other = Follower(how), Follower(how)
    for batch in batches:
        before = other.state
        shuffled = tuple(random_.sample(batch.fixes, len(batch.fixes)))
        rows = follower.follow(batch)
        assert other.follow(replace(batch, fixes=shuffled)) == rows
        after = encode(other.state)
        other.state = before
        assert other.follow(replace(batch, fixes=shuffled)) == rows
        assert encode(other.state) == after


@quick
@given(streams(), options())
def test_the_state_of_one_object_can_be_kept_alone(
    batches: list[Batch], how: StreamOptions
) -> None:
    """Each object has a shard of its own; only the clock is that of all."""
    whole = Follower(how)
    alone: dict[Any, bytes] = {}
    before: int | None = None
    for batch in batches:
        expected = whole.follow(batch)
        clock = whole.state.clock_us
        rows: list[Row] = []
        for object_ in sorted(alone.keys() | {fix.object for fix in batch.fixes}):
            own = tuple(fix for fix in batch.fixes if fix.object == object_)
            follower = Follower(how)
            follower.state = TrackState.empty().with_clock(before)
            if object_ in alone:
                follower.state = decode(alone[object_])
            rows += follower.follow(replace(batch, fixes=own, clock=clock))
            alone[object_] = encode(follower.state)
        before = clock
        assert in_order(rows) == in_order(expected)
    joined = TrackState.empty()
    for object_, data in alone.items():
        assert same_state(decode(data), whole.state.take(id_array([object_])))
        joined = join_states(joined, decode(data))
    assert same_state(joined, whole.state)


def in_order(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


def same_state(one: TrackState, other: TrackState) -> bool:
    """Whether two states are one, whatever the order in which positions wait."""
    return one.object_count == other.object_count == 0 or told(one) == told(other)


def told(state: TrackState) -> list[Any]:
    groups = [state.objects, state.pairs, state.subscriptions]
    held = [
        (state.objects.ids[int(place)].as_py(), *rest)
        for place, *rest in zip(
            state.held.objects.tolist(),
            state.held.time_us.tolist(),
            state.held.ids.to_pylist(),
            map(repr, state.held.x.tolist()),
            strict=True,
        )
    ]
    columns = [[repr(column.tolist()) for column in group] for group in groups]
    return [state.clock_us, columns, sorted(held, key=repr)]


@quick
@given(streams(), options())
def test_only_changed_objects_change_and_nothing_happens_before_the_next_timer(
    batches: list[Batch], how: StreamOptions
) -> None:
    follower = Follower(how)
    for batch in batches:
        before = follower.state
        follower.follow(batch)
        step = follower.steps[-1]
        changed = set(step.changed.to_pylist())
        for object_ in {*before.objects.ids.to_pylist(), *step.state.objects.ids.to_pylist()}:
            if object_ not in changed:
                own = id_array([object_])
                one, other = before.take(own), step.state.take(own)
                assert same_state(one.with_clock(None), other.with_clock(None))
        quiet, next_us = Follower(how, step.state), step.next_timer_us
        last = 10**15 if next_us is None else next_us - 1
        assert step.state.clock_us is None or last >= step.state.clock_us
        assert quiet.follow(Batch((), batch.fences, clock=last)) == []
        assert quiet.steps[-1].counts.applied == 0


@st.composite
def tracks(draw: st.DrawFn) -> tuple[list[Fix], Fences]:
    """Positions of a version, each with an object, time and id of its own."""
    ids = draw(st.sampled_from(["integers", "strings"]))
    found = draw(st.lists(fixes(ids, ids), min_size=1, max_size=16))
    unique = {(fix.object, fix.time, fix.id): fix for fix in found}
    return list(unique.values()), draw(fence_strategy(ids))


@quick
@given(tracks(), options(), st.data())
def test_every_division_into_batches_gives_the_rows_of_the_whole_that_are_due(
    track: tuple[list[Fix], Fences], how: StreamOptions, data: st.DataObject
) -> None:
    positions, fences = track
    whole = Follower(how)
    expected = whole.follow(Batch(tuple(positions), fences), is_whole=True)
    jitter = [data.draw(st.integers(0, max(how.lateness_us - 1, 0))) for _ in positions]
    order = sorted(
        range(len(positions)),
        key=lambda at: (positions[at].time + jitter[at], positions[at].id),
    )
    ends = [*sorted(data.draw(st.sets(st.integers(0, len(order))))), len(order)]
    divided, rows, start = Follower(how), [], 0
    for end in ends:
        own = tuple(positions[at] for at in order[start:end])
        rows += divided.follow(Batch(own, fences))
        start = end
    assert count(divided.steps, "late") == 0
    clock = divided.state.clock_us
    assert clock is not None
    due = [row for row in expected if row.time <= clock - how.lateness_us]
    assert in_order(rows) == in_order(due)


@quick
@given(tracks(), options(), st.data())
def test_pieces_of_a_whole_give_the_rows_of_the_whole(
    track: tuple[list[Fix], Fences], how: StreamOptions, data: st.DataObject
) -> None:
    positions, fences = track
    expected = Follower(how).follow(Batch(tuple(positions), fences), is_whole=True)
    ordered = sorted(positions, key=lambda fix: (fix.object, fix.time, fix.id))
    ends = [*sorted(data.draw(st.sets(st.integers(1, len(ordered))))), len(ordered)]
    clock = max(fix.time for fix in positions)
    pieces, rows, start = Follower(how), [], 0
    for end in ends:
        if end > start:
            own = Batch(tuple(ordered[start:end]), fences, clock=clock)
            rows += pieces.follow(own, is_whole=True, goes_on=True)
            start = end
    rows += pieces.follow(Batch((), fences, clock=clock), is_whole=True)
    assert in_order(rows) == in_order(expected)
    assert pieces.state.object_count == 0
