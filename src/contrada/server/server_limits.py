"""What a stranger may send to the application, and how long anything may take: plain values."""

from dataclasses import dataclass

from contrada.limits import (
    BODIES_BYTES_MAX,
    BODIES_OF_CALLER_BYTES_MAX,
    BODY_BYTES_PER_S_MIN,
    BODY_IDLE_S_MAX,
    BODY_START_S_MAX,
    BODY_TIME_S_MAX,
    CREDIT_MAX,
    FRAME_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    SOCKET_PUBLISHES_MAX,
    SOCKET_READERS_MAX,
    STREAMS_MAX,
    SUBSCRIPTION_BYTES_MAX,
    WAIT_S_MAX,
)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of one server; `contrada.limits` says what each is.

    Streams have a sign of life every `heartbeat_s`, and notice within `recheck_s` that their key
    is gone. `body_bytes_max` is at most what the library reads as one message.
    """

    body_bytes_max: int = MESSAGE_BYTES_MAX
    bodies_bytes_max: int = BODIES_BYTES_MAX
    bodies_of_caller_bytes_max: int = BODIES_OF_CALLER_BYTES_MAX
    body_start_s_max: float = BODY_START_S_MAX
    body_bytes_per_s_min: int = BODY_BYTES_PER_S_MIN
    body_idle_s_max: float = BODY_IDLE_S_MAX
    body_time_s_max: float = BODY_TIME_S_MAX
    subscription_bytes_max: int = SUBSCRIPTION_BYTES_MAX
    wait_s_max: float = WAIT_S_MAX
    heartbeat_s: float = 15.0
    recheck_s: float = 0.5  # a revoked key is to end streams within a second
    streams_max: int = STREAMS_MAX
    frame_bytes_max: int = FRAME_BYTES_MAX
    socket_publishes_max: int = SOCKET_PUBLISHES_MAX
    socket_readers_max: int = SOCKET_READERS_MAX
    credit_max: int = CREDIT_MAX
