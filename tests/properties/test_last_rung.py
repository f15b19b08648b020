"""Whatever is said and shown, a request comes out, unless pins, system text or tools are too large."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.testing.request_judge import violations
from tests.support.effort import tenth_unless_all

Block = dict[str, Any]
SOURCE = {"type": "url", "url": "https://x.org/a"}
WINDOWS = (4_000, 8_000, 16_000, 32_000)


def _text(words: int) -> Block:
    return {"type": "text", "text": "so it is " * words + "end"}


blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(_text, st.sampled_from((0, 3, 20, 60, 200, 1_000, 8_000))),
    st.just({"type": "image", "source": SOURCE}),
    st.just({"type": "document", "source": SOURCE}),
)


def _times(block: Block, times: int) -> list[Block]:
    return [block] * times


shown = st.one_of(
    st.lists(blocks, min_size=1, max_size=6),
    st.builds(_times, blocks, st.sampled_from((10, 30))),
)
moves = st.one_of(
    st.tuples(st.just("user"), shown),
    st.tuples(st.just("several"), st.tuples(blocks, st.sampled_from((5, 40, 150)))),
    st.tuples(st.just("assistant"), st.sampled_from((3, 20))),
    st.tuples(st.just("tools"), st.tuples(st.integers(1, 3), shown)),
    st.tuples(st.just("ask"), st.none()),
    st.tuples(st.just("reopen"), st.none()),
)


def _tools(at: int, calls: int, content: list[Block]) -> list[Block]:
    ids = [f"c{at}_{n}" for n in range(calls)]
    used: list[Block] = [
        {"type": "tool_use", "id": one, "name": "look", "input": {}} for one in ids
    ]
    got = [{"type": "tool_result", "tool_use_id": one, "content": content} for one in ids]
    return [{"role": "assistant", "content": used}, {"role": "user", "content": got}]


def _messages(at: int, kind: str, drawn: Any) -> list[Block]:
    match kind:
        case "user":
            return [{"role": "user", "content": drawn}]
        case "several":
            block, times = drawn
            return [{"role": "user", "content": [block]}] * times
        case "assistant":
            return [{"role": "assistant", "content": "an answer " * drawn}]
        case "tools":
            return _tools(at, *drawn)
        case _:
            return []


def _asked(conversation: refold.ConversationMemory, system: str) -> list[Block]:
    context = conversation.context(system=system)
    assert context.tokens <= context.budget.limit
    assert context.bytes <= context.budget.byte_limit
    assert violations(context.for_anthropic()) == []
    again = conversation.context(system=system)
    assert (again.messages, again.version) == (context.messages, context.version)
    return context.messages


@tenth_unless_all(60)
@given(
    st.sampled_from(WINDOWS),
    st.sampled_from(("extractive", "off")),
    st.sampled_from((0.0, 0.2, 0.4)),
    st.lists(moves, min_size=1, max_size=9),
)
def test_a_request_always_comes_out_and_is_the_same_after_a_restart(
    window: int, summariser: Any, fixed: float, drawn: list[tuple[str, Any]]
) -> None:
    system = "rule " * int(window * fixed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        memory = refold.open(path, window=window, summariser=summariser)
        for kind, said in drawn:
            if kind == "reopen":
                memory.close()
                memory = refold.open(path, window=window, summariser=summariser)
            conversation = memory.conversation("t")
            if messages := _messages(len(conversation.messages()), kind, said):
                conversation.append(messages)
            elif kind == "ask" and len(conversation.messages()):
                _asked(conversation, system)
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "and now?"})
        messages, version = _asked(conversation, system), conversation.version
        memory.close()
        with refold.open(path, window=window, summariser=summariser) as memory:
            conversation = memory.conversation("t")
            assert conversation.context(at=version).messages == messages
            assert _asked(conversation, system) == messages
            assert memory.verify().ok
