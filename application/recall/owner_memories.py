"""Memories of an owner's other conversations: which are offered, and which are chosen for a first request."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from refold.application.compaction.ladder import Measured, measure
from refold.application.conversation.addresses import address_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.ports.read_models import NoteRow, SummaryRow
from refold.application.projections.entries import Entry
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
from refold.domain.erasing import WITHDRAWN
from refold.domain.events import Event
from refold.domain.messages import said
from refold.domain.notes import ChosenMemory, MemoryKind
from refold.domain.noting import LEDGER
from refold.domain.value import replace

from .hits import LEAST_TEXT, RecallHit, fitted
from .question import ask
from .recall_query import inquire
from .search import recall
from .tokens import tokens_of

LASTING = frozenset({"preference", "constraint", "decision"})
"""Kinds of notes that matter whatever is asked."""
LASTING_SCORE = 0.4
"""Of such a note that has no word of the question; the best match has 1."""


class Offer(NamedTuple):
    """Something of another conversation that could be quoted."""

    hit: RecallHit
    kind: MemoryKind
    start: int
    """It was made of the messages at positions ``start`` …"""
    stop: int
    """… up to but not including this one."""
    version: int
    """Of the event that holds it."""


def offers_of_owner(
    core: Core, loaded: LoadedConversation, query: str, most: int, least: float
) -> list[Offer]:
    """At most ``most`` notes and summaries of the owner's other conversations, the best first.

    Those that have words of the question come first, then what holds for long, the newest first. What was
    made of messages that are somebody else's is left out.
    """
    owner, allowed = loaded.state.owner, core.settings.memories.of_owner
    if owner is None or allowed == "off":
        return []
    own = {_folded(note.text) for note in core.views.notes(loaded.thread_id)}
    found = _offers(core, owner, with_summaries=allowed == "summaries")
    others = (offer for offer in found if offer.hit.thread_id != loaded.thread_id)
    fresh = [offer for offer in _once(others) if _folded(offer.hit.text) not in own]
    chosen: list[Offer] = []
    for offer in _scored(fresh, query):
        if len(chosen) == most or offer.hit.score < least:
            break
        if not core.views.has_others(offer.hit.thread_id, owner, offer.start, offer.stop):
            chosen.append(offer)
    return chosen


def _offers(core: Core, owner: str, *, with_summaries: bool) -> list[Offer]:
    """All that there is, by conversation, the latest activity first."""
    found = [*map(_of_note, core.views.notes_of(owner))]
    if with_summaries:
        active = core.views.active_summaries_of(owner)
        found += [_of_summary(one) for one in active if one.summary_text != WITHDRAWN]
    rows = core.views.conversations_of(owner)
    places = {row.thread_id: place for place, row in enumerate(rows)}
    # Of one that another process has just begun nothing is known yet.
    known = (offer for offer in found if offer.hit.thread_id in places)
    return sorted(known, key=lambda offer: places[offer.hit.thread_id])


def _of_note(note: NoteRow) -> Offer:
    # Code names the messages that a note comes from; a model may have used any of those it was given.
    positions = note.source_positions if note.taken_by == LEDGER else ()
    first = min(note.source_positions, default=note.start)
    id = f"{note.flush_id}/{note.number}"
    about = (note.thread_id, first, note.version, id, "note", note.taken_at, note.text)
    hit = _hit(*about, why=(note.kind,))
    start, stop = (min(positions), max(positions) + 1) if positions else (note.start, note.stop)
    return Offer(hit, "note", start, stop, note.version)


def _of_summary(summary: SummaryRow) -> Offer:
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


def _once(offers: Iterable[Offer]) -> list[Offer]:
    """The newest of those that say the same: a fork has the notes of its source."""
    newest_first = sorted(offers, key=lambda offer: offer.hit.at, reverse=True)
    kept: dict[str, Offer] = {}
    for offer in newest_first:
        kept.setdefault(_folded(offer.hit.text), offer)
    return list(kept.values())


def _folded(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _scored(offers: Sequence[Offer], query: str) -> Iterator[Offer]:
    """With scores relative to the best match, the best first; the newest first where they are equal."""
    asked = frozenset(ask(query).tokens)
    words = [asked.intersection(tokens_of(offer.hit.text)) for offer in offers]
    counts = Counter(token for there in words for token in there)
    weights = {token: math.log(1 + len(offers) / count) for token, count in counts.items()}
    # In the order of the tokens: a sum of floats depends on it, and sets have none.
    sums = [sum(weights[token] for token in sorted(there)) for there in words]
    best = max(sums, default=0.0)
    scored = (
        (score, offer)
        for offer, total in zip(offers, sums, strict=True)
        if (score := max(total / best if best else 0.0, _least(offer)))
    )
    # Few of many are taken: only these are made anew.
    for score, offer in sorted(scored, key=lambda one: -one[0]):
        yield offer._replace(hit=replace(offer.hit, score=score))


def _least(offer: Offer) -> float:
    return LASTING_SCORE if LASTING.intersection(offer.hit.why) else 0.0


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
        bare = memories_size(thread_id, [made.memory(replace(hit, text="")) for hit in kept], count)
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
        return replace(
            memory, thread_id=hit.thread_id, kind=offer.kind, start=offer.start, stop=offer.stop
        )


TRIES = 3
"""What else happens while they are looked up makes them out of date; after so many times others decide."""

logger = plain_logger(__name__)


def choose_anew(core: Core, thread_id: str, budget: Budget, *, below: int | None = None) -> int:
    """Quote those that matter to what the user said last; by how many tokens the request grows with that.

    To be called where a decision has just changed what stands before the messages, and nowhere else: until
    the next one not a byte of it changes (invariant 18). ``below``: the request stays smaller than this.
    What recall cannot do is left undone: a turn never fails for it.
    """
    if not core.settings.memories.most and not core.log.load(thread_id).state.memories_tokens:
        return 0
    return _choose(core, thread_id, budget, below)


def choose_at_first(core: Core, thread_id: str, budget: Budget) -> None:
    """Quote what matters of other conversations of the same owner in the first request of this one.

    Later requests show the same, so that the prefix holds, and those made at the same time show what the
    quickest recorded. A log that cannot be written leaves the request as it is.
    """
    try:
        _choose(core, thread_id, budget, None, first=True)
    except LogError as error:
        logger.warning("%s: nothing is quoted in it: %s", conversation(thread_id), error)
    core.asked.chose(thread_id)


def wants_first_choice(core: Core, state: Conversation) -> bool:
    """Whether the next request is the first, and something of other conversations may be quoted in it."""
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
        except Exception as error:  # Whatever it is, the request can be sent without.
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


def give_up(core: Core, thread_id: str) -> int:
    """Quote nothing any more, since the request is too large; how many decisions that took."""
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
    """What was found, and the decision on it against the newest state."""

    def __init__(
        self, core: Core, before: Measured, found: LookedUp | None, room: int, *, first: bool
    ) -> None:
        self._core = core
        self._before = before
        self._found = found
        self._room = room
        self._first = first
        self.overtaken = False

    def decide(self, now: LoadedConversation) -> Sequence[Event]:
        before = self._before.loaded.state
        # A first choice is for the request as it was measured: an answer may have come since.
        is_other = self._first and now.state.version != before.version
        self.overtaken = is_other or not _only_grew(before, now.state) or self._has_lost_sources()
        if self.overtaken:  # What was found may be erased by now.
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
        """Whether something that is to be quoted of another conversation was erased since: nobody erases
        while this is decided.
        """
        for thread_id, version in self._found.sources if self._found else ():
            logged = self._core.log.read_at(thread_id, [version])
            if not logged or logged[0].erased or self._core.log.load(thread_id).state.erased:
                return True
        return False


def _only_grew(before: Conversation, now: Conversation) -> bool:
    """Whether nothing but messages was added."""
    if before.first_message_id not in ("", now.first_message_id):
        return False  # It was erased, and another one begun.
    return now.version - before.version == now.length - before.length
