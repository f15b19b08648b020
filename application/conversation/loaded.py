"""A loaded conversation: the state for decisions, and the window that a context is rendered from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from refold.domain.compaction.budget import Budget
from refold.domain.conversation import Conversation, Coverage
from refold.domain.errors import ConversationGone, OwnerConflict
from refold.domain.events import (
    CompactionPerformed,
    CompactionReverted,
    ConversationErased,
    Event,
    LinesRecalled,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    Shortening,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.evolve import are_messages, fold
from refold.domain.notes import MemoriesChosen
from refold.domain.originals import Original
from refold.domain.value import build_in_order, byte_size

from .entries import (
    SAID,
    Entries,
    Entry,
    LongEntries,
    Method,
    PinnedText,
    Preview,
    PreviewKey,
    StoredMessages,
    StoredRun,
    held_entries,
    shelve,
)


@dataclass(frozen=True, slots=True)
class Window:
    """The live part of a conversation with its texts: all that a context is rendered from."""

    entries: Entries = ()
    summary: CompactionPerformed | None = None
    previews: Mapping[PreviewKey, Preview] = field(default_factory=dict[PreviewKey, Preview])
    pins: tuple[PinnedText, ...] = ()
    memories: MemoriesChosen | None = None
    """Earlier messages that are quoted in the system text."""
    recalled: Mapping[int, LinesRecalled] = field(default_factory=dict[int, LinesRecalled])
    """Lines that were added at the end of live messages, by the position of the message."""
    thinking_from: int = 0
    """Position before which messages are rendered without thinking."""
    thoughts_once: bool = False
    """True if thinking that was stored twice is shown in its first position only."""
    measures: Mapping[int, int] = field(default_factory=dict[int, int])
    """Tokens that remain of erased live messages, by position."""
    texts: Mapping[int, CompactionPerformed] = field(
        default_factory=dict[int, CompactionPerformed], compare=False
    )
    """Compactions whose texts the next summary may be rebuilt from, without their lists, by version.

    After loading it is empty, and the texts are read from the log when they are needed. An erasure makes a
    summary with a new version, and the window is loaded again.
    """

    @property
    def is_whole(self) -> bool:
        """True if all messages are shown, nothing of them is shortened, and nothing else is shown.

        Thinking may be left out all the same.
        """
        added = self.summary or self.memories or self.pins or self.recalled
        return not (added or self.previews or self.measures)

    def with_entries(self, entries: Entries) -> "Window":
        """Return this window with other messages."""
        return Window(
            entries,
            self.summary,
            self.previews,
            self.pins,
            self.memories,
            self.recalled,
            self.thinking_from,
            self.thoughts_once,
            self.measures,
            self.texts,
        )

    def shelve(self, keep: int, log: StoredMessages) -> "Window":
        """Return this window with only the newest ``keep`` messages in memory, reading others from
        ``log``.
        """
        begin = self.summary.coverage.stop if self.summary else 0
        return replace(self, entries=shelve(self.entries, keep, log, self.measures, begin))

    def read_from(self, log: StoredMessages) -> "Window":
        """Return this window with its stored messages read from another log that has them."""
        if not isinstance(self.entries, LongEntries):
            return self
        run = replace(self.entries.stored, log=log)
        return replace(self, entries=LongEntries(self.entries.kept, run, self.entries.newest))


@dataclass(frozen=True, slots=True)
class LoadedConversation:
    """State and window of one conversation at one version."""

    thread_id: str
    state: Conversation = field(default_factory=partial(build_in_order, Conversation))
    window: Window = field(default_factory=Window)

    def __post_init__(self) -> None:
        """Set the shown thinking of the window to that of the state."""
        window, first = self.window, self.state.thinking_from
        once = self.state.frame is not None
        if (window.thinking_from, window.thoughts_once) != (first, once):
            shown = replace(window, thinking_from=first, thoughts_once=once)
            object.__setattr__(self, "window", shown)

    def present(self) -> "LoadedConversation":
        """Return this conversation, or raise if it was erased.

        Raises:
            ConversationGone: it was erased.
        """
        if self.state.erased:
            raise ConversationGone(self.thread_id)
        return self

    def check_owner(self, owner: str | None) -> None:
        """Raise if the conversation belongs to another owner.

        Raises:
            OwnerConflict: the conversation has another owner than the given one.
        """
        known = self.state.owner
        if owner is not None and known is not None and known != owner:
            raise OwnerConflict(self.thread_id)

    def is_too_long_to_render(self, budget: Budget) -> bool:
        """Return whether the conversation does not fit and is so long that not all of it is in memory."""
        is_long = isinstance(self.window.entries, LongEntries)
        return is_long and self.state.tokens + budget.fixed > budget.limit

    def after(self, events: Sequence[Event]) -> "LoadedConversation":
        """Return the conversation after these events, none of which may revert a compaction.

        If one does, ``must_reload`` returns True for the events, and the conversation must be loaded from
        the log.
        """
        state, window = fold(events, self.state), project(self.window, events)
        if window.summary is not self.window.summary:
            window = replace(window, texts=self._texts_after(events, state))
        return LoadedConversation(self.thread_id, state, window)

    def _texts_after(
        self, events: Sequence[Event], state: Conversation
    ) -> Mapping[int, CompactionPerformed]:
        texts = {
            version: event.without_lists()
            for version, event in enumerate(events, self.state.version + 1)
            if isinstance(event, CompactionPerformed)
        }
        texts = {**self.window.texts, **texts}
        wanted = state.summary.leaves if state.summary else ()
        return {version: texts[version] for version in wanted if version in texts}


def entry_of(event: MessageAppended) -> Entry:
    """Return the entry of an appended message."""
    return Entry(
        event.position,
        event.message_id,
        event.message,
        event.tokens,
        event.thinking_tokens,
        event.stop_reason,
        byte_size(event.message.content) + _size_of(event.original),
        event.original,
    )


def _size_of(original: Original | None) -> int:
    """Return the bytes of what a request has of a foreign form."""
    return byte_size(original.reasoning) if original is not None else 0


def project(
    window: Window, events: Sequence[Event], undone: frozenset[str] = frozenset()
) -> Window:
    """Fold events into a window.

    A reverted compaction must be among ``events`` together with its reversal, because a window does
    not keep covered messages; ``must_reload`` detects this. Otherwise its summary id must be in
    ``undone``.
    """
    if are_messages(events):
        # Appending changes only the end.
        return window.with_entries(
            _append_entries(window.entries, tuple([entry_of(e) for e in events]))
        )
    folding = _WindowBuilder(window, undone.union(reverted_summaries(events)))
    for event in events:
        folding.take(event)
    return folding.window()


def reverted_summaries(events: Sequence[Event]) -> list[str]:
    """Return the ids of the summaries that these events revert."""
    return [event.summary_id for event in events if isinstance(event, CompactionReverted)]


def _append_entries(entries: Entries, added: tuple[Entry, ...]) -> Entries:
    if isinstance(entries, LongEntries):
        return LongEntries(entries.kept, entries.stored, entries.newest + added)
    return entries + added


class _WindowBuilder:
    """A window that is being built, with lists in place of tuples."""

    def __init__(self, window: Window, undone: frozenset[str]) -> None:
        self._undone = undone
        self._kept: list[Entry] = []
        self._stored: StoredRun | None = None
        self._entries = list(held_entries(window.entries))
        if isinstance(window.entries, LongEntries):
            self._kept, self._stored = list(window.entries.kept), window.entries.stored
            self._entries = list(window.entries.newest)
        self._summary, self._previews, self._pins = window.summary, window.previews, window.pins
        self._summaries = {window.summary.summary_id: window.summary} if window.summary else {}
        self._memories, self._recalled = window.memories, window.recalled
        self._thinking_from = window.thinking_from
        self._measures, self._texts = window.measures, window.texts

    def window(self) -> Window:
        entries: Entries = tuple(self._entries)
        if self._stored is not None:
            run = replace(self._stored, measures=self._measures)
            entries = LongEntries(self._kept, run, self._entries)
        return Window(
            entries,
            self._summary,
            self._previews,
            self._pins,
            self._memories,
            self._recalled,
            self._thinking_from,
            measures=self._measures,
            texts=self._texts,
        )

    def take(self, event: Event) -> None:
        match event:
            case MessageAppended():
                self._append(event)
            case CompactionPerformed():
                self._compact(event)
            case CompactionReverted():
                # A summary that is unknown here was replaced later, because the active one is
                # always known.
                restored = event.restored.summary_id if event.restored else ""
                self._summary = self._summaries.get(restored)
            case ToolContentOffloaded() | UserContentShortened() | MessagesCondensed():
                self._shorten(*_shortening(event))
            case MessageErased():
                self._erase(event)
            case MemoriesChosen():
                self._memories = event if event.memories else None
            case LinesRecalled():
                self._recalled = {**self._recalled, event.position: event}
            case ConversationErased():
                self._forget()
            case MessagePinned():
                self._pin(event)
            case MessageUnpinned():
                self._pins = tuple(pin for pin in self._pins if pin.pin_id != event.pin_id)
            case _:
                pass

    def _append(self, event: MessageAppended) -> None:
        self._entries.append(entry_of(event))

    def _compact(self, event: CompactionPerformed) -> None:
        self._summaries[event.summary_id] = event
        if event.summary_id in self._undone:
            return
        covers = event.coverage.covers
        self._uncover_stored(event.coverage)
        self._kept = [e for e in self._kept if not covers(e.position)]
        self._entries = [e for e in self._entries if not covers(e.position)]
        if self._stored is None:
            self._kept, self._entries = [], self._kept + self._entries
        self._previews = {at: p for at, p in self._previews.items() if not covers(at[0])}
        self._measures = {at: n for at, n in self._measures.items() if not covers(at)}
        self._recalled = {at: one for at, one in self._recalled.items() if not covers(at)}
        self._summary = event

    def _uncover_stored(self, coverage: Coverage) -> None:
        """Keep in memory the stored messages that a summary passes over without covering them."""
        run = self._stored
        if run is None or coverage.stop <= run.start:
            return
        before = [*run.read(run.start, coverage.start)] if run.start < coverage.start else []
        excluded = (p for p in coverage.exclusions if run.start <= p < run.stop)
        left = [entry for p in excluded for entry in run.read(p, p + 1)]
        self._kept += before + left
        self._stored = run.drop_before(coverage.stop) if coverage.stop < run.stop else None

    def _shorten(self, parts: Iterable[tuple[PreviewKey, int]], shown: Preview) -> None:
        previews = dict(self._previews)
        for key, freed in parts:
            before = previews[key].tokens_freed if key in previews else 0
            previews[key] = shown._replace(tokens_freed=before + freed)
        self._previews = previews

    def _erase(self, event: MessageErased) -> None:
        # The log already has the rewritten message; only its size is outdated.
        at = event.position
        is_stored = self._stored is not None and self._stored.start <= at < self._stored.stop
        if is_stored or any(e.position == at for e in (*self._kept, *self._entries)):
            self._measures = {**self._measures, at: event.tokens}
        self._kept, self._entries = (
            [e._replace(tokens=event.tokens, thinking=0) if e.position == at else e for e in some]
            for some in (self._kept, self._entries)
        )
        self._previews = {key: p for key, p in self._previews.items() if key[0] != at}
        self._recalled = {key: one for key, one in self._recalled.items() if key != at}

    def _forget(self) -> None:
        self._entries, self._summary, self._pins, self._memories = [], None, (), None
        self._kept, self._stored = [], None
        self._previews, self._measures = dict[PreviewKey, Preview](), dict[int, int]()
        self._texts = dict[int, CompactionPerformed]()
        self._recalled = dict[int, LinesRecalled]()

    def _pin(self, event: MessagePinned) -> None:
        if event.tokens:
            pin = PinnedText(event.pin_id, event.position, event.text, event.tokens)
            self._pins = (*self._pins, pin)


def _shortening(event: Shortening) -> tuple[Iterable[tuple[PreviewKey, int]], Preview]:
    """Return the parts that a decision shortens, with the tokens saved on each, and how they are shown."""
    match event:
        case UserContentShortened():
            said = (((p.position, str(p.block), SAID), p.tokens_freed) for p in event.parts)
            method: Method = "left-out" if event.left_out else "offload"
            return said, Preview(event.head, event.tail, 0, method)
        case ToolContentOffloaded():
            shown = Preview(event.head, event.tail, 0)
        case MessagesCondensed():
            shown = Preview(
                event.characters, event.tail, 0, "soft-trim" if event.characters else "hard-clear"
            )
    return (((p.position, p.call_id, p.side), p.tokens_freed) for p in event.parts), shown


def must_reload(events: Sequence[Event]) -> bool:
    """Return whether these events bring back or change messages, so that the window must be reloaded."""
    return not are_messages(events) and any(
        isinstance(event, (CompactionReverted, MessageErased, ConversationErased))
        for event in events
    )
