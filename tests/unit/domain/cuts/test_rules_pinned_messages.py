"""What is pinned stays where it stands, with all that it needs."""

from refold.domain.conversation import Conversation
from refold.domain.cuts.rules import PINNED_MESSAGES
from refold.domain.events import MessagePinned
from refold.domain.evolve import fold
from refold.domain.messages import Message
from tests.support.builders import (
    appended,
    assistant,
    calls,
    coverage,
    history,
    performed,
    results,
    talk,
    user,
)


def pinned(position: int, tokens: int = 0) -> MessagePinned:
    text = "words" if tokens else ""
    return MessagePinned(pin_id=f"p{position}", position=position, text=text, tokens=tokens)


def kept(*messages: Message, pin: int) -> frozenset[int]:
    return PINNED_MESSAGES.kept(fold([*history(*messages), pinned(pin)]), 0)


def kept_in(state: Conversation) -> frozenset[int]:
    return PINNED_MESSAGES.kept(state, 0)


def test_a_message_that_stands_alone_stays_alone() -> None:
    assert kept(*talk(3), pin=2) == {2}
    assert kept(*talk(3), pin=3) == {3}


def test_a_call_stays_with_all_results_and_a_result_with_its_call() -> None:
    messages = [user("go"), calls("a", "b"), results("b"), user("hm"), results("a"), *talk(1)]
    for pin in (1, 2, 4):
        assert kept(*messages, pin=pin) == {1, 2, 4}
    assert kept(*messages, pin=3) == {3}


def test_a_result_that_came_too_late_stands_alone() -> None:
    messages = [user("go"), calls("a"), user("stop"), assistant("yes"), results("a"), *talk(1)]
    assert kept(*messages, pin=4) == {4}
    assert kept(*messages, pin=1) == {1}


def test_a_paused_response_stays_whole() -> None:
    parts = [
        appended(0, user("search")),
        appended(1, assistant("one"), stop_reason="pause_turn"),
        appended(2, calls("a")),
        appended(3, results("a")),
        *history(*talk(2), start=4),
    ]
    for pin in (1, 2, 3):
        assert kept_in(fold([*parts, pinned(pin)])) == {1, 2, 3}


def test_a_text_in_the_ledger_keeps_no_message() -> None:
    state = fold([*history(*talk(3)), performed(4), pinned(1, tokens=20)])
    assert kept_in(state) == frozenset()


def test_what_stays_from_different_parts_is_no_neighbour() -> None:
    """A pause was kept, and what the model said later is pinned; what lay between is covered."""
    said = [
        appended(0, user("search")),
        appended(1, assistant("one"), stop_reason="pause_turn"),
        *history(user("well?"), calls("a"), results("a"), *talk(2), start=2),
        pinned(3),
    ]
    covered = performed(5, coverage=coverage(5, exclusions=(1, 3, 4)))
    assert kept_in(fold([*said, covered])) == {3, 4}
