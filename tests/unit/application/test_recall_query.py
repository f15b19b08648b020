"""What recall is asked for is checked, and every refusal says what is allowed."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from refold.application.recall.recall_query import moment, parse_query
from refold.domain.errors import InvalidSetting


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"limit": 0}, "a number from 1 to 50"),
        ({"limit": 51}, "a number from 1 to 50"),
        ({"limit": True}, "a number from 1 to 50"),
        ({"limit": "5"}, "a number from 1 to 50"),
        ({"min_score": 1.01}, "a number from 0 to 1"),
        ({"min_score": -0.1}, "a number from 0 to 1"),
        ({"min_score": float("nan")}, "a number from 0 to 1"),
        ({"min_score": "much"}, "a number from 0 to 1"),
        ({"mode": "semantic"}, "one of keyword, vector, hybrid"),
        ({"roles": ["user", "bob"]}, "one of user, assistant, system, tool"),
        ({"roles": "bob"}, "one of user, assistant, system, tool"),
        ({"roles": [1]}, "one of user, assistant, system, tool"),
        ({"kinds": "words"}, "one of text, call, result"),
        ({"tools": [3]}, "names of tools"),
        ({"tools": 3}, "names of tools"),
        ({"roles": True}, "one of user, assistant, system, tool"),
        ({"in_context": "hide"}, "one of mark, leave_out"),
        ({"neighbours": 11}, "a number from 0 to 10"),
        ({"neighbours": -1}, "a number from 0 to 10"),
        ({"max_tokens": 49}, "a number from 50 to 1,000,000"),
        ({"since": "yesterday"}, "2026-01-02T03:04:05Z"),
        ({"until": "2026-01-02T03:04:05"}, "2026-01-02T03:04:05+00:00"),
        ({"since": datetime(2026, 1, 2)}, "no time zone"),
        ({"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, "no later than until"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        parse_query("port", **given)
    assert says in str(caught.value)
    assert caught.value.setting in given


def test_a_question_is_a_text() -> None:
    nothing: Any = None
    with pytest.raises(InvalidSetting) as caught:
        parse_query(nothing)
    assert caught.value.setting == "query"


@pytest.mark.parametrize("name", ["roles", "tools", "kinds"])
def test_none_stands_for_any_as_no_names_do(name: str) -> None:
    nothing: dict[str, Any] = {name: None}
    empty: dict[str, Any] = {name: ()}
    assert parse_query("port", **nothing) == parse_query("port", **empty) == parse_query("port")


def test_one_name_needs_no_list() -> None:
    assert parse_query("port", roles="user", tools="bash", kinds="call").filters[1:4] == (
        frozenset({"user"}),
        frozenset({"call"}),
        frozenset({"bash"}),
    )


def test_times_are_compared_in_one_form() -> None:
    east = timezone(timedelta(hours=8))
    same = "2026-01-01T16:00:00.000000Z"
    assert moment("since", datetime(2026, 1, 2, tzinfo=east)) == same
    assert moment("since", "2026-01-02T00:00:00+08:00") == same
    assert moment("since", datetime(2026, 1, 1, 16, tzinfo=UTC)) == same
    assert moment("since", None) is None


@pytest.mark.parametrize("end", [datetime.max, datetime.min])
def test_the_ends_of_the_calendar_are_before_and_after_everything(end: datetime) -> None:
    for hours in (-14, 14):
        assert str(moment("since", end.replace(tzinfo=timezone(timedelta(hours=hours)))))[:4] in (
            "0001",
            "9999",
        )
