"""What every experiment of a paper is given; a plan says how much to measure, for each paper."""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.random import Generator

from contrada.reproduce.reporting import Reporter

P = TypeVar("P")


# Without slots: Python 3.11 cannot call `Run[Plan]` of a frozen class that has them.
@dataclass(frozen=True)
class Run(Generic[P]):
    """One run of the experiments: its plan, its seed, and where its results go."""

    plan: P
    folder: Path
    reporter: Reporter
    seed: int

    def generator(self, *numbers: int) -> Generator:
        """Give an experiment, or a part of it, random numbers that no other can shift."""
        return np.random.default_rng([self.seed, *numbers])
