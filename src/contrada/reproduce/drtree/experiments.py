"""All experiments on the DR-tree: lemmas and properties in the paper's order, then ours."""

import os
import platform
import re
from pathlib import Path

from contrada.reproduce.drtree.accuracy import measure_false_positives
from contrada.reproduce.drtree.bias import measure_bias
from contrada.reproduce.drtree.churn import measure_churn
from contrada.reproduce.drtree.comparators import compare_organisations
from contrada.reproduce.drtree.containment import measure_containment
from contrada.reproduce.drtree.corrections import list_corrections
from contrada.reproduce.drtree.gallery import Gallery
from contrada.reproduce.drtree.growing import OverlayFailed
from contrada.reproduce.drtree.outage import measure_outage
from contrada.reproduce.drtree.paper import TITLE
from contrada.reproduce.drtree.plan import QUICK, DrtreePlan, DrtreeRun
from contrada.reproduce.drtree.sizes import measure_sizes
from contrada.reproduce.drtree.stabilising import measure_healing
from contrada.reproduce.reporting import Reporter, say_prose, say_terms

_TERMS = {
    "peer": "a subscriber; N of them, each with one filter, a box in the unit square",
    "node": "a peer at one level; it has from m to M children of the level below, itself first",
    "legal": "as Definition 3.1 says, completed by what it leaves out; checked from the outside",
    "round": "the time in which every living peer runs every check once",
    "match": "an event, here a point, and a peer in whose filter it lies",
    "visit": "a peer that handles an event, the publisher aside; without a match a false positive",
    "paper's tree": "nothing that goes beyond the paper, but for its corrections",
    "moving": "ours: children move to parents that need to grow less for them",
    "deputies": "ours: copies of what a peer knows, held by who takes over when it is silent",
    "summaries": "ours: parents know which cells of a grid the filters below a child touch",
    "all of ours": "moving, deputies and summaries",
    "paper": "what the paper's text states; – where it states nothing",
}


def reproduce(folder: Path, plan: DrtreePlan, reporter: Reporter, seed: int = 1) -> None:
    """Run all experiments; print tables, draw figures into a folder that is there."""
    run = DrtreeRun(plan, folder, reporter, seed)
    _introduce(run)
    try:
        _run_all(run)
    except OverlayFailed as error:
        raise OverlayFailed(f"{error}; to see it again: {_describe_command(run)}") from error


def _run_all(run: DrtreeRun) -> None:
    measure_sizes(run)
    measure_healing(run)
    gallery = Gallery(run)
    found = measure_false_positives(run, gallery)
    measure_containment(run, gallery)
    compare_organisations(run, gallery, found)
    measure_churn(run)
    measure_outage(run)
    measure_bias(run)
    list_corrections(run)


def _describe_command(run: DrtreeRun) -> str:
    return f"contrada reproduce drtree{' --quick' if run.plan == QUICK else ''} --seed {run.seed}"


def _introduce(run: DrtreeRun) -> None:
    say_prose(run.reporter, TITLE)
    say_prose(
        run.reporter,
        "the paper states no experiments but one sentence; here: a simulator in virtual time on "
        f"one core of {_describe_processor()}; Python {platform.python_version()}; "
        f"seed {run.seed}",
    )
    run.reporter.say("")
    say_terms(run.reporter, _TERMS)


def _describe_processor() -> str:
    """Name the processor, where Linux or Python know it, and count its cores."""
    path = Path("/proc/cpuinfo")
    found = path.is_file() and re.search(r"^model name\s*:\s*(.+)$", path.read_text(), re.MULTILINE)
    name = found[1] if found else platform.processor() or "an unknown processor"
    return f"{name} with {os.cpu_count()} cores"
