"""Judges an interleaving: the calls and their answers, and what a new memory reads of the files afterwards."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import refold
from refold.testing import violations

from .interleaving_scenes import Call, Scene, Stage, contents, opened
from .reading_back import MARK
from .sample_store import mark_of

REMADE = (".lock", "-shm")
"""Ends of files without content of their own."""


def faults_of(stage: Stage, scene: Scene) -> Iterator[str]:
    """Everything that is not as it must be; all threads have ended, and all memories are closed."""
    yield from stage.scheduler.leaps
    for call in stage.calls:
        yield from (f"{call.thread}: {call.what}: {what}" for what in _wrong(call, stage, scene))
    yield from _late_writes(stage)
    with opened(stage.folder, background=False) as memory:
        found = memory.verify()
        if not found.ok:
            yield f"DAMAGED: {str(found)[:300]}"
        for name in ("x", "y"):
            yield from _stored(memory, name, stage.calls)
            yield from _open_attempts(memory, name)
            yield from _in_context(memory, name)
        memory.finish_erasures()
    yield from _erased_bytes(stage)


def _wrong(call: Call, stage: Stage, scene: Scene) -> Iterator[str]:
    if not call.ended:
        yield "NEVER RETURNED"
    if call.error is not None:
        shown = f"{type(call.error).__name__}: {str(call.error)[:200]}"
        if not isinstance(call.error, refold.RefoldError):
            yield f"UNTYPED {shown}"
        elif (
            not isinstance(call.error, scene.refused) and not _may_be_closed(call, stage)
        ) or call.what == "close":
            yield f"REFUSED {shown}"
    elif call.what == "context":
        yield from _wrong_context(call, stage)


def _may_be_closed(call: Call, stage: Stage) -> bool:
    """Whether the memory was being closed, or closed, before the call ended."""
    return any(
        other.what == "close" and other.memory == call.memory and other.began < call.ended
        for other in stage.calls
    )


def _wrong_context(call: Call, stage: Stage) -> Iterator[str]:
    context: refold.Context = call.answer
    yield from (
        f"INVALID REQUEST: {found}"
        for found in violations(context.for_anthropic(), allow_pending_at_end=True)
        if not found.startswith("prefill")
    )
    text = json.dumps(context.for_anthropic())
    erased = {m for one in _before(call, stage, "erase") for m in one.marks}
    if found := sorted(mark for mark in erased if mark in text):
        yield f"ERASED TEXT in a request: {found}"
    covers = _covers_nothing if context.summary is None else context.summary.coverage.covers
    for one in _before(call, stage, "append"):
        for mark, position in zip(one.marks, one.answer.positions, strict=True):
            if mark not in text and mark not in erased and not covers(position):
                yield f"{mark}, acknowledged before, is neither in the request nor covered by its summary"


def _covers_nothing(_position: int) -> bool:
    return False


def _before(call: Call, stage: Stage, what: str) -> Iterator[Call]:
    """The calls of a kind that were acknowledged before a call began."""
    for one in stage.calls:
        same = one.conversation == call.conversation and one.what == what
        if same and one.error is None and one.ended and one.ended < call.began:
            yield one


def _late_writes(stage: Stage) -> Iterator[str]:
    """Yield the files that changed after the only memory was closed."""
    before, after = stage.files_at_close, contents(stage.folder)
    if before is None:
        return
    changed = sorted(n for n in {*before, *after} if before.get(n) != after.get(n))
    if changed := [name for name in changed if not name.endswith(REMADE)]:
        yield f"WRITTEN AFTER CLOSE: {changed}"


def _stored(memory: refold.Memory, name: str, calls: list[Call]) -> Iterator[str]:
    stored = memory.conversation(name).messages()
    marks = {
        message.position: MARK.findall(json.dumps(message.message.content)) for message in stored
    }
    at = {mark: position for position, found in marks.items() for mark in found}
    counted = Counter(mark for found in marks.values() for mark in set(found))
    yield from (f"STORED {times} times: {mark}" for mark, times in counted.items() if times > 1)
    erased = {
        c.marks[0] for c in calls if c.what == "erase" and c.conversation == name and not c.error
    }
    yield from (f"ERASED TEXT is stored: {mark}" for mark in sorted(erased & at.keys()))
    tried = {m for c in calls if c.what == "erase" and c.conversation == name for m in c.marks}
    begun = {mark_of(n) for n in range(14 if name == "x" else 2)} - tried
    yield from (f"LOST: {mark}" for mark in sorted(begun - at.keys()))
    last: dict[str, int] = {}
    for call in calls:
        if call.what != "append" or call.conversation != name:
            continue
        places = [at.get(mark, -1) for mark in call.marks]
        yield from _wrong_places(call, places, last.get(call.thread, -1))
        last[call.thread] = max([last.get(call.thread, -1), *places])


def _wrong_places(call: Call, places: list[int], after: int) -> Iterator[str]:
    if call.error is None and call.ended:
        told = list(call.answer.positions)
        if places != told:
            yield f"LOST or moved: {call.thread} was told {told}, and its messages are at {places}"
        elif places[0] <= after and call.answer.messages[0].new:
            yield f"NOT IN ORDER: {call.thread}: {places} after {after}"
    elif isinstance(call.error, refold.VersionConflict) and set(places) != {-1}:
        yield f"STORED although refused: {call.thread}: {places}"
    if len({place == -1 for place in places}) > 1:
        yield f"HALF of an append is stored: {call.thread}: {places}"
    if places[-1] - places[0] not in (len(places) - 1, 0):
        yield f"TORN: {call.thread}: {places}"


def _open_attempts(memory: refold.Memory, name: str) -> Iterator[str]:
    """Yield the compactions whose end was not recorded: closing records it."""
    for row in memory.conversation(name).compactions():
        if row.ended_at is None:
            yield f"A COMPACTION WITHOUT AN END in {name}: {row.trigger}, {row.outcome}"


def _in_context(memory: refold.Memory, name: str) -> Iterator[str]:
    """Yield what the next request lacks or has twice: each message is in it, or covered by the summary."""
    conversation = memory.conversation(name)
    request = conversation.context().for_anthropic()
    for found in violations(request, allow_pending_at_end=True):
        if not found.startswith("prefill"):
            yield f"INVALID REQUEST afterwards: {found}"
    text = json.dumps(request["messages"])
    shown = Counter(MARK.findall(text))
    for message in conversation.messages():
        marks = set(MARK.findall(json.dumps(message.message.content)))
        for mark in marks if not message.is_archived and not message.erased else ():
            if not shown[mark]:
                yield f"MISSING in the request: {mark} at {message.position}, which no summary covers"


def _erased_bytes(stage: Stage) -> Iterator[str]:
    erased = [c for c in stage.calls if c.what == "erase" and c.error is None and c.ended]
    files: dict[str, Any] = contents(stage.folder) if erased else {}
    for call in erased:
        for name, content in files.items():
            if call.marks[0].encode() in content:
                yield f"ERASED TEXT in {name}: {call.marks[0]}"
