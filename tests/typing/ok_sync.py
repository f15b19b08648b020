"""Keep a conversation with the Messages API, and read everything that its results say."""

from typing import Any, assert_type

from anthropic import Anthropic

import refold

Handle = refold.ConversationMemory
"""The only place in these programs that names the class of ``memory.conversation``."""


def answer(conversation: Handle, client: Anthropic, text: str) -> refold.Appended:
    """One turn of an agent."""
    with conversation.turn(wait=5):
        conversation.append({"role": "user", "content": text}, key="turn-1", author="person")
        context = conversation.context(system="Be brief.", tools=conversation.tools())
        request: dict[str, Any] = context.for_anthropic(betas=["some-beta"])
        # ``create`` is overloaded: for ``**request``, pyright's strict mode leaves the type of its answer open.
        with client.messages.stream(model="claude-opus-4-5", max_tokens=1_000, **request) as stream:
            reply = stream.get_final_message()
        return conversation.append(reply, expected_version=context.version)


def read_results(memory: refold.Memory) -> None:
    """The fields of what the methods return."""
    conversation = memory.conversation("thread", owner="user-1")
    stored = conversation.append([{"role": "user", "content": "Hello"}], key=["first"])
    assert_type(stored, refold.Appended)
    assert_type(stored.positions, tuple[int, ...])
    assert_type(stored.messages[0].new, bool)

    context = conversation.context(at=stored.version)
    assert_type(context, refold.Context)
    assert_type(context.messages, list[dict[str, Any]])
    assert_type(context.budget.limit, int)
    assert_type(context.for_openai(), dict[str, Any])
    if context.summary is not None:
        assert_type(context.summary.summary_id, str)

    result = conversation.compact(focus="the names of files", keep_last=4)
    assert_type(result, refold.CompactionResult)
    assert_type(result.freed, int)
    assert_type(result.success, bool)

    message = conversation.read("0")
    assert_type(message, refold.StoredMessage)
    assert_type(message.text, str)
    assert_type(message.summary_id, str | None)


def change_history(memory: refold.Memory) -> None:
    """Pins, forks and erasures."""
    conversation = memory.conversation("thread")
    pin = conversation.pin(0)
    assert_type(conversation.unpin(pin), bool)
    copy = conversation.fork(position=0, thread_id="copy")
    assert_type(copy.thread_id, str)
    assert_type(copy.erase([0, "1"], reason="asked for"), refold.ErasureReport)
    assert_type(memory.erase_conversation("copy"), refold.ErasureReport)


def main() -> None:
    """The memory is a context manager."""
    with refold.open("agent.db", window=200_000) as memory:
        assert_type(memory, refold.Memory)
        answer(memory.conversation("thread"), Anthropic(), "Hello")
        assert_type([row.thread_id for row in memory.conversations()], list[str])
    try:
        refold.restore("backup.db", "agent.db")
    except (refold.LogError, refold.TargetExists) as error:
        print(error)


if __name__ == "__main__":
    main()
