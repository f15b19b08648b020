"""What must hold after any fault: opened as it is, everything acknowledged is there exactly once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import refold
from refold.domain.errors import ConversationGone
from refold.testing.request_judge import violations

from .session import POLICY, SECRET, WINDOW

Fact = Mapping[str, Any]

STUB = "[Content unavailable: refold://"
"""What stands in the place of an erased message."""


class Batch(NamedTuple):
    """Messages of one append, all of which must be there, or none."""

    thread_id: str
    messages: tuple[str, ...]
    positions: tuple[int, ...] | None
    """None where it was not acknowledged."""


def told(folder: Path) -> list[Fact]:
    """What the session said."""
    path = folder / "told.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def refusals(facts: Sequence[Fact]) -> list[str]:
    """The errors of refold that were raised, in their order."""
    return [f["error"] for f in facts if f.get("phase") == "refused"]


def faults_of(folder: Path) -> Iterator[str]:
    """Everything that is not as it must be; nothing else is touched than by opening and using it."""
    facts = told(folder)
    yield from (
        f"an error of others came out: {f['error']}" for f in facts if f.get("phase") == "untyped"
    )
    path = folder / "agent.db"
    if not path.exists():
        if any(batch.positions is not None for batch in _batches(facts)):
            yield "the log is gone"
        return
    with refold.open(path, window=WINDOW, policy=POLICY) as memory:
        yield from _damage(memory, "found")
        yield from _contents(memory, facts)
        yield from _requests(memory)
        yield from _goes_on(memory)
        _erase_again(memory, facts)
        yield from _damage(memory, "found after going on")
    if any(fact.get("act") == "erase" for fact in facts):
        yield from _secret(folder)


def _damage(memory: refold.Memory, when: str) -> Iterator[str]:
    for found in memory.verify().damage:
        yield f"{when}: {found.place} {found.thread_id} {found.version} {found.kind} {found.detail}"


def _contents(memory: refold.Memory, facts: Sequence[Fact]) -> Iterator[str]:
    batches = list(_batches(facts))
    a = _stored(memory, "a")
    for thread_id in sorted({batch.thread_id for batch in batches}):
        stored = _stored(memory, thread_id)
        if _is_erased(memory, thread_id):
            yield from _erased(facts, thread_id, stored)
            continue
        if _acknowledged(facts, "erase_conversation", thread_id):
            yield f"{thread_id}: erased, and still there"
        own = [batch for batch in batches if batch.thread_id == thread_id]
        if thread_id == "f":
            said = {text for batch in own for text in batch.messages}
            copied = sum(text not in said for text in stored)
            yield from _copied(facts, stored[:copied], a)
            stored = [*[""] * copied, *stored[copied:]]
        yield from _exactly_once(own, thread_id, stored)


def _exactly_once(batches: Sequence[Batch], thread_id: str, stored: Sequence[str]) -> Iterator[str]:
    known = {"", *(text for batch in batches for text in batch.messages)}
    for batch in batches:
        counts = [stored.count(text) for text in batch.messages]
        if batch.positions is None:
            if len(set(counts)) != 1 or counts[0] > 1:
                yield f"{thread_id}: half of a batch is stored, {counts}"
        elif any(count != 1 for count in counts):
            yield f"{thread_id}: acknowledged and stored {counts} times"
        elif [stored[p] for p in batch.positions] != list(batch.messages):
            yield f"{thread_id}: acknowledged at {batch.positions}, and others are there"
    if strange := [text[:60] for text in stored if text not in known]:
        yield f"{thread_id}: nobody said {strange}"


def _copied(facts: Sequence[Fact], stored: Sequence[str], source: Sequence[str]) -> Iterator[str]:
    lengths = [f["length"] for f in facts if f.get("act") == "fork" and f["phase"] == "done"]
    if lengths and len(stored) != lengths[0]:
        yield f"f: {lengths[0]} messages were copied, {len(stored)} are there"
    if list(stored) != list(source[: len(stored)]):
        yield "f: the copy differs from what it was made of"


def _erased(facts: Sequence[Fact], thread_id: str, stored: Sequence[str]) -> Iterator[str]:
    if not any(f.get("act") == "erase_conversation" and f["thread"] == thread_id for f in facts):
        yield f"{thread_id}: erased, and nobody asked for it"
    if stored:
        yield f"{thread_id}: erased, and {len(stored)} messages can be read"


def _is_erased(memory: refold.Memory, thread_id: str) -> bool:
    try:
        memory.conversation(thread_id).context()
    except ConversationGone:
        return True
    return False


def _stored(memory: refold.Memory, thread_id: str) -> list[str]:
    try:
        messages = memory.conversation(thread_id).messages()
    except ConversationGone:
        return []
    return [_text(message.message.content) for message in messages]


def _requests(memory: refold.Memory) -> Iterator[str]:
    for row in memory.conversations():
        conversation = memory.conversation(row.thread_id)
        active = [s.summary_id for s in conversation.summaries() if s.is_active]
        if len(active) > 1:
            yield f"{row.thread_id}: {len(active)} active summaries"
        request = {"messages": conversation.context().for_anthropic()["messages"]}
        for found in violations(request, allow_pending_at_end=True):
            yield f"{row.thread_id}: {found}"


def _goes_on(memory: refold.Memory) -> Iterator[str]:
    conversation = memory.conversation("after")
    words = [f"after {number}" for number in range(2)]
    for word in words:
        conversation.append({"role": "user", "content": word}, key=word)
    if [_text(m.message.content) for m in conversation.messages()] != [
        _text(word) for word in words
    ]:
        yield "what is appended afterwards is not there"


def _erase_again(memory: refold.Memory, facts: Sequence[Fact]) -> None:
    """Ask once more for an erasure that was not acknowledged; one that was must need nothing more."""
    asked = [fact for fact in facts if fact.get("act") == "erase"]
    if asked and not _acknowledged(facts, "erase", "a"):
        memory.conversation("a").erase(asked[0]["position"])


def _secret(folder: Path) -> Iterator[str]:
    for file in folder.iterdir():
        if file.name != "told.jsonl" and SECRET.encode() in file.read_bytes():
            yield f"what was erased is still in {file.name}"


def _batches(facts: Sequence[Fact]) -> Iterator[Batch]:
    """What was to be appended, each once, with the places that were acknowledged."""
    places: dict[tuple[str, tuple[str, ...]], tuple[int, ...] | None] = {}
    for fact in facts:
        if fact.get("act") == "append" and "messages" in fact:
            name = (fact["thread"], tuple(_text(m["content"]) for m in fact["messages"]))
            positions = tuple(fact["positions"]) if fact["phase"] == "done" else None
            places[name] = positions or places.get(name)
    for (thread_id, messages), positions in places.items():
        yield Batch(thread_id, messages, positions)


def _acknowledged(facts: Sequence[Fact], act: str, thread_id: str) -> bool:
    return any(
        f.get("act") == act and f["phase"] == "done" and f["thread"] == thread_id for f in facts
    )


def _text(content: object) -> str:
    """One form for content that is text and for content that is blocks; the secret is one either way."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = json.dumps(blocks, sort_keys=True, default=_plain)
    return "the secret" if SECRET in text or STUB in text else text


def _plain(value: Any) -> object:
    return value.model_dump() if hasattr(value, "model_dump") else dict(value)
