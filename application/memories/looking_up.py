"""Looks up the earlier messages that matter to what the user said last, cut so that they fit their room."""

from collections.abc import Iterator, Mapping, Sequence
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

from .of_owner import Offer, offers_of_owner

QUERY = 2_000
"""Characters of a message that are looked up: of a longer one, half from its beginning, half from its end."""


class LookedUp(NamedTuple):
    """What was found for the newest message of the user."""

    position: int
    memories: tuple[ChosenMemory, ...]
    """The best first."""
    sources: tuple[tuple[str, int], ...] = ()
    """The events of other conversations that they come from: conversation and version of each."""


def look_up(
    core: Core, loaded: LoadedConversation, room: int, *, own: bool = True
) -> LookedUp | None:
    """What to quote in at most ``room`` tokens; None where the user has said nothing that is in view.

    ``own``: whether something of this conversation can be out of view.

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
    hits = list(_own_hits(core, loaded.thread_id, query, asked.position)) if own else []
    offers = offers_of_owner(core, loaded, query, settings.most, settings.least_score)
    hits += [offer.hit for offer in offers]
    best = sorted(hits, key=lambda hit: -hit.score)[: settings.most]
    # By what never changes of a hit when it is cut.
    known = {(offer.hit.thread_id, offer.hit.message_id, offer.hit.at): offer for offer in offers}
    made = _Making(loaded.thread_id, known)
    memories = _fitted(core, made, best, query, room)
    sources = {
        (offer.hit.thread_id, offer.version)
        for offer in offers
        if any(m.message_id == offer.hit.message_id and m.thread_id for m in memories)
    }
    return LookedUp(asked.position, memories, tuple(sorted(sources)))


def _own_hits(core: Core, thread_id: str, query: str, asked: int) -> Iterator[RecallHit]:
    settings = core.settings.memories
    found = recall(
        core,
        thread_id,
        inquire(
            query,
            thread_id=thread_id,
            limit=settings.most,
            min_score=settings.least_score,
            in_context="leave_out",
            neighbours=0,
        ),
    )
    # Where a long message is shown shorter, it may be the best hit for its own words.
    others = (hit for hit in found if hit.position != asked)
    return (hit for hit in others if hit.fate != "erased" and hit.text.strip())


def _asks(entry: Entry) -> bool:
    return entry.message.role == "user" and bool(said(entry.message).strip())


def _query(text: str) -> str:
    return text if len(text) <= QUERY else f"{text[: QUERY // 2]} {text[-QUERY // 2 :]}"


def _fitted(
    core: Core, made: "_Making", hits: Sequence[RecallHit], query: str, room: int
) -> tuple[ChosenMemory, ...]:
    """As many as fit with what stands around them; long ones cut around the words that were found."""
    count, tokens, thread_id = core.counter.count_text, ask(query).tokens, made.thread_id
    for number in range(len(hits), 0, -1):
        kept = hits[:number]
        bare = memories_size(thread_id, [made.memory(hit.replaced(text="")) for hit in kept], count)
        left = room - bare - number  # Each text is rounded up by itself.
        if left < LEAST_TEXT:
            continue
        shown, _ = fitted(kept, tokens, left, count)
        memories = tuple(map(made.memory, shown))
        if memories_size(thread_id, memories, count) <= room:
            return memories
    return ()


class _Making(NamedTuple):
    """Makes memories of hits."""

    thread_id: str
    offers: Mapping[tuple[str, str, str], Offer]
    """What is of other conversations."""

    def memory(self, hit: RecallHit) -> ChosenMemory:
        memory = ChosenMemory(
            position=hit.position,
            message_id=hit.message_id,
            role=hit.role,
            at=hit.at,
            text=hit.text.strip(),
            score=hit.score,
        )
        offer = self.offers.get((hit.thread_id, hit.message_id, hit.at))
        if offer is None or hit.thread_id == self.thread_id:
            return memory
        return memory.replaced(
            thread_id=hit.thread_id, kind=offer.kind, start=offer.start, stop=offer.stop
        )
