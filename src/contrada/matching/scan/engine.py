"""How `scan` is made."""

from contrada.matching.engine import Engine, EngineKind
from contrada.matching.scan.index import ScanIndex
from contrada.model.subscription import Constraint, Filter


def _make() -> Engine:
    return Engine(ScanIndex, _describe, _effort)


def _describe(filter_: Filter) -> list[str]:
    return ["evaluated on every event"] * len(filter_.constraints)


def _effort(_: Constraint) -> int:
    return 0


SCAN = EngineKind("scan", "exact and slow: every subscription is asked about every event", _make)
