import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.domain.erasing import make_stub
from refold.domain.events import ConversationLabelled, Event, MessagePinned
from refold.domain.evolve import fold
from refold.domain.messages import Block, Message
from refold.domain.pinning import WITHDRAWN_LABEL, label_conversation, label_from_recording
from refold.domain.quoted_text import (
    SHORTEST_QUOTE,
    is_quoting,
    quote_checker,
    quotes,
    quoting_attempts,
    remove_quotes,
    words_of,
)
from tests.support.builders import coverage, performed, requested

SAID = "My account number is 4711-0815-2342, please\nkeep it."


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("number is 4711-0815", True),
        ("please keep it.", True),
        ("please\t keep  it.", True),
        ("Account number is 471", True),
        ("PLEASE KEEP IT", False),
        ("4711-0815-2", False),
        ("4711-0815-23", True),
        ("", False),
        ("            ", False),
    ],
)
def test_a_text_quotes_from_twelve_characters_on(text: str, quoted: bool) -> None:
    assert quotes(text, SAID) == quoted
    assert quotes(SAID, text) == quoted


@given(st.text(max_size=30), st.text(max_size=30), st.text(min_size=12, max_size=20))
def test_whatever_stands_around_it_a_run_is_found(before: str, after: str, run: str) -> None:
    is_long = len(" ".join(run.split())) >= SHORTEST_QUOTE
    assert not is_long or quotes(f"{before}{run}{after}", f"x {run} y")


def test_every_text_that_an_erasure_takes_out_counts() -> None:
    blocks: tuple[Block, ...] = (
        {"type": "text", "text": "said"},
        {"type": "tool_use", "id": "call", "name": "tool", "input": {"a": [{"b": "deep"}]}},
        {"type": "tool_result", "tool_use_id": "call", "content": [{"type": "text", "text": "r"}]},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "thinking", "thinking": "thought", "signature": "signed"},
    )
    found = list(words_of(Message(role="assistant", content=blocks)))
    assert found == ["said", "deep", "text", "r", "thought"]
    assert list(words_of(Message(role="user", content="plain"))) == ["plain"]


def test_what_is_left_of_a_message_is_quoted_by_nothing_that_quoted_it() -> None:
    message = Message(role="user", content=SAID)
    assert quote_checker([message])(SAID[:20])
    assert not quote_checker([make_stub(message, "[gone]")])(SAID[:20])


def test_labels_and_pins_of_their_own_quote_and_pins_of_messages_do_not() -> None:
    is_quoted = quote_checker([Message(role="user", content=SAID)])
    events: list[tuple[Event, bool]] = [
        (ConversationLabelled(label=SAID[:30]), True),
        (ConversationLabelled(label="Account"), False),
        (MessagePinned(pin_id="p", position=None, text=SAID, tokens=9), True),
        (MessagePinned(pin_id="p", position=7, text=SAID, tokens=9), False),
        (performed(3), False),
    ]
    for event, expected in events:
        assert is_quoting(event, frozenset(), is_quoted) == expected
    left = remove_quotes(ConversationLabelled(label=SAID[:30]), is_quoted, "gone")
    assert left == ConversationLabelled(label=WITHDRAWN_LABEL)


def test_a_focus_taints_what_was_made_with_it_and_what_carries_that_on() -> None:
    is_quoted = quote_checker([Message(role="user", content=SAID)])
    events: list[Event] = [
        requested(2, "a1", focus=SAID[:20]),
        performed(2, "a1", summary_id="s1", focus=SAID[:20]),
        requested(4, "a2", supersedes="s1"),
        performed(4, "a2", summary_id="s2", coverage=coverage(4)),
        requested(6, "a3", supersedes="s2", rebuilds=True),
        performed(6, "a3", summary_id="s3", coverage=coverage(6)),
        requested(6, "a4", supersedes="s3", rebuilds=True, trigger="erasure"),
        performed(6, "a4", summary_id="s4", coverage=coverage(6), trigger="erasure"),
    ]
    assert quoting_attempts(events, is_quoted) == {"a1", "a2", "a3"}
    left = [remove_quotes(event, is_quoted, "gone") for event in events]
    assert "4711" not in str(left)
    assert left[2:] == events[2:]


def test_a_withdrawn_label_comes_back_by_hand_only() -> None:
    withdrawn = fold([ConversationLabelled(label=WITHDRAWN_LABEL)])
    assert label_from_recording(withdrawn, SAID) == ()
    assert label_conversation(withdrawn, "Mine") == (ConversationLabelled(label="Mine"),)
    assert label_from_recording(fold([]), "Mine") == (ConversationLabelled(label="Mine"),)
