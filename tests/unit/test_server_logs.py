"""How log lines look."""

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from lograft_broker import logs
from support import root_logger


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    with root_logger.restored():
        yield


def lines(format: str, *, level: str = "info") -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    logs.set_up(level=level, format=format, stream=stream)
    return logging.getLogger("lograft_test"), stream


def test_text_line_is_event_and_pairs() -> None:
    log, stream = lines("text")
    log.warning("link_down peer=%s", "a@1")
    assert stream.getvalue().endswith(
        "level=warning logger=lograft_test event=link_down peer=a@1\n"
    )


def test_event_may_be_written_as_a_pair() -> None:
    for format in ("text", "json"):
        log, stream = lines(format)
        log.info("event=link_up peer=%s", "a@1")
        assert "event=event=" not in stream.getvalue()
        assert "link_up" in stream.getvalue()
    assert json.loads(stream.getvalue())["event"] == "link_up"


def test_text_from_outside_cannot_forge_a_line() -> None:
    log, stream = lines("text")
    log.info("peer_said text=%s", "x\ntime=2000 level=info event=all_good")
    assert len(stream.getvalue().splitlines()) == 1


def test_json_line_has_event_and_pairs_as_members() -> None:
    log, stream = lines("json")
    log.info("link_down peer=%s reason=%r", "a@1", "no answer for 5 s")
    line = json.loads(stream.getvalue())
    assert line["event"] == "link_down"
    assert line["peer"] == "a@1"
    assert line["reason"] == "no answer for 5 s"
    assert line["level"] == "info"


def test_pairs_cannot_replace_our_own_members() -> None:
    log, stream = lines("json")
    log.info("odd level=%s", "fake")
    assert json.loads(stream.getvalue())["level"] == "info"


@pytest.mark.parametrize("format", ["text", "json"])
def test_exception_is_kept(format: str) -> None:
    log, stream = lines(format)
    try:
        raise RuntimeError("boom")
    except RuntimeError:
        log.error("failed", exc_info=sys.exc_info())
    assert "RuntimeError: boom" in stream.getvalue()


def test_level_is_respected() -> None:
    log, stream = lines("text", level="error")
    log.info("quiet")
    assert stream.getvalue() == ""
