"""One batch of positions over one version of the subscriptions: from rows in to rows out.

The order is that of the room of transitions: positions are taken in, what is applied is matched,
and the room decides. Nothing here is changed; whoever asks keeps the state that comes out.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.matcher.event_texts import EVENT_OBJECT, are_texts
from contrada.matcher.finding import FollowedSet, PositionPiece
from contrada.matcher.position_intake import Intake, read_objects
from contrada.transitions.deciding import Step, finish
from contrada.transitions.followed import StreamOptions
from contrada.transitions.position_columns import PositionColumns
from contrada.transitions.taking_in import Begun, begin
from contrada.transitions.track_state import TrackState

_PIECE_ROWS = 16_384


def follow_batch(
    intake: Intake,
    positions: PositionColumns | None,
    followed: FollowedSet,
    state: TrackState,
    options: StreamOptions,
    *,
    object_column: str,
    threads: int,
) -> Step:
    """Decide a batch whose `positions` were taken in; without any only the version is taken up."""
    kind = followed.subscriber_type(state.subscriptions.subscribers)
    state = _with_subscribers(state, kind)
    begun = begin(state, positions, options)
    pieces = [
        *_release(begun, followed, object_column),
        *_bring(begun, intake),
    ]
    found = followed.find(begun, pieces, state, threads)
    return finish(begun, followed.describe(kind, None), found)


def _release(begun: Begun, followed: FollowedSet, object_column: str) -> Iterator[PositionPiece]:
    """Decode what an earlier batch brought."""
    first = 0
    for table in begun.released:
        for start in range(0, table.num_rows, _PIECE_ROWS):
            rows = table.slice(start, _PIECE_ROWS)
            numbers = np.arange(first, first + rows.num_rows)
            yield PositionPiece(followed.decode(rows), _find_objects(rows, object_column), numbers)
            first += rows.num_rows


def _find_objects(rows: pa.Table, column: str) -> pa.Array | None:
    column = EVENT_OBJECT if are_texts(rows) else column
    place = rows.schema.get_field_index(column)
    if place < 0:
        return None
    array = rows.column(place).combine_chunks()
    is_id = pa.types.is_string(array.type) or pa.types.is_integer(array.type)
    return read_objects(array, column, "positions")[0] if is_id else None


def _bring(begun: Begun, intake: Intake) -> Iterator[PositionPiece]:
    """Number the rows of this batch that are applied at once."""
    released = sum(table.num_rows for table in begun.released)
    numbers = np.full(sum(len(piece.good) for piece in intake.pieces), -1, np.int64)
    numbers[begun.incoming] = released + np.arange(len(begun.incoming))
    first = 0
    for piece in intake.pieces:
        own: Positions = np.full(piece.received.batch.length, -1, np.int64)
        own[piece.good] = numbers[first : first + len(piece.good)]
        first += len(piece.good)
        if (own >= 0).any():
            yield PositionPiece(piece.received.batch, piece.objects, own)


def _with_subscribers(state: TrackState, kind: pa.DataType) -> TrackState:
    """Return a state whose subscribers are of a type: integers may become texts."""
    facts = state.subscriptions
    if facts.subscribers.type == kind or not len(facts.ids):
        return state
    return replace(state, subscriptions=facts._replace(subscribers=facts.subscribers.cast(kind)))
