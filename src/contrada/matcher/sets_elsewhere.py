"""Subscriptions that lie elsewhere, such as at the workers of a cluster: what is known of them.

Whoever plans a run over events, notes what does not fit and counts needs no more than that. The
subscriptions themselves are fetched only for those who ask for ids or for one after another.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from contrada.matching.engines import DEFAULT_ENGINE, make_engine
from contrada.matching.mismatches import Mismatch
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.subscription import Subscription
from contrada.threads import once


@dataclass(frozen=True, slots=True)
class SetOutline:
    """What is known of a set: how many subscriptions it has, what they read, and what misfits.

    `mismatches` are columns of the events at hand that hold other values than they are compared
    with.
    """

    count: int
    id_type: pa.DataType
    attributes: frozenset[str]
    geometry_attributes: tuple[str, ...]
    has_distances: bool
    mismatches: tuple[Mismatch, ...]


class OutlinedSubscriptions(SubscriptionSet):
    """A set that lies elsewhere. It answers what its outline knows, and cannot match anything."""

    def __init__(self, outline: SetOutline, fetch: Callable[[], SubscriptionColumns]) -> None:
        """Take the outline, and how the subscriptions are fetched."""
        super().__init__(make_engine(DEFAULT_ENGINE, {}).make_index)
        self._outline, self._fetch = outline, fetch

    def __len__(self) -> int:
        return self._outline.count

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._fetched)

    @once
    def _fetched(self) -> SubscriptionSet:
        return SubscriptionSet(self._make_index).changed(added=self._fetch())

    @property
    def ids(self) -> pa.Array:
        """All ids in order."""
        return self._fetched.ids

    @property
    def id_type(self) -> pa.DataType:
        """The type of `ids`."""
        return self._outline.id_type

    @once
    def geometry_attributes(self) -> tuple[str, ...]:
        """Name the attributes that a subscription reads as geometries, sorted."""
        return self._outline.geometry_attributes

    @once
    def attributes(self) -> frozenset[str]:
        """Name the attributes that a subscription reads."""
        return self._outline.attributes

    @once
    def has_distances(self) -> bool:
        """Whether a subscription asks for a distance, which takes longitude and latitude."""
        return self._outline.has_distances

    def find_mismatches(self, schema: pa.Schema) -> list[Mismatch]:
        """Return the columns of the events at hand that hold other values than are expected."""
        known, columns = self._outline.mismatches, set(schema.names)
        return [mismatch for mismatch in known if mismatch.column in columns]

    def breadth(self) -> int:
        """Count the filters that any event may satisfy: none, since nothing is matched here."""
        return 0

    def stats(self) -> dict[str, int]:
        """Count the subscriptions; of an index nothing is known."""
        return {"subscriptions": self._outline.count}
