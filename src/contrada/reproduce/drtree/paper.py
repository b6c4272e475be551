"""What the paper states: S. Bianchi, A. Datta, P. Felber, M. Gradinariu, ICDCS 2007."""

from math import exp, log

TITLE = (
    "Stabilizing Peer-to-Peer Spatial Filters, S. Bianchi, A. Datta, P. Felber and "
    "M. Gradinariu, ICDCS 2007"
)
FALSE_POSITIVES = "2 – 3 %"
FALSE_POSITIVES_LOW, FALSE_POSITIVES_HIGH = 2.0, 3.0
TARGET = 1.0  # % of false positives that we want to stay below


def bound_height(count: int, least: int) -> int:
    """Return Lemma 3.1's height, without its unnamed constant."""
    levels = 0
    while least**levels < count:  # not by a logarithm, whose rounding may add a level
        levels += 1
    return levels


def bound_entries(count: int, least: int, most: int) -> float:
    """Return Lemma 3.1's memory, M log²(N) / log(m) bits, in entries of log(N) bits."""
    return most * log(count) / log(least)


def bound_connection(count: int, departures: float) -> float:
    """Return Lemma 3.7's time before a disconnection, in units of Δ, for Δλ departures."""
    return exp((count - departures) ** 2 / (4 * departures)) / count
