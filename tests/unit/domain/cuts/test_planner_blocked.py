"""What blocks is named with the message since which it does; what can never end does not block."""

import pytest

from refold.domain.compaction.budget import Budget
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Conversation
from refold.domain.cuts.planner import CompactionPlan, NothingToCompact, plan_compaction
from refold.domain.events import Event, MessagePinned, Trigger
from refold.domain.evolve import fold
from refold.domain.messages import Message
from tests.support.builders import (
    appended,
    assistant,
    calls,
    conversation,
    coverage,
    history,
    performed,
    results,
    system,
    talk,
    text,
    tool_use,
    user,
)

BUDGET = Budget(window=1_500, margin=0, reserve=0, fixed=0, limit=1_400, trigger=1_000, target=600)


def blocked(state: Conversation, trigger: Trigger = "size") -> tuple[str, int | None]:
    found = plan_compaction(state, BUDGET, CompactionPolicy(), trigger)
    assert isinstance(found, NothingToCompact), found
    assert found.because
    return found.rule, found.since


def stop(state: Conversation) -> int:
    found = plan_compaction(state, BUDGET, CompactionPolicy(), "size")
    assert isinstance(found, CompactionPlan), found
    return found.coverage.stop


def pin(position: int) -> MessagePinned:
    return MessagePinned(pin_id=f"p{position}", position=position, text="", tokens=0)


@pytest.mark.parametrize(
    ("messages", "rule", "since"),
    [
        ([calls("a"), *[user("hm")] * 12], "pending_calls", 0),
        (
            [system("be good"), calls("a", "b"), results("b"), *[user("hm")] * 12],
            "pending_calls",
            1,
        ),
        ([user("x")] * 12, "unanswered_messages", 0),
        ([calls("a"), *[user("hm")] * 10, results("a")], "tool_pairs", 0),
    ],
)
def test_the_rule_and_its_message_are_named(messages: list[Message], rule: str, since: int) -> None:
    assert blocked(conversation(*messages)) == (rule, since)


def test_a_response_in_several_messages_blocks_since_its_beginning() -> None:
    parts = [assistant("on and on")] * 12
    state = fold([appended(i, m, stop_reason="pause_turn") for i, m in enumerate(parts)])
    assert blocked(state) == ("model_response", 0)


def test_the_newest_message_blocks_when_it_is_all_there_is() -> None:
    assert blocked(fold([appended(0, assistant("hello"), 2_000)])) == ("newest_message", 0)


def test_only_what_no_summary_covers_can_be_what_blocks() -> None:
    kept = performed(4, coverage=coverage(4, exclusions=(0,)))
    state = fold([*history(*talk(2)), pin(0), kept, *history(*[user("x")] * 12, start=4)])
    assert blocked(state) == ("unanswered_messages", 4)


def test_few_messages_block_since_the_oldest_of_them() -> None:
    assert blocked(conversation(*talk(2))) == ("keep_last", 0)
    full = fold([*history(*talk(2), tokens=400), performed(1), appended(4, user("x"), 400)])
    assert blocked(full, "manual") == ("keep_last", 1)
    covered = fold([*history(*talk(4)), performed(6)])
    assert blocked(covered) == ("keep_last", 6)
    assert blocked(conversation()) == ("keep_last", None)


def test_nothing_new_blocks_since_the_newest_message() -> None:
    state = fold([*history(*talk(8)), performed(8)])
    assert blocked(state, "manual") == ("nothing_new", 15)


def test_requests_and_pins_block_since_the_first_of_them() -> None:
    rounds = [calls("a"), results("a")]
    assert blocked(conversation(user("go"), *rounds, tokens=600)) == ("open_requests", 0)
    first = [user("a"), assistant("b"), user("go"), *rounds]
    state = fold([*history(*first, tokens=600), pin(0), pin(1)])
    assert blocked(state) == ("pinned_messages", 0)


def events(*messages: Message) -> list[Event]:
    return history(*messages, tokens=100)


NEVER_ANSWERED: dict[str, list[Message]] = {
    "the model spoke again": [user("go"), calls("a"), user("stop"), assistant("yes"), *talk(6)],
    "the model called again": [user("go"), calls("a"), calls("b"), results("b"), *talk(6)],
    "the very first message": [calls("a"), *talk(6)],
    "one of several calls": [user("go"), calls("a", "b", "c"), results("a", "c"), *talk(6)],
    "several calls, none answered": [user("go"), calls("a", "b"), *talk(6)],
    "words beside the call": [user("go"), assistant(text("so"), tool_use("a")), *talk(6)],
    "the result came too late": [user("go"), calls("a"), assistant("on"), results("a"), *talk(6)],
    "the same id again": [user("go"), calls("a"), *talk(3), calls("a"), results("a"), *talk(3)],
    "again and again": [m for i in range(8) for m in (user("go"), calls(f"c{i}"))] + talk(1),
    "an empty answer": [user("go"), calls("a"), assistant(" "), *talk(6)],
}


@pytest.mark.parametrize("way", NEVER_ANSWERED)
def test_a_call_that_can_never_be_answered_does_not_block(way: str) -> None:
    state = conversation(*NEVER_ANSWERED[way])
    # The cut lies behind the abandoned call.
    assert stop(state) >= 5


def test_an_abandoned_call_before_the_summary_waits_no_more_when_nobody_has_spoken_since() -> None:
    """It is pinned, the model's later words are covered, and only the user has spoken since."""
    said = [user("go"), calls("a"), user("stop"), *talk(2)[1:], user("and then?")]
    covered = performed(6, coverage=coverage(6, exclusions=(1,)))
    state = fold([*events(*said), pin(1), covered, *history(*[user("x")] * 12, start=7)])
    assert blocked(state) == ("unanswered_messages", 6)


def test_a_call_that_waits_blocks_until_the_model_speaks_again() -> None:
    waiting = [*talk(6), user("go"), calls("a", "b"), results("a")]
    assert stop(conversation(*waiting, tokens=500)) == 12
    assert stop(conversation(*waiting, results("b"), assistant("so"), tokens=500)) == 16


def test_the_user_going_on_frees_what_lies_before_the_call() -> None:
    state = conversation(*talk(6), calls("a"), *[user("hm")] * 3, tokens=500)
    assert stop(state) == 12
