"""The engines that must all give the same answers, and a mark that runs a test with each."""

import pytest

from contrada.matching.engines import ENGINES

APPROXIMATE = ("ahs",)
EXACT_ENGINES = tuple(name for name in ENGINES if name not in APPROXIMATE)
every_engine = pytest.mark.parametrize("engine", EXACT_ENGINES)
