"""Reply codes: names as clients read them, the scope of each, and a text that always fits."""

import pytest

from lograft_wire.amqp import codes, methods

CHANNEL = {403: "ACCESS_REFUSED", 404: "NOT_FOUND", 405: "RESOURCE_LOCKED"} | {
    406: "PRECONDITION_FAILED"
}
CONNECTION = {
    320: "CONNECTION_FORCED",
    402: "INVALID_PATH",
    501: "FRAME_ERROR",
    502: "SYNTAX_ERROR",
    503: "COMMAND_INVALID",
    504: "CHANNEL_ERROR",
    505: "UNEXPECTED_FRAME",
    506: "RESOURCE_ERROR",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
    541: "INTERNAL_ERROR",
}
RETURN = {311: "CONTENT_TOO_LARGE", 312: "NO_ROUTE", 313: "NO_CONSUMERS"}


def test_names_and_constants_are_the_published_ones() -> None:
    assert codes.NAMES == CHANNEL | CONNECTION | RETURN | {200: "REPLY_SUCCESS"}
    for code, name in codes.NAMES.items():
        assert getattr(codes, name) == code


def test_errors_carry_their_code_and_scope() -> None:
    for code in CHANNEL:
        error = codes.error(code, "why")
        assert (str(error), error.reply_code, error.closes_connection) == ("why", code, False)
    for code in CONNECTION:
        error = codes.error(code, "why")
        assert (error.reply_code, error.closes_connection) == (code, True)


@pytest.mark.parametrize("code", [200, 312, 999])
def test_what_closes_nothing_is_no_error(code: int) -> None:
    with pytest.raises(AssertionError):
        codes.error(code, "why")


def test_reply_text_is_name_and_text() -> None:
    text = codes.reply_text(404, "no queue 'q' in vhost '/'")
    assert text == "NOT_FOUND - no queue 'q' in vhost '/'"
    assert codes.reply_text(312) == "NO_ROUTE"


def test_a_long_reply_text_is_cut_at_a_whole_character() -> None:
    fits = codes.reply_text(404, "x" * (255 - len("NOT_FOUND - ")))
    assert len(fits) == 255
    assert fits.endswith("x")
    assert codes.reply_text(404, "x" * 300) == "NOT_FOUND - " + "x" * 240 + "..."
    cut = codes.reply_text(404, "x" + "é" * 300)
    assert cut == "NOT_FOUND - x" + "é" * 119 + "..."
    assert len(cut.encode()) == 254


def test_any_quoted_bytes_make_a_text_that_can_be_sent() -> None:
    text = codes.reply_text(406, "invalid arg 'k\udcff'")
    assert text == r"PRECONDITION_FAILED - invalid arg 'k\udcff'"
    methods.encode(methods.ChannelClose(reply_code=406, reply_text=text))
