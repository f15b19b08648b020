"""Deeds that erase messages and fork the conversation, each with what must be true right after it."""

from collections.abc import Iterable, Sequence
from typing import Any

from refold.application.event_log import LoggedEvent
from refold.application.erasure_report import ErasureReport
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    Event,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessageUnpinned,
    SummarySuperseded,
)

from .fake_summarisers import GoodSummariser
from .invariants.erased import assert_it_is_a_stub, nothing_shows_what_is_erased
from .retold import Retold
from .talk import Spoken
from .witness import THREAD, Witness, as_bytes

MOST_FORKS = 2
TEXTS: dict[type[Any], frozenset[str]] = {
    MessageAppended: frozenset({"message"}),
    CompactionRequested: frozenset({"source_digest"}),
    CompactionPerformed: frozenset(
        {"text", "source_digest", "split_turn_prefix", "ledger", "ledger_shown", "leaf", "block"}
    ),
    CompactionFailed: frozenset({"detail"}),
    MessagePinned: frozenset({"text"}),
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
    witness.read_again()
    if not fresh:
        assert witness.events() == list(before)
        assert as_bytes(witness.shown()) == shown
        return report
    _note(witness, fresh)
    _is_recorded(witness, story, frozenset(fresh), witness.events()[len(before) :])
    _others_are_as_before(before, witness.events(), story, frozenset(fresh))
    nothing_shows_what_is_erased(witness)
    return report


def _note(witness: Witness, fresh: Sequence[int]) -> None:
    stored = witness.chat.messages()
    for position in fresh:
        said, found = witness.spoken[position], stored[position].message
        content = found.content if isinstance(found.content, str) else list(found.content)
        stub = Spoken(position, {"role": found.role, "content": content})
        assert_it_is_a_stub(stub, said)
        witness.erased[position], witness.spoken[position] = said, stub
    witness.pins = {i: pin for i, pin in witness.pins.items() if pin.position not in fresh}
    witness.read_back.clear()


def _is_recorded(
    witness: Witness, story: Retold, fresh: frozenset[int], added: Sequence[LoggedEvent]
) -> None:
    """What happened: the attempt is over, pins are taken back, a summary takes the place of the one
    that is withdrawn, and nothing else.
    """
    events = [logged.event for logged in added]
    running, active = story.running, story.active
    expected: list[type[Any]] = []
    if running is not None and any(map(running.requested.coverage.covers, fresh)):
        expected.append(CompactionFailed)
    expected += [MessageUnpinned for pin in story.pins.values() if pin.position in fresh]
    expected += [MessageErased] * len(fresh)
    if active is not None and any(map(active.coverage.covers, fresh)):
        expected += [CompactionRequested, CompactionPerformed, SummarySuperseded]
        assert witness.story.active is not None
        assert witness.story.active.trigger == "erasure"
    kinds = [type(event) for event in events]
    assert kinds == expected, f"{kinds} happened, not {expected}"
    erased = [event for event in events if isinstance(event, MessageErased)]
    assert {event.position for event in erased} == fresh
    if expected[0] is CompactionFailed:
        assert running is not None
        ended = witness.story.attempts[len(story.attempts) - 1].ended
        assert isinstance(ended, CompactionFailed)
        assert ended.reason == "erased"


def _others_are_as_before(
    before: Sequence[LoggedEvent],
    after: Sequence[LoggedEvent],
    story: Retold,
    fresh: frozenset[int],
) -> None:
    """Only what holds text of these messages lost text; the erasure names what it rewrote."""
    attempts = {a.requested.attempt_id: a.requested.coverage for a in story.attempts}
    changed: set[int] = set()
    for old, new in zip(before, after, strict=False):
        assert (old.version, old.at, type(old.event)) == (new.version, new.at, type(new.event))
        fields = _differing(old.event, new.event)
        if fields:
            changed.add(old.version)
            assert fields <= TEXTS[type(old.event)], f"version {old.version} lost {fields}"
            assert _is_about(old.event, fresh, attempts), f"version {old.version} was rewritten"
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


def _is_about(event: Event, fresh: frozenset[int], attempts: dict[str, Any]) -> bool:
    match event:
        case MessageAppended() | MessagePinned():
            return event.position in fresh
        case CompactionRequested() | CompactionPerformed() | CompactionFailed():
            return any(map(attempts[event.attempt_id].covers, fresh))
        case _:
            return False


def shared_with(witness: Witness, fork: str) -> int:
    """How many messages another conversation has in common with this one."""
    if fork == THREAD:
        return len(witness.spoken)
    return witness.story.states[witness.forks[fork]].length


def fork(witness: Witness, back: int) -> None:
    """Begin another conversation as a copy of this one as it was, and go on there; here nothing changes."""
    version, shown = witness.chat.version, as_bytes(witness.shown())
    into, at = f"for{'abcdef'[len(witness.forks)]}", max(1, version - back)
    witness.forks[into] = at
    copy = witness.chat.fork(at=at, thread_id=into)
    there, here = copy.context(at=at, **witness.extras), witness.shown(at)
    # As long as each other, so that they have the same size.
    renamed = as_bytes(there).replace(f"://{into}/".encode(), f"://{THREAD}/".encode())
    assert renamed == as_bytes(here), "the copy is rendered otherwise"
    spoken = witness.spoken[: witness.story.states[at].length]
    copied = [(m.message.role, m.message.content) for m in copy.messages()]
    stored = [(m.message.role, m.message.content) for m in witness.chat.messages(0, len(spoken))]
    assert copied == stored
    _go_on(witness, into)
    assert witness.chat.version == version
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
