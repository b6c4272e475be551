"""The façade: a set of subscriptions that events are matched against, in one process."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import pyarrow as pa

from contrada.errors import InvalidInput, Remedy, UnknownSubscription
from contrada.files import read_rows
from contrada.files.crs import spell_given_crs
from contrada.flags import check_flags
from contrada.limits import FILTERS_MAX
from contrada.matcher.adding import combine_arguments
from contrada.matcher.explanations import Why, explain_why
from contrada.matcher.geoframe import find_in_list, find_in_rows, require_geopandas
from contrada.matcher.holding import Holding
from contrada.matcher.inside import add_rows, make_matcher, match_list, plan_run, restore
from contrada.matcher.keeping import EventKeeping, check_kept, read_kept
from contrada.matcher.match_run import Counts, choose_id_column, count_threads, judged
from contrada.matcher.saving import MatcherSettings, load_any, open_any, save_subscriptions
from contrada.matcher.shown import ShownSubscription, Stats
from contrada.matching.engines import DEFAULT_ENGINE, make_engine
from contrada.matching.ids import as_key, read_id, read_ids
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscribing import OnBad, PredicateReader, hear_with
from contrada.model.event import GEOMETRY, read_event
from contrada.model.relation import Relation
from contrada.model.row_columns import DEFAULT_RELATION
from contrada.model.subscription import Id, Subscription
from contrada.showing import brief

if TYPE_CHECKING:
    import geopandas


class Matcher:
    """Finds, for each event, the subscriptions that it satisfies, exactly.

    Every method may be called from any thread. A call sees the subscriptions as of its start, and
    one that fails changes nothing. What the caller must change is raised as `InvalidInput` or one
    of its subclasses in `contrada.errors`; what the machine lacks, such as room on a disk or a
    permission, is raised as `Unavailable`.

    `len(matcher)` counts the subscriptions, `id in matcher` looks one up, and iteration yields
    their ids, sorted. An id is a string or a 64-bit integer, and all ids of a matcher are of one
    of the two kinds.

    >>> matcher = contrada.Matcher()
    >>> matcher.add("gale", "wind > 17")
    >>> matcher.add("coast", geometry="POLYGON((0 0, 9 0, 9 9, 0 0))")
    >>> matcher.match({"wind": 20, "geometry": "POINT(5 1)"})
    ['coast', 'gale']
    >>> len(matcher), "gale" in matcher, list(matcher)
    (2, True, ['coast', 'gale'])
    """

    def __init__(
        self,
        engine: str = DEFAULT_ENGINE,
        *,
        simplify: bool = True,
        crs: str | None = None,
        filters_max: int = FILTERS_MAX,
        **options: Any,
    ) -> None:
        """Make an empty matcher.

        `crs` is the coordinate system of all coordinates; None takes it from the first table that
        states one. A predicate of more than `filters_max` filters in normal form is refused.
        `simplify` drops redundant parts of predicates, which changes no answer; an approximate
        engine never does so. Other options are the engine's own: docs/engines.md describes the
        engines and their options.

        Raises `InvalidInput` for an unknown engine, an option that the engine does not have, and a
        `crs` that is not a coordinate system.
        """
        check_flags(simplify=simplify)
        self._engine, self._engine_name = make_engine(engine, options), engine
        self._options = options
        self._simplify = simplify
        self._filters_max = filters_max
        self._reader = PredicateReader(filters_max, self._engine.effort if simplify else None)
        self._held = Holding(self._engine, spell_given_crs(crs, "crs"))  # refuses no system's name
        self._counts = Counts()

    @property
    def engine(self) -> str:
        """The name of the engine that finds matches, one of those in docs/engines.md."""
        return self._engine_name

    @property
    def simplify(self) -> bool:
        """Whether redundant parts of predicates are dropped, which changes no answer."""
        return self._simplify

    @property
    def crs(self) -> str | None:
        """The coordinate system of all coordinates; None until a table states one."""
        return self._held.crs

    @property
    def _subscriptions(self) -> SubscriptionSet:
        return self._held.subscriptions

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: object) -> bool:
        key = as_key(id)
        return key is not None and key in self._subscriptions

    def __iter__(self) -> Iterator[Id]:
        return iter(self._subscriptions.living_ids())

    def __repr__(self) -> str:
        crs = "" if self.crs is None else f" crs={brief(self.crs, 40)}"
        return f"<Matcher engine={self.engine!r} subscriptions={len(self)}{crs}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle or copy the subscriptions and how the matcher was made; indexes are built anew."""
        held = self._held.now()
        columns, settings = held.subscriptions.living(), self._settings(held.crs)
        return restore, (type(self), settings, columns, held.stated_by)

    def _settings(self, crs: str | None) -> MatcherSettings:
        return MatcherSettings(self.engine, self._options, self.simplify, crs, self._filters_max)

    def add(
        self,
        id: Id,
        filter: str | Mapping[str, Any] | bool | None = None,
        *,
        geometry: Any = None,
        relation: str | Relation = DEFAULT_RELATION,
        where: str | Mapping[str, Any] | None = None,
        attribute: str = GEOMETRY,
        subscriber: Id | None = None,
        replace: bool = False,
        repair: bool = False,
    ) -> None:
        """Add one subscription; `add_many` adds one for each row of a table.

        Either `filter` is the whole predicate, as CQL2 text or JSON, or `geometry` is a geometry
        to which the event's must stand in `relation`, and `where` is CQL2 that must hold as well;
        `attribute` names the event's geometry. `relation` is an OGC name such as "within", an
        `eh…` name, a DE-9IM pattern or a `Relation`. `subscriber` is who receives the matches;
        `subscribers` returns it. `repair` mends an invalid geometry. An id that is taken is refused
        unless `replace` is true.

        Raises `InvalidInput` for a predicate that cannot be read, with the place of the fault, for
        a geometry that is empty or invalid, and for an id that is taken or of the wrong kind.

        >>> matcher = contrada.Matcher()
        >>> matcher.add("gale", "wind > 17 AND name LIKE 'storm %'")
        >>> coast = "POLYGON((0 0, 9 0, 9 9, 0 0))"
        >>> matcher.add("coast", geometry=coast, relation="within", where="wind > 17")
        >>> matcher.match({"wind": 20, "geometry": "POINT(5 1)"})
        ['coast']
        """
        key = read_id(id, "add")
        place = f"subscription {key!r}"
        try:
            predicate = combine_arguments(
                self._reader, filter, geometry, relation, where, attribute, repair
            )
        except InvalidInput as error:
            raise error.within(place) from None
        who = None if subscriber is None else read_id(subscriber, f"{place}, subscriber")
        self._held.add(Subscription(key, predicate, who), replace, place)

    def add_many(
        self,
        source: Any,
        *,
        id: str | None = None,
        replace: bool = False,
        repair: bool = False,
        quarantine: bool = False,
        on_bad: OnBad | None = None,
        discard: Collection[Id] = (),
    ) -> int:
        """Add a subscription for each row of a table or file, and return their number.

        Unlike a loop over `add` it adds all rows or none, and they become visible at once. The
        source is an Arrow table, a GeoDataFrame or a path; the columns are named like the arguments
        of `add`, and any others are ignored. `id` names the column of ids (default: `id` if there
        is one, else the row's number). `repair` mends invalid geometries and leaves out what it
        cannot mend; `quarantine` leaves out every bad row, including one whose id is taken;
        `on_bad` is called with row, id and reason for each row that was mended or left out.
        `discard` lists ids to remove in the same step, so that one collection takes the place of
        another at once; an id that no subscription has is ignored there, unlike in `remove`.

        Raises `InvalidInput` for a bad row, `BadRows` for several, `InvalidInput` for a source
        that is missing, damaged or in another coordinate system than the matcher, and
        `Unavailable` if the machine cannot read it, for want of a permission or a package.

        >>> matcher = contrada.Matcher()
        >>> import pyarrow as pa
        >>> winds = pa.table({"id": ["gale", "storm"], "filter": ["wind > 17", "wind > 24"]})
        >>> matcher.add_many(winds)
        2
        >>> matcher.match({"wind": 20})
        ['gale']
        """
        return add_rows(
            self,
            source,
            id,
            replace=replace,
            repair=repair,
            quarantine=quarantine,
            on_bad=hear_with(on_bad),
            discarded=read_ids(discard, "discard"),
        )

    def remove(self, id: Id) -> None:
        """Remove the subscription that has this id; `add` with `replace` exchanges it instead.

        Raises `UnknownSubscription`, which is also a `KeyError`, if there is none.

        >>> matcher = contrada.Matcher()
        >>> matcher.add("gale", "wind > 17")
        >>> matcher.remove("gale")
        >>> "gale" in matcher
        False
        """
        key = as_key(id)
        if key is None or not self._held.remove(key):
            raise _unknown(id)

    def get(self, id: Id) -> ShownSubscription:
        """Return the subscription that has this id; its `text` is its predicate as CQL2.

        `id in matcher` only asks whether there is one, and `why` evaluates it on an event.

        Raises `UnknownSubscription`, which is also a `KeyError`, if there is none.

        >>> matcher = contrada.Matcher()
        >>> matcher.add("gale", {"op": ">", "args": [{"property": "wind"}, 17]}, subscriber="ops")
        >>> matcher.get("gale")
        <Subscription 'gale' for 'ops': wind > 17>
        """
        found = self._find(id)
        return ShownSubscription(found.id, found.predicate, found.subscriber)

    def _find(self, id: Id) -> Subscription:
        key = as_key(id)
        found = None if key is None else self._subscriptions.get(key)
        if found is None:
            raise _unknown(id)
        return found

    def match(self, event: Mapping[str, Any], *, repair: bool = False) -> list[Id]:
        """Return the ids of the subscriptions that one event satisfies, sorted.

        The event is a mapping of attributes to values, a GeoJSON Feature or a CloudEvent that
        carries one. `match_many` takes many events and is much faster for them; `subscribers`
        returns who should receive the event, not which subscriptions matched. `repair` mends
        invalid geometries.

        Raises `InvalidInput` if the event is not a mapping, or if a geometry that a subscription
        reads is invalid.

        >>> matcher = contrada.Matcher()
        >>> matcher.add("bay", "S_INTERSECTS(area, POLYGON((0 0, 9 0, 9 9, 0 0))) AND hazard > 3")
        >>> matcher.match({"area": "POINT(5 1)", "hazard": 4})
        ['bay']
        """
        subscriptions = self._subscriptions
        return subscriptions.match(judged(read_event(event, repair=repair), subscriptions))

    def subscribers(self, event: Mapping[str, Any], *, repair: bool = False) -> list[Id]:
        """Return the subscribers that should receive one event, sorted, each once.

        Unlike `match` it names no subscriptions: a subscriber counts once however many of its
        subscriptions the event satisfies, and a subscription without a subscriber not at all.

        Raises `InvalidInput` as `match` does.

        >>> matcher = contrada.Matcher()
        >>> matcher.add("gale", "wind > 17", subscriber="ops")
        >>> matcher.add("storm", "wind > 24", subscriber="ops")
        >>> matcher.subscribers({"wind": 30})
        ['ops']
        """
        subscriptions = self._subscriptions
        return subscriptions.subscribers(judged(read_event(event, repair=repair), subscriptions))

    @overload
    def match_many(
        self,
        events: Any,
        *,
        id: str | None = None,
        threads: int | None = None,
        batches: Literal[False] = False,
        repair: bool = False,
        quarantine: bool = False,
        on_bad: OnBad | None = None,
        keep: Sequence[str] = (),
    ) -> pa.Table: ...

    @overload
    def match_many(
        self,
        events: Any,
        *,
        id: str | None = None,
        threads: int | None = None,
        batches: Literal[True],
        repair: bool = False,
        quarantine: bool = False,
        on_bad: OnBad | None = None,
        keep: Sequence[str] = (),
    ) -> Iterator[pa.RecordBatch]: ...

    def match_many(
        self,
        events: Any,
        *,
        id: str | None = None,
        threads: int | None = None,
        batches: bool = False,
        repair: bool = False,
        quarantine: bool = False,
        on_bad: OnBad | None = None,
        keep: Sequence[str] = (),
    ) -> pa.Table | Iterator[pa.RecordBatch]:
        """Match many events, and return the pairs of events and subscriptions as a table.

        The events are an Arrow table, a GeoDataFrame, a path, or a list of what `match` takes; an
        event is known by its id, or by the number of its row. The table has the columns `event` and
        `subscription`, and those columns of the events that `keep` names (attributes, where the
        events are a list); `match_frame` keeps all of them, in a GeoDataFrame. A geometry that is
        kept is WKB, and the mended one where it was mended.

        Rows come in the events' order, then in the order of subscription ids. `id` names the
        column of event ids. `threads` is the number of threads (None: one for each core).
        `batches=True` returns an iterator of record batches instead, for more than fits in memory.
        Bad rows are refused, or with `repair` mended, or with `quarantine` left out; `on_bad` is
        called with row, id and reason for each that was mended or left out.

        Raises `InvalidInput` for the first bad row, for a source that is missing, damaged or in
        another coordinate system than the matcher, and for a column that does not exist;
        `Unavailable` if the machine cannot read the source. With `batches=True` a bad row raises
        when the iterator comes to it.

        >>> matcher = contrada.Matcher()
        >>> matcher.add("gale", "wind > 17")
        >>> import pyarrow as pa
        >>> events = pa.table({"id": [7, 8], "wind": [12, 20]})
        >>> matcher.match_many(events, keep=["wind"]).to_pylist()
        [{'event': 8, 'subscription': 'gale', 'wind': 20}]
        """
        count_threads(threads)  # refuses what is not a number of threads
        check_flags(batches=batches)
        if isinstance(events, list | tuple):
            table, _ = match_list(
                self, events, id, repair, quarantine, hear_with(on_bad), read_kept(keep)
            )
            return iter(table.to_batches()) if batches else table
        rows = read_rows(events)
        kept = check_kept(keep, rows)
        run = plan_run(self, rows, id, repair, quarantine, hear_with(on_bad), kept)
        schema, found = run.schema, run.batches(threads)
        if kept:
            keeping = EventKeeping({name: name for name in kept}, run)
            schema = pa.schema([*schema, *keeping.fields])
            found = keeping.batches(threads, schema)
        return found if batches else pa.Table.from_batches(found, schema)

    def match_frame(
        self,
        events: Any,
        *,
        id: str | None = None,
        threads: int | None = None,
        repair: bool = False,
        quarantine: bool = False,
        on_bad: OnBad | None = None,
    ) -> "geopandas.GeoDataFrame":
        """Match many events, and return the pairs with all columns of the event, as a GeoDataFrame.

        It takes the events and options of `match_many` and has the same rows in the same order:
        `event`, `subscription` and the columns of the event, with geometries as they were matched
        (flat, and mended with `repair`). The index is the row of the event. A column of the events
        that is itself called `event` or `subscription` becomes `event_of_event` or
        `subscription_of_event`. All events are in memory at once; for more than fits, use
        `match_many` with `batches=True`.

        Raises `InvalidInput` and `Unavailable` as `match_many` does, and `MissingPackage`, which is
        a kind of `Unavailable`, without GeoPandas.

        >>> matcher = contrada.Matcher()
        >>> matcher.add("coast", geometry="POLYGON((0 0, 9 0, 9 9, 0 0))")
        >>> matcher.match_frame([{"geometry": "POINT(5 1)", "wind": 20}])
             event subscription  wind     geometry
        row
        0        0        coast    20  POINT (5 1)
        """
        require_geopandas()
        count_threads(threads)
        read_as_geometry = self._subscriptions.geometry_attributes
        if isinstance(events, list | tuple):
            pairs, of = match_list(self, events, id, repair, quarantine, hear_with(on_bad))
            found = find_in_list(pairs, of, events, id, read_as_geometry, repair=repair)
            return found.as_frame(self.crs)
        rows = read_rows(events).whole()
        id_column = choose_id_column(rows, id, Remedy.EVENT_ID)
        rows = rows.identified(id_column)
        run = plan_run(self, rows, id, repair, quarantine, hear_with(on_bad))
        found = find_in_rows(run, rows, id_column, read_as_geometry, threads)
        return found.as_frame(rows.crs or self.crs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot: the subscriptions as they are now, the engine and its options.

        `Matcher.open` makes a matcher of it again, and `add_many` reads its subscriptions alone. It
        appears at the path whole or not at all; what was there before stays until then. The same
        subscriptions and options give the same bytes, whatever was added and removed before.

        Raises `InvalidInput` for a path at which no file can be, and `Unavailable` if the file
        cannot be written: the disk is full, or the folder is read-only.

        >>> matcher = contrada.Matcher()
        >>> matcher.add("gale", "wind > 17")
        >>> matcher.save("winds.contrada")
        >>> contrada.Matcher.open("winds.contrada").match({"wind": 20})
        ['gale']
        """
        held = self._held.now()
        save_subscriptions(path, held.subscriptions.living(), self._settings(held.crs))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a snapshot that `save` wrote as a new matcher, with its engine and options.

        The matcher can be changed like any other; the file stays as it is until the next `save`.
        To add the subscriptions of a snapshot to a matcher that exists, use `add_many`.

        Raises `InvalidInput` for a file that is missing, damaged, truncated, of a newer format or
        not a snapshot, and `Unavailable` for one that may not be read.

        >>> contrada.Matcher().save("empty.contrada")
        >>> contrada.Matcher.open("empty.contrada")
        <Matcher engine='...' subscriptions=0>
        """
        snapshot = open_any(path)
        settings = MatcherSettings.of(snapshot)
        try:
            matcher = make_matcher(cls, settings)
        except (InvalidInput, TypeError) as error:  # the latter: an option of another name's
            raise InvalidInput(f"{snapshot.name}: {error}") from error
        found = load_any(snapshot, matcher._reader)
        matcher._held.change(found, replace=False, name=snapshot.name, is_lazy=True)
        return matcher

    def why(self, id: Id, event: Mapping[str, Any], *, repair: bool = False) -> Why:
        """Explain why one subscription did or did not match one event.

        The answer holds each constraint of the subscription with its value on the event and, for
        space, the DE-9IM matrix. It is true if the subscription matches; print it for a readable
        report. `contrada.explain` needs no event and shows how a predicate is understood. The
        values are those of the engine; where it is approximate, the exact ones are shown as well.

        Raises `UnknownSubscription`, which is also a `KeyError`, if no subscription has this id,
        and `InvalidInput` as `match` does.

        >>> matcher = contrada.Matcher()
        >>> matcher.add("gale", "wind > 17")
        >>> print(matcher.why("gale", {"wind": 12}))
        'gale' does not match (false)
        filter 1 of 1
          false   wind > 17  [wind = 12]
        """
        subscriptions, subscription = self._subscriptions, self._find(id)
        asked = judged(read_event(event, repair=repair), subscriptions)
        return explain_why(subscription, asked, self._engine)

    def stats(self) -> Stats:
        """Return counts: of subscriptions, of what the index holds, and of rows mended or left out.

        They are a dictionary, which a notebook shows as a table. `bytes` are those of the
        subscriptions, without the index. Rows are counted by `add_many`, `match_many` and
        `match_frame`, since the matcher was made. `len` counts the subscriptions alone, without
        building the index of a snapshot that was just opened. It raises nothing.

        >>> matcher = contrada.Matcher()
        >>> matcher.add("gale", "wind > 17 OR gusts > 24")
        >>> stats = matcher.stats()
        >>> stats["subscriptions"], stats["filters"], stats["events_left_out"]
        (1, 2, 0)
        """
        counts = self._counts.as_dict()
        return Stats({"engine": self.engine, **self._subscriptions.stats(), **counts})


def _unknown(id: Id) -> UnknownSubscription:
    return UnknownSubscription(f"no subscription has the id {brief(id)}")
