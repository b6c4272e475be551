"""A map as one self-contained page: the packaged template with the picture's data inside.

The template draws; this module only writes down what is drawn. Text from data reaches the page as
JSON that holds no `<`, or escaped, and the template never reads it as markup.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.pictures.attributes import ATTRIBUTES_BYTES_MAX, describe_attributes
from contrada.pictures.outlines import starts_of
from contrada.pictures.palette import DARK, LIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contrada.pictures.outlines import Frame, Outlines
    from contrada.pictures.partners import Partners
    from contrada.pictures.picture import DrawnLayer, Picture

LABEL_LENGTH_MAX = 300


def render_page(picture: Picture) -> bytes:
    """Write the picture as an HTML document in UTF-8."""
    template = files("contrada.pictures").joinpath("map.html").read_text(encoding="utf-8")
    blanks = {"title": html.escape(picture.title), "data": _inert_json(_describe(picture))}
    # One pass, so that a title with a blank's name in it stays a title.
    page = re.sub(r"\{\{(title|data)\}\}", lambda blank: blanks[blank[1]], template)
    return page.encode("utf-8", errors="replace")


def _inert_json(value: Any) -> str:
    """Write JSON that cannot end the script element around it."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _describe(picture: Picture) -> dict[str, Any]:
    partners = picture.partners
    attributes = _share_attributes(picture)
    return {
        "summary": list(picture.summary.items()),
        "frame": _describe_frame(picture.frame),
        "palette": {"light": asdict(LIGHT), "dark": asdict(DARK)},
        "layers": [
            _describe_layer(drawn, None if partners is None else partners.counts[number])
            | {"attributes": attributes[number]}
            for number, drawn in enumerate(picture.layers)
        ],
        "pairs": None if partners is None else _describe_pairs(partners),
        "tolerances": {
            "matched": round(picture.tolerances.matched),
            "unmatched": round(picture.tolerances.unmatched),
        },
        "matchedOutside": picture.matched_outside,
    }


def _share_attributes(picture: Picture) -> list[list[dict[str, Any]]]:
    """Return each layer's columns of attributes, as many as there is room for in all."""
    room = ATTRIBUTES_BYTES_MAX
    described = []
    for drawn in picture.layers:
        columns, taken = describe_attributes(drawn.layer.attributes, drawn.rows, room)
        described.append(columns)
        room -= taken
    return described


def _describe_frame(frame: Frame) -> dict[str, Any]:
    return {
        "west": frame.west,
        "south": frame.south,
        "unit": frame.unit,
        "width": round(frame.width),
        "height": round(frame.height),
        "stretch": round(frame.stretch, 6),
        "isLonlat": frame.is_lonlat,
        "opening": [round(place) for place in frame.opening],
    }


def _describe_layer(drawn: DrawnLayer, partner_counts: NDArray[np.int64] | None) -> dict[str, Any]:
    outlines = drawn.outlines
    return {
        "name": drawn.layer.name,
        "role": drawn.layer.role,
        "noun": drawn.layer.noun or drawn.layer.role,
        "words": list(drawn.layer.words),
        "position": drawn.position,
        "kind": outlines.chief_kind(),
        "total": drawn.total,
        "matchedTotal": drawn.matched_total,
        "matchedSample": drawn.matched_sample,
        "unmatchedSample": drawn.unmatched_sample,
        "labels": _labels(drawn.layer.labels, drawn.rows),
        "matched": "".join(np.where(drawn.matched, "1", "0")),
        "partnerCounts": None if partner_counts is None else partner_counts.tolist(),
        "shapeLengths": outlines.shape_lengths.tolist(),
        "pathLengths": outlines.path_lengths.tolist(),
        "pathKinds": "".join(outlines.path_kinds),
        "steps": _steps(outlines).ravel().tolist(),
    }


def _labels(labels: Sequence[str], rows: NDArray[np.intp]) -> list[str]:
    texts = (str(labels[row]) for row in rows.tolist())
    return [
        text if len(text) <= LABEL_LENGTH_MAX else text[: LABEL_LENGTH_MAX - 1] + "…"
        for text in texts
    ]


def _steps(outlines: Outlines) -> NDArray[np.int64]:
    """Return each path's first point as it is and every other as the step from the one before.

    Steps have fewer digits than places, which halves the page.
    """
    steps = np.diff(outlines.coordinates, axis=0, prepend=np.zeros((1, 2), dtype=np.int64))
    firsts = starts_of(outlines.path_lengths)
    steps[firsts] = outlines.coordinates[firsts]
    return steps


def _describe_pairs(partners: Partners) -> dict[str, list[int]]:
    return {
        "events": partners.events.tolist(),
        "subscriptions": partners.subscriptions.tolist(),
    }
