"""The broker's clock: small corrections of the machine's are taken over, jumps are not."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from broker_stories import feature, incoming, matched, read_all
from contrada.broker import Broker, BrokerOptions
from contrada.broker.steady_clock import SteadyClock

SECOND_US = 1_000_000
YEAR_US = 365 * 86_400 * SECOND_US
FULL_BLOCK = 4_096


class MachineClocks:
    """The two clocks of a machine, in nanoseconds: one of the day, and one that never jumps."""

    def __init__(self) -> None:
        self.day_us = 1_800_000_000 * SECOND_US
        self.ticks_us = 5 * SECOND_US

    def pass_by(self, us: int) -> None:
        """Let time pass on both."""
        self.day_us += us
        self.ticks_us += us

    def clock(self, lived_us: int = 0) -> SteadyClock:
        """Make the broker's clock."""
        return SteadyClock(lived_us, lambda: self.day_us * 1_000, lambda: self.ticks_us * 1_000)


def test_time_passes_as_on_the_machine() -> None:
    machine = MachineClocks()
    clock = machine.clock(lived_us=7)
    machine.pass_by(90 * SECOND_US)
    assert clock.now_us() == machine.day_us
    assert clock.lived_us() == 90 * SECOND_US + 7
    assert not clock.has_jumped


def test_a_clock_that_is_corrected_is_followed_and_time_never_goes_back() -> None:
    machine = MachineClocks()
    clock = machine.clock()
    machine.day_us += 10 * SECOND_US
    assert clock.now_us() == machine.day_us
    before_us = machine.day_us
    machine.day_us -= 10 * SECOND_US
    assert clock.now_us() == before_us
    assert clock.lived_us() == 0
    assert not clock.has_jumped


@pytest.mark.parametrize("jump_us", [YEAR_US, -YEAR_US])
def test_a_clock_that_jumps_is_not_believed_until_it_is_right_again(jump_us: int) -> None:
    machine = MachineClocks()
    clock = machine.clock()
    right_us = machine.day_us
    machine.day_us += jump_us
    assert clock.now_us() == right_us
    machine.pass_by(SECOND_US)
    assert clock.now_us() == right_us + SECOND_US
    assert clock.has_jumped
    assert clock.lived_us() == SECOND_US
    machine.day_us -= jump_us
    assert clock.now_us() == machine.day_us
    assert not clock.has_jumped


@pytest.mark.parametrize("jump_us", [YEAR_US, -YEAR_US])
def test_a_clock_that_jumps_a_year_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_us: int
) -> None:
    machine = MachineClocks()
    monkeypatch.setattr("contrada.broker.broker.SteadyClock", machine.clock)
    tomorrow = datetime.fromtimestamp(machine.day_us / SECOND_US, UTC) + timedelta(days=1)
    options = BrokerOptions(retention_interval_s=0.0)
    with closing(Broker.open(tmp_path, options)) as broker:
        body = {"filter": "speed > 3", "expires": tomorrow.isoformat()}
        broker.put_subscription("all", body).result()
        events = [feature(i, 1, 1, speed=5) for i in range(FULL_BLOCK)]
        broker.publish(incoming(events)).result()
        machine.day_us += jump_us
        broker.publish(incoming([feature("last", 1, 1, speed=5)])).result()
        broker.publish(incoming([feature("none", 1, 1, speed=1)])).result()
        assert broker.counts()["clock_has_jumped"] == 1
        kept = [id_ for id_, _ in matched(read_all(broker, "all", limit=1_000))]
        assert kept == [*range(FULL_BLOCK), "last"]
        assert broker.get_subscription("all")["id"] == "all"
    with closing(Broker.open(tmp_path, options)) as broker:  # what was lived counts, no date
        broker.publish(incoming([feature("none", 1, 1, speed=1)])).result()
        assert len(read_all(broker, "all", limit=1_000)) == FULL_BLOCK + 1
