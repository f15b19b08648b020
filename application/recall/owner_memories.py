"""Memories from an owner's other conversations: candidates, and the choice for a first request."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from refold.application.compaction.ladder import Measured, measure
from refold.application.conversation.addresses import address_of
from refold.application.conversation.entries import Entry
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.ports.read_models import NoteRow, SummaryRow
from refold.application.rendering.render import memories_size
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import conversation, plain_logger, raised
from refold.domain.choosing_memories import (
    choose_memories,
    forget_memories,
    is_before_first_request,
    memories_room,
)
from refold.domain.compaction.budget import Budget
from refold.domain.conversation import Conversation
from refold.domain.events import WITHDRAWN, Event
from refold.domain.messages import said
from refold.domain.notes import ChosenMemory, MemoryKind
from refold.domain.noting import LEDGER
from refold.domain.value import replace

from .hits import LEAST_TEXT, RecallHit, fit_hits
from .recall_query import ask, parse_query
from .search import recall
from .tokens import tokens_of

LASTING = frozenset({"preference", "constraint", "decision"})
"""Kinds of notes that matter for every question."""
LASTING_SCORE = 0.4
"""Score of a lasting note that has no word of the question. The best match has 1."""


class Offer(NamedTuple):
    """A note or summary of another conversation that could be quoted."""

    hit: RecallHit
    kind: MemoryKind
    start: int
    """First position of the source messages."""
    stop: int
    """First position after the source messages."""
    version: int
    """Version of the event that contains it."""


def offers_of_owner(
    core: Core, loaded: LoadedConversation, query: str, most: int, least: float
) -> list[Offer]:
    """Return at most ``most`` notes and summaries of the owner's other conversations, best first.

    Those with words of the question come first, then notes of lasting kinds, newest first. Anything
    made from messages of other owners is left out.
    """
    owner, allowed = loaded.state.owner, core.settings.memories.of_owner
    if owner is None or allowed == "off":
        return []
    own = {_normalise(note.text) for note in core.views.notes(loaded.thread_id)}
    found = _offers(core, owner, with_summaries=allowed == "summaries")
    others = (offer for offer in found if offer.hit.thread_id != loaded.thread_id)
    fresh = [offer for offer in _remove_duplicates(others) if _normalise(offer.hit.text) not in own]
    chosen: list[Offer] = []
    for offer in _score(fresh, query):
        if len(chosen) == most or offer.hit.score < least:
            break
        if not core.views.has_others(offer.hit.thread_id, owner, offer.start, offer.stop):
            chosen.append(offer)
    return chosen


def _offers(core: Core, owner: str, *, with_summaries: bool) -> list[Offer]:
    """Return all notes and summaries, ordered by the latest activity of their conversations."""
    found = [*map(_offer_note, core.views.notes_of(owner))]
    if with_summaries:
        active = core.views.active_summaries_of(owner)
        found += [_offer_summary(one) for one in active if one.summary_text != WITHDRAWN]
    rows = core.views.conversations_of(owner)
    places = {row.thread_id: place for place, row in enumerate(rows)}
    # A conversation that another process has just started may not be listed yet.
    known = (offer for offer in found if offer.hit.thread_id in places)
    return sorted(known, key=lambda offer: places[offer.hit.thread_id])


def _offer_note(note: NoteRow) -> Offer:
    # Code records the source messages of a note; a model may have used any message it received.
    positions = note.source_positions if note.taken_by == LEDGER else ()
    sources = note.possible_sources
    # A note on demand is shown with the newest message before it.
    first = (
        sources.stop - 1 if note.is_on_demand else min(note.source_positions, default=note.start)
    )
    id = f"{note.flush_id}/{note.number}"
    about = (note.thread_id, first, note.version, id, "note", note.taken_at, note.text)
    hit = _hit(*about, why=(note.kind,))
    start, stop = (
        (min(positions), max(positions) + 1) if positions else (sources.start, sources.stop)
    )
    return Offer(hit, "note", start, stop, note.version)


def _offer_summary(summary: SummaryRow) -> Offer:
    start, stop = summary.covered_from, summary.compact_up_to_index + 1
    hit = _hit(
        *(summary.thread_id, start, summary.version, summary.summary_id, "summary"),
        *(summary.compacted_at, summary.summary_text),
    )
    return Offer(hit, "summary", start, stop, summary.version)


def _hit(
    thread_id: str,
    position: int,
    version: int,
    id: str,
    role: str,
    at: str,
    text: str,
    why: tuple[str, ...] = (),
) -> RecallHit:
    return RecallHit(
        thread_id=thread_id,
        position=position,
        version=version,
        message_id=id,
        address=address_of(thread_id, position),
        role=role,
        kind="text",
        tool=None,
        at=at,
        text=text,
        start=0,
        stop=len(text),
        score=0.0,
        why=why,
        fate="summarised",
        in_context=False,
    )


def _remove_duplicates(offers: Iterable[Offer]) -> list[Offer]:
    """Remove duplicates and keep the newest of each, since a fork has the notes of its source."""
    newest_first = sorted(offers, key=lambda offer: offer.hit.at, reverse=True)
    kept: dict[str, Offer] = {}
    for offer in newest_first:
        kept.setdefault(_normalise(offer.hit.text), offer)
    return list(kept.values())


def _normalise(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _score(offers: Sequence[Offer], query: str) -> Iterator[Offer]:
    """Yield the offers with scores relative to the best match, best first; newer ones win ties."""
    asked = frozenset(ask(query).tokens)
    words = [asked.intersection(tokens_of(offer.hit.text)) for offer in offers]
    counts = Counter(token for there in words for token in there)
    weights = {token: math.log(1 + len(offers) / count) for token, count in counts.items()}
    # Sets have no order, and the sum of floats depends on the order.
    sums = [sum(weights[token] for token in sorted(there)) for there in words]
    best = max(sums, default=0.0)
    scored = (
        (score, offer)
        for offer, total in zip(offers, sums, strict=True)
        if (score := max(total / best if best else 0.0, _least(offer)))
    )
    # Few of many are used, so only these are copied.
    for score, offer in sorted(scored, key=lambda one: -one[0]):
        yield offer._replace(hit=replace(offer.hit, score=score))


def _least(offer: Offer) -> float:
    return LASTING_SCORE if LASTING.intersection(offer.hit.why) else 0.0


QUERY = 2_000
"""Characters of a message to search for; of a longer one, the beginning and the end are used."""


class FoundMemories(NamedTuple):
    """Memories that were found for the newest message of the user."""

    position: int
    memories: tuple[ChosenMemory, ...]
    """Chosen memories, best first."""
    sources: tuple[tuple[str, int], ...] = ()
    """Source events in other conversations, as pairs of thread id and version."""


def look_up(
    core: Core, loaded: LoadedConversation, room: int, *, own: bool = True
) -> FoundMemories | None:
    """Return the memories to quote in ``room`` tokens, or None without a user message in view.

    ``own`` is false if nothing of this conversation can be out of view.

    Raises:
        Anything that recall raises.
    """
    settings = core.settings.memories
    asked = next(filter(_is_question, reversed(loaded.window.entries)), None)
    if asked is None:
        return None
    if not settings.most or room <= 0:
        return FoundMemories(asked.position, ())
    query = _query(said(asked.message))
    hits = list(_own_hits(core, loaded.thread_id, query, asked.position)) if own else []
    offers = offers_of_owner(core, loaded, query, settings.most, settings.least_score)
    hits += [offer.hit for offer in offers]
    best = sorted(hits, key=lambda hit: -hit.score)[: settings.most]
    # These properties of a hit stay the same when its text is cut.
    known = {(offer.hit.thread_id, offer.hit.message_id, offer.hit.at): offer for offer in offers}
    made = _MemoryBuilder(loaded.thread_id, known)
    memories = _fit(core, made, best, query, room)
    sources = {
        (offer.hit.thread_id, offer.version)
        for offer in offers
        if any(m.message_id == offer.hit.message_id and m.thread_id for m in memories)
    }
    return FoundMemories(asked.position, memories, tuple(sorted(sources)))


def _own_hits(core: Core, thread_id: str, query: str, asked: int) -> Iterator[RecallHit]:
    settings = core.settings.memories
    found = recall(
        core,
        thread_id,
        parse_query(
            query,
            thread_id=thread_id,
            limit=settings.most,
            min_score=settings.least_score,
            in_context="leave_out",
            neighbours=0,
        ),
    )
    # A long message that is shown shortened may be the best match for its own words.
    others = (hit for hit in found if hit.position != asked)
    return (hit for hit in others if hit.fate != "erased" and hit.text.strip())


def _is_question(entry: Entry) -> bool:
    return entry.message.role == "user" and bool(said(entry.message).strip())


def _query(text: str) -> str:
    return text if len(text) <= QUERY else f"{text[: QUERY // 2]} {text[-QUERY // 2 :]}"


def _fit(
    core: Core, made: "_MemoryBuilder", hits: Sequence[RecallHit], query: str, room: int
) -> tuple[ChosenMemory, ...]:
    """Fit the hits to ``room`` tokens including their frame; long texts are cut around the matches."""
    count, tokens, thread_id = core.counter.count_text, ask(query).tokens, made.thread_id
    for number in range(len(hits), 0, -1):
        kept = hits[:number]
        bare = memories_size(thread_id, [made.memory(replace(hit, text="")) for hit in kept], count)
        left = room - bare - number  # The count of each text is rounded up.
        if left < LEAST_TEXT:
            continue
        shown, _ = fit_hits(kept, tokens, left, count)
        memories = tuple(map(made.memory, shown))
        if memories_size(thread_id, memories, count) <= room:
            return memories
    return ()


class _MemoryBuilder(NamedTuple):
    """Builder of memories from hits."""

    thread_id: str
    offers: Mapping[tuple[str, str, str], Offer]
    """Offers from other conversations."""

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
        return replace(
            memory, thread_id=hit.thread_id, kind=offer.kind, start=offer.start, stop=offer.stop
        )


TRIES = 3
"""Number of attempts before giving up when concurrent changes make the choice outdated."""

logger = plain_logger(__name__)


def update_memories(core: Core, thread_id: str, budget: Budget, *, below: int | None = None) -> int:
    """Choose memories for the user's newest message; return the growth of the request in tokens.

    Call this only right after a decision that changed the text before the messages, so that the
    prefix stays unchanged otherwise. ``below`` is a size that the request must stay under. Failures
    of recall are ignored, because no turn may fail for them.
    """
    if not core.settings.memories.most and not core.log.load(thread_id).state.memories_tokens:
        return 0
    return _choose(core, thread_id, budget, below)


def choose_first_memories(core: Core, thread_id: str, budget: Budget) -> None:
    """Choose memories of the owner's other conversations for the first request of this one.

    Later requests show the same memories, which keeps the prefix stable; of concurrent requests the
    first recorded choice wins. If the log cannot be written, the request stays as it is.
    """
    try:
        _choose(core, thread_id, budget, None, first=True)
    except LogError as error:
        logger.warning("%s: no memories were quoted: %s", conversation(thread_id), error)
    core.asked.chose(thread_id)


def wants_first_choice(core: Core, state: Conversation) -> bool:
    """Return whether the next request is the first and may quote other conversations."""
    settings = core.settings.memories
    is_on = bool(settings.most) and settings.of_owner != "off" and state.owner is not None
    return is_on and is_before_first_request(state)


def _choose(
    core: Core, thread_id: str, budget: Budget, below: int | None, *, first: bool = False
) -> int:
    for _ in range(TRIES):
        before = measure(core, thread_id, budget)
        # As it is stored: what is measured is as if the frame of this request were recorded.
        if first and not wants_first_choice(core, core.log.load(thread_id).state):
            return 0
        room = _room(core, before, below)
        try:
            found = look_up(core, before.loaded, room, own=not first)
        except Exception as error:  # The request can be sent without memories after any error.
            logger.warning(
                "%s: no memories could be looked up: %s", conversation(thread_id), raised(error)
            )
            found = None
        choice = _Choice(core, before, found, room, first=first)
        now, events = core.log.transact(thread_id, choice.decide, at=core.clock())
        if not choice.overtaken:
            grown = now.state.memories_tokens - before.loaded.state.memories_tokens
            return grown if events else 0
    return 0


def drop_memories(core: Core, thread_id: str) -> int:
    """Quote no memories because the request is too large; return the number of decisions made."""
    if not core.log.load(thread_id).state.memories_tokens:
        return 0
    _, events = core.log.transact(
        thread_id, lambda now: forget_memories(now.state), at=core.clock()
    )
    return len(events)


def _room(core: Core, before: Measured, below: int | None) -> int:
    most, state = core.settings.memories.tokens, before.loaded.state
    if below is not None:
        most = min(most, below - 1 - (before.size - state.memories_tokens))
    return memories_room(state, before.size, before.plain, most)


class _Choice:
    """A pending choice, decided on the newest state."""

    def __init__(
        self, core: Core, before: Measured, found: FoundMemories | None, room: int, *, first: bool
    ) -> None:
        self._core = core
        self._before = before
        self._found = found
        self._room = room
        self._first = first
        self.overtaken = False

    def decide(self, now: LoadedConversation) -> Sequence[Event]:
        before = self._before.loaded.state
        # A first choice is valid only for the measured request; an answer may have arrived since.
        is_other = self._first and now.state.version != before.version
        self.overtaken = is_other or not _only_grew(before, now.state) or self._has_lost_sources()
        if self.overtaken:  # The result may quote erased content.
            return ()
        if self._found is None:
            return () if before.memories_tokens <= self._room else forget_memories(now.state)
        size = memories_size(now.thread_id, self._found.memories, self._core.counter.count_text)
        if size > self._room - (now.state.live_tokens - before.live_tokens):
            return ()
        return choose_memories(
            now.state,
            now.window.memories,
            self._found.memories,
            query_position=self._found.position,
            tokens=size,
        )

    def _has_lost_sources(self) -> bool:
        """Return whether a source of a quoted memory was erased since. Call this while the log is locked."""
        for thread_id, version in self._found.sources if self._found else ():
            logged = self._core.log.read_at(thread_id, [version])
            if not logged or logged[0].erased or self._core.log.load(thread_id).state.erased:
                return True
        return False


def _only_grew(before: Conversation, now: Conversation) -> bool:
    """Return whether only messages were added."""
    if before.first_message_id not in ("", now.first_message_id):
        return False  # The conversation was erased and a new one started.
    return now.version - before.version == now.length - before.length
