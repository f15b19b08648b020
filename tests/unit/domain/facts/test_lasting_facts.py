"""Habits and decisions that a user states, told apart from what is said of the moment."""

import time

import pytest

from refold.domain.facts.lasting_facts import classify_statement


@pytest.mark.parametrize(
    "said",
    [
        "I'd rather use pnpm than npm for this.",
        "My favourite is the window seat: I always want a window seat on long flights.",
        "In this team we never squash merge.",
        "We use tabs, not spaces, in this repo.",
        "And stop editing a/b.py by hand, it is generated.",
        "坐长途飞机我总是要靠窗的座位。",
        "我们组从来不用squash合并。",
        "文档里一律用简体字。",
    ],
)
def test_a_habit_or_a_rule_of_the_house_is_a_rule(said: str) -> None:
    assert classify_statement(said) == "rule"


@pytest.mark.parametrize(
    "said",
    [
        "After talking to Mia we'll ship without the export feature.",
        "I talked to legal, and we're not storing raw audio.",
        "Decision: the cache expires after ten minutes.",
        "Alright, the project will be called Heron.",
        "和小王商量过了，这次先不做导出功能。",
        "服务器定在法兰克福，因为GDPR。",
        "支付就选Stripe了，不考虑PayPal。",
    ],
)
def test_what_was_settled_is_a_decision(said: str) -> None:
    assert classify_statement(said) == "decision"


@pytest.mark.parametrize(
    "said",
    [
        "We'll see.",
        "I'm trying to run the tests and get an error.",
        "I'll check tomorrow.",
        "Are we going to host it in Frankfurt?",
        "I love how it looks.",
        "The test fails with a time-out.",
        "我很喜欢这个。",
        "我们用什么数据库呢",
        "Let's see what it says.",
        "we'll ship " * 40,
    ],
)
def test_what_is_said_of_the_moment_states_nothing(said: str) -> None:
    assert classify_statement(said) is None


@pytest.mark.parametrize(
    "piece", ["a, and ", "ok, ", "我", "，", "after x ", "the ", "每", "i ", ": "]
)
def test_no_text_takes_long(piece: str) -> None:
    text = (piece * 200)[:200]
    began = time.process_time()
    for _ in range(20):
        classify_statement(text)
    assert time.process_time() - began < 1
