"""The log of link troubles repeats itself slowly and remembers a bounded number of troubles."""

import logging

import pytest

from lograft_replication.trouble_log import TroubleLog


class HandClock:
    def __init__(self) -> None:
        self.at_s = 100.0

    def now_s(self) -> float:
        return self.at_s

    def wall_ms(self) -> int:
        return 0


def test_one_line_per_trouble_and_interval(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    log = TroubleLog(logging.getLogger("test"), clock, interval_s=10.0, key_count_max=8)
    log.say("dial b", "first")
    log.say("dial c", "other")
    clock.at_s += 9.9
    log.say("dial b", "too soon")
    clock.at_s += 0.1
    log.say("dial b", "again")
    said = [record.getMessage().split()[-1] for record in caplog.records]
    assert said == ["first", "other", "again"]


def test_many_troubles_do_not_grow_the_memory(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    log = TroubleLog(logging.getLogger("test"), clock, interval_s=10.0, key_count_max=3)
    for number in range(100):
        log.say(f"greet {number}", "x")
    assert len(caplog.records) == 3
    clock.at_s += 10.0
    log.say("greet 1000", "room again")
    assert len(caplog.records) == 4
