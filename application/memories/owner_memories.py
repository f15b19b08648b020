"""Looks up what was noted and summarised in the other conversations of an owner, the best first."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from refold.application.conversation.addresses import address_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.read_models import NoteRow, SummaryRow
from refold.application.recall.hits import RecallHit
from refold.application.recall.question import ask
from refold.application.recall.tokens import tokens_of
from refold.application.runtime.core import Core
from refold.domain.erasing import WITHDRAWN
from refold.domain.notes import MemoryKind
from refold.domain.noting import LEDGER
from refold.domain.value import replace

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
