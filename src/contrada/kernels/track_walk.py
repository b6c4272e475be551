"""Objects are walked through their positions and timers: who enters, stays, leaves and crosses.

Rules of a walk, for each object on its own:

- First come timers that are overdue as options have changed; then visits to subscriptions that are
  gone end, at the horizon, and late positions get their rows.
- Then come positions in order; before each the timers that are due by its time: dwells up to the
  silence, the silence, which ends all visits.
- Last, timers up to the end that is set for the object.

A pair of an object and a subscription that is in a visit, or was not long ago, has a slot. All
slots of one object lie together; when it is done, those that nobody can need are taken out.
Visits are slots in the order of ranks. Times are microseconds.
"""

from typing import NamedTuple

import numpy as np

from contrada.arrays import RowBits
from contrada.kernels.boxtree import Ints
from contrada.kernels.compiling import kernel
from contrada.kernels.roomy_arrays import with_room, with_space

NO_MOMENT = -(2**63)
ALWAYS_LATER = 2**62
NO_RANK = 2**62

# Columns of slots: the rank, or -1 - the number of a subscription that is gone; the last change and
# cross; bits; the reference of the event of the enter; the place of the object.
RANK, CHANGE, CROSSED, BITS, ENTERED, OWNER, SLOT_WIDTH = range(7)
VISITING, DWELT = 1, 2

# Columns of rows: time, object, rank (-1: none, -2 - number: gone), reference of the event or -1,
# and the code of transition and cause.
ROW_TIME, ROW_OBJECT, ROW_RANK, ROW_EVENT, ROW_CODE, ROW_WIDTH = range(6)
# The bit of a kind is 1 << its code.
ENTER_CODE, INSIDE_CODE, EXIT_CODE, CROSS_CODE, DWELL_CODE, LATE_CODE = range(6)
BY_CLOCK, BY_VERSION = 8, 16  # added to the code; by a position: nothing

KNOWN, FELL_SILENT = 1, 2  # bits of objects

# Places in the array of what a walk counts
ROW_COUNT, SLOTS, VISITS, NEXT_DWELL, HORIZON, CHANGES, NEXT_TIMER, COUNTERS = range(8)


class Tracks(NamedTuple):
    """The objects: `last`, `horizon` and `bits` become those after the walk, `is_changed` is set.

    `end` is how far timers run.
    Those of object o are the positions, late positions and slots from `…_starts[o]` on to the next.
    """

    last: Ints
    horizon: Ints
    bits: RowBits
    is_changed: RowBits
    end: Ints
    position_starts: Ints
    late_starts: Ints
    slot_starts: Ints


class Walked(NamedTuple):
    """Positions in order: times, references of events, and their numbers in what was found."""

    times: Ints
    events: Ints
    numbers: Ints


class Hits(NamedTuple):
    """What was found: position number n has `matched[matched_starts[n] : …[n + 1]]`, sorted."""

    matched_starts: Ints
    matched: Ints
    near_starts: Ints
    near: Ints
    met_starts: Ints
    met: Ints


class PairTerms(NamedTuple):
    """What subscriptions ask for, by rank: a dwell of -1 is none; then of those that are gone."""

    cooldown: Ints
    dwell: Ints
    kinds: RowBits
    gone_cooldown: Ints
    gone_kinds: RowBits


@kernel
def walk_tracks(
    tracks: Tracks,
    walked: Walked,
    late: Walked,
    slots_before: Ints,
    hits: Hits,
    terms: PairTerms,
    silence: int,
    due: int,
) -> tuple[Ints, Ints, Ints]:
    """Walk all objects; return rows, each object's in order, the slots that stay, and counters.

    A `silence` of 0 is none.
    """
    rows = np.empty((len(walked.times) + 64, ROW_WIDTH), np.int64)
    slots = np.empty((len(slots_before) + 64, SLOT_WIDTH), np.int64)
    visits, spare = np.empty(64, np.int64), np.empty(64, np.int64)
    slot_of = np.full(len(terms.cooldown), -1, np.int64)
    counters = np.zeros(COUNTERS, np.int64)
    counters[NEXT_TIMER] = ALWAYS_LATER
    for owner in range(len(tracks.last)):
        base, changes = counters[SLOTS], counters[CHANGES]
        first, last = tracks.slot_starts[owner], tracks.slot_starts[owner + 1]
        late_count = tracks.late_starts[owner + 1] - tracks.late_starts[owner]
        slots = with_room(slots, base, last - first)
        rows = with_room(rows, counters[ROW_COUNT], 2 * (last - first) + late_count)
        visits = with_space(visits, last - first)
        counters[HORIZON] = tracks.horizon[owner]
        load_slots(owner, slots_before[first:last], slots, slot_of, visits, terms, counters)
        overdue = min(counters[HORIZON], tracks.end[owner])
        run_timers(owner, overdue, silence, tracks, visits, slots, rows, terms, counters)
        end_gone(owner, base, slots, rows, terms, counters)
        note_late(owner, tracks.late_starts, late, rows, counters)
        visits, spare, slots, rows = apply_positions(
            owner,
            tracks,
            walked,
            hits,
            visits,
            spare,
            slots,
            slot_of,
            rows,
            terms,
            silence,
            counters,
        )
        rows = with_room(rows, counters[ROW_COUNT], 2 * counters[VISITS])
        run_timers(owner, tracks.end[owner], silence, tracks, visits, slots, rows, terms, counters)
        close_object(owner, base, silence, due, tracks, slots, slot_of, terms, counters)
        tracks.is_changed[owner] = counters[CHANGES] > changes
    return rows[: counters[ROW_COUNT]], slots[: counters[SLOTS]], counters


@kernel
def apply_positions(
    owner: int,
    tracks: Tracks,
    walked: Walked,
    hits: Hits,
    visits: Ints,
    spare: Ints,
    slots: Ints,
    slot_of: Ints,
    rows: Ints,
    terms: PairTerms,
    silence: int,
    counters: Ints,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Apply the positions of an object; return the arrays, some of which may have grown."""
    for at in range(tracks.position_starts[owner], tracks.position_starts[owner + 1]):
        number, time = walked.numbers[at], walked.times[at]
        if (  # nothing but inside, as mostly: a call for it would count references, which costs
            counters[VISITS] == 1
            and hits.matched_starts[number + 1] == hits.matched_starts[number] + 1
            and hits.met_starts[number + 1] == hits.met_starts[number]
            and slots[visits[0], RANK] == hits.matched[hits.matched_starts[number]]
            and time < counters[NEXT_DWELL]
            and (not silence or time < tracks.last[owner] + silence)
        ):
            if terms.kinds[slots[visits[0], RANK]] >> INSIDE_CODE & 1:
                row = counters[ROW_COUNT]
                if row == len(rows):
                    rows = with_room(rows, row, 1)
                rows[row, ROW_TIME], rows[row, ROW_OBJECT] = time, owner
                rows[row, ROW_RANK] = slots[visits[0], RANK]
                rows[row, ROW_EVENT], rows[row, ROW_CODE] = walked.events[at], INSIDE_CODE
                counters[ROW_COUNT] = row + 1
            counters[CHANGES] += 1
            tracks.last[owner] = counters[HORIZON] = time
            continue
        most = count_hits(hits, number)
        slots = with_room(slots, counters[SLOTS], most)
        rows = with_room(rows, counters[ROW_COUNT], 3 * counters[VISITS] + most)
        spare = with_space(spare, counters[VISITS] + most)
        run_timers(owner, time, silence, tracks, visits, slots, rows, terms, counters)
        apply_position(
            owner, at, walked, hits, visits, spare, slots, slot_of, rows, terms, counters
        )
        visits, spare = spare, visits
        tracks.last[owner] = counters[HORIZON] = time
        tracks.bits[owner] = KNOWN
    return visits, spare, slots, rows


@kernel
def count_hits(hits: Hits, number: int) -> int:
    """Return how many subscriptions a position may concern besides the visits."""
    matched = hits.matched_starts[number + 1] - hits.matched_starts[number]
    return matched + hits.met_starts[number + 1] - hits.met_starts[number]


@kernel
def load_slots(
    owner: int,
    before: Ints,
    slots: Ints,
    slot_of: Ints,
    visits: Ints,
    terms: PairTerms,
    counters: Ints,
) -> None:
    """Take over the slots of an object; visits to what is gone are not among the visits."""
    counters[VISITS] = 0
    counters[NEXT_DWELL] = ALWAYS_LATER
    for old in range(len(before)):
        slot = counters[SLOTS]
        counters[SLOTS] += 1
        slots[slot] = before[old]
        slots[slot, OWNER] = owner
        rank = slots[slot, RANK]
        if rank >= 0:
            slot_of[rank] = slot
            if slots[slot, BITS] & VISITING:
                visits[counters[VISITS]] = slot
                counters[VISITS] += 1
                await_dwell(slot, slots, terms, counters)


@kernel
def await_dwell(slot: int, slots: Ints, terms: PairTerms, counters: Ints) -> None:
    """Remember the least moment at which a visit has lasted its dwell."""
    dwell = terms.dwell[slots[slot, RANK]]
    if dwell >= 0 and not slots[slot, BITS] & DWELT:
        counters[NEXT_DWELL] = min(counters[NEXT_DWELL], slots[slot, CHANGE] + dwell)


@kernel
def emit(
    rows: Ints, counters: Ints, time: int, owner: int, rank: int, event: int, code: int
) -> None:
    """Write a row."""
    row = counters[ROW_COUNT]
    rows[row, ROW_TIME] = time
    rows[row, ROW_OBJECT] = owner
    rows[row, ROW_RANK] = rank
    rows[row, ROW_EVENT] = event
    rows[row, ROW_CODE] = code
    counters[ROW_COUNT] += 1


@kernel
def end_gone(
    owner: int, base: int, slots: Ints, rows: Ints, terms: PairTerms, counters: Ints
) -> None:
    """End the visits to subscriptions that the version lacks."""
    for slot in range(base, counters[SLOTS]):
        if slots[slot, RANK] < 0 and slots[slot, BITS] & VISITING:
            gone = -1 - slots[slot, RANK]
            if terms.gone_kinds[gone] >> EXIT_CODE & 1:
                emit(
                    rows, counters, counters[HORIZON], owner, -2 - gone, -1, EXIT_CODE + BY_VERSION
                )
            slots[slot, CHANGE] = counters[HORIZON]
            slots[slot, BITS] = 0
            counters[CHANGES] += 1


@kernel
def note_late(owner: int, starts: Ints, late: Walked, rows: Ints, counters: Ints) -> None:
    """Write the rows of an object's late positions."""
    for at in range(starts[owner], starts[owner + 1]):
        emit(rows, counters, late.times[at], owner, -1, late.events[at], LATE_CODE)


@kernel
def fire_dwells(
    owner: int, limit: int, visits: Ints, slots: Ints, rows: Ints, terms: PairTerms, counters: Ints
) -> None:
    """Write a row for each visit that has lasted its dwell by a moment."""
    counters[NEXT_DWELL] = ALWAYS_LATER
    for at in range(counters[VISITS]):
        slot = visits[at]
        dwell = terms.dwell[slots[slot, RANK]]
        if dwell < 0 or slots[slot, BITS] & DWELT:
            continue
        moment = slots[slot, CHANGE] + dwell
        if moment > limit:
            counters[NEXT_DWELL] = min(counters[NEXT_DWELL], moment)
            continue
        emit(
            rows,
            counters,
            moment,
            owner,
            slots[slot, RANK],
            slots[slot, ENTERED],
            DWELL_CODE + BY_CLOCK,
        )
        slots[slot, BITS] |= DWELT
        counters[CHANGES] += 1
        counters[HORIZON] = max(counters[HORIZON], moment)


@kernel
def run_timers(
    owner: int,
    limit: int,
    silence: int,
    tracks: Tracks,
    visits: Ints,
    slots: Ints,
    rows: Ints,
    terms: PairTerms,
    counters: Ints,
) -> None:
    """Run the timers of an object that are due by a moment."""
    quiet = ALWAYS_LATER
    if silence and tracks.bits[owner] == KNOWN:
        quiet = tracks.last[owner] + silence
    if counters[NEXT_DWELL] <= min(limit, quiet):
        fire_dwells(owner, min(limit, quiet), visits, slots, rows, terms, counters)
    if quiet > limit:
        return
    for at in range(counters[VISITS]):
        slot = visits[at]
        if terms.kinds[slots[slot, RANK]] >> EXIT_CODE & 1:
            emit(rows, counters, quiet, owner, slots[slot, RANK], -1, EXIT_CODE + BY_CLOCK)
        slots[slot, CHANGE] = quiet
        slots[slot, BITS] = 0
    counters[VISITS] = 0
    counters[NEXT_DWELL] = ALWAYS_LATER
    counters[HORIZON] = max(counters[HORIZON], quiet)
    counters[CHANGES] += 1
    tracks.bits[owner] = KNOWN | FELL_SILENT


@kernel
def apply_position(
    owner: int,
    at: int,
    walked: Walked,
    hits: Hits,
    visits: Ints,
    staying: Ints,
    slots: Ints,
    slot_of: Ints,
    rows: Ints,
    terms: PairTerms,
    counters: Ints,
) -> None:
    """Decide one position for all visits and all that it hits; the visits that go on are noted."""
    number = walked.numbers[at]
    matched, matched_end = hits.matched_starts[number], hits.matched_starts[number + 1]
    near, near_end = hits.near_starts[number], hits.near_starts[number + 1]
    met, met_end = hits.met_starts[number], hits.met_starts[number + 1]
    visit, visit_end, stay = 0, counters[VISITS], 0
    counters[NEXT_DWELL] = ALWAYS_LATER
    while True:
        of_visit = slots[visits[visit], RANK] if visit < visit_end else NO_RANK
        of_match = hits.matched[matched] if matched < matched_end else NO_RANK
        of_met = hits.met[met] if met < met_end else NO_RANK
        rank = min(of_visit, of_match, of_met)
        if rank == NO_RANK:
            break
        visit += of_visit == rank
        matched += of_match == rank
        met += of_met == rank
        is_near = False
        if of_visit == rank:
            while near < near_end and hits.near[near] < rank:
                near += 1
            is_near = near < near_end and hits.near[near] == rank
        is_now = decide(
            rank, of_visit == rank, of_match == rank, is_near, of_met == rank,
            owner, walked.times[at], walked.events[at], slots, slot_of, rows, terms, counters,
        )  # fmt: skip
        if is_now:
            slot = slot_of[rank]
            staying[stay] = slot
            stay += 1
            await_dwell(slot, slots, terms, counters)
    counters[VISITS] = stay
    counters[CHANGES] += 1


@kernel
def decide(
    rank: int,
    was: bool,
    is_matched: bool,
    is_near: bool,
    is_met: bool,
    owner: int,
    time: int,
    event: int,
    slots: Ints,
    slot_of: Ints,
    rows: Ints,
    terms: PairTerms,
    counters: Ints,
) -> bool:
    """Decide one position for one subscription; return whether it is in a visit now."""
    slot, kinds, cooldown = slot_of[rank], terms.kinds[rank], terms.cooldown[rank]
    change = NO_MOMENT if slot < 0 else slots[slot, CHANGE]
    is_cooling = change != NO_MOMENT and time < change + cooldown
    now = was if is_cooling else is_matched or (was and is_near)
    if now and was:
        if kinds >> INSIDE_CODE & 1:
            emit(rows, counters, time, owner, rank, event, INSIDE_CODE)
        return True
    if now or was:
        slot = open_slot(rank, owner, slots, slot_of, counters)
        slots[slot, CHANGE] = time
        slots[slot, BITS] = VISITING if now else 0
        slots[slot, ENTERED] = event if now else -1
        code = ENTER_CODE if now else EXIT_CODE
        if kinds >> code & 1:
            emit(rows, counters, time, owner, rank, event, code)
        return now
    if is_met and not is_cooling and kinds >> CROSS_CODE & 1:
        crossed = NO_MOMENT if slot < 0 else slots[slot, CROSSED]
        if crossed == NO_MOMENT or time >= crossed + cooldown:
            emit(rows, counters, time, owner, rank, event, CROSS_CODE)
            if cooldown:
                slot = open_slot(rank, owner, slots, slot_of, counters)
                slots[slot, CROSSED] = time
    return False


@kernel
def open_slot(rank: int, owner: int, slots: Ints, slot_of: Ints, counters: Ints) -> int:
    """Return the slot of an object's pair, a new one where it has none."""
    slot = slot_of[rank]
    if slot < 0:
        slot = counters[SLOTS]
        counters[SLOTS] += 1
        slot_of[rank] = slot
        slots[slot, RANK] = rank
        slots[slot, CHANGE] = NO_MOMENT
        slots[slot, CROSSED] = NO_MOMENT
        slots[slot, BITS] = 0
        slots[slot, ENTERED] = -1
        slots[slot, OWNER] = owner
    return slot


@kernel
def close_object(
    owner: int,
    base: int,
    silence: int,
    due: int,
    tracks: Tracks,
    slots: Ints,
    slot_of: Ints,
    terms: PairTerms,
    counters: Ints,
) -> None:
    """Forget what no later position can ask for, and note when the object's next timer is due."""
    floor = max(counters[HORIZON], due - silence) if silence else counters[HORIZON]
    kept = base
    for slot in range(base, counters[SLOTS]):
        rank = slots[slot, RANK]
        if rank >= 0:
            slot_of[rank] = -1
        last = max(slots[slot, CHANGE], slots[slot, CROSSED])
        cooldown = terms.cooldown[rank] if rank >= 0 else terms.gone_cooldown[-1 - rank]
        if slots[slot, BITS] & VISITING or (last != NO_MOMENT and last + cooldown > floor):
            slots[kept] = slots[slot]
            kept += 1
    counters[CHANGES] += counters[SLOTS] - kept
    counters[SLOTS] = kept
    tracks.horizon[owner] = counters[HORIZON]
    counters[NEXT_TIMER] = min(counters[NEXT_TIMER], counters[NEXT_DWELL])
    if not silence or not tracks.bits[owner]:
        return
    if tracks.bits[owner] == KNOWN:
        counters[NEXT_TIMER] = min(counters[NEXT_TIMER], tracks.last[owner] + silence)
    elif kept == base and due >= tracks.last[owner] + 2 * silence:
        counters[CHANGES] += 1
        tracks.bits[owner] = 0
        tracks.last[owner] = tracks.horizon[owner] = NO_MOMENT
