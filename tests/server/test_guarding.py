"""The guard of a connection: headers in time and of a size, and clients that take nothing."""

from dataclasses import replace

import pytest

from contrada.server.guard_limits import GuardLimits
from guarded_app import Guarded, drip, guarded, read_all

QUICK = GuardLimits(header_s_max=0.2, stall_s_max=0.2, header_bytes_max=2_000)
GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


def ask(server: Guarded, request: bytes) -> bytes:
    with server.connect() as connection:
        connection.sendall(request)
        return read_all(connection)


@pytest.mark.parametrize("begin", [b"", b"GET", b"GET / HTTP/1.1\r\nHost: here\r\nX: "])
def test_a_header_that_does_not_come_whole_ends_the_connection(begin: bytes) -> None:
    with guarded(QUICK) as server:
        assert ask(server, begin) == b""


@pytest.mark.parametrize(
    ("begin", "drop"),
    [
        (b"GET / HTTP/1.1\r\nX: ", b"x"),
        (b"GET / HTTP/1.1\r\n", b"X: y\r\n"),
        (b"", b"\r\n"),
        (GET, b"\r\n"),
        (GET + b"GET /", b"x"),
        (b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9999\r\n\r\n", b"x"),
    ],
    ids=["value", "headers", "blank", "blank-later", "second", "unread-body"],
)
def test_a_client_that_sends_a_little_now_and_then_is_cut_off(begin: bytes, drop: bytes) -> None:
    with guarded(QUICK) as server, server.connect() as connection:
        drip(connection, begin, drop)


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /%s HTTP/1.1\r\nHost: here\r\n\r\n" % (b"x" * 3_000),
        b"GET / HTTP/1.1\r\nX: %s\r\n\r\n" % (b"x" * 3_000),
        b"GET / HTTP/1.1\r\n%s\r\n" % (b"X: y\r\n" * 500),
        b"GET / HTTP/1.1\r\nX: %s" % (b"x" * 3_000),
    ],
    ids=["path", "one", "many", "unfinished"],
)
def test_a_header_that_is_too_large_is_refused_by_its_size(request_: bytes) -> None:
    with guarded(replace(QUICK, header_s_max=60)) as server:
        answer = ask(server, request_)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"application/problem+json" in answer
    assert b"may have 2,000 bytes" in answer


@pytest.mark.parametrize(
    "words", [b"\x16\x03\x01\x02\x00", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
)
def test_what_is_not_http_is_a_problem(words: bytes) -> None:
    with guarded() as server:
        assert ask(server, words).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_a_body_and_many_requests_of_one_connection_are_no_header() -> None:
    with guarded(QUICK) as server:
        body = b"x" * 100_000
        post = b"POST /body HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n\r\n" % len(body)
        answer = ask(server, (post + body) * 3 + LAST)
    assert answer.count(b"read") == 3
    assert answer.endswith(b"here")


def test_requests_that_are_sent_at_once_are_answered_in_order() -> None:
    with guarded() as server:
        asked = [b"GET /?%d HTTP/1.1\r\nHost: here\r\n\r\n" % n for n in range(50)]
        answer = ask(server, b"".join(asked) + LAST)
    bodies = [part.partition(b"\r\n\r\n")[2] for part in answer.split(b"HTTP/1.1 200 OK")[1:]]
    assert bodies == [*(b"%d" % n for n in range(50)), b"here"]


def test_too_many_requests_that_wait_for_answers_end_the_connection() -> None:
    with guarded() as server:
        held = b"GET /held HTTP/1.1\r\nHost: here\r\n\r\n"
        assert ask(server, held + GET * 500) == b""


def test_a_client_that_takes_nothing_is_cut_off() -> None:
    with guarded(QUICK) as server, server.connect() as connection:
        connection.sendall(b"GET /flood HTTP/1.1\r\nHost: here\r\n\r\n")
        while server.server.guarded.count != 0:
            with server.connect() as other:  # which is served meanwhile
                other.sendall(LAST)
                assert read_all(other).endswith(b"here")
