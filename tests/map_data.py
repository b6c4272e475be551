"""The data of a map's page, read back: what is drawn where, who is matched, and with whom."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Shape:
    """One drawn shape: what a person sees of it and reads when the pointer is on it."""

    layer: str
    label: str
    is_matched: bool
    partner_count: int
    attributes: dict[str, str]

    @property
    def key(self) -> str:
        """Name an event by its row where the label does not suffice."""
        return self.attributes.get("row", self.label)


def read_page(path: Path) -> dict[str, Any]:
    """Give the data that a page draws."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def read_shapes(data: dict[str, Any], role: str) -> list[Shape]:
    """List the drawn shapes of a role, in the order that pairs count."""
    return [
        Shape(
            layer["name"],
            label,
            layer["matched"][row] == "1",
            layer["partnerCounts"][row],
            {
                column["name"]: column["values"][column["codes"][row]]
                for column in layer["attributes"]
            },
        )
        for layer in data["layers"]
        if layer["role"] == role
        for row, label in enumerate(layer["labels"])
    ]


def read_paths(data: dict[str, Any], number: int = 0) -> list[list[tuple[str, Any]]]:
    """Give each shape of a layer as (kind, coordinates) per path, back in the map's coordinates."""
    layer, frame = data["layers"][number], data["frame"]
    steps = iter(np.array(layer["steps"]).reshape(-1, 2))
    paths = []
    for kind, length in zip(layer["pathKinds"], layer["pathLengths"], strict=True):
        places = np.cumsum([next(steps) for _ in range(length)], axis=0)
        paths.append((kind, places * frame["unit"] + [frame["west"], frame["south"]]))
    assert next(steps, None) is None
    remaining = iter(paths)
    return [[next(remaining) for _ in range(length)] for length in layer["shapeLengths"]]


def read_links(data: dict[str, Any]) -> set[Pair]:
    """Give the links that the page shows, as keys of event and subscription."""
    events, subscriptions = (read_shapes(data, role) for role in ("event", "subscription"))
    numbers = zip(data["pairs"]["events"], data["pairs"]["subscriptions"], strict=True)
    return {(events[event].key, subscriptions[site].key) for event, site in numbers}


def check_page(data: dict[str, Any], pairs: set[Pair]) -> None:
    """Colours, counts and links are those of the pairs; all that matched is drawn."""
    assert read_links(data) == pairs
    for role, keys in (("event", [e for e, _ in pairs]), ("subscription", [s for _, s in pairs])):
        expected = Counter(keys)
        shapes = read_shapes(data, role)
        assert {shape.key for shape in shapes if shape.is_matched} == set(expected), role
        for shape in shapes:
            assert shape.partner_count == expected[shape.key], shape
        layers = [layer for layer in data["layers"] if layer["role"] == role]
        assert sum(layer["matchedTotal"] for layer in layers) == len(expected), role
        assert all(layer["matchedSample"] == "" for layer in layers), role
