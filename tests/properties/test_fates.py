"""Invariant 2 as ``explain`` tells it: every message has one fate, and the request shows just that."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.history.explain import MessageFate
from refold.application.rendering.request_blocks import LEDGER_HEADING, SUMMARY_HEADING
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import ContextWindowExceeded, InvalidMessage
from refold.domain.value import is_list, is_object
from tests.support.fake_ports import MemoryLog, core_of

POLICY = CompactionPolicy(
    keep_last=1,
    whole_last=2,
    offload_tokens=100,
    giant_share=0.1,
    condensed_characters=100,
    leaf_tokens=100,
)
WINDOW = 4_000
SENTENCE = "all the work of this morning was about lamp number {n} and its wire; "

sizes = st.sampled_from((2, 8, 16, 40))
moves = st.one_of(
    st.tuples(st.just("talk"), sizes, sizes),
    st.tuples(st.just("tools"), sizes, sizes),
    st.tuples(st.just("tools"), sizes, sizes),
    st.tuples(st.sampled_from(("compact", "revert", "unpin")), st.just(0), st.just(0)),
    st.tuples(st.just("pin"), st.integers(0, 30), st.just(0)),
)


def body(position: int, size: int) -> str:
    """A text that no other message has, longer than anything that quotes a part of it."""
    return f"<{position}> " + SENTENCE.format(n=position) * size + f"</{position}>"


def said(
    conversation: ConversationMemory, kind: str, first: int, second: int
) -> list[dict[str, Any]]:
    at = len(conversation.messages())
    if kind == "talk":
        return [
            {"role": "user", "content": body(at, first)},
            {"role": "assistant", "content": body(at + 1, second)},
        ]
    used = {"type": "tool_use", "id": f"c{at}", "name": "look", "input": {"at": body(at, first)}}
    found = {"type": "tool_result", "tool_use_id": f"c{at}", "content": body(at + 1, second)}
    return [{"role": "assistant", "content": [used]}, {"role": "user", "content": [found]}]


def done(conversation: ConversationMemory, kind: str, first: int, second: int) -> None:
    match kind:
        case "compact":
            conversation.compact()
        case "revert":
            conversation.revert_compaction()
        case "pin":
            conversation.pin(first % len(conversation.messages()))
        case "unpin":
            for pin in conversation.pins()[:1]:
                conversation.unpin(pin.pin_id)
        case _:
            conversation.append(said(conversation, kind, first, second), recorded=True)
            conversation.context()


def texts(value: object) -> Iterator[str]:
    """Every text in a request."""
    if isinstance(value, str):
        yield value
    elif is_object(value):
        yield from texts(list(value.values()))
    elif is_list(value):
        yield from (text for inner in value for text in texts(inner))


def whole_body(content: Any, position: int) -> str:
    (found,) = (text for text in texts(json.loads(json.dumps(content))) if f"<{position}> " in text)
    return found


@given(st.lists(moves, min_size=6, max_size=25))
def test_every_message_has_one_fate_and_is_shown_by_it(steps: list[tuple[str, int, int]]) -> None:
    log = MemoryLog()
    with Memory(core_of(log, window=WINDOW, policy=POLICY)) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "system", "content": body(0, 3)}, recorded=True)
        conversation.append({"role": "user", "content": body(1, 3)})
        for kind, first, second in steps:
            try:
                done(conversation, kind, first, second)
            except (ContextWindowExceeded, InvalidMessage):  # There are no words to pin.
                continue
            agrees(conversation, log, conversation.explain())


def agrees(
    conversation: ConversationMemory, log: MemoryLog, fates: tuple[MessageFate, ...]
) -> None:
    context, loaded = conversation.context(at=conversation.version), log.load("t")
    stored = conversation.messages()
    assert [fate.position for fate in fates] == [message.position for message in stored]
    summary = loaded.window.summary
    beside = sum(pin.tokens for pin in loaded.state.pins) + (summary.tokens if summary else 0)
    assert sum(fate.shown_tokens for fate in fates) + beside == loaded.state.tokens
    shown = list(texts([context.system, context.messages]))
    # Summary and ledger may quote anything.
    shown = [text for text in shown if not text.startswith((SUMMARY_HEADING, LEDGER_HEADING))]
    for fate, message in zip(fates, stored, strict=True):
        whole = whole_body(list(message.message.blocks()), fate.position)
        is_whole = any(whole in text for text in shown)
        begins = any(f"<{fate.position}> " in text for text in shown)
        match fate.fate:
            case "full" | "pinned" | "protected" | "preamble":
                assert is_whole, f"{fate.position} is {fate.fate} and not shown"
            case "condensed" | "offloaded":
                assert not is_whole
                assert begins
                assert any(fate.address in text for text in shown)
            case "summarised" | "omitted":
                assert not begins, f"{fate.position} is {fate.fate} and shown"
                assert summary is not None
                assert summary.coverage.covers(fate.position)
            case "erased":
                raise AssertionError(f"{fate.position} is erased, and nobody asked for it")
