"""The façade: a set of subscriptions that events are matched against, in one process."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, Self, overload

import pyarrow as pa

from contrada.errors import InvalidInput, Remedy, UnknownSubscription
from contrada.files import is_same_crs, read_rows
from contrada.files.crs import spell_crs
from contrada.files.snapshot import open_snapshot
from contrada.limits import FILTERS_MAX
from contrada.matcher.adding import IncomingRows
from contrada.matcher.explanations import Why, explain_why
from contrada.matcher.geoframe import find_in_list, find_in_rows, require_geopandas
from contrada.matcher.inside import plan_run
from contrada.matcher.keeping import AttributeKeeping, EventKeeping, check_kept, read_kept
from contrada.matcher.match_run import (
    Counts,
    choose_id_column,
    count_threads,
    judged,
    match_list,
    read_column_name,
)
from contrada.matcher.saving import MatcherSettings, load_subscriptions, save_subscriptions
from contrada.matcher.shown import ShownSubscription, Stats
from contrada.matching.engines import DEFAULT_ENGINE, make_engine
from contrada.matching.ids import as_key, read_id
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscribing import (
    OnBad,
    PredicateReader,
    find_miscased,
    read_attribute,
)
from contrada.model.event import GEOMETRY, Event, read_event
from contrada.model.relation import Relation, find_relation
from contrada.model.subscription import Id, Predicate, Subscription
from contrada.showing import brief
from contrada.threads import ProcessLock

if TYPE_CHECKING:
    import geopandas

_DEFAULTS = ("intersects", GEOMETRY)  # of the arguments of `add` that go with a geometry


_MATCHER = "the matcher"


class _State(NamedTuple):
    """All of a matcher that changes; a change swaps it as a whole."""

    subscriptions: SubscriptionSet
    crs: str | None
    stated_by: str = _MATCHER  # who stated the system


class Matcher:
    """Finds, for each event, the subscriptions that it satisfies, exactly.

    Every method may be called from any thread. A call sees the subscriptions as of its start, and
    one that fails changes nothing.
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
        `simplify` takes out of predicates what changes no answer. Other options are the engine's
        own; those of `crtree` are `evaluator` ("exact" or "discrete"), `split` ("quadratic" or
        "constraint"), and for the discrete evaluator `density`, `universe` and `halo`; those of
        `ahs` are `level` and `universe`. `ahs` and the discrete evaluator are approximate and
        never simplify.
        """
        if not isinstance(simplify, bool):
            raise InvalidInput(f"simplify must be True or False, not {brief(simplify)}")
        self._engine = make_engine(engine, options)
        self.engine = engine
        self._options = options
        self.simplify = simplify
        self._filters_max = filters_max
        self._reader = PredicateReader(filters_max, simplify and self._engine.is_simplified)
        empty = SubscriptionSet(
            self._engine.make_index, find_event_faults=self._engine.find_event_faults
        )
        self._state = _State(empty, spell_crs(crs, "crs"))  # refuses what names no system
        self._writing = ProcessLock()
        self._counts = Counts()

    @property
    def crs(self) -> str | None:
        """Name the coordinate system of all coordinates; None while no table has stated one."""
        return self._state.crs

    @property
    def _subscriptions(self) -> SubscriptionSet:
        return self._state.subscriptions

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: object) -> bool:
        key = as_key(id)
        return key is not None and self._subscriptions.get(key) is not None

    def __iter__(self) -> Iterator[Id]:
        return iter(sorted(s.id for s in self._subscriptions))

    def __repr__(self) -> str:
        crs = "" if self.crs is None else f" crs={brief(self.crs, 40)}"
        return f"<Matcher engine={self.engine!r} subscriptions={len(self)}{crs}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled or copied: indexes, locks and threads stay where they are."""
        raise InvalidInput(
            "a Matcher cannot be pickled or copied; save(path) writes it, "
            "and Matcher.open(path) reads it, in another process or in this one"
        )

    def add(
        self,
        id: Id,
        filter: str | Mapping[str, Any] | bool | None = None,
        *,
        geometry: Any = None,
        relation: str | Relation = "intersects",
        where: str | Mapping[str, Any] | None = None,
        attribute: str = GEOMETRY,
        subscriber: Id | None = None,
        replace: bool = False,
        repair: bool = False,
    ) -> None:
        """Add a subscription: a predicate as CQL2 text or JSON, or a geometry with a relation."""
        key = read_id(id, "add")
        place = f"subscription {key!r}"
        try:
            predicate = self._predicate(place, filter, geometry, relation, where, attribute, repair)
        except InvalidInput as error:
            raise error if error.message.startswith(place) else error.within(place) from None
        who = None if subscriber is None else read_id(subscriber, f"{place}, subscriber")
        self._change([Subscription(key, predicate, who)], replace, name=place)

    def _predicate(
        self,
        place: str,
        filter: str | Mapping[str, Any] | bool | None,
        geometry: Any,
        relation: str | Relation,
        where: str | Mapping[str, Any] | None,
        attribute: str,
        repair: bool,
    ) -> Predicate:
        """Make the predicate of `add` from a filter, or from a geometry and what goes with it."""
        if filter is None and geometry is None:
            raise InvalidInput("there is neither a filter nor a geometry")
        if filter is not None:
            if geometry is not None:
                raise InvalidInput("a filter and a geometry are one too many; `where` goes with it")
            for name, value in (("where", where), ("relation", relation), ("attribute", attribute)):
                is_default = value is None or (isinstance(value, str) and value in _DEFAULTS)
                if not is_default:
                    raise InvalidInput(f"`{name}` ({brief(value)}) goes with a geometry")
            return self._reader.parse(filter)
        event = Event({GEOMETRY: geometry}, repair=repair, place=place)
        shape = event.geometry(GEOMETRY)
        if shape is None:
            raise InvalidInput(f"{brief(geometry)} is empty or not a geometry")
        name = read_attribute(attribute, place)
        return self._reader.combine(shape, find_relation(relation), name, where)

    def add_many(
        self,
        source: Any,
        *,
        id: str | None = None,
        replace: bool = False,
        repair: bool = False,
        quarantine: bool = False,
        on_bad: OnBad | None = None,
    ) -> int:
        """Add a subscription for each row of a table or file, all or none; give their number.

        `id` names the column of ids (default: `id` if there is one, else the row's number).
        `repair` mends invalid geometries and leaves out what it cannot mend; `quarantine` leaves
        out every bad row, also one whose id is taken; `on_bad` is called with row, id and reason
        for each row that was mended or left out.
        """
        rows = read_rows(source)
        self._check_crs(rows.crs, rows.name)
        id_column = choose_id_column(rows, id, Remedy.SUBSCRIPTION_ID)
        miscased = find_miscased(rows.schema.names)
        if miscased is not None:
            warnings.warn(f"{rows.name}: {miscased}", stacklevel=2)
        incoming = IncomingRows(rows, id_column, id, quarantine, on_bad)
        found = incoming.read(self._reader, repair)
        self._change(found.subscriptions, replace, rows.crs, rows.name, incoming.settle)
        self._counts.add(
            subscriptions_mended=found.mended, subscriptions_left_out=incoming.tell_left_out()
        )
        return incoming.added

    def remove(self, id: Id) -> None:
        """Remove a subscription."""
        with self._writing:
            found = self._find(id)
            changed = self._subscriptions.changed([found.id], [])
            self._state = self._state._replace(subscriptions=changed)

    def get(self, id: Id) -> ShownSubscription:
        """Give a subscription by its id."""
        found = self._find(id)
        return ShownSubscription(found.id, found.predicate, found.subscriber)

    def _find(self, id: Id) -> Subscription:
        key = as_key(id)
        found = None if key is None else self._subscriptions.get(key)
        if found is None:
            raise UnknownSubscription(f"no subscription has the id {brief(id)}")
        return found

    def match(self, event: Mapping[str, Any], *, repair: bool = False) -> list[Id]:
        """Find the subscriptions that one event satisfies, as sorted ids."""
        subscriptions = self._subscriptions
        return subscriptions.match(judged(read_event(event, repair=repair), subscriptions))

    def subscribers(self, event: Mapping[str, Any], *, repair: bool = False) -> list[Id]:
        """Find whom to forward an event to, sorted, each once.

        A subscription without a subscriber forwards to nobody.
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
        """Match each row of a table or file, or each event of a list.

        The answer is a table of `event` and `subscription`, and of the columns of the events that
        `keep` names (of events in a list, attributes). A geometry that is kept is WKB, and the
        mended one where it was mended.

        Rows come in the events' order, then in the order of subscription ids. `threads` is the
        number of threads (None: one for each core). `batches=True` gives an iterator of record
        batches, for more than fits in memory. Bad rows are refused, or with `repair` mended, or
        with `quarantine` left out; `on_bad` hears of each with row, id and reason.
        """
        count_threads(threads)  # refuses what is no number of threads
        if isinstance(events, list | tuple):
            table = self._match_list(events, id, repair, quarantine, on_bad, read_kept(keep))
            return iter(table.to_batches()) if batches else table
        rows = read_rows(events)
        kept = check_kept(keep, rows)
        run = plan_run(self, rows, id, repair, quarantine, on_bad, kept)
        schema, found = run.schema, run.batches(threads)
        if kept:
            keeping = EventKeeping({name: name for name in kept}, run)
            schema = pa.schema([*schema, *keeping.fields])
            found = keeping.batches(threads, schema)
        return found if batches else pa.Table.from_batches(found, schema)

    def _match_list(
        self,
        events: Sequence[Any],
        id: str | None,
        repair: bool,
        quarantine: bool,
        on_bad: OnBad | None,
        kept: Sequence[str] = (),
        rows: list[int] | None = None,
    ) -> pa.Table:
        read_column_name(id)
        subscriptions = self._subscriptions
        keeping = AttributeKeeping(kept, subscriptions.geometry_attributes, repair)
        table = match_list(
            subscriptions,
            events,
            id_attribute=id,
            repair=repair,
            quarantine=quarantine or repair,
            on_bad=on_bad,
            counts=self._counts,
            on_matched=keeping.take,
            rows=rows,
        )
        return keeping.beside(table)

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
        """Match as `match_many` does; give a GeoDataFrame of the answer and the events.

        It has a row for each pair, in the same order: `event`, `subscription` and the columns of
        the event, with geometries as they were matched (flat, and mended with `repair`). The index
        is the row of the event. A column of the events that is itself called `event` or
        `subscription` becomes `event_of_event` or `subscription_of_event`.
        """
        require_geopandas()
        count_threads(threads)
        read_as_geometry = self._subscriptions.geometry_attributes
        if isinstance(events, list | tuple):
            rows_found: list[int] = []
            pairs = self._match_list(events, id, repair, quarantine, on_bad, rows=rows_found)
            found = find_in_list(pairs, rows_found, events, id, read_as_geometry, repair=repair)
            return found.as_frame(self.crs)
        rows = read_rows(events).whole()
        run = plan_run(self, rows, id, repair, quarantine, on_bad)
        id_column = choose_id_column(rows, id, Remedy.EVENT_ID)
        found = find_in_rows(run, rows, id_column, read_as_geometry, threads)
        return found.as_frame(rows.crs or self.crs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot: the subscriptions as they are now, the engine and its options.

        It appears at the path whole or not at all; what was there before stays until then. The
        same subscriptions and options give the same bytes, whatever came and went before.
        """
        subscriptions, crs, _ = self._state
        settings = MatcherSettings(
            self.engine, self._options, bool(self.simplify), crs, self._filters_max
        )
        save_subscriptions(path, subscriptions, settings)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Make a matcher of a snapshot that `save` wrote; it can be changed like any other.

        A file that is damaged, cut off, no snapshot or of a newer format is refused.
        """
        snapshot = open_snapshot(path)
        settings = MatcherSettings.of(snapshot)
        try:
            matcher = cls(
                settings.engine,
                simplify=settings.simplify,
                crs=settings.crs,
                filters_max=settings.filters_max,
                **settings.options,
            )
        except (InvalidInput, TypeError) as error:  # the latter: an option of another name's
            raise InvalidInput(f"{snapshot.name}: {error}") from error
        found = load_subscriptions(snapshot, matcher._reader)
        matcher._change(found, replace=False, name=snapshot.name)
        return matcher

    def why(self, id: Id, event: Mapping[str, Any], *, repair: bool = False) -> Why:
        """Show each constraint of a subscription with its value on an event.

        The values are those that the engine gives; where it is approximate, the exact ones are
        shown as well.
        """
        subscriptions, subscription = self._subscriptions, self._find(id)
        asked = judged(read_event(event, repair=repair), subscriptions)
        return explain_why(subscription, asked, self._engine.make_index)

    def stats(self) -> Stats:
        """Count subscriptions, what the index holds, and rows mended and left out so far.

        The figures are a dictionary, which a notebook shows as a table.
        """
        counts = self._counts.as_dict()
        return Stats({"engine": self.engine, **self._subscriptions.stats(), **counts})

    def _change(
        self,
        added: list[Subscription],
        replace: bool,
        crs: str | None = None,
        name: str = "add",
        settle: Callable[[list[tuple[int, InvalidInput]]], object] | None = None,
    ) -> None:
        """Swap in the version with the added subscriptions, or refuse all of them.

        `settle` gets the faults by position, and may raise: else the others are added.
        """
        with self._writing:
            known = self._subscriptions
            _check_kind(added, known, name)
            faults: list[tuple[int, InvalidInput]] = []
            latest: dict[Id, Subscription] = {}
            for position, subscription in enumerate(added):
                is_taken = subscription.id in latest or known.get(subscription.id) is not None
                fault = self._find_fault(subscription, is_taken and not replace)
                if fault is None:
                    latest[subscription.id] = subscription
                elif settle is None:
                    who = f"subscription {subscription.id!r}"
                    raise fault.within(name if name == who else f"{name}, {who}")
                else:
                    faults.append((position, fault))
            if settle is not None:
                settle(faults)
            self._check_crs(crs, name)
            changed = known.changed(latest if replace else (), list(latest.values()))
            self._state = self._stating(crs, name)._replace(subscriptions=changed)

    def _find_fault(self, subscription: Subscription, is_taken: bool) -> InvalidInput | None:
        """Say why a subscription cannot be added, if it cannot."""
        if is_taken:
            return InvalidInput(
                f"the id {subscription.id!r} is already taken",
                remedies=[Remedy.REPLACE],
            )
        try:
            self._engine.check(subscription)
        except InvalidInput as error:
            return error
        return None

    def _adopt_crs(self, crs: str | None, name: str) -> None:
        """Take the coordinate system of the first table that states one."""
        self._check_crs(crs, name)
        if crs is None or self.crs is not None:
            return  # there is nothing to write, so nothing to wait for
        with self._writing:
            self._check_crs(crs, name)
            self._state = self._stating(crs, name)

    def _stating(self, crs: str | None, name: str) -> _State:
        """Give the state in which a table has stated its coordinate system, if it is the first."""
        state = self._state
        if crs is None or state.crs is not None:
            return state
        return state._replace(crs=crs, stated_by=_MATCHER if name == "table" else name)

    def _check_crs(self, crs: str | None, name: str) -> None:
        """Refuse a table in another coordinate system than the one that was stated before."""
        _, own, who = self._state
        if crs is not None and own is not None and not is_same_crs(crs, own):
            raise InvalidInput(f"{name} is in {crs:.60}, {who} in {own:.60}; reproject one of them")


def _check_kind(added: list[Subscription], known: SubscriptionSet, name: str) -> None:
    first = next(iter(known), None) or next(iter(added), None)
    for subscription in added:
        assert first is not None
        if isinstance(subscription.id, str) != isinstance(first.id, str):
            raise InvalidInput(
                f"{name}: the ids of a matcher are all strings or all integers; "
                f"{subscription.id!r} comes after {first.id!r}",
                remedies=[Remedy.SUBSCRIPTION_ID],
            )
