"""Keep a conversation with asyncio."""

import asyncio
from typing import Any, assert_type

from anthropic import AsyncAnthropic

import refold


async def answer(memory: refold.AsyncMemory, client: AsyncAnthropic, text: str) -> None:
    """One turn of an agent."""
    conversation = memory.conversation("thread")
    async with conversation.turn():
        stored = await conversation.append({"role": "user", "content": text})
        assert_type(stored, refold.Appended)
        context = await conversation.context(tools=conversation.tools())
        assert_type(context, refold.Context)
        request: dict[str, Any] = context.for_anthropic()
        async with client.messages.stream(
            model="claude-opus-4-5", max_tokens=1_000, **request
        ) as stream:
            await conversation.append(await stream.get_final_message())


async def look_back(memory: refold.AsyncMemory) -> None:
    """What was said, and what became of it."""
    conversation = memory.conversation("thread", owner="user-1")
    recalled = await conversation.recall("the port number", mode="keyword", limit=3)
    assert_type(recalled.hits, tuple[refold.RecallHit, ...])
    page = await conversation.query(text="port")
    assert_type(page, refold.HistoryPage)
    assert_type(await conversation.compact(), refold.CompactionResult)
    assert_type(await conversation.messages(0, 5), list[refold.StoredMessage])
    assert_type(await conversation.owner(), str | None)


async def main() -> None:
    """The memory is an asynchronous context manager, or is awaited."""
    async with refold.aopen("agent.db", window=200_000) as memory:
        assert_type(memory, refold.AsyncMemory)
        await answer(memory, AsyncAnthropic(), "Hello")
    memory = await refold.aopen("agent.db")
    await look_back(memory)
    await memory.close()


if __name__ == "__main__":
    asyncio.run(main())
