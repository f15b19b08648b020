"""Invariants of what is sent: legal, whole, each message shown once, signed blocks as they came."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from refold.application.api.results import Context
from refold.application.conversation.addresses import address_of
from refold.domain.events import MessageAppended
from refold.domain.messages import Message
from refold.testing.history_layout import marked
from refold.testing.request_judge import (
    prefix_violations,
    preserved_thinking_violations,
    violations,
)
from refold.testing.request_parts import THINKING, blocks_of, message_blocks
from tests.support.talk import Json, Spoken, strings, unanswered
from tests.support.witness import THREAD, Asked, Witness, as_message, in_words

from .opened import opened, without_surrogates

MODEL = "claude-opus-5-5"
FRAMES = ("[Result of tool call", "[System message]")
"""How texts begin that hold another's words in a frame of ours."""
UNKNOWN = "[{} block, which cannot be shown as it is; kept at {}]"
_ADDRESS = re.compile(rf"refold://{THREAD}/\d+")


def pairing_and_layout_are_legal(witness: Witness, shown: Context) -> None:
    """Invariants 1 and 17: the provider would take this request."""
    if not any(s.role != "system" for s in witness.spoken):
        return
    found = violations(shown.for_anthropic(), model=MODEL)
    assert not found, found


class _Text(NamedTuple):
    text: str
    head: int | None
    """Characters shown from the beginning, where it is shown shorter."""


def live_messages_are_shown_once_and_covered_ones_never(witness: Witness, shown: Context) -> None:
    """Invariant 2: each message is rendered or covered; what is shorter shows its head and address."""
    parted = opened(witness, shown)
    texts = Counter(strings([parted.system, [m["content"] for m in parted.rest]]))
    framed = {t: n for t, n in texts.items() if t == parted.system or t.startswith(FRAMES)}
    markers = {index for text in texts for index in marked(text)}
    addresses = {found for text in texts for found in _ADDRESS.findall(text)}
    active = witness.story.active
    for spoken in witness.spoken:
        position = spoken.position
        if active is not None and active.coverage.covers(position):
            assert position not in markers, f"message {position} is covered and shown"
            continue
        for (text, head), count in Counter(_shown_texts(witness, spoken)).items():
            if head is not None:
                begins = text[: min(head, 40)]
                assert any(begins in found for found in texts), f"{position} has lost {begins!r}"
                continue
            found = texts[text] + sum(n for t, n in framed.items() if t != text and _holds(t, text))
            assert found == count, f"message {position}: {text[:40]!r} shown {found} times"
        # Those that are left out in a run have one marker, with the first and the last address.
        if any(
            key[0] == position for key in witness.story.shortened.keys() - witness.story.left_out
        ):
            assert address_of(THREAD, position) in addresses, f"{position} has no address"


def _holds(framed: str, text: str) -> bool:
    # Not followed by the mark of a further block: then it is the beginning of another text.
    return re.search(re.escape(text.strip()) + "(?!⟦)", framed) is not None


def _shown_texts(witness: Witness, spoken: Spoken) -> Iterator[_Text]:
    """The texts that must be found in the request, word for word, lone surrogates aside."""
    for index, block in enumerate(spoken.blocks):
        head = _head(witness, spoken, index, block)
        match block.get("type"):
            case "text":
                texts = [str(block.get("text"))]
            case "tool_use":
                texts = [str(block["input"].get("command", ""))]
            case "tool_result":
                texts = [b["text"] for b in blocks_of(block.get("content")) if "text" in b]
                # The texts of a shorter result are shown as one, cut where that one is cut.
                texts = texts[:1] if head is not None else texts
            case "future_block" | "container_upload_v9" as kind:
                # No provider takes it: its place is shown, and where it is kept.
                yield _Text(UNKNOWN.format(kind, address_of(THREAD, spoken.position)), None)
                continue
            case _:
                texts = []
        yield from (_Text(without_surrogates(text), head) for text in texts if marked(text))


def _head(witness: Witness, spoken: Spoken, index: int, block: Json) -> int | None:
    match block.get("type"), spoken.role:
        case "tool_use", "assistant":
            key = (spoken.position, str(block.get("id")), "call")
        case "tool_result", "user":
            key = (spoken.position, str(block.get("tool_use_id")), "result")
        case "text" | "image" | "document", "user":
            key = (spoken.position, str(index), "said")
        case _:
            return None
    part = witness.story.shortened.get(key)
    return part[1] if part else None


def addresses_lead_to_the_originals(witness: Witness, shown: Context) -> None:
    """Invariants 2 and 15: whatever a request points to can be read back byte-equal."""
    found = {a for text in strings(shown.for_anthropic()) for a in _ADDRESS.findall(text)}
    for address in sorted(found - witness.read_back):
        position = int(address.rpartition("/")[2])
        said = as_message(witness.spoken[position].message)
        assert in_words(witness.conversation.read(address).message) == said
        witness.read_back.add(address)


def unanswered_messages_are_word_for_word(witness: Witness, shown: Context) -> None:
    """Invariant 4: what the user said since the model last spoke stands in the request, unless it is
    recorded that it is too large for it.
    """
    texts, shortened = set(strings(shown.messages)), witness.story.shortened
    for spoken in unanswered(witness.spoken):
        if spoken.role == "user":
            large = [
                str(block.get("text"))
                for index, block in enumerate(spoken.blocks)
                if (spoken.position, str(index), "said") in shortened
            ]
            for words in set(spoken.words) - set(large):
                assert without_surrogates(words) in texts, f"message {spoken.position}: {words!r}"


def thinking_is_whole_or_absent(witness: Witness, shown: Context) -> None:
    """Invariant 6: a signed block that is shown is byte-equal to the one that was said."""
    said = {_bytes(b) for s in witness.spoken for b in s.blocks if b.get("type") in THINKING}
    for placed in message_blocks({"messages": shown.messages}):
        if placed.block.get("type") in THINKING:
            assert _bytes(placed.block) in said, f"{placed.where} was changed"


def thinking_behind_a_changed_prefix_is_dropped(witness: Witness, shown: Context) -> None:
    """Invariant 6: what was thought before the newest decision was signed for another prefix."""
    decisions = [v for v in witness.decisions(shown.version) if v not in witness.story.unseen]
    events = witness.events()[: decisions[-1] if decisions else 0]
    before = sum(1 for logged in events if isinstance(logged.event, MessageAppended))
    old = {_bytes(b) for s in witness.spoken[:before] for b in s.blocks}
    for placed in message_blocks({"messages": shown.messages}):
        if placed.block.get("type") in THINKING:
            assert _bytes(placed.block) not in old, f"{placed.where} is still shown"


def the_request_fits(witness: Witness, context: Context) -> None:
    """Invariant 12: the request fits, by its own figure and by measuring what is sent."""
    assert context.tokens <= context.budget.limit
    room = witness.window - context.budget.margin - context.budget.reserve
    assert context.budget.limit <= room, "margin and reserve are not left free"
    messages = [Message(role=m["role"], content=_content(m)) for m in context.messages]
    measured = sum(witness.counter.count_message(m).total for m in messages)
    measured += witness.counter.count_text(str(context.system))
    if context.tools:
        measured += witness.counter.count_tools(tuple(dict(tool) for tool in context.tools))
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
        for asked in sorted([*witness.asked, *_looked(witness)], key=lambda one: one.version)
        if asked.sendable and witness.is_clear(asked.version)
    ]
    found = prefix_violations(requests)
    assert not found, found


def _looked(witness: Witness) -> list[Asked]:
    return [asked for asked in witness.looked if not witness.is_reframed(asked.version)]


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
    spoken = [witness.erased.get(s.position, s) for s in witness.spoken[asked.spoken :][:1]]
    if not events or not spoken or not isinstance(events[0], MessageAppended):
        return []
    return spoken[0].blocks if spoken[0].role == "assistant" else []


def _bytes(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)
