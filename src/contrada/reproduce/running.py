"""What every experiment of a paper is given; a plan says how much to measure, for each paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.random import Generator

from contrada.pictures.plots import Bars, Panel, Scale, draw_panels
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
        """Return random numbers for an experiment, or a part of it, that no other can shift."""
        return np.random.default_rng([self.seed, *numbers])

    def draw(
        self,
        name: str,
        panels: Sequence[Panel | Bars],
        *,
        title: str,
        note: str = "",
        seeds: int = 1,
        x_label: str = "",
        y_label: str,
        scale: Scale = "linear",
    ) -> None:
        """Draw a figure into the folder; it says from how many seeds its values come."""
        said = f"One seed: {self.seed}." if seeds == 1 else f"{seeds} seeds, from {self.seed} on."
        draw_panels(
            self.folder / name,
            panels,
            title=title,
            note=f"{note} {said}".strip(),
            x_label=x_label,
            y_label=y_label,
            scale=scale,
        )
