"""The room gives the rows of the oracle, whatever comes in, and what is always true holds."""

from hypothesis import given, settings

from contrada.transitions.followed import StreamOptions
from transition_cases import Batch, Follower, count, options, streams
from transitions_oracle import Oracle


@settings(max_examples=150, deadline=None)
@given(streams(), options())
def test_every_batch_gives_the_rows_and_counts_of_the_oracle(
    batches: list[Batch], how: StreamOptions
) -> None:
    follower, oracle = Follower(how), Oracle(how.lateness_us, how.silence_us)
    for batch in batches:
        expected = oracle.follow(batch.fixes, batch.watches, batch.version, batch.clock)
        assert follower.follow(batch) == expected
        assert follower.state.clock_us == oracle.clock
        assert follower.state.held_count == oracle.held
        assert follower.state.object_count == len(oracle.tracks)
        for name in ("applied", "late", "repeated"):
            assert count(follower.steps, name) == oracle.counts[name]
