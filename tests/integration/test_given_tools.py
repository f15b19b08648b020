"""``tools=`` of a chat: what callers hand over, and what they are told of what is no tool."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import refold
from refold.application.api.conversation_memory import Chat
from refold.domain.errors import InvalidMessage


@pytest.fixture
def chat() -> Iterator[Chat]:
    with refold.open(":memory:", window=8_000) as memory:
        made = memory.conversation("t")
        made.append({"role": "user", "content": "hello"})
        yield made


def test_a_toolbox_and_its_tools_are_taken_for_their_definitions(chat: Chat) -> None:
    tools = chat.tools()
    own = {"name": "bash", "description": "Run it.", "input_schema": {"type": "object"}}
    expected = chat.context(tools=tools.definitions)
    assert expected.tools == tools.definitions
    for given in (tools, list(tools), tools[:], (tool for tool in tools)):
        made = chat.context(tools=given)
        assert (made.tools, made.tokens) == (expected.tools, expected.tokens)
    assert chat.context(tools=[own, *tools]).tools == [own, *tools.definitions]
    assert chat.context(tools=tools, at=chat.version).tools == tools.definitions
    assert chat.compact(tools=tools).success
    assert chat.revert_compaction(tools=tools).success
    assert chat.context(tools=None).tools == chat.context(tools=()).tools == []


WRONG: list[tuple[str, str, Callable[[Chat], Any]]] = [
    ("tools[0]", "BlockingTool", lambda chat: chat.tools().for_anthropic()),
    ("tools[1]", "str", lambda chat: [chat.tools()[0], "bash"]),
    ("tools[0]", "function", lambda chat: [print_it]),
    ("tools[0]", "NoneType", lambda chat: [None]),
    ("tools", "dict", lambda chat: chat.tools().definitions[0]),
    ("tools", "Tool", lambda chat: chat.tools()[0]),
    ("tools", "str", lambda chat: "bash"),
    ("tools", "int", lambda chat: 5),
]


@pytest.mark.parametrize(("field", "kind", "given"), WRONG)
def test_what_is_no_tool_is_refused_by_its_place(
    chat: Chat, field: str, kind: str, given: Callable[[Chat], Any]
) -> None:
    pytest.importorskip("anthropic")
    tools = given(chat)
    for work in (chat.context, chat.compact, chat.revert_compaction):
        with pytest.raises(InvalidMessage, match=kind) as refused:
            work(tools=tools)
        assert refused.value.field == field
        assert "definitions" in str(refused.value)


def test_the_same_holds_for_asyncio() -> None:
    async def work() -> None:
        async with refold.aopen(":memory:", window=8_000) as memory:
            chat = memory.conversation("t")
            await chat.append({"role": "user", "content": "hello"})
            tools = chat.tools()
            made = await chat.context(tools=tools)
            assert made.tools == tools.definitions
            assert (await chat.context(tools=list(tools))).tools == tools.definitions
            assert (await chat.compact(tools=tools)).success
            assert (await chat.revert_compaction(tools=tools)).success
            wrong: Any = ["bash"]
            for refused in (chat.context, chat.compact, chat.revert_compaction):
                with pytest.raises(InvalidMessage, match="tools\\[0\\]"):
                    await refused(tools=wrong)

    asyncio.run(work())


def print_it(it: str) -> None:
    """A tool as other libraries take it."""
