"""What decides constraints in a job: the exact engine, or the AHS model by areas of cells."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from contrada.arrays import Box
from contrada.errors import InvalidInput
from contrada.matching.engine import Engine
from contrada.matching.engines import DEFAULT_ENGINE, make_engine
from contrada.matching.grid import LEVEL, LONGITUDE_LATITUDE, Grid
from contrada.matching.subscribing import PredicateReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AREA_LEVEL = "spark.contrada.area.level"
AREA_UNIVERSE = "spark.contrada.area.universe"


@dataclass(frozen=True, slots=True)
class Evaluator:
    """How constraints are decided: exactly, or with a grid by the areas of its cells."""

    grid: Grid | None = None

    def engine(self) -> Engine:
        """Return the engine, which a process makes once."""
        return _make_engine(self.grid)

    def reader(self) -> PredicateReader:
        """Make a reader of predicates, which simplifies them where that changes no answer."""
        return PredicateReader(effort=self.engine().effort)


EXACT = Evaluator()


@lru_cache(maxsize=4)
def _make_engine(grid: Grid | None) -> Engine:
    if grid is None:
        return make_engine(DEFAULT_ENGINE, {})
    return make_engine("ahs", {"level": grid.level, "universe": grid.universe})


def make_evaluator(name: str, spark: "SparkSession") -> Evaluator:
    """Make the evaluator of a name; the session may state the grid of "area"."""
    if name == "exact":
        return EXACT
    level, universe = spark.conf.get(AREA_LEVEL, None), spark.conf.get(AREA_UNIVERSE, None)
    try:
        return Evaluator(Grid(_read_level(level), _read_box(universe)))
    except InvalidInput as error:
        raise InvalidInput(
            f"{AREA_LEVEL}={level!r}, {AREA_UNIVERSE}={universe!r}: {error}"
        ) from None


def _read_level(text: str | None) -> int:
    if text is None:
        return LEVEL
    if not text.isdecimal():
        raise InvalidInput("the level must be a number")
    return int(text)


def _read_box(text: str | None) -> Box:
    if text is None:
        return LONGITUDE_LATITUDE
    try:
        west, south, east, north = map(float, text.split(","))
    except ValueError:
        raise InvalidInput("the universe must be four numbers: west,south,east,north") from None
    return west, south, east, north
