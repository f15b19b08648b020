"""Looks up the earlier messages that matter to what the user said last, cut so that they fit their room."""

from collections.abc import Sequence
from typing import NamedTuple

from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.application.projections.entries import Entry
from refold.application.recall.asking import ask
from refold.application.recall.fitting import LEAST_TEXT, fitted
from refold.application.recall.inquiry import inquire
from refold.application.recall.recalling import recall
from refold.application.recall.results import RecallHit
from refold.application.rendering.memories import memories_size
from refold.domain.messages import said
from refold.domain.remembering import ChosenMemory

QUERY = 2_000
"""Characters of a message that are looked up: of a longer one, half from its beginning, half from its end."""


class LookedUp(NamedTuple):
    """What was found for the newest message of the user."""

    position: int
    memories: tuple[ChosenMemory, ...]
    """The best first."""


def look_up(core: Core, loaded: LoadedConversation, room: int) -> LookedUp | None:
    """What to quote in at most ``room`` tokens; None where the user has said nothing that is in view.

    Raises:
        Anything that recall raises.
    """
    settings = core.settings.memories
    asked = next(filter(_asks, reversed(loaded.window.entries)), None)
    if asked is None:
        return None
    if not settings.most or room <= 0:
        return LookedUp(asked.position, ())
    query = _query(said(asked.message))
    found = recall(
        core,
        loaded.thread_id,
        inquire(
            query,
            thread_id=loaded.thread_id,
            limit=settings.most,
            min_score=settings.least_score,
            in_context="leave_out",
            neighbours=0,
        ),
    )
    # Where a long message is shown shorter, it may be the best hit for its own words.
    others = (hit for hit in found if hit.position != asked.position)
    hits = [hit for hit in others if hit.fate != "erased" and hit.text.strip()]
    return LookedUp(asked.position, _fitted(core, loaded.thread_id, hits, query, room))


def _asks(entry: Entry) -> bool:
    return entry.message.role == "user" and bool(said(entry.message).strip())


def _query(text: str) -> str:
    return text if len(text) <= QUERY else f"{text[: QUERY // 2]} {text[-QUERY // 2 :]}"


def _fitted(
    core: Core, thread_id: str, hits: Sequence[RecallHit], query: str, room: int
) -> tuple[ChosenMemory, ...]:
    """As many as fit with what stands around them; long ones cut around the words that were found."""
    count, tokens = core.counter.count_text, ask(query).tokens
    for number in range(len(hits), 0, -1):
        kept = hits[:number]
        bare = memories_size(thread_id, [_memory(hit.replaced(text="")) for hit in kept], count)
        left = room - bare - number  # Each text is rounded up by itself.
        if left < LEAST_TEXT:
            continue
        shown, _ = fitted(kept, tokens, left, count)
        memories = tuple(map(_memory, shown))
        if memories_size(thread_id, memories, count) <= room:
            return memories
    return ()


def _memory(hit: RecallHit) -> ChosenMemory:
    return ChosenMemory(
        position=hit.position,
        message_id=hit.message_id,
        role=hit.role,
        at=hit.at,
        text=hit.text.strip(),
        score=hit.score,
    )
