"""Invariants of what is sent: legal, whole, each message shown once, nothing in a wrong voice."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from refold.application.context import Context
from refold.application.rendering.texts import LEDGER_HEADING, SUMMARY_HEADING
from refold.domain.events import (
    CompactionPerformed,
    MessageAppended,
    MessagesCondensed,
    ToolContentOffloaded,
)
from refold.domain.messages import Message
from tests.support.histories import marked
from tests.support.legality import prefix_violations, preserved_thinking_violations, violations
from tests.support.rules.request import THINKING, blocks_of, message_blocks
from tests.support.talk import Spoken, strings, unanswered
from tests.support.witness import Asked, Witness

MODEL = "claude-opus-5-5"
FRAMES = ("[Result of tool call", "[System message]")
"""How texts begin that hold another's words in a frame of ours."""


def pairing_and_layout_are_legal(witness: Witness, shown: Context) -> None:
    """Invariants 1 and 17: the provider would take this request."""
    if not any(s.role != "system" for s in witness.spoken):
        return
    found = violations(shown.for_anthropic(), model=MODEL)
    assert not found, found


def live_messages_are_shown_once_and_covered_ones_never(witness: Witness, shown: Context) -> None:
    """Invariant 2: each message is either rendered or covered; offloaded ones show their head."""
    texts = Counter(strings([shown.system, _without_summary(shown)]))
    framed = {t: n for t, n in texts.items() if t == shown.system or t.startswith(FRAMES)}
    markers = {index for text in texts for index in marked(text)}
    offloaded = _offloaded(witness)
    summary = _active(witness)
    for spoken in witness.spoken:
        position = spoken.position
        if summary is not None and summary.coverage.covers(position):
            assert position not in markers, f"message {position} is covered and shown"
            continue
        if position in offloaded:
            assert position in markers or not _leads_with_text(spoken), f"{position} is not shown"
            continue
        for text, count in Counter(_shown_texts(spoken)).items():
            found = texts[text] + sum(n for t, n in framed.items() if t != text and _holds(t, text))
            assert found == count, f"message {position}: {text[:40]!r} shown {found} times"


def _holds(framed: str, text: str) -> bool:
    # Not followed by the mark of a further block: then it is the beginning of another text.
    return re.search(re.escape(text.strip()) + "(?!⟦)", framed) is not None


def _without_summary(shown: Context) -> list[Any]:
    if shown.summary is None:
        return shown.messages
    first, *rest = shown.messages
    said = blocks_of(first["content"])[1:]
    if said and str(said[0].get("text", "")).startswith(LEDGER_HEADING):
        said = said[1:]
    return [said, *rest]


def _offloaded(witness: Witness) -> set[int]:
    events = [e.event for e in witness.events()]
    parts = (e.parts for e in events if isinstance(e, ToolContentOffloaded | MessagesCondensed))
    return {part.position for found in parts for part in found}


def _active(witness: Witness) -> CompactionPerformed | None:
    performed = witness.performed()
    return performed[-1][1] if performed else None


def _leads_with_text(spoken: Spoken) -> bool:
    return bool(list(_shown_texts(spoken)))


def _shown_texts(spoken: Spoken) -> Iterator[str]:
    """The texts that must be found in the request, word for word, lone surrogates aside."""
    for block in spoken.blocks:
        match block.get("type"):
            case "text":
                texts = [str(block.get("text"))]
            case "tool_use":
                texts = [str(block["input"]["command"])]
            case "tool_result":
                texts = [b["text"] for b in blocks_of(block.get("content")) if "text" in b]
            case "future_block" | "container_upload_v9":
                texts = [str(block["payload"]["note"])]
            case _:
                texts = []
        yield from (_without_surrogates(text) for text in texts if marked(text))


def _without_surrogates(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def unanswered_messages_are_word_for_word(witness: Witness, shown: Context) -> None:
    """Invariant 4: what the user said since the model last spoke stands in the request."""
    texts = set(strings(shown.messages))
    for spoken in unanswered(witness.spoken):
        if spoken.role == "user":
            for words in spoken.words:
                assert _without_surrogates(words) in texts, f"message {spoken.position}: {words!r}"


def thinking_is_whole_or_absent(witness: Witness, shown: Context) -> None:
    """Invariant 6: a signed block that is shown is byte-equal to the one that was said."""
    said = {_bytes(b) for s in witness.spoken for b in s.blocks if b.get("type") in THINKING}
    for placed in message_blocks({"messages": shown.messages}):
        if placed.block.get("type") in THINKING:
            assert _bytes(placed.block) in said, f"{placed.where} was changed"


def thinking_behind_a_changed_prefix_is_dropped(witness: Witness, shown: Context) -> None:
    """Invariant 6: what was thought before the newest decision was signed for another prefix."""
    decisions = witness.decisions(shown.version)
    events = witness.events()[: decisions[-1] if decisions else 0]
    before = sum(1 for logged in events if isinstance(logged.event, MessageAppended))
    old = {_bytes(b) for s in witness.spoken[:before] for b in s.blocks}
    for placed in message_blocks({"messages": shown.messages}):
        if placed.block.get("type") in THINKING:
            assert _bytes(placed.block) not in old, f"{placed.where} is still shown"


def the_summary_speaks_as_nobody(_: Witness, shown: Context) -> None:
    """Invariants 17 and 20: the summary is one block that opens the user's first turn."""
    if shown.summary is None:
        return
    first = shown.messages[0]
    opening = blocks_of(first["content"])[0]
    assert first["role"] == "user"
    assert str(opening["text"]).startswith(SUMMARY_HEADING)
    for message in shown.messages:
        if message["role"] == "assistant":
            assert not any(SUMMARY_HEADING in text for text in strings(message["content"]))


def the_request_fits(witness: Witness, context: Context) -> None:
    """Invariant 12: the request fits, by its own figure and by measuring what is sent."""
    assert context.tokens <= context.budget.limit
    messages = [Message(role=m["role"], content=_content(m)) for m in context.messages]
    measured = sum(witness.counter.count_message(m).total for m in messages)
    measured += witness.counter.count_text(str(context.system))
    # Each message is rounded up once, and a lone surrogate is replaced by a dearer character.
    measured -= len(messages)
    measured -= 2 * sum(text.count("\ufffd") for text in strings(context.messages))
    assert measured <= context.tokens, f"the request has {measured} tokens, not {context.tokens}"


def _content(message: dict[str, Any]) -> Any:
    content = message["content"]
    return content if isinstance(content, str) else tuple(content)


def prefixes_are_stable_between_decisions(witness: Witness) -> None:
    """Invariant 18: a request begins with the bytes of the one before, unless something was decided."""
    requests = [
        {**asked.request, "messages": _as_blocks(asked.request), "decision": asked.decisions}
        for asked in witness.asked
        if asked.sendable
    ]
    found = prefix_violations(requests)
    assert not found, found


def _as_blocks(request: dict[str, Any]) -> list[Any]:
    # The API reads a string as one text block: both are the same prefix.
    return [{**m, "content": blocks_of(m["content"])} for m in request["messages"]]


def signed_thinking_stays_valid(witness: Witness) -> None:
    """Invariant 6: the newest models would accept every signed block in every request."""
    requests = [
        {**asked.request, "answer": _answer_to(witness, asked)}
        for asked in witness.asked
        if asked.sendable
    ]
    found = preserved_thinking_violations(requests, model=MODEL)
    assert not found, found


def _answer_to(witness: Witness, asked: Asked) -> list[Any]:
    # The next message is the answer, unless something was decided before it came.
    events = [logged.event for logged in witness.events()[asked.version :]]
    spoken = witness.spoken[asked.spoken : asked.spoken + 1]
    if not events or not spoken or not isinstance(events[0], MessageAppended):
        return []
    return spoken[0].blocks if spoken[0].role == "assistant" else []


def _bytes(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)
