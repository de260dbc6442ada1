"""The token bucket keeps a rate and allows a burst."""

from lograft_replication.throttle import Throttle


def test_a_burst_goes_at_once_then_the_rate_rules() -> None:
    throttle = Throttle(bytes_per_s=100, burst_bytes=50, now_s=0.0)
    assert [throttle.take(0.0, 25) for _ in range(3)] == [True, True, False]
    assert not throttle.take(0.24, 25)
    assert throttle.take(0.25, 25)


def test_idle_time_saves_no_more_than_the_burst() -> None:
    throttle = Throttle(bytes_per_s=100, burst_bytes=50, now_s=0.0)
    assert [throttle.take(1000.0, 25) for _ in range(3)] == [True, True, False]


def test_a_piece_above_the_burst_goes_and_is_paid_for_later() -> None:
    throttle = Throttle(bytes_per_s=100, burst_bytes=50, now_s=0.0)
    assert throttle.take(0.0, 150)
    assert not throttle.take(1.49, 50)
    assert throttle.take(1.5, 50)


def test_a_clock_that_stands_or_goes_back_gives_nothing() -> None:
    throttle = Throttle(bytes_per_s=100, burst_bytes=50, now_s=10.0)
    assert throttle.take(10.0, 50)
    assert not throttle.take(5.0, 1)
    assert not throttle.take(10.0, 1)
