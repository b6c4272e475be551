"""How much the experiments measure, and what each of them is given."""

from dataclasses import dataclass

from contrada.reproduce import running


@dataclass(frozen=True, slots=True)
class CrtreePlan:
    """How much to measure. `event_count` is for times, `gain_event_count` for Figure 5."""

    sizes: tuple[int, ...]
    event_count: int
    pair_count: int
    densities: tuple[int, ...]
    gain_event_count: int
    layer_share: float


FULL = CrtreePlan(
    sizes=(1_000, 2_500, 5_000, 10_000),
    event_count=10,
    pair_count=40_000,
    densities=(0, 500, 1_000, 2_000, 4_000, 8_000, 12_000),
    gain_event_count=100,
    layer_share=1.0,
)
QUICK = CrtreePlan(
    sizes=(500, 1_000, 2_000),
    event_count=3,
    pair_count=10_000,
    densities=(0, 1_000, 2_000, 4_000, 12_000),
    gain_event_count=30,
    layer_share=0.05,
)

CrtreeRun = running.Run[CrtreePlan]
