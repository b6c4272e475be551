"""What one run of the simulator is to do.

The fields have the names of the options of `contrada simulate`; what is refused names them.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from contrada.errors import InvalidInput
from contrada.limits import SIMULATED_MAX
from contrada.overlay.splitting import SPLITS
from contrada.overlay.state import M_MAX, Settings
from contrada.simulation.simulator import Network
from contrada.simulation.workloads import UNIT, WORKLOADS

JOINS = ("any", "root")


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """One run: how many peers, which faults, which network, which tree.

    `leave` is a share of all peers that depart in good order, `crash` of those that remain,
    `corrupt` of those that still live, `restart` of those that crashed. `churn` is how many join,
    and how many crash, in a round on average. `loss` and `duplicate` last while peers arrive, and
    with churn and `partition` for `rounds` after the faults; then the overlay must be legal within
    `rounds_max`. A delay is in rounds.
    """

    peers: int = 200
    events: int = 100
    workload: str = "uniform"
    seed: int = 1
    leave: float = 0.0
    crash: float = 0.0
    corrupt: float = 0.0
    restart: float = 0.0
    churn: float = 0.0
    partition: bool = False
    loss: float = 0.0
    duplicate: float = 0.0
    delay: float = 0.25
    rounds: int = 20
    rounds_max: int = 500
    join: str = "any"
    min_children: int = 4
    max_children: int = 10
    split: str = "rstar"
    plain: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _RULES:
                is_right, rule = _RULES[field.name]
                _require(is_right(value), field.name, value, rule)
        _require(
            2 <= self.min_children <= self.max_children // 2,
            "min_children",
            self.min_children,
            f"must be at least 2, and at most half of max-children {self.max_children}",
        )

    @property
    def has_trouble(self) -> bool:
        """Whether something goes on after the faults."""
        return bool(self.churn or self.loss or self.duplicate or self.partition or self.restart)

    @property
    def has_faults(self) -> bool:
        """Whether there is anything to heal."""
        return bool(self.leave or self.crash or self.corrupt or self.has_trouble)

    def settings(self) -> Settings:
        """Return what all peers have in common."""
        is_full = not self.plain
        return Settings(
            UNIT,
            self.min_children,
            self.max_children,
            self.split,
            summaries=is_full,
            deputies=is_full,
            moving=is_full,
        )

    def network(self, *, is_calm: bool) -> Network:
        """Return the network, with or without its losses and duplicates."""
        low = min(0.05, self.delay)
        if is_calm:
            return Network(low, self.delay)
        return Network(low, self.delay, self.loss, self.duplicate)


def _require(is_right: bool, name: str, value: object, rule: str) -> None:
    if not is_right:
        raise InvalidInput(f"{name.replace('_', '-')} {value}: {rule}")


def _from(low: int) -> tuple[Callable[[Any], bool], str]:
    return (lambda value: value >= low), f"must be {low} or more"


def _up_from(low: int) -> tuple[Callable[[Any], bool], str]:
    """Make the rule of something that each one of takes time and memory."""
    rule = f"must be from {low} to {SIMULATED_MAX:,} (SIMULATED_MAX)"
    return (lambda value: low <= value <= SIMULATED_MAX), rule


def _among(names: Any) -> tuple[Callable[[Any], bool], str]:
    return (lambda value: value in names), f"must be one of {', '.join(names)}"


_SHARE: tuple[Callable[[Any], bool], str] = (
    lambda value: 0 <= value <= 1,
    "must be a share from 0 to 1",
)
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "peers": _up_from(2),
    "events": _up_from(0),
    "workload": _among(WORKLOADS),
    "seed": _from(0),
    "leave": _SHARE,
    "crash": _SHARE,
    "corrupt": _SHARE,
    "restart": _SHARE,
    "churn": (lambda value: 0 <= value <= 1e6, "must be from 0 to 1,000,000 peers a round"),
    "loss": (lambda value: 0 <= value < 1, "must be a share from 0 to less than 1"),
    "duplicate": _SHARE,
    "delay": (lambda value: 0 < value <= 1, "must be more than 0 and at most 1 round"),
    "rounds": _up_from(0),
    "rounds_max": _up_from(0),
    "join": _among(JOINS),
    "max_children": (lambda value: value <= M_MAX, f"must be {M_MAX} or fewer"),
    "split": _among(SPLITS),
}
