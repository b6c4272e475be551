"""Publishing through a client: nothing is lost and nothing doubled, whatever has to be repeated."""

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from contrada.client.blocking import Client
from contrada.client.exchange import BrokerRequest, HttpAnswer, NoAnswer
from contrada.client.received import EventFault, RefusedEvents
from contrada.errors import BadRows, InvalidInput
from hosted import hosted
from served_broker import ServedBroker

BAD = {"geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}}


class LosingClient(Client):
    """A client whose answers are lost on the way, the first time that it asks for each."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.seen: list[BrokerRequest] = []

    def _exchange(self, request: BrokerRequest) -> HttpAnswer | NoAnswer:
        answer = super()._exchange(request)
        if request not in self.seen:
            self.seen.append(request)
            return NoAnswer("lost", is_sent=True)
        return answer


def test_many_events_go_in_batches_and_keep_their_order(client: Client) -> None:
    client.put_subscription("all", "n >= 0", subscriber="ops")
    receipt = client.publish({"n": n} for n in range(1_201))
    assert (receipt.accepted, receipt.matches, receipt.repeated) == (1_201, 1_201, 0)
    heard = client.deliveries("ops", limit=1_000).deliveries
    heard += client.deliveries("ops", after=heard[-1].position, limit=1_000).deliveries
    assert [d.event["properties"]["n"] for d in heard if d.event] == list(range(1_201))
    assert heard[-1].position == receipt.position


def test_a_batch_whose_answer_was_lost_is_not_stored_twice(served: ServedBroker) -> None:
    cloud = {"specversion": "1.0", "id": "1", "source": "/ships", "type": "at", "data": {"n": 2}}
    with LosingClient(served.url) as client:
        client.put_subscription("all", "n > 0", subscriber="ops")
        receipt = client.publish([{"n": 1}, cloud, {"n": 3}])
        assert (receipt.accepted, receipt.repeated) == (3, 3)
        heard = client.deliveries("ops").deliveries
    assert [d.event["properties"]["n"] for d in heard if d.event] == [1, 2, 3]


def test_two_calls_publish_twice_unless_they_have_one_key(client: Client) -> None:
    client.put_subscription("all", "n > 0", subscriber="ops")
    events = [{"n": n + 1} for n in range(600)]
    first, second = client.publish(events[:1]), client.publish(events[:1])
    assert first.position != second.position
    first = client.publish(events, idempotency_key="today")
    second = client.publish(events, idempotency_key="today")
    assert (first.repeated, second.repeated) == (0, 600)
    assert first.position == second.position
    assert len(client.deliveries("ops", limit=1_000).deliveries) == 602


@pytest.mark.parametrize("key", ["", " a", "a\n", "ü", 'a"', "x" * 201])
def test_a_key_that_cannot_be_in_a_header_is_refused(client: Client, key: str) -> None:
    with pytest.raises(InvalidInput, match="idempotency_key"):
        client.publish({"n": 1}, idempotency_key=key)


def test_bad_events_among_good_ones_are_in_the_receipt(client: Client) -> None:
    receipt = client.publish([{"n": 1}, BAD, *({"n": n} for n in range(600)), BAD])
    assert receipt.accepted == 601
    assert [fault.index for fault in receipt.errors] == [1, 602]
    assert all(isinstance(fault, EventFault) and fault.detail for fault in receipt.errors)


@pytest.mark.parametrize(
    "bad",
    [
        {"geometry": "POINT(5"},
        {"n": float("inf")},
        {"n": object()},
        {"text": "x" * 17 * 2**20},
        {"deep": json.loads("[" * 300 + "]" * 300)},
        {"n": 10**5_000},
        {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": {"n": 1e999}},
        7,
        None,
    ],
)
def test_an_event_that_cannot_be_sent_keeps_no_other_out(client: Client, bad: Any) -> None:
    client.put_subscription("all", "n >= 0", subscriber="ops")
    events = [{"n": n} for n in range(700)]
    events[3] = events[600] = bad
    receipt = client.publish(events, idempotency_key="run")
    assert (receipt.accepted, receipt.repeated, receipt.matches) == (698, 0, 698)
    assert [fault.index for fault in receipt.errors] == [3, 600]
    assert all(fault.detail for fault in receipt.errors)
    events[3] = {"n": 3}
    again = client.publish(events, idempotency_key="run")
    assert (again.accepted, [fault.index for fault in again.errors]) == (699, [600])


def test_what_is_too_large_for_a_server_is_sent_in_parts(tmp_path: Path) -> None:
    with hosted(tmp_path, "body_bytes_max=4000") as server, Client(server.address) as client:
        receipt = client.publish([{"n": n, "text": "x" * 100} for n in range(100)])
    assert (receipt.accepted, receipt.errors) == (100, ())


def test_an_event_that_cannot_be_sent_keeps_all_out_where_that_is_asked_for(
    client: Client,
) -> None:
    client.put_subscription("all", "n > 0", subscriber="ops")
    with pytest.raises(RefusedEvents) as refused:
        client.publish([{"n": 1}, {"n": float("inf")}], all_or_none=True)
    assert [fault.index for fault in refused.value.receipt.errors] == [1]
    assert client.deliveries("ops").deliveries == ()


def test_a_table_with_a_bad_cell_loses_only_its_row(client: Client) -> None:
    table = pa.table({"geometry": ["POINT(5 1)", "POINT(5", None], "n": [1.0, 2.0, float("inf")]})
    receipt = client.publish(table)
    assert (receipt.accepted, [fault.index for fault in receipt.errors]) == (1, [1, 2])


def test_a_question_about_what_cannot_be_sent_is_refused(client: Client) -> None:
    with pytest.raises(InvalidInput, match="the event: an infinite number"):
        client.match({"n": float("inf")})


def test_bad_events_alone_are_refused(client: Client) -> None:
    with pytest.raises(RefusedEvents) as refused:
        client.publish([BAD, BAD])
    assert [fault.index for fault in refused.value.receipt.errors] == [0, 1]
    assert refused.value.rows[0].startswith("event 0: ")
    assert pickle.loads(pickle.dumps(refused.value)).receipt == refused.value.receipt


def test_all_or_none_stores_none_where_one_is_bad(client: Client) -> None:
    client.put_subscription("all", "n > 0", subscriber="ops")
    with pytest.raises(BadRows):
        client.publish([{"n": 1}, BAD], all_or_none=True)
    assert client.deliveries("ops").deliveries == ()
    assert client.publish([{"n": 1}] * 700, all_or_none=True).accepted == 700


def test_nothing_at_all_can_be_published(client: Client) -> None:
    receipt = client.publish([])
    assert (receipt.accepted, receipt.position) == (0, None)


def test_a_table_is_matched_as_the_library_matches_it(client: Client) -> None:
    client.put_subscription("bay", geometry="POLYGON((0 0, 9 0, 9 9, 0 0))", where="wind > 17")
    table: Any = pa.table(
        {"id": [1, 2, 3], "geometry": ["POINT(5 1)", "POINT(5 1)", None], "wind": [20, 5, 30]}
    )
    assert client.publish(table).matches == 1
    (delivery,) = client.deliveries("bay").deliveries
    assert delivery.event is not None
    assert delivery.event["id"] == 1
    assert delivery.matches[0].relation == "intersects"
