from refold.domain.conversation import Coverage
from refold.domain.erasing import (
    ErasedMessage,
    erase_conversation,
    erase_messages,
    is_made_from,
    make_stub,
    strip_event,
)
from refold.domain.events import (
    ERASED,
    WITHDRAWN,
    CompactionFailed,
    ConversationErased,
    ConversationLabelled,
    Event,
    EventLost,
    LeafSummary,
    MessageErased,
    MessagePinned,
    MessageUnpinned,
)
from refold.domain.evolve import fold
from refold.domain.ledger import LedgerLine
from refold.domain.messages import Block, Message
from refold.domain.notes import Rewritten
from refold.domain.value import replace
from refold.testing.given_when_then import given
from tests.support.builders import (
    appended,
    assistant,
    calls,
    coverage,
    history,
    performed,
    requested,
    system,
    talk,
    text,
    thinking,
    tool_result,
    tool_use,
    user,
)

GONE = "[gone]"
IMAGE: Block = {"type": "image", "source": {"type": "base64", "data": "c2VjcmV0"}}


def stub(message: Message) -> Message:
    return make_stub(message, GONE)


def test_words_become_the_marker() -> None:
    assert stub(user("secret")) == user(GONE)
    assert stub(system("secret")) == system(GONE)
    assert stub(assistant(text("one"), text("two"))) == assistant(text(GONE))


def test_a_call_keeps_its_id_and_its_name_and_loses_its_input() -> None:
    given_call = {**tool_use("c1", command="secret"), "cache_control": {"type": "ephemeral"}}
    bare: Block = {"type": "tool_use", "id": "c1", "name": "bash", "input": {}}
    assert stub(assistant(text("secret"), given_call)) == assistant(text(GONE), bare)
    assert stub(calls("c1", "c2")) == calls("c1", "c2")


def test_a_result_keeps_whose_it_is_and_that_it_failed() -> None:
    failed = tool_result("c1", [text("secret"), IMAGE], is_error=True)
    left = tool_result("c1", GONE, is_error=True)
    assert stub(user(failed, text("and this"))) == user(left, text(GONE))


def test_what_is_signed_or_unknown_is_left_out() -> None:
    other: Block = {"type": "future", "text": "secret"}
    assert stub(assistant(thinking("secret"), text("a"), other)) == assistant(text(GONE))


def test_a_message_never_becomes_empty() -> None:
    assert stub(assistant(thinking("secret"))) == assistant(text(GONE))
    assert stub(user(IMAGE)) == user(text(GONE))
    assert stub(Message(role="user", content=())) == user(text(GONE))


def test_what_was_made_from_a_message_keeps_its_figures_only() -> None:
    line = LedgerLine(kind="value", text="secret", position=3)
    made = performed(
        5,
        text="a secret",
        ledger=(line,),
        ledger_shown=1,
        leaf=LeafSummary(start=0, stop=5, text="secret", tokens=7),
        block={"type": "compaction", "content": "secret"},
        split_turn_prefix="secret",
        is_split_turn=True,
    )
    left = strip_event(made, GONE)
    assert "secret" not in left.model_dump_json()
    assert left == replace(
        made,
        text=WITHDRAWN,
        ledger=(),
        ledger_shown=0,
        leaf=LeafSummary(start=0, stop=5, text=WITHDRAWN, tokens=7),
        block=None,
        split_turn_prefix=WITHDRAWN,
        source_digest="",
    )
    assert strip_event(requested(5), GONE) == replace(requested(5), source_digest="")
    failed = CompactionFailed(attempt_id="a1", reason="error_text", detail="secret")
    assert strip_event(failed, GONE) == replace(failed, detail="")
    pinned = MessagePinned(pin_id="p", position=1, text="secret", tokens=3)
    assert strip_event(pinned, GONE) == replace(pinned, text=GONE)


def test_what_is_left_is_left_whole() -> None:
    for event in (appended(0, user("secret")), requested(3), performed(3)):
        once = strip_event(event, GONE)
        assert strip_event(once, GONE) == once


def test_a_message_went_into_all_that_covers_it_and_into_nothing_else() -> None:
    attempts: dict[str, Coverage] = {"a1": coverage(5), "a2": coverage(5, exclusions=(3,))}
    one = frozenset({3})
    made: list[Event] = [
        appended(3, user("x")),
        requested(5),
        performed(5),
        CompactionFailed(attempt_id="a1", reason="x"),
        MessagePinned(pin_id="p", position=3, text="", tokens=0),
    ]
    others: list[Event] = [
        appended(4, user("x")),
        requested(3),
        performed(5, coverage=coverage(5, exclusions=(3,))),
        CompactionFailed(attempt_id="a2", reason="x"),
        CompactionFailed(attempt_id="unknown", reason="x"),
        MessagePinned(pin_id="p", position=None, text="x", tokens=1),
        ConversationLabelled(label="x"),
        EventLost(position=3),
    ]
    assert [is_made_from(event, one, attempts) for event in made] == [True] * len(made)
    assert [is_made_from(event, one, attempts) for event in others] == [False] * len(others)


MESSAGE = ErasedMessage(position=1, message_id="m1", tokens=10, tokens_freed=90)


def test_nothing_happens_where_there_is_nothing_to_erase() -> None:
    given(history(*talk(2))).when(lambda state: erase_messages(state, (), {})).then()


def test_an_erasure_records_what_was_rewritten() -> None:
    rewritten = {1: (Rewritten(version=2, remains="d"),)}
    given(history(*talk(2))).when(
        lambda state: erase_messages(state, (MESSAGE,), rewritten, reason="asked")
    ).then(
        MessageErased(
            position=1,
            message_id="m1",
            tokens=10,
            tokens_freed=90,
            rewritten=rewritten[1],
            reason="asked",
        )
    )


def test_its_pins_are_taken_back_and_the_pins_of_others_stay() -> None:
    pins = [
        MessagePinned(pin_id="p1", position=1, text="", tokens=0),
        MessagePinned(pin_id="p2", position=2, text="", tokens=0),
        MessagePinned(pin_id="p3", position=None, text="own", tokens=3),
    ]
    events = (
        given([*history(*talk(2)), *pins])
        .when(lambda state: erase_messages(state, (MESSAGE,), {}))
        .events
    )
    unpinned = [event.pin_id for event in events if isinstance(event, MessageUnpinned)]
    assert unpinned == ["p1"]


def test_an_attempt_that_was_to_cover_it_is_ended_first() -> None:
    first, *_ = (
        given([*history(*talk(4)), requested(4)])
        .when(lambda state: erase_messages(state, (MESSAGE,), {}))
        .events
    )
    assert isinstance(first, CompactionFailed)
    assert (first.attempt_id, first.reason) == ("a1", ERASED)


def test_an_attempt_over_others_goes_on() -> None:
    later = MESSAGE._replace(position=6, message_id="m6")
    events = (
        given([*history(*talk(4)), requested(4)])
        .when(lambda state: erase_messages(state, (later,), {}))
        .events
    )
    assert [type(event) for event in events] == [MessageErased]


def test_the_state_counts_what_the_erasure_freed() -> None:
    before = fold(history(*talk(2)))
    after = fold(erase_messages(before, (MESSAGE,), {}), before)
    assert after.tokens == before.tokens - 90
    assert next(m.tokens for m in after.live if m.position == 1) == 10


def test_a_conversation_is_erased_once() -> None:
    story = history(*talk(2))
    given(story).when(lambda state: erase_conversation(state, "asked")).then(
        ConversationErased(reason="asked")
    )
    given([*story, ConversationErased()]).when(erase_conversation).then()
    given().when(erase_conversation).then()
