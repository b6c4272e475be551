"""What the language offers: operators and functions, with the kinds of their arguments."""

from collections.abc import Mapping
from dataclasses import dataclass

from contrada.model.relation import RELATIONS

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
ARITHMETIC = ("+", "-", "*", "/", "%", "div", "^")
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
TEMPORAL = (
    "t_after",
    "t_before",
    "t_contains",
    "t_disjoint",
    "t_during",
    "t_equals",
    "t_finishedBy",
    "t_finishes",
    "t_intersects",
    "t_meets",
    "t_metBy",
    "t_overlappedBy",
    "t_overlaps",
    "t_startedBy",
    "t_starts",
)
ARRAY = ("a_equals", "a_contains", "a_containedBy", "a_overlaps")


@dataclass(frozen=True, slots=True)
class Signature:
    """An operator's name, and the kinds of value that it takes; kind "any" takes all."""

    name: str
    takes: tuple[str, ...]
    is_function: bool = False


def _signatures() -> Mapping[str, Signature]:
    spatial = ("geometry", "geometry")
    rows = [Signature("not", ("boolean",)), Signature("isNull", ("any",))]
    rows += [Signature(name, ("any", "any")) for name in COMPARISONS]
    rows += [Signature(name, ("number", "number")) for name in ARITHMETIC]
    rows += [Signature(name, ("text",)) for name in ("casei", "accenti")]
    rows += [Signature("like", ("text", "text")), Signature("between", ("any", "any", "any"))]
    rows += [Signature("in", ("any", "array"))]
    rows += [Signature(name, ("time", "time")) for name in TEMPORAL]
    rows += [Signature(name, ("array", "array")) for name in ARRAY]
    rows += [
        Signature(row.operator, spatial, is_function=not row.operator.startswith("s_"))
        for row in RELATIONS.values()
    ]
    rows += [
        Signature("relate", (*spatial, "text"), is_function=True),
        Signature("dwithin", (*spatial, "number"), is_function=True),
    ]
    return {row.name.lower(): row for row in rows}


SIGNATURES = _signatures()
FUNCTIONS = tuple(row.name for row in SIGNATURES.values() if row.is_function)
