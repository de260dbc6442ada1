"""Calls made during recovery wait for its end; those cancelled meanwhile are never made."""

from lograft_log.background import DeferredScheduler
from support.manual_scheduler import ManualScheduler


def test_calls_wait_until_it_opens_and_keep_their_order() -> None:
    loop = ManualScheduler()
    deferred = DeferredScheduler(loop)
    made: list[str] = []
    deferred.call_soon(made.append, "first")
    deferred.call_later(1.0, made.append, "later")
    deferred.call_soon(made.append, "second")
    loop.turn()
    loop.advance(5.0)
    assert made == []
    deferred.open()
    loop.turn()
    assert made == ["first", "second"]
    loop.advance(1.0)
    assert made == ["first", "second", "later"]


def test_cancel_works_before_and_after_it_opens() -> None:
    loop = ManualScheduler()
    deferred = DeferredScheduler(loop)
    made: list[str] = []
    before = deferred.call_soon(made.append, "before")
    after = deferred.call_later(1.0, made.append, "after")
    before.cancel()
    deferred.open()
    after.cancel()
    loop.turn()
    loop.advance(2.0)
    assert made == []


def test_once_open_calls_go_straight_to_the_loop() -> None:
    loop = ManualScheduler()
    deferred = DeferredScheduler(loop)
    deferred.open()
    made: list[str] = []
    deferred.call_soon(made.append, "now")
    loop.turn()
    assert made == ["now"]
