"""Leaf summaries, and fallback texts for a missing or overlong summary of a model."""

import hashlib
from collections.abc import Callable, Iterable, Sequence

from refold.application.api.blocking import in_thread
from refold.application.conversation.addresses import address_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.summariser import (
    SourceMessage,
    Summariser,
    SummaryDraft,
    SummaryRequest,
)
from refold.application.runtime.core import Core
from refold.application.runtime.foreign_code import Contained
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.compaction.budget import SHORTEST_SUMMARY
from refold.domain.compaction.compacting import is_breaker_open
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import CompactionPerformed, Event, LeafSummary
from refold.domain.facts.reading import MessagesRead
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.text_cuts import ends_within
from refold.domain.value import build_in_order, replace

from .chunking import remove_omission_note

GAP = "\n[… cut here …]\n"


NOTE = "note"
"""Name of the summariser of last resort."""
OFF = "off"
"""Name of the replacement for a summariser when summaries are switched off."""
ALGORITHM = "refold-note-1"
_FINGERPRINT = hashlib.sha256(ALGORITHM.encode()).hexdigest()
_NOTE = (
    "[Messages {first} to {last} could not be summarised. They are kept: each can be read back by its "
    "address, {start} to {end}.]"
)
_DROPPED = (
    "[Messages {first} to {last} are no longer shown: there is no summary of them. They are kept: each can "
    "be read back by its address, {start} to {end}.]"
)
_DROPPED_BEFORE = lazy_pattern(
    r"\[Messages (\d{1,9}) to \d{1,9} are (?:no longer shown: |kept at )[^\n]*\]\Z"
)
_SHORT = "[Messages {first} to {last} are kept at {start} and after.]"


class NoteSummariser:
    """Keeps the previous summary, shortened if necessary, and adds a note about the messages.

    It needs no model and never fails. The ledger is added as to every summary.
    """

    def __init__(self, thread_id: str, count: Callable[[str], int]) -> None:
        self._thread_id = thread_id
        self._count = count

    @property
    def name(self) -> str:
        """The name ``note``."""
        return NOTE

    @property
    def by_code(self) -> bool:
        """Always true: no model is called."""
        return True

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Return the note."""
        return build_in_order(
            SummaryDraft,
            text=self._text(request),
            complete=True,
            model=ALGORITHM,
            prompt_fingerprint=_FINGERPRINT,
            stop_reason="end_turn",
        )

    def _text(self, request: SummaryRequest) -> str:
        note = self._note(request)
        if not request.previous:
            return note
        room = request.limit_tokens - self._count(f"\n\n{note}") - 1
        kept = ends_within(request.previous, room, self._count, GAP)
        return "\n\n".join(filter(None, (kept, note)))

    def _note(self, request: SummaryRequest) -> str:
        positions = [m.position for m in request.messages]
        positions += [one.position for one in request.omitted]
        if not positions:
            return ""
        return self._fill(_NOTE, _SHORT, min(positions), max(positions), request)

    def _fill(self, whole: str, short: str, first: int, last: int, request: SummaryRequest) -> str:
        values = {
            "first": first,
            "last": last,
            "start": address_of(self._thread_id, first),
            "end": address_of(self._thread_id, last),
        }
        note = whole.format(**values)
        return note if self._count(note) <= request.limit_tokens else short.format(**values)


class SummariesOff:
    """Placeholder for the summariser when summaries are switched off."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count

    @property
    def name(self) -> str:
        """The name ``off``."""
        return OFF

    @property
    def by_code(self) -> bool:
        """Always true: no model is called."""
        return True

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Return a note that there is no summary, for an unnamed conversation."""
        return await self.for_thread("").summarise(request)

    def for_thread(self, thread_id: str) -> "DropNotes":
        """Return the writer of notes for one conversation."""
        return DropNotes(thread_id, self._count)


class DropNotes(NoteSummariser):
    """Writes one note about all messages that are no longer shown, after an earlier summary."""

    @property
    def name(self) -> str:
        """The name ``off``."""
        return OFF

    def _text(self, request: SummaryRequest) -> str:
        before = request.previous or ""
        found = _DROPPED_BEFORE.search(before)
        positions = [m.position for m in request.messages]
        positions += [one.position for one in request.omitted]
        positions += [int(found[1])] if found else []
        if not positions:
            return before
        note = self._fill(_DROPPED, _SHORT, min(positions), max(positions), request)
        kept = before[: found.start()].rstrip() if found else before
        room = request.limit_tokens - self._count(f"\n\n{note}") - 1
        return "\n\n".join(
            filter(None, (ends_within(kept, room, self._count, GAP) if kept else "", note))
        )


def chosen_stage(core: Core, thread_id: str) -> Summariser:
    """Return the configured summariser for one conversation."""
    chosen = core.summariser
    return chosen.for_thread(thread_id) if isinstance(chosen, SummariesOff) else chosen


def first_stage(core: Core, loaded: LoadedConversation, window: int) -> Summariser:
    """Return the configured summariser, or the built-in one while the circuit breaker is open."""
    is_open = is_breaker_open(loaded.state, window, core.settings.policy)
    chosen = chosen_stage(core, loaded.thread_id)
    return core.fallback if is_open and not isinstance(chosen, NoteSummariser) else chosen


def next_stage(core: Core, thread_id: str, failed: Summariser) -> Summariser | None:
    """Return the next summariser after ``failed``: the built-in one, then the note, then None."""
    if isinstance(failed, NoteSummariser):
        return None
    if failed is core.fallback or core.summariser is core.fallback:
        return NoteSummariser(thread_id, core.counter.count_text)
    return core.fallback


DIVIDER = "\n\n---\n\n"
TURN_HEADING = "**Turn Context (split turn):**\n\n"


def join_parts(history: str, prefix: str | None) -> str:
    """Join the texts about the history and the split turn; either may be empty."""
    if not prefix:
        return history
    return f"{history}{DIVIDER}{TURN_HEADING}{prefix}" if history else TURN_HEADING + prefix


def whole_text(summary: CompactionPerformed) -> str:
    """Return a recorded text without its note about omitted messages, which later texts write again."""
    return remove_omission_note(summary.text) if summary.omitted else summary.text


def history_text(summary: CompactionPerformed) -> str:
    """Return the part of a recorded text before the split turn, or an empty string."""
    text = whole_text(summary)
    if not summary.is_split_turn or not summary.split_turn_prefix:
        return text
    ending = TURN_HEADING + summary.split_turn_prefix
    return text.removesuffix(ending).removesuffix(DIVIDER) if text.endswith(ending) else text


logger = plain_logger(__name__)

BY_CODE = "Extracted by code from messages "
"""Beginning of the line above a text that code extracted."""
_RANGE = BY_CODE + "{first} to {last}:"
_BY_MODEL = "Written by "
_WRITTEN = _BY_MODEL + "{model} about messages {first} to {last}:"
_SHORTER = 3
"""Divisor of the length of a carried text, which is shortened to the quotient."""
LEAVES_ROOM = 8
"""Factor of the limit of a summary: the room of the texts that it is rebuilt from."""


async def leaf_of(
    core: Core,
    thread_id: str,
    messages: Sequence[SourceMessage],
    plan: CompactionPlan,
    ending: str = "",
    read: MessagesRead | None = None,
) -> LeafSummary:
    """Return the leaf of these messages by the built-in summariser, or a note if that fails.

    ``ending`` is added at the end of its text. ``read`` is what was read from the messages.
    """
    target = min(core.settings.policy.leaf_tokens, plan.target_tokens)
    leaf = await leaf_within(core, thread_id, messages, target, read)
    if not ending:
        return leaf
    text = leaf.text + ending
    return replace(leaf, text=text, tokens=core.counter.count_text(text))


async def leaf_within(
    core: Core,
    thread_id: str,
    messages: Sequence[SourceMessage],
    target: int,
    read: MessagesRead | None = None,
) -> LeafSummary:
    """Return a leaf of about ``target`` tokens."""
    count = core.counter.count_text
    limit = int(target * core.settings.policy.summary_slack)
    request = build_in_order(
        SummaryRequest,
        messages=tuple(messages),
        target_tokens=target,
        limit_tokens=max(1, limit),
        read=read,
    )
    text = ends_within(await _extract(core, thread_id, request), limit, count, GAP)
    positions = [source.position for source in messages]
    return build_in_order(
        LeafSummary, start=min(positions), stop=max(positions) + 1, text=text, tokens=count(text)
    )


def stored_leaves(core: Core, loaded: LoadedConversation) -> tuple[LeafSummary, ...]:
    """Return the stored leaves that together cover what the active summary covers."""
    found = (leaf for made in leaf_events(core, loaded) for leaf in (*made.earlier, made.leaf))
    return tuple(leaf for leaf in found if leaf and not is_written(leaf))


def leaf_events(core: Core, loaded: LoadedConversation) -> list[CompactionPerformed]:
    """Return the compactions whose texts together are about what the active summary covers, in order.

    They may lack ledger, topics and index.
    If the first one is a rebuilt summary, its earlier texts are about all that was covered before it.
    """
    summary = loaded.state.summary
    found: list[CompactionPerformed] = []
    for version in reversed(summary.leaves if summary else ()):
        event: Event | None = loaded.window.texts.get(version)
        if event is None:
            [logged] = core.log.read(loaded.thread_id, version, version)
            event = logged.event
        if isinstance(event, CompactionPerformed):
            found.insert(0, event)
            if event.earlier:
                break
    return found


def earlier_texts(core: Core, loaded: LoadedConversation) -> tuple[LeafSummary, ...]:
    """Return all stored texts about what the active summary covers, in order.

    Each compaction gives the text of a model, if any, and the extract. The model explains reasons,
    and the extract has facts that the model omitted. A model's text covers all messages up to then;
    a split turn gives two texts.
    """
    found: list[LeafSummary] = []
    for made in leaf_events(core, loaded):
        if made.leaf:
            found += [*made.earlier, *_model_texts(core, made), made.leaf]
    return tuple(found)


def _model_texts(core: Core, event: CompactionPerformed) -> list[LeafSummary]:
    if event.summariser in names_of_code(core):
        return []
    start, stop = event.coverage.start, event.coverage.stop
    parts = [(start, stop, whole_text(event))]
    if event.is_split_turn and event.split_turn_prefix and event.split_at is not None:
        at = event.split_at
        parts = [(start, at, history_text(event)), (at, stop, event.split_turn_prefix)]
    return [_text_of(core, event.model, *part) for part in parts if part[2].strip()]


def names_of_code(core: Core) -> frozenset[str]:
    """Return the names of the summarisers that call no model."""
    return frozenset((core.fallback.name, NOTE, OFF))


def is_written(leaf: LeafSummary) -> bool:
    """Return whether a model wrote the leaf."""
    return leaf.text.startswith(_BY_MODEL)


def _text_of(core: Core, model: str, start: int, stop: int, text: str) -> LeafSummary:
    heading = _WRITTEN.format(model=model, first=start, last=max(start, stop - 1))
    text = f"{heading}\n\n{text}"
    tokens = core.counter.count_text(text)
    return build_in_order(LeafSummary, start=start, stop=stop, text=text, tokens=tokens)


async def text_of_leaves(
    core: Core, thread_id: str, leaves: Sequence[LeafSummary], room: int
) -> str:
    """Return the leaves in order, headed by their ranges, in about ``room`` tokens."""
    return join_leaves(await keep_within(core, thread_id, leaves, room))


async def keep_within(
    core: Core, thread_id: str, leaves: Sequence[LeafSummary], room: int
) -> tuple[LeafSummary, ...]:
    """Return the leaves in order, in about ``room`` tokens.

    The newest leaves stay whole. If there is too much text, the older ones together are shortened
    to half of the room.
    """
    if not leaves:
        return ()
    count = core.counter.count_text
    split = await in_thread(_count_older, leaves, room, count)
    older, newest = leaves[:split], leaves[split:]
    if not older:
        return tuple(newest)
    text = await _shorten_to(core, thread_id, join_leaves(older), room // 2)
    start, stop = min(leaf.start for leaf in older), max(leaf.stop for leaf in older)
    return (
        build_in_order(LeafSummary, start=start, stop=stop, text=text, tokens=count(text)),
        *newest,
    )


def _count_older(leaves: Sequence[LeafSummary], room: int, count: Callable[[str], int]) -> int:
    """Return how many of the oldest leaves must be shortened; 0 if all fit."""
    if count(join_leaves(leaves)) <= room:
        return 0
    older = len(leaves)
    while older and count(join_leaves(leaves[older - 1 :])) <= room // 2:
        older -= 1
    return older


def join_leaves(leaves: Iterable[LeafSummary]) -> str:
    """Return the texts of leaves under their headings."""
    return "\n\n".join(map(add_heading, leaves))


async def shorten_text(core: Core, thread_id: str, text: str, room: int) -> str:
    """Shorten a text to about a third or less, and to about ``room`` tokens, without a model."""
    target = min(core.counter.count_text(text) // _SHORTER, room)
    return await _shorten_to(core, thread_id, text, target)


async def _shorten_to(core: Core, thread_id: str, text: str, tokens: int) -> str:
    target = max(SHORTEST_SUMMARY, tokens)
    limit = int(target * core.settings.policy.summary_slack)
    request = build_in_order(
        SummaryRequest, messages=(), previous=text, target_tokens=target, limit_tokens=limit
    )
    extract = await _extract(core, thread_id, request)
    return ends_within(extract, limit, core.counter.count_text, GAP)


def add_heading(leaf: LeafSummary) -> str:
    """Return the text of a leaf under a heading that names its messages and author."""
    heading = _RANGE.format(first=leaf.start, last=leaf.stop - 1)
    has_one = leaf.text.startswith((heading, _BY_MODEL))
    return leaf.text if has_one else f"{heading}\n\n{leaf.text}"


async def _extract(core: Core, thread_id: str, request: SummaryRequest) -> str:
    try:
        with Contained():
            return (await core.fallback.summarise(request)).text
    except Exception as error:  # A summariser of the user may raise anything.
        logger.warning(
            "the built-in summariser failed; a note replaces its extract: %s", raised(error)
        )
        note = NoteSummariser(thread_id, core.counter.count_text)
        return (await note.summarise(request)).text
