"""Virtual time: order, pauses, deaths, storms, and work off the loop."""

import random

import pytest

from sim import loop as loops
from sim.background import Pace, SimBackground
from sim.loop import NodeScheduler, SimClock, SimCrash, SimLoop, Storm


def nothing() -> None:
    pass


def process(loop: SimLoop) -> NodeScheduler:
    return NodeScheduler(loop, on_crash=nothing, after=nothing)


def test_events_run_by_time_then_in_the_order_made() -> None:
    loop = SimLoop()
    seen: list[str] = []
    loop.call_later(2.0, seen.append, "later")
    loop.call_later(1.0, seen.append, "first")
    loop.call_later(1.0, seen.append, "second")
    loop.call_later(1.5, seen.append, "cancelled").cancel()
    loop.run_until(loop.now + 1.9)
    assert seen == ["first", "second"]
    loop.run_until(loop.now + 0.2)
    assert seen == ["first", "second", "later"]


def test_paused_process_runs_nothing_until_it_resumes_and_its_clock_goes_on() -> None:
    loop = SimLoop()
    node = process(loop)
    clock = SimClock(loop, start_s=5.0, rate=1.0, wall_offset_ms=0)
    seen: list[tuple[str, float]] = []
    node.call_later(1.0, lambda: seen.append(("timer", clock.now_s())))
    doomed = node.call_later(1.5, lambda: seen.append(("cancelled", clock.now_s())))
    node.pause()
    loop.run_until(loop.now + 3.0)
    node.run(lambda: seen.append(("frame", clock.now_s())))
    assert seen == []
    doomed.cancel()
    node.resume()
    loop.run_until(loop.now + 1.0)
    assert seen == [("timer", 8.0), ("frame", 8.0)]


def test_killed_process_runs_nothing_any_more() -> None:
    loop = SimLoop()
    node = process(loop)
    seen: list[str] = []
    node.call_soon(seen.append, "timer")
    node.kill()
    node.run(seen.append, "frame")
    loop.run_until(loop.now + 1.0)
    assert seen == []


def test_crash_inside_a_callback_ends_the_process_and_not_the_world() -> None:
    loop = SimLoop()
    events: list[str] = []

    def died() -> None:
        events.append("died")
        node.kill()

    def strike() -> None:
        raise SimCrash

    node = NodeScheduler(loop, on_crash=died, after=lambda: events.append("after"))
    node.call_soon(nothing)
    node.call_later(0.1, strike)
    node.call_later(0.2, events.append, "too late")
    loop.call_later(0.3, events.append, "world")
    loop.run_until(loop.now + 1.0)
    assert events == ["after", "died", "world"]


def test_storm_is_reported_with_its_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "EVENTS_PER_SECOND_MAX", 100)
    loop = SimLoop()

    def again() -> None:
        loop.call_soon(again)

    loop.call_soon(again)
    with pytest.raises(Storm, match=r"101 events .*again x"):
        loop.run_until(loop.now + 1.0)


def test_clock_drifts_and_only_the_wall_clock_jumps() -> None:
    loop = SimLoop()
    clock = SimClock(loop, start_s=100.0, rate=1.25, wall_offset_ms=7)
    before = clock.wall_ms()
    clock.jump(-60_000)
    loop.run_until(loop.now + 4.0)
    assert clock.now_s() == 105.0
    assert clock.wall_ms() == before - 60_000 + 4_000


def test_background_works_in_order_and_reports_results_and_errors_later() -> None:
    loop = SimLoop()
    node = process(loop)
    background = SimBackground(node, rng=random.Random(3), pace=Pace())
    log: list[object] = []

    def fail() -> None:
        log.append("work 2")
        raise OSError("no")

    def done(result: object, error: BaseException | None) -> None:
        log.append((result, type(error)))

    background.run(lambda: log.append("work 1"), done)
    background.run(fail, done)
    assert log == []
    loop.run_until(loop.now + 1.0)
    assert [one for one in log if isinstance(one, str)] == ["work 1", "work 2"]
    assert [one for one in log if isinstance(one, tuple)] == [
        (None, type(None)),
        (None, OSError),
    ]


def test_closing_a_background_finishes_what_was_given() -> None:
    loop = SimLoop()
    background = SimBackground(process(loop), rng=random.Random(3), pace=Pace())
    log: list[int] = []
    for number in range(3):
        background.run(lambda number=number: log.append(number), lambda *_: None)  # type: ignore[misc]
    background.close()
    assert log == [0, 1, 2]


def test_work_of_a_dead_process_is_never_done() -> None:
    loop = SimLoop()
    node = process(loop)
    background = SimBackground(node, rng=random.Random(3), pace=Pace())
    log: list[object] = []
    background.run(lambda: log.append("work"), lambda *_: log.append("done"))
    node.kill()
    loop.run_until(loop.now + 1.0)
    assert log == []
