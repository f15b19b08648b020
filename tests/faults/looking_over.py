"""What must hold after any fault: opened as it is, everything acknowledged is there exactly once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import refold
from tests.support.legality import violations

from .session import POLICY, SECRET, WINDOW

Fact = Mapping[str, Any]


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
    yield from (f"an error of others came out: {f['error']}" for f in facts if f.get("phase") == "untyped")
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
        yield from _damage(memory, "found after going on")
    if _acknowledged(facts, "erase") or _acknowledged(facts, "erase_conversation"):
        yield from _secret(folder)


def _damage(memory: refold.Memory, when: str) -> Iterator[str]:
    for found in memory.verify().damage:
        yield f"{when}: {found.place} {found.thread_id} {found.version} {found.kind} {found.detail}"


def _contents(memory: refold.Memory, facts: Sequence[Fact]) -> Iterator[str]:
    batches = list(_batches(facts))
    for thread_id in sorted({batch.thread_id for batch in batches}):
        stored = [_text(m.message.content) for m in memory.conversation(thread_id).messages()]
        known: set[str] = set()
        for batch in (b for b in batches if b.thread_id == thread_id):
            counts = [stored.count(text) for text in batch.messages]
            known.update(batch.messages)
            if batch.positions is None:
                if len(set(counts)) != 1 or counts[0] > 1:
                    yield f"{thread_id}: half of a batch is stored, {counts}"
            elif any(count != 1 for count in counts):
                yield f"{thread_id}: acknowledged and stored {counts} times"
            elif [stored[p] for p in batch.positions] != list(batch.messages):
                yield f"{thread_id}: acknowledged at {batch.positions}, and others are there"
        if strange := [text[:40] for text in stored if text not in known]:
            yield f"{thread_id}: nobody said {strange}"


def _requests(memory: refold.Memory) -> Iterator[str]:
    for row in memory.conversations():
        chat = memory.conversation(row.thread_id)
        active = [s.summary_id for s in chat.summaries() if s.is_active]
        if len(active) > 1:
            yield f"{row.thread_id}: {len(active)} active summaries"
        request = {"messages": chat.context().for_anthropic()["messages"]}
        for found in violations(request, allow_pending_at_end=True):
            yield f"{row.thread_id}: {found}"


def _goes_on(memory: refold.Memory) -> Iterator[str]:
    chat = memory.conversation("after")
    for number in range(2):
        chat.append({"role": "user", "content": f"after {number}"}, key=f"k{number}")
    if [m.message.content for m in chat.messages()] != [
        [{"type": "text", "text": f"after {n}"}] for n in range(2)
    ] and [_text(m.message.content) for m in chat.messages()] != [_text(f"after {n}") for n in range(2)]:
        yield "what is appended afterwards is not there"


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


def _acknowledged(facts: Sequence[Fact], act: str) -> bool:
    return any(fact.get("act") == act and fact.get("phase") == "done" for fact in facts)


def _text(content: object) -> str:
    """One form for content that is text and for content that is blocks."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return json.dumps(blocks, sort_keys=True, default=_plain)


def _plain(value: Any) -> object:
    return value.model_dump() if hasattr(value, "model_dump") else dict(value)
