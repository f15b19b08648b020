"""Lives after a death: a witness on what the files held, and what must be true when it opens them."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.events import CompactionFailed
from refold.testing.history_layout import Step
from tests.support.invariants.replayed import read_models_are_a_fold_of_the_log
from tests.support.invariants.whole import OF_WHAT_IS_STORED, what_is_shown_holds

from .deeds import compact
from .dying import Moment, torn, watched, write_files
from .followed import Follower
from .witness import Pinned, Witness, as_bytes


class Known(NamedTuple):
    """What had been acknowledged at a moment."""

    said: int
    """Messages."""
    told: int
    """Results of compactions that observers were told."""
    pins: frozenset[str]


class Books(NamedTuple):
    """What a witness had noted before a deed."""

    witness: Witness
    """A copy, for its lists; nothing is to be asked of its memory."""
    events: tuple[LoggedEvent, ...]
    shown: Mapping[int, bytes]
    """What was rendered at the newest version."""
    followed: int
    """How many attempts had been followed."""

    @classmethod
    def of(cls, witness: Witness) -> "Books":
        """A copy of the notes as they are."""
        events = tuple(witness.events())
        shown = {len(events): as_bytes(witness.shown())}
        notes = copied(witness)
        # Whoever dies takes along what it sent and has not recorded.
        unrecorded = witness._unrecorded()  # pyright: ignore[reportPrivateUsage]
        unclear = [*witness.unclear, *((since, None) for since in unrecorded)]
        notes.unclear = [(since, len(events) if end is None else end) for since, end in unclear]
        return cls(notes, events, shown, len(witness.follower.attempts))


class Lived(NamedTuple):
    """A deed that was done to its end, with every moment at which it could have been cut short.

    There is none where it changed no file.
    """

    books: Books
    after: Witness
    """The witness, which lives on in the world where nobody died."""
    moments: Sequence[Moment[Known]]
    marks: Sequence[Known]
    """What was known, each time that it changed."""


def live(witness: Witness, deed: Callable[[], object], share: float) -> Lived:
    """Do a deed; ``share`` says where writes are cut that were not finished."""
    books = Books.of(witness)
    with watched(witness.folder, lambda: known(witness)) as moments:
        deed()
    marks = list(dict.fromkeys([*(m.known for m in moments), known(witness)]))
    changed = any(m.files != moments[0].files for m in moments)
    # The first moment is the end of the deed before.
    deaths = [*moments[1:], *torn(moments, share)] if changed else []
    return Lived(books, witness, deaths, marks)


def known(witness: Witness) -> Known:
    """What has been acknowledged until now."""
    return Known(len(witness.spoken), len(witness.follower.told), frozenset(witness.pins))


def copied(witness: Witness) -> Witness:
    """Its notes in lists of their own."""
    twin = copy(witness)
    for name in (
        "spoken",
        "asked",
        "looked",
        "erased",
        "forks",
        "pins",
        "seen",
        "judged",
        "read_back",
        "with_usage",
        "unclear",
    ):
        setattr(twin, name, copy(getattr(witness, name)))
    return twin


def reborn(lived: Lived, moment: Moment[Known], folder: Path) -> Witness:
    """A witness in a folder as it was at this moment; who died is known to be gone."""
    write_files(moment.files, folder)
    after = lived.after
    process = replace(after.process, gone=set(after.process.gone))
    process.ends()
    before = copied(lived.books.witness)
    witness = replace(before, folder=folder, process=process, follower=Follower())
    witness.summariser.current = after.summariser.current
    try:
        _take_what_is_there(witness, lived, moment)
    except BaseException:
        witness.close()
        raise
    return witness


def _take_what_is_there(witness: Witness, lived: Lived, moment: Moment[Known]) -> None:
    """Check what the log holds against what was acknowledged, and note it."""
    acknowledged = lived.books.events
    read_models_are_a_fold_of_the_log(witness)
    events = witness.events()
    assert tuple(events[: len(acknowledged)]) == acknowledged, "what was acknowledged is not there"
    story, after = witness.story, lived.after
    allowed = _from(lived.marks, moment.known)
    stored = {mark.said for mark in allowed}
    assert story.length in stored, (
        f"{story.length} messages are stored, not {stored}: a part of them"
    )
    witness.spoken[:] = after.spoken[: story.length]
    pins = {mark.pins for mark in allowed}
    assert frozenset(story.pins) in pins, "pins are not as they were acknowledged"
    noted: dict[str, Pinned] = {**lived.books.witness.pins, **after.pins}
    witness.pins = {pin_id: noted[pin_id] for pin_id in story.pins}
    _follow(witness, lived, moment.known.told)


def _from(marks: Sequence[Known], now: Known) -> Sequence[Known]:
    """What was known then, and what one call later."""
    at = marks.index(now)
    return marks[at : at + 2]


def _follow(witness: Witness, lived: Lived, told: int) -> None:
    """Observers know what they were told; the world that went on may have told what never was."""
    ended = {a.requested.attempt_id for a in witness.story.attempts if a.ended}
    everything = lived.after.follower.told
    for result in everything[:told]:
        # An attempt that was given up before it was recorded has no id.
        is_stored = result.attempt_id is None or result.attempt_id in ended
        assert is_stored or result.outcome not in ("performed", "failed"), (
            f"told, not stored: {result}"
        )
    witness.follower.told = [r for r in everything if r.attempt_id in ended]
    begun = {a.requested.attempt_id for a in witness.story.attempts}
    followed = lived.after.follower.attempts
    witness.follower.attempts = [
        attempted
        for number, attempted in enumerate(followed)
        if number < lived.books.followed
        or begun.intersection(r.attempt_id for r in attempted.results)
    ]


def judge(witness: Witness, books: Books) -> None:
    """All that must be true in the life after a death, before anything new is done."""
    for version, sent in books.shown.items():
        if witness.is_clear(version) and not witness.is_reframed(version):
            assert as_bytes(witness.shown(version)) == sent, (
                f"version {version} is rendered otherwise"
            )
    shown = witness.shown()
    what_is_shown_holds(witness, shown)
    for holds in OF_WHAT_IS_STORED:
        holds(witness)


def settle(witness: Witness) -> None:
    """Whoever compacts next ends what was open, once, and that changes nothing (8, 11, 22)."""
    left = [a.requested.attempt_id for a in witness.story.attempts if not a.ended]
    before = as_bytes(witness.shown())
    compact(witness)
    for attempt in witness.story.attempts:
        if attempt.requested.attempt_id in left:
            assert isinstance(attempt.ended, CompactionFailed), (
                "what the dead began is not given up"
            )
            then = as_bytes(witness.shown(attempt.ended_at))
            assert then == before, "settling what was left open changed the context"


def deliver(witness: Witness, *, steps: Sequence[Step], part: int) -> None:
    """Append each step under keys of its own; what is there already is not stored again (13)."""
    for number, step in enumerate(steps):
        messages = [{**m, "content": m["content"] or " "} for m in step]
        keys = [f"{part}-{number}-{n}" for n in range(len(step))]
        witness.note(messages, witness.conversation.append(messages, key=keys))
