"""What the CR-tree paper states: in the text of its section 5, and in Table 3.

Figures 4 and 5 are drawings; where the text says nothing of a value, there is none here.
"""

from dataclasses import dataclass

TITLE = (
    "Konstantinidis, Carzaniga, Wolf: A Content-Based Publish/Subscribe Matching Algorithm for 2D "
    "Spatial Objects (2011), section 5"
)

# Section 5.1: "runs about six times faster than the exact CGAL polygon-intersection algorithm".
SPEEDUP_OVER_INTERSECTION = 6
WRONG_PERCENT = {2_000: 0.089, 12_000: 0.015}  # by density; the second is "about"

# Section 5.2: the value by which Figure 5 is explained.
GAIN_EXAMPLE_DENSITY, GAIN_EXAMPLE_PERCENT = 10_000, 0.02

PREDICATES = (5, 15, 25)  # of Figure 4b
FIGURE_4_DENSITY, TABLE_3_DENSITY = 2_000, 10_000
COLUMNS = ("scan", "CR-tree", "plain", "simplified")  # of Table 3

Times = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set of section 5.2 with its rows of Table 3: ms by type of event, as `COLUMNS`.

    `stand_in` is the layer that we take for it, `only` the column and value of the rows we take.
    """

    label: str
    title: str
    size: int
    times: dict[str, Times]
    stand_in: str
    only: tuple[str, str] | None = None
    doubtful: tuple[str, ...] = ()


DATA_SETS = (
    DataSet(
        "vegetation",
        "Vegetation in southern California",
        85_550,
        {"A": (1841, 73, 67, 0.18), "B": (4000, 89, 78, 0.54), "C": (1512, 7, 4.4, 0.12)},
        "gshhg_shorelines_west",
    ),
    DataSet(
        "natural",
        "Natural features in Rhône-Alpes",
        17_048,
        {"A": (951, 108, 59, 1.4), "B": (1323, 93, 169, 6.4), "C": (851, 7, 72, 0.53)},
        "osm_natural_andorra_malta",
        # With Malta the universe would be sea: 19 of 20 events would meet nothing.
        only=("country", "Andorra"),
        doubtful=("plain", "simplified"),
    ),
    DataSet(
        "buildings",
        "Buildings in central London",
        4_170,
        {"A": (59, 1.4, 0.95, 0.75), "B": (169, 6.4, 5, 1.24), "C": (72, 0.53, 0.32, 0.05)},
        "london_buildings",
    ),
)

# Table 3 is copied as it stands; this is why some of its cells carry a question mark.
DOUBT = (
    "? The paper, in the text that we have of it, gives the same six numbers for natural features "
    "in scenario 2 and for buildings in scenario 1 (59/1.4, 169/6.4, 72/0.53). The first are "
    "probably a slip: they alone would make scenario 2 dearer than scenario 1 with the CR-tree "
    "(169 > 93, 72 > 7)."
)
