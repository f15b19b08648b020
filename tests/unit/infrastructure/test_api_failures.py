"""Failures over HTTP have one reason each, and say whether and when asking again may help."""

import math

import pytest

from refold.infrastructure.api_failures import (
    ADVICE,
    TEMPORARY,
    is_sendable,
    is_temporary,
    reason_of,
    redact,
    requested_delay,
)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (301, "bad_answer"),
        (400, "bad_request"),
        (401, "authentication"),
        (402, "authentication"),
        (403, "permission"),
        (404, "not_found"),
        (405, "not_found"),
        (408, "timeout"),
        (409, "server_error"),
        (413, "too_large"),
        (418, "bad_request"),
        (429, "rate_limited"),
        (500, "server_error"),
        (503, "server_error"),
        (504, "timeout"),
        (529, "overloaded"),
    ],
)
def test_each_status_has_a_reason(status: int, reason: str) -> None:
    assert reason_of(status) == reason
    assert reason_of(status, "some_error") == reason


@pytest.mark.parametrize("status", [400, 408, 409, 500, 504, 529])
def test_the_kind_of_error_says_that_a_server_is_overloaded(status: int) -> None:
    assert reason_of(status, "overloaded_error") == "overloaded"


@pytest.mark.parametrize("status", [401, 403, 404, 413, 429])
def test_a_clear_status_outweighs_the_kind(status: int) -> None:
    assert reason_of(status, "overloaded_error") == reason_of(status)


def test_passing_reasons_are_asked_again_within_the_longest_wait() -> None:
    assert is_temporary("timeout", None, 20.0)
    assert is_temporary("rate_limited", 20.0, 20.0)
    assert not is_temporary("rate_limited", 20.5, 20.0)
    assert not is_temporary("authentication", None, 20.0)
    assert ADVICE.keys() == TEMPORARY


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5", "x-should-retry": "true"}, 0.5),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "7", "x-should-retry": "false"}, math.inf),
    ],
)
def test_headers_say_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert requested_delay(headers) == seconds


@pytest.mark.parametrize("key", ["sk-1\n", " sk-1", "sk\t1", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_known(key: str) -> None:
    assert not is_sendable(key)
    assert is_sendable("sk-1")


def test_secrets_are_taken_out_of_a_text() -> None:
    assert redact("bad key sk-1!", ["sk-1", None, "", " "]) == "bad key [redacted]!"
