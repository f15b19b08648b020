"""``explain``: every message has one fate, with its reason and the decision behind it."""

from collections.abc import Sequence
from typing import Any

import pytest

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.history.explain import MessageFate
from refold.application.projections.fates import Fate
from refold.domain.events import (
    CompactionReverted,
    Event,
    MessagePinned,
    MessagesCondensed,
    OmittedMessage,
    ShortenedPart,
    ToolContentOffloaded,
)
from refold.domain.value import replace
from tests.support.builders import (
    appended,
    assistant,
    calls,
    coverage,
    history,
    performed,
    requested,
    results,
    system,
    talk,
    thinking,
    user,
)
from tests.support.fake_ports import MemoryLog, core_of


def chat_of(*events: Event) -> ConversationMemory:
    """A conversation to which this happened."""
    log = MemoryLog()
    log.streams["t"] = list(events)
    return Memory(core_of(log)).conversation("t")


def fates(found: Sequence[MessageFate]) -> list[Fate]:
    return [fate.fate for fate in found]


def part(position: int, call_id: str, freed: int = 60) -> ShortenedPart:
    return ShortenedPart(position=position, call_id=call_id, side="result", tokens_freed=freed)


def pinned(position: int | None, pin_id: str = "p1", **more: Any) -> MessagePinned:
    return MessagePinned(
        pin_id=pin_id, position=position, text=more.pop("text", ""), tokens=0, **more
    )


def test_before_anything_is_decided_every_message_is_full() -> None:
    found = chat_of(*history(*talk(2))).explain()
    assert fates(found) == ["full"] * 4
    assert [f.since_version for f in found] == [1, 2, 3, 4]
    assert found[2].model_dump(exclude={"since"}) == {
        "position": 2,
        "message_id": "m2",
        "role": "user",
        "tokens": 100,
        "shown_tokens": 100,
        "fate": "full",
        "why": "nothing is summarised",
        "thinking_dropped_at": None,
        "since_version": 3,
        "summary_id": None,
        "address": "refold://t/2",
    }


def test_nothing_said_is_nothing_to_explain() -> None:
    assert chat_of().explain() == ()
    assert chat_of(*history(*talk(2))).explain(4, 9) == ()


def test_system_messages_at_the_beginning_are_the_preamble() -> None:
    conversation = chat_of(
        *history(system("be kind"), *talk(2)),
        requested(4),
        performed(4, coverage=coverage(4, start=1)),
    )
    assert fates(conversation.explain()) == ["preamble", *["summarised"] * 3, "full"]


def test_a_covered_message_names_the_summary_and_the_version_that_covered_it_first() -> None:
    conversation = chat_of(
        *history(*talk(4)),
        requested(2),
        performed(2),
        requested(5, "a2", supersedes="s1"),
        performed(5, "a2", summary_id="s2"),
    )
    found = conversation.explain()
    assert fates(found) == ["summarised"] * 5 + ["full"] * 3
    assert [f.since_version for f in found] == [10, 10, 12, 12, 12, 6, 7, 8]
    assert {f.summary_id for f in found[:5]} == {"s2"}
    assert {f.why for f in found[:5]} == {"summary s2 covers it"}
    assert {f.why for f in found[5:]} == {"newer than the active summary"}
    assert sum(f.shown_tokens for f in found) == 300


def test_a_message_that_was_too_large_for_the_summariser_is_omitted_ever_after() -> None:
    omitted = (OmittedMessage(position=1, tokens=100),)
    conversation = chat_of(
        *history(*talk(4)),
        requested(3),
        performed(3, omitted=omitted),
        requested(5, "a2", supersedes="s1"),
        performed(
            5, "a2", summary_id="s2", omitted=omitted
        ),  # Each carries on what was named before.
    )
    found = conversation.explain()
    assert fates(found)[:3] == ["summarised", "omitted", "summarised"]
    assert "too large" in found[1].why


def test_shortened_messages_say_how_and_since_when() -> None:
    conversation = chat_of(
        *history(user("go"), calls("a", "b"), results("a", "b"), calls("c"), results("c")),
        ToolContentOffloaded(parts=(part(4, "c"),), head=1_200, tail=400),
        MessagesCondensed(parts=(part(2, "a", 30), part(2, "b", 20)), characters=200),
    )
    found = conversation.explain()
    assert fates(found) == ["full", "full", "condensed", "full", "offloaded"]
    assert [f.shown_tokens for f in found] == [100, 100, 50, 100, 40]
    assert (found[2].since_version, found[2].why) == (
        7,
        "each tool result cut to 200 characters",
    )
    assert (found[4].since_version, found[4].why) == (
        6,
        "tool content shown by 1,200 + 400 characters",
    )


def test_what_was_open_business_is_protected_though_the_summary_reaches_beyond_it() -> None:
    messages = [*talk(1), user("do it"), calls("a"), results("a"), calls("b"), results("b")]
    conversation = chat_of(
        *history(*messages), requested(5), performed(5, coverage=coverage(5, exclusions=(2,)))
    )
    found = conversation.explain()
    assert fates(found)[:4] == ["summarised", "summarised", "protected", "summarised"]
    assert (found[2].why, found[2].summary_id) == ("part of a request of the running turn", "s1")
    assert found[2].since_version == 9
    over = chat_of(
        *history(*messages),
        requested(5),
        performed(5, coverage=coverage(5, exclusions=(2,))),
        *history(assistant("done"), user("thanks"), start=7),
    ).explain()
    assert over[2].why == "was part of an open request when the summary was made"


def test_a_pinned_message_says_so_and_by_which_pin() -> None:
    conversation = chat_of(
        *history(*talk(3)),
        pinned(1),
        pinned(5, "p2"),
        requested(4),
        performed(4, coverage=coverage(4, exclusions=(1,))),
    )
    found = conversation.explain()
    assert fates(found)[1] == fates(found)[5] == "pinned"
    assert (found[1].why, found[1].since_version, found[1].summary_id) == ("pinned as p1", 7, "s1")
    assert (found[5].why, found[5].since_version, found[5].summary_id) == ("pinned as p2", 8, None)


def test_words_pinned_in_the_ledger_are_told_beside_the_summary() -> None:
    in_ledger = MessagePinned(pin_id="p", position=0, text="question 0", tokens=9)
    conversation = chat_of(*history(*talk(3)), requested(2), performed(2), in_ledger)
    assert (
        conversation.explain()[0].why == "summary s1 covers it; its words are pinned in the ledger"
    )


def test_a_compaction_that_was_undone_is_told() -> None:
    before = history(*talk(3))
    conversation = chat_of(
        *before,
        requested(4),
        performed(4),
        CompactionReverted(
            summary_id="s1",
            restored=None,
            messages=(),
            older_live=0,
            older_tokens=0,
            live_from=1,
        ),
    )
    found = conversation.explain()
    assert fates(found) == ["full"] * 6
    assert {f.why for f in found[:4]} == {"summary s1 covered it and was reverted"}
    assert {f.since_version for f in found[:4]} == {9}
    assert {f.why for f in found[4:]} == {"nothing is summarised"}


def test_thinking_that_is_left_out_is_told_with_the_decision() -> None:
    thoughtful = [user("a"), assistant(thinking(), "b"), user("c"), assistant(thinking(), "d")]
    events = history(*thoughtful)
    events[1] = replace(appended(1, thoughtful[1]), thinking_tokens=30)
    conversation = chat_of(
        *events,
        ToolContentOffloaded(parts=(), head=100, tail=0),
        *history(user("e"), start=4),
    )
    found = conversation.explain()
    assert [f.thinking_dropped_at for f in found] == [None, 5, None, None, None]
    assert found[1].shown_tokens == 70


@pytest.mark.parametrize(("start", "stop"), [(3, None), (-2, None), (2, 5), (0, 1), (7, 8)])
def test_a_part_of_it_is_the_same_as_that_part_of_all(start: int, stop: int | None) -> None:
    conversation = chat_of(
        *history(*talk(3)),
        requested(4),
        performed(4, coverage=coverage(4, exclusions=(2,))),
        *history(*talk(1), start=6),
    )
    assert conversation.explain(start, stop) == conversation.explain()[start:stop]


def test_after_an_undoing_the_next_compaction_is_the_one_that_covered_first() -> None:
    conversation = chat_of(
        *history(*talk(4)),
        requested(4),
        performed(4),
        CompactionReverted(
            summary_id="s1", restored=None, messages=(), older_live=0, older_tokens=0, live_from=1
        ),
        requested(3, "a2"),
        performed(3, "a2", summary_id="s2"),
    )
    found = conversation.explain()
    assert [f.since_version for f in found[:4]] == [13, 13, 13, 11]
    assert found[3].why == "summary s1 covered it and was reverted"
