"""A text is refused when it is no summary: empty, cut off, an error, lacking a part, or too long."""

import pytest

from refold.domain.compaction.summary_rules import SummaryRefused, judge_length, judge_text
from tests.support.fake_summarisers import HOSTILE_TEXT


def refusal(text: str, *, complete: bool = True, required: tuple[str, ...] = ()) -> str:
    with pytest.raises(SummaryRefused) as caught:
        judge_text(text, complete=complete, required=required)
    assert str(caught.value)
    return caught.value.reason


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_text_is_refused(text: str) -> None:
    assert refusal(text) == "empty"


def test_a_text_that_was_cut_off_is_refused() -> None:
    assert refusal("The user asked for a new parser, and the ne", complete=False) == "incomplete"


@pytest.mark.parametrize(
    "text",
    [
        "Error: 529 overloaded_error",
        "API Error: Request timed out.",
        "error (429): too many requests",
        "429 Too Many Requests",
        "HTTP/1.1 503 Service Unavailable",
        "Internal server error",
        "An unexpected error occurred while talking to the model",
        "ValueError: no such model",
        'Traceback (most recent call last):\n  File "a.py", line 1',
        '{"type": "error", "error": {"type": "overloaded_error"}}',
        '{"error": {"message": "quota"}}',
        "<!DOCTYPE html><html><title>Bad gateway</title></html>",
        "I'm sorry, but I can't assist with that request.",
        "I cannot summarize this conversation.",
        "Rate limit exceeded, please wait.",
    ],
)
def test_an_error_in_place_of_a_summary_is_refused(text: str) -> None:
    assert refusal(text) == "error_text"


@pytest.mark.parametrize(
    "text",
    [
        "Error handling in src/app.py was rewritten; the tests pass.",
        "The user reported: Error: 529 overloaded_error. It was caused by a loop.",
        "Errors of the parser were fixed in 3 files.",
        "500 tests were run, all green.",
        "Fixed the error: a test that failed passes now.",
        "429 of 500 files were converted.",
        "Internal server errors of the API were traced to the pool.",
        "- [3] TypeError: x in app.py (failure of `pytest`)",
        "I cannot open the file, the assistant said; the user gave a new path.",
        "Error: the first message of the log.\n" + "The user asked for more. " * 20,
        "Covers messages 0-4, 7.",
        HOSTILE_TEXT,
        "服务器错误已经修复。",
    ],
)
def test_a_summary_that_speaks_of_errors_is_one(text: str) -> None:
    judge_text(text, complete=True)


def test_a_text_without_a_required_part_is_refused_and_the_part_is_named() -> None:
    with pytest.raises(SummaryRefused, match="## Key Decisions") as caught:
        judge_text(
            "## Status\n\nthe build is fine",
            complete=True,
            required=("## Status", "## Key Decisions"),
        )
    assert caught.value.reason == "missing_parts"
    judge_text("## Status\n\nthe build is fine", complete=True, required=("## Status",))


@pytest.mark.parametrize(
    ("text_tokens", "tokens", "reason"),
    [(101, 150, "too_long"), (90, 800, "not_smaller"), (900, 950, "not_smaller")],
)
def test_a_text_that_is_too_long_is_refused(text_tokens: int, tokens: int, reason: str) -> None:
    with pytest.raises(SummaryRefused) as caught:
        judge_length(text_tokens, 100, tokens, 800)
    assert caught.value.reason == reason


def test_a_text_of_the_allowed_length_is_accepted() -> None:
    judge_length(100, 100, 799, 800)
