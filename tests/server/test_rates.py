"""Rates: so many a second for long, twice as many at once, each caller for itself."""

from contrada.server.rates import RequestRates


def take_many(rates: RequestRates, caller: str, count: int, now_s: float) -> int:
    """How many of so many requests at one moment are allowed."""
    return sum(rates.take(caller, 10, now_s) == 0 for _ in range(count))


def test_a_caller_has_what_two_seconds_bring_at_once_then_what_each_second_brings() -> None:
    rates = RequestRates()
    assert take_many(rates, "a", 100, 0.0) == 20
    assert take_many(rates, "a", 100, 1.0) == 10
    assert take_many(rates, "a", 100, 1.0) == 0
    assert take_many(rates, "a", 100, 1_000.0) == 20


def test_who_is_refused_learns_when_to_come_back() -> None:
    rates = RequestRates()
    take_many(rates, "a", 20, 0.0)
    wait_s = rates.take("a", 10, 0.0)
    assert wait_s > 0
    assert rates.take("a", 10, wait_s + 1e-9) == 0


def test_one_caller_takes_nothing_from_another() -> None:
    rates = RequestRates()
    take_many(rates, "a", 100, 0.0)
    assert take_many(rates, "b", 100, 0.0) == 20


def test_a_clock_that_goes_back_brings_nothing() -> None:
    rates = RequestRates()
    take_many(rates, "a", 20, 100.0)
    assert take_many(rates, "a", 5, 0.0) == 0


def test_callers_without_number_take_bounded_memory() -> None:
    rates = RequestRates()
    for number in range(30_000):
        rates.take(f"{number}", 10, 0.0)
    assert len(rates._buckets) == 10_000


def test_what_is_borrowed_is_waited_for_after_it() -> None:
    rates = RequestRates()
    assert rates.borrow("a", 20, 10, 0.0) == 0
    assert rates.borrow("a", 5, 10, 0.0) == 0.5
    assert rates.borrow("a", 5, 10, 0.0) == 1.0
    assert rates.borrow("b", 5, 10, 0.0) == 0
    assert rates.borrow("a", 0, 10, 0.5) == 0.5
    assert rates.borrow("a", 0, 10, 1_000.0) == 0
    assert take_many(rates, "a", 100, 1_000.0) == 20
