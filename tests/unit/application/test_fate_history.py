"""``fate_history``: what happened to one message, in order."""

import pytest

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.domain.errors import InvalidSetting, UnknownMessage
from refold.domain.events import (
    CompactionReverted,
    Event,
    GivenInPart,
    LinesRecalled,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    OmittedMessage,
    RecalledLine,
    SaidPart,
    ShortenedPart,
    ToolContentOffloaded,
    UserContentShortened,
)
from tests.support.builders import (
    appended,
    calls,
    history,
    performed,
    requested,
    results,
    talk,
    user,
)
from tests.support.fake_ports import MemoryLog, core_of


def chat_of(*events: Event) -> ConversationMemory:
    """A conversation to which this happened."""
    log = MemoryLog()
    log.streams["t"] = list(events)
    return Memory(core_of(log)).conversation("t")


def kinds(conversation: ConversationMemory, position: int) -> list[tuple[int, str]]:
    return [(change.version, change.kind) for change in conversation.fate_history(position)]


def part(position: int, call_id: str, freed: int = 60) -> ShortenedPart:
    return ShortenedPart(position=position, call_id=call_id, side="result", tokens_freed=freed)


def reverted(summary_id: str, restored: object = None) -> CompactionReverted:
    return CompactionReverted.model_construct(
        summary_id=summary_id,
        restored=restored,
        messages=(),
        older_live=0,
        older_tokens=0,
        live_from=1,
        reason="",
    )


def test_at_first_a_message_was_only_appended() -> None:
    (change,) = chat_of(*history(*talk(2))).fate_history(2)
    assert (change.version, change.kind) == (3, "appended")
    assert change.what == "appended by the user, 100 tokens"


def test_summaries_cover_it_one_after_the_other_until_they_are_reverted() -> None:
    conversation = chat_of(
        *history(*talk(4)),
        requested(2),
        performed(2, given_in_part=(GivenInPart(position=1, given=10, characters=40),)),
        requested(5, "a2", supersedes="s1"),
        performed(5, "a2", summary_id="s2"),
        reverted("s2"),
        reverted("s1"),
    )
    assert kinds(conversation, 1) == [
        (2, "appended"),
        (10, "covered"),
        (12, "summarised again"),
        (13, "summarised again"),
        (14, "restored"),
    ]
    changes = conversation.fate_history(1)
    assert [change.summary_id for change in changes] == [None, "s1", "s2", "s1", "s1"]
    assert "made from 10 of its 40 characters" in changes[1].what
    assert kinds(conversation, 3) == [(4, "appended"), (12, "covered"), (13, "restored")]
    assert kinds(conversation, 7) == [(8, "appended")]


def test_a_message_that_was_too_large_is_only_named() -> None:
    conversation = chat_of(
        *history(*talk(2)),
        requested(2),
        performed(2, omitted=(OmittedMessage(position=1, tokens=100),)),
    )
    assert "only named by it" in conversation.fate_history(1)[-1].what


def test_each_shortening_says_what_it_freed() -> None:
    conversation = chat_of(
        *history(user("go"), calls("a", "b"), results("a", "b")),
        ToolContentOffloaded(parts=(part(2, "a", 30), part(2, "b", 20)), head=10, tail=0),
        MessagesCondensed(parts=(part(2, "a", 5),), characters=0),
        UserContentShortened(
            parts=(SaidPart(position=0, block=0, tokens_freed=7),), head=1, tail=0
        ),
    )
    freed = [(c.kind, c.tokens_freed) for c in conversation.fate_history(2)[1:]]
    assert freed == [("offloaded", 50), ("condensed", 5)]
    assert conversation.fate_history(0)[-1].kind == "shortened"


def test_pins_recalled_lines_and_erasing_are_named() -> None:
    line = RecalledLine(position=1, version=2, start=0, stop=3, digest="d", speaker="user")
    conversation = chat_of(
        *history(*talk(2)),
        MessagePinned(pin_id="p1", position=1, text="", tokens=0),
        MessagePinned(pin_id="p2", position=2, text="", tokens=0),
        MessageUnpinned(pin_id="p2"),
        MessageUnpinned(pin_id="p1"),
        appended(4, user("and?")),
        LinesRecalled(position=4, message_id="m4", lines=(line,), tokens=9, asked_at=9),
        MessageErased(
            position=1, message_id="m1", tokens=3, tokens_freed=97, rewritten=(), reason="asked"
        ),
    )
    changes = conversation.fate_history(1)
    assert [change.kind for change in changes] == [
        "appended",
        "pinned",
        "unpinned",
        "recalled",
        "erased",
    ]
    assert [change.pin_id for change in changes[1:3]] == ["p1", "p1"]
    assert changes[3].after == 4
    assert changes[4].what == "its content was erased: asked"


def test_a_position_without_a_message_is_refused() -> None:
    conversation = chat_of(*history(*talk(2)))
    for position in (4, -1):
        with pytest.raises(UnknownMessage):
            conversation.fate_history(position)
    with pytest.raises(InvalidSetting, match="position"):
        conversation.fate_history("2")  # type: ignore[arg-type]
