"""How many connections and requests there may be, and how long a client may be silent."""

from dataclasses import dataclass

from contrada.limits import (
    CONNECTIONS_MAX,
    CONNECTIONS_PER_ADDRESS_MAX,
    CONTROL_FRAMES_PER_S_MAX,
    FRAMES_PER_S_MAX,
    HEADER_BYTES_MAX,
    HEADER_S_MAX,
    IDLE_S_MAX,
    REQUESTS_PER_S_MAX,
    STALL_S_MAX,
)


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """What the server lets in before any of it reaches the application.

    A key, or without keys an address, may send `requests_per_s_max` requests a second for long, and
    twice as many at once; its sockets wait where they send more than `frames_per_s_max` frames, and
    one ends that sends `control_frames_per_s_max` beside its messages. A client has `header_s_max`
    for a handshake or a header, may leave a connection unused for `idle_s_max`, and loses it where
    it takes nothing for `stall_s_max`.
    """

    connections_max: int = CONNECTIONS_MAX
    connections_per_address_max: int = CONNECTIONS_PER_ADDRESS_MAX
    requests_per_s_max: int = REQUESTS_PER_S_MAX
    frames_per_s_max: int = FRAMES_PER_S_MAX
    control_frames_per_s_max: int = CONTROL_FRAMES_PER_S_MAX
    header_bytes_max: int = HEADER_BYTES_MAX
    header_s_max: float = float(HEADER_S_MAX)
    idle_s_max: float = float(IDLE_S_MAX)
    stall_s_max: float = float(STALL_S_MAX)
