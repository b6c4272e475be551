"""Library, Spark and broker give one answer: the same sets, the same events, the same bad rows.

Sets are filters, and geometries with relations and conditions; events are Features, among them some
whose geometry is none. The broker has them over HTTP, in requests of several sizes. `FUZZ_SEED`
replays a seed.
"""

from __future__ import annotations

import json
from contextlib import closing
from random import Random
from typing import TYPE_CHECKING, Any

import httpx
import pyarrow as pa
import pytest
import shapely

import contrada
import contrada.spark
from fuzz import events, pools, runs
from fuzz.comparing import as_filter, match_table
from fuzz.predicates import Maker
from served_broker import serving

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:constraints read"),  # of columns that a table may lack
    pytest.mark.filterwarnings("ignore:.*which is never true"),  # of other types
]

SUBSCRIPTIONS, EVENTS = 80, 60
PLAIN = (
    *(pa.int64(), pa.float64(), pa.string(), pa.bool_()),
    *(pa.list_(pa.int64()), pa.list_(pa.float64()), pa.list_(pa.string())),
)
RELATIONS = (
    *("intersects", "disjoint", "touches", "crosses", "within", "contains", "overlaps", "equals"),
    *("covers", "coveredBy", "T*F**F***", "FF*FF****", "****T****"),
)
NO_GEOMETRIES = (
    '{"type":"Point","coordinates":[1]}',
    '{"type":"Polygon","coordinates":[[[0,0],[1,1]]]}',
    '{"type":"Nothing","coordinates":[1,2]}',
    '{"type":"LineString","coordinates":[[0,0],["1",2]]}',
    '{"type":"Point"}',
)
Answer = set[tuple[int, str | None]]


def make_events(maker: Maker, random: Random) -> pa.Table:
    """Events whose columns have types that JSON has as well."""
    table = events.table(random, maker.shapes, EVENTS)
    shapes = [make_geometry(maker, random) for _ in range(EVENTS)]
    columns = {"id": table["id"], "geometry": pa.array(shapes, pa.string())}
    for name in table.column_names:
        column = table[name]
        if name in ("g", "h", "place"):
            values = [pools.lattice_shape(random) for _ in range(EVENTS)]
            columns[name] = pa.array(shapely.to_geojson(values), pa.string())
        elif name not in columns and column.type in PLAIN:
            written = [None if is_unwritable(value) else value for value in column.to_pylist()]
            columns[name] = pa.array(written, column.type)
    return pa.table(columns)


def make_geometry(maker: Maker, random: Random) -> str | None:
    """A geometry as GeoJSON, seldom none, and seldom what is no geometry."""
    draw = random.random()
    if draw < 0.05:
        return None
    if draw < 0.15:
        return random.choice(NO_GEOMETRIES)
    is_own = draw < 0.6 and maker.shapes
    shape = random.choice(maker.shapes) if is_own else pools.lattice_shape(random)
    return str(shapely.to_geojson(shape))


def is_unwritable(value: Any) -> bool:
    """Whether JSON has no word for a value: for a number that is none, or infinite."""
    values = value if isinstance(value, list) else [value]
    return any(isinstance(each, float) and each - each != 0 for each in values)


def make_subscriptions(maker: Maker, random: Random) -> list[dict[str, Any]]:
    """Filters, and geometries with relations and conditions."""
    found = []
    for number in range(SUBSCRIPTIONS):
        row: dict[str, Any] = {"id": f"s{number}"}
        if random.random() < 0.5 or not maker.shapes:
            row["filter"] = json.dumps(as_filter(maker.predicate()))
        else:
            row["geometry"] = str(shapely.to_geojson(random.choice(maker.shapes)))
            row["relation"] = random.choice((None, *RELATIONS))
            is_conditional = random.random() < 0.5
            row["where"] = json.dumps(as_filter(maker.predicate(3))) if is_conditional else None
        found.append(row)
    return found


def answer_of_library(table: pa.Table, subscriptions: pa.Table) -> Answer:
    """The pairs, and each bad event with None."""
    matcher = contrada.Matcher()
    matcher.add_many(subscriptions)
    bad: list[int] = []
    answer = match_table(matcher, table, bad).to_pylist()
    return {*((row["event"], row["subscription"]) for row in answer), *((row, None) for row in bad)}


def answer_of_spark(spark: SparkSession, table: pa.Table, subscriptions: pa.Table) -> Answer:
    frames = spark.createDataFrame(table), spark.createDataFrame(subscriptions)
    found = contrada.spark.match(*frames, quarantine=True)
    return {(row["event"], row["subscription"]) for row in found.collect()}


def answer_of_broker(
    client: httpx.Client, name: str, table: pa.Table, rows: list[dict[str, Any]], random: Random
) -> Answer:
    """What a subscriber of its own is delivered of all subscriptions, and which events are bad."""
    for row in rows:
        body = {key: value for key, value in row.items() if key != "id" and value is not None}
        body |= {key: json.loads(body[key]) for key in body.keys() - {"relation"}}
        put = client.put(f"/v1/subscriptions/{name} {row['id']}", json={**body, "subscriber": name})
        assert put.status_code == 201, (row, put.text)
    answer: Answer = set()
    features = [as_feature(row, random) for row in table.to_pylist()]
    begin = 0
    while begin < len(features):
        some = features[begin : begin + random.choice((1, 7, 30))]
        sent = client.post("/v1/events", json={"type": "FeatureCollection", "features": some})
        errors = sent.json().get("errors", [])
        assert sent.status_code == (200 if not errors else 207 if len(errors) < len(some) else 400)
        answer |= {(begin + error["index"], None) for error in errors}
        begin += len(some)
    for delivery in deliveries_of(client, name):
        number = delivery["data"]["event"]["id"]
        answer |= {
            (number, match["subscription"].partition(" ")[2])
            for match in delivery["data"]["matches"]
        }
    assert client.delete(f"/v1/subscribers/{name}").status_code == 200
    return answer


def as_feature(row: dict[str, Any], random: Random) -> dict[str, Any]:
    """An event as a Feature; what is null may as well be missing."""
    geometry = None if row["geometry"] is None else json.loads(row["geometry"])
    properties = {
        name: value
        for name, value in row.items()
        if name not in ("id", "geometry") and (value is not None or random.random() < 0.5)
    }
    return {"type": "Feature", "id": row["id"], "geometry": geometry, "properties": properties}


def deliveries_of(client: httpx.Client, name: str) -> Iterator[dict[str, Any]]:
    query: dict[str, Any] = {"limit": 1_000}
    while True:
        page = client.get(f"/v1/subscribers/{name}/deliveries", params=query).json()
        if not page["deliveries"]:
            return
        yield from page["deliveries"]
        query["after"] = page["next"]


def run(
    spark: SparkSession, folder: Path, seeds: Iterable[int], request: pytest.FixtureRequest
) -> None:
    """Compare seed by seed, over one broker."""
    with serving(folder) as served, closing(httpx.Client(base_url=served.url, timeout=60)) as http:
        for seed in seeds:
            random = Random(seed)
            maker = Maker(random)
            table = make_events(maker, random)
            rows = make_subscriptions(maker, random)
            texts = ("id", "filter", "geometry", "relation", "where")
            kinds = pa.schema([(name, pa.string()) for name in texts])
            subscriptions = pa.Table.from_pylist(rows, kinds)
            wanted = answer_of_library(table, subscriptions)
            for tier, answer in (
                ("Spark", answer_of_spark(spark, table, subscriptions)),
                ("the broker", answer_of_broker(http, f"seed-{seed}", table, rows, random)),
            ):
                wrong = sorted(answer ^ wanted, key=str)[:3]
                shown = [(pair, table.to_pylist()[pair[0]]) for pair in wrong]
                assert not wrong, f"{tier}: {shown}\nReplay it: {runs.command(seed, request)}"


def test_library_spark_and_broker_give_one_answer(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run(spark, tmp_path, runs.few(1), request)


@pytest.mark.soak
def test_library_spark_and_broker_give_one_answer_about_many_sets(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run(spark, tmp_path, runs.many(request), request)
