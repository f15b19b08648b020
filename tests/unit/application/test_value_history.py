"""``why``: where a value is, when it left the request, and what brings it back."""

from typing import Any

import pytest

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.compaction.next_request import context_of
from refold.application.history.value_history import MOST_CHANGES, MOST_RENDERED, ValueHistory
from refold.application.history.value_timeline import MOST_LOOKS
from refold.domain.errors import ConversationGone, InvalidSetting
from refold.domain.events import (
    ConversationErased,
    Event,
    MessagePinned,
    MessageUnpinned,
    ShortenedPart,
    ToolContentOffloaded,
)
from refold.domain.ledger import LedgerLine
from tests.support.builders import (
    appended,
    assistant,
    history,
    performed,
    requested,
    talk,
    text,
    tool_result,
    tool_use,
    user,
)
from tests.support.fake_ports import MemoryLog, core_of

PORT = "the port is 6390"


def chat_of(*events: Event) -> ConversationMemory:
    """A conversation to which this happened."""
    log = MemoryLog()
    log.streams["t"] = list(events)
    return Memory(core_of(log)).conversation("t")


def offloaded(position: int, call_id: str = "c1", head: int = 4) -> ToolContentOffloaded:
    part = ShortenedPart(position=position, call_id=call_id, side="result", tokens_freed=60)
    return ToolContentOffloaded(parts=(part,), head=head, tail=0)


def steps(found: ValueHistory) -> list[tuple[int, str, str]]:
    return [(change.version, change.cause, change.after) for change in found.changes]


def ways(found: ValueHistory) -> dict[str, bool]:
    return {way.kind: way.works for way in found.ways}


def test_a_value_in_a_live_message_is_in_the_request() -> None:
    found = chat_of(*history(user(PORT), *talk(1))).why("6390")
    assert found.standing == "message"
    assert (found.count, found.match, found.is_known) == (1, "exact", True)
    assert found.first is not None
    assert found.first == found.newest
    assert (found.first.position, found.first.role, found.first.line) == (0, "user", PORT)
    assert [(place.kind, place.position) for place in found.places] == [("message", 0)]
    assert steps(found) == [(1, "appended", "message")]
    assert found.ways == ()


def test_a_compaction_that_does_not_keep_it_makes_it_leave() -> None:
    found = chat_of(*history(user(PORT), *talk(2)), requested(3), performed(3)).why("6390")
    assert found.standing == "nowhere"
    assert found.places == ()
    assert steps(found) == [(1, "appended", "message"), (7, "compaction", "nowhere")]
    left = found.changes[-1]
    assert (left.summary_id, left.trigger) == ("s1", "size")
    assert left.tokens_before is not None
    assert ways(found)["read"]
    assert ways(found)["revert"]
    (fork,) = (way for way in found.ways if way.kind == "fork")
    assert fork.command == ("fork", "t", "--at", "6")


@pytest.mark.parametrize("words", [(), ("Let me look.",)])
def test_a_value_outside_of_the_words_of_a_message_is_pinned_as_a_text(
    words: tuple[str, ...],
) -> None:
    call = assistant(*map(text, words), tool_use("c1", command="run 6390 now"))
    messages = user("Go."), call, user(tool_result("c1")), *talk(3)
    found = chat_of(*history(*messages), requested(5), performed(5)).why("6390")
    (pin,) = (way for way in found.ways if way.kind == "pin")
    assert (pin.works, pin.call) == (True, "conversation.pin('6390')")
    assert pin.command == ("pin", "t", "--text", "6390")


def test_a_ledger_that_keeps_it_is_named_with_its_line() -> None:
    line = LedgerLine(kind="request", text=PORT, position=0)
    events = requested(3), performed(3, ledger=(line,), ledger_shown=1)
    found = chat_of(*history(user(PORT), *talk(2)), *events).why("6390")
    assert found.standing == "memory"
    assert [(place.kind, place.position, place.line) for place in found.places] == [
        ("ledger", 0, f"[0] {PORT}")
    ]
    assert steps(found)[-1] == (7, "compaction", "memory")
    hidden = requested(3), performed(3, ledger=(line,), ledger_shown=0)
    gone = chat_of(*history(user(PORT), *talk(2)), *hidden).why("6390")
    assert (gone.standing, steps(gone)[-1]) == ("nowhere", (7, "compaction", "nowhere"))


def test_a_value_that_comes_and_goes_has_every_moment() -> None:
    found = chat_of(
        *history(user(PORT), *talk(2)),
        requested(3),
        performed(3),
        MessagePinned(pin_id="p1", position=None, text="6390", tokens=3),
        MessageUnpinned(pin_id="p1"),
        appended(5, user("6390 again")),
    ).why("6390")
    assert steps(found) == [
        (1, "appended", "message"),
        (7, "compaction", "nowhere"),
        (8, "pinned", "memory"),
        (9, "unpinned", "nowhere"),
        (10, "appended", "message"),
    ]
    assert (found.count, found.changes[-1].position) == (2, 5)


def test_an_earlier_version_has_its_own_answer() -> None:
    conversation = chat_of(*history(user(PORT), *talk(2)), requested(3), performed(3))
    found = conversation.why("6390", at=6)
    assert (found.version, found.standing) == (6, "message")
    assert ways(found)["read"], "what brings it back is about now"
    assert conversation.why("6390", at=0).count == 0
    with pytest.raises(InvalidSetting):
        conversation.why("6390", at=99)


def tool_round(before: str, after: str) -> list[Event]:
    return history(
        user("look"),
        assistant(tool_use("c1", file="a.py")),
        user(tool_result("c1", f"{before}6390{after}")),
        assistant("done"),
    )


def test_an_offload_that_cuts_it_is_a_departure_and_one_that_shows_it_is_none() -> None:
    filling = "and so on and on " * 60
    hidden = chat_of(*tool_round(filling, filling), offloaded(2)).why("6390")
    assert steps(hidden) == [(3, "appended", "message"), (5, "offloaded", "nowhere")]
    assert hidden.changes[-1].tokens_before is not None, "the request is rendered for its size"
    assert hidden.newest is not None
    assert hidden.newest.tool == "bash"
    shown = chat_of(*tool_round("", filling), offloaded(2)).why("6390")
    assert steps(shown) == [(3, "appended", "message")]
    assert [place.kind for place in shown.places] == ["preview"]


def test_a_call_is_found_by_the_strings_of_its_input() -> None:
    used = assistant(tool_use("c1", command='echo "never\nmain"'))
    found = chat_of(*history(user("go"), used, user(tool_result("c1", "ok")))).why('"never\nmain"')
    assert found.newest is not None
    assert (found.newest.position, found.standing) == (1, "message")
    assert found.newest.tool == "bash"


def test_without_an_exact_match_case_and_spacing_are_ignored() -> None:
    found = chat_of(*history(user("Never push\nto main."), *talk(1))).why("never push to main")
    assert (found.match, found.count, found.standing) == ("similar", 1, "message")
    exact = chat_of(*history(user("NEVER"), user("never"))).why("never")
    assert (exact.match, exact.count) == ("exact", 1)


def test_a_value_that_no_message_has_is_not_known() -> None:
    found = chat_of(*history(*talk(2))).why("6390")
    assert not found.is_known
    assert (found.match, found.changes, found.ways) == ("none", (), ())


def test_a_value_that_only_a_pin_has_is_known() -> None:
    pin = MessagePinned(pin_id="p1", position=None, text=PORT, tokens=3)
    found = chat_of(*history(*talk(2)), pin).why("6390")
    assert (found.is_known, found.count, found.standing) == (True, 0, "memory")
    assert [place.kind for place in found.places] == ["pin"]


@pytest.mark.parametrize("value", ["", " ", "x" * 20_000])
def test_a_value_that_cannot_be_searched_for_is_refused(value: str) -> None:
    with pytest.raises(InvalidSetting, match="value"):
        chat_of(*history(*talk(1))).why(value)


def test_an_erased_conversation_has_no_answer() -> None:
    with pytest.raises(ConversationGone):
        chat_of(*history(user(PORT)), ConversationErased()).why("6390")


def test_thinking_is_not_searched() -> None:
    thought: Any = {"type": "thinking", "thinking": PORT, "signature": "s"}
    found = chat_of(*history(user("go"), assistant(thought, text("done")))).why("6390")
    assert not found.is_known


class Counted:
    """A function that counts how often it is called."""

    def __init__(self, function: Any) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.calls += 1
        return self.function(*given, **named)


def test_however_often_it_changed_few_requests_are_rendered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = Counted(context_of)
    monkeypatch.setattr("refold.application.history.value_history.context_of", counted)
    pins: list[Event] = []
    for n in range(60):
        pins += [
            MessagePinned(pin_id=f"p{n}", position=None, text="6390", tokens=3),
            MessageUnpinned(pin_id=f"p{n}"),
        ]
    found = chat_of(*history(*talk(1)), *pins).why("6390")
    assert (found.change_count, len(found.changes)) == (120, MOST_CHANGES)
    assert found.is_certain
    assert 1 < counted.calls <= MOST_RENDERED


def test_too_many_versions_with_shortened_messages_are_reported() -> None:
    filling = "and so on and on " * 60
    events = tool_round("", filling)
    again = [offloaded(2, head=4 + n) for n in range(MOST_LOOKS + 2)]
    found = chat_of(*events, *again).why("6390")
    assert not found.is_certain
    assert found.standing == "message"
    assert chat_of(*events, *again[:5]).why("6390").is_certain
