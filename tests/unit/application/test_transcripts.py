"""Messages of a transcript are appended by both façades; what is none is refused, and an author of answers."""

# pyright: basic

import asyncio
from typing import Any

import pytest

import refold
from refold.domain.errors import InvalidMessage
from tests.support.builders import assistant, user

ASKED = {"role": "user", "content": "x"}
ANSWER = {"role": "assistant", "content": "y"}
RECORDED = [
    refold.RecordedMessage(message=user("x"), key="1"),
    refold.RecordedMessage(message=assistant("y"), key="2"),
]


def test_a_transcript_is_appended_once_for_asyncio_as_well() -> None:
    async def work() -> list[tuple[bool, ...]]:
        async with refold.aopen(":memory:") as memory:
            conversation = memory.conversation("t", owner="user-7")
            assert not await conversation.knows(RECORDED[0])
            told = [await conversation.append_recorded(RECORDED) for _ in range(2)]
            assert await conversation.knows(RECORDED[0])
            assert [m.message for m in await conversation.messages()] == [user("x"), assistant("y")]
            [row] = await memory.conversations()
            assert row.owner == "user-7"
            return [tuple(message.new for message in one.messages) for one in told]

    assert asyncio.run(work()) == [(True, True), (False, False)]


@pytest.mark.parametrize("given", [5, None, "x", [5], ASKED, [ASKED], RECORDED[0]])
def test_what_is_no_message_of_a_transcript_is_refused(given: Any) -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        with pytest.raises(InvalidMessage, match=r"^messages: must be messages of a transcript"):
            conversation.append_recorded(given)
        assert conversation.version == 0


def test_messages_of_a_transcript_may_come_one_after_the_other() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        assert len(conversation.append_recorded(iter(RECORDED)).messages) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [ANSWER, [ANSWER], {"role": "system", "content": "x"}])
def test_the_author_of_messages_that_no_user_said_is_refused(given: Any) -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        with pytest.raises(InvalidMessage, match=r"^author: says who wrote user messages"):
            conversation.append(given, author="person")
        assert conversation.version == 0


def test_of_several_messages_those_of_the_user_have_the_author() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append([ASKED, ANSWER], author="person")
        assert [m.message.author for m in conversation.messages()] == ["person", None]


def test_what_an_answer_says_of_an_author_is_kept_beside_it() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append([ASKED, {**ANSWER, "author": "person"}])
        answer = conversation.messages()[1].message
        assert (answer.author, answer.extra) == (None, {"author": "person"})
