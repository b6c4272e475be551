"""How much the experiments measure, and what each of them is given."""

from dataclasses import dataclass

from contrada.reproduce import running


@dataclass(frozen=True, slots=True)
class DrtreePlan:
    """How much to measure; sizes are numbers of peers.

    `sizes` are of the paper's trees that are built, measured and asked for events, `sizes_ours` of
    those with what is ours; `harmed` of those that are harmed with `harm_seeds` seeds each.
    Children move for `moving_rounds` at most before accuracy is measured. `outage_rounds` are
    watched after a crash, `bias_rounds` under a biased workload.
    """

    sizes: tuple[int, ...]
    sizes_ours: tuple[int, ...]
    trace_count: int
    harmed: tuple[int, ...]
    harm_seeds: int
    accuracy_sizes: tuple[int, ...]
    accuracy_events: int
    moving_rounds: int
    churn_size: int
    churn_seeds: int
    churn_trials: int
    churn_rounds: int
    outage_size: int
    outage_seeds: int
    outage_rounds: int
    outage_events: int
    bias_size: int
    bias_seeds: int
    bias_rounds: int
    bias_events: int


FULL = DrtreePlan(
    sizes=(100, 300, 1_000, 3_000, 10_000, 30_000, 100_000),
    sizes_ours=(100, 1_000, 10_000),
    trace_count=300,
    harmed=(100, 300, 1_000, 2_000),
    harm_seeds=3,
    accuracy_sizes=(1_000, 3_000),
    accuracy_events=1_000,
    moving_rounds=150,
    churn_size=100,
    churn_seeds=5,
    churn_trials=1_000,
    churn_rounds=40,
    outage_size=400,
    outage_seeds=20,
    outage_rounds=20,
    outage_events=100,
    bias_size=500,
    bias_seeds=5,
    bias_rounds=60,
    bias_events=100,
)
QUICK = DrtreePlan(
    sizes=(100, 300, 1_000),
    sizes_ours=(100, 1_000),
    trace_count=100,
    harmed=(20, 40, 80),
    harm_seeds=3,
    accuracy_sizes=(1_000,),
    accuracy_events=200,
    moving_rounds=15,
    churn_size=100,
    churn_seeds=1,
    churn_trials=200,
    churn_rounds=20,
    outage_size=200,
    outage_seeds=2,
    outage_rounds=15,
    outage_events=100,
    bias_size=100,
    bias_seeds=2,
    bias_rounds=24,
    bias_events=50,
)

DrtreeRun = running.Run[DrtreePlan]
