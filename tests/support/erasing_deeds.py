"""Deeds that erase messages and fork the conversation, each with what must be true right after it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from refold.application.erasure.erasure_report import ErasureReport
from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    EditDecided,
    EditProposed,
    Event,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessageUnpinned,
    SummarySuperseded,
)
from refold.domain.frames import RequestFrameChanged
from refold.domain.notes import MemoriesChosen, NotesFlushed
from tests.support.invariants.erased import (
    assert_it_is_a_stub,
    no_file_holds,
    nothing_shows_what_is_erased,
)

from .fake_summarisers import GoodSummariser
from .retold import Retold
from .talk import Spoken, strings
from .witness import THREAD, Witness, as_bytes

Aim = Literal["any", "covered", "pinned"]
MOST_FORKS = 2
TEXTS: dict[type[Any], frozenset[str]] = {
    MessageAppended: frozenset({"message"}),
    CompactionRequested: frozenset({"source_digest"}),
    CompactionPerformed: frozenset(
        {
            *("text", "source_digest", "split_turn_prefix", "ledger", "ledger_shown", "leaf"),
            "earlier",
            *("block", "topics", "topics_shown", "index", "index_shown"),
        }
    ),
    NotesFlushed: frozenset({"notes"}),
    MemoriesChosen: frozenset({"memories"}),
    CompactionFailed: frozenset({"detail"}),
    MessagePinned: frozenset({"text"}),
    EditProposed: frozenset({"text"}),
}
"""What an event may lose: decisions are made on the rest."""


def erase(witness: Witness, positions: Iterable[int], *, through: str = THREAD) -> ErasureReport:
    """Erase messages, here or where they were copied to (2, 3, 8, 15, 18, 22): no model is asked, what
    was made from them is withdrawn, and every other event stays as it was.
    """
    witness.is_stale = True  # Somebody may have begun something meanwhile.
    wanted = sorted(set(positions))
    fresh = [p for p in wanted if p not in witness.erased]
    before, story, calls = tuple(witness.events()), witness.story, len(witness.summariser.calls)
    shown = as_bytes(witness.shown())
    report = witness.memory.conversation(through).erase(wanted, "asked to")
    assert report.complete, "nobody is reading, and it is not complete"
    assert report.positions == tuple(fresh)
    assert report.already_erased == tuple(p for p in wanted if p not in fresh)
    assert len(witness.summariser.calls) == calls, "a model was asked"
    no_file_holds(witness, fresh)  # Before anybody reads: read models would follow the log then.
    witness.read_again()
    if not fresh:
        assert witness.events() == list(before)
        assert as_bytes(witness.shown()) == shown
        return report
    _note(witness, fresh)
    about = About(story, {p: witness.erased[p] for p in fresh})
    witness.pins = {i: pin for i, pin in witness.pins.items() if i not in about.pins}
    _is_recorded(witness, about, before, [e.event for e in witness.events()[len(before) :]])
    _others_are_as_before(before, witness.events(), about)
    nothing_shows_what_is_erased(witness)
    return report


def _note(witness: Witness, fresh: Sequence[int]) -> None:
    stored = witness.conversation.messages()
    for position in fresh:
        said, found = witness.spoken[position], stored[position].message
        content = found.content if isinstance(found.content, str) else list(found.content)
        stub = Spoken(position, {"role": found.role, "content": content})
        assert_it_is_a_stub(stub, said)
        witness.erased[position], witness.spoken[position] = said, stub
    witness.read_back.clear()


@dataclass(frozen=True)
class About:
    """What an erasure was about, by what had happened before it."""

    story: Retold
    said: Mapping[int, Spoken]
    """What was said where it was erased."""

    def covered_by(self, event: CompactionRequested | CompactionPerformed | None) -> bool:
        """Whether a compaction covers any of it."""
        return event is not None and any(map(event.coverage.covers, self.said))

    def is_noted(self, event: NotesFlushed) -> bool:
        """Whether something was noted of messages that any of it is among."""
        if event.is_on_demand:
            return any(self._quotes(note.text) for note in event.notes)
        return bool(event.notes) and any(event.start <= p < event.stop for p in self.said)

    def is_proposed(self, event: EditProposed) -> bool:
        """Whether an edit is about any of it, or quotes it."""
        return event.position in self.said or self._quotes(event.text)

    def _quotes(self, text: str) -> bool:
        return any(_share_words(text, said) for said in self.said.values())

    def is_quoted(self, event: MemoriesChosen | None) -> bool:
        """Whether a choice of memories quotes any of it."""
        return event is not None and any(m.position in self.said for m in event.memories)

    @cached_property
    def pins(self) -> frozenset[str]:
        """Those of these messages, and those in whose own words they are quoted."""
        return frozenset(i for i, pin in self.story.pins.items() if self._is_pinned(pin))

    def _is_pinned(self, pin: MessagePinned) -> bool:
        if pin.position is not None:
            return pin.position in self.said
        return self._quotes(pin.text)

    def may_rewrite(self, event: Event) -> bool:
        """Whether an event holds any of it, or what was made from it."""
        match event:
            case MessageAppended():
                return event.position in self.said
            case MessagePinned():
                return self._is_pinned(event)
            case EditProposed():
                return self.is_proposed(event)
            case CompactionRequested() | CompactionPerformed() | CompactionFailed():
                attempts = {a.requested.attempt_id: a.requested for a in self.story.attempts}
                return self.covered_by(attempts[event.attempt_id])
            case NotesFlushed():
                return self.is_noted(event)
            case MemoriesChosen():
                return self.is_quoted(event)
            case _:
                return False


def _share_words(text: str, said: Spoken) -> bool:
    """Whether twelve characters in a row are the same."""
    words = " ".join(text.split())
    runs = {words[n : n + 12] for n in range(len(words) - 11)}
    return any(run in " ".join(other.split()) for other in strings(said.blocks) for run in runs)


def _is_recorded(
    witness: Witness, about: About, before: Sequence[LoggedEvent], events: Sequence[Event]
) -> None:
    """What happened: the attempt is over, pins are taken back, a summary takes the place of the one
    that is withdrawn, and nothing else.
    """
    story, expected = about.story, list[type[Any]]()
    if story.running is not None and about.covered_by(story.running.requested):
        ended = witness.story.attempts[len(story.attempts) - 1].ended
        assert isinstance(ended, CompactionFailed), "what is under way covers it, and goes on"
        assert ended.reason == "erased"
        expected.append(CompactionFailed)
    expected += [MessageUnpinned] * len(about.pins)
    waiting = {edit.edit_id for edit in story.states[-1].edits}
    proposed = [e.event for e in before if isinstance(e.event, EditProposed)]
    closed = {e.edit_id for e in proposed if e.edit_id in waiting and about.is_proposed(e)}
    assert closed == {e.edit_id for e in events if isinstance(e, EditDecided) and not e.allowed}
    expected += [EditDecided] * len(closed) + [MessageErased] * len(about.said)
    if about.covered_by(story.active):
        expected += [CompactionRequested, CompactionPerformed, SummarySuperseded]
        assert witness.story.active is not None
        assert witness.story.active.trigger == "erasure"
    noted = [e.event for e in before if isinstance(e.event, NotesFlushed)]
    withdrawn = [f.flush_id for f in noted if about.is_noted(f) and not f.is_on_demand]
    expected += [NotesFlushed] * len(withdrawn)
    if about.is_quoted(story.quoted):
        expected.append(MemoriesChosen)
        assert witness.story.quoted is None
    kinds = [type(event) for event in events]
    assert withdrawn == [e.replaces for e in events if isinstance(e, NotesFlushed)]
    assert kinds == expected, f"{kinds} happened, not {expected}"
    assert about.said.keys() == {e.position for e in events if isinstance(e, MessageErased)}


def _others_are_as_before(
    before: Sequence[LoggedEvent], after: Sequence[LoggedEvent], about: About
) -> None:
    """Only what holds text of these messages lost text; the erasure names what it rewrote."""
    changed: set[int] = set()
    for old, new in zip(before, after, strict=False):
        assert (old.version, old.at, type(old.event)) == (new.version, new.at, type(new.event))
        fields = _differing(old.event, new.event)
        if fields:
            changed.add(old.version)
            assert fields <= TEXTS[type(old.event)], f"version {old.version} lost {fields}"
            assert about.may_rewrite(old.event), f"version {old.version} was rewritten"
    named = {
        one.version
        for logged in after[len(before) :]
        if isinstance(logged.event, MessageErased)
        for one in logged.event.rewritten
    }
    assert changed <= named, f"{sorted(changed - named)} were rewritten, and nothing says so"


def _differing(old: Event, new: Event) -> set[str]:
    if old == new:
        return set()
    names = type(old).model_fields
    return {name for name in names if getattr(old, name) != getattr(new, name)}


def aimed_at(witness: Witness, what: Aim, numbers: Iterable[int]) -> set[int]:
    """The positions that these numbers mean among what is aimed at; among all, where that is nothing."""
    active, length = witness.story.active, len(witness.spoken)
    match what:
        case "covered":
            among = [p for p in range(length) if active and active.coverage.covers(p)]
        case "pinned":
            among = [pin.position for pin in witness.pins.values() if pin.position is not None]
        case _:
            among = []
    among = [p for p in among if p not in witness.erased] or list(range(length))
    return {among[number % len(among)] for number in numbers}


def shared_with(witness: Witness, fork: str) -> int:
    """How many messages another conversation has in common with this one."""
    if fork == THREAD:
        return len(witness.spoken)
    return witness.story.states[witness.forks[fork]].length


def fork(witness: Witness, back: int) -> None:
    """Begin another conversation as a copy of this one as it was, and go on there; here nothing changes."""
    version, shown = witness.conversation.version, as_bytes(witness.shown())
    into, at = f"for{'abcdef'[len(witness.forks)]}", max(1, version - back)
    witness.forks[into] = at
    copy = witness.conversation.fork(at=at, thread_id=into)
    there, here = copy.context(at=at, **witness.extras), witness.shown(at)
    # As long as each other, so that they have the same size.
    renamed = as_bytes(there).replace(f"://{into}/".encode(), f"://{THREAD}/".encode())
    # The frame of the request at this version may have been recorded after it; a copy does not have it.
    later = [e.event for e in witness.events() if e.version > at]
    if not any(isinstance(e, RequestFrameChanged) and e.asked_at == at for e in later):
        assert renamed == as_bytes(here), "the copy is rendered otherwise"
    spoken = witness.spoken[: witness.story.states[at].length]
    copied = [(m.message.role, m.message.content) for m in copy.messages()]
    stored = [
        (m.message.role, m.message.content) for m in witness.conversation.messages(0, len(spoken))
    ]
    assert copied == stored
    _go_on(witness, into)
    assert witness.conversation.version == version
    assert as_bytes(witness.shown()) == shown


def _go_on(witness: Witness, into: str) -> None:
    """Talk and compact in a copy; what the judges follow is the conversation itself."""
    copy, follower = witness.memory.conversation(into), witness.follower
    plugged, witness.summariser.current = witness.summariser.current, GoodSummariser()
    told, followed = list(follower.told), list(follower.attempts)
    copy.append({"role": "user", "content": "What would you do in my place?"}, recorded=True)
    copy.append({"role": "assistant", "content": "I would wait."}, recorded=True)
    copy.compact(force=True)
    follower.told[:], follower.attempts[:] = told, followed
    witness.summariser.current = plugged
