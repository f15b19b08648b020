"""Plan an erasure: which messages to erase, and which other events contain their text."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from refold.application.conversation.addresses import marker_of
from refold.application.conversation.entries import Entry, entry_at
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import places_in
from refold.application.ports.conversation_log import Erasure, Loading
from refold.application.ports.read_models import ConversationRow
from refold.application.runtime.core import Core
from refold.domain.choosing_memories import withdraw_memories
from refold.domain.erasing import (
    ErasedMessage,
    Withdrawn,
    erase_messages,
    make_stub,
    strip_event,
)
from refold.domain.events import (
    WITHDRAWN,
    CompactionPerformed,
    CompactionRequested,
    ConversationLabelled,
    EditDecided,
    EditProposed,
    Event,
    LinesRecalled,
    MessageAppended,
    MessagePinned,
)
from refold.domain.frames import RequestFrameChanged
from refold.domain.lazy_pattern import lazy_property
from refold.domain.messages import Message
from refold.domain.notes import ChosenMemory, MemoriesChosen, Note, NotesFlushed, Rewritten
from refold.domain.noting import LEDGER, fitting_notes, notes_by_code
from refold.domain.pinning import WITHDRAWN_LABEL
from refold.domain.quoted_text import remove_quotes

from .erasure_report import Place, RebuiltSummary, Removed
from .lineage import Lineage, copies, read_events
from .rebuilt_summary import SummaryRebuild

REASON = "erased"


class NotesRebuild(NamedTuple):
    """Notes that replace withdrawn ones."""

    replaces: frozenset[str] = frozenset()
    """Ids of the withdrawn notes."""
    events: tuple[NotesFlushed, ...] = ()


def rebuild_notes(
    core: Core,
    thread_id: str,
    withdrawn: Mapping[int, NotesFlushed],
    gone: frozenset[int],
    version: int,
    known: Sequence[Note] = (),
) -> NotesRebuild:
    """Return new notes for each withdrawn flush, with the original times.

    The notes are taken from the same messages except those that are ``gone``. ``version`` is that
    of the conversation; ``known`` are notes that stay elsewhere and are not repeated. No model is
    needed. If notes are switched off, there are no new ones, and never for a note on demand.
    """
    replaces = frozenset(flush.flush_id for flush in withdrawn.values())
    withdrawn = {at: flush for at, flush in withdrawn.items() if not flush.is_on_demand}
    if core.settings.notes.by == "off" or not withdrawn:
        return NotesRebuild(replaces)
    left = _remaining_messages(core, thread_id, list(withdrawn.values()), gone, version)
    logged_at = {one.version: one.at for one in core.log.read_at(thread_id, withdrawn)}
    noted, events = list(known), list[NotesFlushed]()
    for at, flush in withdrawn.items():
        own = {p: m for p, m in left.items() if flush.start <= p < flush.stop}
        notes = fitting_notes(notes_by_code(own.items()), noted, frozenset(own))
        noted += notes
        events.append(_new_flush(core, flush, notes, flush.taken_at or logged_at[at]))
    return NotesRebuild(replaces, tuple(events))


def _new_flush(
    core: Core, flush: NotesFlushed, notes: tuple[Note, ...], taken_at: str
) -> NotesFlushed:
    return NotesFlushed(
        flush_id=core.new_id(),
        start=flush.start,
        stop=flush.stop,
        notes=notes,
        taken_by=LEDGER,
        reason=REASON,
        replaces=flush.flush_id,
        taken_at=taken_at,
    )


def _remaining_messages(
    core: Core,
    thread_id: str,
    withdrawn: Sequence[NotesFlushed],
    gone: frozenset[int],
    version: int,
) -> Mapping[int, Message]:
    """Return the remaining messages of all these flushes by position, oldest first."""
    stop = max(flush.stop for flush in withdrawn)
    found: dict[int, Message] = {}
    # The version of a message is at least the number of messages up to it.
    for logged in read_events(
        core, thread_id, 1 + min(flush.start for flush in withdrawn), version
    ):
        event = logged.event
        if not isinstance(event, MessageAppended):
            continue
        if event.position >= stop:
            break
        if not logged.erased and event.position not in gone:
            found[event.position] = event.message
    return found


class Done(NamedTuple):
    """The content that was erased in one conversation."""

    messages: Sequence[ErasedMessage] = ()
    removed: tuple[Removed, ...] = ()
    rebuilt: tuple[RebuiltSummary, ...] = ()


class _Loss(NamedTuple):
    """An event that loses content."""

    event: Event
    left: Event
    position: int
    """Position of the erased message whose text the event contains."""


@dataclass(frozen=True)
class ErasurePlan:
    """The content to remove from one conversation, and the events that record it."""

    now: LoadedConversation
    known: Lineage
    messages: Sequence[ErasedMessage]
    rebuilt_summary: SummaryRebuild | None
    new_notes: NotesRebuild
    reason: str
    quoting: Mapping[int, MemoriesChosen] = field(default_factory=dict[int, MemoriesChosen])
    """Memory choices that quote erased messages of another conversation, by version."""
    carried: Sequence[Event] = ()
    """Proposal and decision that the erasure carries out."""

    def erasure(self) -> Erasure:
        """Return the erasure in the form that the log accepts."""
        return Erasure({version: lost.left for version, lost in self._losses.items()}, self._events)

    def done(self) -> Done:
        """Return the erased content for the report."""
        thread_id, summary = self.now.thread_id, self.now.window.summary
        removed = tuple(
            Removed(thread_id=thread_id, place=place, version=version, count=count)
            for version, lost in sorted(self._losses.items())
            for place, count in _places(lost.event, lost.left)
            if count
        )
        rebuilt: tuple[RebuiltSummary, ...] = ()
        if self.rebuilt_summary is not None and summary is not None:
            made = RebuiltSummary(
                thread_id=thread_id,
                summary_id=self.rebuilt_summary.summary.summary_id,
                replaces=self.rebuilt_summary.replaces,
                tokens_before=summary.tokens,
                tokens_after=self.rebuilt_summary.summary.tokens,
            )
            rebuilt = (made,)
        return Done(self.messages, removed, rebuilt)

    @lazy_property
    def _losses(self) -> Mapping[int, _Loss]:
        """Events that lose content, by version."""
        lost: dict[int, _Loss] = {}
        for message in self.messages:
            position = frozenset((message.position,))
            marker = marker_of(self.now.thread_id, message.position)
            is_quoted = self.known.is_quoted(position)
            for version, event in self.known.made_from(position):
                before = lost.get(version, _Loss(event, event, message.position))
                left = remove_quotes(strip_event(before.left, marker), is_quoted, WITHDRAWN)
                # The message itself is marked as erased even if it contains only calls.
                if left != before.left or isinstance(event, MessageAppended):
                    lost[version] = before._replace(left=left)
        for version, event in self.quoting.items():
            # Any erasure that is recorded here explains the change.
            known = _Loss(event, strip_event(event, ""), self.messages[0].position)
            lost.setdefault(version, known)
        return lost

    def _events(self, rewritten: Sequence[Rewritten]) -> Sequence[Event]:
        by_position: dict[int, list[Rewritten]] = {}
        for one in rewritten:
            by_position.setdefault(self._losses[one.version].position, []).append(one)
        rebuilt_summary = (
            *(self.rebuilt_summary.events if self.rebuilt_summary else ()),
            *self.new_notes.events,
        )
        return (
            *self.carried,
            *erase_messages(
                self.now.state,
                self.messages,
                by_position,
                rebuilt_summary,
                self.reason,
                self._withdrawn,
            ),
        )

    @property
    def _withdrawn(self) -> Withdrawn:
        events = [lost.event for lost in self._losses.values()]
        labels = {event.label for event in events if isinstance(event, ConversationLabelled)}
        return Withdrawn(
            attempts=frozenset(e.attempt_id for e in events if isinstance(e, CompactionRequested)),
            pins=frozenset(event.pin_id for event in events if isinstance(event, MessagePinned)),
            edits=self._edits - {e.edit_id for e in self.carried if isinstance(e, EditDecided)},
            label=WITHDRAWN_LABEL if self.now.state.label in labels else None,
            memories=self.now.window.memories in events,
        )

    @property
    def _edits(self) -> frozenset[str]:
        """Ids of the proposals about these messages, and of those that quote them."""
        positions = frozenset(message.position for message in self.messages)
        made = self.known.made_from(positions) if self.now.state.edits else ()
        return frozenset(event.edit_id for _, event in made if isinstance(event, EditProposed))


def find_erasable(core: Core, now: LoadedConversation, known: Lineage) -> list[ErasedMessage]:
    """Return the requested messages that were not erased before, in the form that remains of them."""
    messages: list[ErasedMessage] = []
    for position in sorted(known.positions - known.erased):
        if position not in known.messages:
            continue  # Nothing is left of a lost message.
        _, event = known.messages[position]
        stub = make_stub(event.message, marker_of(now.thread_id, position))
        tokens = core.counter.count_message(stub).total
        messages.append(erased_message(now, position, event.message_id, tokens))
    return messages


def erased_message(
    now: LoadedConversation, position: int, message_id: str, tokens: int
) -> ErasedMessage:
    """Return the erased message, of which ``tokens`` remain, with the tokens freed in the context."""
    entry = entry_at(now.window.entries, position)
    freed = _shown_tokens(now, entry) - tokens if entry else 0
    return ErasedMessage(position, message_id, tokens, freed)


def _shown_tokens(now: LoadedConversation, entry: Entry) -> int:
    live = (m.tokens for m in now.state.live if m.position == entry.position)
    shortened = (p for key, p in now.window.previews.items() if key[0] == entry.position)
    less = entry.thinking if entry.position < now.window.thinking_from else 0
    return next(live, entry.tokens - sum(p.tokens_freed for p in shortened) - less)


def _places(event: Event, left: Event) -> Iterable[tuple[Place, int]]:
    match event, left:
        case MessageAppended(), _:
            yield "message", 1
        case MessagePinned(), _:
            yield "pin", 1
        case EditProposed(), _:
            yield "proposal", 1
        case ConversationLabelled(), _:
            yield "label", 1
        case NotesFlushed(), _:
            yield "notes", len(event.notes)
        case MemoriesChosen(), _:
            yield "quoted memory", len(event.memories)
        case LinesRecalled(), _:
            yield "recalled line", len(event.lines)
        case RequestFrameChanged(), RequestFrameChanged():
            pairs = zip(event.parts, left.parts, strict=True)
            yield "system text", sum(part != after for part, after in pairs)
        case CompactionPerformed(), CompactionPerformed():
            yield "summary", 1
            yield "leaf", len(event.earlier) + (1 if event.leaf else 0)
            yield "ledger", len(event.ledger)
            yield "index", len(event.index)
            yield "topics", len(event.topics)
            yield "focus", int(event.focus != left.focus)
        case CompactionRequested(), CompactionRequested():
            yield "attempt", int(event.source_digest != left.source_digest)
            yield "focus", int(event.focus != left.focus)
        case _:
            yield "attempt", 1


def messages_of_owner(core: Core, load: Loading, owner: str) -> Mapping[str, frozenset[int]]:
    """Return the positions of the messages of an owner, by thread id.

    These are messages that name the owner, messages in the owner's conversations that name no owner,
    and messages copied from such a conversation before the log recorded its owner.
    """
    named = core.views.messages_of(owner)
    found: dict[str, frozenset[int]] = {}
    for row in core.views.conversations():
        state = load(row.thread_id).state if row.owner == owner else None
        if state is not None:
            # Read every row, so that no message of another owner is erased by mistake.
            rows = core.views.messages(row.thread_id, 0, state.length)
            found[row.thread_id] = frozenset(
                message.position for message in rows if message.owner in (None, owner)
            )
        elif row.thread_id in named:
            found[row.thread_id] = named[row.thread_id]
    related = {thread for fork in core.log.forks() for thread in (fork.source, fork.thread_id)}
    for thread_id in sorted(found.keys() & related):
        loaded = load(thread_id)
        for other, positions in copies(
            core, thread_id, _versions(core, loaded, found[thread_id])
        ).items():
            if not load(other).state.erased:
                found[other] = found.get(other, frozenset()) | positions
    return {thread_id: positions for thread_id, positions in found.items() if positions}


def is_known(core: Core, owner: str) -> bool:
    """Return whether the owner has a conversation or a message, including erased ones."""
    has_own = any(row.owner == owner for row in core.views.conversations())
    return has_own or bool(core.views.messages_of(owner))


def _versions(
    core: Core, loaded: LoadedConversation, positions: frozenset[int]
) -> Mapping[int, int]:
    """Return the versions of messages by position, without lost messages."""
    rows = core.views.messages(loaded.thread_id, min(positions, default=0), loaded.state.length)
    return {row.position: row.version for row in rows if row.position in positions}


Positions = Mapping[str, Collection[int]]
"""Positions of messages, by thread id."""
Withdrawals = Mapping[str, Collection[str]]
"""Ids of withdrawn summaries and notes, by thread id."""
Choices = Mapping[int, MemoriesChosen]
"""Memory choices, by version."""


class _Read(NamedTuple):
    """Quotations of other conversations in one conversation, up to a version."""

    version: int = 0
    choices: Choices = MappingProxyType({})


class Quotations:
    """Memory choices that quote other conversations, cached by conversation."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: dict[str, _Read] = {}

    def find(
        self, load: Loading, gone: Positions, withdrawn: Withdrawals = MappingProxyType({})
    ) -> Mapping[str, Choices]:
        """Return the choices that quote these messages from another conversation, by thread id.

        Those that quote a ``withdrawn`` summary or note are included.
        """
        owners = {load(thread_id).state.owner for thread_id in gone} - {None}
        if not owners:
            return {}  # Only conversations of the same owner quote each other.
        found: dict[str, Choices] = {}
        for row in self._conversations_of(owners):
            quoting = {
                version: event
                for version, event in self._choices(load(row.thread_id)).items()
                if any(_is_lost(memory, gone, withdrawn) for memory in event.memories)
            }
            if quoting:
                found[row.thread_id] = quoting
        return found

    def _conversations_of(self, owners: Collection[str | None]) -> Iterable[ConversationRow]:
        """Return the conversations of these owners, latest activity first."""
        rows = [row for one in owners if one for row in self._core.views.conversations_of(one)]
        rows.sort(key=lambda row: row.thread_id)
        return sorted(rows, key=lambda row: row.last_activity, reverse=True)

    def _choices(self, loaded: LoadedConversation) -> Choices:
        thread_id, version = loaded.thread_id, loaded.state.version
        known = self._known.get(thread_id, _Read())
        if version > known.version:
            places = places_in(self._core, thread_id, version, loaded.state.length)
            newer = {
                logged.version: logged.event
                for logged in places.decisions_after(known.version, (MemoriesChosen,))
                if isinstance(logged.event, MemoriesChosen)
                and any(memory.thread_id for memory in logged.event.memories)
            }
            known = self._known[thread_id] = _Read(version, {**known.choices, **newer})
        return known.choices


def _is_lost(memory: ChosenMemory, gone: Positions, withdrawn: Withdrawals) -> bool:
    source = memory.message_id
    if memory.kind == "note":
        source = source.rpartition("/")[0]  # The number of the note follows.
    is_withdrawn = source in withdrawn.get(memory.thread_id or "", ())
    return is_withdrawn or any(memory.is_made_of(t, positions) for t, positions in gone.items())


def withdraw_choices(now: LoadedConversation, choices: Choices) -> tuple[Erasure, Done]:
    """Remove these memory choices from a conversation in which nothing else is erased.

    Return the erasure for the log, and the erased content for the report.
    """
    remains = {version: strip_event(event, "") for version, event in choices.items()}

    def happened(rewritten: Sequence[Rewritten]) -> Sequence[Event]:
        present = now.window.memories
        kept = None if present in choices.values() else present
        return withdraw_memories(now.state, kept, rewritten)

    return Erasure(remains, happened), Done((), removed_quotations(now.thread_id, choices))


def removed_quotations(thread_id: str, choices: Choices) -> tuple[Removed, ...]:
    """Return the entries of the report for these memory choices."""
    return tuple(
        Removed(
            thread_id=thread_id,
            place="quoted memory",
            version=version,
            count=len(event.memories),
        )
        for version, event in sorted(choices.items())
    )
