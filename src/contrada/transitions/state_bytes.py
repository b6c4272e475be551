"""The state of objects as bytes, in a versioned format."""

from contrada.transitions.track_state import TrackState

FORMAT = 1


def encode(state: TrackState) -> bytes:
    """Write a state, its notes included."""
    raise NotImplementedError


def decode(data: bytes) -> TrackState:
    """Read a state; a newer format and damaged bytes are refused."""
    raise NotImplementedError
