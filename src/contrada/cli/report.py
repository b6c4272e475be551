"""What a run says when it is done: a small table for people, or one JSON object."""

import json
from dataclasses import dataclass, field

RARE = ("mended", "left_out", "without_geometry")  # shown to people only where there are any


@dataclass(slots=True)
class MatchReport:
    """The figures of one run; None where nobody has counted.

    Subscriptions and events are all rows of their files; the figures that begin with their names
    count some of these.
    """

    subscriptions: int = 0
    subscriptions_matched: int | None = 0
    subscriptions_mended: int = 0
    subscriptions_left_out: int = 0
    events: int = 0
    events_matched: int = 0
    events_mended: int = 0
    events_left_out: int = 0
    events_without_geometry: int = 0
    matches: int = 0
    seconds: float = 0.0
    files: dict[str, str] = field(default_factory=dict)

    def figures(self) -> dict[str, int | None]:
        """Return the counts by name."""
        names = [name for name in self.__slots__ if name not in {"seconds", "files"}]
        return {name: getattr(self, name) for name in names}

    def as_json(self) -> str:
        """Write one JSON object on one line."""
        assert self.files.keys().isdisjoint(self.__slots__), "a file hides no figure"
        return json.dumps({**self.figures(), "seconds": round(self.seconds, 3), **self.files})

    def __str__(self) -> str:
        rows = [
            (_label(name), f"{count:,}")
            for name, count in self.figures().items()
            if count or (count is not None and not name.endswith(RARE))
        ]
        rows.append(("seconds", f"{self.seconds:.1f}"))
        files = [(name.replace("_", " "), path) for name, path in self.files.items()]
        width = max(len(name) for name, _ in [*rows, *files])
        value_width = max(len(value) for _, value in rows)
        lines = [f"{name:<{width}}  {value:>{value_width}}" for name, value in rows]
        lines += [f"{name:<{width}}  {path}" for name, path in files]
        return "\n".join(lines)


def _label(name: str) -> str:
    """Name a figure under the one that it is a part of."""
    whole, _, part = name.partition("_")
    return f"  {part.replace('_', ' ')}" if part else whole
