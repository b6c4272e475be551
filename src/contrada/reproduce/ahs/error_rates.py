"""How often the model is wrong, by level, relation and kinds of geometry; the paper is silent."""

from collections.abc import Callable, Sequence

from contrada.model.relation import RELATIONS, Family
from contrada.pictures.plots import COLOURS, Panel, Series
from contrada.reproduce.ahs.paper import PAPER_LEVEL
from contrada.reproduce.ahs.plan import AhsRun
from contrada.reproduce.ahs_error import GEOMETRY_KINDS, ErrorRow, measure_errors, sum_errors
from contrada.reproduce.reporting import Column, Table, say_prose, say_title

_SINGLE = ("point", "line", "polygon")
_NOTE = "Geometries 4 to 128 cells of level 14 wide, in pairs that mostly meet."

RowKey = Callable[[ErrorRow], str]


def measure_error(run: AhsRun) -> list[ErrorRow]:
    """Compare the model with the exact relations; print and draw the error."""
    say_title(run.reporter, "Ours: wrong answers in %, by level")
    with run.reporter.watch("error by level", 1) as step:
        rows = measure_errors(run.seed, run.plan.error_levels, run.plan.pair_count)
        step()
    _print_levels(run, rows)
    _print_kinds(run, rows)
    say_prose(
        run.reporter,
        f"{run.plan.pair_count:,} pairs of each two kinds, with geometries 4 to 128 cells of level "
        "14 wide. They are hard ones: a quarter have a vertex in common, a quarter lie one in the "
        "other, a quarter are equal where they can be. Pairs more than a cell apart are always "
        "right.",
    )
    _draw_relations(run, rows)
    _draw_kinds(run, rows)
    return rows


def _print_levels(run: AhsRun, rows: Sequence[ErrorRow]) -> None:
    levels = run.plan.error_levels
    table = Table(
        run.reporter,
        [
            Column("relation", is_text=True, width_min=11),
            *(Column(f"{level}", "level", ".2f", 6) for level in levels),
        ],
    )
    keys: tuple[RowKey, ...] = (lambda _: "all", lambda row: row.relation)
    for key in keys:
        for name, (_, shares) in sum_errors(rows, key).items():
            table.add(name, *shares)


def _print_kinds(run: AhsRun, rows: Sequence[ErrorRow]) -> None:
    level = PAPER_LEVEL if PAPER_LEVEL in run.plan.error_levels else run.plan.error_levels[-1]
    shown = [row for row in rows if row.level == level]
    run.reporter.say("")
    title = f"event, level {level}"
    table = Table(
        run.reporter,
        [
            Column(title, is_text=True, width_min=12),
            *(Column(kind, "subscription", ".2f") for kind in GEOMETRY_KINDS),
        ],
    )
    shares = sum_errors(shown, lambda row: f"{row.event} {row.subscription}")
    for event in GEOMETRY_KINDS:
        table.add(event, *(shares[f"{event} {kind}"][1][0] for kind in GEOMETRY_KINDS))


def _draw_relations(run: AhsRun, rows: Sequence[ErrorRow]) -> None:
    """Draw one panel for each family of relations, colours twice, the second time dashed."""
    panels = []
    for family, title in (
        (Family.OGC, "OGC relations, all kinds"),
        (Family.EGENHOFER, "Egenhofer relations, areas"),
    ):
        names = [name for name, relation in RELATIONS.items() if relation.family is family]
        panels.append(_make_panel(rows, names, lambda row: row.relation, title))
    _draw(run, "error-by-relation.png", panels, "The error of the model by level and relation")


def _draw_kinds(run: AhsRun, rows: Sequence[ErrorRow]) -> None:
    panels = [
        _make_panel(
            [row for row in rows if row.event == event],
            list(GEOMETRY_KINDS),
            lambda row: row.subscription,
            f"{event} as event",
        )
        for event in _SINGLE
    ]
    _draw(
        run,
        "error-by-kind.png",
        panels,
        "The error of the model by level and kinds; in colours: the subscription",
    )


def _make_panel(rows: Sequence[ErrorRow], names: Sequence[str], key: RowKey, title: str) -> Panel:
    shares = sum_errors(rows, key)
    series = [
        Series(
            name,
            *shares[name],
            number % len(COLOURS),
            "solid" if number < len(COLOURS) else "dashed",
        )
        for number, name in enumerate(names)
        if name in shares
    ]
    levels = sorted({row.level for row in rows})
    return Panel(series, title, names={float(level): f"{level}" for level in levels})


def _draw(run: AhsRun, name: str, panels: Sequence[Panel], title: str) -> None:
    run.draw(
        name,
        panels,
        title=title,
        note=_NOTE,
        x_label="level of the quadtree",
        y_label="% of answers that are wrong",
        scale="log with zero",
    )
