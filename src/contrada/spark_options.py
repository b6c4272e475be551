"""The options of a match on Spark: the same for `match`, `explain` and the command.

Here and not among what runs on Spark, so that the command can list them without PySpark.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from contrada.errors import InvalidInput
from contrada.flags import check_flags

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DURATION_MAX_US = 100 * 366 * 86_400 * 1e6
CHOICES: Mapping[str, tuple[str, ...]] = {  # the first is the default
    "plan": ("auto", "broadcast", "partitioned"),
    "evaluator": ("exact", "area"),
    "output": ("pairs", "counts"),
}


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """What a user may choose; `contrada.spark.match` says what each means."""

    plan: str = CHOICES["plan"][0]
    evaluator: str = CHOICES["evaluator"][0]
    quarantine: bool = False
    repair: bool = False
    strict: bool = False
    keep: Sequence[str] = ()
    output: str = CHOICES["output"][0]
    event_id: str = "id"
    subscription_id: str = "id"
    sample: "DataFrame | None" = None

    def __post_init__(self) -> None:
        """Refuse what is none of the choices."""
        check_flags(quarantine=self.quarantine, repair=self.repair, strict=self.strict)
        for name, choices in CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise InvalidInput(
                    f"{name} {value!r} is unknown; choose one of {', '.join(choices)}"
                )


def read_options(given: Mapping[str, Any], caller: str) -> SparkOptions:
    """Make options of keyword arguments; one that does not exist is refused."""
    names = [field.name for field in fields(SparkOptions)]
    for name in sorted(given.keys() - set(names)):
        raise InvalidInput(f"{caller} has no option {name!r}; it has {', '.join(names)}")
    return SparkOptions(**given)


def read_duration(value: str | float, name: str) -> int:
    """Read a duration, a text such as "2 s" or a number of seconds, as microseconds."""
    units = {"ms": 1e3, "s": 1e6, "min": 6e7, "h": 3.6e9, "d": 8.64e10}
    names = {"second": "s", "minute": "min", "hour": "h", "day": "d", "millisecond": "ms"}
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", str(value))
    unit = "" if found is None else names.get(found[2].removesuffix("s"), found[2] or "s")
    if found is None or unit not in units or isinstance(value, bool):
        raise InvalidInput(
            f"{name} {value!r} is not a duration, such as '2 s', '10 min', '7 days' or a number of "
            "seconds"
        )
    length = float(found[1]) * units[unit]
    if length > _DURATION_MAX_US:
        raise InvalidInput(f"{name} {value!r} is longer than a hundred years")
    return round(length)
