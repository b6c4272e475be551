"""`contrada demo`: the main job on generated data, on a local Spark, with a map of its result."""

import argparse
import time
from contextlib import ExitStack
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from contrada.cli.demo_data import generate
from contrada.cli.drawn_events import as_text, tell_apart
from contrada.cli.match_options import add_conf
from contrada.cli.pair_counts import PairCounts
from contrada.cli.progress import require_tqdm, spark_jobs, waiting
from contrada.cli.report import MatchReport
from contrada.cli.spark_start import check_master, our_errors, our_log, read_conf, start
from contrada.cli.terminal import say, show
from contrada.deferred import compute as pc
from contrada.deferred import parquet as pq
from contrada.errors import InvalidInput, blame
from contrada.files import open_output
from contrada.files.crs import CRS84
from contrada.model.event import GEOMETRY
from contrada.pictures import Layer, draw_map
from contrada.pictures.layers import Role
from contrada.pictures.plate import require_matplotlib

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SITES_FILE, EVENTS_FILE, MATCHES_FILE = (
    "sites.geoparquet",
    "events.geoparquet",
    "matches.geoparquet",
)
_ROW = "row"  # of an event in its file, kept beside its matches
_TASKS = 8  # of the matching, so that all cores have some and the bar has steps


def add_parser(commands: Any, summary: str) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "demo",
        help=summary,
        description="Match generated storms and vehicles against generated sites on a local "
        "Spark, and draw the result.",
        epilog="example: contrada demo --folder /tmp/demo --master 'local[2]' --seed 7",
    )
    parser.add_argument("--folder", default="demo", help="where files go (default: demo)")
    parser.add_argument("--master", default="local[*]", help="Spark master (default: local[*])")
    add_conf(parser)
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the generated data (default: 1)"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="end stdout with one JSON object (default: show a table)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Generate, match, draw and report."""
    started = time.monotonic()
    check(options)
    folder = make_folder(options.folder)
    say("1/4  generating a day of storms and vehicles over sites")
    sites, events = generate(np.random.default_rng(options.seed))
    write_data(folder, sites, events)
    say(f"2/4  starting Spark on {options.master}")
    with our_errors(), our_log():
        spark = start(options.master, read_conf(options.conf), "     starting")
        say("3/4  matching")
        report = match(spark, folder)
    say("4/4  drawing")
    pairs, counts = read_pairs(folder, sites)
    report.subscriptions = sites.num_rows
    report.events_matched = counts.events_matched
    report.subscriptions_matched = counts.subscriptions_matched
    report.files["output"] = str(folder / MATCHES_FILE)
    for name, path in (("map", folder / "map.html"), ("image", folder / "map.png")):
        with waiting(f"     {path}"):
            draw(path, sites, events, pairs, counts, report)
        report.files[name] = str(path)
    report.seconds = time.monotonic() - started
    show(report, on_stderr=options.json)
    if options.json:
        show(report.as_json())


def match(spark: "SparkSession", folder: Path) -> MatchReport:
    """Match the events in a folder on Spark, from GeoParquet to GeoParquet, and count them."""
    from pyspark.sql import functions

    import contrada.spark

    sites = contrada.spark.read_geoparquet(spark, folder / SITES_FILE)
    events = contrada.spark.read_geoparquet(spark, folder / EVENTS_FILE)
    events = events.withColumn(_ROW, functions.col("_metadata.row_index")).repartition(_TASKS)
    with spark_jobs(spark, "     planning"):
        plan = contrada.spark.explain(events, sites)
        answer = contrada.spark.match(events, sites, keep=[_ROW, "time", "kind", "geometry"])
    say(indent(str(plan), " " * 5))
    with spark_jobs(spark, "     matching"):
        matches = contrada.spark.write_geoparquet(answer, folder / MATCHES_FILE, mode="overwrite")
    counts = contrada.spark.counts(answer)  # raises if an event is not accounted for
    say(
        f"     events: {counts.events:,} came in, {counts.evaluated:,} were evaluated, "
        f"{counts.set_aside:,} set aside"
    )
    return MatchReport(events=counts.events, events_left_out=counts.set_aside, matches=matches)


def read_pairs(folder: Path, sites: pa.Table) -> tuple[NDArray[np.int64], PairCounts]:
    """Read the rows of event and site of each match, and count the partners of each row.

    Events go by their row in the file: ids of events may repeat, those of sites cannot.
    """
    matches = pq.read_table(folder / MATCHES_FILE, columns=[_ROW, "subscription"])
    rows = matches[_ROW].to_numpy()
    sites_found = pc.index_in(matches["subscription"], sites["id"].combine_chunks()).to_numpy()
    pairs = np.column_stack([rows, sites_found]).astype(np.int64)
    counts = PairCounts(sites.num_rows)
    counts.add(pairs[:, 0], pairs[:, 1])
    return pairs, counts


def check(options: argparse.Namespace) -> None:
    """Refuse what cannot work, before anything is written."""
    if options.seed < 0:
        raise InvalidInput(f"--seed {options.seed}: must be 0 or more")
    check_master("--master", options.master)
    read_conf(options.conf)
    require_tqdm()
    require_matplotlib()


def make_folder(path: str) -> Path:
    """Make the folder of the demo, where it is not there yet."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise blame(error, f"--folder {path}: cannot be created: {error.strerror}") from error
    return folder


def write_data(folder: Path, sites: pa.Table, events: pa.Table) -> None:
    """Write both tables as GeoParquet, whole or not at all."""
    tables = {SITES_FILE: sites, EVENTS_FILE: events}
    with ExitStack() as stack:
        files = [
            stack.enter_context(
                open_output(folder / name, table.schema, geometry_column=GEOMETRY, crs=CRS84)
            )
            for name, table in tables.items()
        ]
        for file, table in zip(files, tables.values(), strict=True):
            file.write(table)


def draw(
    path: Path,
    sites: pa.Table,
    events: pa.Table,
    pairs: NDArray[np.int64],
    counts: PairCounts,
    report: MatchReport,
) -> None:
    """Draw sites, storms and vehicles, and what matched what."""
    is_storm = np.array(events["kind"].to_pylist()) == "storm"
    order = np.argsort(~is_storm, kind="stable")  # storms before vehicles
    storms, vehicles = np.split(order, [np.count_nonzero(is_storm)])
    partners = counts.of_events(0, events.num_rows)
    layers = [
        _layer("sites", sites, np.arange(sites.num_rows), counts.subscriptions, "subscription"),
        _layer("storms", events, storms, partners, "event"),
        _layer("vehicles", events, vehicles, partners, "event"),
    ]
    summary: dict[str, str | int] = {
        "subscriptions": report.subscriptions,
        "events": report.events,
        "matches": report.matches,
        "events matched": report.events_matched,
    }
    # Events count over the layers, one after the other, while the table goes by time.
    places = np.argsort(order)
    draw_map(
        path,
        layers,
        title="A day of storms and vehicles over insured sites, depots and speed zones",
        summary=summary,
        pairs=np.column_stack([places[pairs[:, 0]], pairs[:, 1]]),
    )


def _layer(
    name: str,
    table: pa.Table,
    rows: NDArray[np.int64],
    partners: NDArray[np.int64],
    role: Role,
) -> Layer:
    """Make a layer of some rows of a table; `partners` counts those of every row."""
    taken = table.take(rows)
    shown = [column for column in taken.column_names if column not in ("id", GEOMETRY)]
    labels = taken["id"].to_pylist()
    attributes = {column: list(map(as_text, taken[column].to_pylist())) for column in shown}
    return Layer(
        name,
        shapely.from_wkb(taken[GEOMETRY].to_numpy()),
        labels,
        partners[rows] > 0,
        role,
        partner_counts=partners[rows],
        attributes=tell_apart(rows, labels) | attributes,
    )
