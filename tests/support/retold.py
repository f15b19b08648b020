"""The events of a conversation told again in the simplest way, for judges of what was decided."""

from dataclasses import dataclass, field

from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.conversation import Conversation
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    CompactionReverted,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    SaidPart,
    ShortenedPart,
    SummarySuperseded,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.evolve import evolve
from refold.domain.notes import MemoriesChosen

PartKey = tuple[int, str, str]
End = CompactionPerformed | CompactionFailed


@dataclass
class Attempt:
    """A compaction from its request to its end."""

    version: int
    """Of the request."""
    requested: CompactionRequested
    length: int
    """How many messages there were then."""
    before: CompactionPerformed | None
    """The summary that was active then."""
    since: str = ""
    """What ended last before: ``performed``, ``failed``, ``reverted``, or nothing."""
    since_version: int = 0
    setbacks: int = 0
    """Failures and undoings in a row right before."""
    ended: End | None = None
    ended_at: int = 0
    """The version of its end."""
    replaced: CompactionPerformed | None = None
    """The summary that was active when it was performed."""
    onto: CompactionPerformed | None = None
    """The summary that is carried on: the one before, or where the same messages are summarised once
    more with a new focus, the one before that."""

    @property
    def is_refocused(self) -> bool:
        """Whether the same messages are summarised once more: nothing is newly covered."""
        return self.before is not None and self.before.coverage == self.requested.coverage

    @property
    def performed(self) -> CompactionPerformed:
        assert isinstance(self.ended, CompactionPerformed)
        return self.ended


@dataclass
class Retold:
    """Everything that happened, in order."""

    length: int = 0
    active: CompactionPerformed | None = None
    before: dict[str, CompactionPerformed | None] = field(
        default_factory=dict[str, CompactionPerformed | None]
    )
    """For each summary the one that it took over from."""
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    undone: list[str] = field(default_factory=list[str])
    superseded: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    pins: dict[str, MessagePinned] = field(default_factory=dict[str, MessagePinned])
    unseen: set[int] = field(default_factory=set[int])
    """The versions of pins, and of their ends, that change nothing that is shown."""
    shortened: dict[PartKey, tuple[ShortenedPart | SaidPart, int]] = field(
        default_factory=dict[PartKey, tuple[ShortenedPart | SaidPart, int]]
    )
    """The parts that are shown shorter, each with the characters shown from its beginning."""
    left_out: set[PartKey] = field(default_factory=set[PartKey])
    """Those of which nothing is shown, but for a marker of a whole run of them."""
    quoted: MemoriesChosen | None = None
    """The earlier messages that the system text quotes, if it quotes any."""
    erased: dict[int, int] = field(default_factory=dict[int, int])
    """The messages that were erased, each with the version that says so."""
    states: list[Conversation] = field(default_factory=lambda: [Conversation()])
    """What decisions knew, at each version."""
    said: list[int] = field(default_factory=lambda: [0])
    """The version of the newest append, at each version."""
    _since: str = ""
    _since_version: int = 0
    _setbacks: int = 0

    @property
    def performed(self) -> list[Attempt]:
        """The attempts that were performed, those that were undone later included."""
        return [a for a in self.attempts if isinstance(a.ended, CompactionPerformed)]

    @property
    def setbacks(self) -> tuple[int, int]:
        """Failures and undoings in a row until now, and the version of the newest of them."""
        return self._setbacks, self._since_version

    def tell(self, logged: LoggedEvent) -> None:
        """Go on with one event."""
        event, version = logged.event, logged.version
        assert version == len(self.states), "a version is missing"
        self.states.append(evolve(self.states[-1], event))
        self.said.append(version if isinstance(event, MessageAppended) else self.said[-1])
        match event:
            case MessageAppended():
                assert event.position == self.length, "a position is missing"
                self.length += 1
            case CompactionRequested():
                self.attempts.append(self._begun(version, event))
            case CompactionPerformed() | CompactionFailed():
                self._ended(version, event)
            case SummarySuperseded():
                self.superseded.append((event.summary_id, event.by))
            case CompactionReverted():
                assert self.active is not None, "undone, and no summary is active"
                assert event.summary_id == self.active.summary_id
                self.active = self.before[event.summary_id]
                restored = event.restored.summary_id if event.restored else None
                assert restored == (self.active.summary_id if self.active else None)
                self.undone.append(event.summary_id)
                self._mark("reverted", version)
            case ToolContentOffloaded() | MessagesCondensed():
                head = event.head if isinstance(event, ToolContentOffloaded) else event.characters
                for part in event.parts:
                    self.shortened[part.position, part.call_id, part.side] = (part, head)
            case UserContentShortened():
                for said in event.parts:
                    key = (said.position, str(said.block), "said")
                    self.shortened[key] = (said, event.head)
                    self.left_out |= {key} if event.left_out else set[PartKey]()
            case MessageErased():
                assert event.position not in self.erased, "erased twice"
                self.erased[event.position] = version
                kept = {k: v for k, v in self.shortened.items() if k[0] != event.position}
                self.shortened, self.left_out = kept, self.left_out & kept.keys()
            case MessagePinned():
                assert event.pin_id not in self.pins
                self.pins[event.pin_id] = event
                self._note_pin(version, event)
            case MessageUnpinned():
                self._note_pin(version, self.pins.pop(event.pin_id))
            case MemoriesChosen():
                self.quoted = event if event.memories else None
            case _:
                pass

    def _note_pin(self, version: int, pin: MessagePinned) -> None:
        if not pin.tokens:
            self.unseen.add(version)

    def _mark(self, what: str, version: int) -> None:
        self._since, self._since_version = what, version
        self._setbacks = 0 if what == "performed" else self._setbacks + 1

    def _begun(self, version: int, event: CompactionRequested) -> Attempt:
        assert all(a.ended for a in self.attempts), "two compactions at once"
        assert event.supersedes == (self.active.summary_id if self.active else None)
        begun = Attempt(
            version,
            event,
            self.length,
            self.active,
            self._since,
            self._since_version,
            self._setbacks,
            onto=self.active,
        )
        if begun.is_refocused:
            made = (a for a in reversed(self.attempts) if a.ended == self.active)
            begun.onto = next(made).onto
        return begun

    def _ended(self, version: int, event: End) -> None:
        attempt = self.attempts[-1]
        assert attempt.ended is None, "invariant 22: an attempt ended twice"
        assert attempt.requested.attempt_id == event.attempt_id, "an end without its request"
        attempt.ended, attempt.ended_at = event, version
        if isinstance(event, CompactionPerformed):
            attempt.replaced = self.active
            self.before[event.summary_id] = self.active
            self.active = event
            # The guard counts compactions, not what is made anew in the place of one.
            if event.trigger != "erasure":
                self._mark("performed", version)
        elif event.reason != "erased":
            self._mark("failed", version)

    @property
    def made(self) -> Attempt | None:
        """The compaction that the active summary comes from, whatever was erased from it since."""
        summary = self.active
        while summary is not None and summary.trigger == "erasure":
            summary = self.before[summary.summary_id]
        return next((a for a in self.performed if a.ended == summary), None)

    @property
    def running(self) -> Attempt | None:
        """The attempt that has no end yet."""
        return next((a for a in self.attempts if not a.ended), None)

    def is_withdrawn(self, attempt: Attempt) -> bool:
        """Whether something that it covers was erased after it had ended."""
        covers = attempt.requested.coverage.covers
        return any(covers(p) and v > attempt.ended_at for p, v in self.erased.items())

    def pinned_in_place(self) -> set[int]:
        """The messages that are pinned where they stand."""
        own = (p.position for p in self.pins.values() if not p.tokens)
        return {p for p in own if p is not None}

    def texts_in_the_ledger(self) -> list[MessagePinned]:
        """The pins whose words the ledger shows."""
        return [pin for pin in self.pins.values() if pin.tokens]
