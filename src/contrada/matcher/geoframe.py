"""An answer as a GeoDataFrame: each pair beside the attributes and the geometry of its event.

Pairs and events are brought together by row, never by id, since ids may repeat.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Geometries
from contrada.errors import InvalidInput, MissingPackage, blaming_memory
from contrada.files import Rows
from contrada.files.shared_values import write_out
from contrada.files.time_texts import python_values, written_values
from contrada.matcher.match_run import MatchRun
from contrada.model.event import GEOMETRY, Event, read_event
from contrada.model.geometry import as_array
from contrada.model.nesting import is_container
from contrada.showing import brief

if TYPE_CHECKING:
    import geopandas
    import pandas as pd

_NULLABLE = {
    f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@dataclass(frozen=True, slots=True)
class FoundPairs:
    """Pairs, the row of the event of each, and of that event attributes and geometries."""

    pairs: pa.Table
    rows: NDArray[np.int64]
    attributes: Mapping[str, Any]
    geometries: Mapping[str, Geometries]

    def as_frame(self, crs: str | None) -> "geopandas.GeoDataFrame":
        """Make the frame; the first geometry is the active one."""
        import geopandas
        import pandas as pd

        columns = {name: _as_series(self.pairs[name]) for name in self.pairs.column_names}
        for name, values in self.attributes.items():
            columns[_free_name(name, columns)] = values
        geometries = [_free_name(name, columns) for name in self.geometries]
        for name, shapes in zip(geometries, self.geometries.values(), strict=True):
            columns[name] = geopandas.GeoSeries(shapes, crs=crs)
        frame = pd.DataFrame(columns).set_index(pd.Index(self.rows, name="row"))
        return geopandas.GeoDataFrame(frame, geometry=geometries[0], crs=crs)


def require_geopandas() -> None:
    """Raise MissingPackage, with the remedy, where GeoPandas is not installed."""
    try:
        import geopandas  # noqa: F401
    except ImportError as error:
        raise MissingPackage(
            "match_frame needs GeoPandas, which is not installed: pip install geopandas"
        ) from error


@blaming_memory()
def find_in_rows(
    run: MatchRun,
    rows: Rows,
    id_column: str | None,
    read_as_geometry: Collection[str],
    threads: int | None,
) -> FoundPairs:
    """Match the rows of a table or file; `rows` must have all columns."""
    schema = rows.schema
    names = _choose_geometries(
        schema.names, [*rows.geometry_columns, *sorted(read_as_geometry)], rows.name
    )
    kept = [field for field in schema if field.name not in {*names, id_column}]
    pairs: list[pa.RecordBatch] = []
    places: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    attributes: dict[str, list[pa.Array]] = {field.name: [] for field in kept}
    shapes: dict[str, list[Geometries]] = {name: [np.empty(0, object)] for name in names}
    for matched in run.matched(threads):
        batch, taken = matched.events.batch, pa.array(matched.rows)
        pairs.append(run.as_pairs(matched))
        places.append(matched.rows + matched.events.first_row)
        for field in kept:
            values = write_out(batch.raw(field.name).take(taken), field.type)
            attributes[field.name].append(values)
        for name, geometries in shapes.items():
            geometries.append(batch.drawn(name).take(matched.rows))
    return FoundPairs(
        pa.Table.from_batches(pairs, run.schema),
        np.concatenate(places),
        {f.name: _as_column(pa.chunked_array(attributes[f.name], f.type), f.name) for f in kept},
        {name: np.concatenate(geometries) for name, geometries in shapes.items()},
    )


def find_in_list(
    pairs: pa.Table,
    rows: Sequence[int],
    events: Sequence[Any],
    id_attribute: str | None,
    read_as_geometry: Collection[str],
    *,
    repair: bool,
) -> FoundPairs:
    """Put the attributes of events that come as a list beside the pairs that were found."""
    read = {row: read_event(events[row], repair=repair) for row in dict.fromkeys(rows)}
    all_names = list(dict.fromkeys(name for event in read.values() for name in event.names()))
    known = all_names if read else [GEOMETRY]
    names = _choose_geometries(known, sorted(read_as_geometry), "events")
    others = [name for name in all_names if name not in {*names, id_attribute or "id"}]
    return FoundPairs(
        pairs,
        np.array(rows, np.int64),
        {name: _guess_series([read[row].value(name) for row in rows]) for name in others},
        {name: as_array([_geometry_of(read[row], name) for row in rows]) for name in names},
    )


def _choose_geometries(names: Collection[str], more: Sequence[str], place: str) -> list[str]:
    """List the attributes that become columns of geometries: `geometry` and some more, if there."""
    found = [name for name in (GEOMETRY, *more) if name in names]
    if not found:
        raise InvalidInput(
            f"{place}: there is no geometry for a GeoDataFrame; match_many returns a table, "
            "which to_pandas() turns into a DataFrame"
        )
    return list(dict.fromkeys(found))


def _geometry_of(event: Event, name: str) -> BaseGeometry | None:
    try:
        return event.geometry(name)
    except InvalidInput:  # one that no subscription reads, so that nobody judged it
        return None


def _free_name(name: str, taken: Collection[str]) -> str:
    """Return the name of an event's column, changed where the answer has one of that name."""
    while name in taken:
        name = f"{name}_of_event"
    return name


def _guess_series(values: Sequence[Any]) -> "pd.Series[Any]":
    """Return values as a pandas series: of one type where all are, else as they are.

    Arrow finds the type; it must not see lists and mappings, into which it goes without end.
    """
    import pandas as pd

    array = None
    if not any(map(is_container, values)):
        with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
            array = pa.array(values)
    if array is None or pa.types.is_nested(array.type):
        return pd.Series(values, dtype=object)
    return _as_series(pa.chunked_array([array]))


def _as_column(column: pa.ChunkedArray, name: str) -> "pd.Series[Any]":
    try:
        return _as_series(column)
    except InvalidInput as fault:
        raise fault.within(f"column {brief(name)}") from fault


def _as_series(column: pa.ChunkedArray) -> "pd.Series[Any]":
    """Return a column as a pandas series; whole numbers stay whole beside nulls."""
    import pandas as pd
    from pandas.api.types import pandas_dtype

    while pa.types.is_dictionary(column.type):
        chunks = [chunk.dictionary_decode() for chunk in column.chunks]
        column = pa.chunked_array(chunks, column.type.value_type)
    if pa.types.is_integer(column.type) and column.null_count:
        return column.to_pandas(types_mapper=lambda kind: pandas_dtype(_NULLABLE[str(kind)]))
    try:
        if not _is_for_pandas(column.type):
            return pd.Series(python_values(column), dtype=object)
        return column.to_pandas()
    except pa.ArrowNotImplementedError:  # of narrow decimals in lists, say
        return pd.Series(python_values(column), dtype=object)
    except (ArithmeticError, LookupError, ValueError):  # a moment, or an unknown zone
        return pd.Series(written_values(column), dtype=object)


def _is_for_pandas(kind: pa.DataType) -> bool:
    """Whether Arrow may be asked for a pandas series of a type.

    Of unions it knows none, and dictionaries of dictionaries inside others end the process.
    """
    pending = [kind]
    while pending:
        kind = pending.pop()
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
            if pa.types.is_dictionary(kind):
                return False
        if pa.types.is_union(kind):
            return False
        pending += [kind.field(i).type for i in range(kind.num_fields)]
    return True
