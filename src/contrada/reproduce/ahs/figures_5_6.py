"""Figures 5 and 6: tables, drawings, and the paper's word beside ours."""

from collections.abc import Sequence
from statistics import mean, median

from contrada.pictures.plots import Panel, Series
from contrada.reproduce.ahs.paper import GAIN_OF_INDEXING, GAIN_OF_MATCHING, PAPER_LEVEL
from contrada.reproduce.ahs.plan import AhsRun
from contrada.reproduce.ahs.shapes import SHAPE_KINDS
from contrada.reproduce.ahs.timing import write_us
from contrada.reproduce.ahs.workers import WORKER_COUNTS, Subject, measure_workers
from contrada.reproduce.reporting import (
    Column,
    Table,
    compare,
    say_prose,
    say_title,
    write_spread,
    write_times,
)

_LARGE = 3  # the largest third of the sizes
_ALIKE = 0.9  # of the time of one worker


def figures_5_6(run: AhsRun) -> list[Subject]:
    """Measure simulated workers, and show indexing and matching."""
    say_title(
        run.reporter,
        f"Figures 5 and 6: 1 to {WORKER_COUNTS[-1]} workers one after another, "
        f"level {PAPER_LEVEL}; µs of the slowest",
    )
    subjects = measure_workers(run)
    for number, step, verb in ((5, "index", "indexing"), (6, "match", "matching")):
        _print(run, subjects, step, f"Figure {number}, {verb}")
        _draw(run, subjects, step, number, verb)
    say_prose(
        run.reporter,
        f"For each of the {len(subjects):,} geometries the partial area matrices of 4, 16, 64 and "
        "256 workers sum to the matrix of one.",
    )
    _compare(run, subjects)
    return subjects


def _print(run: AhsRun, subjects: Sequence[Subject], step: str, title: str) -> None:
    run.reporter.say("")
    table = Table(
        run.reporter,
        [
            Column(title, width_min=22, is_text=True),
            Column("area units", format=",", width_min=11),
            Column("cells", format=",", width_min=8),
            *(Column(f"{count}", "workers", width_min=7) for count in WORKER_COUNTS),
            Column("gain"),
        ],
    )
    points = _of(subjects, "point")
    means = [mean(times) for times in zip(*(p.times(step) for p in points), strict=True)]
    cells = (f"points, mean of {len(points)}", 1, 1, *map(write_us, means))
    table.add(*cells, write_times(means[0] / means[-1]))
    for kind in SHAPE_KINDS[1:]:
        shown = _of(subjects, kind)
        for subject in shown[:: max(1, len(shown) // 8)] + shown[-1:]:
            times = map(write_us, subject.times(step))
            gain = write_times(subject.gain(step))
            table.add(kind, subject.size, subject.cell_count, *times, gain)


def _of(subjects: Sequence[Subject], kind: str) -> list[Subject]:
    """Return those of a kind, the smallest first."""
    found = [subject for subject in subjects if subject.kind == kind]
    return sorted(found, key=lambda subject: subject.size)


def _large(subjects: Sequence[Subject], kind: str) -> list[Subject]:
    """Return the largest third of a kind."""
    found = _of(subjects, kind)
    return found[-max(1, len(found) // _LARGE) :]


def _compare(run: AhsRun, subjects: Sequence[Subject]) -> None:
    rows: list[tuple[str, str | None, str | None]] = []
    for step, verb, paper in (
        ("index", "indexing", GAIN_OF_INDEXING),
        ("match", "matching", GAIN_OF_MATCHING),
    ):
        for kind in SHAPE_KINDS[1:]:
            gains = write_spread(subject.gain(step) for subject in _large(subjects, kind))
            rows.append((f"256 workers are faster at {verb}: the largest {kind}s", paper, gains))
        kinds = [median(_one(subjects, kind, step)) for kind in SHAPE_KINDS]
        is_so = "yes" if kinds[0] < kinds[1] < kinds[2] else "no"
        medians = ", ".join(write_us(us) for us in kinds)
        rows.append((f"{verb}: point < line < polygon", "yes", f"{is_so} (medians {medians} µs)"))
    for kind in SHAPE_KINDS[1:]:
        spreads = write_spread(subject.spread for subject in _large(subjects, kind))
        rows.append(
            (f"all cells to those of the fullest worker: the largest {kind}s", None, spreads)
        )
    alike = [s for s in subjects if s.kind != "point" and _is_alike(s)]
    count = len(subjects) - len(_of(subjects, "point"))
    rows.append(
        (
            "four workers sometimes take as long as one",
            "yes",
            f"{len(alike)} of {count} at indexing",
        )
    )
    compare(run.reporter, "the text on Figures 5 and 6", rows)


def _one(subjects: Sequence[Subject], kind: str, step: str) -> list[float]:
    return [subject.times(step)[0] for subject in _of(subjects, kind)]


def _is_alike(subject: Subject) -> bool:
    return subject.splits[1].index_us > _ALIKE * subject.splits[0].index_us


def _draw(run: AhsRun, subjects: Sequence[Subject], step: str, number: int, verb: str) -> None:
    points = _of(subjects, "point")
    means = [mean(times) for times in zip(*(p.times(step) for p in points), strict=True)]
    places = list(range(len(WORKER_COUNTS)))
    names = {float(place): f"{count}" for place, count in zip(places, WORKER_COUNTS, strict=True)}
    panels = [
        Panel(
            [Series("", [place], [us], place) for place, us in zip(places, means, strict=True)],
            f"points, mean of {len(points)}",
            names=names,
            x_label="workers",
        )
    ]
    for kind in SHAPE_KINDS[1:]:
        shown = _of(subjects, kind)
        panels.append(
            Panel(
                [
                    Series(
                        f"{count} worker{'s' if count > 1 else ''}",
                        [subject.size for subject in shown],
                        [subject.times(step)[place] for subject in shown],
                        place,
                    )
                    for place, count in enumerate(WORKER_COUNTS)
                ],
                f"{kind}s",
                is_x_log=True,
            )
        )
    run.draw(
        f"figure-{number}.png",
        panels,
        title=f"Figure {number}: {verb} one geometry with 1 to 256 workers, level {PAPER_LEVEL}",
        note="The slowest of the workers, which run one after another.",
        x_label="size in area units (cells of level 14)",
        y_label="µs of the slowest worker",
        scale="log",
    )
