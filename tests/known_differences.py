"""placeholder"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """A pair on which Shapely is wrong: the true matrix, Shapely's, and the wrong predicates.

    A predicate counts as wrong if it is by all of its four ways (see search_differences), except
    for those named in `right`.
    """

    a: str
    b: str
    truth: str
    relate: str
    wrong: str = ""
    right: str = ""


KNOWN_DIFFERENCES: tuple[Difference, ...] = ()
