"""``tools=`` of a chat: what callers hand over, and what they are told of what is no tool."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.domain.errors import InvalidMessage


@pytest.fixture
def conversation() -> Iterator[ConversationMemory]:
    with refold.open(":memory:", window=8_000) as memory:
        made = memory.conversation("t")
        made.append({"role": "user", "content": "hello"})
        yield made


def test_a_toolbox_and_its_tools_are_taken_for_their_definitions(
    conversation: ConversationMemory,
) -> None:
    tools = conversation.tools()
    own = {"name": "bash", "description": "Run it.", "input_schema": {"type": "object"}}
    expected = conversation.context(tools=tools.definitions)
    assert expected.tools == tools.definitions
    for given in (tools, list(tools), tools[:], (tool for tool in tools)):
        made = conversation.context(tools=given)
        assert (made.tools, made.tokens) == (expected.tools, expected.tokens)
    assert conversation.context(tools=[own, *tools]).tools == [own, *tools.definitions]
    assert conversation.context(tools=tools, at=conversation.version).tools == tools.definitions
    assert conversation.compact(tools=tools).success
    assert conversation.revert_compaction(tools=tools).success
    assert conversation.context(tools=None).tools == conversation.context(tools=()).tools == []


WRONG: list[tuple[str, str, Callable[[ConversationMemory], Any]]] = [
    ("tools[0]", "BlockingTool", lambda conversation: conversation.tools().for_anthropic()),
    ("tools[1]", "str", lambda conversation: [conversation.tools()[0], "bash"]),
    ("tools[0]", "function", lambda conversation: [print_it]),
    ("tools[0]", "NoneType", lambda conversation: [None]),
    ("tools", "dict", lambda conversation: conversation.tools().definitions[0]),
    ("tools", "Tool", lambda conversation: conversation.tools()[0]),
    ("tools", "str", lambda conversation: "bash"),
    ("tools", "int", lambda conversation: 5),
]


@pytest.mark.parametrize(("field", "kind", "given"), WRONG)
def test_what_is_no_tool_is_refused_by_its_place(
    conversation: ConversationMemory,
    field: str,
    kind: str,
    given: Callable[[ConversationMemory], Any],
) -> None:
    pytest.importorskip("anthropic")
    tools = given(conversation)
    for work in (conversation.context, conversation.compact, conversation.revert_compaction):
        with pytest.raises(InvalidMessage, match=kind) as refused:
            work(tools=tools)
        assert refused.value.field == field
        assert "definitions" in str(refused.value)


def test_the_same_holds_for_asyncio() -> None:
    async def work() -> None:
        async with refold.aopen(":memory:", window=8_000) as memory:
            conversation = memory.conversation("t")
            await conversation.append({"role": "user", "content": "hello"})
            tools = conversation.tools()
            made = await conversation.context(tools=tools)
            assert made.tools == tools.definitions
            assert (await conversation.context(tools=list(tools))).tools == tools.definitions
            assert (await conversation.compact(tools=tools)).success
            assert (await conversation.revert_compaction(tools=tools)).success
            wrong: Any = ["bash"]
            for refused in (
                conversation.context,
                conversation.compact,
                conversation.revert_compaction,
            ):
                with pytest.raises(InvalidMessage, match="tools\\[0\\]"):
                    await refused(tools=wrong)

    asyncio.run(work())


def print_it(it: str) -> None:
    """A tool as other libraries take it."""
