"""Addresses: whatever a context shows as the address of a message can be read back."""

import asyncio
import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.api.async_memory import AsyncMemory
from refold.application.api.memory import Memory
from refold.application.conversation.addresses import address_of, parse_address, position_in
from refold.application.errors import ForeignAddress, InvalidAddress
from refold.domain.errors import UnknownMessage
from tests.support.fake_ports import core_of

thread_ids = st.text(min_size=1, max_size=40).filter(lambda t: t.isprintable() and t.strip())
positions = st.integers(0, 10**9)


@given(thread_ids, positions)
def test_an_address_of_any_conversation_is_taken_apart_as_it_was_formed(
    thread_id: str, position: int
) -> None:
    address = address_of(thread_id, position)
    parsed = parse_address(address)
    assert (parsed.thread_id, parsed.position) == (thread_id, position)
    assert position_in(thread_id, address) == position
    assert position_in(thread_id, f" {address}\n") == position


@given(thread_ids, positions)
def test_an_address_holds_nothing_that_would_end_it_early(thread_id: str, position: int) -> None:
    assert re.fullmatch(
        r"refold://[A-Za-z0-9/:@!$&'*+=~._%-]+/[0-9]+", address_of(thread_id, position)
    )


@given(thread_ids, positions)
def test_an_address_that_was_written_without_encoding_is_still_understood(
    thread_id: str, position: int
) -> None:
    assert position_in(thread_id, f"refold://{thread_id}/{position}") == position


@given(thread_ids, thread_ids, positions)
def test_an_address_of_another_conversation_is_refused_and_names_it(
    own: str, other: str, position: int
) -> None:
    address = address_of(other, position)
    if own in (other, unquote(other), address.removeprefix("refold://").rpartition("/")[0]):
        return
    with pytest.raises(ForeignAddress) as refused:
        position_in(own, address)
    assert refused.value.thread_id == other


@pytest.mark.parametrize("thread_id", ["thread-42", "a/b", "user@host:7", "x.y_z~1"])
def test_usual_ids_are_shown_as_they_are(thread_id: str) -> None:
    assert address_of(thread_id, 3) == f"refold://{thread_id}/3"


@pytest.mark.parametrize(
    "text",
    ["", "refold://", "refold://t", "refold://t/", "refold://t/x", "http://t/3", "t/3", "-1", "²"],
)
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(InvalidAddress, match="refold://THREAD/POSITION"):
        position_in("t", text)


def test_a_message_is_read_back_by_address_or_position_word_for_word() -> None:
    with Memory(core_of()) as memory:
        conversation = memory.conversation("a b/ü%20")
        said = [{"type": "text", "text": "\x1b[31m  eins\n"}, {"type": "odd", "x": [1, None]}]
        conversation.append(
            [{"role": "user", "content": "null"}, {"role": "user", "content": said}]
        )
        for where in (1, "1", address_of(conversation.thread_id, 1), "refold://a b/ü%20/1"):
            found = conversation.read(where)
            assert list(found.message.content) == said
            assert (found.position, found.message_id) == (1, conversation.messages()[1].message_id)
        assert conversation.read(1).text == "\x1b[31m  eins\n\n[odd]"


@pytest.mark.parametrize("where", [2, -1, "2", "refold://t/2", 10**20])
def test_a_message_that_there_is_not_is_told(where: int | str) -> None:
    with Memory(core_of()) as memory:
        conversation = memory.conversation("t")
        conversation.append(
            [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]
        )
        with pytest.raises(UnknownMessage, match="positions 0 to 1"):
            conversation.read(where)


def test_asyncio_reads_back_and_explains_the_same() -> None:
    async def ask() -> None:
        async with AsyncMemory(core_of()) as memory:
            conversation = memory.conversation("t")
            await conversation.append({"role": "user", "content": "one"})
            (fate,) = await conversation.explain()
            assert (await conversation.read(fate.address)).text == "one"

    asyncio.run(ask())
