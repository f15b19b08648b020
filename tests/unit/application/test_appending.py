"""Appending: what is stored, once for each key, and what is answered."""

import pytest

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.conversation.transcripts import RecordedMessage
from refold.domain.errors import InvalidMessage, UnknownToolCall
from refold.domain.events import MessageAppended
from tests.support.builders import NOON, calls, results, user
from tests.support.fake_ports import MemoryLog, core_of


class Desk:
    """An empty conversation and its log."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.conversation = ConversationMemory(core_of(self.log), "t", Runner())

    def stored(self) -> list[tuple[str, str | None]]:
        events = self.log.streams.get("t", [])
        messages = [e for e in events if isinstance(e, MessageAppended)]
        return [(str(e.message.content), e.key) for e in messages]


def test_the_answer_has_positions_ids_and_sizes() -> None:
    answer = Desk().conversation.append([user("hello"), user("again")])
    assert answer.thread_id == "t"
    assert answer.version == 2
    assert answer.positions == (0, 1)
    assert answer.ids == ("id1", "id2")
    assert [m.tokens for m in answer.messages] == [6, 6]
    assert all(m.new for m in answer.messages)


def test_an_id_that_came_with_the_message_is_kept() -> None:
    answer = Desk().conversation.append({"id": "msg_7", "role": "user", "content": "x"})
    assert answer.ids == ("msg_7",)


def test_appending_nothing_stores_nothing() -> None:
    desk = Desk()
    assert desk.conversation.append([]).messages == ()
    assert desk.conversation.version == 0


def test_the_same_key_again_stores_nothing_and_gives_the_same_place() -> None:
    desk = Desk()
    first = desk.conversation.append(user("hello"), key="k")
    again = desk.conversation.append(user("hello"), key="k")
    assert again.positions == first.positions
    assert again.ids == first.ids
    assert [m.new for m in again.messages] == [False]
    assert desk.stored() == [("hello", "k")]


def test_the_same_message_without_a_key_is_stored_again() -> None:
    desk = Desk()
    desk.conversation.append(user("hello"))
    desk.conversation.append(user("hello"))
    assert len(desk.stored()) == 2


def test_a_key_twice_in_one_append_is_stored_once() -> None:
    desk = Desk()
    answer = desk.conversation.append([user("a"), user("b"), user("a")], key=["k", None, "k"])
    assert answer.positions == (0, 1, 0)
    assert [m.new for m in answer.messages] == [True, True, False]
    assert desk.stored() == [("a", "k"), ("b", None)]


def test_known_and_new_keys_may_come_together() -> None:
    desk = Desk()
    desk.conversation.append(user("a"), key="k1")
    answer = desk.conversation.append([user("a"), user("b")], key=["k1", "k2"])
    assert answer.positions == (0, 1)
    assert [m.new for m in answer.messages] == [False, True]


def test_a_writer_in_between_does_not_make_a_key_double() -> None:
    desk = Desk()

    def quicker() -> None:
        desk.conversation.append(user("a"), key="k")

    desk.log.before_deciding = quicker
    answer = desk.conversation.append(user("a"), key="k")
    assert answer.positions == (0,)
    assert [m.new for m in answer.messages] == [False]
    assert desk.stored() == [("a", "k")]


@pytest.mark.parametrize("keys", [["k"], ["k", "l", "m"], "k"])
def test_there_must_be_a_key_for_each_message(keys: list[str] | str) -> None:
    desk = Desk()
    with pytest.raises(InvalidMessage) as caught:
        desk.conversation.append([user("a"), user("b")], key=keys)
    assert caught.value.field == "key"
    assert desk.stored() == []


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_key_is_refused(blank: str) -> None:
    with pytest.raises(InvalidMessage, match="blank"):
        Desk().conversation.append(user("a"), key=blank)


def test_a_result_without_its_call_stores_nothing_of_the_whole_append() -> None:
    desk = Desk()
    with pytest.raises(UnknownToolCall):
        desk.conversation.append([user("a"), results("x")])
    assert desk.stored() == []
    desk.conversation.append([user("a"), results("x")], recorded=True)
    assert len(desk.stored()) == 2


def test_a_result_that_was_delivered_before_is_known_and_not_refused() -> None:
    desk = Desk()
    desk.conversation.append([calls("x"), results("x")], key=["k1", "k2"])
    assert [m.new for m in desk.conversation.append(results("x"), key="k2").messages] == [False]


def recorded(words: str, key: str) -> RecordedMessage:
    return RecordedMessage(
        message=user(words), key=key, message_id=f"id-{key}", at=NOON, model="m", stop_reason="s"
    )


def test_messages_of_a_transcript_are_stored_once_with_their_origin() -> None:
    desk = Desk()
    desk.conversation.append_recorded([recorded("a", "1"), recorded("b", "2")])
    again = desk.conversation.append_recorded([recorded("b", "2"), recorded("c", "3")])
    assert again.positions == (1, 2)
    event = desk.log.streams["t"][0]
    assert isinstance(event, MessageAppended)
    assert (event.message_id, event.written_at, event.model) == ("id-1", NOON, "m")
    assert event.stop_reason == "s"


def test_keys_of_transcripts_and_of_agents_are_apart() -> None:
    desk = Desk()
    desk.conversation.append(user("a"), key="1")
    assert not desk.conversation.knows(recorded("a", "1"))
    desk.conversation.append_recorded([recorded("a", "1")])
    assert desk.conversation.knows(recorded("a", "1"))
    both = [recorded("b", "2"), recorded("a", "1")]
    assert desk.conversation.select_known(both) == both[1:]
    assert len(desk.stored()) == 2


@pytest.mark.parametrize(
    ("start", "stop", "positions"),
    [(0, None, [0, 1, 2, 3]), (1, 3, [1, 2]), (-1, None, [3]), (3, 1, []), (9, None, [])],
)
def test_messages_are_read_back_as_from_a_slice(
    start: int, stop: int | None, positions: list[int]
) -> None:
    desk = Desk()
    desk.conversation.append([user(str(i)) for i in range(4)])
    found = desk.conversation.messages(start, stop)
    assert [m.position for m in found] == positions
    assert [m.message.content for m in found] == [str(p) for p in positions]
