"""The door: how many get in, and how a server ends with whoever is connected."""

import pytest

from contrada.errors import InvalidInput, Unavailable
from contrada.server.accepting import find_places, listen, network_of
from contrada.server.guard_limits import GuardLimits
from guarded_app import Guarded, guarded, read_all, read_until
from hosted import wait_until

GET = b"GET %s HTTP/1.1\r\nHost: here\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "limits", [GuardLimits(connections_max=2), GuardLimits(connections_per_address_max=2)]
)
def test_one_connection_too_many_is_closed_and_the_next_gets_in(limits: GuardLimits) -> None:
    with guarded(limits) as server:
        with server.connect() as first, server.connect() as second:
            for connection in (first, second):
                connection.sendall(GET % b"/")
                read_until(connection, b"here")
            with server.connect() as third:
                assert read_all(third) == b""
            assert server.server.guarded.refused == 1
        wait_until(lambda: server.server.guarded.count == 0)
        with server.connect() as fourth:
            fourth.sendall(LAST)
            assert read_all(fourth).endswith(b"here")


def begin_to_stop(server: Guarded) -> None:
    server.call(server.server.stop)
    wait_until(server.app.is_stopping.is_set)


def test_a_server_that_stops_ends_streams_and_finishes_what_is_under_way() -> None:
    with (
        guarded() as server,
        server.connect() as idle,
        server.connect() as unused,
        server.connect() as half,
        server.connect() as stream,
        server.connect() as held,
    ):
        idle.sendall(GET % b"/")
        read_until(idle, b"here")
        half.sendall(b"GET / HTTP/1.1\r\nHo")
        stream.sendall(GET % b"/stream")
        held.sendall(GET % b"/held")
        assert server.app.held.wait(60)
        begin_to_stop(server)
        assert [read_all(connection) for connection in (idle, unused, half)] == [b""] * 3
        assert read_all(stream).endswith(b"5\r\nended\r\n0\r\n\r\n")
        server.call(server.app.released.set)
        assert read_all(held).endswith(b"released")
        server.join()


def test_a_server_does_not_wait_for_who_takes_nothing_or_sends_no_body() -> None:
    with guarded(finish_s=0.1) as server, server.connect() as flood, server.connect() as body:
        flood.sendall(GET % b"/flood")
        body.sendall(b"POST /body HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nx")
        wait_until(lambda: len(server.server.server_state.tasks) == 2)
        server.call(server.server.stop)
        server.join()


def test_a_server_that_is_told_twice_waits_for_nobody() -> None:
    with guarded() as server, server.connect() as held:
        held.sendall(GET % b"/held")
        assert server.app.held.wait(60)
        begin_to_stop(server)
        server.call(server.server.force)
        server.join()


def test_a_port_in_use_and_a_host_of_nowhere_are_refused() -> None:
    (listener,) = listen(find_places("127.0.0.1", 0))
    with listener, pytest.raises(Unavailable, match=r"127\.0\.0\.1, port \d+: .*in use"):
        listen(find_places("127.0.0.1", listener.getsockname()[1]))
    with pytest.raises(InvalidInput, match="a b is not a host"):
        find_places("a b", 0)


def test_all_addresses_of_a_host_have_one_port() -> None:
    listeners = listen(find_places("localhost", 0))
    assert len({listener.getsockname()[1] for listener in listeners}) == 1
    for listener in listeners:
        listener.close()


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False), ("*", False)],
)
def test_it_is_known_whether_only_this_machine_reaches_a_host(host: str, expected: bool) -> None:
    assert all(place.is_loopback for place in find_places(host, 80)) == expected


def test_an_address_of_ipv6_stands_for_its_network() -> None:
    assert network_of("127.0.0.1") == "127.0.0.1"
    assert network_of("::ffff:127.0.0.1") == "127.0.0.1"
    assert network_of("2001:db8::1:2:3:4") == network_of("2001:db8::5") == "2001:db8::/64"
    assert network_of("fe80::1%eth0") == "fe80::/64"
    assert network_of("") == ""
